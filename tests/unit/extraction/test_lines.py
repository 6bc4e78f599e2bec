"""T3: replies in plain lines are understood, and "none" in any spelling is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidOutput
from recollect.extraction.model import is_none, parse_lines
from recollect.extraction.parse import AnswerLimits
from recollect.types.facts import Draft, FactFaults, Trust
from tests.tables import every_row
from tests.unit.extraction.material import answered, at, extraction, piece, resulted, said

PIECE = piece(
    said(1, "I prefer tea over coffee"),
    answered(2, "I put the kettle on"),
    resulted(4, "The weather in Oslo is fine today"),
    upto=9,
)
LIMITS = AnswerLimits(fact_chars_max=100, memory_chars_max=500, facts_max=5)


def contents(text: str) -> list[str]:
    return [fact.content for fact in parse_lines(text, PIECE, LIMITS).facts]


@every_row(
    "text",
    [
        "none", "None", "NONE.", "none!", " none ", "- none", "* None.", "1. none", "**none**",
        "`none`", '"none"', "(none)", "[none]", "None\n", "```\nnone\n```", "n/a", "N/A.",
        "nothing",
        "Nothing.", "null", "nil", "No", "-", "—", "[]", "no facts", "No new facts.",
        "No facts found.", "There are no facts to remember.", "There is nothing to remember.",
        "Nothing worth remembering.", "Nothing new was found in this conversation.",
        "None of the facts", "I found nothing to record.", "No durable information.",
        "keine", "Nichts.", "rien", "nada", "ninguno", "нет", "无", "没有", "なし", "없음",
        "Facts:\nnone", "# Facts\n\nnone",
    ],
)  # fmt: skip
def test_none_in_any_spelling_is_none(text: str) -> None:
    assert parse_lines(text, PIECE, LIMITS) == Draft(upto=9)


@every_row(
    "line",
    [
        "No sugar in the tea.",
        "None of the tests may be skipped.",
        "Nothing beats tea.",
        "No, tea.",
        "Nobody drinks coffee.",
        "no " * 500,
        "",
        "...",
    ],
)
def test_a_line_that_says_something_is_not_none(line: str) -> None:
    assert not is_none(line)


@every_row(
    "bullet",
    [
        "",
        "- ",
        "* ",
        "+ ",
        "• ",
        "– ",
        "1. ",
        "12) ",
        "(3) ",
        "a) ",
        "- [ ] ",
        "* [x] ",
        "  - ",
        "- 1. ",
    ],
)
def test_bullets_and_numbers_are_stripped(bullet: str) -> None:
    assert contents(f"{bullet}The user prefers tea") == ["The user prefers tea"]


@every_row(
    ("line", "content", "tag"),
    [
        ("preference: The user prefers tea", "The user prefers tea", "preference"),
        ("Preference: The user prefers tea", "The user prefers tea", "preference"),
        ("- **preference**: The user prefers tea", "The user prefers tea", "preference"),
        ("[decision] - Tea over coffee", "Tea over coffee", "decision"),
        ("The user prefers tea", "The user prefers tea", "observation"),
        ("weather: fine in Oslo", "weather: fine in Oslo", "observation"),
    ],
)
def test_a_line_may_begin_with_its_kind(line: str, content: str, tag: str) -> None:
    (fact,) = parse_lines(line, PIECE, LIMITS).facts
    assert (fact.content, fact.tags) == (content, (tag,))


def test_a_line_is_given_to_the_record_whose_words_it_shares() -> None:
    text = "preference: tea over coffee\ninstruction: The weather in Oslo is fine"
    first, second = parse_lines(text, PIECE, LIMITS).facts
    assert (first.seq, first.seq_to, first.valid_from, first.trust) == (1, 1, at(1), Trust.USER)
    assert first.quote == "I prefer tea over coffee"
    assert (second.seq, second.trust, second.tags) == (4, Trust.TOOL, ("observation",))


def test_headings_and_what_the_transcript_does_not_say_go() -> None:
    text = "Here are the facts:\n\n## Facts\n---\n- The user prefers tea\n- Bananas are yellow\n```"
    assert contents(text) == ["The user prefers tea"]


def test_none_beside_facts_is_no_fact() -> None:
    assert contents("The user prefers tea\nnone") == ["The user prefers tea"]


def test_a_fact_that_stands_twice_is_kept_once() -> None:
    assert contents("- Prefers tea.\n- prefers tea") == ["Prefers tea."]


@every_row(
    "text",
    [
        "",
        " \n ",
        "...",
        "***",
        "```\n```",
        "# Facts",
        "Here are the facts:",
        "Bananas are yellow",
        "<html><body>502 Bad Gateway</body></html>",
        "I cannot help with that request.",
        "The user prefers tea " * 20,
        "tea " * 1_000_000,
    ],
)
def test_what_says_nothing_of_the_transcript_is_refused(text: str) -> None:
    """X5: and never taken for nothing to remember."""
    with pytest.raises(InvalidOutput):
        parse_lines(text, PIECE, LIMITS)


@pytest.mark.parametrize(
    ("lines", "kept", "dropped"),
    [
        (["The user prefers tea", "Bananas are yellow"], 1, 1),
        (["The user prefers tea", "Prefers tea " * 20], 1, 1),
        ([f"Prefers tea number {number}" for number in range(8)], 5, 3),
    ],
    ids=["not said", "too long", "too many"],
)
def test_lines_that_are_no_facts_are_counted_and_the_others_kept(
    lines: list[str], kept: int, dropped: int
) -> None:
    draft = parse_lines("\n".join(lines), PIECE, LIMITS)
    assert [fact.content for fact in draft.facts] == lines[:kept]
    assert draft.faults == FactFaults(dropped=dropped)


def test_memory_and_summary_are_made_of_the_facts() -> None:
    draft = parse_lines("The user prefers tea\nOslo is fine today.", PIECE, LIMITS)
    assert draft.raw_memory == "- The user prefers tea\n- Oslo is fine today."
    assert draft.rollout_summary == "The user prefers tea.\nOslo is fine today."


def test_memory_grows_by_what_is_new() -> None:
    before = extraction(raw_memory="- Prefers tea", rollout_summary="Prefers tea.")
    again = piece(*PIECE.blocks, previous=before)
    draft = parse_lines("Prefers tea\nOslo is fine", again, LIMITS)
    assert draft.raw_memory == "- Prefers tea\n- Oslo is fine"
    assert draft.rollout_summary == "Prefers tea.\nOslo is fine."
    assert draft.rollout_slug == "tea"


@given(st.text(max_size=300))
def test_whatever_lines_come_are_grounded_or_refused(text: str) -> None:
    try:
        draft = parse_lines(text, PIECE, LIMITS)
    except InvalidOutput:
        return
    assert all(fact.seq in (1, 2, 4) and len(fact.content) <= 100 for fact in draft.facts)


@every_row("shape", ["- ", "1. ", "**", "`", "no new ", "__a", "eat\n"])
def test_odd_lines_take_no_longer_than_others(shape: str) -> None:
    """P8: quadratic would take minutes."""
    with pytest.raises(InvalidOutput):
        parse_lines(shape * 20_000, PIECE, LIMITS)

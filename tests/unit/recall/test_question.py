"""From what a store found to what ranking works on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.recall.question import (
    ADDRESSED_CHARS_MAX,
    PHRASES_MAX,
    Phrase,
    ask,
    without_names,
)
from recollect.recall.rank import candidates
from recollect.types.facts import Trust
from recollect.types.recall import Entry, EntryKind
from tests.tables import every_row


def entry(kind: EntryKind, key: int) -> Entry:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    return Entry(kind=kind, key=key, id="x", text="x", stems="x", at=at, trust=Trust.USER)


def test_of_equals_a_fact_goes_first_and_of_two_of_a_kind_the_newer() -> None:
    mixed = [(kind, key) for key in (9, 10, 2**40) for kind in reversed(EntryKind)]
    question = ask("x", datetime(2026, 5, 1, tzinfo=UTC))
    found = candidates(question, [entry(kind, key) for kind, key in mixed])
    by_turn = sorted(zip(found.turns, mixed, strict=True))
    assert [each for _, each in by_turn] == [
        (kind, key) for kind in EntryKind for key in (2**40, 10, 9)
    ]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Does Ana row?", "Does row?"),
        ("What is Ana's boat?", "What is boat?"),
        ("Ana", "Ana"),  # nothing else to ask for
    ],
)
def test_names_are_taken_out_of_what_is_embedded(text: str, left: str) -> None:
    assert without_names(text, ["ana maria"]) == left


@every_row(
    ("text", "about"),
    [
        ("Can you recommend some recent conferences?", "recent conferences"),
        ("Could you please suggest activities for the evening?", "activities evening"),
        ("I'm planning a trip to Denver. Any suggestions?", "planning trip denver"),
        ("I've been thinking about baking bread. Any advice on flour?", "baking bread flour"),
        ("Do you think it would be a good idea to see Ana?", "see ana"),
        ("I mentioned visiting a museum. When?", "visiting museum"),
        ("What did I tell you about my sister?", "sister"),
        (
            "I'm going through our last chat about tea and was wondering if you could show me pots",
            "tea pots",
        ),
        # What others said and did is the matter itself.
        ("What did Ana recommend?", "ana recommend"),
        ("Which tips did the guide give us?", "tips guide give"),
        ("Did Tom mention a chat?", "tom mention chat"),
        # Where nothing else is asked, it is asked by what there is.
        ("Any suggestions?", "suggestions"),
        ("Can you help me with this?", "help"),
        ("Do you remember?", "remember"),
    ],
)
def test_what_is_said_to_whoever_is_asked_is_not_searched_for(text: str, about: str) -> None:
    found = ask(text, datetime(2026, 5, 1, tzinfo=UTC)).terms
    assert [term.word for term in found] == about.split()


def test_a_long_text_is_searched_for_by_all_its_words() -> None:
    text = "Can you suggest a name? " + "x " * ADDRESSED_CHARS_MAX
    found = ask(text, datetime(2026, 5, 1, tzinfo=UTC)).terms
    assert [term.word for term in found] == ["suggest", "name", "x"]


@every_row(
    ("text", "is_asked"),
    [
        ("Which hostel did you recommend?", True),
        ("What was the pot that you specifically suggested?", True),
        ("What did the assistant say about tea?", True),
        ("In our last conversation about tea, which pot was it?", True),
        ("In our last conversation, what did I tell you about tea?", False),
        ("You know what Ana said about tea?", False),
        ("Can you recommend a hostel?", False),
        ("Which hostel did Ana recommend?", False),
    ],
)
def test_what_the_agent_said_is_asked_for(text: str, is_asked: bool) -> None:
    assert ask(text, datetime(2026, 5, 1, tzinfo=UTC)).asks_agent is is_asked


@every_row(
    ("text", "phrases"),
    [
        ("Where is the fish market?", [Phrase(("fish", "market"))]),
        ("Is the market of fish open?", [Phrase(("fish", "open"))]),
        ('Who said "let it be"?', [Phrase(("let", "it", "be"), is_quoted=True)]),
        ("Who said “let it be”?", [Phrase(("let", "it", "be"), is_quoted=True)]),
        ("Who said 'let it be'?", [Phrase(("let", "it", "be"), is_quoted=True)]),
        ("Who read ‘Ana’s house’?", [Phrase(("ana", "s", "hous"), is_quoted=True)]),
        ("The dogs' and the cats' food isn't Ana's", []),
        ('"fish"', []),
    ],
)
def test_words_that_stand_together_are_phrases(text: str, phrases: list[Phrase]) -> None:
    found = ask(text, datetime(2026, 5, 1, tzinfo=UTC)).phrases
    quoted = [phrase for phrase in found if phrase.is_quoted]
    assert [each for each in phrases if each.is_quoted] == quoted
    assert all(each in found for each in phrases)


def test_a_question_has_only_so_many_phrases() -> None:
    text = " ".join(f"word{number}" for number in range(5000))
    assert len(ask(text, datetime(2026, 5, 1, tzinfo=UTC)).phrases) <= PHRASES_MAX

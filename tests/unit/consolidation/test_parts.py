"""Parts of memory: what they rest on, and what becomes of an answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from recollect.agents.loop import continued
from recollect.consolidation.evidence import SummarizedSession
from recollect.consolidation.handbook import WrittenText, handbook
from recollect.consolidation.pages import MEMORY, WRITTEN
from recollect.consolidation.parts import (
    CurrentInputs,
    PartPlan,
    WrittenPart,
    session_input,
    standing,
    texts_of,
)
from recollect.types.facts import Fact, Source
from recollect.types.generations import Pick, Standing

NOW = datetime(2026, 5, 3, tzinfo=UTC)
SESSIONS = [
    SummarizedSession(
        session_id=name,
        path=f"~/memory/rollout_summaries/{name}",
        day=date(2026, 5, 3),
        title=f"Session {name}",
        short=f"Something of {name}.",
        state=(round(NOW.timestamp() * 1_000_000), 1),
    )
    for name in ("one", "two")
]
PICKS = [Pick(session_id=each.session_id, revision=1, source_updated_at=NOW) for each in SESSIONS]


def known(content: str, session: str = "one", **given: object) -> Standing:
    fact = Fact(
        content,
        id=f"id of {content}",
        sources=(Source(session_id=session, seq=1, seq_to=1),),
        tags=("preference",),
        valid_from=NOW,
        extractor="a model",
    )
    return Standing(fact=replace(fact, **given), project=None)  # type: ignore[arg-type]


def planned(
    *standings: Standing, parts: tuple[WrittenPart, ...] = (), memory: str = ""
) -> PartPlan:
    book = handbook(standings, [each.session_id for each in SESSIONS], SESSIONS, by_subject=True)
    current = CurrentInputs.of(standings, PICKS)
    stands = standing(parts, current, texts_of(memory, {}))
    links = {each.session_id: each for each in SESSIONS}
    inputs: frozenset[str] = frozenset().union(*(each.inputs for each in parts))
    return PartPlan.of(book, stands, links, inputs, WRITTEN)


def read(plan: PartPlan, answer: str) -> dict[str, str]:
    return {name: each.text for name, each in plan.parts[0].read(answer, WRITTEN).items()}


def test_names_become_links_the_first_time_and_days_after_that() -> None:
    plan = planned(known("The user likes tea."), known("The user likes rye.", "two"))
    said = read(
        plan, "## Preferences\n\n- Tea [f2], then\n  more of it.\n- Again. [f2]\n- Rye [f1]"
    )
    one, two = (f"[[~/memory/rollout_summaries/{name}|2026-05-03]]" for name in ("one", "two"))
    lines = said["Preferences"].split("\n")
    assert len(lines) == 3
    assert {line.partition(" (")[0] for line in lines} == {
        "- Tea, then more of it.",
        "- Again.",
        "- Rye",
    }
    assert lines[1] == "- Again. (2026-05-03)"
    assert (one in lines[0], two in lines[2]) in ((True, True), (False, False))


@pytest.mark.parametrize(
    "answer",
    [
        "- Says who?",
        "## Preferences\n- Says who? [f99]",
        "- [[~/memory/people/ana|A link]] of its own",
        "[f1]",
        "Sure! Here it is.",
    ],
)
def test_a_line_without_a_name_that_was_given_is_no_line(answer: str) -> None:
    assert not any(
        "Says" in text or "Sure" in text
        for text in read(planned(known("The user likes tea.")), answer).values()
    )


def test_a_section_may_say_nothing_but_not_less_than_a_person_stated() -> None:
    plan = planned(known("The user likes tea."))
    assert read(plan, "## Preferences\n\n(nothing)") == {"Preferences": ""}
    told = known("The user likes rye, not wheat.", extractor=None)
    plan = planned(known("The user likes tea."), told)
    said = read(plan, "## Preferences\n\n(nothing)")["Preferences"]
    assert said.startswith("- The user likes rye, not wheat. (2026-05-03)")
    whole = "## Preferences\n\n- The user likes rye, not wheat. [f1, f2]"
    assert read(plan, whole)["Preferences"].count("rye") == 1


def test_what_a_text_rests_on_stands_or_falls_with_each_of_its_inputs() -> None:
    tea, rye = known("The user likes tea."), known("The user likes rye.", "two")
    rests = CurrentInputs.of([tea, rye], PICKS)
    inputs = frozenset(rests.facts) | set(map(session_input, SESSIONS))
    part = WrittenPart(names=("Preferences",), inputs=inputs)
    assert WrittenPart.read(WrittenPart.store([part])) == (part,)
    texts = texts_of("Intro.\n\n## Preferences\n\n- Tea.\n\n## Other\n\n- More.", {})
    assert standing([part], rests, texts)["Preferences"][0] == WrittenText(text="- Tea.")

    def stands(standings: list[Standing], picks: list[Pick]) -> bool:
        return bool(standing([part], CurrentInputs.of(standings, picks), texts))

    later = replace(PICKS[0], revision=2, source_updated_at=datetime(2026, 6, 1, tzinfo=UTC))
    assert stands([tea, rye, known("New.")], PICKS), "what comes takes nothing away"
    assert stands([tea, rye], [later, PICKS[1]]), "a session that went on"
    edited = replace(rye, fact=replace(rye.fact, content="No rye."))
    assert not stands([tea], PICKS), "a fact that was taken back"
    assert not stands([tea, edited], PICKS)
    assert not stands([tea, rye], PICKS[:1]), "a session that is gone"
    assert not stands([tea, rye], [replace(PICKS[0], revision=2), PICKS[1]]), "told anew"


def test_what_was_shown_before_is_not_asked_for_again() -> None:
    tea, rye = known("The user likes tea."), known("The user likes rye.", "two")
    parts = tuple(
        WrittenPart(names=each.names, inputs=each.inputs) for each in planned(tea, rye).parts
    )
    memory = "## Preferences\n\n- Tea.\n\n## Sessions\n\n- One."
    assert planned(tea, rye, parts=parts, memory=memory).parts == ()
    news = planned(tea, rye, known("The user likes figs."), parts=parts, memory=memory)
    assert [part.names for part in news.parts] == [("Preferences",), ("~/memory/memory_summary",)]
    assert "What stands now:\n\n- Tea." in news.parts[0].material()
    assert news.parts[0].material().count(", new)") == 1
    without = planned(tea, parts=parts, memory=memory)
    assert "- Tea." not in without.parts[0].material(), "it rested on what was taken back"


def test_no_section_is_larger_than_it_may_be() -> None:
    plan = planned(*(known(f"The user likes number {number}.") for number in range(400)))
    part = plan.parts[0]
    lines = "\n".join(f"- {'word ' * 40} [f1]" for _ in range(1000))
    text = read(plan, f"## Preferences\n{lines}")["Preferences"]
    assert 0 < len(text.encode()) < part.bytes_max["Preferences"] * 1.1
    assert text.endswith(")"), "whole lines"
    assert len(part.material()) < 4 * 8_000


def test_an_answer_goes_on_where_it_was_cut_off() -> None:
    assert continued("", "All of it.") == "All of it."
    assert continued("- One\n- Tw", "o\n- Three") == "- One\n- Two\n- Three"
    assert continued("- One\n- Tw", "- Two\n- Three") == "- One\n- Two\n- Three"
    assert continued("- One\n- Tw", "- One\n- Two\n- Three") == "- One\n- Two\n- Three"


def test_the_pages_are_whole_whatever_is_written() -> None:
    book = handbook([known("The user likes tea.")], ["one", "two"], SESSIONS)
    (memory,) = (
        each
        for each in book.pages({"Preferences": WrittenText(text="- Chá.")})
        if each.path == MEMORY
    )
    assert "## Preferences\n\n- Chá.\n\n## Sessions" in memory.body
    (without,) = (
        each for each in book.pages({"Preferences": WrittenText(text="")}) if each.path == MEMORY
    )
    assert "Preferences" not in without.body

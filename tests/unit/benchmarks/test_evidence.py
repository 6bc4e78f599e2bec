"""Evidence in a block: what counts as standing there, what as told, and what as neither."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.benchmarks.evidence import Evidence
from recollect.benchmarks.tasks import Pool, TaskTurn
from recollect.types.facts import Source, Trust
from recollect.types.recall import Citation, EntryKind, Hit

NOW = datetime(2023, 5, 8, tzinfo=UTC)
TURNS = {"s:1": "D1:1", "s:2": "D1:2", "s:3": "D1:3"}


def turn(name: str, text: str) -> TaskTurn:
    return TaskTurn(id=name, session="D1", speaker="Ana", role="user", said_at=NOW, text=text)


EVIDENCE = Evidence(
    Pool(
        name="conv-1",
        turns=(
            turn("D1:1", "Hi Ben! I adopted a greyhound on Monday, and she sleeps all day."),
            turn("D1:2", "Her name is Comet."),
            turn("D1:3", "Her name is Comet."),
        ),
        queries=(),
    )
)


def fact(text: str, *records: int) -> Citation:
    sources = tuple(Source(session_id="s", seq=seq, seq_to=seq) for seq in records)
    hit = Hit(
        id="f",
        kind=EntryKind.FACT,
        text=text,
        score=1.0,
        why={},
        sources=sources,
        at=NOW,
        trust=Trust.USER,
    )
    return Citation(mark="m1", hit=hit, sources=sources)


def shares(
    block: str, *facts: Citation, wanted: frozenset[str] = frozenset({"D1:1"})
) -> list[float]:
    found = EVIDENCE.found(wanted, block, facts, TURNS)
    return [found.standing, found.told]


@pytest.mark.parametrize(
    "block",
    [
        "- Hi Ben! I adopted a greyhound on Monday, and she sleeps all day. [m1] (2023-05-08)",
        "ana: HI BEN – i adopted a “greyhound” on monday, and she sleeps all day",
        "- I adopted a greyhound on Monday, and she sleeps all day. [m3]",  # the greeting is gone
    ],
)
def test_a_turn_stands_where_most_of_its_words_stand_as_they_were_said(block: str) -> None:
    assert shares(block) == [1.0, 1.0]


@pytest.mark.parametrize(
    "block",
    [
        "",
        "- Hi Ben! [m1]",
        "- I adopted a greyhound … [m1]",
        "- Hi Ben! I adopted a greyhound\n- on Monday, and she sleeps all day. [m2]",
        "- On Monday I adopted a greyhound, and she sleeps all day. [m1]",
    ],
)
def test_a_part_of_a_turn_or_its_words_in_another_order_do_not_stand_for_it(block: str) -> None:
    assert shares(block) == [0.0, 0.0]


def test_forty_words_of_a_long_turn_are_enough() -> None:
    sentences = [f"Every {word} was as green as the sea." for word in ("leaf", "door", "hat")]
    evidence = Evidence(
        Pool(name="conv-1", turns=(turn("D1:1", " ".join(sentences * 5)),), queries=())
    )
    assert evidence.found({"D1:1"}, sentences[0]).standing == 1.0  # five times eight words
    longer = turn("D1:1", " ".join([*sentences, *(f"Rest {n} of it." for n in range(40))]))
    evidence = Evidence(Pool(name="conv-1", turns=(longer,), queries=()))
    assert evidence.found({"D1:1"}, " ".join(sentences)).standing == 0.0


def test_a_fact_that_rests_on_the_turn_alone_and_has_its_words_tells_it() -> None:
    said = "Ana adopted a greyhound on Monday (2023-05-08); she sleeps all day."
    assert shares(f"- {said}", fact(said, 1)) == [0.0, 1.0]
    asked = 'Ana, asked "Any news from the animal shelter?": "I adopted a greyhound."'
    assert shares(f"- {asked}", fact(asked, 1)) == [0.0, 1.0]


def test_a_fact_of_several_turns_or_of_other_words_does_not_tell_it() -> None:
    said = "Ana adopted a greyhound on Monday."
    assert shares(f"- {said}", fact(said, 1, 2)) == [0.0, 0.0]
    assert shares(f"- {said}", fact(said, 2)) == [0.0, 0.0]
    assert shares("- Ana likes long walks.", fact("Ana likes long walks.", 1)) == [0.0, 0.0]


def test_a_copy_of_a_turn_is_no_other_source() -> None:
    for records in ((2, 3), (3,)):
        found = EVIDENCE.found({"D1:2"}, "", [fact("The name is Comet", *records)], TURNS)
        assert found.told == 1.0
    assert EVIDENCE.found({"D1:2"}, "", [fact("The name is Comet", 1, 2)], TURNS).told == 0.0


def test_each_turn_that_is_wanted_counts_for_its_share() -> None:
    wanted = frozenset({"D1:1", "D1:2"})
    assert shares("Ana: Her name is Comet.", wanted=wanted) == [0.5, 0.5]

"""Many sessions learned from at once: one fact each, every source, one winner."""

from __future__ import annotations

from functools import partial
from typing import Any

from recollect.types.facts import Fact, FactEvent, Learned
from recollect.types.records import Claim, Recorded, StaleClaim
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness
from recollect_conformance.lessons import (
    add,
    claim,
    contents,
    day,
    draft,
    edit,
    events,
    facts,
    lesson,
    only_fact,
    record,
    revision,
    sources_of,
    statement,
)

THREADS = 8


def _claims(store: Harness) -> list[Claim]:
    """A session for every thread, each under a claim of its own."""
    for number in range(THREADS):
        ref = store.key(f"key {number}")
        store.say(ref, store.text(), policy=NEVER)
        store.sleep(ref)
    return [claim(store, f"worker {number}") for number in range(THREADS)]


def _record_all(store: Harness, claims: list[Claim], learned: list[Learned]) -> None:
    jobs = [partial(record, store, *pair) for pair in zip(claims, learned, strict=True)]
    assert store.at_once(*jobs) == [Recorded(is_done=True)] * THREADS


@case("T4", "a statement that eight sessions make at once is one fact with eight sources")
def a_statement_at_once_is_one_fact(store: Harness) -> None:
    claims = _claims(store)
    said = [
        lesson(
            draft(statement("likes tea"), statement(f"number {number}"), statement("LIKES CATS"))
        )
        for number in range(THREADS)
    ]
    _record_all(store, claims, said)
    found = {fact.content.lower(): fact for fact in facts(store)}
    assert len(found) == THREADS + 2
    for content in ("likes tea", "likes cats"):
        expected = sorted((claimed.key, 1) for claimed in claims)
        assert sorted(sources_of(found[content])) == expected
        assert events(store, found[content].id) == [FactEvent.ADDED]
    assert revision(store).changed == THREADS


@case("T4", "of statements on one topic that arrive at once the newest is believed, in one line")
def a_topic_at_once_has_one_winner(store: Harness) -> None:
    store.clock.advance(THREADS * 86_400)
    claims = _claims(store)
    said = [
        lesson(draft(statement(f"city {number}", said=day(number), topic="home")))
        for number in range(THREADS)
    ]
    _record_all(store, claims, said)
    for number in range(THREADS):
        assert contents(store, day(number)) == [f"city {number}"]
    assert only_fact(store).content == f"city {THREADS - 1}"


@case("T4", "a statement that people add at once is one fact")
def an_added_statement_at_once_is_one_fact(store: Harness) -> None:
    stored: list[Fact] = store.at_once(*[partial(add, store, "likes tea")] * THREADS)
    assert len({fact.id for fact in stored}) == len(facts(store)) == 1


@case("T2 T4", "one id that is written at once is one fact, as one of them said it")
def an_id_at_once_is_one_fact(store: Harness) -> None:
    jobs = [
        partial(add, store, f"text {number}", named="mine", metadata={"n": number})
        for number in range(THREADS)
    ]
    store.at_once(*jobs)
    fact = only_fact(store)
    assert fact.content == f"text {fact.metadata['n']}"
    changes = store.handle.facts.history(SPACE, "mine")
    assert len(changes) == THREADS
    assert changes[-1].content == fact.content


@case("T4", "adding, learning and deleting the same statement at once leaves one or none")
def everything_at_once_leaves_one_or_none(store: Harness) -> None:
    [claimed, *_] = _claims(store)
    first = add(store, "likes tea")
    delete = store.handle.facts.delete
    outcomes: list[object] = store.at_once(
        partial(record, store, claimed, lesson(draft(statement("likes tea")))),
        partial(delete, SPACE, first.id, store.now()),
        partial(delete, SPACE, first.id, store.now()),
        partial(add, store, "likes tea"),
    )
    assert outcomes.count(True) == 1
    assert len(facts(store)) <= 1


@case("P5 X9", "a result that is recorded at once by who lost the claim is stored once")
def a_result_at_once_is_stored_once(store: Harness) -> None:
    stale = _claims(store)[0]
    store.clock.advance(60)
    current = claim(store, "thief")
    while current.key != stale.key:
        current = claim(store, "thief")
    mine, theirs = (lesson(draft(statement(word), memory=word)) for word in ("stale", "fresh"))
    outcomes = store.at_once(
        *[partial(record, store, stale, mine)] * 3, partial(record, store, current, theirs)
    )
    assert outcomes == [StaleClaim()] * 3 + [Recorded(is_done=True)]
    assert contents(store) == ["fresh"]


@case("T4 P3", "spaces learn at once without waiting for or seeing each other")
def spaces_learn_at_once(store: Harness) -> None:
    jobs = [partial(add, store, "likes tea", space=f"space {n}") for n in range(THREADS)]
    store.at_once(*jobs)
    for number in range(THREADS):
        assert contents(store, space=f"space {number}") == ["likes tea"]
        assert revision(store, space=f"space {number}").changed == 1


@case("T2 P1", "edits of one fact that are made at once lose nothing of each other")
def edits_at_once_lose_nothing(store: Harness) -> None:
    for number in range(4):
        fact = add(store, f"draft {number}")
        changes: list[dict[str, Any]] = [
            {"content": f"likes tea {number}"},
            {"tags": ("drink",)},
            {"metadata": {"n": number}},
            {"valid_to": day(90)},
        ]
        store.at_once(*(partial(edit, store, fact.id, **change) for change in changes))
        edited = store.handle.facts.get(SPACE, fact.id)
        assert edited is not None
        assert (edited.content, edited.tags) == (f"likes tea {number}", ("drink",))
        assert (edited.metadata, edited.valid_to) == ({"n": number}, day(90))
        assert events(store, fact.id) == [FactEvent.ADDED] + [FactEvent.EDITED] * 4

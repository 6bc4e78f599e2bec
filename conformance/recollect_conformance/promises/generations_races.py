"""Spaces that many consolidate and learn in at once: one generation after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recollect.store.protocol import Store
from recollect.types.generations import Outdated, Published
from recollect.types.records import Claim, JobState, Mode, StaleClaim
from recollect_conformance.case import case
from recollect_conformance.handbooks import (
    HANDBOOK,
    POLICY,
    begin,
    claims,
    consolidate,
    demand,
    drafted,
    forget,
    handbook,
    is_due,
    job,
    publish,
    published,
    remember,
    restoring,
    select,
    state,
    versions,
)
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.lessons import add, due, lesson, record, revision
from recollect_conformance.lessons import draft as learned_draft
from recollect_conformance.pages import history, page

THREADS = 8
ROUNDS = 6


def _handles(store: Harness) -> list[Store]:
    """One handle, or two where a second leads to the same place."""
    return [store.handle] if store.is_volatile else [store.handle, store.second_handle()]


def _numbers(store: Harness) -> list[int]:
    return [each.number for each in store.handle.generations.list(SPACE, 100, None)]


def _assert_settled(store: Harness) -> None:
    """What must be true whenever nobody is at it: what was not consumed is due."""
    known = revision(store)
    is_behind = known.changed > known.consolidated
    assert (job(store).state is JobState.DUE) == is_behind
    numbers = _numbers(store)
    assert numbers == list(range(len(numbers), 0, -1))
    assert state(store).generation == len(numbers)
    current = page(store, HANDBOOK)
    assert versions(store, len(numbers))[current.id] == current.version


@case("G1 P5", "of many who claim a space at once one has it")
def one_of_many_has_the_space(store: Harness) -> None:
    remember(store, "one")
    handles = _handles(store)

    def ask(number: int) -> Claim | None:
        leases = handles[number % len(handles)].leases
        if number % 2:
            return leases.claim_consolidation(f"w{number}", SPACE, POLICY, store.now())
        claimed = leases.claim(f"w{number}", POLICY, store.now())
        return claimed if isinstance(claimed, Claim) else None

    for number in range(ROUNDS):
        held = store.at_once(*(partial(ask, number) for number in range(THREADS)))
        [claim] = [each for each in held if each is not None]
        assert job(store).owner == claim.owner
        published(store, claim, drafted(store, select(store)))
        remember(store, "one", memory=f"more {number}")


@case("G1 G9 P5", "of two owners of one space only the one who has it publishes, at once too")
def one_of_two_owners_publishes(store: Harness) -> None:
    handles = _handles(store)
    remember(store, "one")
    for number in range(ROUNDS):
        stale, selection = begin(store)
        made = drafted(store, selection)
        store.clock.advance(60)
        current, _ = begin(store, "b")
        jobs: list[Callable[[], object]] = [
            partial(publish, store, claim, made, handle=handles[place % len(handles)])
            for place, claim in enumerate([stale, current] * 4)
        ]
        outcomes = store.at_once(*jobs)
        assert sum(isinstance(each, Published) for each in outcomes) == 1
        assert sum(each == StaleClaim() for each in outcomes) == len(jobs) - 1
        assert outcomes[::2] == [StaleClaim()] * 4
        assert len(history(store, page(store, HANDBOOK))) == number + 1
        _assert_settled(store)
        remember(store, "one", memory=f"more {number}")


@case("G4 G5", "what is learned while a generation is published is consumed or due, never lost")
def learning_meets_publishing(store: Harness) -> None:
    remember(store, "one")
    for number in range(ROUNDS):
        _, learning = due(store, "one")
        claim = demand(store, "b")
        made = drafted(store, select(store))
        text = f"more {number}"
        learned = lesson(learned_draft(memory=text))
        jobs: list[Callable[[], object]] = [
            partial(publish, store, claim, made),
            partial(record, store, learning, learned),
            partial(add, store, f"fact {number}"),
        ]
        outcome, *_ = store.at_once(*jobs)
        assert isinstance(outcome, Published)
        assert is_due(store)
        _assert_settled(store)
        [added] = select(store).added
        assert added.revision > made.selection.revision
        consolidate(store)
        assert handbook(store) == [text]


@case("G11 P11 G12", "what is forgotten while it is published is in no generation after that")
def forgetting_meets_publishing(store: Harness) -> None:
    other = remember(store, "other")
    consolidate(store)
    for number in range(ROUNDS):
        secret = f"secret {number}"
        session = remember(store, "one", memory=secret)
        claim, selection = begin(store)
        made = drafted(store, selection)
        outcome, _ = store.at_once(
            partial(publish, store, claim, made), partial(forget, store, session)
        )
        assert isinstance(outcome, Published | Outdated)
        assert is_due(store)
        assert [pick.session_id for pick in select(store).picks] == [other]
        published(store, demand(store), drafted(store, select(store)))
        assert handbook(store) == ["what other came to"]
        said = {each.body for each in history(store, page(store, HANDBOOK))}
        assert not any(secret in body for body in said)
        assert not is_due(store)


@case("G12", "a mode that changes while a generation is published holds for the next at the latest")
def a_mode_meets_publishing(store: Harness) -> None:
    remember(store, "other")
    for number in range(ROUNDS):
        mode = Mode.DISABLED if number % 2 else Mode.POLLUTED
        ref = store.key("one")
        remember(store, "one", memory=f"said {number}")
        claim, selection = begin(store)
        made = drafted(store, selection)
        jobs: list[Callable[[], object]] = [
            partial(publish, store, claim, made),
            partial(store.set_mode, ref, mode),
        ]
        store.at_once(*jobs)
        assert is_due(store)
        published(store, demand(store), drafted(store, select(store)))
        assert handbook(store) == ["what other came to"]
        store.set_mode(ref, Mode.ENABLED)


@case("G9 P5", "a run, a restoration and a pause at once come one after the other")
def restoring_meets_publishing(store: Harness) -> None:
    remember(store, "one", memory="text 1")
    consolidate(store)
    for number in range(2, 2 + ROUNDS):
        text = f"text {number}"
        remember(store, "one", memory=text)
        claim, selection = begin(store)
        made = drafted(store, selection)
        back = restoring(store, 1)
        jobs: list[Callable[[], object]] = [
            partial(publish, store, claim, made),
            partial(store.handle.generations.restore, SPACE, back, store.now(), store.new_id),
            partial(store.handle.generations.pause, SPACE, store.now()),
        ]
        store.at_once(*jobs)
        assert (claims(store), job(store).state) == (None, JobState.IDLE)
        store.handle.generations.resume(SPACE, store.now())
        assert handbook(store) in (["text 1"], [text])
        _assert_settled(store)
        if is_due(store):
            consolidate(store)


@case("G5 P3", "many who learn and some who consolidate leave nothing unconsumed in the end")
def everything_is_consumed_in_the_end(store: Harness) -> None:
    remember(store, "first")
    handles = _handles(store)

    def learn(number: int) -> None:
        for turn in range(ROUNDS):
            add(store, f"fact {number} of turn {turn}")
            store.handle.generations.note_edits(SPACE, store.now())

    def run(number: int) -> None:
        for _ in range(ROUNDS):
            leases = handles[number % len(handles)].leases
            claim = leases.claim(f"w{number}", POLICY, store.now())
            if isinstance(claim, Claim):
                made = drafted(store, select(store))
                publish(store, claim, made, handle=handles[number % len(handles)])

    jobs = [partial(learn if number % 2 else run, number) for number in range(THREADS)]
    store.at_once(*jobs)
    while is_due(store):
        run(0)
    known = revision(store)
    assert known.changed == known.consolidated == 1 + THREADS * ROUNDS
    assert job(store).state is JobState.IDLE
    assert _numbers(store) == [1]

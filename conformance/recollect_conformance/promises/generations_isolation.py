"""Spaces and their generations: nothing of one is seen, made due or published in another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from recollect.types.records import StaleClaim
from recollect_conformance.case import case
from recollect_conformance.handbooks import (
    POLICY,
    WIDE,
    consolidate,
    demand,
    drafted,
    forget,
    job,
    publish,
    remember,
    restoring,
    select,
    summary_path,
    versions,
)
from recollect_conformance.harness import Harness
from recollect_conformance.lessons import add, statement
from recollect_conformance.pages import paths

OURS, THEIRS = "ours", "theirs"
CANARY = "the canary sings"


class _Theirs:
    """Another space with generations behind it, something removed, and a run under way."""

    def __init__(self, store: Harness) -> None:
        self.session = remember(store, "one", statement(CANARY), memory=CANARY, space=THEIRS)
        self.forgotten = remember(store, "two", space=THEIRS)
        add(store, f"{CANARY} by hand", space=THEIRS)
        consolidate(store, space=THEIRS)
        forget(store, self.forgotten, space=THEIRS)
        self.claim = demand(store, "them", space=THEIRS)

    def sights(self, store: Harness) -> list[object]:
        generations = store.handle.generations
        return [
            generations.list(THEIRS, 10, None),
            generations.documents(THEIRS, 1),
            generations.states(THEIRS, 10, "", store.now()),
            select(store, space=THEIRS),
            generations.memos(THEIRS, [self.session]),
            generations.standings(THEIRS, [self.session], store.now(), 10),
            store.handle.extractions.list(THEIRS, 10, None),
            store.handle.extractions.revision(THEIRS),
            job(store, space=THEIRS),
            paths(store, "memory", space=THEIRS),
        ]


@case("P9 G9", "no generation, document, memory or fact of another space is seen")
def no_generation_of_another_space_is_seen(store: Harness) -> None:
    theirs = _Theirs(store)
    generations = store.handle.generations
    assert generations.list(OURS, 10, None) == []
    assert generations.get(OURS, 1) is None
    assert generations.documents(OURS, 1) == []
    assert generations.states(OURS, 10, "", store.now()) == []
    assert generations.memos(OURS, [theirs.session]) == []
    assert generations.standings(OURS, [theirs.session], store.now(), 10) == []
    ours = select(store, space=OURS)
    assert (ours.picks, ours.removed, ours.revision) == ((), (), 0)
    assert (ours.generation, ours.digest, ours.expires_at) == (0, None, None)


@case("P9 G3", "memories, tombstones and pages are of one space, whatever they are called")
def selections_do_not_mix(store: Harness) -> None:
    theirs = _Theirs(store)
    before = theirs.sights(store)
    session = remember(store, "one", space=OURS)
    [pick] = select(store, space=OURS).picks
    assert (pick.session_id, pick.path) == (session, None)
    consolidate(store, space=OURS)
    [kept] = select(store, space=OURS).retained
    assert kept.path == f"~/{summary_path(kept)}"
    assert len(versions(store, 1, space=OURS)) == 2
    forget(store, session, space=OURS)
    consolidate(store, space=OURS)
    assert theirs.sights(store) == before


@case("P9 G1 G12", "nothing that is done to a space pauses, hurries or asks for another")
def spaces_wait_for_themselves(store: Harness) -> None:
    theirs = _Theirs(store)
    before = theirs.sights(store)
    generations = store.handle.generations
    leases = store.handle.leases
    attempts: list[Callable[[], object]] = [
        lambda: generations.pause(OURS, store.now()),
        lambda: generations.resume(OURS, store.now()),
        lambda: generations.request(OURS, store.now()),
        lambda: generations.note_edits(OURS, store.now()),
        lambda: generations.hurry(OURS),
        lambda: generations.files_published(OURS, 1),
        lambda: leases.claim_consolidation("us", OURS, POLICY, store.now()),
        lambda: leases.revive(OURS, None),
    ]
    for attempt in attempts:
        attempt()
        assert theirs.sights(store) == before


@case("P9 P5 G1", "a claim on one space publishes nothing in another")
def a_forged_claim_publishes_nothing(store: Harness) -> None:
    theirs = _Theirs(store)
    before = theirs.sights(store)
    remember(store, "one", space=OURS)
    ours = demand(store, space=OURS)
    made = drafted(store, select(store, space=THEIRS))
    forged = [
        replace(ours, key=THEIRS),
        replace(ours, key=THEIRS, space=THEIRS),
        replace(ours, key=THEIRS, job_id=theirs.claim.job_id),
    ]
    for each in forged:
        assert publish(store, each, made) == StaleClaim()
        assert theirs.sights(store) == before


@case("P9 G9", "a generation that is restored here leaves the others alone")
def restoring_here_changes_nothing_there(store: Harness) -> None:
    theirs = _Theirs(store)
    before = theirs.sights(store)
    remember(store, "one", space=OURS)
    consolidate(store, space=OURS)
    remember(store, "one", memory="more", space=OURS)
    consolidate(store, space=OURS, kept=2)
    made = restoring(store, 1, space=OURS)
    store.handle.generations.restore(OURS, made, store.now(), store.new_id)
    assert theirs.sights(store) == before


@case("P9 G2", "what is old in one space is pruned, and what is selected in another stays")
def pruning_is_by_space(store: Harness) -> None:
    theirs = _Theirs(store)
    remember(store, "one", space=OURS)
    store.clock.advance(60)
    before = theirs.sights(store)
    assert store.handle.generations.prune(store.now() - timedelta(seconds=30), 10) == 1
    assert theirs.sights(store) == before
    assert select(store, WIDE, space=OURS).picks == ()

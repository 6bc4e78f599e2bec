"""How far a run through a whole session has got: kept for who goes on, and seen by nobody else."""

from __future__ import annotations

from dataclasses import replace

from recollect.types.facts import FactFaults, Spent, Staged, Trust
from recollect.types.records import Claim, JobKind, LoadedWork, Outcome, Recorded, StaleClaim
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness, seqs
from recollect_conformance.lessons import (
    POLICY,
    claim,
    day,
    draft,
    due,
    extraction,
    facts,
    lesson,
    record,
    revision,
    statement,
    teach,
)


def _staged(word: str = "half", upto: int = 1, pass_number: int = 2) -> Staged:
    """A draft with something in every field."""
    said = statement(
        f"{word} a fact",
        said=day(3),
        trust=Trust.TOOL,
        topic="topic",
        supersedes=["one", "two"],
        valid_to=day(9),
    )
    said = replace(
        said, about=("é", "b"), is_single=False, happened_from=day(1), happened_to=day(2)
    )
    found = replace(said, tags=("a", "ü"), metadata={"a.b": [1, None, True], "x": "\ud800\0"})
    faults = FactFaults(dropped=2, mended=3)
    return Staged(
        pass_number=pass_number,
        upto=upto,
        extractor="model",
        draft=replace(draft(found, memory=f"{word} a memory"), faults=faults),
        spent=Spent(calls=2, input_tokens=50, output_tokens=5, cost_micros=9),
    )


def _again(store: Harness) -> Claim:
    """A claim on a new pass over a session that has been learned from."""
    session = teach(store, statement("likes tea"))
    store.handle.extractions.request_passes(SPACE, session, store.now())
    return claim(store)


def _load(store: Harness, claimed: Claim, after: int | None = 0) -> LoadedWork:
    loaded = store.handle.leases.load(claimed, after, 100)
    assert loaded is not None
    return loaded


@case("X9 P3", "what a run has staged comes back as it was, to a run through the whole session")
def a_staged_draft_comes_back(store: Harness) -> None:
    again = _again(store)
    assert _load(store, again).staged is None
    for staged in (_staged(), _staged("more", 2), replace(_staged(), spent=Spent())):
        assert store.handle.leases.stage(again, staged) == Recorded(is_done=False)
        assert _load(store, again).staged == staged
    assert _load(store, again, None).staged is None


@case("X9 P3", "what is staged is no memory yet")
def a_staged_draft_is_no_memory(store: Harness) -> None:
    again = _again(store)
    before = facts(store, every=True), extraction(store, again.key), revision(store)
    ranges = store.marks.ranges(SPACE, again.key)
    store.handle.leases.stage(again, _staged())
    assert (facts(store, every=True), extraction(store, again.key), revision(store)) == before
    assert store.marks.ranges(SPACE, again.key) == ranges
    assert store.session(again.key).pass_number == 1
    assert store.handle.facts.search(SPACE, ["half"], day(5), 10) == []


@case("X9", "what is staged is gone when the run is through")
def a_staged_draft_is_gone_when_the_run_is_through(store: Harness) -> None:
    again = _again(store)
    leases = store.handle.leases
    leases.stage(again, _staged())
    made = lesson(draft(), is_whole=True, pass_number=2)
    assert leases.record_pass(again, 1, made, store.now(), store.new_id) == Recorded(is_done=True)
    assert _load(store, again).staged is None
    _, claimed = due(store)
    leases.stage(claimed, _staged())
    record(store, claimed, lesson(draft(), is_whole=True, pass_number=2))
    assert _load(store, claimed).staged is None


@case("X9 P7", "whoever takes over goes on with what was staged")
def a_staged_draft_survives_a_takeover(store: Harness) -> None:
    again = _again(store)
    store.handle.leases.stage(again, _staged())
    store.clock.advance(60)
    thief = claim(store, "thief")
    assert _load(store, thief).staged == _staged()
    store.handle.leases.release(thief)
    assert _load(store, claim(store)).staged == _staged()


@case("X9 P5", "a stale claim stages nothing")
def a_stale_claim_stages_nothing(store: Harness) -> None:
    stale = _again(store)
    store.handle.leases.stage(stale, _staged())
    store.clock.advance(60)
    current = claim(store, "thief")
    assert store.handle.leases.stage(stale, _staged("stale")) == StaleClaim()
    assert _load(store, current).staged == _staged()
    store.handle.leases.release(current)
    assert store.handle.leases.stage(current, _staged("stale")) == StaleClaim()


@case("X9 X7", "staging a piece is getting on: what failed before no longer counts")
def staging_is_progress(store: Harness) -> None:
    again = _again(store)
    store.handle.leases.fail(again, "it broke", 0, POLICY, store.now())
    retry = claim(store)
    assert retry.attempt == 2
    store.handle.leases.stage(retry, _staged())
    job = store.handle.leases.get(SPACE, JobKind.EXTRACT_AGAIN, again.key)
    assert job is not None
    assert (job.failures, job.last_error, job.token) == (0, None, retry.token)


@case("P11 P5", "what is staged is forgotten with its session, and not staged afterwards")
def a_staged_draft_is_forgotten(store: Harness) -> None:
    again = _again(store)
    store.handle.leases.stage(again, _staged())
    store.handle.erasure.forget_session(SPACE, again.key, store.now())
    assert _load(store, again).staged is None
    assert store.handle.leases.stage(again, _staged()) == StaleClaim()
    assert _load(store, again).staged is None


@case("P9", "nothing is staged in or loaded from another space")
def staging_stays_in_its_space(store: Harness) -> None:
    again = _again(store)
    store.handle.leases.stage(again, _staged())
    _, theirs = due(store, space="theirs")
    forged = (
        replace(theirs, space=SPACE, key=again.key),
        replace(theirs, key=again.key),
        replace(again, space="theirs"),
    )
    for each in forged:
        assert store.handle.leases.stage(each, _staged("forged")) == StaleClaim()
    assert _load(store, again).staged == _staged()
    assert store.handle.leases.load(replace(again, space="theirs"), 0, 10) is None
    assert _load(store, theirs).staged is None


@case("A6", "a piece comes with a few of the records before it, without those that were skipped")
def a_piece_comes_with_those_before(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(store.text() for _ in range(9)), policy=NEVER)
    store.sleep(ref)
    claimed = claim(store)
    assert _load(store, claimed, None).before == ()
    leases = store.handle.leases
    leases.record(claimed, 2, Outcome.EXTRACTED, None, store.now())
    leases.record(claimed, 4, Outcome.SKIPPED, "mode disabled", store.now())
    leases.record(claimed, 6, Outcome.EXTRACTED, None, store.now())
    loaded = _load(store, claimed, None)
    assert (seqs(loaded.before), seqs(loaded.records)) == ([1, 2, 5, 6], [7, 8, 9])
    again = _load(store, claimed, 5)
    assert (seqs(again.before), seqs(again.records)) == ([1, 2, 5], [6, 7, 8, 9])
    assert _load(store, claimed, 0).before == ()

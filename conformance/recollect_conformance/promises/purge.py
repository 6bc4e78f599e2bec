"""Purge and trim: history goes, numbers go on, and nothing is left to mark."""

from __future__ import annotations

from recollect.messages import Role
from recollect.types.records import KeyRef, MarkPolicy, MarkUnit, NewRecord, Outcome, Recorded
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness, seqs
from recollect_conformance.lessons import (
    NOTHING,
    claim,
    contents,
    draft,
    extraction,
    learn,
    lesson,
    only_fact,
    sources_of,
    statement,
    teach,
)


def _purge(store: Harness, ref: KeyRef) -> None:
    store.records.purge(ref, store.now())


@case("T1", "a purge removes history and summary")
def a_purge_removes_history_and_summary(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 4)
    store.records.set_summary(ref, "short", store.now())
    session = store.current(ref).id
    _purge(store, ref)
    assert store.everything(ref) == []
    assert store.records.count(ref) == 0
    assert store.records.summary(ref) == ""
    assert store.records.all_rotations(ref) == []
    assert store.records.after(SPACE, session, 0, 10) == []
    assert store.marks.max_seq(SPACE, session) is None
    assert store.marks.count_since(SPACE, session, 0) == 0


@case("M1 T1", "after a purge the numbers go on from where they were")
def after_a_purge_the_numbers_go_on(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 4)
    session = store.current(ref)
    _purge(store, ref)
    assert seqs(store.append(ref, 2)) == [5, 6]
    after = store.current(ref)
    assert (after.id, after.last_seq) == (session.id, 6)


@case("T1", "a purge leaves no mark, and nothing that could be marked")
def a_purge_leaves_no_mark(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 8)
    _purge(store, ref)
    session = store.current(ref)
    assert session.invalidated_at is None
    assert session.marked_at is None
    assert session.unprocessed == 0
    assert store.invalidate(ref, 8).invalidated_at is None
    assert store.invalidate(ref, 9).invalidated_at is None
    assert store.sleep(ref).invalidated_at is None
    assert store.marks.counts(None) == (0, 0)


@case("M6 T1", "after a purge the threshold counts anew")
def after_a_purge_the_threshold_counts_anew(store: Harness) -> None:
    for unit, first_mark in ((MarkUnit.RECORDS, 6), (MarkUnit.TURNS, 7)):
        ref = store.key(unit.value)
        policy = MarkPolicy(unit=unit)
        store.append(ref, 5, policy=policy)
        _purge(store, ref)
        store.append(ref, first_mark - 1, policy=policy)
        assert store.current(ref).invalidated_at is None
        store.append(ref, policy=policy)
        assert store.current(ref).invalidated_at == 5 + first_mark


@case("T1 M10", "what was purged unprocessed is in a range that says so")
def what_was_purged_is_in_a_range(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    assert store.process(ref, 4, 6)
    at = store.clock.advance(1)
    _purge(store, ref)
    done, skipped = store.marks.ranges(SPACE, store.current(ref).id)
    assert (done.first_seq, done.last_seq, done.outcome) == (1, 4, Outcome.EXTERNAL)
    assert (skipped.first_seq, skipped.last_seq) == (5, 6)
    assert (skipped.outcome, skipped.at) == (Outcome.SKIPPED, at)
    assert skipped.reason


@case("T1", "purging what is empty or has been purged changes nothing")
def purging_twice_changes_nothing(store: Harness) -> None:
    ref = store.key()
    before = store.current(ref)
    _purge(store, ref)
    assert store.current(ref) == before
    store.append(ref, 3)
    _purge(store, ref)
    purged = store.current(ref)
    _purge(store, ref)
    assert store.current(ref) == purged
    assert len(store.marks.ranges(SPACE, purged.id)) == 1


@case("T1", "a purge takes this session's history, not that of other keys or earlier rotations")
def a_purge_takes_one_history(store: Harness) -> None:
    ref, other = store.key("one"), store.key("two")
    earlier = store.append(ref, 2)
    store.reset(ref)
    store.append(ref, 3)
    kept = store.append(other, 7)
    before = store.current(other)
    _purge(store, ref)
    assert store.records.all_rotations(ref) == earlier
    assert store.everything(other) == kept
    assert store.current(other) == before
    assert store.session(earlier[0].session_id).invalidated_at == 2


@case("T1 T7", "a purge takes the records a compaction kept out of sight, not out of their session")
def a_purge_lets_go_of_what_was_kept(store: Harness) -> None:
    ref = store.key()
    said = store.append(ref, 4)
    store.compact(ref, retain=2)
    _purge(store, ref)
    assert store.everything(ref) == []
    assert store.records.count(ref) == 0
    assert store.records.all_rotations(ref) == said


@case("T1", "the append key of a purged record is free again")
def a_purged_append_key_is_free(store: Harness) -> None:
    ref = store.key()
    store.say(ref, NewRecord(role=Role.USER, content="before", append_key="k"))
    _purge(store, ref)
    [again] = store.say(ref, NewRecord(role=Role.USER, content="after", append_key="k"))
    assert again.seq == 2
    assert store.everything(ref) == [again]


@case("T8", "a trim keeps the newest records of a history that is not kept")
def a_trim_keeps_the_newest(store: Harness) -> None:
    ref, other = store.key("one"), store.key("two")
    said = store.append(ref, 5, policy=NEVER)
    kept = store.append(other, 5, policy=NEVER)
    for keep in (6, 5, 3, 1):
        store.records.trim(ref, keep)
        assert store.everything(ref) == said[-keep:]
    assert seqs(store.append(ref, role=Role.ASSISTANT)) == [6]
    assert store.everything(other) == kept


@case("T1 X9", "what was learned from purged records stays when the whole session is read again")
def what_purged_records_came_to_stays(store: Harness) -> None:
    session = teach(store, statement("likes tea", 1))
    _purge(store, store.key())
    before = extraction(store, session)
    learn(store, lesson(NOTHING, is_whole=True))
    assert (contents(store), extraction(store, session)) == (["likes tea"], before)
    made = draft(statement("has a cat", 3), memory="- likes tea, has a cat")
    learn(store, lesson(made, is_whole=True))
    assert contents(store) == ["has a cat", "likes tea"]
    assert extraction(store, session).raw_memory == "- likes tea, has a cat"
    teach(store, statement("has a dog", 4), is_whole=True)
    assert contents(store) == ["has a dog", "likes tea"], "only what is there can be taken back"


@case("T1 X9", "what was learned from purged records stays after another pass")
def a_pass_keeps_what_purged_records_came_to(store: Harness) -> None:
    session = teach(store, statement("likes tea", 1))
    store.handle.extractions.request_passes(SPACE, session, store.now())
    again = claim(store)
    loaded = store.handle.leases.load(again, 0, 10)
    assert loaded is not None
    assert not loaded.has_lost_records
    _purge(store, store.key())
    store.say(store.key(), store.text(), policy=NEVER)
    loaded = store.handle.leases.load(again, 0, 10)
    assert loaded is not None
    assert (loaded.has_lost_records, seqs(loaded.records)) == (True, [])
    assert loaded.extraction == extraction(store, session)
    learned = lesson(NOTHING, is_whole=True, pass_number=2)
    outcome = store.handle.leases.record_pass(again, 1, learned, store.now(), store.new_id)
    assert outcome == Recorded(is_done=True)
    assert sources_of(only_fact(store)) == [(session, 1)]
    assert extraction(store, session) == loaded.extraction


@case("T1 X8", "nothing is lost with purged records that nothing was learned from")
def purging_the_unlearned_loses_nothing(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    _purge(store, ref)
    session = teach(store, statement("likes tea", 4))
    store.handle.extractions.request_passes(SPACE, session, store.now())
    loaded = store.handle.leases.load(claim(store), 0, 10)
    assert loaded is not None
    assert not loaded.has_lost_records
    learn(store, lesson(NOTHING, is_whole=True))
    assert contents(store) == []
    assert store.handle.extractions.get(SPACE, session) is None

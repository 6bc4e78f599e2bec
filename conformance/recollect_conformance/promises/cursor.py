"""The compare-and-swap that clears a mark and moves the cursor, and the ranges it leaves behind."""

from __future__ import annotations

from recollect.types.records import KeyRef, MarkCause, Outcome, Range
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness


def _ranges(store: Harness, ref: KeyRef) -> list[Range]:
    return store.marks.ranges(ref.space, store.current(ref).id)


def _spans(store: Harness, ref: KeyRef) -> list[tuple[int, int]]:
    return [(found.first_seq, found.last_seq) for found in _ranges(store, ref)]


@case("M5", "the expected mark is cleared and the cursor moves")
def the_expected_mark_is_cleared(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    assert store.process(ref, 6, 6)
    session = store.current(ref)
    assert session.invalidated_at is None
    assert session.processed_until == 6
    assert session.marked_at is None
    assert session.marked_by is None
    assert session.unprocessed == 0
    assert store.marks.find_invalidated(SPACE, 10) == []


@case("M5 M10", "a mark that moved since is not cleared, and nothing changes")
def a_moved_mark_is_not_cleared(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    store.append(ref)
    before = store.current(ref)
    assert not store.process(ref, 6, 6)
    assert store.current(ref) == before
    assert _ranges(store, ref) == []


@case("M5", "a mark is compared exactly: neither a lower nor a higher one will do")
def a_mark_is_compared_exactly(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    for expected in (0, 5, 7, 2**40):
        assert not store.process(ref, 6, expected)
    assert store.process(ref, 6, 6)


@case("M5", "without a mark there is nothing to clear")
def without_a_mark_there_is_nothing_to_clear(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    before = store.current(ref)
    for expected in (0, 3):
        assert not store.process(ref, 3, expected)
    assert store.current(ref) == before


@case("M5", "a mark is cleared once: the second swap fails")
def a_mark_is_cleared_once(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    assert store.process(ref, 6, 6)
    assert not store.process(ref, 6, 6)
    assert len(_ranges(store, ref)) == 1


@case("M5", "an unknown session has no mark to clear")
def an_unknown_session_has_no_mark(store: Harness) -> None:
    store.marked()
    assert not store.marks.mark_processed(SPACE, "nobody", 1, 1, store.now())
    assert store.marks.ranges(SPACE, "nobody") == []


@case("M10", "the cursor never passes the last record")
def the_cursor_never_passes_the_last_record(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    store.invalidate(ref, 100)
    assert store.process(ref, 100, 100)
    assert store.current(ref).processed_until == 3
    store.append(ref)
    assert store.current(ref).unprocessed == 1


@case("M10", "the cursor never goes back")
def the_cursor_never_goes_back(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 4)
    store.invalidate(ref, 4)
    assert store.process(ref, 4, 4)
    store.append(ref, 2)
    store.invalidate(ref, 6)
    assert store.process(ref, 1, 6)
    session = store.current(ref)
    assert (session.processed_until, session.invalidated_at) == (4, None)
    assert _spans(store, ref) == [(1, 4)]


@case("M10", "the cursor may stay below the mark; the rest is unprocessed")
def the_cursor_may_stay_below_the_mark(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    assert store.process(ref, 4, 6)
    session = store.current(ref)
    assert (session.processed_until, session.unprocessed) == (4, 2)
    assert _spans(store, ref) == [(1, 4)]


@case("M5", "clearing a mark without having processed anything leaves the cursor alone")
def clearing_without_processing_leaves_the_cursor(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    assert store.process(ref, 0, 6)
    session = store.current(ref)
    assert (session.invalidated_at, session.processed_until) == (None, None)
    assert _ranges(store, ref) == []


@case("M5", "each move of the cursor leaves one range that says what became of it")
def each_move_leaves_one_range(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    at = store.clock.advance(1)
    assert store.process(ref, 6, 6)
    [found] = _ranges(store, ref)
    assert found.session_id == store.current(ref).id
    assert (found.first_seq, found.last_seq) == (1, 6)
    assert (found.outcome, found.reason, found.at) == (Outcome.EXTERNAL, None, at)


@case("M10", "ranges follow each other without a gap and without an overlap")
def ranges_follow_each_other(store: Harness) -> None:
    ref = store.key()
    for until in (2, 3, 9, 4, 10):
        store.append(ref, 3, policy=NEVER)
        mark = store.sleep(ref).invalidated_at
        assert mark is not None
        store.process(ref, until, mark)
    assert _spans(store, ref) == [(1, 2), (3, 3), (4, 9), (10, 10)]
    assert store.current(ref).processed_until == 10


@case("M10", "a record that arrives during processing is left for the next time, exactly once")
def a_record_that_arrives_meanwhile_is_next(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    mark = store.sleep(ref).invalidated_at
    assert mark == 2
    read = store.everything(ref)
    store.append(ref)
    assert store.process(ref, read[-1].seq, mark)
    session = store.current(ref)
    assert (session.processed_until, session.unprocessed) == (2, 1)
    assert [record.seq for record in store.records.after(SPACE, session.id, 2, 10)] == [3]


@case("M3 M5", "a cleared session can be marked anew, with a new time and cause")
def a_cleared_session_can_be_marked_anew(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    assert store.process(ref, 6, 6)
    store.append(ref)
    marked_at = store.clock.advance(60)
    session = store.sleep(ref)
    assert session.invalidated_at == 7
    assert session.marked_at == marked_at
    assert session.marked_by is MarkCause.SLEEP


@case("M5", "a session that was rotated away is processed like any other")
def a_rotated_session_is_processed(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    old = store.current(ref)
    store.reset(ref)
    assert store.marks.mark_processed(SPACE, old.id, 3, 3, store.now())
    session = store.session(old.id)
    assert (session.invalidated_at, session.processed_until) == (None, 3)
    assert len(store.marks.ranges(SPACE, old.id)) == 1
    assert _ranges(store, ref) == []


@case("M5", "processing one session leaves the others alone")
def processing_one_leaves_the_others_alone(store: Harness) -> None:
    one, two = store.key("one"), store.key("two")
    store.append(one, 6)
    store.append(two, 6)
    before = store.current(two)
    assert store.process(one, 6, 6)
    assert store.current(two) == before
    assert _ranges(store, two) == []

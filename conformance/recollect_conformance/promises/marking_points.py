"""The marking points: reset, compaction, sleep and end mark up to the last record, each alone."""

from __future__ import annotations

from collections.abc import Callable

from recollect.types.records import KeyRef, MarkCause, SessionState
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness

Point = Callable[[Harness, KeyRef], SessionState]

POINTS: dict[MarkCause, Point] = {
    MarkCause.RESET: Harness.reset,
    MarkCause.COMPACTION: Harness.compact,
    MarkCause.SLEEP: Harness.sleep,
    MarkCause.END: Harness.end,
}


def _marks_the_session(store: Harness, cause: MarkCause) -> None:
    ref = store.key()
    store.append(ref, 3)
    before = store.current(ref)
    at = store.clock.advance(1)
    POINTS[cause](store, ref)
    after = store.session(before.id)
    assert after.invalidated_at == 3
    assert after.marked_at == at
    assert after.marked_by is cause
    assert (after.last_seq, after.processed_until) == (3, None)


@case("M8", "a reset marks the session it closes")
def a_reset_marks_the_session(store: Harness) -> None:
    _marks_the_session(store, MarkCause.RESET)


@case("M8", "a compaction marks the session it closes")
def a_compaction_marks_the_session(store: Harness) -> None:
    _marks_the_session(store, MarkCause.COMPACTION)


@case("M8 M14", "sleep marks the session")
def sleep_marks_the_session(store: Harness) -> None:
    _marks_the_session(store, MarkCause.SLEEP)


@case("M8", "the end marks the session")
def the_end_marks_the_session(store: Harness) -> None:
    _marks_the_session(store, MarkCause.END)


@case("M7 M8", "no marking point marks a session without records")
def no_point_marks_an_empty_session(store: Harness) -> None:
    for cause, point in POINTS.items():
        ref = store.key(cause.value)
        before = store.current(ref)
        point(store, ref)
        assert store.session(before.id).invalidated_at is None, cause
    assert store.marks.counts(None) == (0, 0)


@case("M7 M8", "no marking point marks what has been processed already")
def no_point_marks_what_is_processed(store: Harness) -> None:
    for cause, point in POINTS.items():
        ref = store.key(cause.value)
        store.append(ref, 3)
        before = store.process_all(ref)
        point(store, ref)
        after = store.session(before.id)
        assert after.invalidated_at is None, cause
        assert after.processed_until == 3
    assert store.marks.find_invalidated(SPACE, 10) == []


@case("M8", "a marking point keeps the time and cause of an earlier mark and raises it to the end")
def a_point_keeps_the_first_cause(store: Harness) -> None:
    for cause, point in POINTS.items():
        ref = store.key(cause.value)
        store.append(ref, 4)
        before = store.invalidate(ref, 2)
        store.clock.advance(60)
        point(store, ref)
        after = store.session(before.id)
        assert after.invalidated_at == 4
        assert after.marked_at == before.marked_at
        assert after.marked_by is MarkCause.REQUEST


@case("M3 M8", "a marking point does not lower a mark beyond the last record")
def a_point_does_not_lower_a_mark(store: Harness) -> None:
    for cause, point in POINTS.items():
        ref = store.key(cause.value)
        store.append(ref, 2)
        before = store.invalidate(ref, 50)
        point(store, ref)
        assert store.session(before.id).invalidated_at == 50


@case("M8", "sleeping twice marks once, and a session that sleeps is not closed")
def sleeping_twice_marks_once(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    before = store.sleep(ref)
    assert before.ended_at is None
    store.clock.advance(60)
    assert store.sleep(ref) == before
    store.append(ref)
    assert store.current(ref).id == before.id


@case("M8", "after the end nothing changes the mark of the ended session but the marking itself")
def ending_twice_changes_nothing(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    before = store.end(ref)
    store.clock.advance(60)
    assert store.end(ref) == before
    store.reset(ref)
    assert store.session(before.id) == before

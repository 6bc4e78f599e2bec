"""Marks: they only rise, lie above the cursor, and are found lowest first."""

from __future__ import annotations

from recollect.types.records import MarkCause
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness, ids


@case("M3", "invalidate sets a mark where there is none, with its time and cause")
def invalidate_sets_a_mark(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    marked_at = store.clock.advance(1)
    session = store.invalidate(ref, 2)
    assert session.invalidated_at == 2
    assert session.marked_at == marked_at
    assert session.marked_by is MarkCause.REQUEST
    assert session.processed_until is None


@case("M3", "a mark only rises")
def a_mark_only_rises(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 5)
    for seq, expected in ((2, 2), (4, 4), (3, 4), (1, 4), (5, 5), (4, 5)):
        assert store.invalidate(ref, seq).invalidated_at == expected


@case("M3", "marking again with the same number changes nothing")
def marking_again_changes_nothing(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    before = store.invalidate(ref, 3)
    store.clock.advance(60)
    assert store.invalidate(ref, 3, MarkCause.SLEEP) == before


@case("M3 M4", "a raised mark keeps the time and the cause of the first marking")
def a_raised_mark_keeps_its_first_cause(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 5)
    first = store.invalidate(ref, 1, MarkCause.SLEEP)
    store.clock.advance(60)
    raised = store.invalidate(ref, 4, MarkCause.REQUEST)
    assert raised.invalidated_at == 4
    assert raised.marked_at == first.marked_at
    assert raised.marked_by is MarkCause.SLEEP


@case("M7", "at or below the cursor there is nothing to mark")
def at_or_below_the_cursor_nothing_is_marked(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 5)
    store.invalidate(ref, 3)
    assert store.process(ref, 3, 3)
    for seq in (0, 1, 3):
        assert store.invalidate(ref, seq).invalidated_at is None
    assert store.invalidate(ref, 4).invalidated_at == 4


@case("M7", "a session without records is never marked")
def a_session_without_records_is_never_marked(store: Harness) -> None:
    ref = store.key()
    for seq in (0, 1, 1000):
        assert store.invalidate(ref, seq).invalidated_at is None
    assert store.sleep(ref).invalidated_at is None
    assert store.marks.find_invalidated(SPACE, 10) == []


@case("M7", "a value beyond the last record is stored as given")
def a_value_beyond_the_last_record_is_stored_as_given(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    assert store.invalidate(ref, 2**53).invalidated_at == 2**53
    assert store.current(ref).last_seq == 2


@case("M3", "zero marks nothing")
def zero_marks_nothing(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    assert store.invalidate(ref, 0).invalidated_at is None


@case("M3", "marking an unknown session does nothing")
def marking_an_unknown_session_does_nothing(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    before = store.current(ref)
    store.marks.invalidate(SPACE, "nobody", 1, MarkCause.REQUEST, store.now())
    assert store.current(ref) == before
    assert store.marks.counts(None) == (0, 1)


@case("M3", "marking one session leaves the others alone")
def marking_one_leaves_the_others_alone(store: Harness) -> None:
    one, two = store.key("one"), store.key("two")
    store.append(one, 2)
    store.append(two, 2)
    before = store.current(two)
    store.invalidate(one, 2)
    assert store.current(two) == before


@case("M3 M8", "a session that was rotated away can still be marked")
def a_rotated_session_can_still_be_marked(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    old = store.process_all(ref)
    store.reset(ref)
    store.marks.invalidate(SPACE, old.id, 9, MarkCause.REQUEST, store.now())
    assert store.session(old.id).invalidated_at == 9


@case("M4", "only marked sessions are found")
def only_marked_sessions_are_found(store: Harness) -> None:
    for name in ("clean", "empty"):
        store.key(name)
    store.append(store.key("clean"), 3)
    cleared = store.key("cleared")
    store.append(cleared, 3)
    store.process_all(cleared)
    marked = store.marked("marked", 2)
    assert store.marks.find_invalidated(SPACE, 10) == [marked]


@case("M4", "marked sessions come by ascending mark")
def marked_sessions_come_by_ascending_mark(store: Harness) -> None:
    for seq in (30, 4, 100, 5, 9):
        store.marked(f"at {seq}", seq)
        store.clock.advance(1)
    found = store.marks.find_invalidated(SPACE, 10)
    assert [session.invalidated_at for session in found] == [4, 5, 9, 30, 100]


@case("M4", "of equal marks the earlier one comes first")
def of_equal_marks_the_earlier_comes_first(store: Harness) -> None:
    refs = [store.key(name) for name in ("c", "a", "d", "b")]
    for ref in refs:
        store.append(ref, 3)
    expected = []
    for ref in (refs[2], refs[0], refs[3], refs[1]):
        store.clock.advance(1)
        expected.append(store.invalidate(ref, 3).id)
    assert ids(store.marks.find_invalidated(SPACE, 10)) == expected


@case("M4", "at most as many are found as asked for, the lowest ones")
def at_most_as_many_are_found_as_asked_for(store: Harness) -> None:
    for seq in (5, 3, 1, 4, 2):
        store.marked(f"at {seq}", seq)
    for limit in (0, 1, 3, 5, 6):
        found = store.marks.find_invalidated(SPACE, limit)
        expected = [1, 2, 3, 4, 5][:limit]
        assert [session.invalidated_at for session in found] == expected


@case("M4", "a session that is found is the whole session")
def a_found_session_is_the_whole_session(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 8)
    assert store.marks.find_invalidated(SPACE, 10) == [store.current(ref)]


@case("M3 M8", "marking the current session marks it up to its last record")
def marking_the_current_session_marks_all_of_it(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 4, policy=NEVER)
    session = store.marks.invalidate_current(ref, MarkCause.SLEEP, store.now())
    assert session == store.current(ref)
    assert session.invalidated_at == 4

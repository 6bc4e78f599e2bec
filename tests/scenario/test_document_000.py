"""Document 000 (memory collection loop), its task lists for storage and marks, line by line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.descriptors import ConsolidationAgent, MemoryAgent, SearchAgent


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(store_url: str, clock: ManualClock) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings={}, clock=clock) as memory:
        yield memory


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


def filled(space: recollect.Space, key: str, records: int) -> recollect.Session:
    session = space.session(key, agent="assistant")
    for number in range(1, records + 1):
        session.append("user", f"message {number}")
    return session


# Task 2: invalidate, findInvalidated, markProcessed


def test_a_new_session_has_neither_mark_nor_cursor(space: recollect.Space) -> None:
    state = space.session("k").state
    assert (state.invalidated_at, state.processed_until) == (None, None)


def test_invalidate_sets_the_mark(space: recollect.Space) -> None:
    session = filled(space, "k", 3)
    space.sessions.invalidate(session.id, 2)
    assert session.state.invalidated_at == 2


def test_invalidate_is_idempotent(space: recollect.Space) -> None:
    session = filled(space, "k", 3)
    space.sessions.invalidate(session.id, 2)
    before = session.state
    space.sessions.invalidate(session.id, 2)
    assert session.state == before


def test_invalidate_keeps_the_larger_value(space: recollect.Space) -> None:
    session = filled(space, "k", 3)
    space.sessions.invalidate(session.id, 3)
    space.sessions.invalidate(session.id, 1)
    assert session.state.invalidated_at == 3


def test_invalidate_raises_a_smaller_mark(space: recollect.Space) -> None:
    session = filled(space, "k", 3)
    space.sessions.invalidate(session.id, 1)
    space.sessions.invalidate(session.id, 3)
    assert session.state.invalidated_at == 3


def test_find_invalidated_returns_only_marked_sessions(space: recollect.Space) -> None:
    marked, clean = filled(space, "a", 2), filled(space, "b", 2)
    space.sessions.invalidate(marked.id, 2)
    found = [state.id for state in space.sessions.find_invalidated(10)]
    assert found == [marked.id]
    assert clean.id not in found


def test_find_invalidated_respects_the_limit(space: recollect.Space) -> None:
    for key in "abc":
        filled(space, key, 1).sleep()
    assert len(space.sessions.find_invalidated(2)) == 2


def test_find_invalidated_is_ordered_by_the_mark(space: recollect.Space) -> None:
    for key, records in (("a", 4), ("b", 1), ("c", 3)):
        filled(space, key, records).sleep()
    assert [state.invalidated_at for state in space.sessions.find_invalidated(10)] == [1, 3, 4]


def test_equal_marks_come_in_the_order_of_marking(
    space: recollect.Space, clock: ManualClock
) -> None:
    sessions = [filled(space, key, 1) for key in "abc"]
    for session in reversed(sessions):
        clock.advance(1)
        session.sleep()
    found = [state.id for state in space.sessions.find_invalidated(10)]
    assert found == [session.id for session in reversed(sessions)]


def test_mark_processed_clears_the_expected_mark_and_moves_the_cursor(
    space: recollect.Space,
) -> None:
    session = filled(space, "k", 3)
    session.sleep()
    assert space.sessions.mark_processed(session.id, 3, 3) is True
    state = session.state
    assert (state.invalidated_at, state.processed_until) == (None, 3)


def test_mark_processed_fails_when_the_mark_has_changed(space: recollect.Space) -> None:
    session = filled(space, "k", 3)
    session.sleep()
    session.append("user", "one more")
    session.sleep()
    before = session.state
    assert space.sessions.mark_processed(session.id, 3, 3) is False
    assert session.state == before


def test_mark_processed_fails_without_a_mark(space: recollect.Space) -> None:
    session = filled(space, "k", 3)
    assert space.sessions.mark_processed(session.id, 3, 3) is False
    assert session.state.processed_until is None


# Task 3: counting and the threshold


def test_count_since_counts_records_above_a_seq(space: recollect.Space) -> None:
    session = filled(space, "k", 5)
    assert [session.count_since(seq) for seq in (0, 3, 5, 9)] == [5, 2, 0, 0]
    assert space.sessions.count_since(session.id, 4) == 1


def test_max_seq_is_none_for_an_empty_session(space: recollect.Space) -> None:
    session = space.session("k")
    assert session.max_seq is None
    assert space.sessions.max_seq(session.id) is None


def test_max_seq_is_the_newest_record(space: recollect.Space) -> None:
    session = filled(space, "k", 4)
    assert session.max_seq == 4 == space.sessions.max_seq(session.id)


def test_append_returns_the_number_of_its_record(space: recollect.Space) -> None:
    session = space.session("k")
    assert [session.append("user", text).seq for text in "abc"] == [1, 2, 3]


def test_five_records_do_not_mark_a_session_and_the_sixth_does(space: recollect.Space) -> None:
    session = filled(space, "k", 5)
    assert session.state.invalidated_at is None
    session.append("assistant", "the sixth")
    state = session.state
    assert (state.invalidated_at, state.marked_by) == (6, "threshold")


def test_later_records_raise_the_mark(space: recollect.Space) -> None:
    session = filled(space, "k", 8)
    assert session.state.invalidated_at == 8


def test_the_count_starts_again_at_the_cursor(space: recollect.Space) -> None:
    session = filled(space, "k", 6)
    space.sessions.mark_processed(session.id, 6, 6)
    for _ in range(5):
        session.append("user", "more")
    assert session.state.invalidated_at is None
    session.append("user", "the sixth since")
    assert session.state.invalidated_at == 12


def test_a_batch_that_crosses_the_threshold_marks_up_to_its_end(space: recollect.Space) -> None:
    session = filled(space, "k", 4)
    session.append_many([{"role": "user", "content": text} for text in "abcd"])
    assert session.state.invalidated_at == 8


def test_the_sixth_completed_turn_marks_when_turns_are_counted(store_url: str) -> None:
    with recollect.open(store_url, settings={"mark_unit": "turns"}) as memory:
        session = memory.space("alice").session("k")
        for turn in range(6):
            session.append("user", f"question {turn}")
            session.append("assistant", "calls a tool")
            session.append("assistant", "answers")
        assert session.state.invalidated_at is None
        session.append("user", "the seventh question completes the sixth turn")
        assert session.state.invalidated_at == 19


# Task 4: lifecycle


def test_sleep_marks_up_to_the_last_record(space: recollect.Space) -> None:
    session = filled(space, "k", 2)
    session.sleep()
    state = session.state
    assert (state.invalidated_at, state.marked_by) == (2, "sleep")


def test_compaction_marks_the_old_session_before_the_new_one_exists(
    space: recollect.Space,
) -> None:
    session = filled(space, "k", 2)
    old = session.id
    session.compact()
    assert session.id != old
    state = space.sessions.get(old)
    assert state is not None
    assert (state.invalidated_at, state.marked_by, state.ended_by) == (
        2,
        "compaction",
        "compaction",
    )


def test_reset_marks_the_old_session_before_the_new_one_exists(space: recollect.Space) -> None:
    session = filled(space, "k", 2)
    old = session.id
    session.reset("a new topic")
    assert session.id != old
    assert len(session) == 0
    state = space.sessions.get(old)
    assert state is not None
    assert (state.invalidated_at, state.marked_by) == (2, "reset")


@pytest.mark.parametrize("verb", ["sleep", "reset", "compact", "end"])
def test_an_empty_session_is_never_marked(space: recollect.Space, verb: str) -> None:
    session = space.session("k")
    getattr(session, verb)()
    space.sessions.invalidate(session.id, 5)
    assert space.sessions.find_invalidated() == []


def test_end_marks_and_the_next_append_opens_a_new_session(space: recollect.Space) -> None:
    session = filled(space, "k", 2)
    old = session.id
    session.end()
    assert session.state.invalidated_at == 2
    assert len(session) == 2
    record = session.append("user", "hello again")
    assert record.session_id == session.id != old
    assert record.seq == 1


def test_the_idle_sweep_marks_sessions_whose_process_died(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock
) -> None:
    session = filled(space, "k", 2)
    clock.advance(599)
    assert memory.sweep_idle() == 0
    clock.advance(1)
    assert memory.sweep_idle() == 1
    state = session.state
    assert (state.invalidated_at, state.marked_by) == (2, "idle")
    assert memory.sweep_idle() == 0


@pytest.mark.parametrize("kind", [MemoryAgent, ConsolidationAgent, SearchAgent])
def test_agents_that_work_on_memory_are_never_marked(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock, kind: type
) -> None:
    session = space.session("k", agent=kind("assistant"))
    for _ in range(7):
        session.append("user", "a transcript")
    session.sleep()
    space.sessions.invalidate(session.id, 7)
    clock.advance(3600)
    memory.sweep_idle()
    session.compact()
    session.append("user", "more")
    session.reset()
    session.append("user", "more")
    session.end()
    assert space.sessions.find_invalidated() == []
    assert memory.status().marked_count == 0


# Task 7: what the loop is for


def test_a_message_between_reading_and_clearing_keeps_the_session_marked(
    space: recollect.Space,
) -> None:
    session = filled(space, "k", 6)
    (due,) = space.sessions.find_invalidated()
    assert due.invalidated_at is not None
    read = space.sessions.records(due.id, after=due.processed_until or 0)
    session.append("user", "arrives while the six are being processed")
    assert not space.sessions.mark_processed(due.id, read[-1].seq, due.invalidated_at)
    (again,) = space.sessions.find_invalidated()
    assert (again.id, again.invalidated_at, again.processed_until) == (due.id, 7, None)
    assert space.sessions.mark_processed(due.id, 7, 7)
    assert space.sessions.find_invalidated() == []

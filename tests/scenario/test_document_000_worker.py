"""Document 000 (memory collection loop), its task lists for the worker, line by line."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import StoreClosed
from recollect.types.records import MarkCause, Outcome
from recollect.worker import LoggingProcessor, Verdict, Work, WorkReport

SECONDS_MAX = 20.0


@pytest.fixture
def memory(store_url: str) -> Iterator[recollect.Memory]:
    settings = {"worker_batch": 1, "worker_tick_seconds": 0.02}
    with recollect.open(store_url, settings=settings, clock=ManualClock()) as opened:
        yield opened


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space("alice")


def filled(space: recollect.Space, key: str, records: int) -> recollect.Session:
    session = space.session(key, agent="assistant")
    for number in range(1, records + 1):
        session.append("user", f"message {number}")
    return session


def spans(space: recollect.Space, session_id: str) -> list[tuple[int, int]]:
    return [(span.first_seq, span.last_seq) for span in space.sessions.ranges(session_id)]


def is_processed(session: recollect.Session, upto: int) -> bool:
    return session.state.processed_until == upto


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.002)


def worker_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "recollect-worker"]


class Interrupted(LoggingProcessor):
    """Something is said while the session is being processed for the first time."""

    def __init__(self, session: recollect.Session) -> None:
        self._session = session
        self.seen: list[list[int]] = []

    def process(self, work: Work) -> Verdict:
        self.seen.append([record.seq for record in work.records])
        if len(self.seen) == 1:
            self._session.append("user", "wait, one more thing")
            self._session.sleep()
        return super().process(work)


# Task 5: Memory worker


def test_the_interval_is_thirty_seconds_and_the_batch_ten_unless_set_otherwise() -> None:
    assert (Settings().worker_tick_seconds, Settings().worker_batch) == (30.0, 10)


def test_a_tick_finds_marked_sessions_and_marks_them_processed(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = filled(space, "k", 3)
    session.sleep()
    assert memory.worker().tick().processed == 1
    state = session.state
    assert (state.invalidated_at, state.processed_until) == (None, 3)
    assert space.sessions.find_invalidated(10) == []


def test_a_tick_leaves_sessions_without_a_mark_alone(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = filled(space, "k", 5)
    assert memory.worker().tick() == WorkReport()
    assert session.state.processed_until is None


def test_a_mark_that_moved_during_processing_stays(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = filled(space, "k", 3)
    session.sleep()
    memory.worker(Interrupted(session)).tick()
    state = session.state
    assert (state.invalidated_at, state.processed_until) == (4, 3)
    assert [found.id for found in space.sessions.find_invalidated(10)] == [session.id]


def test_only_what_was_said_meanwhile_is_processed_next_time_and_exactly_once(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = filled(space, "k", 3)
    session.sleep()
    processor = Interrupted(session)
    worker = memory.worker(processor)
    for _ in range(3):
        worker.tick()
    assert processor.seen == [[1, 2, 3], [4]]
    assert spans(space, session.id) == [(1, 3), (4, 4)]
    assert (session.state.invalidated_at, session.state.processed_until) == (None, 4)


def test_a_started_worker_ticks_by_itself(memory: recollect.Memory, space: recollect.Space) -> None:
    worker = memory.worker()
    worker.start()
    session = filled(space, "k", 6)
    eventually(lambda: session.state.processed_until == 6)
    worker.stop()


def test_no_tick_runs_after_stop(memory: recollect.Memory, space: recollect.Space) -> None:
    worker = memory.worker()
    worker.start()
    worker.stop()
    session = filled(space, "k", 6)
    assert worker_threads() == []
    assert worker.tick() == WorkReport()
    assert session.state.invalidated_at == 6


def test_start_and_stop_are_idempotent(memory: recollect.Memory, space: recollect.Space) -> None:
    worker = memory.worker()
    worker.stop()
    worker.start()
    worker.start()
    assert len(worker_threads()) == 1
    worker.stop()
    worker.stop()
    assert worker_threads() == []
    worker.start()
    session = filled(space, "k", 6)
    eventually(lambda: session.state.processed_until == 6)
    worker.stop()


def test_one_line_is_logged_for_every_processed_session(
    memory: recollect.Memory, space: recollect.Space, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = [filled(space, key, records) for key, records in (("a", 2), ("b", 6))]
    sessions[0].sleep()
    with caplog.at_level(logging.INFO):
        memory.work()
    ours = [record for record in caplog.records if record.name.startswith("recollect")]
    assert {record.name for record in ours} == {"recollect.phase1"}
    assert sorted(record.getMessage() for record in ours) == sorted(
        f"session {session.id}: records 1 to {session.state.last_seq} no_output"
        for session in sessions
    )


# Task 6: Engine integration


def test_the_worker_stops_before_the_store_closes(store_url: str) -> None:
    memory = recollect.open(store_url, settings={"worker_tick_seconds": 0.02})
    session = filled(memory.space("alice"), "k", 6)
    entered, go_on = threading.Event(), threading.Event()
    reached: list[str] = []

    class Slow:
        def process(self, work: Work) -> Verdict:
            entered.set()
            assert go_on.wait(SECONDS_MAX)
            assert work.session.id == session.id  # the store is still there
            reached.append("processed")
            return Verdict(outcome=Outcome.NO_OUTPUT)

    def close() -> None:
        memory.close()
        reached.append("closed")

    memory.worker(Slow()).start()
    assert entered.wait(SECONDS_MAX)
    closing = threading.Thread(target=close)
    closing.start()
    go_on.set()
    closing.join(SECONDS_MAX)
    assert reached == ["processed", "closed"]
    assert worker_threads() == []
    with pytest.raises(StoreClosed):
        memory.status()


# Task 7: Verify acceptance criteria


def mark_by_sleep(session: recollect.Session) -> None:
    session.sleep()


def mark_by_threshold(session: recollect.Session) -> None:
    for number in range(4):
        session.append("user", f"and {number}")


def mark_by_compaction(session: recollect.Session) -> None:
    session.compact("what was said", retain=1)


def mark_by_reset(session: recollect.Session) -> None:
    session.reset()


def mark_by_end(session: recollect.Session) -> None:
    session.end()


@pytest.mark.parametrize(
    ("mark", "cause", "upto"),
    [
        (mark_by_sleep, MarkCause.SLEEP, 2),
        (mark_by_threshold, MarkCause.THRESHOLD, 6),
        (mark_by_compaction, MarkCause.COMPACTION, 2),
        (mark_by_reset, MarkCause.RESET, 2),
        (mark_by_end, MarkCause.END, 2),
    ],
)
def test_every_marking_point_leads_to_processing(
    memory: recollect.Memory,
    space: recollect.Space,
    mark: Callable[[recollect.Session], None],
    cause: MarkCause,
    upto: int,
) -> None:
    session = filled(space, "k", 2)
    marked_id = session.id
    mark(session)
    marked = space.sessions.get(marked_id)
    assert marked is not None
    assert (marked.invalidated_at, marked.marked_by) == (upto, cause)
    memory.work()
    cleared = space.sessions.get(marked_id)
    assert cleared is not None
    assert (cleared.invalidated_at, cleared.processed_until) == (None, upto)
    assert spans(space, marked_id) == [(1, upto)]


def test_what_a_compaction_retains_is_not_processed_again(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = filled(space, "k", 3)
    session.compact("what was said", retain=2)
    memory.work(all=True)
    session.sleep()
    assert memory.work(all=True) == WorkReport()
    session.append("user", "new")
    session.sleep()
    assert memory.work().records == 1


def test_a_session_whose_process_died_without_sleeping_is_processed_too(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = filled(space, "k", 2)
    assert memory.work() == WorkReport()
    assert memory.work(all=True).processed == 1
    assert session.state.processed_until == 2


def test_the_worker_polls_and_clears_the_mark_again_and_again(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    session = space.session("k")
    worker = memory.worker()
    worker.start()
    for turn in range(1, 4):
        session.append("user", f"turn {turn}")
        session.sleep()
        eventually(partial(is_processed, session, turn))
    worker.stop()
    assert spans(space, session.id) == [(1, 1), (2, 2), (3, 3)]
    assert session.state.invalidated_at is None


def test_new_messages_during_processing_keep_the_mark_even_below_the_threshold(
    memory: recollect.Memory, space: recollect.Space
) -> None:
    """Nothing but the compare of marks decides; the count starts anew from what was read."""
    session = filled(space, "k", 6)
    seen = []

    class Chatty:
        def process(self, work: Work) -> Verdict:
            seen.append(work.claim.read_upto)
            if len(seen) == 1:
                session.append("user", "a seventh, marked because six were unprocessed")
            return Verdict(outcome=Outcome.NO_OUTPUT)

    memory.worker(Chatty()).tick()
    assert (session.state.invalidated_at, session.state.processed_until) == (7, 6)
    memory.work(Chatty())
    assert spans(space, session.id) == [(1, 6), (7, 7)]

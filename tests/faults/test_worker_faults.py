"""Workers through a server that goes away and comes back, and through clocks that jump."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import OutcomeUnknown, StoreError, StoreUnavailable
from recollect.types.records import JobKind, JobState, Outcome
from recollect.worker import Verdict, Work, WorkReport
from tests.postgres_server import PostgresServer, url_with

SPACE = "alice"
SECONDS_MAX = 60.0
IMPATIENT: dict[str, object] = {
    "postgres_timeout_seconds": 1,
    "lease_seconds": 1,
    "worker_tick_seconds": 0.05,
    "backoff_seconds": 0.1,
    "backoff_seconds_max": 0.1,
    "job_failures_max": 1000,
    "job_takeovers_max": 1000,
}


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


def assert_all_is_processed_exactly_once(memory: recollect.Memory) -> Counter[str]:
    contents: Counter[str] = Counter()
    sessions = memory.space(SPACE).sessions
    for state in sessions.list(1000):
        assert (state.processed_until or 0) == state.last_seq, state
        assert state.invalidated_at is None, state
        next_seq = 1
        for span in sessions.ranges(state.id):
            assert span.first_seq == next_seq, (state, span)
            next_seq = span.last_seq + 1
        assert next_seq == state.last_seq + 1, state
        contents.update(record.content for record in sessions.records(state.id))
    assert not [text for text, times in contents.items() if times > 1], "stored twice"
    return contents


class Brief:
    """Takes a moment for every session."""

    def process(self, work: Work) -> Verdict:
        threading.Event().wait(0.002)
        return Verdict(outcome=Outcome.NO_OUTPUT, reason=work.claim.owner)


class Appender(threading.Thread):
    """Appends until it is told to stop; what it was not told is stored it says again."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.told_to_stop = threading.Event()
        self.acknowledged: list[str] = []

    def run(self) -> None:
        with recollect.open(self._url, settings=IMPATIENT) as memory:
            sessions = [memory.space(SPACE).session(f"k{number}") for number in range(5)]
            number = 0
            while not self.told_to_stop.wait(0.002):
                number += 1
                session = sessions[number % 5]
                self.insist(partial(session.append, "user", f"m{number}", key=f"m{number}"))
                self.acknowledged.append(f"m{number}")
                if number % 3 == 0:
                    self.insist(session.sleep)

    def has_said(self, count: int) -> bool:
        return len(self.acknowledged) >= count

    def insist(self, write: Callable[[], object]) -> None:
        while True:
            try:
                write()
            except (StoreUnavailable, OutcomeUnknown):
                continue
            return


@pytest.fixture
def quiet_logs(caplog: pytest.LogCaptureFixture) -> None:
    """A server that goes away is said so often that the report of a failure would drown in it."""
    for name in ("recollect", "psycopg"):
        caplog.set_level(logging.CRITICAL, logger=name)


@contextlib.contextmanager
def started(memories: list[recollect.Memory]) -> Iterator[None]:
    workers = [memory.worker(Brief(), owner=f"w{n}") for n, memory in enumerate(memories)]
    for worker in workers:
        worker.start()
    yield
    for worker in workers:
        worker.stop()


@pytest.mark.usefixtures("quiet_logs")
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_workers_go_on_when_the_server_comes_back(own_postgres: PostgresServer, how: str) -> None:
    url = url_with(own_postgres.url, schema=f"workers_{how}")
    appender = Appender(url)
    with contextlib.ExitStack() as stack:
        memories = [stack.enter_context(recollect.open(url, settings=IMPATIENT)) for _ in range(3)]
        with started(memories):
            appender.start()
            births = {born_at(own_postgres)}
            for _ in range(3):
                reached = len(appender.acknowledged) + 30
                eventually(partial(appender.has_said, reached))
                done = processed(memories[0])
                own_postgres.stop() if how == "stop" else own_postgres.kill()
                own_postgres.start()
                births.add(born_at(own_postgres))
                eventually(partial(is_processed_beyond, memories[0], done))
            appender.told_to_stop.set()
            appender.join(SECONDS_MAX)
        assert not appender.is_alive()
        eventually(lambda: is_drained(memories[0]))
        contents = assert_all_is_processed_exactly_once(memories[0])
        assert set(contents) == set(appender.acknowledged)
        assert len(births) == 4, "it was never gone"


def born_at(server: PostgresServer) -> object:
    with psycopg.connect(server.url) as connection:
        return connection.execute("SELECT pg_postmaster_start_time()").fetchone()


def processed(memory: recollect.Memory) -> int:
    """How far all sessions are processed; -1 while nobody can say."""
    try:
        states = memory.space(SPACE).sessions.list(100)
    except StoreError:
        return -1
    return sum(state.processed_until or 0 for state in states)


def is_processed_beyond(memory: recollect.Memory, done: int) -> bool:
    return processed(memory) > done


def is_drained(memory: recollect.Memory) -> bool:
    memory.work(Brief(), all=True)
    status = memory.status()
    return not (status.marked_count or status.waiting_count)


# clocks


class Gate:
    """Keeps a session waiting until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def process(self, work: Work) -> Verdict:
        self.entered.set()
        assert self.opened.wait(SECONDS_MAX)
        return Verdict(outcome=Outcome.NO_OUTPUT, reason=work.claim.owner)


def marked(memory: recollect.Memory, key: str = "k") -> recollect.Session:
    session = memory.space(SPACE).session(key)
    session.append_many([{"role": "user", "content": f"{key} {n}"} for n in range(3)])
    session.sleep()
    return session


@contextlib.contextmanager
def held_up(memory: recollect.Memory) -> Iterator[list[WorkReport]]:
    """A worker in the middle of a session for as long as the block lasts; then its report."""
    gate, reports = Gate(), list[WorkReport]()
    worker = memory.worker(gate, owner="held up")
    thread = threading.Thread(target=lambda: reports.append(worker.tick()))
    thread.start()
    assert gate.entered.wait(SECONDS_MAX)
    try:
        yield reports
    finally:
        gate.opened.set()
        thread.join(SECONDS_MAX)


def reasons(memory: recollect.Memory, session: recollect.Session) -> list[str | None]:
    return [span.reason for span in memory.space(SPACE).sessions.ranges(session.id)]


def test_a_clock_that_jumps_forward_makes_a_takeover_and_nothing_twice(store_url: str) -> None:
    clock = ManualClock()
    with recollect.open(store_url, settings={"worker_batch": 1}, clock=clock) as memory:
        session = marked(memory)
        with held_up(memory) as reports:
            clock.advance(5 * 3600)
            assert memory.work(Brief()).processed == 1
        (report,) = reports
        assert (report.processed, report.stale) == (0, 1)
        assert "held up" not in reasons(memory, session)
        assert_all_is_processed_exactly_once(memory)


def test_a_clock_that_jumps_back_leaves_a_claim_to_its_owner(store_url: str) -> None:
    clock = ManualClock()
    with recollect.open(store_url, settings={"worker_batch": 1}, clock=clock) as memory:
        session = marked(memory)
        with held_up(memory) as reports:
            clock.advance(-0.5 * 3600)
            assert not memory.work(Brief())
        assert reports[0].processed == 1
        assert reasons(memory, session) == ["held up"]
        clock.advance(-3600)
        session.append("user", "said in the past")
        session.sleep()
        assert memory.work(Brief()).processed == 1
        assert_all_is_processed_exactly_once(memory)


def test_a_clock_that_jumps_back_far_holds_nobody_up_and_nothing_is_done_twice(
    store_url: str,
) -> None:
    """P4: a lease that ends later than any can is not waited for, whoever has it."""
    clock = ManualClock()
    with recollect.open(store_url, settings={"worker_batch": 1}, clock=clock) as memory:
        marked(memory)
        with held_up(memory) as reports:
            clock.advance(-5 * 3600)
            assert memory.work(Brief()).processed == 1
        assert reports[0].stale == 1
        assert_all_is_processed_exactly_once(memory)


def test_a_worker_whose_clock_is_ahead_takes_over_and_nothing_is_done_twice(
    durable_store_url: str,
) -> None:
    right = ManualClock()
    ahead = ManualClock(right.now())
    ahead.advance(600)
    settings = {"worker_batch": 1}
    with (
        recollect.open(durable_store_url, settings=settings, clock=right) as memory,
        recollect.open(durable_store_url, settings=settings, clock=ahead) as hasty,
    ):
        session = marked(memory)
        with held_up(memory) as reports:
            assert hasty.work(Brief()).processed == 1
        assert reports[0].stale == 1
        marked(memory, "other")
        with held_up(hasty):
            assert not memory.work(Brief())
        assert len(reasons(memory, session)) == 1
        assert_all_is_processed_exactly_once(memory)


@pytest.mark.parametrize("seed", range(3))
def test_a_clock_that_jumps_all_the_time_does_nothing_twice(store_url: str, seed: int) -> None:
    """Workers that take over from each other without end still record every range once."""
    clock, choice = ManualClock(), random.Random(seed)
    settings = {"worker_tick_seconds": 0.01, "job_takeovers_max": 1000, "job_failures_max": 1000}
    with recollect.open(store_url, settings=settings, clock=clock) as memory:
        sessions = [memory.space(SPACE).session(f"k{number}") for number in range(4)]
        with started([memory] * 3):
            for number in range(120):
                session = choice.choice(sessions)
                session.append("user", f"{session.key} {number}")
                if choice.random() < 0.5:
                    session.sleep()
                clock.advance(choice.choice((1, 30, 61, 3600, -10, -3600)))
        clock.advance(100 * 3600)
        eventually(lambda: (clock.advance(3600), is_drained(memory))[1])
        assert len(assert_all_is_processed_exactly_once(memory)) == 120
        jobs = [memory.store.leases.get(SPACE, JobKind.EXTRACT, s.id) for s in sessions]
        assert {job.state for job in jobs if job} <= {JobState.IDLE}


def test_a_backoff_that_a_jump_passes_is_over(store_url: str, tmp_path: Path) -> None:
    clock = ManualClock()
    with recollect.open(store_url, settings={}, clock=clock) as memory:
        session = marked(memory)

        class Broken:
            def process(self, work: Work) -> Any:
                raise RuntimeError("no luck")

        assert memory.work(Broken()).failed == 1
        clock.advance(3600)
        assert memory.work(Brief()).processed == 1
        assert session.state.invalidated_at is None

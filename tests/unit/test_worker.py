"""The worker: what it claims it finishes, gives back or loses, and nothing it does twice."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import psycopg
import pytest

import recollect
from recollect import phase1
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import PermanentFailure, StoreClosed, StoreUnavailable
from recollect.store.sqlite import SqliteDatabase
from recollect.types.records import (
    CapReached,
    Claim,
    Job,
    JobKind,
    JobState,
    LeasePolicy,
    LoadedWork,
    NothingDue,
    Outcome,
    Released,
    Renewed,
    StaleClaim,
)
from recollect.worker import Verdict, Work, Worker, WorkReport

SPACE = "alice"
THREADS = ("recollect-worker", "recollect-renew", "recollect-listen", "recollect-job")
SECONDS_MAX = 20.0  # far above what anything here takes
QUICK: dict[str, object] = {"worker_tick_seconds": 0.02}
NEVER_BY_ITSELF: dict[str, object] = {"worker_tick_seconds": 3600}
SHORT_LEASE: dict[str, object] = {"lease_seconds": 0.3, "worker_tick_seconds": 0.05}

Opener = Callable[..., recollect.Memory]


@pytest.fixture
def opened(store_url: str) -> Iterator[Opener]:
    """Opens the store with settings of the test's own."""
    with contextlib.ExitStack() as stack:

        def open_memory(clock: ManualClock | None = None, **settings: object) -> recollect.Memory:
            memory = recollect.open(store_url, settings=settings, clock=clock)
            return stack.enter_context(memory)

        yield open_memory


@pytest.fixture
def memory(opened: Opener) -> recollect.Memory:
    return opened()


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.002)


def raw(memory: recollect.Memory, statement: str) -> None:
    """Run SQL behind the store's back."""
    database = cast("Any", memory.store)._database
    if isinstance(database, SqliteDatabase):
        with database._alone():
            database._writer.execute(statement)
        return
    with psycopg.connect(database._conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {database._schema}".encode())
        connection.execute(statement.encode())


def marked(memory: recollect.Memory, key: str = "k", records: int = 3) -> recollect.Session:
    session = memory.space(SPACE).session(key, agent="assistant")
    session.append_many([{"role": "user", "content": f"{key} {n}"} for n in range(records)])
    session.sleep()
    return session


def marked_many(memory: recollect.Memory, count: int) -> list[recollect.Session]:
    return [marked(memory, f"k{number}", 1) for number in range(count)]


def spans(memory: recollect.Memory, session: recollect.Session) -> list[tuple[int, int]]:
    ranges = memory.space(SPACE).sessions.ranges(session.id)
    return [(span.first_seq, span.last_seq) for span in ranges]


def job_of(memory: recollect.Memory, session: recollect.Session) -> Job:
    job = memory.store.leases.get(SPACE, JobKind.EXTRACT, session.id)
    assert job is not None
    return job


def is_done(session: recollect.Session) -> bool:
    state = session.state
    return state.invalidated_at is None and state.processed_until == state.last_seq


def threads_named(*names: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name in names]


class Reader:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[int]]] = []
        self._lock = threading.Lock()

    def process(self, work: Work) -> Verdict:
        with self._lock:
            self.seen.append((work.session.key, [record.seq for record in work.records]))
        return Verdict(outcome=Outcome.NO_OUTPUT)

    def seqs(self, key: str) -> list[int]:
        return [seq for seen, seqs in self.seen for seq in seqs if seen == key]


class Gate(Reader):
    """Keeps everything waiting until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()
        self.works: list[Work] = []

    def process(self, work: Work) -> Verdict:
        self.works.append(work)
        self.entered.release()
        assert self.opened.wait(SECONDS_MAX)
        return super().process(work)

    def wait_entered(self) -> None:
        assert self.entered.acquire(timeout=SECONDS_MAX)


class Doing:
    """Does what a test says, and counts how often."""

    def __init__(self, deed: Callable[[Work], Verdict | None]) -> None:
        self._deed = deed
        self.calls = 0

    def process(self, work: Work) -> Verdict:
        self.calls += 1
        return self._deed(work) or Verdict(outcome=Outcome.NO_OUTPUT)


@contextlib.contextmanager
def running(worker: Worker) -> Iterator[Worker]:
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


@contextlib.contextmanager
def in_background(call: Callable[[], object]) -> Iterator[threading.Thread]:
    """Runs a call beside the test, which fails if the call does."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield thread
    thread.join(SECONDS_MAX)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


# in parallel, in batches, one tick at a time


def test_as_many_sessions_as_allowed_are_processed_at_the_same_time(opened: Opener) -> None:
    memory = opened(worker_concurrency=4)
    sessions = marked_many(memory, 4)
    meeting = threading.Barrier(4)
    report = memory.work(Doing(lambda _: cast(None, meeting.wait(SECONDS_MAX) and None)))
    assert (report.processed, report.failed) == (4, 0)
    assert all(is_done(session) for session in sessions)


def test_no_more_sessions_than_allowed_are_processed_at_the_same_time(opened: Opener) -> None:
    memory = opened(worker_concurrency=2)
    marked_many(memory, 6)
    meeting = threading.Barrier(2)
    lock = threading.Lock()
    now, most = 0, 0

    def count(_: Work) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        meeting.wait(SECONDS_MAX)  # a third one would come in while two meet
        with lock:
            now -= 1

    assert memory.work(Doing(count)).processed == 6
    assert most == 2


def test_one_tick_is_one_batch_of_ten(memory: recollect.Memory) -> None:
    marked_many(memory, 25)
    worker = memory.worker()
    assert [worker.tick().processed for _ in range(4)] == [10, 10, 5, 0]


def test_the_batch_is_a_setting(opened: Opener) -> None:
    memory = opened(worker_batch=3)
    marked_many(memory, 5)
    worker = memory.worker()
    assert [worker.tick().processed for _ in range(3)] == [3, 2, 0]


def test_ticks_never_overlap(opened: Opener) -> None:
    memory = opened(worker_batch=1, **NEVER_BY_ITSELF)
    sessions = marked_many(memory, 4)
    alone = threading.Lock()
    met = []

    def process(_: Work) -> None:
        if not alone.acquire(blocking=False):
            met.append("two at once")
            return
        try:
            met.append("alone")
            # Long enough for a second tick to come in, if it could.
            threading.Event().wait(0.05)
        finally:
            alone.release()

    worker = memory.worker(Doing(process))
    with contextlib.ExitStack() as stack:
        for _ in sessions:
            stack.enter_context(in_background(worker.tick))
    assert met == ["alone"] * 4


def test_a_tick_waits_for_its_batch(memory: recollect.Memory) -> None:
    session = marked(memory)
    gate = Gate()
    worker = memory.worker(gate)
    with in_background(worker.tick) as tick:
        gate.wait_entered()
        assert tick.is_alive()
        gate.opened.set()
    assert is_done(session)


def test_a_claim_that_fails_in_the_middle_of_a_batch_leaves_nobody_behind(
    memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tick fails, but not before what it had claimed is done."""
    session, later = marked(memory, "a"), marked(memory, "b")
    gate = Gate()
    claim = memory.store.leases.claim
    calls = 0

    def flaky(
        owner: str, policy: LeasePolicy, now: Any, lane: str | None, randomness: Any
    ) -> Claim | NothingDue | CapReached:
        nonlocal calls
        calls += 1
        if calls == 2:
            gate.wait_entered()
            threading.Timer(0.05, gate.opened.set).start()
            raise StoreUnavailable("for a moment")
        return claim(owner, policy, now, lane, randomness)

    monkeypatch.setattr(memory.store.leases, "claim", flaky)
    worker = memory.worker(gate)
    with pytest.raises(StoreUnavailable):
        worker.tick()
    assert is_done(session)
    assert worker.tick().processed == 1
    assert is_done(later)


# one session's trouble


def test_one_failing_session_does_not_delay_the_others(memory: recollect.Memory) -> None:
    sessions = marked_many(memory, 3)
    bad = sessions[1]

    def process(work: Work) -> None:
        if work.session.id == bad.id:
            raise RuntimeError("cannot read this")

    report = memory.worker(Doing(process)).tick()
    assert (report.processed, report.failed) == (2, 1)
    assert [is_done(session) for session in sessions] == [True, False, True]
    job = job_of(memory, bad)
    assert (job.state, job.failures) == (JobState.DUE, 1)
    assert job.last_error == "RuntimeError: cannot read this"
    assert job.due_at is not None


@pytest.mark.parametrize("error", [RuntimeError("passing"), PermanentFailure("for ever")])
def test_ten_failing_sessions_do_not_delay_an_eleventh(opened: Opener, error: Exception) -> None:
    memory = opened(**NEVER_BY_ITSELF)
    marked_many(memory, 10)
    eleventh = marked(memory, "eleventh")

    def process(work: Work) -> None:
        if work.session.key != "eleventh":
            raise error

    with running(memory.worker(Doing(process))):
        eventually(lambda: is_done(eleventh))


def test_a_permanent_failure_parks_at_once_and_a_retry_by_hand_tries_again(
    memory: recollect.Memory,
) -> None:
    session = marked(memory)
    failing = [True]

    def process(_: Work) -> None:
        if failing:
            raise PermanentFailure("never")

    processor = Doing(process)
    assert memory.work(processor).failed == 1
    assert job_of(memory, session).state is JobState.PARKED
    assert memory.work(processor) == WorkReport()
    failing.clear()
    assert memory.retry(session.id) == 1
    assert memory.work(processor).processed == 1
    assert is_done(session)


def test_a_failure_is_tried_again_after_its_backoff_until_it_is_parked(opened: Opener) -> None:
    clock = ManualClock()
    memory = opened(clock, job_failures_max=3)
    session = marked(memory)

    def process(_: Work) -> None:
        raise RuntimeError("no luck")

    processor = Doing(process)
    for attempt in (1, 2, 3):
        assert memory.work(processor).failed == 1
        assert processor.calls == attempt
        job = job_of(memory, session)
        assert job.failures == attempt
        if job.due_at is not None:
            clock.advance((job.due_at - clock.now()).total_seconds())
    assert job_of(memory, session).state is JobState.PARKED


def test_an_error_that_no_database_can_hold_is_a_failure_like_any_other(
    memory: recollect.Memory,
) -> None:
    session = marked(memory)

    def process(_: Work) -> None:
        raise RuntimeError("nul \0 inside")

    assert memory.worker(Doing(process)).tick().failed == 1
    job = job_of(memory, session)
    assert (job.state, job.failures) == (JobState.DUE, 1)
    assert job.last_error is not None
    assert job.last_error.startswith("RuntimeError: nul ")


def test_a_verdict_about_other_records_is_a_failure(memory: recollect.Memory) -> None:
    session = marked(memory)
    verdict = Verdict(outcome=Outcome.NO_OUTPUT, upto=4)
    assert memory.worker(Doing(lambda _: verdict)).tick().failed == 1
    assert session.state.processed_until is None


def test_a_failure_that_cannot_be_reported_is_taken_over(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    memory = opened(clock)
    session = marked(memory)

    def process(_: Work) -> None:
        raise RuntimeError("no luck")

    def unreachable(*_: object, **__: object) -> None:
        raise StoreUnavailable("not now")

    with monkeypatch.context() as patch:
        patch.setattr(memory.store.leases, "fail", unreachable)
        assert memory.worker(Doing(process)).tick().failed == 1
    assert job_of(memory, session).state is JobState.CLAIMED
    clock.advance(61)
    assert memory.work(Reader()).processed == 1
    assert is_done(session)


def test_a_bad_moment_of_the_store_is_not_counted_against_the_job(
    memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = marked(memory)

    def unreachable(*_: object, **__: object) -> None:
        raise StoreUnavailable("not now")

    reader = Reader()
    with monkeypatch.context() as patch:
        patch.setattr(memory.store.leases, "record", unreachable)
        patch.setattr(phase1, "STORE_PAUSES", (0.0, 0.0))
        report = memory.worker(reader).drain()
    assert (report.failed, report.postponed) == (0, 1)
    assert len(reader.seen) == 1, "it is not read again for a bad moment of the store"
    job = job_of(memory, session)
    assert (job.state, job.failures, job.takeovers) == (JobState.DUE, 0, 0)
    assert job.is_paused
    memory.retry()
    assert memory.work(Reader()).processed == 1


def test_what_was_paid_for_is_recorded_when_the_store_is_back(
    memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = marked(memory)
    record, failures = memory.store.leases.record, iter([True, True])

    def shaky(*args: Any) -> Any:
        if next(failures, False):
            raise StoreUnavailable("not now")
        return record(*args)

    monkeypatch.setattr(memory.store.leases, "record", shaky)
    monkeypatch.setattr(phase1, "STORE_PAUSES", (0.0, 0.0, 0.0))
    reader = Reader()
    assert memory.work(reader).processed == 1
    assert len(reader.seen) == 1
    assert is_done(session)


# what is said meanwhile


def test_a_record_appended_while_processing_is_processed_next_time_exactly_once(
    opened: Opener,
) -> None:
    memory = opened(worker_batch=1)
    session = marked(memory)
    reader = Reader()

    def process(work: Work) -> Verdict:
        if work.claim.read_upto == 3:
            session.append("user", "meanwhile")
            session.sleep()
        return reader.process(work)

    worker = memory.worker(Doing(process))
    assert worker.tick().records == 3
    assert (session.state.invalidated_at, session.state.processed_until) == (4, 3)
    assert worker.tick().records == 1
    assert reader.seen == [("k", [1, 2, 3]), ("k", [4])]
    assert spans(memory, session) == [(1, 3), (4, 4)]
    assert worker.tick() == WorkReport()


def test_a_record_appended_between_claim_and_reading_waits_for_its_own_claim(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(worker_batch=1)
    session = marked(memory)
    load = memory.store.leases.load

    def late(*args: Any) -> LoadedWork | None:
        if session.state.last_seq == 3:
            session.append("user", "just before it reads")
            session.sleep()
        return load(*args)

    monkeypatch.setattr(memory.store.leases, "load", late)
    reader = Reader()
    worker = memory.worker(reader)
    worker.tick()
    assert (session.state.invalidated_at, session.state.processed_until) == (4, 3)
    worker.tick()
    assert reader.seen == [("k", [1, 2, 3]), ("k", [4])]


def test_a_busy_session_gets_on_and_does_not_keep_the_others_waiting(opened: Opener) -> None:
    memory = opened(worker_concurrency=1, worker_batch=1)
    busy = marked(memory, "busy", 1)
    calm = [marked(memory, f"calm {number}", 1) for number in range(3)]
    reader = Reader()

    def process(work: Work) -> Verdict:
        if work.session.key == "busy" and work.claim.read_upto < 6:
            busy.append("user", "and another thing")
            busy.sleep()
        return reader.process(work)

    worker = memory.worker(Doing(process))
    for _ in range(4):
        worker.tick()
    assert [key for key, _ in reader.seen] == ["busy", "calm 0", "calm 1", "calm 2"]
    assert all(is_done(session) for session in calm)
    worker.drain()
    assert reader.seqs("busy") == [1, 2, 3, 4, 5, 6]
    assert is_done(busy)


# leases


def test_renewal_keeps_a_long_job_alive_past_its_lease(opened: Opener) -> None:
    memory = opened(**SHORT_LEASE)
    session = marked(memory)
    expiries: set[object] = set()

    def process(work: Work) -> None:
        first = work.claim.expires_at

        def renewed() -> bool:
            expires = job_of(memory, session).lease_expires_at
            assert expires is not None
            expiries.add(expires)
            return len(expiries) > 4 and (expires - first).total_seconds() > 0.4

        eventually(renewed)
        assert not work.is_lost()

    assert memory.worker(Doing(process)).tick().processed == 1
    assert spans(memory, session) == [(1, 3)]
    assert job_of(memory, session).takeovers == 0


def test_a_long_job_is_taken_over_by_nobody(opened: Opener) -> None:
    memory = opened(**SHORT_LEASE)
    session = marked(memory)
    gate, other = Gate(), Reader()
    with in_background(memory.worker(gate).tick):
        gate.wait_entered()
        with running(memory.worker(other)):
            first = gate.works[0].claim.expires_at

            def outlived() -> bool:
                expires = job_of(memory, session).lease_expires_at
                return expires is not None and (expires - first).total_seconds() > 0.7

            eventually(outlived)
            gate.opened.set()
            eventually(lambda: is_done(session))
    assert (other.seen, gate.seqs("k")) == ([], [1, 2, 3])
    assert job_of(memory, session).takeovers == 0


@pytest.mark.parametrize("error", [StoreUnavailable("a hiccup"), RuntimeError("a bug")])
def test_a_passing_error_of_a_renewal_costs_nothing(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    memory = opened(**SHORT_LEASE)
    session = marked(memory)
    renew = memory.store.leases.renew
    tries: list[str] = []

    def flaky(claim: Claim, policy: LeasePolicy, now: Any) -> Renewed | StaleClaim:
        tries.append(claim.key)
        if len(tries) == 1:
            raise error
        return renew(claim, policy, now)

    monkeypatch.setattr(memory.store.leases, "renew", flaky)

    def process(work: Work) -> None:
        eventually(lambda: len(tries) >= 4)
        assert not work.is_lost()

    report = memory.worker(Doing(process)).tick()
    assert (report.processed, report.stale, report.failed) == (1, 0, 0)
    assert is_done(session)


def test_a_worker_that_lost_its_claim_is_told_and_its_result_is_discarded(opened: Opener) -> None:
    memory = opened(**SHORT_LEASE)
    session = marked(memory)
    told: list[bool] = []

    def process(work: Work) -> Verdict:
        told.append(work.is_lost())
        assert memory.space(SPACE).sessions.mark_processed(session.id, 3, 3)
        eventually(work.is_lost)
        told.append(work.is_lost())
        return Verdict(outcome=Outcome.EXTRACTED)

    report = memory.worker(Doing(process)).tick()
    assert told == [False, True]
    assert (report.processed, report.stale) == (0, 1)
    (span,) = memory.space(SPACE).sessions.ranges(session.id)
    assert span.outcome is Outcome.EXTERNAL


def test_a_result_is_discarded_even_if_the_worker_had_not_noticed(
    memory: recollect.Memory, caplog: pytest.LogCaptureFixture
) -> None:
    session = marked(memory)

    def process(_: Work) -> Verdict:
        assert memory.space(SPACE).sessions.mark_processed(session.id, 2, 3)
        return Verdict(outcome=Outcome.EXTRACTED)

    with caplog.at_level(logging.INFO, logger="recollect.phase1"):
        assert memory.worker(Doing(process)).tick().stale == 1
    assert spans(memory, session) == [(1, 2)]
    assert "result discarded" in caplog.text


def test_an_error_of_a_worker_that_lost_its_claim_is_not_counted(opened: Opener) -> None:
    memory = opened(worker_batch=1)
    session = marked(memory)

    def process(_: Work) -> None:
        assert memory.space(SPACE).sessions.mark_processed(session.id, 2, 3)
        session.sleep()
        raise RuntimeError("too late to matter")

    assert memory.worker(Doing(process)).tick().stale == 1
    job = job_of(memory, session)
    assert (job.state, job.failures, job.last_error) == (JobState.DUE, 0, None)


def test_the_cap_on_running_jobs_holds_a_worker_back(opened: Opener) -> None:
    memory = opened(worker_running_max=1, worker_batch=1)
    marked_many(memory, 2)
    gate = Gate()
    first, second = memory.worker(gate), memory.worker(Reader())
    with in_background(first.tick):
        gate.wait_entered()
        assert second.tick() == WorkReport()
        gate.opened.set()
    assert second.drain().processed + sum(len(seqs) for _, seqs in gate.seen) == 2


# stopping


def test_a_worker_that_stops_claims_nothing_more_and_lets_what_runs_finish(opened: Opener) -> None:
    memory = opened(worker_concurrency=1, **QUICK)
    sessions = marked_many(memory, 3)
    gate = Gate()
    worker = memory.worker(gate)
    worker.start()
    gate.wait_entered()
    with in_background(lambda: worker.stop(SECONDS_MAX)):
        eventually(lambda: worker._stopping)
        gate.opened.set()
    assert [is_done(session) for session in sessions] == [True, False, False]
    for session in sessions[1:]:
        job = job_of(memory, session)
        assert (job.state, job.failures, job.takeovers) == (JobState.DUE, 0, 0)
    assert memory.work(Reader()).processed == 2
    assert all(is_done(session) for session in sessions)


def test_what_does_not_finish_in_time_is_given_back_without_burning_an_attempt(
    opened: Opener,
) -> None:
    memory = opened(**QUICK)
    session = marked(memory)
    gate, reader = Gate(), Reader()
    worker = memory.worker(gate)
    worker.start()
    gate.wait_entered()
    worker.stop(grace_seconds=0)
    (work,) = gate.works
    assert work.is_lost()
    job = job_of(memory, session)
    assert (job.state, job.failures, job.takeovers) == (JobState.DUE, 0, 0)
    report = memory.work(reader)
    gate.opened.set()
    eventually(lambda: not threads_named("recollect-job"))
    assert report.processed == 1
    assert reader.seen == [("k", [1, 2, 3])]
    assert spans(memory, session) == [(1, 3)]
    assert job_of(memory, session).takeovers == 0


def test_what_runs_keeps_its_lease_while_a_worker_stops(opened: Opener) -> None:
    """A grace period may be longer than a lease."""
    memory = opened(**SHORT_LEASE)
    session = marked(memory)
    gate = Gate()
    worker = memory.worker(gate)
    worker.start()
    gate.wait_entered()
    with in_background(lambda: worker.stop(SECONDS_MAX)):
        eventually(lambda: worker._stopping)
        seen: set[object] = set()

        def renewed() -> bool:
            seen.add(job_of(memory, session).lease_expires_at)
            return len(seen) > 6  # more than a lease has time for without being renewed anew

        eventually(renewed)
        assert memory.worker(Reader()).tick().records == 0
        gate.opened.set()
    assert is_done(session)
    assert gate.seqs("k") == [1, 2, 3]
    assert job_of(memory, session).takeovers == 0


def test_stopping_twice_does_nothing_the_second_time(opened: Opener) -> None:
    memory = opened(**QUICK)
    worker = memory.worker()
    worker.start()
    worker.stop()
    worker.stop()
    assert threads_named("recollect-worker") == []


def test_a_worker_that_never_started_can_be_stopped(memory: recollect.Memory) -> None:
    memory.worker().stop()


def test_starting_twice_makes_one_loop(opened: Opener) -> None:
    memory = opened(**QUICK)
    worker = memory.worker()
    worker.start()
    worker.start()
    assert len(threads_named("recollect-worker")) == 1
    worker.stop()
    assert threads_named("recollect-worker") == []


def test_no_tick_runs_after_stop(opened: Opener) -> None:
    memory = opened(**QUICK)
    reader = Reader()
    worker = memory.worker(reader)
    worker.start()
    worker.stop()
    session = marked(memory)
    worker.wake()
    assert worker.tick() == WorkReport()
    assert worker.drain() == WorkReport()
    assert (reader.seen, session.state.invalidated_at) == ([], 3)


def test_a_worker_can_be_started_again(opened: Opener) -> None:
    memory = opened(**QUICK)
    worker = memory.worker()
    for key in "abc":
        session = marked(memory, key)
        worker.start()
        eventually(partial(is_done, session))
        worker.stop()


def test_what_is_being_claimed_when_a_worker_stops_is_given_back_before_stop_returns(
    memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = marked(memory)
    claim = memory.store.leases.claim
    claiming, go_on = threading.Event(), threading.Event()

    def slow(
        owner: str, policy: LeasePolicy, now: Any, lane: str | None, randomness: Any
    ) -> Claim | NothingDue | CapReached:
        claiming.set()
        assert go_on.wait(SECONDS_MAX)
        return claim(owner, policy, now, lane, randomness)

    monkeypatch.setattr(memory.store.leases, "claim", slow)
    reader = Reader()
    worker = memory.worker(reader)
    with in_background(worker.tick):
        assert claiming.wait(SECONDS_MAX)
        threading.Timer(0.05, go_on.set).start()
        worker.stop(grace_seconds=0)
        job = job_of(memory, session)
        assert (job.state, job.token > 0) == (JobState.DUE, True)
        assert (job.failures, job.takeovers, reader.seen) == (0, 0, [])


def test_a_job_for_which_there_is_no_thread_is_given_back(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(**QUICK)
    session = marked(memory)
    start = threading.Thread.start
    refused: list[threading.Thread] = []

    def refuse_once(thread: threading.Thread) -> None:
        if thread.name == "recollect-job" and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_once)
    worker = memory.worker()
    with pytest.raises(RuntimeError, match="new thread"):
        worker.tick()
    job = job_of(memory, session)
    assert (job.state, job.failures, job.takeovers) == (JobState.DUE, 0, 0)
    assert worker.tick().processed == 1


def test_starting_and_stopping_from_several_threads_at_once(opened: Opener) -> None:
    memory = opened(worker_wake=False, **QUICK)
    worker = memory.worker()
    barrier = threading.Barrier(4)

    def toggle(seed: int) -> None:
        choice = random.Random(seed)
        barrier.wait(SECONDS_MAX)
        for _ in range(50):
            choice.choice((worker.start, worker.stop, worker.wake))()

    with contextlib.ExitStack() as stack:
        for seed in range(4):
            stack.enter_context(in_background(partial(toggle, seed)))
    worker.stop()
    assert threads_named(*THREADS) == []
    session = marked(memory)
    with running(worker):
        assert len(threads_named("recollect-worker")) == 1
        eventually(lambda: is_done(session))


def test_a_stopped_worker_leaves_no_thread_behind(opened: Opener) -> None:
    memory = opened(**QUICK)
    with running(memory.worker()):
        assert threads_named(*THREADS)
    eventually(lambda: not threads_named("recollect-job"))
    assert threads_named(*THREADS) == []


def test_closing_a_memory_stops_its_workers_first(store_url: str) -> None:
    """What runs is finished and recorded while there still is a store."""
    memory = recollect.open(store_url, settings=QUICK)
    marked(memory)
    gate = Gate()
    recorded: list[object] = []
    record = memory.store.leases.record

    def noting(*args: Any) -> object:
        recorded.append(record(*args))
        return recorded[-1]

    memory.store.leases.record = noting  # type: ignore[method-assign, assignment]
    worker = memory.worker(gate)
    worker.start()
    gate.wait_entered()
    with in_background(memory.close):
        eventually(lambda: worker._stopping)
        gate.opened.set()
    assert [type(each).__name__ for each in recorded] == ["Recorded"]
    assert threads_named("recollect-worker") == []
    with pytest.raises(StoreClosed):
        memory.status()
    memory.close()


def test_a_closed_memory_starts_no_worker(store_url: str) -> None:
    memory = recollect.open(store_url, settings={})
    worker = memory.worker()
    memory.close()
    with pytest.raises(StoreClosed):
        worker.start()
    assert threads_named(*THREADS) == []


def test_a_store_that_is_closed_under_a_worker_ends_it_quietly(store_url: str) -> None:
    memory = recollect.open(store_url, settings=QUICK)
    marked(memory)
    gate = Gate()
    worker = memory.worker(gate)
    worker.start()
    gate.wait_entered()
    memory.store.close()
    worker.stop(grace_seconds=0)
    gate.opened.set()
    eventually(lambda: not threads_named(*THREADS))
    memory.close()


# waking


class Claims:
    """Watches a store's claims, to know when a worker has nothing to do and waits."""

    def __init__(self, memory: recollect.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        self._claim = memory.store.leases.claim
        self.outcomes: list[object] = []
        monkeypatch.setattr(memory.store.leases, "claim", self)

    def __call__(self, *args: Any) -> Claim | NothingDue | CapReached:
        outcome = self._claim(*args)
        self.outcomes.append(outcome)
        return outcome

    def wait_until_quiet(self, worker: Worker) -> None:
        quiet = 0

        def is_quiet() -> bool:
            nonlocal quiet
            with worker._changed:
                rests = not (worker._running or worker._woken or worker._claiming)
            last = self.outcomes[-1:]
            quiet = quiet + 1 if rests and last and isinstance(last[0], NothingDue) else 0
            return quiet > 10

        eventually(is_quiet)


def test_an_append_in_the_same_process_wakes_a_worker_at_once(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(idle_sweep_every_seconds=3600, **NEVER_BY_ITSELF)
    claims = Claims(memory, monkeypatch)
    worker = memory.worker()
    with running(worker):
        for key in "ab":
            claims.wait_until_quiet(worker)
            session = memory.space(SPACE).session(key)
            session.append_many([{"role": "user", "content": "six"}] * 6)
            eventually(partial(is_done, session))


@pytest.mark.postgres
def test_an_append_on_another_connection_wakes_a_worker_at_once(
    postgres_store_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"idle_sweep_every_seconds": 3600, **NEVER_BY_ITSELF}
    with (
        recollect.open(postgres_store_url, settings=settings) as memory,
        recollect.open(postgres_store_url, settings=settings) as elsewhere,
        psycopg.connect(postgres_url, autocommit=True) as connection,
    ):
        claims = Claims(memory, monkeypatch)
        worker = memory.worker()
        with running(worker):
            eventually(lambda: listeners(connection))
            for key in "ab":
                claims.wait_until_quiet(worker)
                session = elsewhere.space(SPACE).session(key)
                session.append_many([{"role": "user", "content": "six"}] * 6)
                eventually(partial(is_done, session))
        eventually(lambda: not listeners(connection))


def listeners(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE query = 'LISTEN recollect_due' AND state = 'idle'"
    ).fetchone()
    return 0 if row is None else int(row[0])


@pytest.mark.postgres
def test_a_listener_whose_connection_breaks_listens_again(
    postgres_store_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.store.postgres.RELISTEN_SECONDS", 0.05)
    settings = {"idle_sweep_every_seconds": 3600, **NEVER_BY_ITSELF}
    with (
        recollect.open(postgres_store_url, settings=settings) as memory,
        psycopg.connect(postgres_url, autocommit=True) as connection,
        running(memory.worker()),
    ):
        eventually(lambda: listeners(connection))
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query = 'LISTEN recollect_due'"
        )
        session = marked(memory)
        eventually(lambda: is_done(session))
        eventually(lambda: listeners(connection))


def test_a_worker_that_is_not_to_be_woken_waits_for_its_tick(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(worker_wake=False, idle_sweep_every_seconds=3600, **NEVER_BY_ITSELF)
    claims = Claims(memory, monkeypatch)
    worker = memory.worker()
    with running(worker):
        claims.wait_until_quiet(worker)
        assert threads_named("recollect-listen") == []
        looked = len(claims.outcomes)
        session = marked(memory)
        claims.wait_until_quiet(worker)
        assert len(claims.outcomes) == looked
        assert session.state.invalidated_at == 3
        worker.wake()
        eventually(lambda: is_done(session))


def test_a_worker_looks_by_itself_at_every_tick(opened: Opener) -> None:
    memory = opened(worker_wake=False, **QUICK)
    with running(memory.worker()):
        for key in "abc":
            session = marked(memory, key)
            eventually(partial(is_done, session))


def test_a_worker_looks_again_when_a_backoff_ends(opened: Opener) -> None:
    memory = opened(
        worker_wake=False, backoff_seconds=0.1, job_failures_max=1000, **NEVER_BY_ITSELF
    )
    session = marked(memory)
    processor = Doing(lambda _: fail_until(processor, 4))
    with running(memory.worker(processor)):
        eventually(lambda: is_done(session))
    assert processor.calls == 4


def fail_until(processor: Doing, calls: int) -> None:
    if processor.calls < calls:
        raise RuntimeError("not yet")


def test_a_worker_looks_again_when_a_lease_runs_out(opened: Opener) -> None:
    memory = opened(worker_wake=False, lease_seconds=0.2, **NEVER_BY_ITSELF)
    session = marked(memory)
    abandoned = memory.store.leases.claim("dead", LeasePolicy(lease_seconds=0.2), None)
    assert isinstance(abandoned, Claim)
    with running(memory.worker()):
        eventually(lambda: is_done(session))
    assert memory.store.leases.release(abandoned) == StaleClaim()


def test_errors_of_the_store_while_claiming_do_not_end_the_loop(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(worker_wake=False, **QUICK)
    session = marked(memory)
    claim = memory.store.leases.claim
    errors: list[Exception] = [StoreUnavailable("down"), RuntimeError("odd"), StoreUnavailable("")]

    def flaky(
        owner: str, policy: LeasePolicy, now: Any, lane: str | None, randomness: Any
    ) -> Claim | NothingDue | CapReached:
        if errors:
            raise errors.pop()
        return claim(owner, policy, now, lane, randomness)

    monkeypatch.setattr(memory.store.leases, "claim", flaky)
    with running(memory.worker()):
        eventually(lambda: is_done(session))
    assert errors == []


# what is skipped, and long sessions


FORBIDDEN: dict[str, dict[str, Any]] = {
    "mode disabled": {},
    "mode polluted": {},
    "ephemeral": {"ephemeral": True},
    "agent type": {"agent": {"type": "memory-agent", "id": "assistant"}},
}


@pytest.mark.parametrize("reason", FORBIDDEN)
def test_a_marked_session_that_may_not_be_remembered_is_skipped_and_cleared(
    memory: recollect.Memory, reason: str
) -> None:
    session = memory.space(SPACE).session("k", **FORBIDDEN[reason])
    session.append_many([{"role": "user", "content": "psst"}] * 3)
    if reason.startswith("mode"):
        session.set_mode(reason.removeprefix("mode "))
    raw(memory, "UPDATE sessions SET invalidated_at = last_seq, marked_at = 1, marked_by = 'idle'")
    raw(
        memory,
        "INSERT INTO jobs (space, kind, key, state, first_due_at)"
        " SELECT space, 'extract', id, 'due', marked_at FROM sessions",
    )
    reader = Reader()
    report = memory.work(reader)
    assert (report.processed, reader.seen) == (1, [])
    (span,) = memory.space(SPACE).sessions.ranges(session.id)
    assert (span.first_seq, span.last_seq) == (1, 3)
    assert (span.outcome, span.reason) == (Outcome.SKIPPED, reason)
    assert is_done(session)


def test_a_mark_beyond_the_last_record_with_nothing_left_to_read_is_just_cleared(
    memory: recollect.Memory,
) -> None:
    session = marked(memory)
    memory.work()
    memory.space(SPACE).sessions.invalidate(session.id, 100)
    reader = Reader()
    assert memory.work(reader).processed == 1
    assert (reader.seen, spans(memory, session)) == ([], [(1, 3)])
    assert is_done(session)


LONG_SPANS = [(first, first + 199) for first in range(1, 1200, 200)]


def long_session(memory: recollect.Memory) -> recollect.Session:
    session = memory.space(SPACE).session("long")
    for count in (1000, 200):
        session.append_many([{"role": "user", "content": "on and on"}] * count)
    return session


@pytest.mark.parametrize("outcome", [Outcome.NO_OUTPUT, Outcome.EXTRACTED, Outcome.SKIPPED])
def test_a_long_session_is_processed_and_recorded_in_pieces(
    memory: recollect.Memory, outcome: Outcome
) -> None:
    session = long_session(memory)
    reader = Reader()

    def process(work: Work) -> Verdict:
        reader.process(work)
        return Verdict(outcome=outcome)

    report = memory.work(Doing(process))
    assert (report.processed, report.records) == (1, 1200)
    assert spans(memory, session) == LONG_SPANS
    assert [(seqs[0], seqs[-1]) for _, seqs in reader.seen] == spans(memory, session)
    assert reader.seqs("long") == list(range(1, 1201))
    assert is_done(session)


def test_a_long_session_is_one_line_in_the_log(
    memory: recollect.Memory, caplog: pytest.LogCaptureFixture
) -> None:
    session = long_session(memory)
    with caplog.at_level(logging.INFO, logger="recollect.phase1"):
        memory.work()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == f"session {session.id}: records 1 to 1200 no_output"


def test_a_long_session_that_fails_in_the_middle_goes_on_from_there(opened: Opener) -> None:
    memory = opened(backoff_seconds=0)
    session = long_session(memory)
    reader = Reader()

    def process(work: Work) -> Verdict:
        if work.records[0].seq == 401 and job_of(memory, session).failures == 0:
            raise RuntimeError("no luck")
        return reader.process(work)

    report = memory.work(Doing(process))
    assert (report.processed, report.failed) == (1, 1)
    assert reader.seqs("long") == list(range(1, 1201))
    assert spans(memory, session) == LONG_SPANS


def test_a_verdict_may_end_in_the_middle_of_a_piece(memory: recollect.Memory) -> None:
    session = marked(memory, records=5)
    reader = Reader()

    def process(work: Work) -> Verdict:
        reader.process(work)
        first = work.records[0].seq
        return Verdict(outcome=Outcome.EXTRACTED, upto=min(first + 1, 5))

    assert memory.work(Doing(process)).records == 5
    assert [seqs for _, seqs in reader.seen] == [[1, 2, 3, 4, 5], [3, 4, 5], [5]]
    assert spans(memory, session) == [(1, 2), (3, 4), (5, 5)]
    assert is_done(session)


# work


def test_work_runs_everything_that_is_due(memory: recollect.Memory) -> None:
    sessions = [marked(memory, f"k{number}", 2) for number in range(23)]
    report = memory.work()
    assert (report.processed, report.records, report.failed) == (23, 46, 0)
    assert all(is_done(session) for session in sessions)
    assert not memory.work()


def test_work_leaves_unmarked_sessions_alone(memory: recollect.Memory) -> None:
    session = memory.space(SPACE).session("k")
    session.append("user", "still talking")
    assert memory.work() == WorkReport()
    assert session.state.processed_until is None


def test_work_on_all_marks_what_is_unprocessed_first(memory: recollect.Memory) -> None:
    sessions = [memory.space(name).session("k") for name in ("alice", "bob")]
    for session in sessions:
        session.append("user", "still talking")
    assert memory.work(all=True).processed == 2
    assert all(is_done(session) for session in sessions)


def test_work_leaves_what_backs_off_alone(memory: recollect.Memory) -> None:
    marked(memory)

    def process(_: Work) -> None:
        raise RuntimeError("no luck")

    processor = Doing(process)
    assert memory.work(processor).failed == 1
    assert memory.work(processor) == WorkReport()
    assert processor.calls == 1


def test_many_drains_at_once_process_everything_exactly_once(memory: recollect.Memory) -> None:
    sessions = marked_many(memory, 30)
    reader = Reader()
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(in_background(lambda: memory.work(reader)))
    assert sorted(key for key, _ in reader.seen) == sorted(session.key for session in sessions)
    assert all(spans(memory, session) == [(1, 1)] for session in sessions)


def test_memory_that_is_off_has_work_too(tmp_path: Any) -> None:
    with recollect.open(settings=Settings(data_dir="")) as memory:
        memory.space(SPACE).session("k").append("user", "gone with the process")
        assert memory.work(all=True) == WorkReport()


def test_a_worker_has_a_name_of_its_own(memory: recollect.Memory) -> None:
    names = {memory.worker().owner for _ in range(10)}
    assert len(names) == 10
    assert memory.worker(owner="me").owner == "me"


def test_a_release_is_what_it_says(memory: recollect.Memory) -> None:
    marked(memory)
    claim = memory.store.leases.claim("w", LeasePolicy(), None)
    assert isinstance(claim, Claim)
    assert memory.store.leases.release(claim) == Released()

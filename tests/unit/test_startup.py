"""X1: the start-up trigger is told of a session's beginning, and costs the host next to nothing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import StoreUnavailable
from recollect.memory import STARTUP_PAUSE
from recollect.processing import Verdict, Work
from recollect.types.records import Job, JobKind, JobState, Outcome

PAUSE = STARTUP_PAUSE.total_seconds()

Open = Callable[..., recollect.Memory]


@pytest.fixture
def opened(clock: ManualClock) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_it(**settings: Any) -> recollect.Memory:
            memory = recollect.open(":memory:", settings=settings, clock=clock)
            return stack.enter_context(memory)

        yield open_it


@dataclass
class Told:
    """A memory on which a worker has been; how often it was told of a session, and made one due."""

    memory: recollect.Memory
    looked: int = 0
    made_due: int = 0


@pytest.fixture
def told(opened: Open, monkeypatch: pytest.MonkeyPatch) -> Told:
    memory = opened()
    scanned(memory)
    told = Told(memory)
    leases = memory.store.leases
    get, make_due = leases.get, leases.make_due

    def counted_get(*names: Any) -> Job | None:
        told.looked += 1
        return get(*names)

    def counted_make_due(kind: JobKind) -> None:
        told.made_due += 1
        make_due(kind)

    monkeypatch.setattr(leases, "get", counted_get)
    monkeypatch.setattr(leases, "make_due", counted_make_due)
    return told


class Deaf:
    """Reads, and learns nothing."""

    def process(self, _: Work) -> Verdict:
        return Verdict(outcome=Outcome.NO_OUTPUT)


def scanned(memory: recollect.Memory) -> None:
    """As after a scan: the next one is a day away."""
    memory.store.leases.ensure_recurring(JobKind.STARTUP_SCAN, None)
    memory.store.leases.make_due(JobKind.STARTUP_SCAN)
    memory.worker(Deaf()).drain()
    assert not is_due(memory)


def is_due(memory: recollect.Memory) -> bool:
    jobs = memory.store.leases.jobs(None, 10)
    (scan,) = (job for job in jobs if job.kind is JobKind.STARTUP_SCAN)
    return scan.state is JobState.DUE and scan.due_at is None


def begin(memory: recollect.Memory, key: str) -> recollect.Session:
    session = memory.space().session(key, agent="assistant")
    session.append("user", "hello")
    return session


def test_sessions_that_begin_together_share_one_scan(told: Told, clock: ManualClock) -> None:
    begin(told.memory, "first")
    for number in range(5):
        clock.advance(PAUSE / 6)
        begin(told.memory, f"soon after {number}")
    assert (told.looked, told.made_due) == (1, 1)


def test_the_pause_is_over_to_the_second(told: Told, clock: ManualClock) -> None:
    begin(told.memory, "first")
    scanned(told.memory)
    clock.advance(PAUSE - 0.001)
    begin(told.memory, "too soon")
    assert (told.looked, is_due(told.memory)) == (1, False)
    clock.advance(0.001)
    begin(told.memory, "in time")
    assert (told.looked, is_due(told.memory)) == (2, True)


def test_only_what_is_told_starts_the_pause(told: Told) -> None:
    """A session that may not become memory takes nobody's turn."""
    space = told.memory.space()
    space.session("e", agent="assistant", ephemeral=True).append("user", "hello")
    space.session("c", agent="assistant", parent="p").append("user", "hello")
    assert told.looked == 0
    begin(told.memory, "a person's")
    assert told.looked == 1


def test_a_scan_that_is_due_already_is_not_made_due_again(told: Told, clock: ManualClock) -> None:
    begin(told.memory, "first")
    clock.advance(PAUSE)
    begin(told.memory, "second")
    assert (told.looked, told.made_due) == (2, 1), "most sessions cost no write"
    assert is_due(told.memory)


def test_where_no_worker_has_ever_been_nothing_is_written(opened: Open) -> None:
    memory = opened()
    begin(memory, "k")
    assert memory.store.leases.get(None, JobKind.STARTUP_SCAN, JobKind.STARTUP_SCAN) is None


def test_many_threads_tell_once(told: Told) -> None:
    barrier = threading.Barrier(8)

    def one(number: int) -> None:
        barrier.wait(20)
        begin(told.memory, f"thread {number}")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (told.looked, told.made_due) == (1, 1)


def test_the_next_session_is_told_after_one_that_failed(
    opened: Open,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = opened()
    scanned(memory)

    def broken(*_: object) -> None:
        raise StoreUnavailable("the store is having a moment")

    with monkeypatch.context() as moment:
        moment.setattr(memory.store.leases, "get", broken)
        assert begin(memory, "first").count() == 1
    assert "having a moment" in caplog.text
    clock.advance(PAUSE)
    begin(memory, "second")
    assert is_due(memory)


def test_a_worker_that_cannot_be_started_never_fails_the_host(
    opened: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    memory = opened(extract_on_session_start="worker", extractor="model")
    assert begin(memory, "k").count() == 1
    for thread in threading.enumerate():
        if thread.name == "recollect-startup":
            thread.join(20)
    assert "no model is set" in caplog.text
    assert "recollect-worker" not in {thread.name for thread in threading.enumerate()}

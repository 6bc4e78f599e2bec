"""Sweep and scan mark what nobody marked, within limits, once however many workers there are."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import recollect
from recollect import sweeps
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.sweeps import drop_old_uses, scan, sweep_idle
from recollect.types.records import JobKind, JobState, MarkCause
from tests.tables import every_row

SECONDS_MAX = 20.0
DAY = 86_400.0
HOUR = 3_600.0

Opener = Callable[..., recollect.Memory]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def opened(store_url: str, clock: ManualClock) -> Iterator[Opener]:
    with contextlib.ExitStack() as stack:

        def open_memory(**settings: object) -> recollect.Memory:
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


def talked(
    memory: recollect.Memory, key: str, space: str = "alice", source: str = "api"
) -> recollect.Session:
    session = memory.space(space).session(key, source=source)
    session.append("user", "hello")
    return session


def is_processed(session: recollect.Session) -> bool:
    return session.state.processed_until == 1


def causes(*sessions: recollect.Session) -> list[MarkCause | None]:
    return [session.state.marked_by for session in sessions]


def run_scan(memory: recollect.Memory, clock: ManualClock) -> int:
    return scan(memory.store, clock.now(), memory.settings)


# the idle sweep


def test_the_sweep_marks_exactly_what_was_idle_long_enough(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    old = talked(memory, "old")
    clock.advance(1)
    young = talked(memory, "young")
    clock.advance(599)
    assert sweep_idle(memory.store, clock.now(), memory.settings) == 1
    assert causes(old, young) == [MarkCause.IDLE, None]
    assert old.state.invalidated_at == 1
    clock.advance(1)
    assert sweep_idle(memory.store, clock.now(), memory.settings) == 1
    assert causes(old, young) == [MarkCause.IDLE, MarkCause.IDLE]
    assert sweep_idle(memory.store, clock.now(), memory.settings) == 0


def test_the_sweep_leaves_processed_disabled_and_empty_sessions_alone(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    processed, disabled = talked(memory, "processed"), talked(memory, "disabled")
    processed.sleep()
    memory.work()
    disabled.set_mode("disabled")
    empty = memory.space("alice").session("empty")
    clock.advance(DAY)
    assert sweep_idle(memory.store, clock.now(), memory.settings) == 0
    assert causes(processed, disabled, empty) == [None, None, None]


def test_the_sweep_can_be_of_one_space(memory: recollect.Memory, clock: ManualClock) -> None:
    hers, his = talked(memory, "k", "alice"), talked(memory, "k", "bob")
    clock.advance(DAY)
    assert sweep_idle(memory.store, clock.now(), memory.settings, space="bob") == 1
    assert causes(hers, his) == [None, MarkCause.IDLE]


def test_the_sweep_goes_on_until_nothing_is_left(
    memory: recollect.Memory, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps, "BATCH", 2)
    for number in range(5):
        talked(memory, f"k{number}")
    clock.advance(DAY)
    assert sweep_idle(memory.store, clock.now(), memory.settings) == 5


def test_new_words_put_a_sweep_off(memory: recollect.Memory, clock: ManualClock) -> None:
    session = talked(memory, "k")
    clock.advance(599)
    session.append("user", "still here")
    clock.advance(599)
    assert memory.sweep_idle() == 0
    clock.advance(1)
    assert memory.sweep_idle() == 1
    assert session.state.invalidated_at == 2


# clocks that go ahead


@pytest.mark.parametrize("ahead", [5.0, 3650 * DAY])
def test_all_is_all_whatever_a_clock_said(
    memory: recollect.Memory, clock: ManualClock, ahead: float
) -> None:
    session = talked(memory, "k")
    clock.advance(ahead)
    session.append("user", "My name is Marta.")
    clock.advance(-ahead)
    assert [planned.session.id for planned in memory.plan(all=True).sessions] == [session.id]
    assert memory.work(all=True).processed == 1
    assert session.state.processed_until == 2


@pytest.mark.parametrize("marks", ["sweep", "scan"])
def test_a_session_whose_time_lies_ahead_is_idle_from_now_on(
    memory: recollect.Memory, clock: ManualClock, marks: str
) -> None:
    session = memory.space("alice").session("k")
    clock.advance(3650 * DAY)
    session.append("user", "hello")
    clock.advance(-3650 * DAY)
    seconds = 600 if marks == "sweep" else 6 * HOUR
    run = memory.sweep_idle if marks == "sweep" else partial(run_scan, memory, clock)
    assert run() == 0, "it may have been touched this moment"
    assert session.state.last_activity_at == clock.now()
    clock.advance(seconds - 1)
    assert run() == 0
    clock.advance(1)
    assert run() == 1
    assert session.all()[0].at > clock.now(), "records keep the time they were given"


# the start-up scan


def test_the_scan_takes_sessions_inside_the_age_window_that_are_idle_long_enough(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    too_old = talked(memory, "too old")
    clock.advance(1)
    oldest = talked(memory, "oldest")
    clock.advance(30 * DAY - 6 * HOUR)
    newest = talked(memory, "newest")
    clock.advance(1)
    too_new = talked(memory, "too new")
    clock.advance(6 * HOUR - 1)
    assert run_scan(memory, clock) == 2
    expected = [None, MarkCause.SCAN, MarkCause.SCAN, None]
    assert causes(too_old, oldest, newest, too_new) == expected
    assert newest.state.invalidated_at == 1


def test_the_scan_takes_the_newest_first_and_no_more_than_its_limit(
    opened: Opener, clock: ManualClock
) -> None:
    memory = opened(scan_sessions_max=2)
    sessions = []
    for number in range(4):
        sessions.append(talked(memory, f"k{number}"))
        clock.advance(1)
    clock.advance(6 * HOUR)
    assert run_scan(memory, clock) == 2
    assert causes(*sessions) == [None, None, MarkCause.SCAN, MarkCause.SCAN]
    assert run_scan(memory, clock) == 2
    assert run_scan(memory, clock) == 0


def test_the_scan_takes_sixteen_by_default(memory: recollect.Memory, clock: ManualClock) -> None:
    for number in range(18):
        talked(memory, f"k{number}")
    clock.advance(6 * HOUR)
    assert run_scan(memory, clock) == 16


def test_the_scan_looks_at_no_more_rows_than_its_limit(opened: Opener, clock: ManualClock) -> None:
    memory = opened(scan_rows_max=2)
    behind = talked(memory, "behind")
    clock.advance(6 * HOUR)
    for number in range(2):
        talked(memory, f"too new {number}")
    assert run_scan(memory, clock) == 0
    assert causes(behind) == [None]


def test_the_scan_takes_sessions_of_allowed_sources(opened: Opener, clock: ManualClock) -> None:
    memory = opened(scan_sources="cli, vscode")
    sessions = [talked(memory, source, source=source) for source in ("api", "cli", "vscode")]
    clock.advance(6 * HOUR)
    assert run_scan(memory, clock) == 2
    assert causes(*sessions) == [None, MarkCause.SCAN, MarkCause.SCAN]


def test_the_scan_leaves_marked_processed_and_disabled_sessions_alone(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    processed, disabled = talked(memory, "processed"), talked(memory, "disabled")
    processed.sleep()
    memory.work()
    disabled.set_mode("polluted")
    marked = talked(memory, "marked")
    marked.sleep()
    clock.advance(6 * HOUR)
    assert run_scan(memory, clock) == 0
    assert causes(processed, disabled, marked) == [None, None, MarkCause.SLEEP]


def test_the_scan_sees_every_space(memory: recollect.Memory, clock: ManualClock) -> None:
    sessions = [talked(memory, "k", space) for space in ("alice", "bob")]
    clock.advance(6 * HOUR)
    assert run_scan(memory, clock) == 2
    assert causes(*sessions) == [MarkCause.SCAN] * 2


@every_row(
    ("name", "default"),
    [
        ("scan_sessions_max", 16),
        ("scan_rows_max", 5000),
        ("scan_age_days_max", 30.0),
        ("scan_idle_seconds", 21_600.0),
        ("idle_sweep_seconds", 600.0),
        ("usage_days", 90.0),
    ],
)
def test_the_limits_have_the_defaults_of_the_mission(name: str, default: float) -> None:
    assert getattr(Settings(), name) == default


# as jobs of a worker


def finished(memory: recollect.Memory, kind: JobKind) -> object:
    job = memory.store.leases.get(None, kind, kind.value)
    return None if job is None else job.finished_at


def test_a_started_worker_sweeps_and_what_it_marks_is_processed(
    opened: Opener, clock: ManualClock
) -> None:
    memory = opened(worker_tick_seconds=0.02, scan_idle_seconds=10 * DAY)
    session = talked(memory, "k")
    clock.advance(601)
    worker = memory.worker()
    worker.start()
    eventually(lambda: session.state.processed_until == 1)
    worker.stop()
    job = memory.store.leases.get(None, JobKind.IDLE_SWEEP, "idle-sweep")
    assert job is not None
    assert (job.state, job.failures) == (JobState.DUE, 0)
    assert (job.finished_at, job.due_at) == (clock.now(), clock.now() + timedelta(seconds=60))


def test_a_started_worker_scans_and_what_it_marks_is_processed(
    opened: Opener, clock: ManualClock
) -> None:
    memory = opened(worker_tick_seconds=0.02, idle_sweep_seconds=10 * DAY)
    session = talked(memory, "k")
    clock.advance(6 * HOUR)
    worker = memory.worker()
    worker.start()
    eventually(lambda: session.state.processed_until == 1)
    worker.stop()
    job = memory.store.leases.get(None, JobKind.STARTUP_SCAN, "startup-scan")
    assert job is not None
    assert job.due_at == clock.now() + timedelta(days=1)


def test_the_sweep_comes_round_again(opened: Opener, clock: ManualClock) -> None:
    memory = opened(worker_tick_seconds=0.02)
    worker = memory.worker()
    worker.start()
    eventually(lambda: finished(memory, JobKind.IDLE_SWEEP))
    session = talked(memory, "k")
    for _ in range(10):
        clock.advance(60)
        eventually(lambda: finished(memory, JobKind.IDLE_SWEEP) == clock.now())
    eventually(lambda: session.state.processed_until == 1)
    worker.stop()


def test_every_start_of_a_worker_scans_again(opened: Opener, clock: ManualClock) -> None:
    memory = opened(worker_tick_seconds=0.02, idle_sweep_seconds=10 * DAY)
    worker = memory.worker()
    for key in "ab":
        session = talked(memory, key)
        clock.advance(6 * HOUR)
        worker.start()
        eventually(partial(is_processed, session))
        worker.stop()


@pytest.mark.parametrize("kind", [JobKind.IDLE_SWEEP, JobKind.STARTUP_SCAN])
def test_only_one_of_two_workers_runs_it(
    opened: Opener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, kind: JobKind
) -> None:
    memory = opened(worker_batch=1)
    leases = memory.store.leases
    leases.ensure_recurring(kind, clock.now())
    runs: list[str] = []
    second = memory.worker(owner="second")

    def run(*_: Any) -> int:
        runs.append("run")
        assert not second.tick(), "both of them run it"
        leases.make_due(kind)  # nor does a start in between make it due while it runs
        assert not second.tick(), "both of them run it"
        return 0

    for name in ("sweep", "scan"):
        monkeypatch.setattr(f"recollect.worker.{name}", run)
    assert memory.worker(owner="first").tick().upkeep == 1
    assert not second.tick()
    assert runs == ["run"]


def test_two_started_workers_share_one_sweep_a_minute(
    opened: Opener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(worker_tick_seconds=0.01)
    mark_idle = memory.store.marks.mark_idle
    sweeps_run: list[object] = []

    def counting(*args: Any) -> list[tuple[str, str]]:
        sweeps_run.append(args[2])
        return mark_idle(*args)

    monkeypatch.setattr(memory.store.marks, "mark_idle", counting)
    workers = [memory.worker() for _ in range(2)]
    for worker in workers:
        worker.start()
    moments = [clock.now()]
    eventually(lambda: len(sweeps_run) == 1)
    for _ in range(5):
        eventually(lambda: finished(memory, JobKind.IDLE_SWEEP) == moments[-1])
        moments.append(clock.advance(60))
        eventually(lambda: len(sweeps_run) == len(moments))
    for worker in workers:
        worker.stop()
    assert sweeps_run == moments


def test_a_sweep_that_fails_is_counted_and_tried_again(
    opened: Opener, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened()
    memory.store.leases.ensure_recurring(JobKind.IDLE_SWEEP, clock.now())

    def broken(*_: Any) -> int:
        raise RuntimeError("no luck")

    worker = memory.worker()
    with monkeypatch.context() as patch:
        patch.setattr("recollect.worker.sweep", broken)
        assert worker.tick().failed == 1
    clock.advance(60)
    assert worker.tick().upkeep == 1
    job = memory.store.leases.get(None, JobKind.IDLE_SWEEP, "idle-sweep")
    assert job is not None
    assert (job.failures, job.last_error) == (0, None)


# uses and memories that are old


def test_a_sweep_drops_uses_that_are_older_than_they_are_kept(
    opened: Opener, clock: ManualClock
) -> None:
    memory = opened(usage_days=30.0)
    space = memory.space("alice")
    space.facts.add("likes saffron")
    block = space.context("saffron")
    assert space.cite(block, "m1", turn="one") == 1
    clock.advance(30 * DAY)
    assert drop_old_uses(memory.store, clock.now(), memory.settings) == 0
    assert space.cite(block, "m1", turn="one") == 0, "it is known that it was counted"
    clock.advance(1)
    memory.store.leases.ensure_recurring(JobKind.IDLE_SWEEP, clock.now())
    assert memory.worker().tick().upkeep == 1
    assert space.cite(block, "m1", turn="one") == 1


def test_the_scan_drops_memories_that_nobody_has_used_for_very_long(
    opened: Opener, clock: ManualClock
) -> None:
    """G2: with consolidation off no generation has them, and time alone makes them old."""
    memory = opened(extraction_retention_days=30, consolidation="off", extractor="rules")
    session = memory.space("alice").session("s")
    learned_from = session.append("user", "I moved to Lisbon in May.").session_id
    session.end()
    memory.work()
    sessions = memory.space("alice").sessions
    scan_again = partial(memory.store.leases.make_due, JobKind.STARTUP_SCAN)
    for days, is_there in ((29, True), (2, False)):
        clock.advance(days * DAY)
        memory.store.leases.ensure_recurring(JobKind.STARTUP_SCAN, clock.now())
        scan_again()
        memory.worker().drain()
        assert (sessions.extraction(learned_from) is not None) is is_there

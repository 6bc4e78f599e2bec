"""A worker is killed in the middle of its work and another one takes over.

Real processes, on the clock of this machine.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import recollect
from recollect.clock import SystemClock
from recollect.demo.stage import Change, Stage, Step, ranges_in_words
from recollect.domain import JobKind, Outcome, Range
from recollect.errors import StoreUnavailable
from recollect.worker import Verdict, Work

LEASE_SECONDS = 1.0
WORKER_SETTINGS: Mapping[str, Any] = {
    "lease_seconds": LEASE_SECONDS,
    "worker_concurrency": 1,
    "worker_grace_seconds": 5.0,
}
DOOMED, SECOND = "first", "second"  # the workers' names
DOOMED_WORKER = "from recollect.demo import stall; stall()"
PATIENCE_SECONDS = 20.0  # for a worker to get as far as it must
LOOK_SECONDS = 0.02


def play_workers(stage: Stage, address: str) -> Iterator[Step]:
    """A worker is killed in the middle of its work, and another one takes over."""
    if stage.memory.status(limit=0).store.location == ":memory:":
        yield Step(
            title="Workers, left out",
            story="A worker would be killed here. A store in the memory of this process has no "
            "room for another one; use a file.",
        )
        return
    settings = dataclasses.replace(stage.memory.settings, **WORKER_SETTINGS)
    with recollect.open(address, settings=settings) as memory:
        space = memory.space(stage.space.name)
        before = {state.id: state for state in space.sessions.find_invalidated(100)}
        killed = _kill_a_worker(address, settings, before)
        yield _killed(memory, space, killed)
        yield _taken_over(memory, space, killed, before)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Killed:
    """The end of a worker: who it was, what it had in hand, and when."""

    pid: int
    before: recollect.SessionState
    records: int
    at: datetime


def _kill_a_worker(
    address: str, settings: recollect.Settings, marked: Mapping[str, recollect.SessionState]
) -> _Killed:
    """Start a worker, wait until it has a session in hand, and kill it."""
    # By standard input: an address may hold a password, which no list of processes should show.
    told = {"store": address, "settings": dataclasses.asdict(settings)}
    with subprocess.Popen(
        [sys.executable, "-P", "-c", DOOMED_WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        watch = threading.Timer(PATIENCE_SECONDS, worker.kill)
        watch.start()
        try:
            worker.stdin.write(json.dumps(told) + "\n")
            worker.stdin.flush()
            heard = worker.stdout.readline()
        finally:
            watch.cancel()
            worker.kill()
    at = SystemClock().now()
    if not heard:
        raise StoreUnavailable("the demo's worker got nothing to do; does another one run there?")
    said = json.loads(heard)
    return _Killed(pid=worker.pid, before=marked[said["session"]], records=said["records"], at=at)


def stall() -> None:
    """The life of the worker that is killed: it claims a session, reads it, and gets no further.

    Its first line of standard input says where to work; it ends with that stream, so that it cannot
    outlive the demonstration.
    """
    told = json.loads(sys.stdin.readline())
    settings = recollect.Settings(**told["settings"] | {"worker_grace_seconds": 0.0})
    with recollect.open(told["store"], settings=settings) as memory:
        memory.worker(_Stalled(), owner=DOOMED).start()
        sys.stdin.read()


class _Stalled:
    """Says what it has in hand, and never finishes."""

    def process(self, work: Work) -> Verdict:
        print(json.dumps({"session": work.session.id, "records": len(work.records)}), flush=True)
        threading.Event().wait()
        return Verdict(outcome=Outcome.NO_OUTPUT)


def _killed(memory: recollect.Memory, space: recollect.Space, killed: _Killed) -> Step:
    session = killed.before
    job = memory.store.leases.get(space.name, JobKind.EXTRACT, session.id)
    after = space.sessions.get(session.id)
    assert job is not None
    assert after is not None
    return Step(
        title="A worker is killed",
        story=f"A worker, a process of its own, claims the session that was marked first, under a "
        f"lease of {LEASE_SECONDS:g} s which it renews. In the middle of its work it is killed "
        "with SIGKILL. Nothing is recorded, and the mark stands: the claim is all that is left.",
        changes=(Change(before=session, after=after),),
        results=(
            f"worker {DOOMED}, process {killed.pid}: claimed {session.key}",
            f"it has read {killed.records} records, and is killed",
            f"the job is {job.state}: {job.why(killed.at)}, with token {job.token}",
        ),
    )


def _taken_over(
    memory: recollect.Memory,
    space: recollect.Space,
    killed: _Killed,
    marked: Mapping[str, recollect.SessionState],
) -> Step:
    session = killed.before
    worker = memory.worker(owner=SECOND)
    worker.start()
    try:
        _wait_until_processed(space, marked)
    finally:
        worker.stop()
    after = space.sessions.get(session.id)
    job = memory.store.leases.get(space.name, JobKind.EXTRACT, session.id)
    assert after is not None
    assert job is not None
    ends = [(state, space.sessions.ranges(state.id)[-1]) for state in marked.values()]
    return Step(
        title="Another one takes over",
        story="A second worker starts, and distils sessions by rules. The others are done at once; "
        "the one of the dead worker as soon as its lease has run out, under a new token, so that "
        "the dead one could not finish it even if it came back. Every record is in exactly one "
        "range.",
        changes=(Change(before=session, after=after),),
        results=(
            *(_end_in_words(*end, killed) for end in sorted(ends, key=lambda end: end[1].at)),
            f"the job of {session.key} is {job.state}, with token {job.token}",
            f"the ranges of {session.key}: {ranges_in_words(space, session.id)}",
        ),
    )


def _wait_until_processed(space: recollect.Space, session_ids: Iterable[str]) -> None:
    clock, pause = SystemClock(), threading.Event()
    deadline = clock.now() + timedelta(seconds=PATIENCE_SECONDS)
    while space.sessions.find_invalidated(1):
        if clock.now() > deadline:
            raise StoreUnavailable("nobody took over in the demo; does another worker run there?")
        pause.wait(LOOK_SECONDS)
    assert all(space.sessions.ranges(each) for each in session_ids), "cleared, and not processed"


def _end_in_words(state: recollect.SessionState, end: Range, killed: _Killed) -> str:
    taken = f", taken over from {DOOMED}" if state.id == killed.before.id else ""
    seconds = (end.at - killed.at).total_seconds()
    return (
        f"{seconds:.1f} s after the kill: {state.key}, records {end.first_seq} to {end.last_seq} "
        f"{end.outcome}{taken}"
    )

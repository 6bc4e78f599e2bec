"""The demonstration: sample sessions played into a store, and every step told as a value.

The marks come by a clock that is turned by hand, so that ten idle minutes take no time; the workers
are real processes on a real clock, with a short lease. Printing is the command line's part.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import recollect
from recollect.clock import ManualClock, SystemClock
from recollect.domain import JobKind, Outcome
from recollect.errors import AppendKeyReused, StoreUnavailable
from recollect.worker import Verdict, Work

START = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
SECONDS_BETWEEN_MESSAGES = 20
THRESHOLD = 5
IDLE_SECONDS = 600
SETTINGS: Mapping[str, Any] = {
    "mark_threshold": THRESHOLD,
    "mark_unit": "records",
    "idle_sweep_seconds": IDLE_SECONDS,
}
LEASE_SECONDS = 1.0
WORKER_SETTINGS: Mapping[str, Any] = {
    "lease_seconds": LEASE_SECONDS,
    "worker_concurrency": 1,
    "worker_grace_seconds": 5.0,
}
DOOMED, SECOND = "first", "second"  # the workers' names
DOOMED_WORKER = "from recollect.demo import stall; stall()"
PATIENCE_SECONDS = 20.0  # for a worker to get as far as it must


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A session before and after what happened."""

    before: recollect.SessionState
    after: recollect.SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that is shown: what is said about it, what was appended, and what came of it."""

    title: str
    story: str
    said: tuple[recollect.Record, ...] = ()
    changes: tuple[Change, ...] = ()
    results: tuple[str, ...] = ()


def read_samples() -> dict[str, dict[str, Any]]:
    text = (resources.files("recollect") / "samples" / "sessions.json").read_text("utf-8")
    return {sample["name"]: sample for sample in json.loads(text)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where the play takes place."""

    memory: recollect.Memory
    space: recollect.Space
    clock: ManualClock
    samples: Mapping[str, Mapping[str, Any]] = field(default_factory=read_samples)

    def session(self, name: str) -> recollect.Session:
        sample = self.samples[name]
        return self.space.session(sample["key"], agent=sample["agent"], source="demo")

    def say(
        self, name: str, first: int = 1, last: int | None = None
    ) -> tuple[recollect.Record, ...]:
        """Append a stretch of a sample's messages, some seconds apart."""
        session = self.session(name)
        said: list[recollect.Record] = []
        for message in self.samples[name]["messages"][first - 1 : last]:
            self.clock.advance(SECONDS_BETWEEN_MESSAGES)
            said += session.append_many([message])
        return tuple(said)

    def state(self, session_id: str) -> recollect.SessionState:
        state = self.space.sessions.get(session_id)
        assert state is not None
        return state


def play(stage: Stage) -> Iterator[Step]:
    """How sessions are marked, in order; each step has happened when it is told."""
    yield _threshold(stage)
    yield _reset(stage)
    yield _compaction(stage)
    yield _sleep(stage)
    yield _end(stage)
    yield _idle_sweep(stage)
    yield from _compare_and_swap(stage)
    yield _skip_rule(stage)
    yield _idempotent_append(stage)


def _threshold(stage: Stage) -> Step:
    said = stage.say("trip", 1, THRESHOLD)
    before = stage.session("trip").state
    said += stage.say("trip", THRESHOLD + 1, THRESHOLD + 1)
    return Step(
        title="Threshold",
        story="The assistant talks with Ana on Telegram. Five unprocessed records wait quietly; "
        "the sixth is more than the threshold and marks the session, in the same transaction.",
        said=said,
        changes=(Change(before=before, after=stage.session("trip").state),),
    )


def _reset(stage: Stage) -> Step:
    said = stage.say("gift")
    session = stage.session("gift")
    before = session.state
    new = session.reset("Ana started over")
    return Step(
        title="Reset",
        story="Three records are below the threshold. Then Ana starts over: the old session is "
        "marked and closed, and an empty one stands behind the same key.",
        said=said,
        changes=(Change(before=before, after=stage.state(before.id)),),
        results=(f"{session.key} is session {new.id} now, with {len(session)} records.",),
    )


def _compaction(stage: Stage) -> Step:
    said = stage.say("bug")
    session = stage.session("bug")
    before = session.state
    session.compact("test_two_writers is flaky: two writers may collide over a lock.", retain=3)
    kept = ", ".join(str(record.seq) for record in session.all())
    return Step(
        title="Compaction",
        story="The coder's context gets too long. The old session is marked; the new one starts "
        "with a summary and the newest turn, by reference, so that nothing is learned twice.",
        said=said,
        changes=(Change(before=before, after=stage.state(before.id)),),
        results=(f"summary: {session.summary}", f"retained from the old session: records {kept}"),
    )


def _sleep(stage: Stage) -> Step:
    said = stage.say("review")
    session = stage.session("review")
    before = session.state
    after = session.sleep()
    return Step(
        title="Sleep",
        story="The coder has nothing to do and falls asleep, which marks its session. The session "
        "stays open; the next message simply goes on.",
        said=said,
        changes=(Change(before=before, after=after),),
    )


def _end(stage: Stage) -> Step:
    said = stage.say("farewell")
    session = stage.session("farewell")
    before = session.state
    session.end()
    return Step(
        title="End",
        story="Ben says goodbye. Ending marks and closes the session; his next message will open a "
        "new one under the same key.",
        said=said,
        changes=(Change(before=before, after=stage.state(before.id)),),
    )


def _idle_sweep(stage: Stage) -> Step:
    said = stage.say("silence")
    before = stage.session("silence").state
    early = stage.memory.sweep_idle(stage.space.name)
    stage.clock.advance(IDLE_SECONDS + 1)
    late = stage.memory.sweep_idle(stage.space.name)
    return Step(
        title="Idle sweep",
        story="Mira's process dies before it could mark anything. The sweep finds every session "
        "that has unprocessed records and was left without a word for ten minutes.",
        said=said,
        changes=(Change(before=before, after=stage.session("silence").state),),
        results=(
            f"at once: {early} marked; ten minutes later, on a clock turned by hand: {late} marked",
        ),
    )


def _compare_and_swap(stage: Stage) -> Iterator[Step]:
    sessions = stage.space.sessions
    found = sessions.find_invalidated(limit=10)
    trip = stage.session("trip").state
    read = trip.invalidated_at or 0
    said = stage.say("trip", THRESHOLD + 2)
    is_cleared = sessions.mark_processed(trip.id, read, expected_invalidated_at=read)
    after = stage.session("trip").state
    yield Step(
        title="A message arrives in between",
        story=f"A worker asks find_invalidated and gets {len(found)} sessions. It reads Ana's up "
        f"to record {read}. While it works, Ana writes again, and the mark rises. The worker's "
        "compare-and-swap expects the old mark, so it changes nothing: nothing is lost.",
        said=said,
        changes=(Change(before=trip, after=after),),
        results=(f"mark_processed(…, {read}, expected_invalidated_at={read}) -> {is_cleared}",),
    )
    again = after.invalidated_at or 0
    fresh = len(sessions.records(trip.id))
    is_cleared = sessions.mark_processed(trip.id, again, expected_invalidated_at=again)
    yield Step(
        title="Read again, then clear",
        story=f"The worker reads again, all {fresh} records this time. Now the mark is the one it "
        "expects: the mark is cleared and the cursor moves, in one step.",
        changes=(Change(before=after, after=stage.session("trip").state),),
        results=(f"mark_processed(…, {again}, expected_invalidated_at={again}) -> {is_cleared}",),
    )


def _skip_rule(stage: Stage) -> Step:
    agent = {"type": "memory-agent", "id": "assistant"}
    session = stage.space.session("memory:assistant", agent=agent, source="demo")
    before = session.state
    session.append_many(
        [
            {"role": "assistant", "content": f"Wrote ~/memory/people/ana, line {n}."}
            for n in range(8)
        ]
    )
    session.sleep()
    stage.clock.advance(IDLE_SECONDS + 1)
    swept = stage.memory.sweep_idle(stage.space.name)
    return Step(
        title="The skip rule",
        story="A memory-agent works on memory itself. Eight records, a sleep and an idle sweep: "
        "its session is never marked, or memory would feed on itself.",
        changes=(Change(before=before, after=session.state),),
        results=(f"marked by the sweep: {swept}",),
    )


def _idempotent_append(stage: Stage) -> Step:
    session = stage.session("review")
    first = session.append("user", "Merge it.", key="update-1017")
    before = session.state
    second = session.append("user", "Merge it.", key="update-1017")
    try:
        session.append("user", "Do not merge it.", key="update-1017")
        refusal = "stored"
    except AppendKeyReused as error:
        refusal = type(error).__name__
    return Step(
        title="A retry stores once",
        story="The network is flaky and the same message is sent twice under one idempotency key. "
        "It is stored once; the same key with other words is an error, not a second message.",
        said=(first,),
        changes=(Change(before=before, after=session.state),),
        results=(
            f"first append: record {first.seq}; second append: record {second.seq}",
            f"other words under the same key: {refusal}",
        ),
    )


# The workers: real processes, on the clock of this machine.


def play_workers(stage: Stage, address: str) -> Iterator[Step]:
    """A worker is killed in the middle of its work, and another one takes over."""
    reason = _why_without_workers(stage)
    if reason is not None:
        yield Step(title="Workers, left out", story=f"A worker would be killed here. {reason}")
        return
    settings = dataclasses.replace(stage.memory.settings, **WORKER_SETTINGS)
    with recollect.open(address, settings=settings) as memory:
        space = memory.space(stage.space.name)
        before = {state.id: state for state in space.sessions.find_invalidated(100)}
        killed = _kill_a_worker(address, settings, before)
        yield _killed(memory, space, killed)
        yield _taken_over(memory, space, killed)
        yield _worked(memory, stage.samples["trip"], space)


def _why_without_workers(stage: Stage) -> str | None:
    whole, own = stage.memory.status(limit=0), stage.memory.status(stage.space.name, limit=0)
    if whole.store.location == ":memory:":
        return "A store in the memory of this process has no room for another one; use a file."
    if (whole.marked_count, whole.waiting_count) != (own.marked_count, own.waiting_count):
        return (
            "Workers work for a whole store, and this one holds other sessions that are not "
            "processed yet: they are left alone."
        )
    return None


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


class _Reader:
    """Reads every record, and remembers what it read and when."""

    def __init__(self, awaited: str) -> None:
        self.read: list[tuple[datetime, Work]] = []
        self.has_read = threading.Event()
        self._awaited = awaited

    def process(self, work: Work) -> Verdict:
        self.read.append((SystemClock().now(), work))
        if work.session.id == self._awaited:
            self.has_read.set()
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


def _taken_over(memory: recollect.Memory, space: recollect.Space, killed: _Killed) -> Step:
    session = killed.before
    reader = _Reader(session.id)
    worker = memory.worker(reader, owner=SECOND)
    worker.start()
    is_done = reader.has_read.wait(PATIENCE_SECONDS)
    worker.stop()
    if not is_done:
        raise StoreUnavailable("nobody took over in the demo; does another worker run there?")
    after = space.sessions.get(session.id)
    assert after is not None
    return Step(
        title="Another one takes over",
        story="A second worker starts. The other sessions are processed at once; the one of the "
        "dead worker as soon as its lease has run out, under a new token, so that the dead one "
        "could not finish it even if it came back. Every record is in exactly one range.",
        changes=(Change(before=session, after=after),),
        results=(
            *(_read_in_words(at, work, killed) for at, work in reader.read),
            f"the ranges of {session.key}: {_ranges_in_words(space, session.id)}",
        ),
    )


def _read_in_words(at: datetime, work: Work, killed: _Killed) -> str:
    is_theirs = work.session.id == killed.before.id
    taken = f", taken over from {DOOMED}, token {work.claim.token}" if is_theirs else ""
    seconds = (at - killed.at).total_seconds()
    return (
        f"{seconds:.1f} s after the kill, worker {work.claim.owner}: {work.session.key}, records "
        f"{work.records[0].seq} to {work.records[-1].seq}{taken}"
    )


def _ranges_in_words(space: recollect.Space, session_id: str) -> str:
    ranges = space.sessions.ranges(session_id)
    return ", ".join(f"{each.first_seq}–{each.last_seq} {each.outcome}" for each in ranges)


def _worked(memory: recollect.Memory, sample: Mapping[str, Any], space: recollect.Space) -> Step:
    session = space.session(sample["key"], agent=sample["agent"])
    said = session.append("user", "And a high chair, please. That is all.", name="Ana")
    before = session.sleep()
    report = memory.work()
    return Step(
        title="Work goes on where it stopped",
        story="Ana writes once more, and her session is marked again. All before was processed, by "
        "the compare-and-swap above. What recollect work does is no different: it reads what comes "
        "after the cursor, and nothing twice.",
        said=(said,),
        changes=(Change(before=before, after=session.state),),
        results=(
            f"work() -> processed {report.processed}, failed {report.failed}",
            f"the ranges of {session.key}: {_ranges_in_words(space, session.id)}",
        ),
    )

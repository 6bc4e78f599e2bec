"""Processes with a worker or an appender in them, for a test to kill, stop and continue at will.

Run as a program it is a nursery: it has imported everything and opened nothing, and forks a fresh
process for each JSON object it reads, {"start": {…}}; {"wait": pid} answers a wait status. Imported
it is the test's side of it. What a process does it says in a journal of its own, one line per
write(), which a kill -9 cannot take back.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import psycopg

import recollect
import recollect.store.postgres
from recollect import crashpoints
from recollect.clock import ManualClock
from recollect.interfaces.cli.running import stop_signals
from recollect.store.sqlite import SqliteDatabase
from recollect.types.facts import Draft, FactQuery, NewFact, Trust
from recollect.types.records import JobState, Outcome, SessionState
from recollect.worker import Verdict, Work, Worker

SPACES = ("alice", "bob")
KEYS = ("telegram:1:main", "telegram:2:main", "slack:1:main")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS_MAX = 30.0  # far above what anything here takes
PAGE = 500
# Short leases, so that the work of the dead is taken over soon; no job is given up.
SETTINGS: dict[str, Any] = {
    "lease_seconds": 0.3,
    "worker_tick_seconds": 0.05,
    "worker_concurrency": 2,
    "backoff_seconds": 0.05,
    "job_takeovers_max": 1000,
    "job_failures_max": 1000,
    "worker_grace_seconds": 0.1,
    "sqlite_busy_timeout_ms": 30_000,
}

Order = dict[str, Any]


# the processes


class Journal:
    """What one process says it did."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **entry: Any) -> None:
        os.write(self._file, json.dumps(entry).encode() + b"\n")


class Slow:
    """Takes a moment for every session, and sometimes stops in the middle of it."""

    def __init__(self, journal: Journal, seed: int, *, stubborn: float = 0.0) -> None:
        self._journal = journal
        self._choice = random.Random(seed)
        self._stubborn = stubborn
        self._lock = threading.Lock()

    def process(self, work: Work) -> Verdict:
        with self._lock:
            moment, whole, mood = (self._choice.random() for _ in range(3))
        first, last = work.records[0].seq, work.records[-1].seq
        self._journal.write(processing=work.session.id, attempt=work.claim.attempt)
        threading.Event().wait(moment * 0.01)  # what a model would take, shortened
        if mood < self._stubborn:
            wait_for(work.is_lost)
        upto = last if whole < 0.7 else (first + last) // 2
        return Verdict(
            outcome=Outcome.EXTRACTED,
            reason=work.claim.owner,
            upto=upto,
            draft=draft_of(work, upto),
            extractor="slow/1",
        )


class Telling:
    """Learns from every record, at once."""

    def process(self, work: Work) -> Verdict:
        return Verdict(outcome=Outcome.EXTRACTED, draft=draft_of(work, work.upto))


def draft_of(work: Work, upto: int) -> Draft:
    """A fact for every record, and a memory that grows with the session."""
    heard = [record for record in work.records if record.seq <= upto]
    before = "" if work.previous is None else work.previous.raw_memory + " "
    return Draft(
        upto=upto,
        raw_memory=before + " ".join(record.content for record in heard),
        rollout_summary=f"up to {upto}",
        facts=tuple(
            NewFact(
                content=f"somebody said {record.content}",
                seq=record.seq,
                seq_to=record.seq,
                valid_from=record.at,
                trust=Trust.USER,
            )
            for record in heard
        ),
    )


def work_until_told(order: Order, journal: Journal) -> None:
    """A worker in the background, as `recollect worker` has it: SIGTERM stops it in good order."""
    with stop_signals() as wait:
        journal.write(ready=True)
        work_and_wait(order, journal, lambda: wait(None))


def work_and_wait(order: Order, journal: Journal, wait_until_told: Callable[[], object]) -> None:
    with recollect.open(order["url"], settings=order["settings"]) as memory:
        processor = Slow(journal, order["seed"], stubborn=order.get("stubborn", 0.0))
        worker = memory.worker(processor, owner=order["name"])
        worker.start()
        journal.write(working=True)
        wait_until_told()
        worker.stop()


def append_until_killed(order: Order, journal: Journal) -> None:
    """Appends, and all that marks, to sessions of two spaces."""
    choice = random.Random(order["seed"])
    with recollect.open(order["url"], settings=order["settings"]) as memory:
        sessions = [memory.space(space).session(key) for space in SPACES for key in KEYS]
        for number in itertools.count():
            texts = [f"{order['name']}-{number}-{part}" for part in range(4)]
            session = choice.choice(sessions)
            kinds = ("append", "many", "sleep", "reset", "compact", "end")
            kind = choice.choices(kinds, (10, 6, 4, 1, 1, 1))[0]
            match kind:
                case "append":
                    session.append("user", texts[0])
                    journal.write(acknowledged=texts[:1])
                case "many":
                    session.append_many([{"role": "user", "content": text} for text in texts])
                    journal.write(acknowledged=texts)
                case "sleep":
                    session.sleep()
                case "reset":
                    session.reset()
                case "compact":
                    session.compact("what was said", retain=2)
                case _:
                    session.end()
            threading.Event().wait(choice.random() * order["pause"])


def die_at_a_point(order: Order, journal: Journal) -> None:
    """Takes over what is there and processes it; killed at the n-th time it is at a point."""
    left = itertools.count(order["nth"], -1)

    def die(name: str) -> None:
        if name == order["point"] and next(left) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    clock = ManualClock(EPOCH + timedelta(hours=order["nth"]))
    with recollect.open(order["url"], settings=order["settings"], clock=clock) as memory:
        processor = Slow(journal, order["seed"])
        worker = memory.worker(processor, owner=order["name"])
        crashpoints.arm(die)
        worker.drain()
        crashpoints.arm(None)


def freeze_in_the_middle(order: Order, journal: Journal) -> None:
    """One tick; stops itself when its processing is done and only the record is missing.

    Not in the middle of a renewal: a transaction that stands still holds its locks, and a lock is
    no lease.
    """
    writing, continued = threading.Lock(), threading.Event()
    signal.signal(signal.SIGCONT, lambda *_: continued.set())

    class Freezing:
        def process(self, work: Work) -> Verdict:
            with writing:
                journal.write(freezing=work.session.id)
                os.kill(os.getpid(), signal.SIGSTOP)
                wait_for(continued.is_set)
            if order["notices"]:
                wait_for(work.is_lost)
            draft = draft_of(work, work.upto)
            return Verdict(outcome=Outcome.EXTRACTED, reason="zombie", draft=draft)

    with recollect.open(order["url"], settings=order["settings"]) as memory:
        renew = memory.store.leases.renew

        def renew_unless_frozen(*args: Any) -> Any:
            with writing:
                return renew(*args)

        cast("Any", memory.store.leases).renew = renew_unless_frozen
        worker = memory.worker(Freezing(), owner="zombie")
        thread = threading.Thread(target=tick, args=(worker, journal))
        thread.start()
        while thread.is_alive():
            thread.join(0.01)  # the main thread stays free for signals


def tick(worker: Worker, journal: Journal) -> None:
    report = worker.tick()
    journal.write(processed=report.processed, stale=report.stale, failures=report.failed)


def wait_for(condition: Callable[[], object], seconds: float = SECONDS_MAX) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.002)


LIVES: dict[str, Callable[[Order, Journal], None]] = {
    "work": work_until_told,
    "append": append_until_killed,
    "point": die_at_a_point,
    "freeze": freeze_in_the_middle,
}


def live(order: Order) -> int:
    journal = Journal(order["journal"])
    try:
        LIVES[order["life"]](order, journal)
    except BaseException as error:
        journal.write(failed=repr(error), trace=traceback.format_exc())
        return 1
    journal.write(finished=True)
    return 0


def warm_up() -> None:
    """Load what is loaded when it is first used, so that no life has to."""
    with recollect.open(":memory:", settings=SETTINGS) as memory:
        session = memory.space("warm").session("k")
        session.append("user", "warm")
        session.sleep()
        memory.worker(Telling()).drain()


def main(warm: Callable[[], None] = warm_up) -> None:
    warm()
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            pid = os.fork()
            if pid == 0:
                # Not sys.exit: this process is a copy and has nothing of its own to clean up.
                os._exit(live(order["start"]))
            answer = pid
        else:
            answer = os.waitpid(order["wait"], 0)[1]
        print(answer, flush=True)


# the test's side


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One process, and the journal it writes to."""

    name: str
    pid: int
    journal: Path

    def entries(self) -> list[dict[str, Any]]:
        # A line that the kill cut off was never finished, so it says nothing.
        text = self.journal.read_text() if self.journal.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    def said(self, word: str) -> list[Any]:
        return [entry[word] for entry in self.entries() if word in entry]

    def wait_until_it_says(self, word: str) -> None:
        wait_for(lambda: self.said(word) or self.said("failed"))
        assert not self.said("failed"), self.said("trace")

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


NURSERIES: dict[str, subprocess.Popen[str]] = {}
ROOT = Path(__file__).parents[2]


def nursery_of(module: str) -> subprocess.Popen[str]:
    """The nursery of a module's lives: one for all tests of a process, since a start takes long."""
    found = NURSERIES.get(module)
    if found is None or found.poll() is not None:
        found = NURSERIES[module] = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    return found


def close_nurseries() -> None:
    while NURSERIES:
        NURSERIES.popitem()[1].communicate()


class Children:
    """Forks processes from a warm nursery; none outlives the `with` block."""

    module = "tests.crash.worker_child"

    def __init__(
        self, directory: Path, url: str, settings: Mapping[str, object] | None = None
    ) -> None:
        self._directory = directory
        self._order = {"url": url, "settings": SETTINGS | dict(settings or {})}
        self._alive: set[int] = set()
        self._nursery = nursery_of(self.module)
        self.started: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pid in list(self._alive):
            self.kill(pid)

    def start(self, life: str, **order: object) -> Child:
        name = f"{life}-{len(self.started)}"
        journal = self._directory / f"{name}.journal"
        whole = {**self._order, "name": name, "journal": str(journal), "life": life, **order}
        pid = self._ask({"start": whole})
        self._alive.add(pid)
        child = Child(name=name, pid=pid, journal=journal)
        self.started.append(child)
        return child

    def kill(self, pid: int) -> int:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return self.wait(pid)

    def wait(self, pid: int) -> int:
        """The exit code of a process; -9 if it was killed."""
        status = self._ask({"wait": pid})
        self._alive.discard(pid)
        return os.waitstatus_to_exitcode(status)

    def failures(self) -> list[str]:
        return [trace for child in self.started for trace in child.said("trace")]

    def acknowledged(self) -> list[str]:
        return [t for child in self.started for texts in child.said("acknowledged") for t in texts]

    def takeovers(self) -> int:
        """How many sessions were processed by somebody who had taken them over."""
        return sum(attempt > 1 for child in self.started for attempt in child.said("attempt"))

    def _ask(self, order: dict[str, object]) -> int:
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(json.dumps(order) + "\n")
        self._nursery.stdin.flush()
        return int(self._nursery.stdout.readline())


def drain(memory: recollect.Memory) -> None:
    """Process all there is; what dead workers held is taken over when their leases run out."""

    def is_empty() -> bool:
        memory.work(Telling(), all=True)
        status = memory.status()
        # A sweep that died with its worker is claimed until its lease runs out, too.
        left = [job for job in status.jobs if job.kind == "extract" or job.state == "claimed"]
        return not (status.marked_count or status.waiting_count or left)

    wait_for(is_empty)


def assert_all_is_processed_exactly_once(
    memory: recollect.Memory, acknowledged: Iterable[str] = ()
) -> int:
    """Nothing lost, nothing doubled, nothing stuck; returns how many records there are."""
    contents: Counter[str] = Counter()
    for space in memory.spaces():
        for session in sessions_of(memory, space):
            assert_ranges_are_sound(memory, session)
            assert (session.processed_until or 0) == session.last_seq, session
            assert session.invalidated_at is None, session
            texts = texts_of(memory, session)
            contents.update(texts)
            assert_learned_exactly_once(memory, session, texts)
    assert not [text for text, times in contents.items() if times > 1], "stored twice"
    assert not [text for text in acknowledged if text not in contents], "acknowledged and lost"
    assert set(memory.store.leases.counts(None)) <= {JobState.DUE}, "a job is stuck"
    return contents.total()


def assert_learned_exactly_once(
    memory: recollect.Memory, session: SessionState, texts: list[str]
) -> None:
    """P3: every record's effects are there once; the extraction speaks of each record once."""
    facts: Counter[str] = Counter()
    query = FactQuery(at=session.last_activity_at, every=True, session_id=session.id)
    page = memory.store.facts.list(session.space, query, PAGE)
    while page:
        for fact in page:
            facts[fact.content] += len(fact.sources)
        page = memory.store.facts.list(
            session.space, dataclasses.replace(query, before=page[-1]), PAGE
        )
    assert facts == Counter(f"somebody said {text}" for text in texts), session
    extraction = memory.store.extractions.get(session.space, session.id)
    said = "" if extraction is None else extraction.raw_memory
    assert Counter(said.split()) == Counter(" ".join(texts).split()), session


def assert_ranges_are_sound(memory: recollect.Memory, session: SessionState) -> None:
    """Invariant 3: every record up to the cursor is in exactly one range, none above it is."""
    next_seq = 1
    for span in memory.space(session.space).sessions.ranges(session.id):
        assert span.first_seq == next_seq, (session, span)
        assert span.last_seq >= span.first_seq, (session, span)
        next_seq = span.last_seq + 1
    assert next_seq - 1 == (session.processed_until or 0), session


def assert_marks_and_jobs_agree(memory: recollect.Memory) -> None:
    open_jobs = {job.key for job in memory.store.leases.jobs(None, PAGE) if job.kind == "extract"}
    marked = {session.id for session in memory.store.marks.marked(None, PAGE)}
    assert open_jobs == marked


def sessions_of(memory: recollect.Memory, space: str) -> list[SessionState]:
    found: list[SessionState] = []
    page = memory.space(space).sessions.list(PAGE)
    while page:
        found += page
        page = memory.space(space).sessions.list(PAGE, before=page[-1])
    return found


def texts_of(memory: recollect.Memory, session: SessionState) -> list[str]:
    found: list[str] = []
    sessions = memory.space(session.space).sessions
    page = sessions.records(session.id, limit=PAGE)
    while page:
        found += [record.content for record in page]
        page = sessions.records(session.id, after=page[-1].seq, limit=PAGE)
    return found


def dump(memory: recollect.Memory) -> dict[str, list[str]]:
    """Every row of every table."""
    database = cast("Any", memory.store)._database
    if isinstance(database, SqliteDatabase):
        return database.read(None, lambda c: _dump_sqlite(cast("Any", c)._execute))
    with psycopg.connect(database._conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {database._schema}".encode())
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        ).fetchall()
        return {
            name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}".encode()).fetchall()))
            for (name,) in names
        }


# What is behind an index of words are tables of its own; it cannot be read as one itself.
REAL_TABLES = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
)


def _dump_sqlite(execute: Callable[[str], Any]) -> dict[str, list[str]]:
    names = execute(REAL_TABLES).fetchall()
    return {
        name: sorted(map(repr, execute(f"SELECT * FROM {name}").fetchall())) for (name,) in names
    }


if __name__ == "__main__":
    main()

"""Several worker processes on one PostgreSQL: how much more they do, and who waits for whom.

Real `recollect worker` processes with everything at its defaults and no model, so that the rules
distil. Nobody can claim before all are ready: we hold the table of jobs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import recollect
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import open_memory, with_schema

GROUP = "worker processes on PostgreSQL, rules, sessions of 10 records"
FAIR_GROUP = "spaces that share two workers, marked one after the other: their last session"
COUNTS = (1, 2, 4)
RECORDS = 10
WORKER = "from recollect.interfaces.cli.work import worker; worker()"
LOCK = "LOCK TABLE {}.jobs IN SHARE ROW EXCLUSIVE MODE"
LOOK_SECONDS = 0.02
DRAIN_SECONDS_MAX = 600.0
# In the order in which they were marked. Claims go by that (mission M4), over all spaces.
LOADS = {"large": 100, "medium": 10, "small": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What came of a load: for each space, when its sessions were finished, from the start."""

    seconds: float
    finished: dict[str, list[float]]

    @property
    def sessions(self) -> int:
        return sum(len(each) for each in self.finished.values())


def measure_workers(run: Run) -> Iterator[Line]:
    """Throughput with one, two and four processes; then two of them with unequal spaces."""
    if run.postgres_url is None:
        yield skipped(GROUP, "throughput", run.postgres_missing)
        yield skipped(FAIR_GROUP, "fairness", run.postgres_missing)
        return
    sessions = run.scaled(600, 60)
    alone: float | None = None
    for count in COUNTS:
        loads = {f"space {number}": sessions // 4 for number in range(4)}
        drained = _drained(run.postgres_url, f"recollect_bench_workers_{count}", loads, count)
        alone = alone or drained.seconds
        yield _throughput(drained, count, alone)
    scale = run.scaled(6, 1)
    loads = {space: many * scale for space, many in LOADS.items()}
    drained = _drained(run.postgres_url, "recollect_bench_workers_fair", loads, 2)
    yield from _fairness(drained, loads)


def _throughput(drained: Drained, count: int, alone: float) -> Line:
    seconds = drained.seconds
    per_second = f"{drained.sessions / seconds:,.0f} sessions/s"
    per_second += f", {drained.sessions * RECORDS / seconds:,.0f} records/s"
    times = "" if count == 1 else f"; {alone / seconds:.2f} × as much as one"
    return Line(
        group=GROUP,
        name=f"{count} process{'es' if count > 1 else ''}: wall per session",
        unit="ms",
        measured=1000 * seconds / drained.sessions,
        limit=None if count == 1 else 1000 * alone / drained.sessions,
        note=f"{per_second}{times}; workers and server on {os.cpu_count()} cores",
    )


def _fairness(drained: Drained, loads: dict[str, int]) -> Iterator[Line]:
    """How long each waits, beside what it would take if spaces had turns of equal length."""
    pace = drained.seconds / drained.sessions
    for space, many in loads.items():
        last = max(drained.finished[space])
        share = min(many * len(loads) * pace, drained.seconds)
        yield Line(
            group=FAIR_GROUP,
            name=f"{space}, {many} of {drained.sessions} sessions",
            unit="s",
            measured=last,
            limit=share,
            note=f"the first after {min(drained.finished[space]):.2f} s,"
            f" all spaces after {drained.seconds:.2f} s; limit: if spaces took turns",
        )


def _drained(url: str, schema: str, loads: dict[str, int], workers: int) -> Drained:
    import psycopg  # an extra; without it there is no URL

    address = with_schema(url, schema)
    with open_memory(address) as memory:
        for space, many in loads.items():
            _fill(memory, space, many)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(b"BEGIN")
        connection.execute(LOCK.format(schema).encode())
        with _working(address, workers):
            _await_claims(connection, schema, workers)
            began = time.time()
            connection.execute(b"COMMIT")
            _await_end(connection, schema)
        return _read(connection, schema, began)


def _fill(memory: recollect.Memory, space: str, sessions: int) -> None:
    for number in range(sessions):
        session = memory.space(space).session(f"talk:{number}")
        # More than mark_threshold of them, so that the session is marked.
        said = [f"I moved to Town{number}x{turn} in May." for turn in range(RECORDS)]
        session.append_many([{"role": "user", "content": text} for text in said])


def _await_claims(connection: Any, schema: str, workers: int) -> None:
    """Until every worker waits for the table."""
    waiting = f"SELECT count(*) FROM pg_locks WHERE relation = '{schema}.jobs'::regclass"
    _await(connection, f"{waiting} AND NOT granted", workers)


def _await_end(connection: Any, schema: str) -> None:
    left = f"SELECT count(*) FROM {schema}.jobs WHERE kind = 'extract' AND state <> 'idle'"
    _await(connection, left, 0)


def _await(connection: Any, query: str, expected: int) -> None:
    over = time.monotonic() + DRAIN_SECONDS_MAX
    while connection.execute(query.encode()).fetchone()[0] != expected:
        if time.monotonic() > over:
            raise RuntimeError(f"the workers were not there after {DRAIN_SECONDS_MAX:g} s")
        time.sleep(LOOK_SECONDS)


def _read(connection: Any, schema: str, began: float) -> Drained:
    found: dict[str, list[float]] = {}
    done = (
        f"SELECT space, finished_at, state FROM {schema}.jobs"
        " WHERE kind = 'extract' ORDER BY finished_at"
    )
    for space, finished_at, state in connection.execute(done.encode()):
        if finished_at is None or state != "idle":
            raise RuntimeError(f"a session of {space} was not finished: {state}")
        found.setdefault(space, []).append(finished_at / 1_000_000 - began)
    return Drained(seconds=max(max(each) for each in found.values()), finished=found)


@contextmanager
def _working(address: str, count: int) -> Iterator[None]:
    """So many worker processes; they have to be ready before anything is timed."""
    arguments = [sys.executable, "-c", WORKER, "--store", address, "--quiet", "--json"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")
    }
    started = [
        subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, text=True
        )
        for _ in range(count)
    ]
    try:
        for worker in started:
            assert worker.stderr is not None
            json.loads(worker.stderr.readline())["ready"]
        yield
    finally:
        for worker in started:
            worker.terminate()
        for worker in started:
            worker.communicate()

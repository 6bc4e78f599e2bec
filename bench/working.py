"""What a worker costs that has nothing to do, and whether clean sessions slow its tick down."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import apsw

from bench.bare_claims import PostgresStatements
from bench.children import ask, start_child
from bench.marked import MarkedSessions
from bench.measure import Action, take_turns
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import make_key, open_memory, sqlite_address, with_schema
from bench.takeover import measure_takeover

FEW, MANY = 10, 100_000
IDLE_GROUP = "a worker with nothing to do"
TICK_GROUP = "a tick of the worker, among 10 and among 100,000 clean sessions with idle jobs"
IDLE_MS_MAX = 30.0  # per minute: what rounds to 0.0 % of a core

Store = tuple[str, MarkedSessions]


def measure_worker(run: Run) -> Iterator[Line]:
    """Idle CPU, the tick, and how soon a dead worker's session is taken over."""
    yield from _idle(run)
    yield from _ticks(run, "SQLite", lambda sessions: _sqlite_store(run, sessions))
    url = run.postgres_url
    if url is None:
        yield skipped(TICK_GROUP, "PostgreSQL", run.postgres_missing)
    else:
        yield from _ticks(run, "PostgreSQL", lambda sessions: _postgres_store(url, sessions))
    yield from measure_takeover(run)


def _idle(run: Run) -> Iterator[Line]:
    seconds = run.scaled(60, 5)  # a minute has two ticks and a sweep in it
    addresses = {"SQLite": sqlite_address(run.directory / "idle.db")}
    if run.postgres_url is not None:
        addresses["PostgreSQL"] = with_schema(run.postgres_url, "recollect_bench_idle")
    with ExitStack() as stack:
        children = {
            database: stack.enter_context(start_child("idle", address))
            for database, address in addresses.items()
        }
        time.sleep(2)  # the scan at the start is not idleness
        before = {database: _cpu_ms(child) for database, child in children.items()}
        time.sleep(seconds)
        after = {database: _cpu_ms(child) for database, child in children.items()}
    for database in children:
        yield Line(
            group=IDLE_GROUP,
            name=f"{database}: CPU of its process per minute",
            unit="ms",
            measured=(after[database] - before[database]) * 60 / seconds,
            target=IDLE_MS_MAX,
            is_ratio=False,
            note="30 ms are 0.05 % of a core, shown as 0.0"
            if not run.quick
            else f"quick: over {seconds} s",
        )
    if run.postgres_url is None:
        yield skipped(IDLE_GROUP, "PostgreSQL", run.postgres_missing)


def _cpu_ms(child: subprocess.Popen[str]) -> float:
    return float(ask(child, "cpu")) * 1000


def _ticks(run: Run, database: str, make: Callable[[int], Store]) -> Iterator[Line]:
    many = run.scaled(MANY, 10_000)
    in_process = database == "SQLite"
    with ExitStack() as stack:
        stores = {"few": make(FEW), "many": make(many)}
        memories = {
            name: stack.enter_context(open_memory(address)) for name, (address, _) in stores.items()
        }
        for _, marked in stores.values():
            stack.callback(marked.close)
        workers = {name: memory.worker() for name, memory in memories.items()}
        ticks: dict[str, Action] = {name: worker.tick for name, worker in workers.items()}
        sweeps: dict[str, Action] = {name: each.sweep_idle for name, each in memories.items()}
        one_due: dict[str, Action] = {
            name: lambda marked=marked: marked.mark_again(1)  # type: ignore[misc]
            for name, (_, marked) in stores.items()
        }
        for name, contenders, before in (
            ("nothing due", ticks, None),
            ("one session due, processed", ticks, one_due),
            ("the idle sweep", sweeps, None),
        ):
            shortest = run.scaled(400, 30) if in_process else run.scaled(800, 60)
            costs = take_turns(
                contenders,
                repetitions=shortest,
                calls=1 if before or not in_process else 4,
                before=before,
            )
            few, several = costs["few"], costs["many"]
            yield Line(
                group=TICK_GROUP,
                name=f"{database}: {name}, {'CPU' if in_process else 'wall'}",
                unit="µs",
                measured=several.cpu_us if in_process else several.wall_us,
                limit=few.cpu_us if in_process else few.wall_us,
                target=1.1,
                note="" if not run.quick else f"quick: {many:,} instead of {MANY:,}",
            )


def _sqlite_store(run: Run, sessions: int) -> Store:
    path = run.directory / f"tick-{sessions}.db"
    address = sqlite_address(path, synchronous="off")
    make_key(address)
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(60_000)
    connection.pragma("synchronous", "off")
    with connection:
        marked = MarkedSessions(connection, sessions)
        marked.add_idle_jobs()
    return address, marked


def _postgres_store(url: str, sessions: int) -> Store:
    import psycopg  # an extra; without it there is no URL

    schema = f"recollect_bench_tick_{sessions}"
    make_key(with_schema(url, schema))
    connection = psycopg.connect(url, autocommit=True)
    PostgresStatements(connection, schema)  # points the connection at the schema
    marked = MarkedSessions(connection, sessions)
    marked.add_idle_jobs()
    connection.execute("VACUUM ANALYZE")  # what autovacuum does within a minute
    return with_schema(url, schema), marked

"""Whether finding what is due slows down with the number of sessions that have nothing due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import apsw

from bench.measure import Action, take_turns
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import (
    SPACE,
    add_clean_sessions,
    make_key,
    open_memory,
    sqlite_address,
    with_schema,
)

FEW, MANY = 10, 100_000
MARKED, WAITING = 5, 3  # what is due is the same in both stores
GROUP = "what is due, among 10 and among 100,000 clean sessions"


def measure_due(run: Run) -> Iterator[Line]:
    """find_invalidated and status, on both databases."""
    yield from _compare(run, "SQLite", lambda sessions: _sqlite_store(run, sessions))
    url = run.postgres_url
    if url is None:
        yield skipped(GROUP, "PostgreSQL", run.postgres_missing)
        return
    yield from _compare(run, "PostgreSQL", lambda sessions: _postgres_store(url, sessions))


def _compare(run: Run, database: str, make: Callable[[int], str]) -> Iterator[Line]:
    many = run.scaled(MANY, 10_000)
    with ExitStack() as stack:
        memories = {n: stack.enter_context(open_memory(make(n))) for n in (FEW, many)}
        few_space, many_space = (memories[n].space(SPACE) for n in (FEW, many))
        few_memory, many_memory = memories[FEW], memories[many]
        pairs: dict[str, tuple[Action, Action]] = {
            "find_invalidated": (
                lambda: few_space.sessions.find_invalidated(10),
                lambda: many_space.sessions.find_invalidated(10),
            ),
            "status of one space": (
                lambda: few_memory.status(SPACE),
                lambda: many_memory.status(SPACE),
            ),
            "status of all": (few_memory.status, many_memory.status),
        }
        for name, (among_few, among_many) in pairs.items():
            in_process = database == "SQLite"
            # Wall time over two processes is quiet only now and then, and never for long.
            costs = take_turns(
                {"few": among_few, "many": among_many},
                repetitions=run.scaled(250, 20) if in_process else run.scaled(1000, 100),
                calls=8 if in_process else 1,
            )
            few, several = costs["few"], costs["many"]
            yield Line(
                group=GROUP,
                name=f"{database}: {name}, {'CPU' if in_process else 'wall'}",
                unit="µs",
                measured=several.cpu_us if in_process else several.wall_us,
                limit=few.cpu_us if in_process else few.wall_us,
                target=1.1,
                note="" if not run.quick else f"quick: {many:,} instead of {MANY:,}",
            )


def _fill_due(address: str) -> None:
    with open_memory(address) as memory:
        space = memory.space(SPACE)
        for number in range(MARKED):
            session = space.session(("marked", number))
            session.append_many([{"role": "user", "content": "Good morning."}] * 6)
        for number in range(WAITING):
            space.session(("waiting", number)).append("user", "Good morning.")


def _sqlite_store(run: Run, sessions: int) -> str:
    path = run.directory / f"clean-{sessions}.db"
    address = sqlite_address(path, synchronous="off")
    make_key(address)
    connection = apsw.Connection(str(path))
    series = (
        f"(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {sessions})"
        " SELECT i FROM n)"
    )
    with connection:
        add_clean_sessions(connection, series, sessions)
    connection.close()
    _fill_due(address)
    return address


def _postgres_store(url: str, sessions: int) -> str:
    import psycopg  # an extra; without it there is no URL

    schema = f"recollect_bench_clean_{sessions}"
    address = with_schema(url, schema)
    make_key(address)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", (schema,))
        connection.execute("SELECT set_config('recollect.operator', 'on', false)")
        add_clean_sessions(connection, f"generate_series(1, {sessions}) AS i", sessions)
        connection.execute("VACUUM ANALYZE")  # what autovacuum does within a minute
    _fill_due(address)
    return address

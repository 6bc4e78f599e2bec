"""What a claim and its finish cost above the same statements on the bare database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

import recollect
from bench.bare_claims import BareClaims, PostgresStatements, SqliteStatements
from bench.marked import MarkedSessions
from bench.measure import Cost, take_turns
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import SETTINGS, make_key, open_memory, sqlite_address, with_schema
from recollect.clock import SystemClock
from recollect.leases import Leaseholder
from recollect.types.records import Claim, Outcome

GROUP = "claim and finish a session, against the same statements and commits"
DUE = 10  # sessions that are due when a repetition begins; all of them are finished in it


def measure_claims(run: Run) -> Iterator[Line]:
    """CPU on both databases, and wall time beside what one commit takes."""
    yield from _lines("SQLite, durable", "CPU", _on_sqlite(run, "full"))
    yield from _lines("SQLite, no syncs", "CPU", _on_sqlite(run, "off"))
    if run.postgres_url is None:
        yield skipped(GROUP, "PostgreSQL", run.postgres_missing)
        return
    yield from _lines("PostgreSQL", "client CPU", _on_postgres(run, run.postgres_url))


def _lines(database: str, cpu: str, costs: dict[str, Cost]) -> Iterator[Line]:
    ours, bare, commit = costs["ours"], costs["bare"], costs["commit"]
    yield Line(
        group=GROUP,
        name=f"{database}: {cpu}",
        unit="µs",
        measured=ours.cpu_us,
        limit=bare.cpu_us,
        target=3.0,
    )
    yield Line(
        group=GROUP,
        name=f"{database}: wall",
        unit="µs",
        measured=ours.wall_us,
        limit=bare.wall_us,
        note=f"two commits; one bare commit of one row takes {commit.wall_us:,.0f} µs",
    )


def _on_sqlite(run: Run, synchronous: str) -> dict[str, Cost]:
    paths = {who: run.directory / f"claims-{who}-{synchronous}.db" for who in ("ours", "bare")}
    addresses = {who: sqlite_address(path, synchronous=synchronous) for who, path in paths.items()}
    for address in addresses.values():
        make_key(address)
    connection = _connected(paths["bare"], synchronous)
    bare = BareClaims(SqliteStatements(connection))
    marked = {who: MarkedSessions(_connected(path, "off"), DUE) for who, path in paths.items()}
    with open_memory(addresses["ours"]) as memory:
        costs = _turns(run.scaled(120, 10), _claim_and_finish(memory), bare, marked)
    connection.close()
    for each in marked.values():
        each.close()
    return costs


def _on_postgres(run: Run, url: str) -> dict[str, Cost]:
    import psycopg  # an extra; without it there is no URL

    schemas = {who: f"recollect_bench_claims_{who}" for who in ("ours", "bare")}
    for schema in schemas.values():
        make_key(with_schema(url, schema))
    connection = psycopg.connect(url, autocommit=True)
    bare = BareClaims(PostgresStatements(connection, schemas["bare"]))
    marked = {}
    for who, schema in schemas.items():
        filling = psycopg.connect(url, autocommit=True)
        PostgresStatements(filling, schema)  # points the connection at the schema
        marked[who] = MarkedSessions(filling, DUE)
    with open_memory(with_schema(url, schemas["ours"])) as memory:
        costs = _turns(run.scaled(120, 15), _claim_and_finish(memory), bare, marked)
    connection.close()
    for each in marked.values():
        each.close()
    return costs


def _turns(
    repetitions: int,
    ours: Callable[[], object],
    bare: BareClaims,
    marked: dict[str, MarkedSessions],
) -> dict[str, Cost]:
    return take_turns(
        {"ours": ours, "bare": bare.claim_and_finish, "commit": bare.commit_one_row},
        repetitions=repetitions,
        calls=DUE,
        before={who: each.mark_again for who, each in marked.items()},
    )


def _claim_and_finish(memory: recollect.Memory) -> Callable[[], object]:
    holder = Leaseholder(memory.store, SETTINGS.lease_policy, SystemClock(), owner="bench")

    def call() -> None:
        claim = holder.claim()
        assert isinstance(claim, Claim), claim
        holder.record(claim, claim.read_upto, Outcome.NO_OUTPUT)

    return call


def _connected(path: Path, synchronous: str) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(60_000)
    connection.pragma("synchronous", synchronous)
    connection.pragma("foreign_keys", "ON")
    return connection

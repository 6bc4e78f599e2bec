"""What an append costs above the same two statements on the bare database, and how that scales."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from bench.bare import BarePostgres, BareSqlite
from bench.measure import Cost, take_turns
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import (
    KEY,
    SPACE,
    lengthen_session,
    make_key,
    open_memory,
    sqlite_address,
    with_schema,
)
from bench.texts import make_texts

BATCH = 100
SHORT, LONG = 100, 100_000


def measure_append(run: Run) -> Iterator[Line]:
    """One durable record, and a hundred at once, against bare apsw."""
    for synchronous, is_target in (("full", True), ("off", False)):
        one, many = _against_apsw(run, synchronous)
        suffix = "" if is_target else ", no syncs"
        note = "" if is_target else "without the sync that both pay for"
        yield Line(
            group="append, SQLite against bare apsw (CPU)",
            name=f"one durable record{suffix}",
            unit="µs",
            measured=one["ours"].cpu_us,
            limit=one["bare"].cpu_us,
            target=3.0 if is_target else None,
            note=note,
        )
        yield Line(
            group="append, SQLite against bare apsw (CPU)",
            name=f"append_many of {BATCH}{suffix}",
            unit="µs",
            measured=many["ours"].cpu_us,
            limit=many["bare"].cpu_us,
            target=2.0 if is_target else None,
            note=note,
        )


def measure_session_length(run: Run) -> Iterator[Line]:
    """An append to a long session against one to a short session."""
    costs = _long_against_short(run)
    yield Line(
        group="append and the length of the session (CPU)",
        name=f"one record onto {run.scaled(LONG, 10_000):,} and onto {SHORT}",
        unit="µs",
        measured=costs["long"].cpu_us,
        limit=costs["short"].cpu_us,
        target=1.1,
        note="no syncs, whose jitter would hide a slope",
    )


def measure_postgres_append(run: Run) -> Iterator[Line]:
    """One durable record against bare psycopg: for information, there is no target."""
    group = "append, PostgreSQL against bare psycopg"
    if run.postgres_url is None:
        yield skipped(group, "one durable record", run.postgres_missing)
        return
    one, many = _against_psycopg(run, run.postgres_url)
    for name, costs in (("one durable record", one), (f"append_many of {BATCH}", many)):
        ours, bare = costs["ours"], costs["bare"]
        yield Line(
            group=group,
            name=f"{name}, client CPU",
            unit="µs",
            measured=ours.cpu_us,
            limit=bare.cpu_us,
        )
        yield Line(
            group=group, name=f"{name}, wall", unit="µs", measured=ours.wall_us, limit=bare.wall_us
        )


def _against_apsw(run: Run, synchronous: str) -> tuple[dict[str, Cost], dict[str, Cost]]:
    ours_at = sqlite_address(run.directory / f"ours-{synchronous}.db", synchronous=synchronous)
    bare_path = run.directory / f"bare-{synchronous}.db"
    ref = make_key(sqlite_address(bare_path, synchronous=synchronous))
    bare = BareSqlite(bare_path, ref, synchronous=synchronous)
    texts = make_texts(BATCH)
    messages = [{"role": "user", "content": text} for text in texts]
    with open_memory(ours_at) as memory:
        session = memory.space(SPACE).session(KEY)
        ours_next, bare_next = cycle(texts), cycle(texts)
        one = take_turns(
            {
                "ours": lambda: session.append("user", next(ours_next)),
                "bare": lambda: bare.append(next(bare_next)),
            },
            repetitions=run.scaled(80, 10),
            calls=50,
        )
        many = take_turns(
            {
                "ours": lambda: session.append_many(messages),
                "bare": lambda: bare.append_many(texts),
            },
            repetitions=run.scaled(80, 10),
            calls=5,
        )
    bare.close()
    return one, many


def _long_against_short(run: Run) -> dict[str, Cost]:
    text = make_texts(1)[0]
    long_at, short_at = (_unsynced(run.directory / f"{name}.db") for name in ("long", "short"))
    lengthen_session(run.directory / "long.db", make_key(long_at), run.scaled(LONG, 10_000), text)
    with open_memory(long_at) as long_memory, open_memory(short_at) as short_memory:
        long = long_memory.space(SPACE).session(KEY)
        short = short_memory.space(SPACE).session(KEY)

        def shorten() -> None:
            short.reset()
            short.append_many([{"role": "user", "content": text}] * SHORT)

        return take_turns(
            {
                "long": lambda: long.append("user", text),
                "short": lambda: short.append("user", text),
            },
            repetitions=run.scaled(60, 6),
            calls=SHORT,
            before={"short": shorten},
        )


def _unsynced(path: Path) -> str:
    return sqlite_address(path, synchronous="off")


def _against_psycopg(run: Run, url: str) -> tuple[dict[str, Cost], dict[str, Cost]]:
    import psycopg  # an extra; without it there is no URL

    bare_at = with_schema(url, "recollect_bench_bare")
    ref = make_key(bare_at)
    bare = BarePostgres(psycopg.connect(url, autocommit=True), "recollect_bench_bare", ref)
    texts = make_texts(BATCH)
    messages = [{"role": "user", "content": text} for text in texts]
    with open_memory(with_schema(url, "recollect_bench_ours")) as memory:
        session = memory.space(SPACE).session(KEY)
        one = take_turns(
            {
                "ours": lambda: session.append("user", texts[0]),
                "bare": lambda: bare.append(texts[0]),
            },
            repetitions=run.scaled(200, 30),
            calls=5,
        )
        many = take_turns(
            {
                "ours": lambda: session.append_many(messages),
                "bare": lambda: bare.append_many(texts),
            },
            repetitions=run.scaled(60, 10),
            calls=1,
        )
    bare.close()
    return one, many

"""Runs jobs with nothing to do in them on one engine and prints what one cost, as a line of JSON.

Needs nothing of this project beside Recollect's own line, so that it runs in the peers'
environment as well: `python engines.py <engine> <where> <jobs> <concurrency>`.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

SCHEMA = "recollect_bench_engine"
RECORDS = 6  # one above the threshold that marks a session

Figures = dict[str, Any]


def recollect_sqlite(where: str, jobs: int, concurrency: int) -> Figures:
    """A durable file of its own."""
    with tempfile.TemporaryDirectory(dir=where) as directory:
        return _recollect(str(Path(directory) / "engine.db"), jobs, concurrency)


def recollect_postgres(where: str, jobs: int, concurrency: int) -> Figures:
    schema = f"{SCHEMA}_ours"
    _make_schema(where, schema)
    return _recollect(f"{where}{_joint(where)}schema={schema}", jobs, concurrency)


def _recollect(address: str, jobs: int, concurrency: int) -> Figures:
    recollect = importlib.import_module("recollect")
    settings = recollect.Settings(worker_concurrency=concurrency)
    with recollect.open(address, settings=settings) as memory:
        space = memory.space()
        for number in range(jobs):
            session = space.session(("engine", number))
            session.append_many([{"role": "user", "content": "Good morning."}] * RECORDS)
        wall, cpu = time.perf_counter(), time.process_time()
        report = memory.work()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        assert report.processed == jobs, report
    return _figures(recollect.__version__, wall, cpu, jobs)


def procrastinate(where: str, jobs: int, concurrency: int) -> Figures:
    return asyncio.run(_procrastinate(where, jobs, concurrency))


async def _procrastinate(where: str, jobs: int, concurrency: int) -> Figures:
    library = importlib.import_module("procrastinate")
    schema = f"{SCHEMA}_peer"
    _make_schema(where, schema)
    options = quote(f"-csearch_path={schema}", safe="")
    conninfo = f"{where}{_joint(where)}options={options}"
    app = library.App(connector=library.PsycopgConnector(conninfo=conninfo))
    done = 0

    @app.task(name="nothing")  # type: ignore[untyped-decorator, unused-ignore]
    async def nothing(number: int) -> None:  # noqa: ARG001
        nonlocal done
        done += 1

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for number in range(jobs):
            await nothing.defer_async(number=number)
        wall, cpu = time.perf_counter(), time.process_time()
        await app.run_worker_async(
            wait=False, concurrency=concurrency, install_signal_handlers=False
        )
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert done == jobs, done
    return _figures(metadata.version("procrastinate"), wall, cpu, jobs)


def _make_schema(where: str, schema: str) -> None:
    """An empty schema, whatever an earlier turn left."""
    psycopg = importlib.import_module("psycopg")
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        connection.execute(f"CREATE SCHEMA {schema}")


def _joint(url: str) -> str:
    return "&" if "?" in url else "?"


def _figures(version: str, wall: float, cpu: float, jobs: int) -> Figures:
    return {"version": version, "wall_us": wall / jobs * 1e6, "cpu_us": cpu / jobs * 1e6}


ENGINES: dict[str, Callable[[str, int, int], Figures]] = {
    "recollect-sqlite": recollect_sqlite,
    "recollect-postgres": recollect_postgres,
    "procrastinate": procrastinate,
}


def main() -> None:
    name, where, jobs, concurrency = sys.argv[1:]
    print(json.dumps(ENGINES[name](where, int(jobs), int(concurrency))))


if __name__ == "__main__":
    main()

"""The whole of phase 1 with a model that answers at once: what is left is ours."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack

import recollect
from bench.children import ask, read, start_child
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import sqlite_address, with_schema

GROUP = "phase 1 with an instant model, sessions of 20 records, worker processes of 8 threads"
WORKERS = (1, 2, 4)
CPU_MS_MAX = 5.0
TURNS = (
    ("user", "I moved to Lisbon in May and I always run the tests with pytest -x before I push."),
    ("assistant", "Noted. Shall I set up the project the way you had it before?"),
)


def measure_pipeline(run: Run) -> Iterator[Line]:
    """Sessions per second with one, two and four workers, and what one session costs."""
    sessions = run.scaled(600, 40)
    for workers in WORKERS:
        path = run.directory / f"pipeline-{workers}.db"
        yield from _lines("SQLite", _drained(sqlite_address(path), sessions, workers), workers)
    if run.postgres_url is None:
        yield skipped(GROUP, "PostgreSQL", run.postgres_missing)
        return
    for workers in WORKERS:
        address = with_schema(run.postgres_url, f"recollect_bench_pipeline_{workers}")
        yield from _lines("PostgreSQL", _drained(address, sessions, workers), workers)


def _lines(database: str, drained: tuple[int, float, float], workers: int) -> Iterator[Line]:
    sessions, wall, cpu = drained
    title = f"{database}, {workers} worker{'s' if workers > 1 else ''}"
    yield Line(
        group=GROUP,
        name=f"{title}: CPU per session outside the model",
        unit="ms",
        measured=cpu * 1000 / sessions,
        target=CPU_MS_MAX,
        is_ratio=False,
        note=f"{sessions / wall:,.0f} sessions/s",
    )


def _drained(address: str, sessions: int, workers: int) -> tuple[int, float, float]:
    """How many sessions were processed, in which time, with how much of the workers' CPU."""
    fill(address, sessions)
    with ExitStack() as stack:
        children = [stack.enter_context(start_child("extract", address)) for _ in range(workers)]
        began = time.perf_counter()
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        reports = [json.loads(read(child)) for child in children]
        wall = time.perf_counter() - began
        for child in children:
            ask(child, "bye")
    processed = sum(report["processed"] for report in reports)
    assert processed == sessions, "every session once"
    return processed, wall, sum(report["cpu"] for report in reports)


def fill(address: str, sessions: int) -> None:
    """Marked sessions of 20 records each."""
    with recollect.open(address, settings=recollect.Settings()) as memory:
        space = memory.space()
        for number in range(sessions):
            session = space.session(f"chat:{number}", agent="assistant")
            session.append_many(
                [
                    {"role": role, "content": f"{text} ({number}-{turn})"}
                    for turn in range(10)
                    for role, text in TURNS
                ]
            )

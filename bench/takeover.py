"""How soon the session of a worker that was killed is recorded by another one."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack

import recollect
from bench.children import LEASE_SECONDS, SHORT_LEASE, TICK_SECONDS, ask, read, start_child
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import SPACE, sqlite_address, with_schema
from recollect.worker import Worker

GROUP = "takeover after kill -9, from the kill until another worker has recorded"
SEED = 20_260_502
POLL_SECONDS = 0.002
SECONDS_MAX = 60.0


def measure_takeover(run: Run) -> Iterator[Line]:
    """One process holds a session in each database; it is killed at a random moment."""
    addresses = {"SQLite": sqlite_address(run.directory / "takeover.db")}
    if run.postgres_url is not None:
        addresses["PostgreSQL"] = with_schema(run.postgres_url, "recollect_bench_takeover")
    rounds = run.scaled(40, 5)
    choice = random.Random(SEED)
    taken: dict[str, list[float]] = {database: [] for database in addresses}
    with ExitStack() as stack:
        memories = {
            database: stack.enter_context(recollect.open(address, settings=SHORT_LEASE))
            for database, address in addresses.items()
        }
        for _ in range(rounds):
            found = _round(memories, list(addresses.values()), choice.uniform(0.1, 0.9))
            for database, seconds in found.items():
                taken[database].append(seconds)
    for database, seconds_taken in taken.items():
        worst = statistics.quantiles(seconds_taken, n=100, method="inclusive")[-1]
        yield Line(
            group=GROUP,
            name=f"{database}: p99 of {rounds}",
            unit="s",
            measured=worst,
            limit=LEASE_SECONDS,
            target=LEASE_SECONDS + 1,
            is_ratio=False,
            note=f"limit: the lease; tick {TICK_SECONDS} s; median"
            f" {statistics.median(seconds_taken):.2f} s, longest {max(seconds_taken):.2f} s",
        )
    if run.postgres_url is None:
        yield skipped(GROUP, "PostgreSQL", run.postgres_missing)


def _round(
    memories: dict[str, recollect.Memory], addresses: list[str], delay: float
) -> dict[str, float]:
    """Seconds from the kill until the session was recorded, in each database."""
    for memory in memories.values():
        session = memory.space(SPACE).session("bench:takeover")
        session.append_many([{"role": "user", "content": "Good morning."}] * 6)
    with ExitStack() as stack:
        victim = stack.enter_context(start_child("hold", *addresses))
        held = {ask(victim, "go")} | {read(victim) for _ in addresses[1:]}
        assert len(held) == len(addresses)
        rescuers = {database: memory.worker() for database, memory in memories.items()}
        for rescuer in rescuers.values():
            rescuer.start()
            stack.callback(rescuer.stop)
        time.sleep(delay)  # the lease is renewed meanwhile: the kill falls anywhere between
        assert not any(rescuer.report.processed for rescuer in rescuers.values())
        killed_at = time.perf_counter()
        victim.kill()
        return _until_recorded(rescuers, killed_at)


def _until_recorded(rescuers: dict[str, Worker], since: float) -> dict[str, float]:
    taken: dict[str, float] = {}
    while len(taken) < len(rescuers):
        for database, rescuer in rescuers.items():
            if database not in taken and rescuer.report.processed:
                taken[database] = time.perf_counter() - since
        if time.perf_counter() - since > SECONDS_MAX:
            raise RuntimeError(f"nobody took over within {SECONDS_MAX:g} s")
        time.sleep(POLL_SECONDS)
    return taken

"""Jobs with nothing to do in them, as fast as they go: ours, and an engine a user would take."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.peers.environment import PeersUnavailable, ensure_environment
from bench.report import Line, skipped
from bench.settings import Run

GROUP = "no-op jobs until nothing is due, each engine in a process of its own"
ENGINES = Path(__file__).with_name("peers") / "engines.py"
PEER = "procrastinate"
CONCURRENCY = 8  # the default of worker_concurrency

Figures = dict[str, Any]  # what the engine printed


def measure_drain(run: Run) -> Iterator[Line]:
    """Jobs per second, and what one costs; all in turns."""
    contenders: dict[str, list[str]] = {"SQLite": ["recollect-sqlite", str(run.directory)]}
    interpreters = {"SQLite": Path(sys.executable)}
    missing: dict[str, str] = {}
    if run.postgres_url is None:
        missing = dict.fromkeys(("PostgreSQL", PEER), run.postgres_missing)
    else:
        contenders["PostgreSQL"] = ["recollect-postgres", run.postgres_url]
        interpreters["PostgreSQL"] = Path(sys.executable)
        try:
            interpreters[PEER] = _peers(run)
            contenders[PEER] = [PEER, run.postgres_url]
        except PeersUnavailable as error:
            missing[PEER] = str(error)
    jobs, best = run.scaled(500, 50), dict[str, Figures]()
    for _ in range(run.scaled(5, 1)):
        for name in list(contenders):
            command = [str(interpreters[name]), str(ENGINES), *contenders[name]]
            try:
                _keep_best(best, name, _worked([*command, str(jobs), str(CONCURRENCY)]))
            except PeersUnavailable as error:
                missing[name] = str(error)
                del contenders[name]
    for name, found in best.items():
        yield from _lines(name, found, best.get("PostgreSQL", {}), jobs)
    for name, why in missing.items():
        yield skipped(GROUP, name, why)


def _peers(run: Run) -> Path:
    if not run.peers:
        raise PeersUnavailable("add --peers")
    return ensure_environment()


def _lines(name: str, found: Figures, ours: Figures, jobs: int) -> Iterator[Line]:
    is_peer = name == PEER
    title = f"{PEER} {found['version']} on PostgreSQL" if is_peer else f"Recollect on {name}"
    wall, cpu = found["wall_us"], found["cpu_us"]
    yield Line(
        group=GROUP,
        name=f"{title}: wall per job",
        unit="µs",
        measured=wall,
        limit=ours.get("wall_us") if is_peer else None,
        note=f"{1e6 / wall:,.0f} jobs/s, {jobs} jobs, {CONCURRENCY} at a time"
        + ("; limit: Recollect on PostgreSQL" if is_peer else ""),
    )
    yield Line(
        group=GROUP,
        name=f"{title}: client CPU per job",
        unit="µs",
        measured=cpu,
        limit=ours.get("cpu_us") if is_peer else None,
    )


def _worked(command: list[str]) -> Figures:
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if result.returncode != 0:
        said = result.stderr.strip().splitlines()
        raise PeersUnavailable(said[-1] if said else f"exit status {result.returncode}")
    figures: Figures = json.loads(result.stdout.splitlines()[-1])
    return figures


def _keep_best(best: dict[str, Figures], name: str, found: Figures) -> None:
    before = best.get(name, found)
    lowest = {key: min(before[key], found[key]) for key in found if key.endswith("_us")}
    best[name] = {**found, **lowest}

"""Recollect and the peers side by side: the same texts, one record per durable write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.peers.environment import PeersUnavailable, ensure_environment
from bench.report import Line, skipped
from bench.settings import Run

GROUP = "side by side, one SQLite file each (limit: Recollect)"
WORKER = Path(__file__).with_name("worker.py")
OURS = ("recollect", "recollect-aio")
TITLES = {
    "recollect": "Recollect",
    "recollect-aio": "Recollect, asyncio",
    "langgraph": "LangGraph SqliteStore",
    "openai-agents": "OpenAI Agents SQLiteSession",
}
SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}

Figures = dict[str, Any]  # what the worker printed


def measure_peers(run: Run) -> Iterator[Line]:
    """CPU per append, syncs per append, the 20 newest records, and what a retry comes to."""
    interpreters = dict.fromkeys(OURS, Path(sys.executable))
    try:
        peers = ensure_environment()
    except PeersUnavailable as error:
        yield skipped(GROUP, "peers", str(error))
    else:
        interpreters |= dict.fromkeys(("langgraph", "openai-agents"), peers)
    best: dict[str, Figures] = {}
    failed: dict[str, str] = {}
    for _ in range(run.scaled(5, 1)):  # the contenders take turns
        for name, interpreter in interpreters.items():
            try:
                _keep_best(best, name, _work(run, interpreter, name))
            except PeersUnavailable as error:
                failed[name] = str(error)
    for name in interpreters:
        if name not in best:
            yield skipped(GROUP, TITLES[name], failed[name])
            continue
        syncs = _syncs_per_append(run, interpreters[name], name)
        yield from _lines(name, best[name], best.get("recollect", {}), syncs)


def _lines(name: str, found: Figures, ours: Figures, syncs: float | None) -> Iterator[Line]:
    pragmas = found["pragmas"]
    mode = f"{pragmas['journal_mode']}, synchronous {SYNCHRONOUS[pragmas['synchronous']]}"
    counted = "syncs not counted: no strace here" if syncs is None else f"{syncs:.1f} syncs each"
    newest = "the newest, in order" if found["read_is_newest"] else "not the newest of their second"
    title = TITLES[name] if name in OURS else f"{TITLES[name]} {found['version']}"
    for what, figure, note in (
        ("append, CPU", "append_cpu_us", f"{counted}; {mode}"),
        ("append, wall", "append_wall_us", f"an append sent twice: {found['retry']}"),
        ("20 newest, CPU", "read_cpu_us", f"they are {newest}"),
    ):
        yield Line(
            group=GROUP,
            name=f"{title}: {what}",
            unit="µs",
            measured=found[figure],
            limit=None if name == "recollect" else ours.get(figure),
            note=note,
        )


def _keep_best(best: dict[str, Figures], name: str, found: Figures) -> None:
    before = best.get(name, found)
    figures = {key: min(before[key], found[key]) for key in found if key.endswith("_us")}
    always = before["read_is_newest"] and found["read_is_newest"]
    best[name] = {**found, **figures, "read_is_newest": always}


def _work(
    run: Run,
    interpreter: Path,
    name: str,
    *,
    appends: int = 100,
    repetitions: int | None = None,
    under: tuple[str, ...] = (),
) -> Figures:
    rounds = run.scaled(10, 2) if repetitions is None else repetitions
    with tempfile.TemporaryDirectory(dir=run.directory) as directory:
        command = [*under, str(interpreter), str(WORKER), name, directory, str(appends)]
        environment = os.environ | {"OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
        result = subprocess.run(
            [*command, str(rounds)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
    if result.returncode != 0:
        said = result.stderr.strip().splitlines()
        raise PeersUnavailable(said[-1] if said else f"exit status {result.returncode}")
    figures: Figures = json.loads(result.stdout.splitlines()[-1])
    return figures


def _syncs_per_append(run: Run, interpreter: Path, name: str) -> float | None:
    """Counted from outside: what 50 and 150 appends need, the difference by a hundred."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    counts = []
    for appends in (50, 150):
        log = run.directory / f"{name}-{appends}.strace"
        under = (strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(log))
        try:
            _work(run, interpreter, name, appends=appends, repetitions=0, under=under)
        except PeersUnavailable:
            return None
        counts.append(log.read_text(encoding="utf-8", errors="replace").count("sync("))
    return (counts[1] - counts[0]) / 100

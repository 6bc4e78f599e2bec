"""How long a coding agent waits for its hooks, in a store of a hundred thousand records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

from bench.recalling import fill
from bench.report import Line
from bench.settings import Run
from bench.stores import SPACE, open_memory, sqlite_address
from recollect.benchmarks.zipf import Language

RECORDS, FACTS = 100_000, 10_000
STARTS = 60
WALL_MS_MAX = 300.0
CLI = "import sys; from recollect.interfaces.cli.main import main; sys.exit(main())"


def measure_hooks(run: Run) -> Iterator[Line]:
    """Processes as an agent starts them when a session begins, with bytecode present."""
    records, facts = run.scaled(RECORDS, RECORDS // 100), run.scaled(FACTS, FACTS // 100)
    group = f"`recollect hook claude-code` at session start, {records:,} records, {facts:,} facts"
    address = sqlite_address(run.directory / "hooks.db", synchronous="off")
    with open_memory(address) as memory:
        fill(memory.space(SPACE), Language(), records, facts)
    environment = _environment(run, address)
    bare, taken = [], []
    for number in range(run.scaled(STARTS, 5) + 1):
        told = {
            "hook_event_name": "SessionStart",
            "session_id": str(number),
            "cwd": str(run.directory),
            "source": "startup",
        }
        cost = _cost(["-c", CLI, "hook", "claude-code"], json.dumps(told).encode(), environment)
        if number:  # the first one writes the bytecode
            bare.append(_cost(["-c", "pass"], b"", environment))
            taken.append(cost)
    walls, cpus = (sorted(each[at] for each in taken) for at in (0, 1))
    for title, share, target in (("the middle one", 0.5, None), ("p95", 0.95, WALL_MS_MAX)):
        at = min(int(len(walls) * share), len(walls) - 1)
        yield Line(
            group=group,
            name=f"wall, {title}",
            unit="ms",
            measured=walls[at],
            limit=sorted(each[0] for each in bare)[at],
            target=target,
            is_ratio=False,
            note="the target is for a calm machine; beside it, bare Python",
        )
    yield Line(
        group=group,
        name="CPU, the best",
        unit="ms",
        measured=cpus[0],
        limit=min(each[1] for each in bare),
        is_ratio=False,
        note="beside it, bare Python",
    )


def _environment(run: Run, address: str) -> dict[str, str]:
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment | {
        "PYTHONPYCACHEPREFIX": str(run.directory / "bytecode"),
        "RECOLLECT_STORE": address,
        "RECOLLECT_DATA_DIR": str(run.directory / "data"),
    }


def _cost(arguments: list[str], payload: bytes, environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds until the agent goes on, and of the processor."""
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert child.stdin is not None
    child.stdin.write(payload)
    child.stdin.close()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {child.returncode}")
    return wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000

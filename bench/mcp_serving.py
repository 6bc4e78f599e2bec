"""What an agent waits for: from the start of `recollect mcp` to its handshake and its first call.

A real process, over real pipes, on a store with some memory in it. CPU is the process's own, which
a busy machine does not change much; the wall time is shown beside it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import recollect
from bench.report import Line, skipped
from bench.settings import Run

GROUP = "MCP (stdio)"
CLI = "from recollect.interfaces.cli.main import main; main()"
FACTS = 500
CALLS = 50
HANDSHAKE_CPU_MS = 1000

_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Milliseconds from the start of the process: CPU it took, and time that passed."""

    cpu: float
    wall: float


def measure_mcp(run: Run) -> Iterator[Line]:
    """The best of several starts: until the handshake, the first call, and a call after that."""
    if importlib.util.find_spec("mcp") is None:
        yield skipped(GROUP, "handshake", "the MCP SDK is not installed")
        return
    store = run.directory / "mcp.db"
    with recollect.open(store) as memory:
        for number in range(FACTS):
            memory.space().facts.add(f"Heron {number} nests by pond {number % 37}.")
    environment = _environment(run)
    sdk = min(_import_milliseconds(environment) for _ in range(run.scaled(8, 3)))
    rounds = [_round(store, environment) for _ in range(run.scaled(8, 3) + 1)][1:]
    hello, first, later = ([each[at] for each in rounds] for at in range(3))
    yield _line("process start to handshake, CPU", min(t.cpu for t in hello), sdk, HANDSHAKE_CPU_MS)
    yield _line("process start to handshake, wall", min(t.wall for t in hello), sdk, None)
    yield _line("process start to first search, CPU", min(t.cpu for t in first), sdk, None)
    yield _line("process start to first search, wall", min(t.wall for t in first), sdk, None)
    yield _line("a search after that, CPU", min(t.cpu for t in later), None, None)


def _line(name: str, measured: float, limit: float | None, target: float | None) -> Line:
    return Line(
        group=GROUP,
        name=name,
        unit="ms",
        measured=measured,
        limit=limit,
        target=target,
        is_ratio=False,
        note="" if limit is None else "limit: loading the SDK alone, CPU",
    )


def _round(store: Path, environment: dict[str, str]) -> tuple[_Times, _Times, _Times]:
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", CLI, "mcp", "--store", str(store), "--no-work"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        _ask(server, 0, "initialize", _HELLO)
        hello = _times(server.pid, began)
        _search(server, 1)
        first = _times(server.pid, began)
        for number in range(CALLS):
            _search(server, 2 + number)
        last = _times(server.pid, began)
        assert server.stdin is not None
        server.stdin.close()
        if server.wait() != 0:
            raise RuntimeError(f"recollect mcp ended with {server.returncode}")
    each = _Times(cpu=(last.cpu - first.cpu) / CALLS, wall=(last.wall - first.wall) / CALLS)
    return hello, first, each


def _search(server: subprocess.Popen[bytes], number: int) -> None:
    wanted = {"query": "which heron nests by pond 7?"}
    answer = _ask(server, number, "tools/call", {"name": "search_memories", "arguments": wanted})
    if not answer["result"]["structuredContent"]["memories"]:
        raise RuntimeError(f"nothing was found: {answer}")


def _ask(
    server: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]
) -> dict[str, Any]:
    assert server.stdin is not None
    assert server.stdout is not None
    frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(frame).encode() + b"\n")
    server.stdin.flush()
    answer: dict[str, Any] = json.loads(server.stdout.readline())
    return answer


def _times(pid: int, began: float) -> _Times:
    wall = (time.perf_counter() - began) * 1000
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])  # in user and in system mode
    return _Times(cpu=ticks * 1000 / os.sysconf("SC_CLK_TCK"), wall=wall)


def _import_milliseconds(environment: dict[str, str]) -> float:
    code = "import time, mcp.server.mcpserver; print(time.process_time() * 1000)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    return float(done.stdout)


def _environment(run: Run) -> dict[str, str]:
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment | {"PYTHONPYCACHEPREFIX": str(run.directory / "bytecode")}

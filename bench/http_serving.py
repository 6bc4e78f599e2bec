"""What HTTP adds to a call of the library: CPU of the server's process, over the same call in ours.

A real `recollect serve` on a real socket, with a key, and clients that keep their connections. The
server's CPU is all of it: parsing, the look-up of the key, the thread, the JSON. They take turns,
each on a store of its own, since a process that has just waited is slower than one in a
loop, whatever it does. Many clients at once are `recollect bench load --servers 1`.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import recollect
from bench.report import Line, skipped
from bench.settings import Run
from recollect.interfaces.http.bearer import make_key
from recollect.types.access import Scope

GROUP = "HTTP"
SERVE = "from recollect.interfaces.cli.serving import serve; serve()"
RECORDS = 1000
OVERHEAD_MS = 1.0
QUESTION = "which heron nests by pond 7?"

Action = Callable[[int], object]


def measure_http(run: Run) -> Iterator[Line]:
    """The best of several rounds of many calls each."""
    if importlib.util.find_spec("uvicorn") is None:
        yield skipped(GROUP, "overhead", "starlette and uvicorn are not installed")
        return
    store = run.directory / "http.db"
    with recollect.open(store) as memory:
        _fill(memory)
        _, secret = make_key(memory, "bench", space=None, scope=Scope.ADMIN)
    calls, rounds = run.scaled(1000, 200), run.scaled(5, 3)
    with recollect.open(run.directory / "library.db") as memory:
        _fill(memory)
        with _served(store) as (url, pid):
            client = _Client(url, secret)
            yield from _compared("append", client.append, _append(memory), pid, calls, rounds)
            yield from _compared("recall", client.recall, _recall(memory), pid, calls, rounds)


def _fill(memory: recollect.Memory) -> None:
    said = [f"Heron {number} nests by pond {number % 37}." for number in range(RECORDS)]
    messages = [{"role": "user", "content": text} for text in said]
    memory.space("bench").session("herons").append_many(messages)


def _compared(
    name: str, over_http: Action, by_library: Action, pid: int, calls: int, rounds: int
) -> Iterator[Line]:
    own, theirs = [], []
    for _ in range(rounds + 1):
        taken, before = 0.0, _cpu_milliseconds(pid)
        for number in range(calls):
            began = time.process_time()
            by_library(number)
            taken += time.process_time() - began
            over_http(number)
        own.append(taken * 1000 / calls)
        theirs.append((_cpu_milliseconds(pid) - before) / calls)
    served, library = min(theirs[1:]), min(own[1:])
    note = f"{served:.3f} ms in the server, {library:.3f} ms in the library"
    yield Line(
        group=GROUP,
        name=f"{name}, CPU over the library",
        unit="ms",
        measured=max(served - library, 0.0),
        limit=None,
        target=OVERHEAD_MS,
        is_ratio=False,
        note=note,
    )


def _append(memory: recollect.Memory) -> Action:
    space = memory.space("bench")
    return lambda number: space.session("library").append("user", f"hello {number}")


def _recall(memory: recollect.Memory) -> Action:
    space = memory.space("bench")
    return lambda _: space.recall(QUESTION)


class _Client:
    """One connection that is kept."""

    def __init__(self, url: str, secret: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def append(self, number: int) -> None:
        said = {"role": "user", "content": f"hello {number}"}
        self.post("append", {"key": "http", "messages": [said]}, 201)

    def recall(self, _: int) -> None:
        self.post("recall", {"query": QUESTION}, 200)

    def post(self, path: str, body: Any, expected: int) -> None:
        path = f"/v1/spaces/bench/{path}"
        self._connection.request("POST", path, json.dumps(body).encode(), self._headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != expected:
            raise RuntimeError(f"{path}: {answer.status} {said[:200]!r}")


@contextmanager
def _served(store: Path) -> Iterator[tuple[str, int]]:
    arguments = [sys.executable, "-c", SERVE, "--store", str(store), "--port", "0"]
    arguments += ["--no-work", "--rate", "0", "--json"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        said = b""
        while not said.rstrip().endswith(b"}"):
            said += server.stdout.readline()
        try:
            yield json.loads(said)["url"], server.pid
        finally:
            server.terminate()


def _cpu_milliseconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])  # in user and in system mode
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")

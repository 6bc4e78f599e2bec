"""Processes with a worker in them: one that idles and says what it cost, one that is to be killed,
one that distils sessions with a model that answers at once.

`python -m bench.children idle|hold|extract ADDRESS…`; everything else is said over its pipes.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import recollect
from recollect.models.protocol import Completion, Request, Usage
from recollect.worker import Verdict, Work

ROOT = Path(__file__).resolve().parents[1]
# As the default lease is to the default tick. A claim's expiry is known to whoever looked once
# during its life, so that a tick shorter than the lease misses none.
LEASE_SECONDS, TICK_SECONDS = 1.0, 0.5
SHORT_LEASE = recollect.Settings(
    lease_seconds=LEASE_SECONDS, worker_tick_seconds=TICK_SECONDS, job_takeovers_max=1000
)


class Holding:
    """Says that it holds a claim, and never lets go."""

    def process(self, work: Work) -> Verdict:
        os.write(1, f"{work.session.id}\n".encode())
        threading.Event().wait()
        raise AssertionError("nobody sets it")


class InstantModel:
    """Answers at once, with three facts about the first record it is shown."""

    name = "openai:instant"
    window_tokens = 128_000

    def complete(self, request: Request) -> Completion:
        seq = int(request.prompt.partition("[#")[2].partition(" ")[0])
        fact = {
            "kind": "detail",
            "records": [seq],
            "quote": "",
            "topic": None,
            "supersedes": [],
            "until": None,
        }
        answer = {
            "raw_memory": "## Home\noutcome: success\nmoved to Lisbon in May",
            "rollout_summary": "The user moved to Lisbon and runs the tests before a push.",
            "rollout_slug": "moved-to-lisbon",
            "facts": [
                fact | {"content": "The user moved to Lisbon in May."},
                fact | {"content": "The user runs pytest -x before every push."},
                fact | {"content": f"The user said so in {request.prompt[-40:].strip()[-12:]}."},
            ],
        }
        usage = Usage(input_tokens=len(request.prompt) // 4, output_tokens=120)
        return Completion(text=json.dumps(answer), usage=usage, model=self.name)

    def close(self) -> None:
        pass


@contextlib.contextmanager
def start_child(life: str, *addresses: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready; it does not outlive the block."""
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.children", life, *addresses],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with child:
        try:
            assert read(child) == "ready"
            yield child
        finally:
            child.kill()


def ask(child: subprocess.Popen[str], question: str) -> str:
    assert child.stdin is not None
    child.stdin.write(f"{question}\n")
    child.stdin.flush()
    return read(child)


def read(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise RuntimeError(f"a child ended with {child.wait()}")
    return line.strip()


def _idle(address: str) -> None:
    """A worker at its defaults; the CPU time of the process to whoever asks."""
    with recollect.open(address, settings=recollect.Settings()) as memory:
        memory.worker().start()
        print("ready", flush=True)
        for _ in sys.stdin:
            print(time.process_time(), flush=True)


def _hold(addresses: list[str]) -> None:
    """A worker on each store that claims what is due once it is told to, and keeps it."""
    memories = [recollect.open(address, settings=SHORT_LEASE) for address in addresses]
    print("ready", flush=True)
    sys.stdin.readline()
    for memory in memories:
        memory.worker(Holding()).start()
    threading.Event().wait()


def _extract(address: str) -> None:
    """Drains what is due once it is told to, and says what came of it and what it cost.

    Phase 1 alone: what memory-agents and consolidation take is measured elsewhere.
    """
    settings = recollect.Settings(pipeline="extraction", consolidation="off")
    with recollect.open(address, settings=settings, model=InstantModel()) as memory:
        worker = memory.worker()
        print("ready", flush=True)
        sys.stdin.readline()
        before = time.process_time()
        report = worker.drain()
        cpu = time.process_time() - before
        print(json.dumps({"processed": report.processed, "cpu": cpu}), flush=True)
        sys.stdin.readline()
        print("bye", flush=True)


def main() -> None:
    life, *addresses = sys.argv[1:]
    match life:
        case "idle":
            _idle(addresses[0])
        case "extract":
            _extract(addresses[0])
        case _:
            _hold(addresses)


if __name__ == "__main__":
    main()

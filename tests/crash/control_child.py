"""Lives that copy, restore, load, migrate or forget, each in a process that a test has killed.

One process is warm and forks a child for every life. A life dies at its nth step (before any
operation on files of ours, within a write, at any crash point), or when its time is up.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import recollect
import recollect.operations.archive
import recollect.store.postgres
from recollect import crashpoints
from recollect.clock import SystemClock
from recollect.config import Settings
from recollect.errors import NotFound
from recollect.operations.backup import Restoring, back_up

ROOT = Path(__file__).parents[2]
EVENTS = frozenset({"open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir"})
NEVER = 1 << 30


class _Death:
    """Ends this process at its nth step."""

    def __init__(self, nth: int) -> None:
        self._nth = nth
        self.steps = 0
        self._is_armed = True
        self._write, self._fsync = os.write, os.fsync

    def arm(self) -> None:
        sys.addaudithook(lambda event, _arguments: self._step() if event in EVENTS else None)
        os.write = self._torn
        os.fsync = self._synced  # type: ignore[assignment]
        crashpoints.arm(lambda _point: self._step())

    def disarm(self) -> None:
        self._is_armed = False

    def _step(self) -> None:
        if not self._is_armed:
            return
        self.steps += 1
        if self.steps == self._nth:
            os.kill(os.getpid(), signal.SIGKILL)

    def _torn(self, descriptor: int, data: Any) -> int:
        if self._is_armed and self.steps + 1 == self._nth:
            self._write(descriptor, data[: len(data) // 2])
        self._step()
        return self._write(descriptor, data)

    def _synced(self, descriptor: int) -> None:
        self._step()
        self._fsync(descriptor)


# the lives


def _backup(source: str, target: str) -> None:
    with recollect.open(source) as memory:
        back_up(memory.store, target)


def _restore(source: str, target: str) -> None:
    Restoring(source, Settings(), SystemClock()).restore(target)


def _load(source: str, target: str) -> None:
    with recollect.open(target) as memory:
        memory.load(source)


def _migrate(source: str, target: str) -> None:
    with recollect.open(source) as memory:
        memory.migrate(target)


def _forget(store: str, settings: Mapping[str, Any], space: str, wanted: Mapping[str, Any]) -> None:
    with recollect.open(store, settings=settings) as memory, contextlib.suppress(NotFound):
        memory.space(space).forget(**wanted)


LIVES: Mapping[str, Callable[..., None]] = {
    "backup": _backup,
    "restore": _restore,
    "load": _load,
    "migrate": _migrate,
    "forget": _forget,
}


def _live(order: Mapping[str, Any], reply: int) -> NoReturn:
    code = 1
    try:
        death = _Death(order["nth"] or NEVER)
        death.arm()
        LIVES[order["life"]](**order["arguments"])
        death.disarm()
        os.write(reply, str(death.steps).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _answer(order: Mapping[str, Any]) -> Mapping[str, Any]:
    read, write = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _live(order, write)
    os.close(write)
    killing = threading.Timer(order["seconds"], os.kill, (child, signal.SIGKILL))
    if order["seconds"] is not None:
        killing.start()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    killing.cancel()
    with os.fdopen(read, "rb") as answered:
        steps = int(answered.read() or 0)
    return {"status": status, "steps": steps, "seconds": time.monotonic() - began}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


# for the tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """How a life ended: how many steps it took if it came to its end, and how long it took."""

    is_killed: bool
    steps: int
    seconds: float


class Lives:
    """The warm process, as a test sees it."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.control_child"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def live(
        self,
        life: str,
        arguments: Mapping[str, Any],
        *,
        nth: int | None = None,
        seconds: float | None = None,
    ) -> Lived:
        """One life. AssertionError: it neither came to its end nor was killed."""
        order = {"life": life, "nth": nth, "seconds": seconds, "arguments": dict(arguments)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        assert answer["status"] in (0, -signal.SIGKILL), order
        return Lived(
            is_killed=answer["status"] != 0, steps=answer["steps"], seconds=answer["seconds"]
        )


if __name__ == "__main__":
    main()

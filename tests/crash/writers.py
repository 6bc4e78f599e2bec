"""The test's side of `appender.py`: starts writers, kills them, and reads what they said."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

APPENDER = Path(__file__).with_name("appender.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """One process, and the journal it writes to."""

    name: str
    pid: int
    journal: Path

    def entries(self) -> list[dict[str, Any]]:
        # A line that the kill cut off was never finished, so it says nothing.
        text = self.journal.read_text() if self.journal.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    def acknowledged(self) -> list[str]:
        return [text for entry in self.entries() for text in entry.get("acknowledged", ())]

    def pending(self) -> list[str]:
        """What it was about to append when it died: it may be stored or not."""
        last = self.entries()[-1:]
        return list(last[0].get("intended", ())) if last else []

    def retries(self) -> list[tuple[str, list[str]]]:
        """The keyed append it was about to make when it died, if it was about to make one."""
        last = self.entries()[-1:]
        return [(entry["key"], entry["intended"]) for entry in last if entry.get("key")]

    def failures(self) -> list[str]:
        return [entry["trace"] for entry in self.entries() if "failed" in entry]


class Nursery:
    """The warm process that writers are forked from."""

    def __init__(self) -> None:
        gate, self._gate = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, str(APPENDER), str(gate)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[gate],
        )
        os.close(gate)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.open_gate()
        self._process.communicate()

    def open_gate(self) -> None:
        """Let every writer go, those that wait and those to come."""
        if self._gate >= 0:
            os.close(self._gate)
            self._gate = -1

    def ask(self, order: dict[str, object]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


class Writers:
    """Starts and kills the writers of one store; none outlives the `with` block."""

    def __init__(
        self, nursery: Nursery, directory: Path, url: str, settings: Mapping[str, Any] | None = None
    ) -> None:
        self._nursery = nursery
        self._directory = directory
        self._order = {"url": url, "settings": dict(settings or {})}
        self._alive: set[int] = set()
        self.started: list[Writer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pid in list(self._alive):
            self.kill(pid)

    def start(self, life: str, **order: object) -> Writer:
        name = f"w{len(self.started)}"
        journal = self._directory / f"{name}.journal"
        whole = {**self._order, "name": name, "journal": str(journal), "life": life, **order}
        pid = self._nursery.ask({"start": whole})
        self._alive.add(pid)
        writer = Writer(name=name, pid=pid, journal=journal)
        self.started.append(writer)
        return writer

    def kill(self, pid: int) -> int:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return self.wait(pid)

    def wait(self, pid: int) -> int:
        """The exit code of a writer that ends by itself; -9 if it was killed."""
        status = self._nursery.ask({"wait": pid})
        self._alive.discard(pid)
        return os.waitstatus_to_exitcode(status)

    def failures(self) -> list[str]:
        return [trace for writer in self.started for trace in writer.failures()]

    def acknowledged(self) -> list[str]:
        return [text for writer in self.started for text in writer.acknowledged()]

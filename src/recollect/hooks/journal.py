"""What went wrong in hooks, in a file that stays small: an agent is never told.

A line has a time, an agent and a reason, and nothing of what was said.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from recollect.clock import Clock, SystemClock

NAME = "hooks.log"
BYTES_MAX = 256 * 1024  # then it becomes the one before, and a new one begins
LINE_CHARS_MAX = 500


class Journal:
    """Adds lines to a file; without a folder, or where that fails, they are lost."""

    def __init__(self, folder: Path | None, agent: str, clock: Clock | None = None) -> None:
        self._path = None if folder is None else folder / NAME
        self._agent = agent
        self._clock = clock or SystemClock()

    def note(self, reason: str) -> str:
        """Write a line; it is also what comes back."""
        words = "".join(each if each.isprintable() else " " for each in reason)
        told = " ".join(words.split())[:LINE_CHARS_MAX]
        line = f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ} {self._agent} {os.getpid()} {told}"
        if self._path is not None:
            with contextlib.suppress(OSError, ValueError):  # ValueError: no file is called so
                _add(self._path, line)
        return line


def _add(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # One write of a short line at the end: those of two processes do not mix.
    number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(number).st_size
        os.write(number, f"{line}\n".encode(errors="backslashreplace"))
    finally:
        os.close(number)
    if size > BYTES_MAX:
        path.replace(path.with_name(f"{path.name}.1"))

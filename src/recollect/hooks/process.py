"""The process a hook runs in: its deadline, its log of errors, and its work in the background.

A hook never keeps an agent waiting beyond its deadline, and never fails where the agent sees it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from recollect.clock import Clock, SystemClock

LAST_WORDS_SECONDS = 0.2


def _leave() -> None:
    os._exit(0)


class Deadline:
    """Watches from a thread of its own, which nothing that the others wait for can stop."""

    def __init__(
        self,
        seconds: float,
        last_words: Callable[[], None],
        leave: Callable[[], None] = _leave,
    ) -> None:
        self._last_words = last_words
        self._leave = leave
        self._lock = threading.Lock()
        self._is_over = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()

    def speak(self, say: Callable[[], None]) -> bool:
        """Say something, unless it is too late for that."""
        with self._lock:
            if self._is_over:
                return False
            say()
            return True

    def _end(self) -> None:
        # An answer on its way out is short; one that nobody takes must not hold us here.
        is_ours = self._lock.acquire(timeout=LAST_WORDS_SECONDS)
        self._is_over = True
        try:
            # A log on a disk that hangs is no reason to stay either.
            words = threading.Thread(target=self._said_quietly, daemon=True)
            words.start()
            words.join(LAST_WORDS_SECONDS)
        finally:
            if is_ours:
                self._lock.release()
            self._leave()

    def _said_quietly(self) -> None:
        with contextlib.suppress(OSError):
            self._last_words()


LOCKS_MAX = 200  # files of sessions that nobody has touched for longest go first


def send(arguments: Sequence[str], payload: bytes, environment: Mapping[str, str]) -> None:
    """Start `recollect` with these arguments, on its own; it reads the payload."""
    with tempfile.TemporaryFile() as given:  # whole before it starts, whatever becomes of us
        given.write(payload)
        given.seek(0)
        # -P: the agent's directory is somebody's project, and no place to import from.
        subprocess.Popen(
            [sys.executable, "-P", "-m", "recollect", *arguments],
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )


@contextlib.contextmanager
def alone(folder: Path, name: str, *, waits: bool) -> Iterator[bool]:
    """Whether it is our turn, which ends with the process. One is at it and one is next.

    Who comes third is not needed: the next one has not begun, and reads what is new now as well.
    Those who have to wait get their turn in any case.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(folder / f"{name}.lock") as turn:
        if _locked(turn, waits=waits):
            yield True
            return
        with _opened(folder / f"{name}.next") as line:
            is_next = _locked(line, waits=False) and _locked(turn, waits=True)
        yield is_next


def tidy(folder: Path) -> None:
    """Keep a folder of small files small. Whoever has one open keeps what it has."""
    with contextlib.suppress(OSError):
        by_age = sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime)
        for path in by_age[:-LOCKS_MAX]:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield number
    finally:
        os.close(number)


def _locked(number: int, *, waits: bool) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


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

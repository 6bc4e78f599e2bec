"""What is done behind an agent's back, so that it need not wait: a process of its own, one a file.

Nobody waits for it, and it holds nothing open that the agent could wait for.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

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

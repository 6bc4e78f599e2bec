"""A command at a pseudo-terminal: what a person types, and what they see, with deadlines."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.e2e.command_line import ENTRY_POINT

SECONDS_MAX = 30.0
CTRL_C, CTRL_D = "\x03", "\x04"
# Its own terminal, so that Ctrl-C reaches it and nobody else.
CONTROLLED = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"


class Terminal:
    """The terminal of one running command."""

    def __init__(self, running: subprocess.Popen[bytes], outer: int) -> None:
        self.running = running
        self._outer = outer
        self._seen = 0
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._outer, text.encode())

    def say(self, line: str) -> None:
        self.type(f"{line}\n")

    def expect(self, pattern: str) -> str:
        """Wait until this is shown, after all that was waited for before; what matched."""
        found = self._found(pattern, SECONDS_MAX)
        assert found is not None, f"no {pattern!r} in:\n{self.shown[self._seen :]}"
        return found

    def interrupt(self, pattern: str) -> None:
        """Press Ctrl-C and wait until this is shown.

        A line editor that has shown its prompt and does not wait yet sees to it with the next key,
        so that one is pressed where nothing happens.
        """
        self.type(CTRL_C)
        for _ in range(round(SECONDS_MAX)):
            if self._found(pattern, 1.0) is not None:
                return
            self.type("\n")
        raise AssertionError(f"no {pattern!r} in:\n{self.shown[self._seen :]}")

    def _found(self, pattern: str, seconds: float) -> str | None:
        deadline = time.monotonic() + seconds
        while True:
            found = re.compile(pattern, re.DOTALL).search(self.shown, self._seen)
            if found is not None:
                self._seen = found.end()
                return found[0]
            if not self._read(deadline):
                return None

    def ended(self) -> int:
        """Wait for the end of the command; its exit code."""
        deadline = time.monotonic() + SECONDS_MAX
        while self._read(deadline):
            pass
        return self.running.wait(SECONDS_MAX)

    def _read(self, deadline: float) -> bool:
        """False: nothing comes any more, or not in time."""
        ready, _, _ = select.select([self._outer], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return False
        try:
            piece = os.read(self._outer, 65_536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.shown += piece.decode(errors="replace").replace("\r\n", "\n")
        return bool(piece)


@contextmanager
def terminal(*arguments: str, **environment: str) -> Iterator[Terminal]:
    """A command that runs at a terminal of its own until the end of the block."""
    outer, inner = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", f"{CONTROLLED}\n{ENTRY_POINT}", *arguments],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        env={**os.environ, "TERM": "dumb", "NO_COLOR": "1", **environment},
    ) as running:
        os.close(inner)
        try:
            yield Terminal(running, outer)
        finally:
            running.kill()
            os.close(outer)

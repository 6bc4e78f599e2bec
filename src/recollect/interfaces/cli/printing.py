"""Standard output that says what is wrong with it: full, closed, or not to be written to.

Whoever reads no further (`| head`) is nobody's fault: click ends the command quietly.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO, TypeVar, cast

T = TypeVar("T")
STDOUT = 1


class CannotPrintError(OSError):
    """The answer of a command could not be written."""


class Printing:
    """A text stream as it was, whose failures can be told from those of other files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        if text == "":  # asked to see what kind of stream it is; that is no answer that is lost
            return 0
        return self._told(lambda: self._stream.write(text))

    def flush(self) -> None:
        self._told(self._stream.flush)

    def _told(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except BrokenPipeError:
            raise
        except OSError as error:
            # Python would try once more at the end, and fail the process in its own words.
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise CannotPrintError(error.errno, error.strerror) from error


def watch_output() -> None:
    """From now on a failure to print is a CannotPrintError."""
    stream = sys.stdout
    if stream is None:
        # Closed. Its number must be nobody else's: whatever is printed would go into their file.
        os.dup2(os.open(os.devnull, os.O_RDONLY), STDOUT)
        stream = open(STDOUT, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stdout = cast(TextIO, Printing(stream))


def report_unprinted(error: CannotPrintError, *, as_json: bool) -> None:
    """Say on standard error that the answer is lost, and that nothing else is."""
    why = "it is closed" if error.errno == errno.EBADF else error.strerror
    said = (
        f"standard output cannot be written to ({why}); what the command stored before that stays"
        " stored"
    )
    if as_json:
        content = {"type": "CannotPrint", "message": said, "retry_helps": False}
        said = json.dumps({"error": {**content, "mended_by": "operator"}})
    else:
        said = f"Error: {said}"
    with contextlib.suppress(OSError, AttributeError):  # nor can this be
        print(said, file=sys.stderr)

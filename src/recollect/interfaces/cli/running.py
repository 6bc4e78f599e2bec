"""Long-running commands: their signals and their log.

The first signal lets a command finish in order, the second ends the process at once.
"""

from __future__ import annotations

import logging
import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType

from recollect.interfaces.cli.output import harmless, json_line, moment, one_line

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
PACKAGE = "recollect"


@contextmanager
def signals_noted(note: Callable[[int, FrameType | None], None]) -> Iterator[int]:
    """Have signals to stop only noted; where a byte can be read when one came.

    The interpreter writes it: nothing polls, and none is missed.
    """
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    writer_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {each: signal.signal(each, note) for each in _heeded()}
    try:
        yield reader
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(writer_before)
        os.close(reader)
        os.close(writer)


def _heeded() -> list[signal.Signals]:
    return [each for each in STOP_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]


def end_at_next_signal() -> None:
    """The next signal ends the process where it stands; a store survives that."""
    for each in _heeded():
        signal.signal(each, signal.SIG_DFL)


@contextmanager
def stop_signals() -> Iterator[Callable[[float | None], signal.Signals | None]]:
    """A function that waits so many seconds for a signal to stop; none: there was none.

    From then on the next one ends the process where it stands. No handler can meet a lock that the
    thread it interrupted holds.
    """
    with signals_noted(_only_noted) as woken:

        def wait(seconds: float | None) -> signal.Signals | None:
            if not select.select([woken], [], [], seconds)[0]:
                return None
            signum = os.read(woken, 1)[0]
            if signum not in STOP_SIGNALS:
                return None
            end_at_next_signal()
            return signal.Signals(signum)

        yield wait


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM unwinds the stack as Ctrl-C does, so that what was begun is given back."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _only_noted(_signum: int, _frame: object) -> None:
    """The interpreter has written the byte already."""


@contextmanager
def logged(level: int, *, as_json: bool) -> Iterator[None]:
    """Log what Recollect reports from this level on, and the warnings of its drivers."""
    own = logging.getLogger(PACKAGE)
    level_before = own.level
    handler = logging.StreamHandler()
    handler.setFormatter(_LogFormatter(as_json=as_json))
    own.setLevel(level)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        own.setLevel(level_before)


class _LogFormatter(logging.Formatter):
    """An object on a line, or a line for people; only a traceback takes more.

    No word of it can move the cursor.
    """

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        at, level = datetime.fromtimestamp(record.created, UTC), record.levelname.lower()
        message = record.getMessage()
        traceback = self.formatException(record.exc_info) if record.exc_info else None
        if self._as_json:
            entry = {"at": at, "level": level, "logger": record.name, "message": message}
            return json_line(entry | {"traceback": traceback})
        line = f"{moment(at)}  {level:<7}  {one_line(message)}"
        return line if traceback is None else f"{line}\n{harmless(traceback)}"

"""How a command that runs for long is told to stop: once to finish tidily, twice to end at once."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def told_to_stop() -> Iterator[Callable[[], signal.Signals]]:
    """A function that waits until the process is told to stop, and says by which signal."""
    with told_within() as wait_for:

        def wait() -> signal.Signals:
            while (told := wait_for(None)) is None:
                pass
            return told

        yield wait


@contextmanager
def told_within() -> Iterator[Callable[[float | None], signal.Signals | None]]:
    """A function that waits so many seconds for the process to be told to stop; none: it was not.

    From then on the next one ends the process where it stands, in the kernel's hands; a store
    survives that. The wait is for a byte that the interpreter writes when a signal comes: nothing
    polls, and no handler can meet a lock that the thread it interrupted holds.
    """
    heeded = [each for each in STOP_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    writer_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {each: signal.signal(each, _only_noted) for each in heeded}

    def wait(seconds: float | None) -> signal.Signals | None:
        if not select.select([reader], [], [], seconds)[0]:
            return None
        signum = os.read(reader, 1)[0]
        if signum not in heeded:
            return None
        for each in heeded:
            signal.signal(each, signal.SIG_DFL)
        return signal.Signals(signum)

    try:
        yield wait
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(writer_before)
        os.close(reader)
        os.close(writer)


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

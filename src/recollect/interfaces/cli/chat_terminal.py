"""The terminal or pipe of a chat: lines that come in, Ctrl-C, and what is written.

At the prompt Ctrl-C breaks the line off. While something is under way it is only noted, so that it
cannot hit the store in the middle of a change; whoever waits looks at the note. A pipe is waited
for together with the byte that the interpreter writes when a signal comes: none is ever missed.
Answers, and nothing else, go to standard output; all the rest goes to standard error.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Self

import click

from recollect.agents.reply import Reply
from recollect.errors import AnswerPending, RecollectError, StoreError, TurnFailed
from recollect.interfaces.cli.commands import error_view
from recollect.interfaces.cli.output import harmless, json_line, note, one_line, write
from recollect.interfaces.views import view

with contextlib.suppress(ImportError):  # line editing, where there is any; it keeps no file
    import readline as _readline  # noqa: F401

PROMPT = "> "
PIECE_BYTES = 65_536


class Interrupts:
    """Notes Ctrl-C and SIGTERM until the end of the `with` block."""

    def __init__(self) -> None:
        self.count = 0  # times Ctrl-C was pressed since it was last set to zero
        self.is_told_to_leave = False
        self._is_reading = False
        self._before: dict[signal.Signals, Any] = {}
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._writer_before = -1

    def __enter__(self) -> Self:
        self._writer_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for each in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(each) is not signal.SIG_IGN:
                self._before[each] = signal.signal(each, self._noted)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        signal.set_wakeup_fd(self._writer_before)
        os.close(self._reader)
        os.close(self._writer)

    @property
    def is_any(self) -> bool:
        return bool(self.count) or self.is_told_to_leave

    def let_the_next_one_end_it(self) -> None:
        """From now on the process ends where it stands; a store survives that."""
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)

    def read(self, lines: Lines) -> str | None:
        """The next line, none at the end. KeyboardInterrupt: it was broken off."""
        self._is_reading = True
        try:
            with contextlib.suppress(BlockingIOError):  # what came before is noted
                os.read(self._reader, PIECE_BYTES)
            if self.is_told_to_leave:  # before the wait began
                raise KeyboardInterrupt
            return lines.next(self._reader)
        finally:
            self._is_reading = False

    def _noted(self, signum: int, _frame: FrameType | None) -> None:
        if signum == signal.SIGTERM:
            self.is_told_to_leave = True
        else:
            self.count += 1
        if self._is_reading:
            raise KeyboardInterrupt


class Lines:
    """Lines from a terminal, with a prompt, or from a pipe."""

    def __init__(self) -> None:
        stdin = sys.stdin
        self.is_terminal = stdin is not None and stdin.isatty()
        self._held = b""  # what was read and is not a line yet
        self._is_over = False

    def next(self, woken: int) -> str | None:
        """The next line without its end; none: no more comes. A byte in `woken` breaks it off."""
        if sys.stdin is None:
            return None
        if self.is_terminal and sys.stdout.isatty():
            try:
                typed = input(PROMPT)
            except EOFError:
                return None
            return typed.encode(errors="surrogateescape").decode(errors="replace")
        if self.is_terminal:  # and only answers go to the other stream
            click.echo(PROMPT, nl=False, err=True)
        return self._piped(woken)

    def _piped(self, woken: int) -> str | None:
        while b"\n" not in self._held and not self._is_over:
            piece = self._more(woken)
            self._held += piece
            self._is_over = not piece
        line, end, rest = self._held.partition(b"\n")
        self._held = rest
        return line.decode(errors="replace").rstrip("\r") if line or end else None

    def _more(self, woken: int) -> bytes:
        try:
            source = sys.stdin.fileno()
        except (io.UnsupportedOperation, ValueError):
            return sys.stdin.buffer.read()  # no file: all of it is there
        ready, _, _ = select.select([source, woken], [], [])
        if woken in ready:
            raise KeyboardInterrupt
        return os.read(source, PIECE_BYTES)


ERASE_LINE = "\x1b[2K\r"
WORKING = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Speaks to a person, into a pipe, or to a program. `where` leads commands to the store."""

    as_json: bool
    is_terminal: bool
    where: str

    def answer(self, reply: Reply) -> None:
        if self.as_json:
            write(json_line(view(reply)))
            return
        write(harmless(reply.text))
        if self.is_terminal:
            write()

    def note(self, *lines: str) -> None:
        """Something for the person, which is no answer."""
        if self.as_json:
            note(json_line({"note": click.unstyle("\n".join(lines))}))
            return
        for line in lines:
            note(line)

    def told(self, what: str, shape: Any, lines: Iterable[str]) -> None:
        """What was asked for with a command."""
        if self.as_json:
            note(json_line({what: shape}))
            return
        for line in lines:
            note(line)

    def error(self, error: RecollectError) -> None:
        """What went wrong, and what can be done about it."""
        advice = self._advice(error)
        if self.as_json:
            content = error_view(error) | {"advice": advice}
            note(json_line({"error": content}))
            return
        note(f"{click.style('Error:', fg='red')} {one_line(str(error))}")
        if advice:
            note(advice)

    def working(self) -> None:
        """It takes long: a sign for a person who watches."""
        if self._is_watched:
            click.echo(WORKING, err=True, nl=False)

    def worked(self) -> None:
        if self._is_watched:
            click.echo(ERASE_LINE, err=True, nl=False)

    @property
    def _is_watched(self) -> bool:
        return self.is_terminal and not self.as_json and sys.stderr.isatty()

    def _advice(self, error: RecollectError) -> str:
        match error:
            case TurnFailed():
                return (
                    "It is parked, and what you say next is answered. Fix the cause, then give it"
                    f" another chance: recollect retry{self.where or ' --all'}"
                )
            case AnswerPending():
                return (
                    "What you said is kept, and is answered as soon as it can be. How it stands:"
                    f" recollect status{self.where}"
                )
            case StoreError() if error.retry_helps:
                return "It is not stored. Say it again when the store can be reached."
            case StoreError():
                return "It is not stored, and trying again does not help."
            case _:
                return ""

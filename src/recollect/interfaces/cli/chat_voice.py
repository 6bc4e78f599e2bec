"""What a chat writes: answers, and nothing else, on standard output; all the rest on the other."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from recollect.agents.reply import Reply
from recollect.errors import AnswerPending, RecollectError, StoreError, TurnFailed
from recollect.interfaces.cli.output import harmless, json_line, note, one_line, write
from recollect.interfaces.views import view

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
            content = {
                "type": type(error).__name__,
                "message": str(error),
                "retry_helps": error.retry_helps,
                "mended_by": error.mended_by.value,
                "advice": advice,
            }
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
                    "It is parked, and what you say next is answered. Mend the cause, then give it"
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

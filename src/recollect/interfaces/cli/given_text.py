"""Text that a command is given: as an argument, or by a pipe."""

from __future__ import annotations

import sys

import click


def read_text(text: str | None, usage: str) -> str:
    """The argument; if it is - or missing, standard input. Empty is wrong usage."""
    if text is None or text == "-":
        if sys.stdin is None or (text is None and sys.stdin.isatty()):
            raise click.UsageError(f"Give TEXT, or pipe it in: echo … | {usage}")
        try:
            text = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise click.UsageError(f"Standard input is not UTF-8 text: {error}") from error
    if not text:
        raise click.UsageError("There is nothing to store: the text is empty.")
    return text

"""`recollect why` and `recollect replay`: what was told, why, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from recollect.interfaces.cli.commands import Output, Target, command
from recollect.interfaces.cli.facts import source_in_words
from recollect.interfaces.cli.output import harmless, moment, one_line
from recollect.interfaces.cli.parameters import Words
from recollect.types.recall import REASONS, LineState, Replay, ToldLine

INDENT = "    "
_BECAME = {
    LineState.CORRECTED: "corrected since",
    LineState.REPLACED: "replaced since",
    LineState.DELETED: "deleted since",
    LineState.REWRITTEN: "rewritten since",
    LineState.ERASED: "erased since",
}


@command()
def why(at: Target, about: Words = (), *, block: str | None = None) -> Output:
    """Say what a line that was told came from, and why it ranked there.

    ABOUT is the id of a block, a mark of it such as m3, or a line of an answer, which is looked for
    in the blocks told last. Without it, every line of the latest block is explained. A line says
    what became of it since: corrected, replaced, deleted, rewritten or erased.

    Options:
      block ID: Look in this block. Default: the latest.

    Examples:
      recollect why
      recollect why m3
      recollect why "She moved to Lisbon in May."
    """
    told = at.space.why(" ".join(about), block=block)
    nothing = "" if told.lines else "No line that was told lately says this."
    return Output(told, _reasons(told), nothing, exit_code=0 if told.lines else 1)


@command()
def replay(at: Target, block: str | None = None) -> Output:
    """Show a block that was told again, byte for byte, or what became of its lines.

    BLOCK is the id of a block: see recollect context --json, or recollect why. Without it, the
    latest. A line whose text is gone is replaced by what became of it; others that are not so any
    more are shown as they were told, and named on standard error.

    Examples:
      recollect replay
      recollect replay 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --json
    """
    told = at.space.replay(block)
    return Output(told, harmless(told.text), _changes(told))


def _reasons(told: Replay) -> Iterator[str]:
    said = f" about {one_line(told.query)!r}" if told.query else ""
    where = f", session {told.session_id}" if told.session_id else ""
    to = f"{moment(told.at)} to {one_line(told.reader)}{where}"
    yield click.style(f"Block {told.id}, told {to}{said}", dim=True)
    for line in told.lines:
        yield ""
        yield one_line(line.text) if line.text else f"{line.mark}: {_BECAME[line.state]}"
        yield f"{INDENT}{line.kind.value} {one_line(line.id)}".rstrip()
        for reason in line.reasons:
            yield f"{INDENT}{reason}: {REASONS[reason]}"
        for source in line.sources:
            yield f"{INDENT}from {source_in_words(source, {})}"
        if line.state is not LineState.SAME:
            yield f"{INDENT}{_state(line)}"


def _changes(told: Replay) -> Iterator[str]:
    if told.is_identical:
        yield "The same bytes as were told."
    for number, line in enumerate(told.lines, start=1):
        if line.state is not LineState.SAME:
            yield f"{line.mark or number}: {_state(line)}"


def _state(line: ToldLine) -> str:
    now = f"; now: {one_line(line.now)}" if line.now else ""
    return click.style(f"{_BECAME[line.state]}{now}", fg="yellow")

"""`recollect forget`: a session is erased for good, and a receipt says what went with it."""

from __future__ import annotations

import sys

import click

from recollect.domain import SessionState
from recollect.interfaces.cli.lookup import find_session
from recollect.interfaces.cli.output import counted, note, one_line, write, write_json
from recollect.interfaces.cli.shapes import receipt_shape
from recollect.interfaces.cli.target import Target, agent_label, with_target
from recollect.knowledge import Receipt


@click.command("forget")
@click.option(
    "--session", metavar="KEY-OR-ID", required=True, help="The session: its id, or its key."
)
@click.option("--agent", metavar="NAME", help="Whose session; needed if several agents use KEY.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where nobody can be asked.")
@with_target
def command(target: Target, session: str, agent: str | None, yes: bool) -> None:
    """Erase a session for good: its records, and what was learned from it alone.

    Facts that other sessions bear out as well stay, without this source. A KEY is its current
    session; the ones before it are forgotten by their ids. What was spent on it stays in the books.

    \b
    Examples:
      recollect forget --session telegram:42:main
      recollect forget --session 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --yes --json
    """
    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise click.UsageError("This cannot be undone. Say --yes, or run it on a terminal.")
    with target.open(agent) as memory:
        space = memory.space(target.space_name)
        state = find_session(space, session, agent)
        if not yes:
            click.confirm(f"Forget {_in_words(state)}? This cannot be undone", abort=True, err=True)
        receipt = space.forget(session=state.id)
    if target.as_json:
        write_json(receipt_shape(receipt))
        return
    write(f"Forgot {_in_words(state)}.")
    write(_receipt_in_words(receipt))
    if session == state.key and state.rotation > 1:
        note(f"Earlier sessions of {one_line(state.key)!r} stay; recollect sessions lists them.")


def _in_words(state: SessionState) -> str:
    who = f"{one_line(state.key)}, {one_line(agent_label(state.agent_id))}"
    return f"session {state.id} ({who}, {counted(state.last_seq, 'record')})"


def _receipt_in_words(receipt: Receipt) -> str:
    words = [
        counted(receipt.records, "record"),
        counted(receipt.facts, "fact") + " that rested on it alone",
        counted(receipt.sources, "source"),
        counted(receipt.extractions, "extraction"),
        "1 summary" if receipt.summaries == 1 else f"{receipt.summaries:,} summaries",
    ]
    return f"Erased: {', '.join(words)}."

"""`recollect history`: what was said in a session, made harmless for a terminal."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import assert_never

import click

import recollect
from recollect.domain import Record
from recollect.interfaces.cli.options import known_keys
from recollect.interfaces.cli.output import (
    counted,
    harmless,
    moment,
    note,
    one_line,
    shortened,
    write,
    write_json,
)
from recollect.interfaces.cli.target import Target, read_agent, with_target
from recollect.interfaces.views import view
from recollect.messages import Attachment, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

DIGEST_CHARS = 200


@click.command("history")
@click.argument("key", shell_complete=known_keys)
@click.option("--agent", metavar="NAME", help="Whose session; needed if several agents use KEY.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="The newest N records. Default: 20."
)
@click.option("--all", "is_all", is_flag=True, help="Every record.")
@click.option(
    "--rotations", is_flag=True, help="Also what was said under KEY before a reset or compaction."
)
@with_target
def command(
    target: Target,
    key: str,
    agent: str | None,
    limit: int | None,
    is_all: bool,
    rotations: bool,
) -> None:
    """Show what was said in the session behind KEY, oldest first.

    Tool calls and their results are shortened, --json has everything. A key nobody has used is
    empty, not an error.

    \b
    Examples:
      recollect history telegram:42:main --limit 5
      recollect history cli:recollect:main --agent coder --all --rotations --json
    """
    if is_all and limit is not None:
        raise click.UsageError("Give --all or --limit, not both.")
    with target.open_existing(agent) as memory:
        space = memory.space(target.space_name)
        session = space.find_session(key, read_agent(agent))
        newest = None if is_all else limit or 20
        records, left_out = _read(session, newest, rotations=rotations)
        summary = "" if session is None else session.summary
    if target.as_json:
        write_json(view(records))
        return
    if left_out:
        note(f"{counted(left_out, 'earlier record')} not shown; --all shows every one.")
    if summary:
        write(f"{click.style('Summary', bold=True)}\n{indented(harmless(summary))}")
    for line in _lines(records):
        write(line)
    if not records and not summary:
        where = f"under {one_line(key)!r} in space {one_line(target.space_name)!r}"
        note(f'Nothing was said {where} yet. Say it: recollect append {one_line(key)} "Hello"')


def _read(
    session: recollect.Session | None, newest: int | None, *, rotations: bool
) -> tuple[list[Record], int]:
    """The records to show, and how many older ones there are."""
    if session is None:
        return [], 0
    if newest is not None and not rotations:
        records = session.recent(newest)
        return records, max(0, session.count() - len(records))
    everything = session.all(rotations=rotations)
    shown = everything if newest is None else everything[-newest:]
    return shown, len(everything) - len(shown)


def _lines(records: list[Record]) -> Iterator[str]:
    has_several = len({record.session_id for record in records}) > 1
    previous = None
    for record in records:
        if has_several and record.session_id != previous:
            yield click.style(f"── session {record.session_id}", dim=True)
        previous = record.session_id
        yield _heading(record)
        yield from map(indented, filter(None, map(digest, record.parts)))


def _heading(record: Record) -> str:
    speaker = f" ({one_line(record.name)})" if record.name else ""
    error = click.style(" error", fg="red") if record.is_error else ""
    role = click.style(record.role.value, fg="cyan")
    return f"{record.seq:>4}  {moment(record.at)}  {role}{speaker}{error}"


def digest(part: Part) -> str:
    """A part of a message as a person reads it; what a program said is cut short."""
    match part:
        case Text(text=text):
            return harmless(text)
        case Reasoning(text=text):
            return f"(reasoning, {counted(len(text), 'character')})"
        case ToolCall(name=name, arguments=arguments):
            given = arguments if isinstance(arguments, str) else json.dumps(arguments)
            return (
                f"→ {one_line(name)}({'' if arguments is None else shortened(given, DIGEST_CHARS)})"
            )
        case ToolResult(text=text, is_error=is_error):
            return f"← {'error: ' if is_error else ''}{shortened(text, DIGEST_CHARS)}"
        case Attachment(kind=kind, uri=uri, media_type=media_type, name=name):
            said = [one_line(word) for word in (kind, name, media_type, uri) if word]
            return f"[{', '.join(said)}]"
        case Opaque(type=kind):
            return f"[{one_line(kind)}]"
        case _:
            assert_never(part)


def indented(text: str) -> str:
    # Every line, so that no text can pass for the heading of another record.
    return textwrap.indent(text, "      ", lambda _line: True)

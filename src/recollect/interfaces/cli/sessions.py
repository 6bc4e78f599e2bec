"""`recollect sessions`: the sessions of a space as a list, or one of them in full."""

from __future__ import annotations

import click

from recollect.domain import MarkCause, Mode, Range, SessionState
from recollect.errors import InvalidValue
from recollect.interfaces.cli.output import (
    NONE,
    moment,
    note,
    number,
    one_line,
    table,
    write,
    write_json,
)
from recollect.interfaces.cli.shapes import range_shape, session_shape
from recollect.interfaces.cli.target import Target, agent_label, with_target
from recollect.memory import Space
from recollect.session import LIST_MAX

HEADERS = ("SESSION", "KEY", "AGENT", "RECORDS", "MARK", "CURSOR", "STATE", "LAST ACTIVITY")


@click.group("sessions", invoke_without_command=True)
@click.option(
    "--limit",
    type=click.IntRange(1, LIST_MAX),
    default=50,
    show_default=True,
    metavar="N",
    help=f"At most N sessions, up to {LIST_MAX:,}.",
)
@click.option("--after", metavar="ID", help="The next page: the sessions listed after this one.")
@click.option("--marked", is_flag=True, help="Only marked ones, the lowest mark first.")
@click.pass_context
@with_target
def command(
    target: Target, context: click.Context, limit: int, after: str | None, marked: bool
) -> None:
    """List the sessions of a space, newest first.

    RECORDS is the number of the last record, MARK how far the session is marked, CURSOR how far it
    has been processed.

    \b
    Examples:
      recollect sessions --limit 10
      recollect sessions --marked --space alice --json
      recollect sessions show 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    if context.invoked_subcommand is not None:
        return
    if marked and after is not None:
        raise click.UsageError("Give --marked or --after, not both.")
    with target.open() as memory:
        space = memory.space(target.space_name)
        if marked:
            found = space.sessions.find_invalidated(limit)
        else:
            before = None if after is None else _get(space, after)
            found = space.sessions.list(limit, before)
    if target.as_json:
        write_json([session_shape(state) for state in found])
    elif found:
        for line in table(HEADERS, [_row(state) for state in found]):
            write(line)
        if len(found) == limit and not marked:
            note(f"There may be more: recollect sessions --after {found[-1].id}{target.arguments}")
    elif after is None:
        note(_nothing(one_line(target.space_name), target, marked=marked))


@command.command("show")
@click.argument("session_id", metavar="ID")
@with_target
def show(target: Target, session_id: str) -> None:
    """Show one session: its state, and what has become of its records.

    \b
    Example:
      recollect sessions show 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --json
    """
    with target.open() as memory:
        space = memory.space(target.space_name)
        state = _get(space, session_id)
        count = space.sessions.count_since(state.id, 0)
        ranges = space.sessions.ranges(state.id)
    if target.as_json:
        shape = session_shape(state)
        write_json(shape | {"records": count, "ranges": [range_shape(each) for each in ranges]})
        return
    facts = _facts(state, count)
    width = max(map(len, facts))
    for name, value in facts.items():
        write(f"{click.style(name.ljust(width), bold=True)}  {one_line(value)}")
    write()
    if ranges:
        for line in table(("RECORDS", "OUTCOME", "REASON", "AT"), [_range_row(r) for r in ranges]):
            write(line)
    else:
        note("Nothing of it has been processed yet.")


def state_in_words(state: SessionState) -> str:
    match state.ended_by:
        case None:
            words = ["active"]
        case MarkCause.END:
            words = ["ended"]
        case cause:
            words = [f"ended by {cause}"]
    if not state.remembered:
        words.append("never remembered")
    if state.mode is not Mode.ENABLED:
        words.append(f"memory {state.mode}")
    if state.ephemeral:
        words.append("ephemeral")
    return ", ".join(words)


def mark_in_words(state: SessionState) -> str:
    return NONE if state.invalidated_at is None else f"{state.invalidated_at} ({state.marked_by})"


def _get(space: Space, session_id: str) -> SessionState:
    state = space.sessions.get(session_id)
    if state is None:
        raise InvalidValue(
            f"no session {session_id!r} in space {space.name!r}; recollect sessions lists them"
        )
    return state


def _row(state: SessionState) -> tuple[str, ...]:
    return (
        state.id,
        state.key,
        agent_label(state.agent_id),
        str(state.last_seq),
        mark_in_words(state),
        number(state.processed_until),
        state_in_words(state),
        moment(state.last_activity_at),
    )


def _facts(state: SessionState, count: int) -> dict[str, str]:
    ended = "" if state.ended_at is None else f" at {moment(state.ended_at)}"
    marked = "" if state.marked_at is None else f", since {moment(state.marked_at)}"
    facts = {
        "Session": state.id,
        "Space": state.space,
        "Key": state.key,
        "Agent": agent_label(state.agent_id),
        "State": state_in_words(state) + ended,
        "Rotation": str(state.rotation),
        "Source": state.source,
        "Project": state.project or NONE,
        "Parent": state.parent or NONE,
        "Records": f"{count:,}, the last has seq {state.last_seq}" if state.last_seq else "none",
        "Mark": mark_in_words(state) + marked,
        "Cursor": number(state.processed_until),
        "Unprocessed": str(state.unprocessed),
        "Created": moment(state.created_at),
        "Last activity": moment(state.last_activity_at),
    }
    return {name: value for name, value in facts.items() if value != NONE or name == "Mark"}


def _range_row(each: Range) -> tuple[str, ...]:
    return (
        f"{each.first_seq}–{each.last_seq}",
        each.outcome.value,
        each.reason or NONE,
        moment(each.at),
    )


def _nothing(space: str, target: Target, *, marked: bool) -> str:
    if marked:
        return f"No session in space {space!r} is marked. See what waits: recollect status"
    example = f'recollect append telegram:42:main "Hello"{target.arguments}'
    return f"No sessions in space {space!r} yet. Add one: {example}"

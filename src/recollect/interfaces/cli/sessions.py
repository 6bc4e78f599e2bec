"""`recollect sessions`: the sessions of a space as a list, or one of them in full."""

from __future__ import annotations

import click

from recollect.descriptors import agent_label
from recollect.domain import SessionState
from recollect.interfaces.cli.completing import known_keys
from recollect.interfaces.cli.lookup import find_session
from recollect.interfaces.cli.output import (
    moment,
    note,
    number,
    one_line,
    table,
    write,
    write_json,
)
from recollect.interfaces.cli.session_report import read_report, report_lines, report_shape
from recollect.interfaces.cli.states import mark_in_words, state_in_words
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
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
      recollect sessions show telegram:42:main
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
            before = None if after is None else find_session(space, after)
            found = space.sessions.list(limit, before)
    if target.as_json:
        write_json(view(found))
    elif found:
        for line in table(HEADERS, [_row(state) for state in found]):
            write(line)
        if len(found) == limit and not marked:
            note(f"There may be more: recollect sessions --after {found[-1].id}{target.arguments}")
    elif after is None:
        note(_nothing(one_line(target.space_name), target, marked=marked))


@command.command("show", short_help="Show one session, and the facts beside their records.")
@click.argument("key_or_id", metavar="KEY-OR-ID", shell_complete=known_keys)
@click.option("--agent", metavar="NAME", help="Whose session; needed if several agents use KEY.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    metavar="N",
    help="The facts of at most N places in the session; --json has all.",
)
@with_target
def show(target: Target, key_or_id: str, agent: str | None, limit: int) -> None:
    """Show one session: its state, what it came to, and the facts beside their records.

    It says who read which records, in how many attempts and at what cost; what was made of them;
    each fact under the record it comes from; and the calls to a model. KEY is its current session.

    \b
    Examples:
      recollect sessions show telegram:42:main
      recollect sessions show 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --json
    """
    with target.open(agent) as memory:
        space = memory.space(target.space_name)
        report = read_report(space, find_session(space, key_or_id, agent))
        if target.as_json:
            write_json(report_shape(report))
            return
        for line in report_lines(space, report, limit):
            write(line)


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


def _nothing(space: str, target: Target, *, marked: bool) -> str:
    if marked:
        return f"No session in space {space!r} is marked. See what waits: recollect status"
    example = f'recollect append telegram:42:main "Hello"{target.arguments}'
    return f"No sessions in space {space!r} yet. Add one: {example}"

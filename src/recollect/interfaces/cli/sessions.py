"""`recollect sessions`: the list of them, one in full, and the marks they get by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import click

from recollect.descriptors import agent_label, from_cache_key
from recollect.domain import Mode, SessionState
from recollect.errors import UsageError
from recollect.interfaces.cli.agents import all_agents_option, is_talking
from recollect.interfaces.cli.arguments import find_session, limit_option
from recollect.interfaces.cli.groups import ListingGroup
from recollect.interfaces.cli.options import known_keys, target_options
from recollect.interfaces.cli.output import (
    moment,
    note,
    number,
    one_line,
    table,
    write,
    write_json,
)
from recollect.interfaces.cli.session_report import (
    mark_in_words,
    read_report,
    report_lines,
    report_shape,
    state_in_words,
)
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.session import Session
from recollect.space import Space

LISTED = 50
HEADERS = ("SESSION", "KEY", "AGENT", "RECORDS", "MARK", "CURSOR", "STATE", "LAST ACTIVITY")


_key = click.argument("key_or_id", metavar="KEY-OR-ID", shell_complete=known_keys)
_agent = click.option(
    "--agent", metavar="NAME", help="Whose session; needed if several agents use KEY."
)


@click.group("sessions", cls=ListingGroup)
@target_options
def command(**_given: object) -> None:
    """The sessions of a space; without a verb, the list of them, newest first.

    A session is marked when there is enough to learn from, when it ends, or by hand. KEY is the
    stable key of a conversation and stands for its current session; an id names one of them.

    \b
    Examples:
      recollect sessions --limit 10
      recollect sessions --marked --space alice --json
      recollect sessions show telegram:42:main
      recollect sessions end telegram:42:main
    """


@command.command("list")
@limit_option(LISTED, "sessions")
@click.option("--after", metavar="ID", help="The next page: the sessions listed after this one.")
@click.option("--marked", is_flag=True, help="Only marked ones, the lowest mark first.")
@all_agents_option
@with_target
def list_(target: Target, limit: int, after: str | None, marked: bool, all_agents: bool) -> None:
    """List the sessions of a space, newest first.

    RECORDS is the number of the last record, MARK how far the session is marked, CURSOR how far it
    has been processed. Agents that work on memory itself have sessions, too: --all-agents.

    \b
    Examples:
      recollect sessions list --limit 10
      recollect sessions list --all-agents --json
    """
    if marked and after is not None:
        raise click.UsageError("Give --marked or --after, not both.")
    with target.open_existing() as memory:
        space = memory.space(target.space_name)
        if marked:
            found = space.sessions.find_invalidated(limit)
        else:
            before = None if after is None else find_session(space, after)
            found = list(islice(_listed(space, limit, before, all_agents=all_agents), limit))
    if target.as_json:
        write_json(view(found))
    elif found:
        for line in table(HEADERS, [_row(state) for state in found]):
            write(line)
        if len(found) == limit and not marked:
            words = f"{'--all-agents ' if all_agents else ''}--after {found[-1].id}"
            note(f"There may be more: recollect sessions {words}{target.arguments}")
    elif after is None:
        note(_nothing(one_line(target.space_name), target, marked=marked))


command.lists_by(list_)


def _listed(
    space: Space, page: int, before: SessionState | None, *, all_agents: bool
) -> Iterator[SessionState]:
    """Sessions, newest first, page by page; of agents that work on memory only if asked for."""
    while states := space.sessions.list(page, before):
        before = states[-1]
        yield from (state for state in states if all_agents or is_talking(state.agent_id))


@command.command("show", short_help="Show one session, and the facts beside their records.")
@_key
@_agent
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
    with target.open_existing(agent) as memory:
        space = memory.space(target.space_name)
        report = read_report(space, find_session(space, key_or_id, agent))
        if target.as_json:
            write_json(report_shape(report))
            return
        for line in report_lines(space, report, limit):
            write(line)


@command.command("mark", short_help="Mark a session: it is to be learned from.")
@_key
@_agent
@click.option(
    "--upto", type=click.IntRange(min=1), metavar="N", help="Up to record N. Default: the last one."
)
@with_target
def mark(target: Target, key_or_id: str, agent: str | None, upto: int | None) -> None:
    """Mark a session, so that workers learn from it. A mark only rises until it is processed.

    \b
    Examples:
      recollect sessions mark telegram:42:main
      recollect sessions mark telegram:42:main --upto 20 --json
    """
    with target.open_existing(agent) as memory:
        space = memory.space(target.space_name)
        before = find_session(space, key_or_id, agent)
        if not before.last_seq:
            raise UsageError(f"session {before.id} has no records: there is nothing to mark")
        space.sessions.invalidate(before.id, upto or before.last_seq)
        state = space.sessions.get(before.id)
    _tell(target, "Marked", state or before)


@command.command("reset", short_help="Mark a session and start an empty one under its key.")
@_key
@_agent
@click.option("--reason", metavar="WHY", help="Kept with the session that is over.")
@with_target
def reset(target: Target, key_or_id: str, agent: str | None, reason: str | None) -> None:
    """Mark a session and start an empty one under the same key.

    \b
    Example:
      recollect sessions reset telegram:42:main --reason "a new subject"
    """
    with _current(target, key_or_id, agent) as session:
        state = session.reset(reason)
    _tell(target, "Began", state)


@command.command("sleep", short_help="Mark a session whose agent has gone idle.")
@_key
@_agent
@with_target
def sleep(target: Target, key_or_id: str, agent: str | None) -> None:
    """Mark a session without ending it: its agent has gone idle, and may go on with it later.

    \b
    Example:
      recollect sessions sleep telegram:42:main
    """
    with _current(target, key_or_id, agent) as session:
        state = session.sleep()
    _tell(target, "Marked", state)


@command.command("end", short_help="Mark a session and close it.")
@_key
@_agent
@with_target
def end(target: Target, key_or_id: str, agent: str | None) -> None:
    """Mark a session and close it; the next message to its key opens a new one.

    \b
    Example:
      recollect sessions end telegram:42:main
    """
    with _current(target, key_or_id, agent) as session:
        state = session.end()
    _tell(target, "Ended", state)


@contextmanager
def _current(target: Target, key_or_id: str, agent: str | None) -> Iterator[Session]:
    """The conversation, if the session that was named is still the one it goes on in."""
    with target.open_existing(agent) as memory:
        space = memory.space(target.space_name)
        state = find_session(space, key_or_id, agent)
        session = space.find_session(state.key, from_cache_key(state.agent_id))
        if session is None or session.id != state.id:
            now = "" if session is None else f"; the conversation goes on in session {session.id}"
            raise UsageError(f"session {state.id} is over{now}")
        yield session


def _tell(target: Target, does: str, state: SessionState) -> None:
    if target.as_json:
        write_json(view(state))
        return
    name = f"session {state.id} of {one_line(state.key)}"
    if state.invalidated_at is not None:
        write(f"{does} {name}, mark {mark_in_words(state)}.")
    elif does == "Marked":
        is_learned = state.remembered and not state.ephemeral and state.mode is Mode.ENABLED
        why = "all of it has been processed" if is_learned else state_in_words(state)
        write(f"Nothing to mark in {name}: {why}.")
    else:
        write(f"{does} {name}.")


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

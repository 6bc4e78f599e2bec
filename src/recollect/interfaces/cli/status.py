"""`recollect status`: what is marked and why, what waits and for what."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import click

from recollect.domain import SessionState, Status
from recollect.interfaces.cli.output import counted, moment, one_line, table, write, write_json
from recollect.interfaces.cli.shapes import status_shape
from recollect.interfaces.cli.target import Target, agent_label, with_target
from recollect.session import LIST_MAX

WHO = ("SPACE", "SESSION", "KEY", "AGENT")


@click.command("status")
@click.option(
    "--limit",
    type=click.IntRange(0, LIST_MAX),
    default=20,
    show_default=True,
    metavar="N",
    help="At most N sessions of each kind.",
)
@with_target
def command(target: Target, limit: int) -> None:
    """Say what is due and what waits, over all spaces or, with --space, in one.

    A marked session is ready to be processed. A waiting one has unprocessed records and no mark
    yet; the idle sweep marks it once nothing has been said for a while.

    \b
    Examples:
      recollect status
      recollect status --store postgresql://localhost/memory --space alice --json
    """
    with target.open() as memory:
        if target.space is not None:
            memory.space(target.space)  # checks the name
        status = memory.status(target.space, limit)
    if target.as_json:
        write_json({"space": target.space} | status_shape(status))
        return
    for line in status_lines(status, target.space):
        write(line)


def status_lines(status: Status, space: str | None) -> Iterator[str]:
    """The status as people read it."""
    store = status.store
    yield _headed("Store", f"{store.kind}, {one_line(store.location)}")
    yield _headed("Schema", f"version {store.schema_version}")
    yield _headed("Space", "all" if space is None else one_line(space))
    yield _headed("Marked", counted(status.marked_count, "session"))
    yield from _listed(
        ("WHY", "SINCE", "UP TO", "UNPROCESSED"),
        [(state, _marked_row(state)) for state in status.marked],
        status.marked_count,
        space,
    )
    yield _headed("Waiting", counted(status.waiting_count, "session"))
    yield from _listed(
        ("UNPROCESSED", "WAITS FOR"),
        [(state, _waiting_row(state, status)) for state in status.waiting],
        status.waiting_count,
        space,
    )


def _headed(name: str, value: str) -> str:
    return f"{click.style(name.ljust(8), bold=True)} {value}"


def _listed(
    headers: tuple[str, ...],
    rows: list[tuple[SessionState, tuple[str, ...]]],
    count: int,
    space: str | None,
) -> Iterator[str]:
    if rows:
        first = 0 if space is None else 1  # one space is named above, not in every line
        full = [(*_who(state)[first:], *row) for state, row in rows]
        yield from (f"  {line}" for line in table((*WHO[first:], *headers), full))
    if len(rows) < count:
        yield f"  … and {count - len(rows):,} more (--limit)"


def _who(state: SessionState) -> tuple[str, ...]:
    return state.space, state.id, state.key, agent_label(state.agent_id)


def _marked_row(state: SessionState) -> tuple[str, ...]:
    return (
        str(state.marked_by),
        moment(state.marked_at),
        str(state.invalidated_at),
        str(state.unprocessed),
    )


def _waiting_row(state: SessionState, status: Status) -> tuple[str, ...]:
    due = state.last_activity_at + timedelta(seconds=status.idle_sweep_seconds)
    if due <= status.at:
        words = f"due since {moment(due)}: the next idle sweep marks it (recollect sweep)"
    else:
        words = f"will be marked by the idle sweep at {moment(due)}"
    return str(state.unprocessed), words

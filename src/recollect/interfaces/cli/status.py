"""`recollect status`: what is marked and why it is not being processed, what waits and for what."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime, timedelta

import click

import recollect
from recollect.domain import Job, JobKind, JobState, SessionState, Status
from recollect.interfaces.cli.output import (
    NONE,
    counted,
    moment,
    one_line,
    shortened,
    table,
    write,
    write_json,
)
from recollect.interfaces.cli.shapes import next_attempt, status_shape
from recollect.interfaces.cli.target import Target, agent_label, with_target
from recollect.session import LIST_MAX

WHO = ("SPACE", "SESSION", "KEY", "AGENT")
MARK = ("MARKED BY", "SINCE", "UP TO", "UNPROCESSED")
JOB = ("STATE", "WHY", "NEXT TRY", "TRIES", "LAST ERROR")
ERROR_CHARS = 100


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

    A marked session is to be processed: STATE and WHY say where that stands, NEXT TRY when it is
    worked on, TRIES what went wrong since something was last recorded. A waiting session has
    unprocessed records and no mark yet; the idle sweep marks it once nothing has been said for a
    while. Upkeep is what workers do for the store itself.

    \b
    Examples:
      recollect status
      recollect status --store postgresql://localhost/memory --space alice --json
    """
    with target.open() as memory:
        if target.space is not None:
            memory.space(target.space)  # checks the name
        status = read_status(memory, target.space, limit)
    if target.as_json:
        write_json({"space": target.space} | status_shape(status))
        return
    for line in status_lines(status, target.space):
        write(line)


def read_status(memory: recollect.Memory, space: str | None, limit: int) -> Status:
    """The status, with the job of every marked session and of all upkeep that is listed.

    Jobs have an order of their own: the first N of them need not be those of the first N sessions.
    """
    status = memory.status(space, limit)
    wanted = [(JobKind.EXTRACT, state.id) for state in status.marked]
    if space is None:
        wanted += [(kind, kind.value) for kind in JobKind if kind is not JobKind.EXTRACT]
    known = {(job.kind, job.key) for job in status.jobs}
    found = (memory.store.leases.get(space, *which) for which in wanted if which not in known)
    missing = [job for job in found if job is not None]
    return dataclasses.replace(status, jobs=(*status.jobs, *missing)) if missing else status


def status_lines(status: Status, space: str | None) -> Iterator[str]:
    """The status as people read it."""
    store = status.store
    sessions = {job.key: job for job in status.jobs if job.kind is JobKind.EXTRACT}
    upkeep = [job for job in status.jobs if job.kind is not JobKind.EXTRACT]
    yield _headed("Store", f"{store.kind}, {one_line(store.location)}")
    yield _headed("Schema", f"version {store.schema_version}")
    yield _headed("Space", "all" if space is None else one_line(space))
    yield _headed("Marked", _marked_in_words(status, upkeep))
    yield from _listed(
        (*MARK, *JOB),
        [
            (state, (*_mark_cells(state), *_job_cells(sessions.get(state.id), status.at)))
            for state in status.marked
        ],
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
    if upkeep:
        yield _headed("Upkeep", counted(len(upkeep), "job"))
        rows = [
            (job.kind.value, moment(job.finished_at), *_job_cells(job, status.at)) for job in upkeep
        ]
        yield from (f"  {line}" for line in table(("JOB", "LAST RUN", *JOB), rows))


def _headed(name: str, value: str) -> str:
    return f"{click.style(name.ljust(8), bold=True)} {value}"


def _marked_in_words(status: Status, upkeep: list[Job]) -> str:
    counts = {
        state: count - sum(job.state is state for job in upkeep)
        for state, count in status.job_counts.items()
    }
    words = [f"{count:,} {state}" for state, count in sorted(counts.items()) if count > 0]
    return ": ".join(filter(None, (counted(status.marked_count, "session"), ", ".join(words))))


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


def _mark_cells(state: SessionState) -> tuple[str, ...]:
    return (
        str(state.marked_by),
        moment(state.marked_at),
        str(state.invalidated_at),
        str(state.unprocessed),
    )


def _job_cells(job: Job | None, now: datetime) -> tuple[str, ...]:
    if job is None:
        return (NONE,) * len(JOB)
    return (
        job.state.value,
        job.why(now),
        _next_in_words(job, now),
        _tries_in_words(job),
        NONE if job.last_error is None else shortened(job.last_error, ERROR_CHARS),
    )


def _next_in_words(job: Job, now: datetime) -> str:
    time = next_attempt(job, now)
    if time is None:
        return "recollect retry" if job.state is JobState.PARKED else NONE
    if time <= now:
        return "now"
    return f"{moment(time)}, if it dies" if job.state is JobState.CLAIMED else moment(time)


def _tries_in_words(job: Job) -> str:
    counts = {"failed": job.failures, "taken over": job.takeovers}
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or NONE


def _waiting_row(state: SessionState, status: Status) -> tuple[str, ...]:
    due = state.last_activity_at + timedelta(seconds=status.idle_sweep_seconds)
    if due <= status.at:
        words = f"due since {moment(due)}: the next idle sweep marks it (recollect sweep)"
    else:
        words = f"will be marked by the idle sweep at {moment(due)}"
    return str(state.unprocessed), words

"""`recollect status`: what is due and why it does not run, what came of sessions, how agents do."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import click

import recollect
from recollect.agency import Life
from recollect.descriptors import agent_label
from recollect.domain import (
    Job,
    JobKind,
    JobState,
    SessionOutcome,
    SessionProgress,
    SessionState,
)
from recollect.interfaces.cli.agents import (
    agent_lines,
    all_agents_option,
    is_talking,
    lives_in_words,
    shown_agents,
)
from recollect.interfaces.cli.generation_lines import (
    Consolidation,
    consolidation_lines,
    consolidation_shape,
    read_consolidation,
)
from recollect.interfaces.cli.output import (
    NONE,
    counted,
    moment,
    one_line,
    shortened,
    spent_in_words,
    table,
    write,
    write_json,
)
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.knowledge import Caps
from recollect.session import LIST_MAX
from recollect.status import ModelUse, Status

UPKEEP = (JobKind.IDLE_SWEEP, JobKind.STARTUP_SCAN, JobKind.EMBED, JobKind.SIGNALS)
OF_AGENTS = (JobKind.AGENT, JobKind.MEMORY_AGENT)
APART = (*UPKEEP, *OF_AGENTS, JobKind.CONSOLIDATE)  # jobs that are no session's
ERROR_CHARS = 200
NOUNS = ("session", "agent", "space", "job")
NOT_YET, EMPTY = "not processed yet", "nothing was said in it yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The status, with what people have to be told besides."""

    status: Status
    paused: tuple[Job, ...]  # by a cap or by a key that was refused
    passes: tuple[Job, ...]  # new passes that were asked for
    others: Counter[str]  # the sessions that are not listed, by outcome
    apart: Counter[JobState]  # the jobs that are no session's
    lives: Mapping[Life, int]  # how many agents there are, by how they live
    caps: Caps  # what each space may use in a day
    spaces: tuple[Consolidation, ...]  # in which something was learned, as far as they are listed
    has_more_spaces: bool


@click.command("status")
@click.option(
    "--limit",
    type=click.IntRange(0, LIST_MAX),
    default=20,
    show_default=True,
    metavar="N",
    help="At most N sessions of each kind, N agents and N spaces.",
)
@all_agents_option
@with_target
def command(target: Target, limit: int, all_agents: bool) -> None:
    """Say what is due and what waits, over all spaces or, with --space, in one.

    A marked session is to be processed: it is said where that stands, when it is tried next and
    what went wrong. A waiting session has unprocessed records and no mark yet; the idle sweep marks
    it once nothing has been said for a while. Sessions are listed with how their last run ended,
    what was learned and what it took, the most recently begun first. What is paused by a spending
    cap or a refused key says until when, and how to go on. Upkeep is what workers do for the store.

    Where a model does anything, or did, each job is listed with who does it (a model, rules, or off
    where it is switched off) and with the calls, tokens and cost that it took today and in all.

    Memory is told of by space: which generation is current, how many memories the next one would
    add and remove, why it has not been made yet and when it will be.

    Agents are listed with how they live, their session, what is in their inbox, the signal that
    comes next, and what went wrong; those that are awake come first. What a memory-agent has still
    to read is said of each session that was handed over to it; it and its own session are listed if
    something went wrong with it, or with --all-agents.

    \b
    Examples:
      recollect status
      recollect status --store postgresql://localhost/memory --space alice --json
    """
    with target.open_existing() as memory:
        if target.space is not None:
            memory.space(target.space)  # checks the name
        overview = read_overview(memory, target.space, limit, all_agents=all_agents)
    if target.as_json:
        write_json({"space": target.space} | overview_shape(overview))
        return
    for line in overview_lines(overview, target):
        write(line)


def read_overview(
    memory: recollect.Memory, space: str | None, limit: int, *, all_agents: bool = False
) -> Overview:
    """The status, and what of it lies beyond the limit and must not be missed."""
    jobs = memory.store.leases.jobs(space, LIST_MAX)
    sessions = memory.store.extractions.progress(space, LIST_MAX)
    if not all_agents:
        sessions = _of_agents_that_talk(memory, sessions)
    known = memory.store.agents.list(space, LIST_MAX)
    agents = known if all_agents else shown_agents(known)
    hidden = Counter(agent.life for agent in known) - Counter(agent.life for agent in agents)
    status = _with_jobs(memory, memory.status(space, limit), space)
    status = dataclasses.replace(
        status, sessions=tuple(sessions[:limit]), agents=tuple(agents[:limit])
    )
    states = memory.store.generations.states(space, limit + 1, "", status.at)
    settings = memory.settings
    return Overview(
        status=status,
        paused=tuple(job for job in jobs if _is_paused(job, status.at)),
        passes=tuple(job for job in jobs if job.kind is JobKind.EXTRACT_AGAIN),
        others=Counter(_outcome(each) for each in sessions[len(status.sessions) :]),
        apart=Counter(job.state for job in jobs if job.kind in APART),
        lives=Counter(memory.store.agents.counts(space)) - hidden,
        caps=Caps(
            tokens_per_day=settings.spend_tokens_per_day, calls_per_day=settings.spend_calls_per_day
        ),
        spaces=tuple(read_consolidation(memory, state, status.at) for state in states[:limit]),
        has_more_spaces=len(states) > limit,
    )


def _of_agents_that_talk(
    memory: recollect.Memory, sessions: Sequence[SessionProgress]
) -> list[SessionProgress]:
    """The sessions of agents that do not work on memory itself."""

    def is_told(progress: SessionProgress) -> bool:
        if progress.remembered:
            return True
        state = memory.store.sessions.get(progress.space, progress.session_id)
        return state is None or is_talking(state.agent_id)

    return [progress for progress in sessions if is_told(progress)]


def _with_jobs(memory: recollect.Memory, status: Status, space: str | None) -> Status:
    """The status with the job of every marked session and of all upkeep that is listed.

    Jobs have an order of their own: the first N of them need not be those of the first N sessions.
    """
    wanted = [(JobKind.EXTRACT, state.id) for state in status.marked]
    if space is None:
        wanted += [(kind, kind.value) for kind in UPKEEP]
    known = {(job.kind, job.key) for job in status.jobs}
    found = (memory.store.leases.get(space, *which) for which in wanted if which not in known)
    missing = [job for job in found if job is not None]
    return dataclasses.replace(status, jobs=(*status.jobs, *missing)) if missing else status


def _is_paused(job: Job, now: datetime) -> bool:
    return job.is_paused and job.due_at is not None and job.due_at > now


def overview_shape(overview: Overview) -> dict[str, Any]:
    return view(overview.status, overview.status.at) | {
        "paused": view(overview.paused, overview.status.at),
        "passes": view(overview.passes, overview.status.at),
        "sessions_not_listed": dict(overview.others),
        "agent_counts": {life.value: overview.lives.get(life, 0) for life in Life},
        "caps": view(overview.caps),
        "consolidations": [
            consolidation_shape(each, overview.status.at) for each in overview.spaces
        ],
    }


def overview_lines(overview: Overview, target: Target) -> Iterator[str]:
    """The status as people read it."""
    status, space = overview.status, target.space
    upkeep = [job for job in status.jobs if job.kind in UPKEEP]
    yield _headed("Store", f"{status.store.kind}, {one_line(status.store.location)}")
    yield _headed("Schema", f"version {status.store.schema_version}")
    yield _headed("Space", "all" if space is None else one_line(space))
    yield from _paused_lines(overview, target)
    yield _headed("Marked", _marked_in_words(overview))
    yield from _marked_lines(status, space)
    yield _headed("Waiting", counted(status.waiting_count, "session"))
    yield from _waiting_lines(status, space)
    yield from _pass_lines(overview)
    yield _headed("Sessions", _sessions_in_words(overview))
    for progress in status.sessions:
        yield from _progress_lines(progress, overview, space)
    yield from _agents_lines(overview, space)
    yield from _memory_lines(overview, target)
    yield _headed("Spent", f"today (UTC): {spent_in_words(status.spent_today)}")
    yield f"  {_caps_in_words(overview.caps, space)}"
    yield from _models_lines(status.models)
    yield from _upkeep_lines(upkeep, status.at)


def _headed(name: str, value: str) -> str:
    return f"{click.style(name.ljust(8), bold=True)} {value}"


def _paused_lines(overview: Overview, target: Target) -> Iterator[str]:
    """What waits although nothing is wrong with it: why, until when, and how to go on."""
    by_reason: dict[str, list[Job]] = {}
    for job in overview.paused:
        by_reason.setdefault(job.last_error or "", []).append(job)
    for reason, jobs in by_reason.items():
        until = max(job.due_at for job in jobs if job.due_at is not None)
        words = f"{_jobs_in_words(jobs)}, until {moment(until)}"
        yield _headed("Paused", click.style(words, fg="yellow", bold=True))
        yield f"  {one_line(reason)}"
    if by_reason:
        where = f"{target.arguments}{'' if target.space else ' --all'}"
        yield f"  Mend that, then go on at once: recollect retry{where}"


def _jobs_in_words(jobs: Sequence[Job]) -> str:
    nouns = Counter(_noun(job.kind) for job in jobs)
    return " and ".join(counted(nouns[noun], noun) for noun in NOUNS if nouns[noun])


def _noun(kind: JobKind) -> str:
    """What a job of this kind is about."""
    if kind is JobKind.CONSOLIDATE:
        return "space"
    if kind in UPKEEP:
        return "job"
    return "agent" if kind in OF_AGENTS else "session"


def _marked_in_words(overview: Overview) -> str:
    status, apart = overview.status, overview.apart
    counts = {state: count - apart[state] for state, count in status.job_counts.items()}
    words = [f"{count:,} {state}" for state, count in sorted(counts.items()) if count > 0]
    jobs = f"; jobs: {', '.join(words)}" if words else ""
    return counted(status.marked_count, "session") + jobs


def _marked_lines(status: Status, space: str | None) -> Iterator[str]:
    jobs = {job.key: job for job in status.jobs if job.kind is JobKind.EXTRACT}
    for state in status.marked:
        yield _who(state, space)
        yield (
            f"    {counted(state.unprocessed, 'record')} up to {state.invalidated_at},"
            f" marked by {state.marked_by} since {moment(state.marked_at)}"
        )
        if state.id in jobs:
            yield from _job_lines(jobs[state.id], status.at)
    yield from _more(len(status.marked), status.marked_count)


def _waiting_lines(status: Status, space: str | None) -> Iterator[str]:
    for state in status.waiting:
        yield _who(state, space)
        yield f"    {counted(state.unprocessed, 'record')}; {_waits_for(state, status)}"
    yield from _more(len(status.waiting), status.waiting_count)


def _pass_lines(overview: Overview) -> Iterator[str]:
    if not overview.passes:
        return
    yield _headed("Again", f"{counted(len(overview.passes), 'session')} to be gone through again")
    shown = overview.passes[: max(len(overview.status.sessions), 1)]
    for job in shown:
        yield f"  {one_line(job.key)}"
        yield from _job_lines(job, overview.status.at)
    yield from _more(len(shown), len(overview.passes))


def _who(state: SessionState, space: str | None) -> str:
    where = "" if space is not None else f", space {one_line(state.space)}"
    who = f"{one_line(state.key)} ({one_line(agent_label(state.agent_id))}{where})"
    return f"  {state.id}  {who}"


def _more(shown: int, count: int) -> Iterator[str]:
    if shown < count:
        yield f"  … and {count - shown:,} more (--limit)"


def _job_lines(job: Job, now: datetime) -> Iterator[str]:
    yield f"    {job.state}: {one_line(job.why(now))}; next try: {_next_in_words(job, now)}"
    tries = _tries_in_words(job)
    is_told = job.last_error is None or _is_paused(job, now)  # what is paused is told above
    error = None if is_told else shortened(job.last_error or "", ERROR_CHARS)
    if tries or error:
        yield f"    {'; last error: '.join(filter(None, (tries, error)))}"


def _next_in_words(job: Job, now: datetime) -> str:
    time = job.next_attempt_at(now)
    if time is None:
        return "recollect retry" if job.state is JobState.PARKED else NONE
    if time <= now:
        return "now"
    return f"{moment(time)}, if it dies" if job.state is JobState.CLAIMED else moment(time)


def _tries_in_words(job: Job) -> str:
    counts = {"failed": job.failures, "taken over": job.takeovers}
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def _waits_for(state: SessionState, status: Status) -> str:
    if state.id in status.passed_over:
        return "left out by scan_sources or scan_age_days_max (recollect work --all)"
    due = state.last_activity_at + timedelta(seconds=status.idle_sweep_seconds)
    if due <= status.at:
        return f"due since {moment(due)}: the next idle sweep marks it (recollect sweep)"
    return f"will be marked by the idle sweep at {moment(due)}"


# what came of sessions


def _outcome(progress: SessionProgress) -> str:
    if progress.outcome is None:
        return NOT_YET if progress.last_seq else EMPTY
    if progress.outcome is SessionOutcome.SUCCEEDED_NO_OUTPUT and progress.facts:
        return SessionOutcome.SUCCEEDED.value  # the facts are of an earlier run, or of an agent
    return progress.outcome.value


def _sessions_in_words(overview: Overview) -> str:
    listed, others = len(overview.status.sessions), overview.others.total()
    if not others:
        return f"{listed:,}, the most recently begun first" if listed > 1 else f"{listed:,}"
    words = ", ".join(f"{count:,} {what}" for what, count in overview.others.most_common())
    least = "at least " if listed + others >= LIST_MAX else ""
    return f"{listed:,} of {least}{listed + others:,}; the others: {words} (--limit)"


def _progress_lines(
    progress: SessionProgress, overview: Overview, space: str | None
) -> Iterator[str]:
    where = "" if space is not None else f" (space {one_line(progress.space)})"
    yield f"  {progress.session_id}  {one_line(progress.key)}{where}"
    is_never = progress.outcome is None and not progress.remembered
    yield f"    {'never remembered' if is_never else _ended_in_words(progress)}"
    if progress.outcome is not None:
        facts = f"{counted(progress.facts, 'fact')}"
        by = f" by {one_line(progress.extractor)}" if progress.extractor else ""
        yield f"    {facts}{by}; {spent_in_words(progress.spent)}"
    if progress.handed_over:
        parts = counted(progress.handed_over, "part")
        yield f"    its memory-agent has still to read {parts} of it"
    if progress.session_id in {job.key for job in overview.paused}:
        yield "    paused, see above"
    elif progress.last_error is not None:
        yield f"    {_error_in_words(progress, overview.status.at)}"


def _ended_in_words(progress: SessionProgress) -> str:
    outcome = _outcome(progress)
    if progress.outcome in (SessionOutcome.FAILED, None):
        words = outcome
    else:
        words = f"{click.style(outcome, fg='green')} {moment(progress.finished_at)}"
    if progress.attempt is not None:
        words += f", attempt {progress.attempt}"
    unprocessed = progress.last_seq - (progress.processed_until or 0)
    return words + (f"; {counted(unprocessed, 'new record')}" if unprocessed else "")


def _error_in_words(progress: SessionProgress, now: datetime) -> str:
    match progress.state:
        case JobState.PARKED:
            when = "parked, until recollect retry"
        case JobState.DUE if progress.next_try_at is not None and progress.next_try_at > now:
            when = f"next try {moment(progress.next_try_at)}"
        case JobState.DUE:
            when = "next try now"
        case _:
            when = progress.state.value
    error = shortened(progress.last_error or "", ERROR_CHARS)
    return f"{when}; last error: {click.style(error, fg='red')}"


def _caps_in_words(caps: Caps, space: str | None) -> str:
    whose = "each space" if space is None else "the space"
    calls, tokens = counted(caps.calls_per_day, "call"), counted(caps.tokens_per_day, "token")
    return f"{whose} may use {calls} and {tokens} a day"


def _models_lines(uses: Sequence[ModelUse]) -> Iterator[str]:
    """Who does each job and what it took; nothing where no model does any, or ever did."""
    told = [use for use in uses if use.by not in ("rules", "off") or use.in_all.tokens]
    if not told:
        return
    rows = [
        (
            use.job,
            use.by or "the model of each agent",
            spent_in_words(use.today),
            spent_in_words(use.in_all),
        )
        for use in uses
    ]
    yield _headed("Models", "who does each job, and what it took")
    yield from (f"  {line}" for line in table(("JOB", "BY", "TODAY (UTC)", "IN ALL"), rows))


def _agents_lines(overview: Overview, space: str | None) -> Iterator[str]:
    if not overview.lives:
        return
    status = overview.status
    yield _headed("Agents", lives_in_words(overview.lives))
    yield from agent_lines(status.agents, status.at, space)
    yield from _more(len(status.agents), sum(overview.lives.values()))


# what spaces remember


def _memory_lines(overview: Overview, target: Target) -> Iterator[str]:
    if not overview.spaces and not overview.has_more_spaces:
        return
    due = counted(overview.status.consolidations_due, "space")
    yield _headed("Memory", f"changed since it was consolidated: {due}")
    for each in overview.spaces:
        yield from (f"  {line}" for line in consolidation_lines(each, overview.status.at, target))
    if overview.has_more_spaces:
        yield "  … and more (--limit)"


# what workers do for the store itself


def _upkeep_lines(upkeep: Sequence[Job], now: datetime) -> Iterator[str]:
    if not upkeep:
        return
    yield _headed("Upkeep", counted(len(upkeep), "job"))
    rows = [
        (
            job.kind.value,
            moment(job.finished_at),
            job.state.value,
            _next_in_words(job, now),
            _tries_in_words(job) or NONE,
            NONE if job.last_error is None else shortened(job.last_error, ERROR_CHARS),
        )
        for job in upkeep
    ]
    headers = ("JOB", "LAST RUN", "STATE", "NEXT TRY", "TRIES", "LAST ERROR")
    yield from (f"  {line}" for line in table(headers, rows))

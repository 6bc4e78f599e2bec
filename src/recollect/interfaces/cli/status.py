"""`recollect status`, `retry` and `sweep`: what is due, what waits and why, results and cost."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

import click

import recollect
from recollect.descriptors import agent_label
from recollect.errors import InvalidValue
from recollect.interfaces.cli.commands import Arg, Opt, Output, Target, command
from recollect.interfaces.cli.generations import (
    Consolidation,
    consolidation_lines,
    consolidation_view,
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
)
from recollect.interfaces.cli.parameters import AllAgents
from recollect.interfaces.cli.sessions import (
    agent_lines,
    counts_of_agents,
    is_talking,
    shown_agents,
)
from recollect.interfaces.views import view
from recollect.session import LIST_MAX
from recollect.types.agents import Life
from recollect.types.facts import Caps
from recollect.types.records import (
    Job,
    JobKind,
    JobState,
    SessionOutcome,
    SessionProgress,
    SessionState,
)
from recollect.types.status import Status

UPKEEP = (JobKind.IDLE_SWEEP, JobKind.STARTUP_SCAN, JobKind.EMBED, JobKind.SIGNALS)
OF_AGENTS = (JobKind.AGENT, JobKind.MEMORY_AGENT)
OF_NO_SESSION = (*UPKEEP, *OF_AGENTS, JobKind.CONSOLIDATE)
ERROR_CHARS = 200
NOUNS = ("session", "agent", "space", "job")
NOT_YET, EMPTY = "not processed yet", "no messages yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The status, with what people have to be told besides."""

    status: Status
    paused: tuple[Job, ...]  # by a cap or by a key that was refused
    passes: tuple[Job, ...]  # new passes that were asked for
    others: Counter[str]  # the sessions that are not listed, by outcome
    of_no_session: Counter[JobState]
    lives: Mapping[Life, int]  # how many agents there are, by how they live
    caps: Caps  # what each space may use in a day
    spaces: tuple[Consolidation, ...]  # in which something was learned, as far as they are listed
    has_more_spaces: bool


@command()
def status(
    at: Target,
    *,
    limit: Annotated[
        int,
        Opt(
            "At most N sessions of each kind, N agents and N spaces.",
            "N",
            at_least=0,
            at_most=LIST_MAX,
        ),
    ] = 20,
    all_agents: AllAgents = False,
) -> Output:
    """Show what is due and what waits, over all spaces or, with --space, in one.

    A marked session is due for processing: its state, the next attempt and the last error are
    shown. A waiting session has unprocessed records and no mark yet; the idle sweep marks it after
    a while without messages. Sessions are listed with how their last run ended, what was learned
    and what it cost, the most recently started first. What is paused by a spending cap or a refused
    key shows until when, and how to resume. Upkeep is what workers do for the store.

    Where a model is or was in use, each job is listed with who does it (a model, rules, or off)
    and with the calls, tokens and cost of today and in total.

    Memory is listed by space: which generation is current, how many memories the next one would
    add and remove, why it has not been made yet and when it will be.

    Agents are listed with their state, session, inbox, next signal and errors; those that are awake
    come first. Agents that work on memory itself, and their sessions, are listed if something went
    wrong with them, or with --all-agents.

    Examples:
      recollect status
      recollect status --store postgresql://localhost/memory --space alice --json
    """
    overview = _read(at.memory, at.scope, limit, all_agents=all_agents)
    return Output({"space": at.scope, **_overview_view(overview)}, _overview_lines(overview, at))


def _read(memory: recollect.Memory, space: str | None, limit: int, *, all_agents: bool) -> Overview:
    """The status, and what of it lies beyond the limit and must not be missed."""
    jobs = memory.store.leases.jobs(space, LIST_MAX)
    sessions = memory.store.extractions.progress(space, LIST_MAX)
    if not all_agents:
        sessions = [each for each in sessions if _is_of_a_talking_agent(memory, each)]
    known = memory.store.agents.list(space, LIST_MAX)
    agents = known if all_agents else shown_agents(known)
    hidden = Counter(agent.life for agent in known) - Counter(agent.life for agent in agents)
    found = _with_jobs(memory, memory.status(space, limit), space)
    found = dataclasses.replace(
        found, sessions=tuple(sessions[:limit]), agents=tuple(agents[:limit])
    )
    states = memory.store.generations.states(space, limit + 1, "", found.at)
    settings = memory.settings
    return Overview(
        status=found,
        paused=tuple(job for job in jobs if _is_paused(job, found.at)),
        passes=tuple(job for job in jobs if job.kind is JobKind.EXTRACT_AGAIN),
        others=Counter(_outcome(each) for each in sessions[len(found.sessions) :]),
        of_no_session=Counter(job.state for job in jobs if job.kind in OF_NO_SESSION),
        lives=Counter(memory.store.agents.counts(space)) - hidden,
        caps=Caps(
            tokens_per_day=settings.spend_tokens_per_day, calls_per_day=settings.spend_calls_per_day
        ),
        spaces=tuple(read_consolidation(memory, state, found.at) for state in states[:limit]),
        has_more_spaces=len(states) > limit,
    )


def _is_of_a_talking_agent(memory: recollect.Memory, progress: SessionProgress) -> bool:
    if progress.remembered:
        return True
    state = memory.store.sessions.get(progress.space, progress.session_id)
    return state is None or is_talking(state.agent_id)


def _with_jobs(memory: recollect.Memory, found: Status, space: str | None) -> Status:
    """The status with the job of every marked session and of all upkeep that is listed.

    Jobs have an order of their own: the first N of them need not be those of the first N sessions.
    """
    wanted = [(JobKind.EXTRACT, state.id) for state in found.marked]
    if space is None:
        wanted += [(kind, kind.value) for kind in UPKEEP]
    known = {(job.kind, job.key) for job in found.jobs}
    jobs = (memory.store.leases.get(space, *which) for which in wanted if which not in known)
    missing = [job for job in jobs if job is not None]
    return dataclasses.replace(found, jobs=(*found.jobs, *missing)) if missing else found


def _is_paused(job: Job, now: datetime) -> bool:
    return job.is_paused and job.due_at is not None and job.due_at > now


def _overview_view(overview: Overview) -> dict[str, Any]:
    now = overview.status.at
    return {
        **view(overview.status, now),
        "paused": view(overview.paused, now),
        "passes": view(overview.passes, now),
        "sessions_not_listed": dict(overview.others),
        "agent_counts": {life.value: overview.lives.get(life, 0) for life in Life},
        "caps": overview.caps,
        "consolidations": [consolidation_view(each, now) for each in overview.spaces],
    }


def _overview_lines(overview: Overview, at: Target) -> Iterator[str]:
    found, space = overview.status, at.scope
    yield _headed("Store", f"{found.store.kind}, {one_line(found.store.location)}")
    yield _headed("Schema", f"version {found.store.schema_version}")
    yield _headed("Space", "all" if space is None else one_line(space))
    yield from _paused_lines(overview, at)
    yield from _marked_lines(overview, space)
    yield from _waiting_lines(found, space)
    yield from _pass_lines(overview)
    yield _headed("Sessions", _sessions_in_words(overview))
    for progress in found.sessions:
        yield from _progress_lines(progress, overview, space)
    if overview.lives:
        yield _headed("Agents", counts_of_agents(overview.lives))
        yield from (f"  {line}" for line in agent_lines(found.agents, found.at, space))
        yield from _more(len(found.agents), sum(overview.lives.values()))
    yield from _memory_lines(overview, at)
    yield _headed("Spent", f"today (UTC): {spent_in_words(found.spent_today)}")
    whose = "each space" if space is None else "the space"
    calls = counted(overview.caps.calls_per_day, "call")
    yield f"  {whose} may use {calls} and {counted(overview.caps.tokens_per_day, 'token')} a day"
    yield from _model_lines(found)
    yield from _upkeep_lines([job for job in found.jobs if job.kind in UPKEEP], found.at)


def _headed(name: str, value: str) -> str:
    return f"{click.style(name.ljust(8), bold=True)} {value}"


def _more(shown: int, count: int) -> Iterator[str]:
    if shown < count:
        yield f"  … and {count - shown:,} more (--limit)"


def _paused_lines(overview: Overview, at: Target) -> Iterator[str]:
    """What waits although nothing is wrong with it: why, until when, and how to resume."""
    by_reason: dict[str, list[Job]] = {}
    for job in overview.paused:
        by_reason.setdefault(job.last_error or "", []).append(job)
    for reason, jobs in by_reason.items():
        nouns = Counter(_noun(job.kind) for job in jobs)
        what = " and ".join(counted(nouns[noun], noun) for noun in NOUNS if nouns[noun])
        until = moment(max(job.due_at for job in jobs if job.due_at is not None))
        yield _headed("Paused", click.style(f"{what}, until {until}", fg="yellow", bold=True))
        yield f"  {one_line(reason)}"
    if by_reason:
        where = f"{at.arguments}{'' if at.named_space else ' --all'}"
        yield f"  Fix that, then resume at once: recollect retry{where}"


def _noun(kind: JobKind) -> str:
    """What a job of this kind is about."""
    if kind is JobKind.CONSOLIDATE:
        return "space"
    if kind in UPKEEP:
        return "job"
    return "agent" if kind in OF_AGENTS else "session"


def _who(state: SessionState, space: str | None) -> str:
    where = "" if space is not None else f", space {one_line(state.space)}"
    who = f"{one_line(state.key)} ({one_line(agent_label(state.agent_id))}{where})"
    return f"  {state.id}  {who}"


def _marked_lines(overview: Overview, space: str | None) -> Iterator[str]:
    found = overview.status
    counts = Counter(found.job_counts) - overview.of_no_session
    words = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
    jobs = f"; jobs: {words}" if words else ""
    yield _headed("Marked", counted(found.marked_count, "session") + jobs)
    by_key = {job.key: job for job in found.jobs if job.kind is JobKind.EXTRACT}
    for state in found.marked:
        yield _who(state, space)
        yield (
            f"    {counted(state.unprocessed, 'record')} up to {state.invalidated_at},"
            f" marked by {state.marked_by} since {moment(state.marked_at)}"
        )
        if state.id in by_key:
            yield from _job_lines(by_key[state.id], found.at)
    yield from _more(len(found.marked), found.marked_count)


def _waiting_lines(found: Status, space: str | None) -> Iterator[str]:
    yield _headed("Waiting", counted(found.waiting_count, "session"))
    for state in found.waiting:
        yield _who(state, space)
        yield f"    {counted(state.unprocessed, 'record')}; {_waits_for(state, found)}"
    yield from _more(len(found.waiting), found.waiting_count)


def _waits_for(state: SessionState, found: Status) -> str:
    if state.id in found.passed_over:
        return "left out by scan_sources or scan_age_days_max (recollect work --all)"
    due = state.last_activity_at + timedelta(seconds=found.idle_sweep_seconds)
    if due <= found.at:
        return f"due since {moment(due)}: the next idle sweep marks it (recollect sweep)"
    return f"will be marked by the idle sweep at {moment(due)}"


def _pass_lines(overview: Overview) -> Iterator[str]:
    if not overview.passes:
        return
    yield _headed("Again", f"{counted(len(overview.passes), 'session')} to be gone through again")
    shown = overview.passes[: max(len(overview.status.sessions), 1)]
    for job in shown:
        yield f"  {one_line(job.key)}"
        yield from _job_lines(job, overview.status.at)
    yield from _more(len(shown), len(overview.passes))


def _job_lines(job: Job, now: datetime) -> Iterator[str]:
    yield f"    {job.state}: {one_line(job.why(now))}; next try: {_next_try(job, now)}"
    # The error of what is paused stands above.
    error = "" if _is_paused(job, now) else shortened(job.last_error or "", ERROR_CHARS)
    if words := "; last error: ".join(filter(None, (_tries(job), error))):
        yield f"    {words}"


def _next_try(job: Job, now: datetime) -> str:
    time = job.next_attempt_at(now)
    if time is None:
        return "recollect retry" if job.state is JobState.PARKED else NONE
    if time <= now:
        return "now"
    return f"{moment(time)}, if it dies" if job.state is JobState.CLAIMED else moment(time)


def _tries(job: Job) -> str:
    counts = {"failed": job.failures, "taken over": job.takeovers}
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


# The results of sessions


def _outcome(progress: SessionProgress) -> str:
    if progress.outcome is None:
        return NOT_YET if progress.last_seq else EMPTY
    if progress.outcome is SessionOutcome.SUCCEEDED_NO_OUTPUT and progress.facts:
        return SessionOutcome.SUCCEEDED.value  # the facts are of an earlier run, or of an agent
    return progress.outcome.value


def _sessions_in_words(overview: Overview) -> str:
    listed, others = len(overview.status.sessions), overview.others.total()
    if not others:
        return f"{listed:,}, the most recently started first" if listed > 1 else f"{listed:,}"
    words = ", ".join(f"{count:,} {what}" for what, count in overview.others.most_common())
    least = "at least " if listed + others >= LIST_MAX else ""
    return f"{listed:,} of {least}{listed + others:,}; the others: {words} (--limit)"


def _progress_lines(
    progress: SessionProgress, overview: Overview, space: str | None
) -> Iterator[str]:
    where = "" if space is not None else f" (space {one_line(progress.space)})"
    yield f"  {progress.session_id}  {one_line(progress.key)}{where}"
    if progress.outcome is SessionOutcome.FORGOTTEN:
        yield f"    forgotten on {moment(progress.finished_at)}"
        return
    is_never = progress.outcome is None and not progress.remembered
    yield f"    {'never remembered' if is_never else _ending(progress)}"
    if progress.outcome is not None:
        by = f" by {one_line(progress.extractor)}" if progress.extractor else ""
        yield f"    {counted(progress.facts, 'fact')}{by}; {spent_in_words(progress.spent)}"
    if progress.handed_over:
        parts = counted(progress.handed_over, "part")
        yield f"    its memory-agent still has to read {parts} of it"
    if progress.session_id in {job.key for job in overview.paused}:
        yield "    paused, see above"
    elif progress.last_error is not None:
        yield f"    {_error(progress, overview.status.at)}"


def _ending(progress: SessionProgress) -> str:
    words = _outcome(progress)
    if progress.outcome not in (SessionOutcome.FAILED, None):
        words = f"{click.style(words, fg='green')} {moment(progress.finished_at)}"
    if progress.attempt is not None:
        words += f", attempt {progress.attempt}"
    unprocessed = progress.last_seq - (progress.processed_until or 0)
    return words + (f"; {counted(unprocessed, 'new record')}" if unprocessed else "")


def _error(progress: SessionProgress, now: datetime) -> str:
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


def _model_lines(found: Status) -> Iterator[str]:
    """Who does each job and what it cost; nothing where no model does any, or ever did."""
    if all(use.by in ("rules", "off") and not use.in_all.tokens for use in found.models):
        return
    rows = [
        (
            use.job,
            use.by or "the model of each agent",
            spent_in_words(use.today),
            spent_in_words(use.in_all),
        )
        for use in found.models
    ]
    yield _headed("Models", "who does each job, and what it cost")
    yield from table(("JOB", "BY", "TODAY (UTC)", "TOTAL"), rows, "  ")


def _memory_lines(overview: Overview, at: Target) -> Iterator[str]:
    if not overview.spaces and not overview.has_more_spaces:
        return
    due = counted(overview.status.consolidations_due, "space")
    yield _headed("Memory", f"changed since it was consolidated: {due}")
    for each in overview.spaces:
        yield from (f"  {line}" for line in consolidation_lines(each, overview.status.at, at))
    if overview.has_more_spaces:
        yield "  … and more (--limit)"


def _upkeep_lines(upkeep: Sequence[Job], now: datetime) -> Iterator[str]:
    if not upkeep:
        return
    yield _headed("Upkeep", counted(len(upkeep), "job"))
    rows = [
        (
            job.kind.value,
            moment(job.finished_at),
            job.state.value,
            _next_try(job, now),
            _tries(job) or NONE,
            NONE if job.last_error is None else shortened(job.last_error, ERROR_CHARS),
        )
        for job in upkeep
    ]
    yield from table(("JOB", "LAST RUN", "STATE", "NEXT TRY", "TRIES", "LAST ERROR"), rows, "  ")


# Another attempt, and the sweep by hand


@command()
def retry(
    at: Target,
    session_id: Annotated[str | None, Arg()] = None,
    *,
    everything: Annotated[bool, Opt("Everything that is parked or paused.", name="--all")] = False,
) -> Output:
    """Make what is parked or paused due again: one session, those of a space, or all.

    A session is parked when it failed too often, or in a way that another attempt would not fix. It
    is paused when a spending cap was reached or the model's key was refused. recollect status shows
    which, and the error. Fix the cause first: the session is then due at once, and its failures are
    counted from zero. New messages in a parked session do the same.

    Messages of agents are parked one by one: SESSION_ID is then the session that status shows for
    the agent. They go back to its inbox, and are answered as soon as somebody runs the agent, as
    recollect chat does; what memory-agents could not file is filed by any worker. Each agent counts
    as one job, and so does the consolidation of a space, which --space and --all also make due.

    Examples:
      recollect retry 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
      recollect retry --space alice
      recollect retry --all
    """
    if session_id is not None and everything:
        raise click.UsageError("Give SESSION_ID or --all, not both.")
    if session_id == "":
        raise click.UsageError("SESSION_ID is empty.")
    if session_id is None and not everything and at.named_space is None:
        raise click.UsageError("Say what to retry: SESSION_ID, --space NAME or --all.")
    space, memory, notes = at.scope, at.memory, ""
    revived = memory.retry(session_id, space)
    if session_id is not None:
        keys = {
            str(state.ref.key_id)
            for state in memory.store.agents.list(space, LIST_MAX)
            if state.session_id == session_id
        }
        revived += sum(memory.retry(key, space) for key in keys)
        if not revived:
            job, now = _job_of(at, session_id), memory.clock.now()
            notes = f"It is neither parked nor paused, but {job.state}: {one_line(job.why(now))}."
    return Output(
        {"space": space, "session_id": session_id, "revived": revived},
        f"{counted(revived, 'job')} {'is' if revived == 1 else 'are'} due again.",
        notes,
    )


def _job_of(at: Target, key: str) -> Job:
    for kind in JobKind:
        job = at.memory.store.leases.get(at.scope, kind, key)
        if job is not None:
            return job
    where = "" if at.scope is None else f" in space {at.scope!r}"
    raise InvalidValue(f"no session {key!r} was ever marked{where}; recollect status lists them")


@command(makes_store=True)
def sweep(at: Target) -> Output:
    """Mark every session that has unprocessed records and has been idle.

    This catches what a process that died had no time to mark, after idle_sweep_seconds (10 minutes
    by default); like the start-up scan, only from scan_sources and within scan_age_days_max (30
    days by default). A running worker does this by itself; this command is for when there is none,
    or when you do not want to wait for it. Over all spaces or, with --space, in one.

    Examples:
      recollect sweep
      RECOLLECT_IDLE_SWEEP_SECONDS=60 recollect sweep --space alice
    """
    marked = at.memory.sweep_idle(at.scope)
    idle = at.memory.settings.idle_sweep_seconds
    where = "all spaces" if at.scope is None else f"space {one_line(at.scope)!r}"
    return Output(
        {"space": at.scope, "marked": marked, "idle_sweep_seconds": idle},
        f"Marked {counted(marked, 'session')} in {where} (idle for {idle:g} s or more).",
    )

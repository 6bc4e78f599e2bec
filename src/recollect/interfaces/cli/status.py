"""`recollect status`, `retry` and `sweep`: what is due, what waits and why, results and cost."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

import click

import recollect
from recollect.descriptors import agent_label, is_talking
from recollect.errors import InvalidValue
from recollect.interfaces.cli.commands import Opt, Output, Target, command
from recollect.interfaces.cli.generations import (
    Consolidation,
    consolidation_lines,
    consolidation_view,
    read_consolidation,
)
from recollect.interfaces.cli.output import (
    NONE,
    Fields,
    cards,
    counted,
    fields,
    joined,
    moment,
    more,
    one_line,
    shortened,
    spent_in_words,
    tabled,
)
from recollect.interfaces.cli.parameters import AllAgents
from recollect.interfaces.cli.sessions import agent_lines, shown_agents
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
# What a job of a kind is about; of all others it is a session.
NOUNS = {JobKind.AGENT: "agent", JobKind.MEMORY_AGENT: "agent", JobKind.CONSOLIDATE: "space"}
NOUNS |= dict.fromkeys(UPKEEP, "job")
ERROR_CHARS = 200


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
    at: Target

    @property
    def now(self) -> datetime:
        return self.status.at

    @property
    def space(self) -> str | None:
        return self.at.named_space

    def view(self) -> dict[str, Any]:
        return {
            "space": self.at.scope,
            **view(self.status, self.now),
            "paused": view(self.paused, self.now),
            "passes": view(self.passes, self.now),
            "sessions_not_listed": dict(self.others),
            "agent_counts": {life.value: self.lives.get(life, 0) for life in Life},
            "caps": self.caps,
            "consolidations": [consolidation_view(each, self.now) for each in self.spaces],
        }

    def lines(self) -> Iterator[str]:
        found = self.status
        jobs = Counter(found.job_counts) - self.of_no_session
        states = _counts({state: jobs[state] for state in sorted(jobs)})
        yield from _section("Store", f"{found.store.kind}, {one_line(found.store.location)}")
        yield from _section("Schema", f"version {found.store.schema_version}")
        yield from _section("Space", "all" if self.space is None else one_line(self.space))
        yield from self._paused()
        marked = joined(counted(found.marked_count, "session"), states and f"jobs: {states}")
        yield from _section("Marked", marked, cards(found.marked, self._name, self._marked))
        yield from more(len(found.marked), found.marked_count)
        waiting = counted(found.waiting_count, "session")
        yield from _section("Waiting", waiting, cards(found.waiting, self._name, self._waiting))
        yield from more(len(found.waiting), found.waiting_count)
        if passes := self.passes:
            words = f"{counted(len(passes), 'session')} to be gone through again"
            shown = passes[: max(len(found.sessions), 1)]
            key = cards(shown, lambda job: one_line(job.key), self._job)
            yield from _section("Again", words, key)
            yield from more(len(shown), len(passes))
        if found.unreviewed or found.review != "off":
            asked = {"off": "nothing new does", "instructions": "instructions do"}
            rule = f"of what is learned {asked.get(found.review, 'all does')}; recollect review"
            waits = f"{counted(found.unreviewed, 'fact')} to be reviewed"
            yield from _section("Review", waits, [rule])
        progress = cards(found.sessions, self._heading, self._ending, self._learned, self._error)
        yield from _section("Sessions", self._sessions(), progress)
        if count := sum(self.lives.values()):
            words = f"{count:,}: {_counts({life: self.lives.get(life, 0) for life in Life})}"
            yield from _section("Agents", words, agent_lines(found.agents, self.now, self.space))
            yield from more(len(found.agents), count)
        yield from self._memory()
        caps, whose = self.caps, "each space" if self.space is None else "the space"
        limits = counted(caps.calls_per_day, "call"), counted(caps.tokens_per_day, "token")
        spent = f"today (UTC): {spent_in_words(found.spent_today)}"
        yield from _section("Spent", spent, [f"{whose} may use {' and '.join(limits)} a day"])
        if any(use.by not in ("rules", "off") or use.in_all.tokens for use in found.models):
            yield from _section("Models", "who does each job, and what it cost")
            yield from tabled(_MODEL, found.models, "  ")
        if upkeep := [job for job in found.jobs if job.kind in UPKEEP]:
            yield from _section("Upkeep", counted(len(upkeep), "job"))
            yield from tabled(self._upkeep(), upkeep, "  ")

    def _paused(self) -> Iterator[str]:
        """What waits although nothing is wrong with it: why, until when, and how to resume."""
        by_reason: dict[str, list[Job]] = {}
        for job in self.paused:
            by_reason.setdefault(job.last_error or "", []).append(job)
        for reason, jobs in by_reason.items():
            nouns = Counter(NOUNS.get(job.kind, "session") for job in jobs)
            what = " and ".join(counted(count, noun) for noun, count in nouns.items())
            until = moment(max(job.due_at for job in jobs if job.due_at is not None))
            told = click.style(f"{what}, until {until}", fg="yellow", bold=True)
            yield from _section("Paused", told, [one_line(reason)])
        if by_reason:
            where = f"{self.at.arguments}{'' if self.space else ' --all'}"
            yield f"  Fix that, then resume at once: recollect retry{where}"

    def _name(self, state: SessionState) -> str:
        where = "" if self.space is not None else f", space {one_line(state.space)}"
        return f"{state.id}  {one_line(state.key)} ({one_line(agent_label(state.agent_id))}{where})"

    def _marked(self, state: SessionState) -> str:
        marked = f"{counted(state.unprocessed, 'record')} up to {state.invalidated_at},"
        marked += f" marked by {state.marked_by} since {moment(state.marked_at)}"
        by_key = {job.key: job for job in self.status.jobs if job.kind is JobKind.EXTRACT}
        return f"{marked}\n{self._job(by_key[state.id])}" if state.id in by_key else marked

    def _waiting(self, state: SessionState) -> str:
        found = self.status
        due = state.last_activity_at + timedelta(seconds=found.idle_sweep_seconds)
        if state.id in found.passed_over:
            why = "left out by scan_sources or scan_age_days_max (recollect work --all)"
        elif due <= found.at:
            why = f"due since {moment(due)}: the next idle sweep marks it (recollect sweep)"
        else:
            why = f"will be marked by the idle sweep at {moment(due)}"
        return f"{counted(state.unprocessed, 'record')}; {why}"

    def _job(self, job: Job) -> str:
        """Why a job is not running, when it is tried next, and what went wrong."""
        why = f"{job.state}: {one_line(job.why(self.now))}; next try: {self._next_try(job)}"
        # The error of what is paused stands above.
        is_told = job.last_error and not _is_paused(job, self.now)
        error = f"last error: {shortened(job.last_error or '', ERROR_CHARS)}" if is_told else ""
        tries = joined(_tries(job), error)
        return f"{why}\n{tries}" if tries else why

    def _next_try(self, job: Job) -> str:
        time = job.next_attempt_at(self.now)
        if time is None:
            return "recollect retry" if job.state is JobState.PARKED else NONE
        if time <= self.now:
            return "now"
        return f"{moment(time)}, if it dies" if job.state is JobState.CLAIMED else moment(time)

    def _sessions(self) -> str:
        listed, others = len(self.status.sessions), self.others.total()
        if not others:
            return f"{listed:,}, the most recently started first" if listed > 1 else f"{listed:,}"
        words = _counts(dict(self.others.most_common()))
        least = "at least " if listed + others >= LIST_MAX else ""
        return f"{listed:,} of {least}{listed + others:,}; the others: {words} (--limit)"

    def _heading(self, progress: SessionProgress) -> str:
        where = "" if self.space is not None else f" (space {one_line(progress.space)})"
        return f"{progress.session_id}  {one_line(progress.key)}{where}"

    def _ending(self, progress: SessionProgress) -> str:
        if progress.outcome is SessionOutcome.FORGOTTEN:
            return f"forgotten on {moment(progress.finished_at)}"
        if progress.outcome is None and not progress.remembered:
            return "never remembered"
        words = _outcome(progress)
        if progress.outcome not in (SessionOutcome.FAILED, None):
            words = f"{click.style(words, fg='green')} {moment(progress.finished_at)}"
        words += f", attempt {progress.attempt}" if progress.attempt is not None else ""
        unprocessed = progress.last_seq - (progress.processed_until or 0)
        return joined(words, counted(unprocessed, "new record") if unprocessed else "")

    def _learned(self, progress: SessionProgress) -> str:
        lines = []
        if progress.outcome not in (SessionOutcome.FORGOTTEN, None):
            by = f" by {one_line(progress.extractor)}" if progress.extractor else ""
            facts = counted(progress.facts, "fact")
            spent = spent_in_words(progress.spent)
            lines.append(joined(f"{facts}{by}", progress.faults.words, spent))
        if progress.handed_over:
            parts = counted(progress.handed_over, "part")
            lines.append(f"its memory-agent still has to read {parts} of it")
        return "\n".join(lines)

    def _error(self, progress: SessionProgress) -> str:
        if progress.session_id in {job.key for job in self.paused}:
            return "paused, see above"
        if progress.last_error is None:
            return ""
        match progress.state:
            case JobState.PARKED:
                when = "parked, until recollect retry"
            case JobState.DUE if progress.next_try_at and progress.next_try_at > self.now:
                when = f"next try {moment(progress.next_try_at)}"
            case JobState.DUE:
                when = "next try now"
            case _:
                when = progress.state.value
        error = click.style(shortened(progress.last_error, ERROR_CHARS), fg="red")
        return f"{when}; last error: {error}"

    def _memory(self) -> Iterator[str]:
        if self.spaces or self.has_more_spaces:
            due = counted(self.status.consolidations_due, "space")
            yield from _section("Memory", f"changed since it was consolidated: {due}")
        for each in self.spaces:
            yield from (f"  {line}" for line in consolidation_lines(each, self.now, self.at))
        if self.has_more_spaces:
            yield "  … and more (--limit)"

    def _upkeep(self) -> Fields:
        return fields(
            "job=kind last_run=finished_at state next_try tries last_error",
            next_try=self._next_try,
            tries=_tries,
            last_error=lambda job: shortened(job.last_error or "", ERROR_CHARS),
        )


@command()
def status(
    at: Target,
    *,
    limit: Annotated[int, Opt(metavar="N", at_least=0, at_most=LIST_MAX)] = 20,
    all_agents: AllAgents = False,
) -> Output:
    """Show what is due and what waits, over all spaces or, with --space, in one.

    A marked session is due for processing; a waiting one has unprocessed records and no mark yet.
    What is paused by a spending cap or a refused key shows until when, and how to resume. Sessions
    are listed with how their last run ended, what was learned and what it cost, jobs with who does
    them and what that cost, and spaces with the generation of memory that is current and what the
    next one waits for. Agents that work on memory itself are listed if something went wrong with
    them, or with --all-agents.

    Options:
      limit: At most N sessions of each kind, N agents and N spaces.

    Example:
      recollect status --space alice
    """
    overview = _read(at, limit, all_agents=all_agents)
    return Output(overview.view(), overview.lines())


def _read(at: Target, limit: int, *, all_agents: bool) -> Overview:
    """The status, and what of it lies beyond the limit and must not be missed."""
    memory, space = at.memory, at.scope
    store, settings = memory.store, memory.settings
    jobs = store.leases.jobs(space, LIST_MAX)
    sessions = store.extractions.progress(space, LIST_MAX)
    if not all_agents:
        sessions = [each for each in sessions if _is_of_a_talking_agent(memory, each)]
    known = store.agents.list(space, LIST_MAX)
    agents = known if all_agents else shown_agents(known)
    hidden = Counter(agent.life for agent in known) - Counter(agent.life for agent in agents)
    found = _with_jobs(memory, memory.status(space, limit), space)
    found = dataclasses.replace(
        found, sessions=tuple(sessions[:limit]), agents=tuple(agents[:limit])
    )
    states = store.generations.states(space, limit + 1, "", found.at)
    return Overview(
        status=found,
        paused=tuple(job for job in jobs if _is_paused(job, found.at)),
        passes=tuple(job for job in jobs if job.kind is JobKind.EXTRACT_AGAIN),
        others=Counter(_outcome(each) for each in sessions[len(found.sessions) :]),
        of_no_session=Counter(job.state for job in jobs if job.kind in NOUNS),
        lives=Counter(store.agents.counts(space)) - hidden,
        caps=Caps(
            tokens_per_day=settings.spend_tokens_per_day, calls_per_day=settings.spend_calls_per_day
        ),
        spaces=tuple(read_consolidation(memory, state, found.at) for state in states[:limit]),
        has_more_spaces=len(states) > limit,
        at=at,
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


def _outcome(progress: SessionProgress) -> str:
    if progress.outcome is None:
        return "not processed yet" if progress.last_seq else "no messages yet"
    if progress.outcome is SessionOutcome.SUCCEEDED_NO_OUTPUT and progress.facts:
        return SessionOutcome.SUCCEEDED.value  # the facts are of an earlier run, or of an agent
    return progress.outcome.value


def _counts(found: Mapping[Any, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in found.items() if count)


def _section(title: str, value: str, lines: Iterable[str] = ()) -> Iterator[str]:
    yield f"{click.style(title.ljust(8), bold=True)} {value}"
    yield from (f"  {line}" for line in lines)


_MODEL = fields(
    "job by today_(UTC)=today total",
    by=lambda use: use.by or "the model of each agent",
    today=lambda use: spent_in_words(use.today),
    total=lambda use: spent_in_words(use.in_all),
)


def _tries(job: Job) -> str:
    return _counts({"failed": job.failures, "taken over": job.takeovers})


# Another attempt, and the sweep by hand


@command()
def retry(at: Target, session_id: str | None = None, *, everything: bool = False) -> Output:
    """Make what is parked or paused due again: one session, those of a space, or all.

    A session is parked when it failed too often, or in a way that another attempt would not fix; it
    is paused when a spending cap was reached or the model's key was refused. Fix the cause that
    recollect status shows first: the session is then due at once, and its failures are counted from
    zero.

    Messages of agents are parked one by one: SESSION_ID is then the session that status shows for
    the agent. They go back to its inbox, and are answered as soon as somebody runs the agent. Each
    agent counts as one job, and so does the consolidation of a space.

    Options:
      everything, --all: Everything that is parked or paused.

    Examples:
      recollect retry 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
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
        agents = memory.store.agents.list(space, LIST_MAX)
        keys = {str(each.ref.key_id) for each in agents if each.session_id == session_id}
        revived += sum(memory.retry(key, space) for key in keys)
        if not revived:
            job = _job_of(at, session_id)
            why = one_line(job.why(memory.clock.now()))
            notes = f"It is neither parked nor paused, but {job.state}: {why}."
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

    This catches what a process that died had no time to mark, after idle_sweep_seconds; only from
    scan_sources and within scan_age_days_max. A running worker does it by itself. Over all spaces
    or, with --space, in one.

    Example:
      RECOLLECT_IDLE_SWEEP_SECONDS=60 recollect sweep --space alice
    """
    marked = at.memory.sweep_idle(at.scope)
    idle = at.memory.settings.idle_sweep_seconds
    where = "all spaces" if at.scope is None else f"space {one_line(at.scope)!r}"
    return Output(
        {"space": at.scope, "marked": marked, "idle_sweep_seconds": idle},
        f"Marked {counted(marked, 'session')} in {where} (idle for {idle:g} s or more).",
    )

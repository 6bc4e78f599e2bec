"""`recollect sessions` and `recollect agents`: who talked where, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated

import click

from recollect.descriptors import agent_label, from_cache_key, is_remembered
from recollect.errors import UsageError
from recollect.interfaces.cli.commands import Opt, Output, Target, command, group
from recollect.interfaces.cli.facts import standing
from recollect.interfaces.cli.history import digest
from recollect.interfaces.cli.output import (
    NONE,
    cost,
    counted,
    harmless,
    indented,
    labelled,
    moment,
    number,
    one_line,
    shortened,
    table,
)
from recollect.interfaces.cli.parameters import (
    Agent,
    AllAgents,
    KeyOrId,
    find_session,
    limit_of,
    more,
    page_after,
)
from recollect.interfaces.views import view
from recollect.session import LIST_MAX, Session
from recollect.space import Space
from recollect.types.agents import AgentState, Life
from recollect.types.facts import Call, Extraction, Fact
from recollect.types.records import JobState, MarkCause, Mode, Range, Record, SessionState

HEADERS = ("SESSION", "KEY", "AGENT", "RECORDS", "MARK", "CURSOR", "STATE", "LAST ACTIVITY")
RANGES = ("RECORDS", "OUTCOME", "PASS", "ATTEMPT", "TOKENS", "COST", "AT", "BY", "REASON")
CALLS = ("AT", "PURPOSE", "OUTCOME", "ATTEMPT", "IN", "OUT", "COST", "MODEL")
RECORD_CHARS, ERROR_CHARS, CALLS_SHOWN = 160, 200, 20


@group(lists="list")
def sessions() -> None:
    """The sessions of a space; without a verb, the list of them, newest first.

    A session is marked when there is enough to learn from, when it ends, or by hand. KEY is the
    stable key of a conversation and stands for its current session; an id names one of them.

    Examples:
      recollect sessions --limit 10
      recollect sessions --marked --space alice --json
      recollect sessions show telegram:42:main
      recollect sessions end telegram:42:main
    """


@command(sessions)
def list_(
    at: Target,
    *,
    limit: Annotated[int, limit_of("sessions")] = 50,
    after: Annotated[str | None, page_after("sessions")] = None,
    marked: Annotated[bool, Opt("Only marked ones, the lowest mark first.")] = False,
    all_agents: AllAgents = False,
) -> Output:
    """List the sessions of a space, newest first.

    RECORDS is the number of the last record, MARK how far the session is marked, CURSOR how far it
    has been processed. Agents that work on memory itself have sessions, too: --all-agents.

    Examples:
      recollect sessions list --limit 10
      recollect sessions list --all-agents --json
    """
    if marked and after is not None:
        raise click.UsageError("Give --marked or --after, not both.")
    if marked:
        found = at.space.sessions.find_invalidated(limit)
    else:
        before = None if after is None else find_session(at.space, after)
        found = list(islice(_pages(at.space, limit, before, all_agents=all_agents), limit))
    notes = ""
    if len(found) == limit and not marked:
        notes = more(at, f"sessions {'--all-agents ' * all_agents}--after {found[-1].id}")
    elif not found and marked:
        notes = f"No session in space {at.quoted_space} is marked. See what waits: recollect status"
    elif not found and after is None:
        example = f'recollect append telegram:42:main "Hello"{at.arguments}'
        notes = f"No sessions in space {at.quoted_space} yet. Add one: {example}"
    return Output(found, table(HEADERS, [_row(state) for state in found]) if found else (), notes)


def _pages(
    space: Space, page: int, before: SessionState | None, *, all_agents: bool
) -> Iterator[SessionState]:
    while states := space.sessions.list(page, before):
        before = states[-1]
        yield from (state for state in states if all_agents or is_talking(state.agent_id))


def _row(state: SessionState) -> tuple[str, ...]:
    if state.forgotten_at is not None:
        place = state.id, state.key, agent_label(state.agent_id)
        return *place, NONE, NONE, NONE, "forgotten", moment(state.forgotten_at)
    return (
        state.id,
        state.key,
        agent_label(state.agent_id),
        str(state.last_seq),
        _mark(state),
        number(state.processed_until),
        _state(state),
        moment(state.last_activity_at),
    )


def _state(state: SessionState) -> str:
    match state.ended_by:
        case None:
            words = ["active"]
        case MarkCause.END:
            words = ["ended"]
        case cause:
            words = [f"ended by {cause}"]
    words += ["never remembered"] if not state.remembered else []
    words += [f"memory {state.mode}"] if state.mode is not Mode.ENABLED else []
    words += ["ephemeral"] if state.ephemeral else []
    return ", ".join(words)


def _mark(state: SessionState) -> str:
    return NONE if state.invalidated_at is None else f"{state.invalidated_at} ({state.marked_by})"


# Changes by hand


@command(sessions)
def mark(
    at: Target,
    key_or_id: KeyOrId,
    *,
    agent: Agent = None,
    upto: Annotated[
        int | None, Opt("Up to record N. Default: the last one.", "N", at_least=1)
    ] = None,
) -> Output:
    """Mark a session, so that workers learn from it. A mark only rises until it is processed.

    Examples:
      recollect sessions mark telegram:42:main
      recollect sessions mark telegram:42:main --upto 20 --json
    """
    before = find_session(at.space, key_or_id, agent)
    if not before.last_seq:
        raise UsageError(f"session {before.id} has no records: there is nothing to mark")
    at.space.sessions.invalidate(before.id, upto or before.last_seq)
    return _did("Marked", at.space.sessions.get(before.id) or before)


@command(sessions)
def reset(
    at: Target,
    key_or_id: KeyOrId,
    *,
    agent: Agent = None,
    reason: Annotated[str | None, Opt("Kept with the session that ends.", "WHY")] = None,
) -> Output:
    """Mark a session and start an empty one under the same key.

    Example:
      recollect sessions reset telegram:42:main --reason "a new subject"
    """
    return _did("Began", _current(at, key_or_id, agent).reset(reason))


@command(sessions)
def sleep(at: Target, key_or_id: KeyOrId, *, agent: Agent = None) -> Output:
    """Mark a session without ending it: its agent has gone idle, and may resume it later.

    Example:
      recollect sessions sleep telegram:42:main
    """
    return _did("Marked", _current(at, key_or_id, agent).sleep())


@command(sessions)
def end(at: Target, key_or_id: KeyOrId, *, agent: Agent = None) -> Output:
    """Mark a session and close it; the next message to its key opens a new one.

    Example:
      recollect sessions end telegram:42:main
    """
    return _did("Ended", _current(at, key_or_id, agent).end())


def _current(at: Target, key_or_id: str, agent: str | None) -> Session:
    """The conversation, if the session that was named is still its current one."""
    state = find_session(at.space, key_or_id, agent)
    session = at.space.find_session(state.key, from_cache_key(state.agent_id))
    if session is None or session.id != state.id:
        now = "" if session is None else f"; the conversation goes on in session {session.id}"
        raise UsageError(f"session {state.id} is over{now}")
    return session


def _did(what: str, state: SessionState) -> Output:
    name = f"session {state.id} of {one_line(state.key)}"
    if state.invalidated_at is not None:
        return Output(state, f"{what} {name}, mark {_mark(state)}.")
    if what != "Marked":
        return Output(state, f"{what} {name}.")
    is_learned = state.remembered and not state.ephemeral and state.mode is Mode.ENABLED
    why = "all of it has been processed" if is_learned else _state(state)
    return Output(state, f"Nothing to mark in {name}: {why}.")


# One session in full


@command(sessions)
def show(
    at: Target,
    key_or_id: KeyOrId,
    *,
    agent: Agent = None,
    limit: Annotated[
        int, Opt("The facts of at most N places in the session; --json has all.", "N", at_least=0)
    ] = 50,
) -> Output:
    """Show one session: its state, its results, and the facts beside their records.

    It lists which records were read by whom, in how many attempts and at what cost; what was made
    of them; each fact under the record it comes from; and the calls to a model.

    Examples:
      recollect sessions show telegram:42:main
      recollect sessions show 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10 --json
    """
    state = find_session(at.space, key_or_id, agent)
    if state.forgotten_at is not None:
        return Output(state, _forgotten(state))
    own = at.space.sessions
    facts: list[Fact] = []
    while page := at.space.facts.list(
        LIST_MAX, facts[-1] if facts else None, session=state.id, every=True
    ):
        facts += page
    facts.reverse()
    calls: list[Call] = []
    while batch := own.calls(state.id, LIST_MAX, calls[-1] if calls else None):
        calls += batch
    count, ranges = own.count_since(state.id, 0), own.ranges(state.id)
    extraction = own.extraction(state.id)

    def lines() -> Iterator[str]:
        yield from _values(state, count)
        yield from _range_lines(ranges)
        yield from _extraction_lines(extraction)
        yield from _fact_lines(at.space, state, facts, limit)
        yield from _call_lines(calls)

    found = {"ranges": ranges, "extraction": extraction, "facts": facts, "calls": calls}
    return Output({**view(state), "records": count, **found}, lines())


def _forgotten(state: SessionState) -> Iterator[str]:
    """What is left of a session that was forgotten: how it was found, and since when it is gone."""
    return labelled(
        {
            "Session": state.id,
            "Space": state.space,
            "Key": state.key,
            "Agent": agent_label(state.agent_id),
            "State": f"forgotten on {moment(state.forgotten_at)}; nothing else is kept of it",
        }
    )


def _values(state: SessionState, count: int) -> Iterator[str]:
    ended = "" if state.ended_at is None else f" at {moment(state.ended_at)}"
    marked = "" if state.marked_at is None else f", since {moment(state.marked_at)}"
    return labelled(
        {
            "Session": state.id,
            "Space": state.space,
            "Key": state.key,
            "Agent": agent_label(state.agent_id),
            "State": _state(state) + ended,
            "Rotation": str(state.rotation),
            "Source": state.source,
            "Project": state.project or "",
            "Parent": state.parent or "",
            "Records": f"{count:,}, the last has seq {state.last_seq}"
            if state.last_seq
            else "none",
            "Mark": _mark(state) + marked,
            "Cursor": "" if state.processed_until is None else str(state.processed_until),
            "Unprocessed": str(state.unprocessed),
            "Created": moment(state.created_at),
            "Last activity": moment(state.last_activity_at),
        }
    )


def _headed(title: str, words: str = "") -> Iterator[str]:
    yield ""
    yield click.style(title, bold=True) + (f"  {words}" if words else "")


def _range_lines(ranges: Sequence[Range]) -> Iterator[str]:
    if not ranges:
        return _headed("Processed", "nothing of it yet; do it: recollect work --all")
    rows = [
        (
            f"{each.first_seq}–{each.last_seq}",
            each.outcome.value,
            str(each.pass_number),
            number(each.attempt),
            f"{each.spent.tokens:,}" if each.spent.tokens else NONE,
            cost(each.spent.cost_micros) if each.spent.tokens else NONE,
            moment(each.at),
            each.extractor or NONE,
            each.reason or NONE,
        )
        for each in ranges
    ]
    return iter(("", *table(RANGES, rows)))


def _extraction_lines(extraction: Extraction | None) -> Iterator[str]:
    if extraction is None:
        yield from _headed("Extraction", "none: nothing was learned from it")
        return
    made = f"by {one_line(extraction.extractor)}, pass {extraction.pass_number}"
    made += f", records 1–{extraction.upto}, {moment(extraction.generated_at)}"
    yield from _headed("Extraction", made)
    if extraction.rollout_slug:
        yield f"  {one_line(extraction.rollout_slug)}"
    texts = {"Summary": extraction.rollout_summary, "Memory": extraction.raw_memory}
    for title, text in texts.items():
        if text.strip():
            yield f"  {click.style(title, bold=True)}"
            yield indented(harmless(text.strip("\n")))


def _fact_lines(
    space: Space, state: SessionState, facts: Sequence[Fact], limit: int
) -> Iterator[str]:
    """Facts under the record each comes from, in the order of the conversation."""
    if not facts:
        yield from _headed("Facts", "none")
        return
    yield from _headed("Facts", f"{len(facts):,}, under the records they come from")
    by_seq: dict[tuple[int, int], list[Fact]] = {}
    for fact in facts:
        for source in fact.sources:
            if source.session_id == state.id:
                by_seq.setdefault((source.seq, source.seq_to), []).append(fact)
    for place in sorted(by_seq)[:limit]:
        yield _place_line(space, state, *place)
        for fact in by_seq[place]:
            words = ", ".join((*fact.tags, fact.trust.value))
            yield f"        → {one_line(fact.content)}"
            yield click.style(f"          {one_line(words)}  {one_line(fact.id)}", dim=True)
            yield from (f"          {line}" for line in standing(fact))
    if len(by_seq) > limit:
        yield f"  … and those of {counted(len(by_seq) - limit, 'more place')} (--limit)"


def _place_line(space: Space, state: SessionState, seq: int, seq_to: int) -> str:
    if not seq:
        return "        somewhere in the session"
    found = space.sessions.records(state.id, seq - 1, 1)
    record = found[0] if found and found[0].seq == seq else None
    numbers = str(seq) if seq == seq_to else f"{seq}–{seq_to}"
    return f"  {numbers:>4}  {'(not kept)' if record is None else _spoken(record)}"


def _spoken(record: Record) -> str:
    speaker = one_line(record.name) if record.name else record.role.value
    words = " ".join(filter(None, map(digest, record.parts)))
    return f"{click.style(speaker, fg='cyan')}: {shortened(words, RECORD_CHARS)}"


def _call_lines(calls: Sequence[Call]) -> Iterator[str]:
    if not calls:
        return
    yield from _headed("Model calls", f"{len(calls):,}, newest first")
    rows = [
        (
            moment(call.at),
            call.purpose,
            call.outcome.value,
            str(call.attempt),
            f"{call.input_tokens:,}",
            f"{call.output_tokens:,}",
            cost(call.cost_micros),
            call.model,
        )
        for call in calls[:CALLS_SHOWN]
    ]
    yield from table(CALLS, rows, "  ")
    if len(calls) > CALLS_SHOWN:
        yield f"  … and {len(calls) - CALLS_SHOWN:,} more (--json)"


# Agents


@command()
def agents(
    at: Target,
    *,
    limit: Annotated[int, limit_of("agents")] = 100,
    all_agents: AllAgents = False,
) -> Output:
    """List the agents that live in a store, those that are awake first.

    Each is listed with its state, its session, its queue, its next signal and what went wrong; over
    all spaces or, with --space, in one. Agents that work on memory itself are left out unless
    something went wrong with them, or --all-agents is given.

    Examples:
      recollect agents
      recollect agents --space alice --all-agents --json
    """
    found = at.memory.store.agents.list(at.scope, LIST_MAX)
    found = found if all_agents else shown_agents(found)
    notes = ""
    if len(found) > limit:
        notes = f"There are more: recollect agents --limit {len(found)}{at.arguments}"
    elif not found:
        notes = f"No agents here yet. Talk to one: recollect chat{at.arguments}"
    return Output(found[:limit], agent_lines(found[:limit], at.memory.clock.now(), at.scope), notes)


_COLOURS = {Life.ACTIVE: "green", Life.SLEEPING: "cyan", Life.DEAD: "red"}


def shown_agents(states: Sequence[AgentState]) -> list[AgentState]:
    """Those that people have to know of: they talk, or something went wrong with them."""
    return [
        state
        for state in states
        if is_talking(state.ref.agent_id) or state.parked or state.last_error
    ]


def is_talking(agent_id: str) -> bool:
    """Whether an agent talks to people or programs, and does not work on memory itself."""
    return is_remembered(from_cache_key(agent_id))


def counts_of_agents(counts: Mapping[Life, int]) -> str:
    """How many agents there are, and in which states."""
    words = [f"{counts[life]:,} {life}" for life in Life if counts.get(life)]
    return f"{sum(counts.values()):,}" + (f": {', '.join(words)}" if words else "")


def agent_lines(states: Sequence[AgentState], now: datetime, space: str | None) -> Iterator[str]:
    """Agents in a list; with `space` they are all of it."""
    for state in states:
        where = "" if space is not None else f", space {one_line(state.ref.space)}"
        yield f"{one_line(agent_label(state.ref.agent_id))}  ({one_line(state.ref.key)}{where})"
        yield from (f"  {line}" for line in agent_state_lines(state, now))


def agent_state_lines(state: AgentState, now: datetime) -> Iterator[str]:
    """How an agent lives, its session and its queue, and what comes next."""
    life = click.style(state.life.value, fg=_COLOURS[state.life])
    yield f"{life} since {moment(state.since)}; session {one_line(state.session_id)}"
    queue = f"{state.queued:,} in the queue" if state.queued else "nothing in the queue"
    if state.parked:
        parked = click.style(f"{state.parked:,} parked", fg="yellow")
        queue += f"; {parked}: fix the cause, then recollect retry {state.session_id}"
    yield f"{queue}{_work(state, now)}"
    if state.next_signal is not None:
        signal = state.next_signal
        others = f", and {len(state.signals) - 1:,} more" if len(state.signals) > 1 else ""
        due = "now" if signal.due_at <= now else moment(signal.due_at)
        yield f"next signal: {one_line(signal.name)}, {due}{others}"
    if state.last_error is not None:
        yield f"last error: {click.style(shortened(state.last_error, ERROR_CHARS), fg='red')}"


def _work(state: AgentState, now: datetime) -> str:
    match state.job_state:
        case JobState.CLAIMED:
            return "; at work"
        case JobState.DUE if state.next_try_at is not None and state.next_try_at > now:
            return f"; next try {moment(state.next_try_at)}"
        case JobState.DUE if state.queued:
            return "; waiting to be run"
        case _:
            return ""

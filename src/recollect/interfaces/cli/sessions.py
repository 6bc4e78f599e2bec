"""`recollect sessions` and `recollect agents`: lists sessions and agents, marks and ends them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

import click

from recollect.descriptors import agent_label, from_cache_key, is_talking
from recollect.errors import UsageError
from recollect.interfaces.cli.commands import Output, Target, command, group, listed
from recollect.interfaces.cli.facts import facts_lines
from recollect.interfaces.cli.output import (
    cards,
    cost,
    fields,
    harmless,
    indented,
    joined,
    labelled,
    moment,
    more,
    one_line,
    shortened,
    spent_in_words,
    tabled,
)
from recollect.interfaces.cli.parameters import (
    After,
    Agent,
    AllAgents,
    Count,
    KeyOrId,
    Limit,
    Number,
    find_session,
)
from recollect.interfaces.views import view
from recollect.session import LIST_MAX, Session
from recollect.space import Space
from recollect.types.agents import AgentState, Life
from recollect.types.facts import NOTHING_SPENT, Call, Extraction, Fact, Spent
from recollect.types.records import JobState, MarkCause, Mode, SessionState
from recollect.types.status import JOBS

ERROR_CHARS, CALLS_SHOWN = 200, 20


@group(lists="list")
def sessions() -> None:
    """The sessions of a space; without a verb, the list of them, newest first.

    A session is marked when there is enough to learn from, when it ends, or by hand. KEY is the
    stable key of a conversation and stands for its current session; an id names one of them.

    Examples:
      recollect sessions --marked --space alice --json
      recollect sessions show telegram:42:main
    """


@command(sessions)
def list_(
    at: Target,
    *,
    limit: Limit = 50,
    after: After = None,
    marked: bool = False,
    all_agents: AllAgents = False,
) -> Output:
    """List the sessions of a space, newest first.

    RECORDS is the number of the last record, MARK how far the session is marked, CURSOR how far it
    has been processed. Agents that work on memory itself have sessions, too: --all-agents.

    Options:
      marked: Only marked ones, the lowest mark first.

    Example:
      recollect sessions list --limit 10
    """
    if marked and after is not None:
        raise click.UsageError("Give --marked or --after, not both.")
    if marked:
        found = at.space.sessions.find_invalidated(limit)
        nothing = (
            f"No session in space {at.quoted_space} is marked. See what waits: recollect status"
        )
        return Output(found, tabled(_COLUMNS, found), "" if found else nothing)
    before = None if after is None else find_session(at.space, after)
    found = list(islice(_pages(at.space, limit, before, all_agents=all_agents), limit))
    example = f'recollect append telegram:42:main "Hello"{at.arguments}'
    nothing = f"No sessions in space {at.quoted_space} yet. Add one: {example}"
    return listed(at, found, tabled(_COLUMNS, found), nothing, limit=limit, after=after)


def _pages(
    space: Space, page: int, before: SessionState | None, *, all_agents: bool
) -> Iterator[SessionState]:
    while states := space.sessions.list(page, before):
        before = states[-1]
        yield from (state for state in states if all_agents or is_talking(state.agent_id))


def _agent(state: SessionState) -> str:
    return agent_label(state.agent_id)


def _state(state: SessionState) -> str:
    if state.forgotten_at is not None:
        return f"forgotten on {moment(state.forgotten_at)}"
    ended = {None: "active", MarkCause.END: "ended"}
    words = [ended.get(state.ended_by, f"ended by {state.ended_by}")]
    words += ["never remembered"] if not state.remembered else []
    words += [f"memory {state.mode}"] if state.mode is not Mode.ENABLED else []
    words += ["ephemeral"] if state.ephemeral else []
    return ", ".join(words)


def _mark(state: SessionState) -> str:
    return "" if state.invalidated_at is None else f"{state.invalidated_at} ({state.marked_by})"


_COLUMNS = fields(
    "session=id key agent records mark cursor=processed_until state last_activity_at",
    agent=_agent,
    records=lambda state: None if state.forgotten_at else state.last_seq,
    mark=_mark,
    state=_state,
)
# What is left of a session that was forgotten: how it was found, and since when it is gone.
_FORGOTTEN = fields(
    "session=id space key agent state",
    agent=_agent,
    state=lambda state: f"{_state(state)}; nothing else is kept of it",
)


# Changes by hand


@command(sessions)
def mark(
    at: Target, key_or_id: KeyOrId, *, agent: Agent = None, upto: Number | None = None
) -> Output:
    """Mark a session, so that workers learn from it. A mark only rises until it is processed.

    Options:
      upto: Up to record N. Default: the last one.

    Example:
      recollect sessions mark telegram:42:main --upto 20
    """
    before = find_session(at.space, key_or_id, agent)
    if not before.last_seq:
        raise UsageError(f"session {before.id} has no records: there is nothing to mark")
    at.space.sessions.invalidate(before.id, upto or before.last_seq)
    return _did("Marked", at.space.sessions.get(before.id) or before)


@command(sessions)
def reset(
    at: Target, key_or_id: KeyOrId, *, agent: Agent = None, reason: str | None = None
) -> Output:
    """Mark a session and start an empty one under the same key.

    Options:
      reason WHY: Kept with the session that ends.

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
def show(at: Target, key_or_id: KeyOrId, *, agent: Agent = None, limit: Count = 50) -> Output:
    """Show one session: its state, its results, and the facts that come from it.

    It lists which records were read by whom, in how many attempts and at what cost; what was made
    of them; the facts in the order of the conversation; and the calls to a model.

    Options:
      limit: At most N facts; --json has all.

    Example:
      recollect sessions show telegram:42:main
    """
    state = find_session(at.space, key_or_id, agent)
    if state.forgotten_at is not None:
        return Output(state, labelled(_FORGOTTEN, state))
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
        labels = fields(
            "session=id space key agent state rotation source project parent records mark"
            " cursor=processed_until unprocessed created_at last_activity_at",
            agent=_agent,
            state=lambda _: _since(_state(state), " at ", state.ended_at),
            records=lambda _: (
                f"{count:,}, the last has seq {state.last_seq}" if state.last_seq else "none"
            ),
            mark=lambda _: _since(_mark(state), ", since ", state.marked_at),
        )
        yield from labelled(labels, state)
        if ranges:
            yield from ("", *tabled(_RANGE, ranges))
        else:
            yield from _headed("Processed", "nothing of it yet; do it: recollect work --all")
        yield from _extraction_lines(extraction)
        yield from _headed("Facts", f"{len(facts):,}" if facts else "none")
        by_place = sorted(facts, key=lambda fact: min(_places(fact, state.id), default=(0, 0)))
        yield from facts_lines(by_place[:limit], at.space)
        yield from more(limit, len(facts))
        if calls:
            yield from _headed("Model calls", f"{len(calls):,}, newest first")
            yield from (f"  {job}: {spent_in_words(spent)}" for job, spent in _by_job(calls))
            yield from tabled(_CALL, calls[:CALLS_SHOWN], "  ")
            yield from more(CALLS_SHOWN, len(calls), "--json")

    found = {"ranges": ranges, "extraction": extraction, "facts": facts, "calls": calls}
    return Output({**view(state), "records": count, **found}, lines())


def _by_job(calls: Iterable[Call]) -> Iterator[tuple[str, Spent]]:
    """What the calls for a session took, by what they were made for."""
    sums: dict[str, Spent] = {}
    for call in calls:
        job = JOBS.get(call.purpose, call.purpose)
        took = Spent(
            calls=1,
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            cost_micros=call.cost_micros,
        )
        sums[job] = sums.get(job, NOTHING_SPENT).plus(took)
    yield from sorted(sums.items())


def _places(fact: Fact, session_id: str) -> list[tuple[int, int]]:
    return [(each.seq, each.seq_to) for each in fact.sources if each.session_id == session_id]


def _since(words: str, what: str, time: datetime | None) -> str:
    return words if time is None else f"{words}{what}{moment(time)}"


_RANGE = fields(
    "records outcome pass=pass_number attempt tokens cost at by=extractor reason",
    records=lambda each: f"{each.first_seq}–{each.last_seq}",
    tokens=lambda each: each.spent.tokens or None,
    cost=lambda each: cost(each.spent.cost_micros) if each.spent.tokens else None,
    reason=lambda each: joined(each.reason or "", each.faults.words),
)
_CALL = fields(
    "at purpose outcome attempt in=input_tokens out=output_tokens cost model",
    cost=lambda call: cost(call.cost_micros),
)


def _headed(title: str, words: str = "") -> Iterator[str]:
    yield ""
    yield click.style(title, bold=True) + (f"  {words}" if words else "")


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


# Agents


@command()
def agents(at: Target, *, limit: Limit = 100, all_agents: AllAgents = False) -> Output:
    """List the agents that live in a store, those that are awake first.

    Each is listed with its state, its session, its queue, its next signal and what went wrong; over
    all spaces or, with --space, in one. Agents that work on memory itself are left out unless
    something went wrong with them, or --all-agents is given.

    Example:
      recollect agents --space alice --all-agents
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


def agent_lines(
    states: Sequence[AgentState], now: datetime, space: str | None, indent: str = ""
) -> Iterator[str]:
    """Agents in a list; with `space` they are all of it."""

    def name(state: AgentState) -> str:
        where = "" if space is not None else f", space {one_line(state.ref.space)}"
        return f"{one_line(agent_label(state.ref.agent_id))}  ({one_line(state.ref.key)}{where})"

    def standing(state: AgentState) -> str:
        return "\n".join(agent_state_lines(state, now))

    return cards(states, name, standing, indent=indent)


def agent_state_lines(state: AgentState, now: datetime) -> Iterator[str]:
    """Lines with an agent's state, its session, its queue, and its next signal."""
    life = click.style(state.life.value, fg=_COLOURS[state.life])
    yield f"{life} since {moment(state.since)}; session {one_line(state.session_id)}"
    parked = ""
    if state.parked:
        parked = click.style(f"{state.parked:,} parked", fg="yellow")
        parked += f": fix the cause, then recollect retry {state.session_id}"
    queue = f"{state.queued:,} in the queue" if state.queued else "nothing in the queue"
    yield joined(queue, parked, _work(state, now))
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
            return "at work"
        case JobState.DUE if state.next_try_at is not None and state.next_try_at > now:
            return f"next try {moment(state.next_try_at)}"
        case JobState.DUE if state.queued:
            return "waiting to be run"
        case _:
            return ""

"""`recollect agents`: how each agent of a store is doing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import click

from recollect.agency import AgentState, Life
from recollect.descriptors import agent_label, from_cache_key, is_remembered
from recollect.domain import JobState
from recollect.interfaces.cli.arguments import limit_option
from recollect.interfaces.cli.output import moment, note, one_line, shortened, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.session import LIST_MAX

ERROR_CHARS = 200
LISTED = 100
_COLOURS = {Life.ACTIVE: "green", Life.SLEEPING: "cyan", Life.DEAD: "red"}


all_agents_option = click.option(
    "--all-agents", is_flag=True, help="Also those that work on memory itself."
)


@click.command("agents")
@limit_option(LISTED, "agents")
@all_agents_option
@with_target
def command(target: Target, limit: int, all_agents: bool) -> None:
    """List the agents that live in a store, those that are awake first.

    Each with how it lives, its session, its queue, its next signal and what went wrong. Over all
    spaces or, with --space, in one. Agents that work on memory itself are left out, unless they
    are asked for or something went wrong with them.

    \b
    Examples:
      recollect agents
      recollect agents --space alice --all-agents --json
    """
    with target.open_existing() as memory:
        if target.space is not None:
            memory.space(target.space)  # checks the name
        found = memory.store.agents.list(target.space, LIST_MAX)
        found = found if all_agents else shown_agents(found)
        now = memory.clock.now()
    if target.as_json:
        write_json(view(found[:limit]))
        return
    for line in agent_lines(found[:limit], now, target.space):
        write(line.removeprefix("  "))
    if len(found) > limit:
        note(f"There are more: recollect agents --limit {len(found)}{target.arguments}")
    elif not found:
        note(f"No agents here yet. Talk to one: recollect chat{target.arguments}")


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


def lives_in_words(counts: Mapping[Life, int]) -> str:
    """How many agents there are, and how they live."""
    words = [f"{counts[life]:,} {life}" for life in Life if counts.get(life)]
    total = sum(counts.values())
    return f"{total:,}" + (f": {', '.join(words)}" if words else "")


def agent_lines(states: Sequence[AgentState], now: datetime, space: str | None) -> Iterator[str]:
    """Agents in a list; with `space` they are all of it."""
    for state in states:
        where = "" if space is not None else f", space {one_line(state.ref.space)}"
        name = one_line(agent_label(state.ref.agent_id))
        yield f"  {name}  ({one_line(state.ref.key)}{where})"
        yield from (f"    {line}" for line in state_lines(state, now))


def state_lines(state: AgentState, now: datetime) -> Iterator[str]:
    """How an agent lives, its session and its queue, and what comes next."""
    life = click.style(state.life.value, fg=_COLOURS[state.life])
    yield f"{life} since {moment(state.since)}; session {one_line(state.session_id)}"
    queue = f"{state.queued:,} in the queue" if state.queued else "nothing in the queue"
    if state.parked:
        parked = click.style(f"{state.parked:,} parked", fg="yellow")
        queue += f"; {parked}: mend the cause, then recollect retry {state.session_id}"
    yield f"{queue}{_work_in_words(state, now)}"
    if state.next_signal is not None:
        signal = state.next_signal
        more = f", and {len(state.signals) - 1:,} more" if len(state.signals) > 1 else ""
        due = "now" if signal.due_at <= now else moment(signal.due_at)
        yield f"next signal: {one_line(signal.name)}, {due}{more}"
    if state.last_error is not None:
        yield f"last error: {click.style(shortened(state.last_error, ERROR_CHARS), fg='red')}"


def _work_in_words(state: AgentState, now: datetime) -> str:
    match state.job_state:
        case JobState.CLAIMED:
            return "; at work"
        case JobState.DUE if state.next_try_at is not None and state.next_try_at > now:
            return f"; next try {moment(state.next_try_at)}"
        case JobState.DUE if state.queued:
            return "; waits to be run"
        case _:
            return ""

"""Agents as people and programs read them: how they live, what waits for them, what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import click

from recollect.agency import AgentState, Life
from recollect.descriptors import agent_label
from recollect.domain import JobState
from recollect.interfaces.cli.output import moment, one_line, shortened

ERROR_CHARS = 200
_COLOURS = {Life.ACTIVE: "green", Life.SLEEPING: "cyan", Life.DEAD: "red"}


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

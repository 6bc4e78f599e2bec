"""Where the consolidation of spaces stands: what is current, and what the next waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import click

import recollect
from recollect.domain import JobState
from recollect.generation import BY_RULES, ConsolidationState, Generation, Selection, Waiting
from recollect.interfaces.cli.generation_lines import counted_memories, memories_in_words
from recollect.interfaces.cli.output import counted, moment, one_line, shortened
from recollect.interfaces.cli.target import Target
from recollect.interfaces.views import view

ERROR_CHARS = 200
BY_WORKERS = (Waiting.READY, Waiting.COOLDOWN, Waiting.PHASE_1, Waiting.BACKOFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """Where a space stands, with its current generation and what the next would be made of."""

    state: ConsolidationState
    current: Generation | None
    coming: Selection | None  # none: nothing has changed
    by_workers: bool  # whether workers do it, or only people


def read_consolidation(
    memory: recollect.Memory, state: ConsolidationState, now: datetime
) -> Consolidation:
    """What `status` tells of a space; a selection is read only where something has changed."""
    stored, policy = memory.store.generations, memory.settings.selection_policy
    is_changed = state.changed > state.consolidated or state.job is not JobState.IDLE
    return Consolidation(
        state=state,
        current=stored.get(state.space, state.generation) if state.generation else None,
        coming=stored.select(state.space, policy, now) if is_changed else None,
        by_workers=memory.settings.consolidation == "on",
    )


def consolidation_shape(each: Consolidation, now: datetime) -> dict[str, Any]:
    return view(each.state, now) | {
        "current": view(each.current),
        "next": None if each.coming is None else _counts(each.coming),
        "by_workers": each.by_workers,
    }


def _counts(selection: Selection) -> dict[str, int]:
    return {
        "added": len(selection.added),
        "retained": len(selection.retained),
        "removed": len(selection.removed),
    }


def consolidation_lines(each: Consolidation, now: datetime, target: Target) -> Iterator[str]:
    """A space as `status` shows it; it is named where the status is not of one space alone."""
    name = "" if target.space is not None else f"{one_line(each.state.space)}: "
    yield f"{name}{_current_in_words(each.current)}"
    if each.current is not None and each.current.made_by.startswith(BY_RULES) and each.current.note:
        yield f"  {shortened(each.current.note, ERROR_CHARS)}"
    if each.coming is not None:
        selection = each.coming
        parts = map(len, (selection.added, selection.retained, selection.removed))
        yield f"  the next one: {memories_in_words(*parts)}"
    yield f"  {why_in_words(each, now, replace(target, space=each.state.space).arguments)}"
    yield from (f"  {line}" for line in error_lines(each.state))


def _current_in_words(generation: Generation | None) -> str:
    if generation is None:
        return "no generation yet"
    made = f"made {moment(generation.made_at)} by {one_line(generation.made_by)}"
    if generation.restored_from is not None:
        return f"generation {generation.number}, restored from {generation.restored_from}, {made}"
    memories = counted_memories(generation.added + generation.retained)
    documents = counted(generation.documents, "document")
    return f"generation {generation.number}, {made}: {documents} of {memories}"


def why_in_words(each: Consolidation, now: datetime, arguments: str) -> str:
    """Why the next one has not been made, when it will be, and what a person can do about it."""
    state, waiting = each.state, each.state.waits_for(now)
    by_hand = f"recollect consolidate{arguments}"
    if not each.by_workers and waiting in BY_WORKERS:
        return f"workers do not consolidate here (consolidation = off); by hand: {by_hand}"
    match waiting:
        case Waiting.NOTHING_CHANGED if state.expires_at is not None:
            return f"nothing has changed since; time alone changes it {moment(state.expires_at)}"
        case Waiting.NOTHING_CHANGED:
            return "nothing has changed since"
        case Waiting.RUNNING:
            return "the next one is being made"
        case Waiting.PAUSED:
            since = moment(state.paused_at)
            return f"paused since {since}; go on: recollect generations resume{arguments}"
        case Waiting.PARKED:
            return f"parked; mend the cause, then: {by_hand} --now"
        case Waiting.BACKOFF:
            return f"backing off; next try: {moment(state.due_at)}; at once: {by_hand} --now"
        case Waiting.COOLDOWN if state.last_error is not None:
            return f"put off until {moment(state.due_at)}; at once: {by_hand}"
        case Waiting.COOLDOWN:
            return f"not before {moment(state.due_at)}, a while after the last; at once: {by_hand}"
        case Waiting.PHASE_1:
            sessions = counted(state.phase1_due, "session")
            return f"waits for {sessions} still to be distilled: recollect work"
        case Waiting.READY:
            return f"waits for a worker; at once: {by_hand}"


def error_lines(state: ConsolidationState) -> Iterator[str]:
    if state.last_error is None:
        return
    error = click.style(shortened(state.last_error, ERROR_CHARS), fg="red")
    yield f"failed {state.failures} x; last error: {error}" if state.failures else f"error: {error}"

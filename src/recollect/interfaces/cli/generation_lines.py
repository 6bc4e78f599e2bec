"""Generations and the state of consolidation as people read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

import recollect
from recollect.domain import JobState
from recollect.generation import (
    BY_RULES,
    ConsolidationState,
    Generation,
    Pick,
    Removed,
    RemovedBecause,
    Selection,
    Waiting,
)
from recollect.interfaces.cli.output import (
    NONE,
    counted,
    harmless,
    moment,
    one_line,
    shortened,
    spent_in_words,
    table,
)
from recollect.interfaces.cli.target import Target
from recollect.interfaces.views import view

if TYPE_CHECKING:
    from recollect.consolidation.run import Preview


NOTE_CHARS = 200
SHOWN = 20  # of each kind, in a look ahead; --json has all
HEADERS = ("GENERATION", "MADE", "BY", "ADDED", "RETAINED", "REMOVED", "DOCUMENTS", "NOTE")
WHY_REMOVED = {
    RemovedBecause.UNSELECTED: "others are used more, or it was not used for long",
    RemovedBecause.DISABLED: "its session is disabled",
    RemovedBecause.POLLUTED: "its session is polluted",
    RemovedBecause.FORGOTTEN: "its session was forgotten",
    RemovedBecause.EMPTIED: "a later run found nothing worth remembering",
    RemovedBecause.PRUNED: "it was kept long enough",
}

T = TypeVar("T")


def counted_memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"


def memories_in_words(added: int, retained: int, removed: int) -> str:
    """How a selection differs from the one before it."""
    return f"{counted_memories(added)} added, {retained:,} retained, {removed:,} removed"


def generation_table(generations: Sequence[Generation], current: int) -> Iterator[str]:
    rows = [
        (
            _number(each, current),
            moment(each.made_at),
            each.made_by,
            f"{each.added:,}",
            f"{each.retained:,}",
            f"{each.removed:,}",
            f"{each.documents:,}, {each.changed:,} changed",
            _note_on(each) or NONE,
        )
        for each in generations
    ]
    return table(HEADERS, rows)


def generation_head(generation: Generation, current: int) -> dict[str, str]:
    """What is known of one generation, by name."""
    said = {
        "Generation": _number(generation, current),
        "Space": generation.space,
        "Made": f"{moment(generation.made_at)} by {generation.made_by}",
        "Memories": memories_in_words(generation.added, generation.retained, generation.removed),
        "Documents": f"{generation.documents:,}, {generation.changed:,} changed by it",
        "Spent": spent_in_words(generation.spent),
        "Note": _note_on(generation),
    }
    return {name: value for name, value in said.items() if value}


def _number(generation: Generation, current: int) -> str:
    return f"{generation.number}{' (current)' if generation.number == current else ''}"


def _note_on(generation: Generation) -> str:
    gone = "" if generation.is_whole else "cannot be restored: parts of it are gone for good"
    return "; ".join(filter(None, (shortened(generation.note, NOTE_CHARS), gone)))


# what the next one would be


def preview_lines(preview: Preview, keys: Mapping[str, str]) -> Iterator[str]:
    """What would be selected and written; `keys` are the stable keys of sessions, by id."""
    selection = preview.selection
    current = f"generation {selection.generation}" if selection.generation else "no generation yet"
    yield f"Space {one_line(selection.space)!r}: {current}."
    if preview.is_unchanged:
        yield f"Nothing has changed in the {counted_memories(len(selection.picks))} it is made of."
        return
    made_of = counted_memories(len(selection.picks))
    yield f"The next one would be made of {made_of}, by {one_line(preview.made_by)}."
    yield from _listed("Added", selection.added, lambda each: _added_line(each, keys))
    yield from _listed("Retained", selection.retained, lambda each: _pick_line(each, keys))
    yield from _listed("Removed", selection.removed, lambda each: _removed_line(each, keys))
    edits = preview.edits
    if edits:
        yield from _listed("Documents", edits, lambda each: f"{each.kind.value:<6}  {each.path}")
    else:
        yield f"What is written is for {one_line(preview.made_by)} to say; it was not asked."


def _listed(title: str, things: Sequence[T], line: Callable[[T], str]) -> Iterator[str]:
    yield f"{click.style(title.ljust(9), bold=True)} {len(things):,}"
    yield from (f"  {harmless(line(each))}" for each in things[:SHOWN])
    if len(things) > SHOWN:
        yield f"  … and {len(things) - SHOWN:,} more (--json)"


def _pick_line(pick: Pick, keys: Mapping[str, str]) -> str:
    return f"{pick.session_id}  {keys.get(pick.session_id, NONE)}"


def _added_line(pick: Pick, keys: Mapping[str, str]) -> str:
    is_new = pick.path is None
    why = "new" if is_new else "more was learned from it since"
    return f"{_pick_line(pick, keys)}  ({why}; heard last {moment(pick.source_updated_at)})"


def _removed_line(removed: Removed, keys: Mapping[str, str]) -> str:
    key = keys.get(removed.session_id, NONE)
    return f"{removed.session_id}  {key}  ({removed.because.value}: {WHY_REMOVED[removed.because]})"


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

"""Generations as people read them: a list, one in full, and what the next one would be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from recollect.generation import Generation, Pick, Removed, RemovedBecause
from recollect.interfaces.cli.output import (
    NONE,
    harmless,
    moment,
    one_line,
    shortened,
    spent_in_words,
    table,
)

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

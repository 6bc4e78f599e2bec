"""`recollect consolidate`: the next generation of a space's memory, made now or only looked at."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

import recollect
from recollect.clock import SystemClock
from recollect.config.settings import folder_of
from recollect.consolidation.files import root_of
from recollect.consolidation.run import Preview
from recollect.errors import UsageError
from recollect.generation import BY_RULES, ConsolidationState, Generation, Pick, Removed, Waiting
from recollect.interfaces.cli.generation_lines import (
    counted_memories,
    memories_in_words,
    preview_lines,
)
from recollect.interfaces.cli.logs import logged
from recollect.interfaces.cli.output import counted, moment, note, one_line, write, write_json
from recollect.interfaces.cli.signals import terminated_like_interrupted
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.views import view
from recollect.space import Space
from recollect.worker import WorkReport


class Came(StrEnum):
    """What came of it."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"  # something happened, and nothing changed
    NOTHING = "nothing to do"
    RUNNING = "somebody else is at it"
    WAITING = "waiting"  # after a failure; --now does not wait
    POSTPONED = "postponed"
    OUTDATED = "outdated"  # something was forgotten meanwhile, or somebody else took over
    FAILED = "failed"


UNDONE = (Came.WAITING, Came.POSTPONED, Came.OUTDATED, Came.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of it, how the space stands afterwards, and where its files are."""

    came: Came
    state: ConsolidationState
    generation: Generation | None
    directory: Path | None


@click.command("consolidate")
@click.option("--now", "is_now", is_flag=True, help="Also if nothing changed, or after failures.")
@click.option("--dry-run", is_flag=True, help="Only say what would be selected and written.")
@with_target
def command(target: Target, is_now: bool, dry_run: bool) -> None:
    """Make the next generation of a space's memory from what its sessions came to.

    The best memories are selected and compared with those of the last generation. What is new is
    worked in, what was forgotten, disabled or has not been used for long is taken out, and the
    handbook (MEMORY), its summary, skills and evidence are published whole: as documents below
    ~/memory, and as files. Workers do the same by themselves, some time after something changed
    (consolidation_cooldown_seconds); this does not wait. It is done by the model that
    consolidation_model names, or model; by rules where there is none, or where it says rules.

    If nothing changed nothing is done; what people edited in the files is a change. --now also
    looks then, and after failures; what says the same makes no new generation. The exit code is 1
    if there is something to do and it was not done: it is paused, waits after a failure, or failed.

    \b
    Examples:
      recollect consolidate
      recollect consolidate --dry-run --space alice
      recollect consolidate --now --json
    """
    with (
        logged(logging.WARNING, as_json=target.as_json),
        target.open() as memory,
        terminated_like_interrupted(),
    ):
        space = memory.space(target.space_name)
        if dry_run:
            _look_ahead(target, space)
            return
        result = _consolidate(target, memory, space, is_now=is_now)
    _tell(target, result)
    if result.came in UNDONE:
        click.get_current_context().exit(1)


def _look_ahead(target: Target, space: Space) -> None:
    preview = space.generations.preview()
    selection = preview.selection
    ids = [pick.session_id for pick in selection.picks]
    ids += [removed.session_id for removed in selection.removed]
    found = (space.sessions.get(session_id) for session_id in ids)
    keys = {state.id: state.key for state in found if state is not None}
    if target.as_json:
        write_json(_preview_view(preview, keys))
        return
    for line in preview_lines(preview, keys):
        write(line)


def _consolidate(target: Target, memory: recollect.Memory, space: Space, *, is_now: bool) -> Result:
    memory.pipeline.notice_edits(space.name)
    before = space.generations.state()
    if before.paused_at is not None:
        go_on = f"recollect generations resume{target.arguments}"
        raise UsageError(f"consolidation of space {space.name!r} is paused; go on: {go_on}")
    came = _reason_not_to(before, is_now=is_now)
    if came is None:
        came = _what_came(space.generations.run())
    after = space.generations.state()
    directory = directory_of(memory, space.name)
    return Result(
        came=came,
        state=after,
        generation=space.generations.get() if after.generation else None,
        directory=directory if directory is not None and directory.is_dir() else None,
    )


def _reason_not_to(state: ConsolidationState, *, is_now: bool) -> Came | None:
    """Why nothing is to be done; a cooldown and sessions still to be distilled are none."""
    now = SystemClock().now()
    match state.waits_for(now):
        case Waiting.RUNNING:
            return None  # if its lease has run out it is taken over
        case Waiting.NOTHING_CHANGED if not is_now:
            is_expired = state.expires_at is not None and state.expires_at <= now
            return None if is_expired else Came.NOTHING
        case Waiting.PARKED | Waiting.BACKOFF if not is_now:
            return Came.WAITING
        case _:
            return None


def _what_came(report: WorkReport) -> Came:
    if report.generations:
        return Came.PUBLISHED
    if report.failed:
        return Came.FAILED
    if report.postponed:
        return Came.POSTPONED
    if report.stale or report.released:
        return Came.OUTDATED
    return Came.UNCHANGED if report.upkeep else Came.RUNNING


def directory_of(memory: recollect.Memory, space: str) -> Path | None:
    """Where a space's generations are published as files; none: nowhere."""
    root = root_of(memory.settings, memory.store.describe())
    return None if root is None else root / folder_of(space)


def _preview_view(preview: Preview, keys: Mapping[str, str]) -> dict[str, Any]:
    """The preview as JSON; memories have the key of their session."""

    def keyed(memories: Sequence[Pick | Removed]) -> list[dict[str, Any]]:
        return [
            {"session_id": each.session_id, "key": keys.get(each.session_id), **view(each)}
            for each in memories
        ]

    selection = preview.selection
    return {
        "space": selection.space,
        "generation": selection.generation,
        "made_by": preview.made_by,
        "is_unchanged": preview.is_unchanged,
        "added": keyed(selection.added),
        "retained": keyed(selection.retained),
        "removed": keyed(selection.removed),
        "expires_at": selection.expires_at,
        "documents": [
            {"does": edit.kind.value, "path": edit.path, "based_on": edit.based_on}
            for edit in preview.edits
        ],
    }


def _tell(target: Target, result: Result) -> None:
    if target.as_json:
        write_json(_shape(result))
        return
    said = _in_words(result)
    if result.came in UNDONE:
        note(said)
        error = result.state.last_error
        if error is not None and result.came is not Came.OUTDATED:
            note(f"{click.style('Error:', fg='red')} {one_line(error)}")
    else:
        write(said)
    if result.came is Came.PUBLISHED and result.directory is not None:
        write(f"Files: {one_line(str(result.directory))}")
    advice = _advice(target, result)
    if advice:
        note(advice)


def _shape(result: Result) -> dict[str, object]:
    made = view(result.generation)
    return {
        "space": result.state.space,
        "outcome": result.came.value,
        "generation": made,
        "directory": None if result.directory is None else str(result.directory),
        "state": view(result.state, SystemClock().now()),
    }


def _in_words(result: Result) -> str:
    state, number = result.state, result.state.generation
    space = f"space {one_line(state.space)!r}"
    stays = f"generation {number} stays" if number else "there is no generation yet"
    match result.came:
        case Came.PUBLISHED:
            assert result.generation is not None
            return _published_in_words(result.generation)
        case Came.UNCHANGED:
            return f"Nothing has changed in what the memory of {space} is made of: {stays}."
        case Came.NOTHING if not state.changed:
            return f"Nothing was learned in {space} yet."
        case Came.NOTHING:
            since = f", made {moment(result.generation.made_at)}" if result.generation else ""
            return f"Nothing has changed in {space} since generation {number}{since}."
        case Came.RUNNING:
            return f"Somebody else is consolidating {space} right now; {stays} until then."
        case Came.WAITING:
            return f"It failed before, and waits ({state.job}); {stays}."
        case Came.POSTPONED:
            return f"It is put off until {moment(state.due_at)}; {stays}."
        case Came.OUTDATED:
            return f"Something changed under it, and nothing was published; {stays}."
        case Came.FAILED:
            return f"It failed; {stays}."


def _published_in_words(made: Generation) -> str:
    memories = memories_in_words(made.added, made.retained, made.removed)
    documents = f"{counted(made.changed, 'document')} changed, {made.documents:,} in all"
    space = one_line(made.space)
    first = f"Published generation {made.number} of space {space!r}, by {one_line(made.made_by)}:"
    words = f"{first} {memories}; {documents}."
    if made.made_by.startswith(BY_RULES) and made.note:
        words = f"{words}\n{one_line(made.note)}"
    if made.added + made.retained == 0:
        return f"{words} It is made of {counted_memories(0)}: nothing is remembered."
    return words


def _advice(target: Target, result: Result) -> str:
    state, where = result.state, target.arguments
    match result.came:
        case Came.PUBLISHED if result.generation is not None and result.generation.number > 1:
            return f"What changed: recollect generations diff {state.generation - 1}{where}"
        case Came.PUBLISHED:
            return f"Read it: recollect docs read MEMORY{where}"
        case Came.NOTHING | Came.UNCHANGED if state.phase1_due:
            return f"{counted(state.phase1_due, 'session')} still to be distilled: recollect work"
        case Came.NOTHING if not state.changed:
            return "Learn from what was said: recollect work --all"
        case Came.WAITING | Came.FAILED:
            return f"Mend the cause, then: recollect consolidate --now{where}"
        case Came.OUTDATED:
            return f"Once more: recollect consolidate{where}"
        case _:
            return ""

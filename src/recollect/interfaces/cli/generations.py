"""`recollect generations` and `recollect consolidate`: what consolidation publishes, and when."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, TypeVar

import click

import recollect
from recollect.config.settings import folder_of
from recollect.consolidation.files import root_of
from recollect.consolidation.run import Preview
from recollect.errors import NotFound, UsageError
from recollect.interfaces.cli.commands import Arg, Opt, Output, Target, command, group
from recollect.interfaces.cli.docs import diff_lines
from recollect.interfaces.cli.output import (
    NONE,
    counted,
    harmless,
    labelled,
    moment,
    one_line,
    shortened,
    spent_in_words,
    table,
)
from recollect.interfaces.cli.parameters import limit_of, more
from recollect.interfaces.cli.running import logged, terminated_like_interrupted
from recollect.interfaces.views import view
from recollect.session import LIST_MAX
from recollect.types.generations import (
    BY_RULES,
    ConsolidationState,
    DocumentChange,
    Generation,
    Pick,
    Removed,
    RemovedBecause,
    Selection,
    Waiting,
)
from recollect.types.pages import Version
from recollect.types.records import JobState
from recollect.worker import WorkReport

NOTE_CHARS, ERROR_CHARS = 200, 200
SHOWN = 20  # of each kind, in a preview; --json has all
HEADERS = ("GENERATION", "MADE", "BY", "ADDED", "RETAINED", "REMOVED", "DOCUMENTS", "NOTE")

Number = Annotated[int, Arg("N", at_least=1)]


@group(lists="list")
def generations() -> None:
    """What consolidation made of a space's memory, one generation after the other; without a verb,
    the list of them.

    A generation is the handbook (MEMORY), its summary, skills and evidence, published as a whole.
    The last generations_kept can be read, compared and restored. Forgetting a session publishes one
    without it at once, and removes it from the earlier ones: those cannot be restored any more.

    Examples:
      recollect generations
      recollect generations diff 3 4
      recollect generations rollback 3 && recollect generations pause
    """


@command(generations)
def list_(
    at: Target,
    *,
    limit: Annotated[int, limit_of("generations")] = 20,
    before: Annotated[
        int | None, Opt("The next page: those before this one.", "N", at_least=1)
    ] = None,
) -> Output:
    """List generations, newest first: when and by whom they were made, and of what.

    ADDED, RETAINED and REMOVED count memories, one for each session.

    Examples:
      recollect generations list
      recollect generations list --before 40 --json
    """
    found = at.space.generations.list(limit, before)
    current = at.space.generations.state().generation
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
        for each in found
    ]
    notes = ""
    if len(found) == limit and found[-1].number > 1:
        notes = more(at, f"generations list --before {found[-1].number}")
    elif not found and before is None:
        notes = _none_yet(at)
    return Output(found, table(HEADERS, rows) if rows else (), notes)


def _none_yet(at: Target) -> str:
    make = f"recollect consolidate{at.arguments}"
    return f"No generation in space {at.quoted_space} yet. Make one: {make}"


def _number(generation: Generation, current: int) -> str:
    return f"{generation.number}{' (current)' if generation.number == current else ''}"


def _note_on(generation: Generation) -> str:
    gone = "" if generation.is_whole else "cannot be restored: parts of it are gone for good"
    return "; ".join(filter(None, (shortened(generation.note, NOTE_CHARS), gone)))


@command(generations)
def show(
    at: Target,
    number: Annotated[int | None, Arg("[N]", at_least=1)] = None,
    *,
    limit: Annotated[
        int, Opt("At most N of its documents.", "N", at_least=0, at_most=LIST_MAX)
    ] = 50,
) -> Output:
    """Show generation N, or the current one: how it was made, and which documents it has.

    Each is listed in the version it has in that generation: recollect docs read PATH --version V
    reads it.

    Examples:
      recollect generations show
      recollect generations show 3 --json
    """
    found = _find(at, number)
    current = at.space.generations.state().generation
    versions = _documents_of(at, found)
    has = [
        {"document_id": document_id, "path": version.path, "version": version.number}
        for version, document_id in versions[:limit]
    ]

    def lines() -> Iterator[str]:
        changes = _memories(found.added, found.retained, found.removed)
        yield from labelled(
            {
                "Generation": _number(found, current),
                "Space": found.space,
                "Made": f"{moment(found.made_at)} by {found.made_by}",
                "Memories": changes,
                "Documents": f"{found.documents:,}, {found.changed:,} changed by it",
                "Spent": spent_in_words(found.spent),
                "Note": _note_on(found),
            }
        )
        rows = [(str(each.number), moment(each.at), each.path) for each, _ in versions[:limit]]
        if rows:
            yield from ("", *table(("VERSION", "WRITTEN", "PATH"), rows))

    left = len(versions) - limit
    notes = f"… and {counted(left, 'document')} more (--limit)" if left > 0 else ""
    return Output({**view(found), "has": has}, lines(), notes)


def _find(at: Target, number: int | None) -> Generation:
    if number is None and not at.space.generations.state().generation:
        raise NotFound(_none_yet(at))
    try:
        return at.space.generations.get(number)
    except NotFound as error:
        raise NotFound(f"{error}; recollect generations{at.arguments} lists them") from error


def _documents_of(at: Target, generation: Generation) -> list[tuple[Version, str]]:
    """The versions that a generation has, as far as they are there, and their documents' ids."""
    stored = at.memory.store.generations.documents(at.space.name, generation.number)
    found = [
        (at.space.documents.version(each.document_id, each.version), each.document_id)
        for each in stored
    ]
    return sorted(found, key=lambda pair: pair[0].path)


@command(generations)
def diff(
    at: Target,
    older: Annotated[int, Arg("A", at_least=1)],
    newer: Annotated[int | None, Arg("[B]", at_least=1)] = None,
    *,
    paths: Annotated[bool, Opt("Only name the documents that differ.")] = False,
) -> Output:
    """Show what changed from generation A to generation B, or to the current one.

    Examples:
      recollect generations diff 3
      recollect generations diff 3 4 --paths
    """
    ends = [_find(at, number) for number in (older, newer)]
    found = at.space.generations.diff(ends[0].number, ends[1].number)
    # A document that was restored has a new version with the text of an earlier one.
    changes = [each for each in found if each.text or each.change is not DocumentChange.CHANGED]

    def lines() -> Iterator[str]:
        for change in changes:
            yield click.style(f"{change.change.value:<7}  {one_line(change.path)}", bold=True)
            if not paths:
                yield from diff_lines(change.text)

    notes = [
        f"Parts of generation {each.number} are gone for good and not shown."
        for each in ends
        if not each.is_whole
    ]
    if not changes:
        notes.insert(0, f"Generations {ends[0].number} and {ends[1].number} say the same.")
    value = {"from": ends[0].number, "to": ends[1].number, "changes": changes}
    return Output(value, lines(), notes)


@command(generations)
def rollback(at: Target, number: Number) -> Output:
    """Restore generation N as the newest generation.

    It stays until something is learned or forgotten, when the next one is made of everything there
    is; recollect generations pause keeps it for longer. Facts and sessions are not touched.

    Examples:
      recollect generations rollback 3
      recollect generations rollback 3 && recollect generations pause
    """
    _find(at, number)
    made = at.space.generations.rollback(number)
    notes = ""
    if at.space.generations.state().paused_at is None:
        keep = f"recollect generations pause{at.arguments}"
        notes = f"It stays until something is learned or forgotten. Keep it: {keep}"
    changed = counted(made.changed, "document")
    done = f"Restored generation {number} as generation {made.number}: {changed} changed."
    return Output(made, done, notes)


@command(generations)
def pause(at: Target) -> Output:
    """Make no more generations of a space until it is resumed; one under way is abandoned.

    Sessions are distilled as before. What is forgotten still leaves the handbook at once.

    Example:
      recollect generations pause --space alice
    """
    at.space.generations.pause()
    state = at.space.generations.state()
    done = f"Consolidation of space {at.quoted_space} is paused since {moment(state.paused_at)}."
    resume = f"Resume it: recollect generations resume{at.arguments}"
    return Output(view(state, at.memory.clock.now()), done, resume)


@command(generations)
def resume(at: Target) -> Output:
    """Make generations of a space again; if something changed meanwhile, the next one is due.

    Example:
      recollect generations resume --space alice
    """
    own = at.space.generations
    was_paused = own.state().paused_at is not None
    own.resume()
    state = own.state()
    what, notes = f"Consolidation of space {at.quoted_space}", ""
    if was_paused and state.changed > state.consolidated:
        notes = f"Something changed meanwhile. Now: recollect consolidate{at.arguments}"
    done = f"{what} is resumed." if was_paused else f"{what} was not paused."
    return Output(view(state, at.memory.clock.now()), done, notes)


# The next generation


class ConsolidationOutcome(StrEnum):
    """How a consolidation by hand ended."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"  # something happened, and nothing changed
    NOTHING = "nothing to do"
    RUNNING = "somebody else is at it"
    WAITING = "waiting"  # after a failure; --now does not wait
    POSTPONED = "postponed"
    OUTDATED = "outdated"  # something was forgotten meanwhile, or somebody else took over
    FAILED = "failed"


UNDONE = (
    ConsolidationOutcome.WAITING,
    ConsolidationOutcome.POSTPONED,
    ConsolidationOutcome.OUTDATED,
    ConsolidationOutcome.FAILED,
)


@command(makes_store=True)
def consolidate(
    at: Target,
    *,
    now: Annotated[bool, Opt("Even if nothing changed, and after failures.")] = False,
    dry_run: Annotated[bool, Opt("Only show what would be selected and written.")] = False,
) -> Output:
    """Make the next generation of a space's memory from what its sessions came to.

    The best memories are selected and compared with those of the last generation. What is new is
    worked in, what was forgotten, disabled or has not been used for long is removed, and the
    handbook (MEMORY), its summary, skills and evidence are published as a whole: as documents below
    ~/memory, and as files. Workers do this by themselves, some time after something changed
    (consolidation_cooldown_seconds); this command does not wait. It is done by the model that
    consolidation_model names, or model; by rules where there is none, or where it says rules.

    If nothing changed nothing is done; what people edited in the files is a change. --now also
    checks then, and after failures; an equal result makes no new generation. The exit code is 1 if
    there is something to do and it was not done: it is paused, waits after a failure, or failed.

    Examples:
      recollect consolidate
      recollect consolidate --dry-run --space alice
      recollect consolidate --now --json
    """
    with logged(logging.WARNING, as_json=at.as_json), terminated_like_interrupted():
        return _preview(at) if dry_run else _consolidate(at, is_now=now)


def _consolidate(at: Target, *, is_now: bool) -> Output:
    memory, own = at.memory, at.space.generations
    memory.pipeline.notice_edits(at.space.name)
    before = own.state()
    if before.paused_at is not None:
        resume = f"recollect generations resume{at.arguments}"
        raise UsageError(f"consolidation of space {at.space.name!r} is paused; resume it: {resume}")
    outcome = _reason_not_to(before, memory.clock.now(), is_now=is_now) or _outcome_of(own.run())
    state = own.state()
    made = own.get() if state.generation else None
    root = root_of(memory.settings, memory.store.describe())
    directory = None if root is None else root / folder_of(at.space.name)
    if directory is not None and not directory.is_dir():
        directory = None
    words = _outcome_in_words(outcome, state, made)
    advice = list(filter(None, [_advice(at, outcome, state)]))
    if outcome in UNDONE:
        if state.last_error is not None and outcome is not ConsolidationOutcome.OUTDATED:
            advice.insert(0, f"{click.style('Error:', fg='red')} {one_line(state.last_error)}")
        lines, notes = [], [words, *advice]
    else:
        lines, notes = [words], advice
        if outcome is ConsolidationOutcome.PUBLISHED and directory is not None:
            lines.append(f"Files: {one_line(str(directory))}")
    value = {
        "space": state.space,
        "outcome": outcome.value,
        "generation": made,
        "directory": directory,
        "state": view(state, memory.clock.now()),
    }
    return Output(value, lines, notes, exit_code=1 if outcome in UNDONE else 0)


def _reason_not_to(
    state: ConsolidationState, now: datetime, *, is_now: bool
) -> ConsolidationOutcome | None:
    """Why nothing is to be done; a cooldown and sessions still to be distilled are none."""
    match state.waits_for(now):
        case Waiting.RUNNING:
            return None  # if its lease has run out it is taken over
        case Waiting.NOTHING_CHANGED if not is_now:
            is_expired = state.expires_at is not None and state.expires_at <= now
            return None if is_expired else ConsolidationOutcome.NOTHING
        case Waiting.PARKED | Waiting.BACKOFF if not is_now:
            return ConsolidationOutcome.WAITING
        case _:
            return None


def _outcome_of(report: WorkReport) -> ConsolidationOutcome:
    if report.generations:
        return ConsolidationOutcome.PUBLISHED
    if report.failed:
        return ConsolidationOutcome.FAILED
    if report.postponed:
        return ConsolidationOutcome.POSTPONED
    if report.stale or report.released:
        return ConsolidationOutcome.OUTDATED
    return ConsolidationOutcome.UNCHANGED if report.upkeep else ConsolidationOutcome.RUNNING


def _outcome_in_words(
    outcome: ConsolidationOutcome, state: ConsolidationState, made: Generation | None
) -> str:
    number = state.generation
    space = f"space {one_line(state.space)!r}"
    stays = f"generation {number} stays" if number else "there is no generation yet"
    match outcome:
        case ConsolidationOutcome.PUBLISHED:
            assert made is not None
            return _published_in_words(made)
        case ConsolidationOutcome.UNCHANGED:
            return f"Nothing has changed in what the memory of {space} is made of: {stays}."
        case ConsolidationOutcome.NOTHING if not state.changed:
            return f"Nothing was learned in {space} yet."
        case ConsolidationOutcome.NOTHING:
            since = f", made {moment(made.made_at)}" if made else ""
            return f"Nothing has changed in {space} since generation {number}{since}."
        case ConsolidationOutcome.RUNNING:
            return f"Somebody else is consolidating {space} right now; {stays} until then."
        case ConsolidationOutcome.WAITING:
            return f"It failed before, and waits ({state.job}); {stays}."
        case ConsolidationOutcome.POSTPONED:
            return f"It is postponed until {moment(state.due_at)}; {stays}."
        case ConsolidationOutcome.OUTDATED:
            return f"Something changed meanwhile, and nothing was published; {stays}."
        case ConsolidationOutcome.FAILED:
            return f"It failed; {stays}."


def _published_in_words(made: Generation) -> str:
    memories = _memories(made.added, made.retained, made.removed)
    documents = f"{counted(made.changed, 'document')} changed, {made.documents:,} in all"
    first = f"Published generation {made.number} of space {one_line(made.space)!r}"
    words = f"{first}, by {one_line(made.made_by)}: {memories}; {documents}."
    if made.made_by.startswith(BY_RULES) and made.note:
        words = f"{words}\n{one_line(made.note)}"
    return words if made.added + made.retained else f"{words} Nothing is remembered."


def _advice(at: Target, outcome: ConsolidationOutcome, state: ConsolidationState) -> str:
    where = at.arguments
    match outcome:
        case ConsolidationOutcome.PUBLISHED if state.generation > 1:
            return f"What changed: recollect generations diff {state.generation - 1}{where}"
        case ConsolidationOutcome.PUBLISHED:
            return f"Read it: recollect docs read MEMORY{where}"
        case ConsolidationOutcome.NOTHING | ConsolidationOutcome.UNCHANGED if state.phase1_due:
            return f"{counted(state.phase1_due, 'session')} still to be distilled: recollect work"
        case ConsolidationOutcome.NOTHING if not state.changed:
            return "Learn from what was said: recollect work --all"
        case ConsolidationOutcome.WAITING | ConsolidationOutcome.FAILED:
            return f"Fix the cause, then: recollect consolidate --now{where}"
        case ConsolidationOutcome.OUTDATED:
            return f"Once more: recollect consolidate{where}"
        case _:
            return ""


def _memories(added: int, retained: int, removed: int) -> str:
    """How a selection differs from the one before it."""
    what = counted(added, "memory", "memories")
    return f"{what} added, {retained:,} retained, {removed:,} removed"


# A preview of the next one

WHY_REMOVED = {
    RemovedBecause.UNSELECTED: "others are used more, or it was not used for long",
    RemovedBecause.DISABLED: "its session is disabled",
    RemovedBecause.POLLUTED: "its session is polluted",
    RemovedBecause.FORGOTTEN: "its session was forgotten",
    RemovedBecause.EMPTIED: "a later run found nothing worth remembering",
    RemovedBecause.PRUNED: "it was kept long enough",
}
T = TypeVar("T")


def _preview(at: Target) -> Output:
    preview = at.space.generations.preview()
    selection = preview.selection
    ids = {each.session_id for each in selection.picks}
    ids |= {each.session_id for each in selection.removed}
    found = (at.space.sessions.get(session_id) for session_id in sorted(ids))
    keys = {state.id: state.key for state in found if state is not None}
    return Output(_preview_view(preview, keys), preview_lines(preview, keys))


def _preview_view(preview: Preview, keys: Mapping[str, str]) -> dict[str, Any]:
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


def preview_lines(preview: Preview, keys: Mapping[str, str]) -> Iterator[str]:
    selection, by = preview.selection, one_line(preview.made_by)
    current = f"generation {selection.generation}" if selection.generation else "no generation yet"
    made_of = counted(len(selection.picks), "memory", "memories")
    yield f"Space {one_line(selection.space)!r}: {current}."
    if preview.is_unchanged:
        yield f"Nothing has changed in the {made_of} it is made of."
        return
    yield f"The next one would be made of {made_of}, by {by}."

    def known(memory: Pick | Removed) -> str:
        return f"{memory.session_id}  {keys.get(memory.session_id, NONE)}"

    def added(pick: Pick) -> str:
        why = "new" if pick.path is None else "more was learned from it since"
        return f"{known(pick)}  ({why}; last heard from {moment(pick.source_updated_at)})"

    def removed(each: Removed) -> str:
        return f"{known(each)}  ({each.because.value}: {WHY_REMOVED[each.because]})"

    yield from _listed("Added", selection.added, added)
    yield from _listed("Retained", selection.retained, known)
    yield from _listed("Removed", selection.removed, removed)
    if preview.edits:
        edits = preview.edits
        yield from _listed("Documents", edits, lambda each: f"{each.kind.value:<6}  {each.path}")
    else:
        yield f"What would be written is up to {by}, which was not asked."


def _listed(title: str, things: Sequence[T], line: Callable[[T], str]) -> Iterator[str]:
    yield f"{click.style(title.ljust(9), bold=True)} {len(things):,}"
    yield from (f"  {harmless(line(each))}" for each in things[:SHOWN])
    if len(things) > SHOWN:
        yield f"  … and {len(things) - SHOWN:,} more (--json)"


# Where a space stands, for the status

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
    """Where a space stands; a selection is read only where something has changed."""
    stored, policy = memory.store.generations, memory.settings.selection_policy
    is_changed = state.changed > state.consolidated or state.job is not JobState.IDLE
    return Consolidation(
        state=state,
        current=stored.get(state.space, state.generation) if state.generation else None,
        coming=stored.select(state.space, policy, now) if is_changed else None,
        by_workers=memory.settings.consolidation == "on",
    )


def _counts(selection: Selection) -> dict[str, int]:
    return {
        "added": len(selection.added),
        "retained": len(selection.retained),
        "removed": len(selection.removed),
    }


def consolidation_view(each: Consolidation, now: datetime) -> dict[str, Any]:
    return view(each.state, now) | {
        "current": each.current,
        "next": None if each.coming is None else _counts(each.coming),
        "by_workers": each.by_workers,
    }


def consolidation_lines(each: Consolidation, now: datetime, at: Target) -> Iterator[str]:
    """A space as `status` shows it; it is named where the status is not of one space alone."""
    name = "" if at.named_space is not None else f"{one_line(each.state.space)}: "
    yield f"{name}{_current_in_words(each.current)}"
    if each.current is not None and each.current.made_by.startswith(BY_RULES) and each.current.note:
        yield f"  {shortened(each.current.note, ERROR_CHARS)}"
    if each.coming is not None:
        yield f"  the next one: {_memories(**_counts(each.coming))}"
    where = replace(at, named_space=each.state.space).arguments
    yield f"  {why_in_words(each, now, where)}"
    if each.state.last_error is not None:
        error = click.style(shortened(each.state.last_error, ERROR_CHARS), fg="red")
        failures = each.state.failures
        yield f"  failed {failures} x; last error: {error}" if failures else f"  error: {error}"


def _current_in_words(generation: Generation | None) -> str:
    if generation is None:
        return "no generation yet"
    made = f"made {moment(generation.made_at)} by {one_line(generation.made_by)}"
    if generation.restored_from is not None:
        return f"generation {generation.number}, restored from {generation.restored_from}, {made}"
    memories = counted(generation.added + generation.retained, "memory", "memories")
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
            return f"nothing has changed since; a memory expires {moment(state.expires_at)}"
        case Waiting.NOTHING_CHANGED:
            return "nothing has changed since"
        case Waiting.RUNNING:
            return "the next one is being made"
        case Waiting.PAUSED:
            since = moment(state.paused_at)
            return f"paused since {since}; resume it: recollect generations resume{arguments}"
        case Waiting.PARKED:
            return f"parked; fix the cause, then: {by_hand} --now"
        case Waiting.BACKOFF:
            return f"backing off; next try: {moment(state.due_at)}; at once: {by_hand} --now"
        case Waiting.COOLDOWN if state.last_error is not None:
            return f"postponed until {moment(state.due_at)}; at once: {by_hand}"
        case Waiting.COOLDOWN:
            return f"not before {moment(state.due_at)}, when the cooldown ends; at once: {by_hand}"
        case Waiting.PHASE_1:
            sessions = counted(state.phase1_due, "session")
            return f"waits for {sessions} still to be distilled: recollect work"
        case Waiting.READY:
            return f"waits for a worker; at once: {by_hand}"

"""`recollect generations` and `recollect consolidate`: what consolidation publishes, and when."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import click

import recollect
from recollect.config.settings import folder_of
from recollect.consolidation.files import root_of
from recollect.consolidation.run import Preview
from recollect.errors import NotFound, UsageError
from recollect.interfaces.cli.commands import Opt, Output, Target, command, group, listed
from recollect.interfaces.cli.docs import diff_lines
from recollect.interfaces.cli.output import (
    NONE,
    counted,
    fields,
    harmless,
    joined,
    labelled,
    moment,
    more,
    one_line,
    shortened,
    spent_in_words,
    tabled,
)
from recollect.interfaces.cli.parameters import Before, Limit
from recollect.interfaces.cli.running import logged, terminated_like_interrupted
from recollect.interfaces.views import view
from recollect.session import LIST_MAX
from recollect.types.generations import (
    BY_RULES,
    ConsolidationState,
    Generation,
    Pick,
    Removed,
    RemovedBecause,
    Selection,
    Waiting,
)
from recollect.types.records import JobState
from recollect.worker import WorkReport

NOTE_CHARS = 200
SHOWN = 20  # of each kind, in a preview; --json has all

MaybeNumber = Annotated[int | None, Opt(metavar="[N]", at_least=1)]


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
    """


def _note_on(generation: Generation) -> str:
    gone = "" if generation.is_whole else "cannot be restored: parts of it are gone for good"
    return joined(shortened(generation.note, NOTE_CHARS), gone)


@command(generations)
def list_(at: Target, *, limit: Limit = 20, before: Before = None) -> Output:
    """List generations, newest first: when and by whom they were made, and of what.

    ADDED, RETAINED and REMOVED count memories, one for each session.

    Example:
      recollect generations list --before 40
    """
    found = at.space.generations.list(limit, before)
    current = at.space.generations.state().generation
    columns = fields(
        "generation made_at by=made_by added retained removed documents note",
        generation=lambda each: f"{each.number}{' (current)' * (each.number == current)}",
        documents=lambda each: f"{each.documents:,}, {each.changed:,} changed",
        note=_note_on,
    )
    if found and found[-1].number == 1:
        return Output(found, tabled(columns, found))
    lines = tabled(columns, found)
    return listed(
        at, found, lines, _none_yet(at), limit=limit, after=before, cursor="--before", by="number"
    )


def _none_yet(at: Target) -> str:
    make = f"recollect consolidate{at.arguments}"
    return f"No generation in space {at.quoted_space} yet. Make one: {make}"


@command(generations)
def show(
    at: Target,
    number: MaybeNumber = None,
    *,
    limit: Annotated[int, Opt(metavar="N", at_least=0, at_most=LIST_MAX)] = 50,
) -> Output:
    """Show generation N, or the current one: how it was made, and which documents it has.

    Each is listed in the version it has in that generation: recollect docs read PATH --version V
    reads it.

    Options:
      limit: At most N of its documents.

    Example:
      recollect generations show 3
    """
    found = _find(at, number)
    stored = at.memory.store.generations.documents(at.space.name, found.number)
    versions = sorted(
        ((at.space.documents.version(each.document_id, each.version), each) for each in stored),
        key=lambda pair: pair[0].path,
    )
    has = [
        {"document_id": each.document_id, "path": version.path, "version": version.number}
        for version, each in versions[:limit]
    ]
    is_current = found.number == at.space.generations.state().generation
    labels = fields(
        "generation space made memories documents spent note",
        generation=lambda each: f"{each.number}{' (current)' * is_current}",
        made=lambda each: f"{moment(each.made_at)} by {each.made_by}",
        memories=lambda each: _memories(each.added, each.retained, each.removed),
        documents=lambda each: f"{each.documents:,}, {each.changed:,} changed by it",
        spent=lambda each: spent_in_words(each.spent),
        note=_note_on,
    )
    shown = [version for version, _ in versions[:limit]]
    table = tabled(fields("version=number written=at path"), shown)
    lines = [*labelled(labels, found), *([""] if shown else []), *table]
    left = len(versions) - limit
    notes = f"… and {counted(left, 'document')} more (--limit)" if left > 0 else ""
    return Output({**view(found), "has": has}, lines, notes)


def _find(at: Target, number: int | None) -> Generation:
    if number is None and not at.space.generations.state().generation:
        raise NotFound(_none_yet(at))
    try:
        return at.space.generations.get(number)
    except NotFound as error:
        raise NotFound(f"{error}; recollect generations{at.arguments} lists them") from error


@command(generations)
def diff(
    at: Target,
    older: Annotated[int, Opt(metavar="A", at_least=1)],
    newer: Annotated[int | None, Opt(metavar="[B]", at_least=1)] = None,
    *,
    paths: bool = False,
) -> Output:
    """Show what changed from generation A to generation B, or to the current one.

    Options:
      paths: Only name the documents that differ.

    Example:
      recollect generations diff 3 4 --paths
    """
    ends = [_find(at, number) for number in (older, newer)]
    first, last = (each.number for each in ends)
    changes = at.space.generations.diff(first, last)

    def lines() -> Iterator[str]:
        for change in changes:
            yield click.style(f"{change.change.value:<7}  {one_line(change.path)}", bold=True)
            if not paths:
                yield from diff_lines(change.text)

    notes = [] if changes else [f"Generations {first} and {last} say the same."]
    notes += [
        f"Parts of generation {each.number} are gone for good and not shown."
        for each in ends
        if not each.is_whole
    ]
    return Output({"from": first, "to": last, "changes": changes}, lines(), notes)


@command(generations)
def rollback(at: Target, number: Annotated[int, Opt(metavar="N", at_least=1)]) -> Output:
    """Restore generation N as the newest generation.

    It stays until something is learned or forgotten, when the next one is made of everything there
    is; recollect generations pause keeps it for longer. Facts and sessions are not touched.

    Example:
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
    state, notes = own.state(), ""
    if was_paused and state.changed > state.consolidated:
        notes = f"Something changed meanwhile. Now: recollect consolidate{at.arguments}"
    is_now = "is resumed" if was_paused else "was not paused"
    done = f"Consolidation of space {at.quoted_space} {is_now}."
    return Output(view(state, at.memory.clock.now()), done, notes)


# The next generation


class ConsolidationOutcome(StrEnum):
    """The result of a consolidation by hand."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"  # something happened, and nothing changed
    NOTHING = "nothing to do"
    RUNNING = "it is running elsewhere"
    WAITING = "waiting"  # after a failure; --now does not wait
    POSTPONED = "postponed"
    OUTDATED = "outdated"  # something was forgotten meanwhile, or somebody else took over
    FAILED = "failed"


# What each means where nothing was published, and what can be done about it.
_TOLD: Mapping[ConsolidationOutcome, tuple[str, str]] = {
    ConsolidationOutcome.UNCHANGED: (
        "Nothing has changed in what the memory of {space} is made of: {stays}.",
        "",
    ),
    ConsolidationOutcome.NOTHING: ("Nothing has changed in {space} since {current}.", ""),
    ConsolidationOutcome.RUNNING: (
        "Somebody else is consolidating {space} right now; {stays} until then.",
        "",
    ),
    ConsolidationOutcome.WAITING: (
        "It failed before, and waits ({state.job}); {stays}.",
        "Fix the cause, then: recollect consolidate --now{where}",
    ),
    ConsolidationOutcome.POSTPONED: ("It is postponed until {due}; {stays}.", ""),
    ConsolidationOutcome.OUTDATED: (
        "Something changed meanwhile, and nothing was published; {stays}.",
        "Once more: recollect consolidate{where}",
    ),
    ConsolidationOutcome.FAILED: (
        "It failed; {stays}.",
        "Fix the cause, then: recollect consolidate --now{where}",
    ),
}
_UNDONE = frozenset(list(_TOLD)[3:])


@command(makes_store=True)
def consolidate(at: Target, *, now: bool = False, dry_run: bool = False) -> Output:
    """Make the next generation of a space's memory from what its sessions came to.

    The best memories are selected and compared with those of the last generation; the handbook
    (MEMORY), its summary, skills and evidence are published as a whole, as documents below ~/memory
    and as files. Workers do this by themselves some time after something changed; this command does
    not wait. It is done by the model that consolidation_model names, or model; else by rules.

    The exit code is 1 if there is something to do and it was not done: it is paused, waits after a
    failure, or failed.

    Options:
      now: Even if nothing changed, and after failures. An equal result makes no new generation.
      dry_run: Only show what would be selected and written.

    Examples:
      recollect consolidate
      recollect consolidate --dry-run --space alice
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
    words, advice = _told(at, outcome, state, made)
    lines, notes = [words], [advice] if advice else []
    if outcome is ConsolidationOutcome.PUBLISHED and directory is not None:
        lines.append(f"Files: {one_line(str(directory))}")
    if outcome in _UNDONE:
        if state.last_error is not None and outcome is not ConsolidationOutcome.OUTDATED:
            notes.insert(0, f"{click.style('Error:', fg='red')} {one_line(state.last_error)}")
        lines, notes = [], [words, *notes]
    value = {
        "space": state.space,
        "outcome": outcome.value,
        "generation": made,
        "directory": directory,
        "state": view(state, memory.clock.now()),
    }
    return Output(value, lines, notes, exit_code=1 if outcome in _UNDONE else 0)


def _reason_not_to(
    state: ConsolidationState, now: datetime, *, is_now: bool
) -> ConsolidationOutcome | None:
    """Why nothing is to be done; a cooldown and sessions still to be distilled are none.

    One that is running is taken over if its lease has run out.
    """
    match state.waits_for(now):
        case Waiting.NOTHING_CHANGED if not is_now:
            is_expired = state.expires_at is not None and state.expires_at <= now
            return None if is_expired else ConsolidationOutcome.NOTHING
        case Waiting.PARKED | Waiting.BACKOFF if not is_now:
            return ConsolidationOutcome.WAITING
        case _:
            return None


def _outcome_of(report: WorkReport) -> ConsolidationOutcome:
    counts = {
        ConsolidationOutcome.PUBLISHED: report.generations,
        ConsolidationOutcome.FAILED: report.failed,
        ConsolidationOutcome.POSTPONED: report.postponed,
        ConsolidationOutcome.OUTDATED: report.stale + report.released,
        ConsolidationOutcome.UNCHANGED: report.upkeep,
    }
    return next((each for each, count in counts.items() if count), ConsolidationOutcome.RUNNING)


def _told(
    at: Target, outcome: ConsolidationOutcome, state: ConsolidationState, made: Generation | None
) -> tuple[str, str]:
    """The outcome in words, with advice."""
    where, space = at.arguments, f"space {one_line(state.space)!r}"
    if outcome is ConsolidationOutcome.PUBLISHED:
        assert made is not None
        if state.generation > 1:
            advice = f"What changed: recollect generations diff {state.generation - 1}{where}"
            return _published_in_words(made), advice
        return _published_in_words(made), f"Read it: recollect docs read MEMORY{where}"
    if outcome is ConsolidationOutcome.NOTHING and not state.changed:
        return f"Nothing was learned in {space} yet.", _LEARN
    words, advice = (
        text.format(
            space=space,
            state=state,
            stays=f"generation {state.generation} stays" if made else "there is no generation yet",
            current=f"generation {state.generation}, made {moment(made.made_at if made else None)}",
            due=moment(state.due_at),
            where=where,
        )
        for text in _TOLD[outcome]
    )
    if not advice and outcome not in _UNDONE and state.phase1_due:
        advice = f"{counted(state.phase1_due, 'session')} still to be distilled: recollect work"
    return words, advice


_LEARN = "Learn from what was said: recollect work --all"


def _published_in_words(made: Generation) -> str:
    memories = _memories(made.added, made.retained, made.removed)
    documents = f"{counted(made.changed, 'document')} changed, {made.documents:,} in all"
    first = f"Published generation {made.number} of space {one_line(made.space)!r}"
    words = f"{first}, by {one_line(made.made_by)}: {memories}; {documents}."
    if made.made_by.startswith(BY_RULES) and made.note:
        words = f"{words}\n{one_line(made.note)}"
    return words if made.added + made.retained else f"{words} Nothing is remembered."


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


def _preview(at: Target) -> Output:
    preview = at.space.generations.preview()
    selection = preview.selection
    groups = {name: getattr(selection, name) for name in ("added", "retained", "removed")}
    ids = {each.session_id for memories in groups.values() for each in memories}
    found = (at.space.sessions.get(session_id) for session_id in sorted(ids))
    keys = {state.id: state.key for state in found if state is not None}
    value: dict[str, Any] = {
        "space": selection.space,
        "generation": selection.generation,
        "made_by": preview.made_by,
        "is_unchanged": preview.is_unchanged,
        "expires_at": selection.expires_at,
        "documents": [
            {"does": edit.kind.value, "path": edit.path, "based_on": edit.based_on}
            for edit in preview.edits
        ],
    }
    for name, memories in groups.items():
        value[name] = [{"key": keys.get(each.session_id), **view(each)} for each in memories]
    return Output(value, preview_lines(preview, keys))


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

    yield from _section("Added", selection.added, added)
    yield from _section("Retained", selection.retained, known)
    yield from _section("Removed", selection.removed, removed)
    if preview.edits:
        edit = "{0.kind.value:<6}  {0.path}"
        yield from _section("Documents", preview.edits, edit.format)
    else:
        yield f"What would be written is up to {by}, which was not asked."


def _section(title: str, things: Sequence[Any], line: Callable[[Any], str]) -> Iterator[str]:
    yield f"{click.style(title.ljust(9), bold=True)} {len(things):,}"
    yield from (f"  {harmless(line(each))}" for each in things[:SHOWN])
    yield from more(SHOWN, len(things), "--json")


# Where a space stands, for the status

BY_WORKERS = (Waiting.READY, Waiting.COOLDOWN, Waiting.PHASE_1, Waiting.BACKOFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """Where a space stands, with its current generation and what the next would be made of."""

    state: ConsolidationState
    current: Generation | None
    coming: Selection | None  # none: nothing has changed
    by_workers: bool  # whether workers do it, or only people

    @property
    def counts(self) -> dict[str, int] | None:
        """How many memories the next one would add, retain and remove."""
        names = ("added", "retained", "removed")
        if self.coming is None:
            return None
        return {name: len(getattr(self.coming, name)) for name in names}


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


def consolidation_view(each: Consolidation, now: datetime) -> dict[str, Any]:
    more = {"current": each.current, "next": each.counts, "by_workers": each.by_workers}
    return view(each.state, now) | more


def consolidation_lines(each: Consolidation, now: datetime, at: Target) -> Iterator[str]:
    """A space as `status` shows it; it is named where the status is not of one space alone."""
    state, made = each.state, each.current
    name = "" if at.named_space is not None else f"{one_line(state.space)}: "
    if made is None:
        yield f"{name}no generation yet"
    else:
        again = f"restored from {made.restored_from}, " if made.restored_from is not None else ""
        of = f"{counted(made.documents, 'document')} of "
        of += counted(made.added + made.retained, "memory", "memories")
        by = f"made {moment(made.made_at)} by {one_line(made.made_by)}: {of}"
        yield f"{name}generation {made.number}, {again}{by}"
        if made.made_by.startswith(BY_RULES) and made.note:
            yield f"  {shortened(made.note, NOTE_CHARS)}"
    if each.counts is not None:
        yield f"  the next one: {_memories(**each.counts)}"
    yield f"  {why_in_words(each, now, replace(at, named_space=state.space).arguments)}"
    if state.last_error is not None:
        error = click.style(shortened(state.last_error, NOTE_CHARS), fg="red")
        failed = f"failed {state.failures} x; last error" if state.failures else "error"
        yield f"  {failed}: {error}"


def why_in_words(each: Consolidation, now: datetime, arguments: str) -> str:
    """Why the next one has not been made, when it will be, and what a person can do about it."""
    state, waiting = each.state, each.state.waits_for(now)
    by_hand, due = f"recollect consolidate{arguments}", moment(state.due_at)
    if not each.by_workers and waiting in BY_WORKERS:
        return f"workers do not consolidate here (consolidation = off); by hand: {by_hand}"
    match waiting:
        case Waiting.NOTHING_CHANGED:
            ends = f"; a memory expires {moment(state.expires_at)}" if state.expires_at else ""
            return f"nothing has changed since{ends}"
        case Waiting.RUNNING:
            return "the next one is being made"
        case Waiting.PAUSED:
            since = moment(state.paused_at)
            return f"paused since {since}; resume it: recollect generations resume{arguments}"
        case Waiting.PARKED:
            return f"parked; fix the cause, then: {by_hand} --now"
        case Waiting.BACKOFF:
            return f"backing off; next try: {due}; at once: {by_hand} --now"
        case Waiting.COOLDOWN if state.last_error is not None:
            return f"postponed until {due}; at once: {by_hand}"
        case Waiting.COOLDOWN:
            return f"not before {due}, when the cooldown ends; at once: {by_hand}"
        case Waiting.PHASE_1:
            sessions = counted(state.phase1_due, "session")
            return f"waits for {sessions} still to be distilled: recollect work"
        case Waiting.READY:
            return f"waits for a worker; at once: {by_hand}"

"""Generations on pages: what each was made of and cost, how two differ, and going back to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from recollect.errors import InvalidValue
from recollect.generation import DocumentChange, Generation, GenerationChange, Waiting
from recollect.interfaces.http.operations import cursor_behind, read_mark
from recollect.interfaces.web.view import HOME, SPACE, Asked, Moved, Page, View, done, shown
from recollect.store.key_protocol import Scope

GENERATIONS = f"{SPACE}/generations"
ONE = f"{GENERATIONS}/{{number}}"
LISTED = 20
COMPARED = 100  # others to choose from
NUMBER_CHARS_MAX = 18
LINES_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a difference; `kind` is add, gone, place, or nothing for what stayed."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What became of one document, and how much of it is not shown."""

    path: str
    change: str
    lines: tuple[DiffLine, ...]
    left_out: int


def generations(asked: Asked) -> Page:
    cursor, before = asked.wanted("cursor"), None
    if cursor is not None:
        before = read_mark(cursor, int)
    found = asked.space.generations.list(LISTED, before)
    state = asked.space.generations.state()
    waits_for = state.waits_for(asked.now)
    return Page(
        template="generations.html",
        fragment="_generations.html",
        content={
            "generations": found,
            "state": state,
            "waits_for": waits_for.value,
            "is_bad": waits_for in (Waiting.PARKED, Waiting.BACKOFF),
            "next_at": state.next_attempt_at(asked.now),
            "cursor": cursor or "",
            "following": cursor_behind(found[-1]) if len(found) == LISTED else None,
        },
    )


def generation(asked: Asked) -> Page:
    held = asked.space.generations
    found = held.get(_number(asked.path["number"]))
    others = [each.number for each in held.list(COMPARED) if each.number != found.number]
    given = asked.wanted("against")
    against = _number(given) if given is not None else _before(found, others)
    is_whole = asked.wanted("whole") is not None
    changes = [] if against is None else held.diff(against, found.number)
    return Page(
        template="generation.html",
        content={
            "generation": found,
            "current": held.state().generation,
            "others": others,
            "against": against,
            "changes": [_shown(each, is_whole) for each in changes],
            "is_whole": is_whole,
        },
    )


def _before(found: Generation, others: Sequence[int]) -> int | None:
    """The newest of those that came before; none: it is the oldest that is kept."""
    return max((number for number in others if number < found.number), default=None)


def _shown(change: GenerationChange, is_whole: bool) -> Shown:
    lines = diff_lines(change)
    kept = lines if is_whole else lines[:LINES_SHOWN]
    return Shown(
        path=change.path,
        change=change.change.value,
        lines=tuple(kept),
        left_out=len(lines) - len(kept),
    )


def diff_lines(change: GenerationChange) -> list[DiffLine]:
    """A unified diff line by line; only one of a changed document has a head."""
    head = 2 if change.change is DocumentChange.CHANGED else 0
    return [
        DiffLine(kind="place" if number < head else _kind(line), text=line)
        for number, line in enumerate(change.text.splitlines())
    ]


def _kind(line: str) -> str:
    if line.startswith("@@"):
        return "place"
    return {"+": "add", "-": "gone"}.get(line[:1], "")


def _number(given: str) -> int:
    if not (given.isascii() and given.isdigit() and len(given) <= NUMBER_CHARS_MAX):
        raise InvalidValue("a generation is named by its number")
    return int(given)


def rollback(asked: Asked) -> Moved:
    made = asked.space.generations.rollback(_number(asked.path["number"]))
    return Moved(
        to=f"{_place(asked)}/{made.number}",
        said=f"Restored, as generation {made.number}. It stays until something is learned.",
    )


def pause(asked: Asked) -> Moved:
    asked.space.generations.pause()
    return Moved(to=_place(asked), said="Paused: no generation is made until it is resumed.")


def resume(asked: Asked) -> Moved:
    asked.space.generations.resume()
    return Moved(to=_place(asked), said="Resumed.")


def _place(asked: Asked) -> str:
    return f"{HOME}/s/{quote(asked.space.name, safe='')}/generations"


VIEWS: tuple[View, ...] = (
    shown(GENERATIONS, "generations", generations),
    done(f"{GENERATIONS}/pause", "pause_generations", pause, Scope.WRITE),
    done(f"{GENERATIONS}/resume", "resume_generations", resume, Scope.WRITE),
    shown(ONE, "generation", generation),
    done(f"{ONE}/rollback", "rollback_generation", rollback, Scope.WRITE),
)

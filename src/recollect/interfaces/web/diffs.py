"""A unified difference as lines that a page can colour."""

from __future__ import annotations

from dataclasses import dataclass

SIDES = 2  # the lines that name them


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line, and what it is: added, gone, a place in the text, or there in both."""

    kind: str
    text: str


def diff_lines(unified: str) -> list[DiffLine]:
    """The lines of a difference, each with its kind; the first two name its sides."""
    return [DiffLine(_kind(line, place), line) for place, line in enumerate(unified.splitlines())]


def _kind(line: str, place: int) -> str:
    if line.startswith("@@") or (place < SIDES and line.startswith(("--- ", "+++ "))):
        return "place"
    return {"+": "add", "-": "gone"}.get(line[:1], "same")

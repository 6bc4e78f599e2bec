"""Small edits of a JSON text that leave every other byte as it is: members and elements come or go.

Pure. A place is a path of names and positions from the outermost object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recollect.errors import InvalidValue

Place = tuple[str | int, ...]

INDENT = "  "
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A member or an element: where it stands with its name, and where its value stands."""

    name: str | int
    start: int
    value: int
    end: int


def read_object(text: str) -> dict[str, Any]:
    """What a text says. InvalidValue: no JSON object, or one that says something twice."""
    try:
        content = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"it is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise InvalidValue("it is not a JSON object")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name stands there twice")
    return content


def with_added(text: str, place: Place, value: Any, name: str | None = None) -> str:
    """The text with one more at the end of an object (which needs a name) or of a list."""
    start = _find(text, place)
    parts = list(_parts(text, start))
    outer, step = _margin(text, start), _step(text)
    is_inline = bool(parts) and "\n" not in text[start : parts[0].start]
    written = json.dumps(value, indent=None if is_inline else step, ensure_ascii=False)
    if name is not None:
        written = f"{json.dumps(name, ensure_ascii=False)}: {written}"
    if is_inline:
        return f"{text[: parts[-1].end]}, {written}{text[parts[-1].end :]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    margin = _margin(text, parts[0].start) if parts else outer + step
    written = written.replace("\n", newline + margin)
    if parts:
        return f"{text[: parts[-1].end]},{newline}{margin}{written}{text[parts[-1].end :]}"
    close = _skipped(text, start + 1)
    return f"{text[: start + 1]}{newline}{margin}{written}{newline}{outer}{text[close:]}"


def without(text: str, place: Place) -> str:
    """The text without a member or an element, its comma and the space around it."""
    *outer, name = place
    start = _find(text, tuple(outer))
    parts = list(_parts(text, start))
    at = next(index for index, part in enumerate(parts) if part.name == name)
    if at > 0:
        return text[: parts[at - 1].end] + text[parts[at].end :]
    if len(parts) > 1:
        return text[: parts[0].start] + text[parts[1].start :]
    close = _skipped(text, parts[0].end)
    return text[: start + 1] + text[close:]


def _find(text: str, place: Place) -> int:
    """Where the value at a place begins."""
    start = _skipped(text, 0)
    for name in place:
        start = next(part.value for part in _parts(text, start) if part.name == name)
    return start


def _parts(text: str, start: int) -> Iterator[_Part]:
    """The members of the object, or the elements of the list, that begins here."""
    is_object = text[start] == "{"
    at, position = _skipped(text, start + 1), 0
    while text[at] not in "]}":
        begin, name = at, position
        found: str | int = name
        if is_object:
            found, at = _DECODER.raw_decode(text, at)
            at = _skipped(text, _skipped(text, at) + 1)  # behind the colon
        _, end = _DECODER.raw_decode(text, at)
        yield _Part(name=found, start=begin, value=at, end=end)
        position += 1
        at = _skipped(text, end)
        if text[at] == ",":
            at = _skipped(text, at + 1)


def _skipped(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None  # it matches nothing, too
    return space.end()


def _margin(text: str, at: int) -> str:
    """What stands before a line's first character."""
    line = text.rfind("\n", 0, at) + 1
    return text[line : _indented(text, line)]


def _indented(text: str, line: int) -> int:
    while line < len(text) and text[line] in " \t":
        line += 1
    return line


def _step(text: str) -> str:
    """By how much this text indents; as most do where it has but one line."""
    first = next(iter(_parts(text, _skipped(text, 0))), None)
    return (_margin(text, first.start) if first else "") or INDENT

"""Sources whose files people bring themselves: an export, or what a program of theirs writes.

They differ in what their files are called, by what these are known, and who reads them; the rest is
here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recollect.importers.fields import mapping
from recollect.importers.items import Found, Origin, Reader, Shape

CONVERSATION_FILES = re.compile(r"conversations(?:[-_ ]?\d+)?\.json|.*\.zip", re.IGNORECASE)
JSON_FILES = re.compile(r".*\.(?:json|jsonl|ndjson)", re.IGNORECASE | re.DOTALL)
LINE_FILES = re.compile(r".*\.(?:jsonl|ndjson)", re.IGNORECASE | re.DOTALL)

Read = Callable[[object, int], Iterator[Found]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Implements `recollect.importers.items.Source`. `files` is what they are called.

    `form` says which form the first entries have, and `opened` who reads a file.
    """

    name: str
    files: re.Pattern[str]
    form: Callable[[Sequence[object]], str | None]
    opened: Callable[[Origin, Mapping[str, Any]], Reader]
    shape: Shape = Shape.ELEMENTS
    names: tuple[str, ...] = ()

    def places(
        self,
        environment: Mapping[str, str],  # noqa: ARG002
        home: Path,  # noqa: ARG002
    ) -> Sequence[Path]:
        return ()  # people say where they have put it

    def is_file(self, path: Path) -> bool:
        return self.files.fullmatch(path.name) is not None

    def probe(self, entries: Sequence[object]) -> str | None:
        return self.form(entries)

    def reader(self, origin: Origin, memo: Mapping[str, Any]) -> Reader:
        return self.opened(origin, memo)


def known_by(
    is_one: Callable[[Mapping[str, Any]], bool], form: str
) -> Callable[[Sequence[object]], str | None]:
    """A form that files have in which any of the first entries is one of its own."""
    return lambda entries: form if any(is_one(mapping(entry)) for entry in entries) else None


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Reads entries each of which says everything itself: there is nothing to remember."""

    read: Read
    memo: Mapping[str, Any] = field(default_factory=dict)


def one_by_one(read: Read) -> Callable[[Origin, Mapping[str, Any]], Reader]:
    """Who reads such entries, whatever the file."""
    return lambda _origin, _memo: OneByOne(read)

"""What a reader finds in other programs' files: messages to keep, and what it could not read.

Frozen and free of behaviour. A reader never raises for what stands in a file: what it cannot use it
says, and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol


class Shape(StrEnum):
    """How a source's files are read."""

    LINES = "lines"  # JSON objects, one in a line; the file may grow at its end
    ELEMENTS = "elements"  # JSON, whole: the elements of its outermost list, one after the other
    TREE = "tree"  # a folder of Markdown files, read together


class Trouble(StrEnum):
    """Why something in a file did not become memory as it stands there."""

    BROKEN = "broken"  # no JSON, cut off, or not text at all
    UNKNOWN = "unknown"  # a type or a shape that this version does not know; kept all the same
    TOO_LARGE = "too large"
    UNREADABLE = "unreadable"  # the file itself: missing rights, a damaged archive


NOT_UTF8 = "bytes that are not UTF-8 were replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The session an item belongs to. `directory` is where the agent worked, as the log says it."""

    key: tuple[str, ...]  # (source, its id there), and nothing that can change
    agent: str
    directory: str | None = None
    parent: tuple[str, ...] | None = None  # the conversation that started this one


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One message. `id` is the same wherever it appears again: it is stored once in a space."""

    id: str
    conversation: Conversation
    message: Mapping[str, Any]  # OpenAI- or Anthropic-style, as the session takes it
    at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A fact that another memory kept. `since` is when it was said as it stands, if that is later.

    `id` is the same wherever it appears again, whatever it says then.
    """

    id: str
    text: str
    at: datetime | None = None
    since: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that is known and not wanted: bookkeeping, a copy of what was read before."""

    reason: str  # few different ones: they are counted by it


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """Something that was not understood; the report counts it by trouble and detail."""

    trouble: Trouble
    detail: str = ""  # a type's name, or what was wrong: short, and never a text of the file
    line: int | None = None


Found = Item | Statement | LeftOut | Odd


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The file that is read, for what only its name says."""

    path: Path
    root: Path  # the folder that was named, or the file itself
    modified: datetime


class Reader(Protocol):
    """Reads one file, entry by entry, in order. What it must remember for the rest is its memo."""

    def read(self, entry: object, line: int) -> Iterator[Found]:
        """What one line or element comes to. Whatever it is: it says so and never raises."""
        ...

    @property
    def memo(self) -> Mapping[str, Any]:
        """Small and JSON: with it another reader goes on behind the entries read so far."""
        ...


class Source(Protocol):
    """A program whose files can be read."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> Shape: ...

    @property
    def names(self) -> Sequence[str]:
        """Under which an object that is a whole file has the list of its elements."""
        ...

    def places(self, environment: Mapping[str, str], home: Path) -> Sequence[Path]:
        """Where the program keeps its files, without looking whether they are there."""
        ...

    def is_file(self, path: Path) -> bool:
        """Whether a file of a folder is one of these, by its path below the folder alone."""
        ...

    def probe(self, entries: Sequence[object]) -> str | None:
        """Which form the first entries have, in a few words; none: not one this source knows."""
        ...

    def reader(self, origin: Origin, memo: Mapping[str, Any]) -> Reader: ...

"""What a reader finds in other programs' files, the sources by name, and the report of an import.

A reader never raises for what stands in a file: it reports what it cannot use, and goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, cast

from recollect.errors import InvalidValue


class FileShape(StrEnum):
    """How a source's files are read."""

    LINES = "lines"  # JSON objects, one in a line; the file may grow at its end
    ELEMENTS = "elements"  # JSON, whole: the elements of its outermost list, one after the other


class Trouble(StrEnum):
    """Why something in a file did not become memory as it stands there."""

    BROKEN = "broken"  # no JSON, cut off, or not text at all
    UNKNOWN = "unknown"  # a type or a shape that this version does not know; kept all the same
    TOO_LARGE = "too large"
    UNREADABLE = "unreadable"  # the file itself: missing rights, a damaged archive


NOT_UTF8 = "bytes that are not UTF-8 were replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSession:
    """The session an item belongs to. `directory` is where the agent worked, as the log says it."""

    key: tuple[str, ...]  # (source, its id there), and nothing that can change
    agent: str
    directory: str | None = None
    parent: tuple[str, ...] | None = None  # the conversation that started this one


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedMessage:
    """One message. `id` is the same wherever it appears again: it is stored once in a space."""

    id: str
    conversation: ImportedSession
    message: Mapping[str, Any]  # OpenAI- or Anthropic-style, as the session takes it
    at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFact:
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


Found = ImportedMessage | ImportedFact | LeftOut | Odd


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The file that is read, for what only its name says."""

    path: Path
    root: Path  # the folder that was named, or the file itself
    modified: datetime


class FileReader(Protocol):
    """Reads one file, entry by entry, in order. What it must remember for the rest is its memo."""

    def read(self, entry: object, line: int) -> Iterator[Found]:
        """What one line or element comes to. Whatever it is: it says so and never raises."""
        ...

    @property
    def memo(self) -> Mapping[str, Any]:
        """Small and JSON: with it another reader goes on behind the entries read so far."""
        ...


def nowhere(environment: Mapping[str, str], home: Path) -> Sequence[Path]:  # noqa: ARG001
    """People say where they have put it."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSource:
    """A program whose files can be read."""

    name: str
    is_file: Callable[[Path], bool]  # whether one of a folder is, by its path below it alone
    # Which form the first entries have, in a few words; none: not one this source knows.
    probe: Callable[[Sequence[object]], str | None]
    reader: Callable[[Origin, Mapping[str, Any]], FileReader]
    shape: FileShape = FileShape.ELEMENTS
    names: Sequence[str] = ()  # under which an object that is a whole file has its elements
    # Where the program keeps its files, without looking whether they are there.
    places: Callable[[Mapping[str, str], Path], Sequence[Path]] = nowhere


PLACES_MAX = 20  # of what was not understood, with the file and the line
DETAILS_MAX = 100  # different ones that are told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class OddPlace:
    """Where something stands that was not understood."""

    place: str
    odd: Odd


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """Counts of one import. `known` came in before, or is a copy of what did."""

    source: str
    files: int = 0
    files_unchanged: int = 0
    bytes_read: int = 0
    records: int = 0
    known: int = 0
    facts: int = 0
    facts_changed: int = 0  # that came in before, and read otherwise now
    documents: int = 0
    sessions: set[str] = field(default_factory=set)  # their keys, of those that something new is in
    forms: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    odd: Counter[tuple[str, str]] = field(default_factory=Counter)  # by trouble and detail
    odd_places: list[OddPlace] = field(default_factory=list)

    @property
    def is_not_understood(self) -> bool:
        """Whether there was something to read, and nothing at all of it was understood."""
        came = self.records or self.facts or self.facts_changed or self.documents
        return bool(self.odd) and not (came or self.known or self.left_out or self.files_unchanged)

    def add_odd(self, place: str, odd: Odd) -> None:
        detail = odd.detail if len(self.odd) < DETAILS_MAX else "and others"
        self.odd[odd.trouble.value, detail] += 1
        if len(self.odd_places) < PLACES_MAX:
            self.odd_places.append(OddPlace(place=place, odd=odd))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProgress:
    """How far an import has got, for who waits for it."""

    files_done: int
    files: int
    bytes_done: int
    bytes_all: int
    records: int


MARKDOWN = "markdown"  # notes become documents, and are no messages

_MODULES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "claude-code": ("claude_code", "ClaudeCode"),
        "codex": ("codex", "Codex"),
        "chatgpt": ("chatgpt", "ChatGPT"),
        "claude": ("claude_export", "ClaudeExport"),
        "openai": ("message_lists", "OpenAIMessages"),
        "anthropic": ("message_lists", "AnthropicMessages"),
        "mem0": ("mem0", "Mem0"),
        "jsonl": ("generic", "GenericJsonl"),
    }
)
NAMES = (*_MODULES, MARKDOWN)


def source_named(name: str) -> ImportSource:
    """A source of messages or facts. InvalidValue: there is none of that name."""
    if name not in _MODULES:
        raise InvalidValue(f"there is no source {name!r}; there are {', '.join(_MODULES)}")
    module, kind = _MODULES[name]
    return cast("ImportSource", getattr(import_module(f"recollect.importers.{module}"), kind)())

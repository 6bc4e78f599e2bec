"""The results of reading other programs' files: items, single fields, sources, and the report.

A reader never raises because of a file's content: it reports what it cannot use, and continues. The
value read from a field can always be stored, or is None.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, cast

from recollect import collection
from recollect.clock import from_micros
from recollect.errors import InvalidValue


class FileShape(StrEnum):
    """How a source's files are read."""

    LINES = "lines"  # JSON objects, one in a line; the file may grow at its end
    ELEMENTS = "elements"  # JSON, whole: the elements of its outermost list, one after the other


class Trouble(StrEnum):
    """Why something in a file was left out or stored in another form."""

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
    """A fact that another memory kept. `since` is the time of its present wording, if later.

    `id` stays the same wherever the fact appears again, even with another wording.
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


def broken(detail: str, line: int | None = None) -> Odd:
    return Odd(trouble=Trouble.BROKEN, detail=detail, line=line)


def too_large(detail: str, line: int | None = None) -> Odd:
    return Odd(trouble=Trouble.TOO_LARGE, detail=detail, line=line)


def unreadable(detail: str) -> Odd:
    return Odd(trouble=Trouble.UNREADABLE, detail=detail)


def not_understood(detail: str, line: int | None = None) -> Odd:
    return Odd(trouble=Trouble.UNKNOWN, detail=detail, line=line)


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

    files_done: int = 0
    files: int = 1
    bytes_done: int = 0
    bytes_all: int = 0
    records: int = 0


MARKDOWN = "markdown"  # notes become documents, and are no messages

_MODULES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "claude-code": ("claude_code", "ClaudeCode"),
        "codex": ("codex", "Codex"),
        "chatgpt": ("exports", "ChatGPT"),
        "claude": ("exports", "ClaudeExport"),
        "openai": ("message_lists", "OpenAIMessages"),
        "anthropic": ("message_lists", "AnthropicMessages"),
        "mem0": ("mem0", "Mem0"),
        "jsonl": ("generic", "GenericJsonl"),
    }
)
NAMES = (*_MODULES, MARKDOWN)
MESSAGE_SOURCES = tuple(name for name in _MODULES if name != "mem0")  # mem0's are facts


def source_named(name: str) -> ImportSource:
    """A source of messages or facts. InvalidValue: there is none of that name."""
    if name not in _MODULES:
        raise InvalidValue(f"there is no source {name!r}; there are {', '.join(_MODULES)}")
    module, kind = _MODULES[name]
    return cast("ImportSource", getattr(import_module(f"recollect.importers.{module}"), kind)())


LABEL_BYTES_MAX = 200
WORDS_CHARS_MAX = 500
TYPE_CHARS_MAX = 60

# What a number of seconds since 1970 cannot be for the next three thousand years.
_MILLIS_FROM = 1e11
_MICROS_FROM = 1e14


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> Sequence[Any]:
    """A JSON list, or an empty one."""
    return value if isinstance(value, list) else ()


def text(value: object) -> str | None:
    """Text that is more than blanks."""
    return value if isinstance(value, str) and value.strip() else None


def words(value: object, chars_max: int = WORDS_CHARS_MAX) -> str | None:
    """A short text, for a title or a name: cut where it is long."""
    said = text(value)
    return None if said is None else collection.storable(said.strip()[:chars_max])


def first(entry: Mapping[str, Any], *names: str) -> Any:
    """What stands under the first of several names that says anything."""
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def label(value: object) -> str | None:
    """An id as a key may hold it: as it is where that goes, else a digest of it."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value) if abs(value) < 2**64 else None
    said = text(value)
    if said is None:
        return None
    is_plain = said.isprintable() and len(said.encode(errors="replace")) <= LABEL_BYTES_MAX
    return said if is_plain and said == collection.storable(said) else digest(said)


def digest(*parts: object) -> str:
    """The same for the same JSON values, wherever and whenever it is reckoned."""
    return hashlib.sha256(spelled(parts).encode()).hexdigest()[:32]


def spelled(value: object) -> str:
    """A JSON value as text, always the same; empty where it is beyond all sense."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return ""


def moment(value: object) -> datetime | None:
    """A time: ISO, or seconds, milli- or microseconds since 1970. Without a zone it is in UTC."""
    if isinstance(value, str):
        return _moment_of_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _moment_of_number(value)


def _moment_of_text(value: str) -> datetime | None:
    try:
        read = datetime.fromisoformat(value)
        read = read if read.utcoffset() is not None else read.replace(tzinfo=UTC)
        return collection.read_time(read)
    except InvalidValue:
        return None
    except ValueError:
        pass
    try:
        return _moment_of_number(float(value))
    except ValueError:
        return None


def _moment_of_number(value: float) -> datetime | None:
    size = abs(value)
    if not size <= sys.float_info.max or math.isnan(value):
        return None
    per_second = 1 if size < _MILLIS_FROM else 1_000 if size < _MICROS_FROM else 1_000_000
    try:
        return from_micros(round(value * (1_000_000 // per_second)))
    except OverflowError:
        return None


def type_name(value: object) -> str:
    """A type's name for a report: short, and nothing but a name."""
    said = value if isinstance(value, str) else type(value).__name__
    is_name = said and len(said) <= TYPE_CHARS_MAX and said.isascii() and said.isprintable()
    return said if is_name and " " not in said else "unnamed"


def unknown(detail: object, line: int | None = None) -> Odd:
    return not_understood(type_name(detail), line)


def metadata_of(**said: object) -> dict[str, Any]:
    """Metadata of what is said at all."""
    return {name: value for name, value in said.items() if value is not None}


def named(pattern: str) -> Callable[[Path], bool]:
    """Whether a file is called like this."""
    names = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda path: names.fullmatch(path.name) is not None


CONVERSATION_FILES = named(r"conversations(?:[-_ ]?\d+)?\.json|[^\n]*\.zip")
JSON_FILES = named(r".*\.(?:json|jsonl|ndjson)")
LINE_FILES = named(r".*\.(?:jsonl|ndjson)")


def known_by(
    is_one: Callable[[Mapping[str, Any]], bool], form: str
) -> Callable[[Sequence[object]], str | None]:
    """A form that files have in which any of the first entries is one of its own."""
    return lambda entries: form if any(is_one(mapping(entry)) for entry in entries) else None


def export(
    name: str, key: str, kind: type, form: str, read: Callable[[object, int], Iterator[Found]]
) -> ImportSource:
    """A program's export, `conversations.json`: entries are known by what they have at `key`."""
    return ImportSource(
        name=name,
        is_file=CONVERSATION_FILES,
        names=("conversations",),
        probe=known_by(lambda said: isinstance(said.get(key), kind), form),
        reader=partial(OneByOne, read),
    )


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Reads entries each of which says everything itself: there is nothing to remember."""

    read: Callable[[object, int], Iterator[Found]]
    origin: Origin
    memo: Mapping[str, Any]

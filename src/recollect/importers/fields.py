"""Single fields of other programs' JSON, read with suspicion: texts, times, ids, messages. Pure.

Whatever stands in a field, what comes back can be stored, or is none.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recollect import collection
from recollect.clock import from_micros
from recollect.errors import InvalidValue
from recollect.importers.items import (
    FileReader,
    Found,
    ImportedMessage,
    ImportedSession,
    Odd,
    Origin,
    Trouble,
)

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
    return Odd(trouble=Trouble.UNKNOWN, detail=type_name(detail), line=line)


def metadata_of(**said: object) -> dict[str, Any]:
    """Metadata of what is said at all."""
    return {name: value for name, value in said.items() if value is not None}


def item_of(
    *,
    item_id: str,
    conversation: ImportedSession,
    message: Mapping[str, Any],
    at: datetime | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Iterator[Found]:
    """An item that a session takes. What is no message is kept as it is, and says nothing."""
    kept = message
    if not _is_message(message):
        kept = {"role": "note", "content": [{"type": "unknown", "value": message}]}
        if not _is_message(kept):
            yield Odd(trouble=Trouble.BROKEN, detail="a message that cannot be kept")
            return
        yield unknown("message")
    yield ImportedMessage(
        id=item_id, conversation=conversation, message=kept, at=at, metadata=metadata or {}
    )


def _is_message(message: Mapping[str, Any]) -> bool:
    try:
        collection.prepare(message, record_bytes_max=sys.maxsize)
    except InvalidValue:
        return False
    return True


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


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Reads entries each of which says everything itself: there is nothing to remember."""

    read: Callable[[object, int], Iterator[Found]]
    memo: Mapping[str, Any] = field(default_factory=dict)


def one_by_one(
    read: Callable[[object, int], Iterator[Found]],
) -> Callable[[Origin, Mapping[str, Any]], FileReader]:
    """Who reads such entries, whatever the file."""
    return lambda _origin, _memo: OneByOne(read)

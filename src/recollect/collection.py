"""Checks and converts what callers pass: keys, names, times and messages. Pure.

What passes can be stored by every backend and is read back unchanged; what does not pass raises a
typed error before anything is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from recollect.config import DEFAULT_SPACE as DEFAULT_SPACE  # and of this module
from recollect.errors import InvalidMessage, InvalidValue, TooLarge
from recollect.messages import Role, ToolCall, as_plain_json, read, read_role, storable_json
from recollect.types.records import NewRecord

KEY_BYTES_MAX = 1024
NAME_CHARS_MAX = 256
METADATA_BYTES_MAX = 65_536

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL holds no NUL, UTF-8 no surrogates
_ESCAPED = str.maketrans({"%": "%25", ":": "%3A"})

_PLAIN_ROLES = {role.value: role for role in Role}

StableKey = str | tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message with what a provider's dict has no place for: its time, a key, metadata."""

    message: Mapping[str, Any]
    at: datetime | str | None = None
    key: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def encode_key(key: StableKey) -> str:
    """A stable key as the store keeps it.

    A tuple's components are escaped, so that ("a:b", "c") and ("a", "b:c") stay two keys; a string
    is taken as already encoded, so "telegram:42:main" is ("telegram", "42", "main").
    """
    match key:
        case str():
            encoded = key
        case tuple() if key and all(_is_key_part(part) for part in key):
            encoded = ":".join(str(part).translate(_ESCAPED) for part in key)
        case _:
            raise InvalidValue("a session key is text, or a tuple of texts and whole numbers")
    return _checked_text(encoded, "a session key", KEY_BYTES_MAX)


def _is_key_part(part: object) -> bool:
    return type(part) is str or (type(part) is int and abs(part) < 2**64)  # a bool is no number


def check_space(name: str) -> str:
    return _checked_text(name, "a space's name", KEY_BYTES_MAX)


def check_label(value: str | None, what: str) -> str | None:
    return None if value is None else _checked_text(value, what, KEY_BYTES_MAX)


def check_id(value: str) -> str:
    """An id to look up: whatever a store can be asked for, known or not."""
    if not isinstance(value, str) or not _is_storable(value):
        raise InvalidValue(f"an id is text without control characters, not {value!r}")
    return value


def check_seq(value: int, what: str = "a seq") -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise InvalidValue(f"{what} is a whole number from 0 on: {value!r}")
    return value


def check_flag(value: bool, what: str) -> bool:
    """For what erases or writes over: 'false' and the like are no yes."""
    if not isinstance(value, bool):
        raise InvalidValue(f"{what} is True or False: {value!r}")
    return value


def check_summary(text: str, bytes_max: int) -> str:
    if not isinstance(text, str):
        raise InvalidValue(f"a summary is text, not {type(text).__name__}")
    _check_size(text, bytes_max, "the summary")
    return storable(text)


def storable(text: str) -> str:
    """Text as every store holds it: what it cannot hold is replaced."""
    return _UNSTORABLE.sub("\ufffd", text)


def read_time(value: datetime | str | None) -> datetime | None:
    """An aware time in UTC; a time without a zone could mean anything and is refused."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise InvalidValue(f"not an ISO time: {value!r}") from error
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise InvalidValue(f"a time needs a zone, as in 2026-05-01T12:00:00+00:00: {value!r}")
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidValue(f"a time must be in the years 1 to 9999, in UTC: {value!r}") from error


def prepare_plain(
    role: str,
    content: str,
    *,
    record_bytes_max: int,
    name: str | None = None,
    at: datetime | str | None = None,
    key: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> NewRecord:
    """A record of plain text, the short way; odd characters send it the long way."""
    if not isinstance(content, str):
        raise InvalidMessage(f"content is text or a list of parts, not {type(content).__name__}")
    if not _is_storable(content):
        message = {"role": role, "content": content} | ({} if name is None else {"name": name})
        given = Message(message=message, at=at, key=key, metadata=metadata or {})
        return prepare(given, record_bytes_max=record_bytes_max)
    _check_size(content, record_bytes_max, "the record")
    return NewRecord(
        role=read_role(role),
        content=content,
        name=_check_name(name),
        said_at=read_time(at),
        append_key=check_label(key, "an append key"),
        metadata=encode_metadata(metadata),
    )


def prepare(given: Message | Mapping[str, Any] | object, *, record_bytes_max: int) -> NewRecord:
    """A record from a message as it is; kept verbatim where text alone would lose something."""
    if type(given) is dict and len(given) == 2 and (short := _plain(given, record_bytes_max)):
        return short
    envelope = given if isinstance(given, Message) else None
    plain, body = as_plain_json(given if envelope is None else envelope.message)
    reading = read(plain)
    _check_size(body, record_bytes_max, "the record")
    text = storable(reading.text)
    is_plain = plain.keys() <= {"role", "content", "name"} and (
        plain["role"] == reading.role.value
        and plain.get("content") == text
        and plain.get("name", "") is not None
    )
    return NewRecord(
        role=reading.role,
        content=text,
        name=_check_name(reading.name),
        body=None if is_plain else body,
        said_at=None if envelope is None else read_time(envelope.at),
        append_key=None if envelope is None else check_label(envelope.key, "an append key"),
        metadata=None if envelope is None else encode_metadata(envelope.metadata),
    )


def _plain(message: dict[str, Any], record_bytes_max: int) -> NewRecord | None:
    """The short way for a message of role and text alone, as most are: it needs no JSON."""
    content, role = message.get("content"), message.get("role")
    if type(content) is not str or type(role) is not str or not _is_storable(content):
        return None
    if role not in _PLAIN_ROLES:
        return None
    _check_size(content, record_bytes_max, "the record")
    return NewRecord(role=_PLAIN_ROLES[role], content=content)


def _is_storable(text: str) -> bool:
    """What PostgreSQL and UTF-8 both hold: no NUL, no lone surrogate."""
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def prepare_many(
    given: Iterable[Message | Mapping[str, Any] | object],
    *,
    record_bytes_max: int,
    batch_records_max: int,
) -> list[NewRecord]:
    """All of them or none: the error names the one that is at fault."""
    if not isinstance(given, Iterable):
        raise InvalidValue(f"messages are a list of them, not {type(given).__name__}")
    messages = list(given)
    if len(messages) > batch_records_max:
        raise TooLarge(
            f"{len(messages):,} records at once; the limit is {batch_records_max:,}: append them "
            "in batches or raise batch_records_max"
        )
    prepared = []
    for position, message in enumerate(messages, start=1):
        try:
            prepared.append(prepare(message, record_bytes_max=record_bytes_max))
        except InvalidValue as error:
            raise type(error)(f"message {position}: {error}; none of them was stored") from error
    return prepared


def _checked_text(text: str, what: str, bytes_max: int) -> str:
    if not isinstance(text, str) or not text:
        raise InvalidValue(f"{what} is text that is not empty, not {text!r}")
    if any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in text):
        raise InvalidValue(f"{what} has no control characters: {text!r}")
    if len(text.encode()) > bytes_max:
        raise TooLarge(f"{what} has at most {bytes_max:,} bytes: {text[:40]!r}…")
    return text


def _check_name(name: str | None) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str) or len(name) > NAME_CHARS_MAX or _UNSTORABLE.search(name):
        raise InvalidValue(f"a speaker's name is text of at most {NAME_CHARS_MAX} characters")
    return name


def _check_size(text: str, bytes_max: int, what: str) -> None:
    # A character has at most four bytes, so short texts need no encoding to be measured.
    if len(text) * 4 > bytes_max:
        size = len(text.encode(errors="surrogatepass"))
        if size > bytes_max:
            raise TooLarge(
                f"{what} has {size:,} bytes; the limit is {bytes_max:,}: split it, keep large "
                "things as attachments by reference, or raise record_bytes_max"
            )


def encode_metadata(metadata: Mapping[str, Any] | None) -> str | None:
    """Return metadata as the store keeps it: JSON, or None if there is none."""
    if not metadata:
        return None
    if not isinstance(metadata, Mapping):
        raise InvalidValue(f"metadata is a mapping, not {type(metadata).__name__}")
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"metadata is not JSON: {error}") from error
    if len(text.encode(errors="surrogatepass")) > METADATA_BYTES_MAX:
        raise TooLarge(f"metadata has at most {METADATA_BYTES_MAX:,} bytes")
    return storable_json(text)


def calls_any(records: Iterable[NewRecord], patterns: str) -> bool:
    """Whether one of these tools is called: names separated by commas, `*` for any part of one."""
    wanted = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
    names = {
        part.name
        for record in records
        if record.body is not None
        for part in read(json.loads(record.body)).parts
        if isinstance(part, ToolCall)
    }
    return any(fnmatchcase(name, pattern) for name in names for pattern in wanted)

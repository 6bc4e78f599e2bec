"""Reads a file of messages, as a JSON array or JSON lines, and says where what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recollect import collection
from recollect.errors import InvalidMessage, InvalidValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One message and where it stands: `line 7` of JSON lines, `message 7` of an array."""

    place: str
    message: Any


def read_entries(data: bytes, name: str) -> list[Entry]:
    """Every message of a file, or an error that names the place; an empty file has none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidMessage(f"{name}: not UTF-8 text (at byte {error.start})") from error
    entries = list(_entries(text, name))
    for entry in entries:
        if not isinstance(entry.message, dict):
            raise InvalidMessage(
                f"{name}, {entry.place}: a message is an object, not {_kind(entry.message)};"
                " nothing was stored"
            )
    return entries


def check_entries(entries: list[Entry], name: str, record_bytes_max: int) -> None:
    """Refuse the file as a whole before any of it is stored, if a message cannot be."""
    for entry in entries:
        try:
            collection.prepare(entry.message, record_bytes_max=record_bytes_max)
        except InvalidValue as error:
            raise type(error)(f"{name}, {entry.place}: {error}; nothing was stored") from error


def _entries(text: str, name: str) -> Iterator[Entry]:
    lines = [line for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith("["):
        content = _parse(text, name, "")
        if not isinstance(content, list):
            raise InvalidMessage(f"{name}: expected an array of messages; nothing was stored")
        for position, message in enumerate(content, start=1):
            yield Entry(place=f"message {position}", message=message)
    elif lines and lines[0].strip() == "{":  # one message, written over several lines
        yield Entry(place="message 1", message=_parse(text, name, ""))
    else:
        # Not splitlines(): a JSON string may hold a line separator that is no end of line.
        for position, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                place = f"line {position}"
                yield Entry(place=place, message=_parse(line, name, f", {place}"))


def _parse(text: str, name: str, place: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = place or f", line {error.lineno}"
        raise InvalidMessage(
            f"{name}{where}: not JSON ({error.msg}, column {error.colno}); nothing was stored"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidMessage(f"{name}{place}: not JSON ({error}); nothing was stored") from error


def _kind(value: object) -> str:
    match value:
        case list():
            return "an array"
        case str():
            return "text"
        case None:
            return "null"
        case _:
            return f"{value!r:.40}"

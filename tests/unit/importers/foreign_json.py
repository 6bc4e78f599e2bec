"""Other programs' JSON for tests: documents with something wrong in them, and what must hold."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from recollect import collection
from recollect.collection import Message
from recollect.errors import InvalidValue
from recollect.importers.items import (
    Found,
    ImportedFact,
    ImportedMessage,
    ImportSource,
    LeftOut,
    Odd,
    Origin,
    broken,
    not_understood,
)
from recollect.importers.running import prepared
from tests.unit.strategies import json_values

ORIGIN = Origin(
    path=Path("exports/chats.json"),
    root=Path("exports"),
    modified=datetime(2026, 5, 1, tzinfo=UTC),
)

_ODDITIES = json_values | st.sampled_from(
    [1e999, float("nan"), 10**400, "\0", "\ud800", "x" * 3000, [[[[[[]]]]]], {"role": {"a": []}}]
)


def _places(value: Any) -> Iterable[tuple[Any, Any]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(inside):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """A document in which a few places say something else, or nothing."""
    changed = {"entry": copy.deepcopy(document)}
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(changed))
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        if isinstance(holder, dict) and holder is not changed and draw(st.booleans()):
            holder.pop(key, None)
        else:
            holder[key] = copy.deepcopy(draw(_ODDITIES))
    return changed["entry"]


def read_all(
    source: ImportSource, entries: Sequence[object], origin: Origin = ORIGIN
) -> list[Found]:
    """What a source makes of entries; each by a new reader, as if every batch had been the last."""
    found: list[Found] = []
    memo: dict[str, Any] = {}
    for number, entry in enumerate(entries, start=1):
        reader = source.reader(origin, memo)
        for each in reader.read(entry, number):
            found += as_stored(each)
        memo = json.loads(json.dumps(dict(reader.memo)))
    check(found)
    return found


def as_stored(found: Found) -> Iterator[Found]:
    """What an import makes of it: what is no message is a note, or nothing."""
    if not isinstance(found, ImportedMessage):
        yield found
        return
    try:
        record, is_message = prepared(found, 2**40)
    except InvalidValue:
        yield broken("a message that cannot be kept")
        return
    if is_message:
        yield found
    else:
        yield not_understood("message")
        yield replace(found, message=json.loads(record.body or "{}"))


def check(found: Iterable[Found]) -> None:
    """Whatever was read can be stored, and is said in few words."""
    for each in found:
        match each:
            case ImportedMessage():
                message = Message(
                    message=each.message, at=each.at, key=each.id, metadata=each.metadata
                )
                collection.prepare(message, record_bytes_max=2**40)
                collection.encode_key(each.conversation.key)
                collection.check_label(each.conversation.agent, "an agent")
            case ImportedFact():
                collection.check_label(each.id, "an id")
                collection.encode_metadata(each.metadata)
                assert each.text.strip()
                assert collection.storable(each.text) == each.text
                assert collection.read_time(each.at) == each.at
            case LeftOut():
                assert each.reason
            case Odd():
                assert len(each.detail) <= 80


def items(found: Iterable[Found]) -> list[ImportedMessage]:
    return [each for each in found if isinstance(each, ImportedMessage)]


def said(found: Iterable[Found]) -> list[tuple[str, str]]:
    """Roles and words of the messages, as a session reads them."""
    records = [collection.prepare(each.message, record_bytes_max=2**40) for each in items(found)]
    return [(record.role.value, record.content) for record in records]


def odd(found: Iterable[Found]) -> list[str]:
    return [each.detail for each in found if isinstance(each, Odd)]


def left_out(found: Iterable[Found]) -> list[str]:
    return [each.reason for each in found if isinstance(each, LeftOut)]

"""Converts rows to values: the one place that knows the column order of the shared fragments."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from recollect.clock import from_micros
from recollect.errors import StoreCorrupt
from recollect.messages import Role, read
from recollect.store.relational.database import Row
from recollect.types.facts import (
    Call,
    Extraction,
    Fact,
    FactChange,
    FactFaults,
    FactTag,
    Review,
    Source,
    Spent,
    Trust,
)
from recollect.types.records import (
    Job,
    JobState,
    Mode,
    Outcome,
    Range,
    Record,
    SessionOutcome,
    SessionProgress,
    SessionState,
)

REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NUL_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # an escape, not an escaped backslash


def storable(text: str) -> str:
    """The text with a replacement for each character that no database can hold."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def storable_json(value: object) -> str:
    """JSON that PostgreSQL can search; one such value would fail every search of its space."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NUL_ESCAPE.sub(rf"\1{REPLACEMENT}", storable(text))


T = TypeVar("T")

_SESSION_COLUMNS = 22
UNSTORABLE = "\ufffd"  # stands in the content column for what no database can hold in text


def _refusing_damage(decode: Callable[[Row], T]) -> Callable[[Row], T]:
    """What no Recollect ever wrote is damage, not a bug of the reader's."""

    def checked(row: Row) -> T:
        try:
            return decode(row)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise StoreCorrupt(
                f"a row holds {error}; the store is damaged, restore a backup"
            ) from error

    return checked


def _converted(kind: type, column: str) -> Callable[[Any], Any] | None:
    """What makes a field's value of a column's, by its type; none: they are the same."""
    name = column.removesuffix(" | None")
    if name in ("int", "str", "bytes"):
        return None
    if name in ("datetime", "bool"):
        return from_micros if name == "datetime" else bool
    if name == "tuple[str, ...]":
        return lambda text: tuple(json.loads(text))
    found: type = vars(sys.modules[kind.__module__])[name]
    assert issubclass(found, Enum), "whatever else there is has a reader of its own"
    return found


def _inner(kind: type) -> list[tuple[int, int, Callable[[Row], Any]]]:
    """The fields of a dataclass that are dataclasses: their place, their columns, their reader."""
    found = []
    for place, each in enumerate(dataclasses.fields(kind)):
        inner = vars(sys.modules[kind.__module__]).get(str(each.type))
        if dataclasses.is_dataclass(inner):
            assert isinstance(inner, type)
            found.append((place, place + len(dataclasses.fields(inner)), reader(inner)))
    return found


def reader(kind: type[T]) -> Callable[[Row], T]:
    """What reads rows that begin with the fields of a dataclass, in their order.

    A field that is a dataclass itself has as many columns as that has fields.
    """
    assert dataclasses.is_dataclass(kind)
    inner = _inner(kind)
    places = {place for place, _, _ in inner}
    fields = dataclasses.fields(kind)
    names = [each.name for each in fields]
    known = [
        (each.name, _converted(kind, str(each.type)))
        for place, each in enumerate(fields)
        if place not in places
    ]
    converted = [(name, convert) for name, convert in known if convert is not None]

    def decode(row: Row) -> T:
        for place, end, nested in inner:
            row = (*row[:place], nested(row[place:end]), *row[end:])
        values = dict(zip(names, row, strict=False))
        for name, convert in converted:
            if values[name] is not None:
                values[name] = convert(values[name])
        return kind(**values)

    return _refusing_damage(decode)


session_state = reader(SessionState)
job = reader(Job)
extraction = reader(Extraction)
fact_change = reader(FactChange)
call = reader(Call)


@_refusing_damage
def record(row: Row) -> Record:
    return Record(
        session_id=row[0],
        seq=row[1],
        role=Role(row[2]),
        content=said(row[3], row[5]),
        name=row[4],
        body=row[5],
        at=from_micros(row[6]),
        created_at=from_micros(row[7]),
        key=row[8],
        metadata={} if row[9] is None else json.loads(row[9]),
    )


def said(content: str, body: str | None) -> str:
    """The words of a record: from the verbatim message where the column cannot hold them."""
    if body is not None and UNSTORABLE in content:
        return read(json.loads(body)).text
    return content


@_refusing_damage
def processed_range(row: Row) -> Range:
    return Range(
        session_id=row[0],
        first_seq=row[1],
        last_seq=row[2],
        outcome=Outcome(row[3]),
        reason=row[4],
        at=from_micros(row[5]),
        pass_number=row[6],
        extractor=row[7],
        attempt=row[8],
        spent=Spent(input_tokens=row[9] or 0, output_tokens=row[10] or 0, cost_micros=row[11]),
        faults=FactFaults(dropped=row[12], mended=row[13]),
    )


def loaded_session(row: Row) -> tuple[SessionState, Extraction | None]:
    """A session beside what it has come to, if it has come to anything."""
    state, found = row[:_SESSION_COLUMNS], row[_SESSION_COLUMNS:]
    return session_state(state), None if found[0] is None else extraction(found)


def source(row: Sequence[Any]) -> Source:
    return Source(session_id=row[0], seq=row[1], seq_to=row[2], quote=row[3])


@_refusing_damage
def fact(row: Row) -> Fact:
    sources = tuple(map(source, json.loads(row[17] or "[]")))
    ends = [end for end in (row[11], row[12]) if end is not None]
    return Fact(
        row[2],
        id=row[0],
        space=row[1],
        source=sources[0].session_id if sources else None,
        sources=sources,
        tags=tuple(json.loads(row[3])),
        metadata=json.loads(row[4]),
        trust=Trust(row[5]),
        topic=row[6],
        extractor=row[7],
        created_at=from_micros(row[8]),
        updated_at=from_micros(row[9]),
        valid_from=from_micros(row[10]),
        valid_to=from_micros(min(ends)) if ends else None,
        superseded_by=row[13],
        usage_count=row[14],
        last_usage=moment(row[15]),
        shown_count=row[16],
        source_count=int(row[18]),
        about=tuple(json.loads(row[19] or "[]")),
        kind=None if row[20] is None else FactTag(row[20]),
        happened_from=moment(row[21]),
        happened_to=moment(row[22]),
        review=None if row[23] is None else Review(row[23]),
    )


def spent(row: Row) -> Spent:
    """Calls, tokens in, tokens out, cost: the order in which every query sums them up."""
    return Spent(
        calls=int(row[0]),
        input_tokens=int(row[1]),
        output_tokens=int(row[2]),
        cost_micros=None if row[3] is None else int(row[3]),
    )


_ENDS = {
    Outcome.EXTRACTED: SessionOutcome.SUCCEEDED,
    Outcome.NO_OUTPUT: SessionOutcome.SUCCEEDED_NO_OUTPUT,
    Outcome.SKIPPED: SessionOutcome.SKIPPED,
    Outcome.EXTERNAL: SessionOutcome.EXTERNAL,
    Outcome.HANDED_OVER: SessionOutcome.HANDED_OVER,
}


@_refusing_damage
def progress(row: Row) -> SessionProgress:
    failures = (row[18] or 0) + (row[19] or 0) + (row[21] or 0)
    outcome = None if row[7] is None else _ENDS[Outcome(row[7])]
    if row[24] is not None:  # with nothing in it since
        outcome = SessionOutcome.FORGOTTEN
    return SessionProgress(
        session_id=row[0],
        space=row[1],
        key=row[2],
        last_activity_at=from_micros(row[3]),
        last_seq=row[4],
        processed_until=row[5],
        mode=Mode(row[6]),
        remembered=bool(row[22]),
        outcome=SessionOutcome.FAILED if failures else outcome,
        attempt=failures or row[8],
        finished_at=moment(row[9] if row[24] is None else row[24]),
        extractor=row[14],
        facts=int(row[15]),
        spent=spent(row[10:14]),
        state=JobState.IDLE if row[16] is None else JobState(row[16]),
        next_try_at=moment(row[17]),
        last_error=row[20],
        handed_over=int(row[23]),
        faults=FactFaults(dropped=int(row[25]), mended=int(row[26])),
    )


def moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)

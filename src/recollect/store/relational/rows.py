"""Rows to values: the one place that knows the order of columns in the shared fragments."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from recollect.clock import from_micros
from recollect.domain import (
    Job,
    JobKind,
    JobState,
    MarkCause,
    Mode,
    Outcome,
    Range,
    Record,
    SessionState,
)
from recollect.errors import StoreCorrupt
from recollect.messages import Role, read
from recollect.store.relational.database import Row

T = TypeVar("T")

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


@_refusing_damage
def session_state(row: Row) -> SessionState:
    return SessionState(
        id=row[0],
        space=row[1],
        key=row[2],
        agent_id=row[3],
        rotation=row[4],
        source=row[5],
        project=row[6],
        parent=row[7],
        ephemeral=bool(row[8]),
        mode=Mode(row[9]),
        remembered=bool(row[10]),
        last_seq=row[11],
        invalidated_at=row[12],
        processed_until=row[13],
        marked_at=moment(row[14]),
        marked_by=None if row[15] is None else MarkCause(row[15]),
        created_at=from_micros(row[16]),
        last_activity_at=from_micros(row[17]),
        ended_at=moment(row[18]),
        ended_by=None if row[19] is None else MarkCause(row[19]),
    )


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
    )


@_refusing_damage
def job(row: Row) -> Job:
    return Job(
        id=row[0],
        space=row[1],
        kind=JobKind(row[2]),
        key=row[3],
        state=JobState(row[4]),
        due_at=moment(row[5]),
        first_due_at=from_micros(row[6]),
        owner=row[7],
        lease_expires_at=moment(row[8]),
        token=row[9],
        failures=row[10],
        takeovers=row[11],
        last_error=row[12],
        last_error_at=moment(row[13]),
        finished_at=moment(row[14]),
    )


def moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)

"""Rows to values, for agents at work."""

from __future__ import annotations

from datetime import datetime

from recollect.clock import from_micros, to_micros
from recollect.store.relational.database import Row
from recollect.store.relational.rows import moment
from recollect.store.relational.text import storable
from recollect.types.agents import (
    AgentState,
    Item,
    ItemKind,
    ItemState,
    Life,
    NewItem,
    Signal,
    Span,
)
from recollect.types.records import JobKind, JobState, KeyRef


def names(ref: KeyRef) -> dict[str, object]:
    return {"space": ref.space, "key_id": ref.key_id}


def key_ref(row: Row) -> KeyRef:
    return KeyRef(key_id=row[0], space=row[1], key=row[2], agent_id=row[3])


def item(row: Row) -> Item:
    about = None if row[4] is None else Span(session_id=row[4], first=row[5], last=row[6])
    return Item(
        id=row[0],
        kind=ItemKind(row[1]),
        text=row[2],
        origin=row[3],
        about=about,
        state=ItemState(row[7]),
        turn_id=row[8],
        attempts=row[9],
        last_error=row[10],
        created_at=from_micros(row[11]),
    )


def posted(new: NewItem, now: datetime) -> Item:
    """What a reader would see of an item that was just stored, without reading it back."""
    return Item(
        id=new.id,
        kind=new.kind,
        text=storable(new.text),
        origin=storable(new.origin),
        about=new.about,
        state=ItemState.QUEUED,
        turn_id=None,
        attempts=0,
        last_error=None,
        created_at=from_micros(to_micros(now)),
    )


def signal(row: Row) -> Signal:
    return Signal(name=row[0], due_at=from_micros(row[1]), body=row[2])


def agent_state(row: Row, signals: list[Signal]) -> AgentState:
    return AgentState(
        ref=KeyRef(space=row[0], key=row[1], agent_id=row[2], key_id=row[3]),
        life=Life(row[4]),
        since=from_micros(row[5]),
        incarnation=row[6],
        session_id=row[7],
        queued=int(row[8]),
        parked=int(row[9]),
        signals=tuple(signals),
        job=JobKind(row[10]),
        job_state=None if row[11] is None else JobState(row[11]),
        next_try_at=moment(row[12]),
        last_error=row[13],
    )

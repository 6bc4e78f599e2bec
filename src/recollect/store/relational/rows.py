"""Rows to values: the one place that knows the order of columns in the shared fragments."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from recollect.clock import from_micros
from recollect.errors import StoreCorrupt
from recollect.messages import Role, read
from recollect.store.relational.database import Row
from recollect.types.facts import (
    Call,
    CallOutcome,
    Extraction,
    Fact,
    FactChange,
    FactEvent,
    Source,
    Spent,
    Trust,
)
from recollect.types.records import (
    Job,
    JobKind,
    JobState,
    MarkCause,
    Mode,
    Outcome,
    Range,
    Record,
    SessionOutcome,
    SessionProgress,
    SessionState,
)

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
        pass_number=row[20],
        forgotten_at=moment(row[21]),
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
        pass_number=row[6],
        extractor=row[7],
        attempt=row[8],
        spent=Spent(input_tokens=row[9] or 0, output_tokens=row[10] or 0, cost_micros=row[11]),
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
        pauses=row[15],
    )


@_refusing_damage
def extraction(row: Row) -> Extraction:
    return Extraction(
        session_id=row[0],
        space=row[1],
        raw_memory=row[2],
        rollout_summary=row[3],
        rollout_slug=row[4],
        extractor=row[5],
        pass_number=row[6],
        upto=row[7],
        source_updated_at=from_micros(row[8]),
        generated_at=from_micros(row[9]),
        usage_count=row[10],
        last_usage=moment(row[11]),
        selected_for_phase2=bool(row[12]),
        selected_for_phase2_source_updated_at=moment(row[13]),
    )


def loaded_session(row: Row) -> tuple[SessionState, Extraction | None]:
    """A session beside what it has come to, if it has come to anything."""
    state, found = row[:_SESSION_COLUMNS], row[_SESSION_COLUMNS:]
    return session_state(state), None if found[0] is None else extraction(found)


@_refusing_damage
def fact(row: Row) -> Fact:
    sources = tuple(
        Source(session_id=session_id, seq=seq, seq_to=seq_to, quote=quote)
        for session_id, seq, seq_to, quote in json.loads(row[17] or "[]")
    )
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
    )


@_refusing_damage
def fact_change(row: Row) -> FactChange:
    return FactChange(
        fact_id=row[0],
        event=FactEvent(row[1]),
        content=row[2],
        at=from_micros(row[3]),
        by=row[4],
        other_id=row[5],
    )


@_refusing_damage
def call(row: Row) -> Call:
    return Call(
        id=row[0],
        space=row[1],
        session_id=row[2],
        purpose=row[3],
        model=row[4],
        attempt=row[5],
        input_tokens=row[6],
        output_tokens=row[7],
        cost_micros=row[8],
        outcome=CallOutcome(row[9]),
        at=from_micros(row[10]),
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
    )


def moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)

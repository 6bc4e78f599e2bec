"""What makes jobs due: marks, changes of a space's memory, and whatever else asks for work.

Owns that a session is marked if and only if its extract job is due, claimed or parked, and that
workers are woken in the transaction that gives them something to do. A session is locked before its
job, and a space's row in `consolidations` before the job that consolidates it.
"""

from __future__ import annotations

from datetime import datetime

from recollect.clock import to_micros
from recollect.store.relational.database import Connection, Params, Row
from recollect.types.records import JobState, MarkCause


def make_due(c: Connection, name: str, *params: Params) -> list[Row]:
    """Run a statement that changes jobs, and wake workers if that made any of them due.

    Every such statement goes through here, and returns the state of each job it changed first.
    """
    found = [row for rows in c.rows_each([(name, each) for each in params]) for row in rows]
    if any(row[0] == JobState.DUE for row in found):
        c.wake()
    return found


def mark(c: Connection, session: Params, seq: int, cause: MarkCause, now: datetime) -> bool:
    """Raise the mark of a session to a record; whether that raised it."""
    raised = {**session, "seq": seq, "cause": cause.value, "now": to_micros(now)}
    row = c.row("invalidate", raised)
    if row is not None:
        mark_made(c, {**session, "marked_at": row[0]})
    return row is not None


def mark_made(c: Connection, *marked: Params) -> None:
    """Make the jobs of sessions due whose marks were raised: `space`, `id` and `marked_at`."""
    make_due(c, "make_extract_due", *marked)


def mark_cleared(c: Connection, session: Params) -> None:
    """Let the job of a session rest that has no mark any more; whoever works on it is stale."""
    c.run("rest_extract", session)


def note_change(c: Connection, space: str, now: datetime, *, is_urgent: bool = False) -> None:
    """Count a change of what a space knows, and have the space consolidated.

    An urgent one does not wait for the end of a cooldown.
    """
    names = {"space": space, "now": to_micros(now)}
    c.run("note_urgent" if is_urgent else "note_change", names)
    make_due(c, "make_consolidation_due", names)

"""The cursor of a session: it moves with the range that says what became of the records."""

from __future__ import annotations

from datetime import datetime

from recollect.clock import to_micros
from recollect.domain import Outcome
from recollect.store.relational.database import Connection


def skip_unprocessed(
    c: Connection, space: str, session_id: str, reason: str, now: datetime
) -> None:
    """Move the cursor to the last record without learning anything, and say why."""
    row = c.row("lock_session", {"space": space, "id": session_id})
    assert row is not None
    last_seq, processed_until = row
    c.run("skip_to_end", {"space": space, "id": session_id})
    record_range(c, space, session_id, processed_until, last_seq, Outcome.SKIPPED, reason, now)


def record_range(
    c: Connection,
    space: str,
    session_id: str,
    old_cursor: int | None,
    new_cursor: int | None,
    outcome: Outcome,
    reason: str | None,
    now: datetime,
) -> None:
    """Write down what lies between two positions of the cursor, if anything does."""
    first, last = (old_cursor or 0) + 1, new_cursor or 0
    if first > last:
        return
    c.run(
        "insert_range",
        {
            "space": space,
            "id": session_id,
            "first_seq": first,
            "last_seq": last,
            "outcome": outcome.value,
            "reason": reason,
            "now": to_micros(now),
        },
    )

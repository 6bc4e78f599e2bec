"""The cursor of a session: it moves with the range that says what became of the records.

Owns invariant 3: every record below the cursor is in exactly one range of every pass. Above it
there are ranges of what was said while nothing was to be learned and is preceded by what is to be:
no claim goes beyond the next of them, and the cursor passes over it.
"""

from __future__ import annotations

from datetime import datetime

from recollect.clock import to_micros
from recollect.store.relational.database import Connection, Params, Row
from recollect.store.relational.jobs import mark_cleared
from recollect.types.facts import Learned
from recollect.types.records import Outcome


def skip_unprocessed(
    c: Connection, space: str, session_id: str, reason: str, now: datetime
) -> None:
    """Move the cursor to the last record without learning anything, and say why."""
    names = {"space": space, "id": session_id}
    row = c.row("lock_session", names)
    assert row is not None
    last_seq, processed_until = row[:2]
    c.run("skip_to_end", names)
    mark_cleared(c, names)
    record_rest(c, names, processed_until, last_seq, Outcome.SKIPPED, reason, now)


def pass_over(c: Connection, session: Params) -> Row | None:
    """Move the cursor over what comes next and has its range already, if there is anything.

    Where it is then, and the mark that is left.
    """
    passed = None
    while (row := c.row("pass_over", session)) is not None:
        passed = row
    if passed is not None and passed[1] is None:
        mark_cleared(c, session)
    return passed


def record_rest(
    c: Connection,
    session: Params,
    old_cursor: int | None,
    new_cursor: int | None,
    outcome: Outcome,
    reason: str | None,
    now: datetime,
) -> None:
    """Write down what lies between two positions, but for what has its range already."""
    done = old_cursor
    for first, last in c.rows("ranges_ahead", {**session, "cursor": old_cursor or 0}):
        record_range(c, session, done, min(first - 1, new_cursor or 0), outcome, reason, now)
        done = last
    record_range(c, session, done, new_cursor, outcome, reason, now)


def record_range(
    c: Connection,
    session: Params,
    old_cursor: int | None,
    new_cursor: int | None,
    outcome: Outcome,
    reason: str | None,
    now: datetime,
    learned: Learned | None = None,
) -> None:
    """Write down what lies between two positions of the cursor, if anything does."""
    first, last = (old_cursor or 0) + 1, new_cursor or 0
    if first > last:
        return
    c.run(
        "insert_range",
        {
            **session,
            "first_seq": first,
            "last_seq": last,
            "outcome": outcome.value,
            "reason": reason,
            "extractor": None if learned is None else learned.extractor,
            "attempt": None if learned is None else learned.attempt,
            "input_tokens": None if learned is None else learned.spent.input_tokens,
            "output_tokens": None if learned is None else learned.spent.output_tokens,
            "cost_micros": None if learned is None else learned.spent.cost_micros,
            "now": to_micros(now),
        },
    )


def has_lost_records(c: Connection, space: str, session_id: str) -> bool:
    """Whether records are gone that something may have been learned from."""
    return c.row("has_lost_records", {"space": space, "id": session_id}) is not None


def begin_pass(
    c: Connection, space: str, session_id: str, upto: int, learned: Learned, now: datetime
) -> None:
    """Start a session's next pass with ranges for all that the pass before had.

    What was skipped stays skipped, for the same reason; the rest is what the new pass makes of it.
    """
    names = {"space": space, "id": session_id}
    skipped = [
        (row[1], row[2], row[4])
        for row in c.rows("list_ranges", names)
        if row[3] == Outcome.SKIPPED
    ]
    c.run("next_pass", {**names, "pass": learned.pass_number})
    outcome = Outcome.NO_OUTPUT if learned.draft.is_empty else Outcome.EXTRACTED
    cursor = 0
    for first, last, reason in skipped:
        record_range(c, names, cursor, min(first - 1, upto), outcome, None, now, learned)
        record_range(c, names, first - 1, last, Outcome.SKIPPED, reason, now)
        cursor = last
    record_range(c, names, cursor, upto, outcome, None, now, learned)

"""Makes jobs due: on marks, on changes of a space's memory, and on other requests for work.

Owns that a session is marked if and only if its extract job is due, claimed or parked, and that
workers are woken in the transaction that gives them something to do. A session is locked before its
job, and a space's row in `consolidations` before the job that consolidates it.
"""

from __future__ import annotations

from datetime import datetime

from recollect.clock import to_micros
from recollect.store.relational.database import Connection, Params, Row
from recollect.types.facts import Learned
from recollect.types.records import JobState, MarkCause, Outcome


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
        mark_made(c, {**session, "marked_at": row[0]}, in_order=cause is MarkCause.IMPORT)
    if c.row("request_marked", raised) is not None:
        make_due(c, "end_pauses", {**session, "any_key": False})
    return row is not None


def mark_made(c: Connection, *marked: Params, in_order: bool = False) -> None:
    """Make the jobs of sessions due whose marks were raised: `space`, `id` and `marked_at`."""
    make_due(c, "make_extract_due", *({**each, "in_order": in_order} for each in marked))


def mark_cleared(c: Connection, session: Params) -> None:
    """Set the job of a session without a mark to idle; a run at work on it is stale."""
    c.run("rest_extract", session)


def note_change(c: Connection, space: str, now: datetime, *, is_urgent: bool = False) -> None:
    """Count a change of what a space knows, and have the space consolidated.

    An urgent one does not wait for the end of a cooldown.
    """
    names = {"space": space, "now": to_micros(now)}
    c.run("note_urgent" if is_urgent else "note_change", names)
    make_due(c, "make_consolidation_due", names)


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
            "facts_dropped": 0 if learned is None else learned.draft.faults.dropped,
            "facts_mended": 0 if learned is None else learned.draft.faults.mended,
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

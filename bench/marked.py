"""Sessions that are marked again and again with raw SQL, as an append over the threshold would."""

from __future__ import annotations

from typing import Any

import apsw

from bench.bare import NOW
from bench.stores import add_clean_sessions


class MarkedSessions:
    """A number of clean sessions; `mark_again` gives each a new record and marks it."""

    def __init__(self, connection: Any, sessions: int) -> None:
        # Any: apsw's connection or psycopg's, which is an extra.
        self._connection = connection
        if sessions:
            add_clean_sessions(connection, series(connection, sessions), sessions)

    def mark_again(self, sessions: int | None = None) -> None:
        """Mark all of them, or as many as asked for."""
        which = "id LIKE 'clean-%'"
        if sessions is not None:
            which = f"id IN (SELECT 'clean-' || i FROM {series(self._connection, sessions)})"
        for statement in _MARK_AGAIN:
            filled = statement.replace("{now}", str(NOW)).replace("{which}", which)
            self._connection.execute(filled)

    def add_idle_jobs(self) -> None:
        """The jobs these sessions had, which stay for ever."""
        self._connection.execute(_IDLE_JOBS.replace("{now}", str(NOW)))

    def close(self) -> None:
        self._connection.close()


def series(connection: Any, count: int) -> str:
    """A query for 1 … count as `i`."""
    if isinstance(connection, apsw.Connection):
        return (
            f"(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
            " SELECT i FROM n)"
        )
    return f"generate_series(1, {count}) AS i"


_MARK_AGAIN = (
    """
    INSERT INTO session_history (
        space, session_id, seq, key_id, role, content, said_at, created_at)
    SELECT space, id, last_seq + 1, key_id, 'user', 'Good morning.', {now}, {now}
    FROM sessions WHERE {which}
    """,
    """
    UPDATE sessions SET last_seq = last_seq + 1, invalidated_at = last_seq + 1,
        marked_at = {now}, marked_by = 'threshold'
    WHERE {which}
    """,
    """
    INSERT INTO jobs (space, kind, key, state, first_due_at)
    SELECT space, 'extract', id, 'due', marked_at FROM sessions WHERE {which}
    ON CONFLICT (space, kind, key) DO UPDATE SET state = 'due', due_at = NULL
    WHERE jobs.state IN ('idle', 'parked')
    """,
)
_IDLE_JOBS = """
    INSERT INTO jobs (space, kind, key, state, first_due_at, token, finished_at)
    SELECT space, 'extract', id, 'idle', {now}, 2, {now} FROM sessions WHERE id LIKE 'clean-%'
"""

"""What a store holds, read past its interface: the rows that the checkers compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import apsw

from recollect.store.protocol import Store
from recollect.store.relational import RelationalStore
from recollect.store.sqlite import SqliteDatabase

# Children first: emptied in this order no reference is left hanging.
TABLES = (
    "jobs",
    "session_ranges",
    "retained_records",
    "summaries",
    "session_history",
    "sessions",
    "session_keys",
    "agents",
    "spaces",
)


class SessionRow(NamedTuple):
    """The columns of a session that the invariants speak of."""

    id: str
    space: str
    key_id: int
    remembered: int
    last_seq: int
    cursor: int | None
    mark: int | None
    marked_at: int | None
    marked_by: str | None
    turns: int
    ended_at: int | None
    last_activity_at: int

    @property
    def done(self) -> int:
        return self.cursor or 0


class JobRow(NamedTuple):
    """A job as it stands."""

    id: int
    space: str
    kind: str
    key: str
    state: str
    due_at: int | None
    first_due_at: int
    owner: str | None
    expires_at: int | None
    token: int
    failures: int
    takeovers: int
    tended_at: int | None  # when the store's own work was last done, or failed


_SESSIONS = (
    "SELECT id, space, key_id, remembered, last_seq, processed_until, invalidated_at, marked_at,"
    " marked_by, unprocessed_turns, ended_at, last_activity_at FROM sessions ORDER BY rowid"
)
_JOBS = (
    "SELECT id, space, kind, key, state, due_at, first_due_at, owner, lease_expires_at, token,"
    " failures, takeovers, CASE WHEN space = '' THEN"
    " max(COALESCE(finished_at, 0), COALESCE(last_error_at, 0)) END FROM jobs ORDER BY id"
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Sessions and jobs after some call."""

    sessions: dict[str, SessionRow]
    jobs: dict[int, JobRow]
    job_of: dict[str, JobRow]  # the extract job of a session


EMPTY = Snapshot({}, {}, {})


def connection_of(store: Store) -> apsw.Connection:
    """The connection behind an in-memory store; only a checker may go round the interface."""
    database = cast(SqliteDatabase, cast(RelationalStore, store)._database)
    return database._writer


def read(connection: apsw.Connection) -> Snapshot:
    sessions = [SessionRow(*row) for row in connection.execute(_SESSIONS)]
    jobs = [JobRow(*row) for row in connection.execute(_JOBS)]
    return Snapshot(
        {row.id: row for row in sessions},
        {row.id: row for row in jobs},
        {row.key: row for row in jobs if row.kind == "extract"},
    )


def dump(connection: apsw.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, past the cache of statements, which belongs to the store."""
    return {
        table: list(connection.execute(f"SELECT * FROM {table}", can_cache=False))
        for table in TABLES
    }


def ranges_of(connection: apsw.Connection, session_id: str) -> list[tuple[int, int, str]]:
    found = connection.execute(
        "SELECT first_seq, last_seq, outcome FROM session_ranges WHERE session_id = ?"
        " ORDER BY first_seq",
        (session_id,),
    )
    return [(first, last, outcome) for first, last, outcome in found]


def empty(connection: apsw.Connection) -> None:
    """Back to a store in which nothing has happened, which is quicker than opening a new one."""
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}", can_cache=False)
    connection.execute("DELETE FROM sqlite_sequence WHERE name IN ('jobs', 'session_history')")
    connection.execute("UPDATE indexed_records SET upto = 0")

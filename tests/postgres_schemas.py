"""Stores on PostgreSQL that tests use one after the other.

To make a schema takes longer than most tests, and a server that has dropped thousands is slow. A
test gives its schema back; the next one gets it with every row gone. What a test has changed in
the schema itself, or still holds a lock on, nobody gets again.
"""

from __future__ import annotations

import secrets

import psycopg
from psycopg.sql import SQL, Identifier

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store.opening import open_store
from tests.postgres_server import url_with

# Everything a test could change but rows, each with the transaction that last did: so many lines
# that a schema compares as one text.
_SHAPE = """
WITH classes AS (
    SELECT oid, xmin FROM pg_class WHERE relnamespace = (%(name)s::text)::regnamespace
)
SELECT md5(string_agg(line, chr(10) ORDER BY line))
FROM (
    SELECT concat_ws(' ', oid, xmin) AS line FROM classes
    UNION ALL
    SELECT concat_ws(' ', attrelid, attnum, xmin) FROM pg_attribute
    WHERE attrelid IN (SELECT oid FROM classes)
    UNION ALL
    SELECT concat_ws(' ', oid, xmin) FROM pg_attrdef WHERE adrelid IN (SELECT oid FROM classes)
    UNION ALL
    SELECT concat_ws(' ', indexrelid, xmin) FROM pg_index
    WHERE indrelid IN (SELECT oid FROM classes)
    UNION ALL
    SELECT concat_ws(' ', oid, xmin) FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM classes)
    UNION ALL
    SELECT concat_ws(' ', oid, xmin) FROM pg_constraint
    WHERE connamespace = (%(name)s::text)::regnamespace
    UNION ALL
    SELECT concat_ws(' ', oid, xmin) FROM pg_policy WHERE polrelid IN (SELECT oid FROM classes)
    UNION ALL
    SELECT concat_ws(' ', oid, xmin) FROM pg_proc
    WHERE pronamespace = (%(name)s::text)::regnamespace
    UNION ALL
    SELECT concat_ws(' ', oid, xmin) FROM pg_namespace WHERE nspname = %(name)s::text
) lines
"""
_TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    AND relname <> 'schema_version'
"""
_SEQUENCES = """
SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'S'
"""
_HELD = """
SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE c.relnamespace = %s::regnamespace AND l.pid <> pg_backend_pid()
"""
LOCK_WAIT = "10s"


class Schemas:
    """The schemas of one test process, lent to its tests one after the other."""

    def __init__(self, url: str, **options: str) -> None:
        self._url = url
        self._options = options
        self._connection = psycopg.connect(url, autocommit=True)
        # Rows go without their triggers and foreign keys: all of them go.
        self._connection.execute("SET session_replication_role = 'replica'")
        self._made: dict[str, tuple[object, ...]] = {}
        self._free: list[str] = []

    def lend(self) -> str:
        """The name of a schema with a store that holds nothing."""
        if self._free:
            return self._free.pop()
        name = f"lent_{secrets.token_hex(8)}"
        url = url_with(self._url, schema=name, **self._options)
        open_store(url, Settings(), ManualClock()).close()
        self._made[name] = self._shape(name)
        return name

    def take_back(self, name: str, *, wait: str = LOCK_WAIT) -> None:
        """Empty it for the next test, or drop it, or fail if that cannot be done within `wait`."""
        self._connection.execute(SQL("SET lock_timeout = {}").format(wait))
        try:
            reusable = self._is_as_made(name)
            if reusable:
                self._empty(name)
        except psycopg.Error:  # dropped, renamed, or locked by what a failed test left running
            reusable = False
        if reusable:
            self._free.append(name)
        else:
            self._drop(name)

    def close(self) -> None:
        for name in list(self._made):
            self._drop(name)
        self._connection.close()

    def _is_as_made(self, name: str) -> bool:
        held = self._connection.execute(_HELD, (name,)).fetchone()
        return held == (0,) and self._shape(name) == self._made[name]

    def _shape(self, name: str) -> tuple[object, ...]:
        shape = self._connection.execute(_SHAPE, {"name": name}).fetchone()
        versions = SQL("SELECT * FROM {} ORDER BY 1").format(Identifier(name, "schema_version"))
        return shape, self._connection.execute(versions).fetchall()

    def _empty(self, name: str) -> None:
        """All in one message: a statement at a time takes longer on the way than on the server."""
        tables = self._connection.execute(_TABLES, (name,)).fetchall()
        sequences = self._connection.execute(_SEQUENCES, (name,)).fetchall()
        emptied = [SQL("DELETE FROM {}").format(Identifier(name, table)) for (table,) in tables]
        emptied += [
            SQL("SELECT setval({}, 1, false)").format(Identifier(name, each).as_string())
            for (each,) in sequences
        ]
        self._connection.execute(SQL("; ").join(emptied))

    def _drop(self, name: str) -> None:
        self._made.pop(name, None)
        self._connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))

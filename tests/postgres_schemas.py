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

# Everything a test could change but rows: one line each, so that a schema compares as one text.
_SHAPE = """
SELECT md5(string_agg(line, chr(10) ORDER BY line))
FROM (
    SELECT concat_ws(' ', c.relname, c.relkind, c.relacl, c.relrowsecurity, c.relforcerowsecurity,
        c.relowner, c.reloptions, a.attname, a.atttypid::regtype, a.attnotnull, a.attacl,
        pg_get_expr(d.adbin, d.adrelid)) AS line
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = (%(name)s::text)::regnamespace
    UNION ALL
    SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relnamespace = (%(name)s::text)::regnamespace
    UNION ALL
    SELECT concat_ws(' ', t.tgenabled, pg_get_triggerdef(t.oid))
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = (%(name)s::text)::regnamespace
    UNION ALL
    SELECT concat_ws(' ', conname, pg_get_constraintdef(oid)) FROM pg_constraint
    WHERE connamespace = (%(name)s::text)::regnamespace
    UNION ALL
    SELECT concat_ws(' ', p.polname, p.polcmd, p.polroles, pg_get_expr(p.polqual, p.polrelid),
        pg_get_expr(p.polwithcheck, p.polrelid))
    FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
    WHERE c.relnamespace = (%(name)s::text)::regnamespace
    UNION ALL
    SELECT concat_ws(' ', proacl, pg_get_functiondef(oid)) FROM pg_proc
    WHERE pronamespace = (%(name)s::text)::regnamespace AND prokind <> 'a'
    UNION ALL
    SELECT concat_ws(' ', nspowner, nspacl) FROM pg_namespace WHERE nspname = %(name)s::text
) lines
"""
_TABLES = """
SELECT relname FROM pg_class
WHERE relnamespace = %s::regnamespace AND relkind = 'r' AND relname <> 'schema_version'
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

    def __init__(self, url: str) -> None:
        self._url = url
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
        open_store(url_with(self._url, schema=name), Settings(), ManualClock()).close()
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
        tables = self._connection.execute(_TABLES, (name,)).fetchall()
        sequences = self._connection.execute(_SEQUENCES, (name,)).fetchall()
        with self._connection.pipeline(), self._connection.transaction():
            for (table,) in tables:
                self._connection.execute(SQL("DELETE FROM {}").format(Identifier(name, table)))
            for (sequence,) in sequences:
                self._connection.execute(
                    SQL("ALTER SEQUENCE {} RESTART").format(Identifier(name, sequence))
                )

    def _drop(self, name: str) -> None:
        self._made.pop(name, None)
        self._connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))

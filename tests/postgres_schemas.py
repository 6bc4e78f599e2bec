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
from tests.kept_connections import KEPT, kept_name
from tests.postgres_server import url_with

# Everything a test could change but rows: of each catalogue how many lines there are, and the last
# transaction that wrote one. A change leaves a line of its own, and what is dropped is one less.
_SHAPE = """
WITH classes AS MATERIALIZED (
    SELECT oid, xmin FROM pg_class WHERE relnamespace = (%(name)s::text)::regnamespace
), ids AS MATERIALIZED (SELECT array_agg(oid) AS oids FROM classes)
SELECT count(*), max(xmin::text::bigint) FROM classes
UNION ALL
SELECT count(*), max(xmin::text::bigint) FROM pg_attribute
WHERE attrelid = ANY ((SELECT oids FROM ids)::oid[])
UNION ALL
SELECT count(*), max(xmin::text::bigint) FROM pg_attrdef
WHERE adrelid = ANY ((SELECT oids FROM ids)::oid[])
UNION ALL
SELECT count(*), max(xmin::text::bigint) FROM pg_index
WHERE indrelid = ANY ((SELECT oids FROM ids)::oid[])
UNION ALL
SELECT count(*), max(xmin::text::bigint) FROM pg_trigger
WHERE tgrelid = ANY ((SELECT oids FROM ids)::oid[])
UNION ALL
SELECT count(*), max(xmin::text::bigint) FROM pg_constraint
WHERE connamespace = (%(name)s::text)::regnamespace
UNION ALL
SELECT count(*), max(xmin::text::bigint) FROM pg_policy
WHERE polrelid = ANY ((SELECT oids FROM ids)::oid[])
UNION ALL
SELECT count(*), max(xmin::text::bigint) FROM pg_proc
WHERE pronamespace = (%(name)s::text)::regnamespace
UNION ALL
SELECT count(*), max(xmin::text::bigint) FROM pg_namespace WHERE nspname = %(name)s::text
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
        self._prepare_to_empty(name)
        return name

    def url(self, name: str) -> str:
        """The URL of a store in it, whose connections are kept from one test to the next."""
        options = self._options | {"application_name": kept_name(name), "schema": name}
        return url_with(self._url, **options)

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
        shape = self._connection.execute(_SHAPE, {"name": name}).fetchall()
        versions = SQL("SELECT * FROM {} ORDER BY 1").format(Identifier(name, "schema_version"))
        return shape, self._connection.execute(versions).fetchall()

    def _empty(self, name: str) -> None:
        self._connection.execute(SQL("SELECT {}()").format(_emptying(name)))

    def _prepare_to_empty(self, name: str) -> None:
        """A function of this session alone: the server plans it once, and it is one message."""
        tables = self._connection.execute(_TABLES, (name,)).fetchall()
        sequences = self._connection.execute(_SEQUENCES, (name,)).fetchall()
        steps = [SQL("DELETE FROM {};").format(Identifier(name, table)) for (table,) in tables]
        steps += [
            SQL("PERFORM setval({}, 1, false);").format(Identifier(name, each).as_string())
            for (each,) in sequences
        ]
        body = SQL("BEGIN {} END").format(SQL(" ").join(steps)).as_string()
        making = SQL("CREATE FUNCTION {}() RETURNS void LANGUAGE plpgsql AS {}")
        self._connection.execute(making.format(_emptying(name), body))

    def _drop(self, name: str) -> None:
        self._made.pop(name, None)
        KEPT.end(kept_name(name))
        self._connection.execute(SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(name)))


def _emptying(name: str) -> Identifier:
    return Identifier("pg_temp", f"empty_{name}")

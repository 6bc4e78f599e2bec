"""Compares vectors in PostgreSQL, where the extension pgvector is installed or can be created.

The bytes in `vectors` are authoritative. `embeddings` repeats them in a type that the server can
compare: it is created when vectors are first used, kept in step row by row, and can be rebuilt at
any time.
"""

from __future__ import annotations

import hashlib
import logging
import math
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg import sql

from recollect.store.relational.database import Connection, Database
from recollect.store.sql import queries
from recollect.types.recall import EntryKind, NewVector

QUERIES = {name: text.encode() for name, text in queries("pgvector").items()}
USUAL_ROWS = 256  # that are compared with each other
CAUGHT_UP_ROWS = 500  # at a time, of vectors that were kept before there was an extension
INDEXED_ROWS = 20_000  # below, comparing every vector of a space takes some milliseconds
INDEXED_DIMENSIONS_MAX = 2000  # that pgvector puts into an index
CANDIDATES_MIN = 200  # of an index, from which the nearest are chosen: some of a hundred are missed
ITERATING_SINCE = (0, 8)  # the version from which on an index goes on until there are enough
INDEX_PREFIX = "idx_near_"
_log = logging.getLogger(__name__)

_Pg = psycopg.Connection[Any]
Connect = Callable[[], AbstractContextManager[_Pg]]
# Nobody's trouble: the extension cannot be had, and vectors are compared in memory as without it.
_REFUSALS = (
    pg.InsufficientPrivilege,
    pg.FeatureNotSupported,
    pg.UndefinedFile,
    pg.ReadOnlySqlTransaction,  # a replica, to which the table has not come yet
)

_MAKE_TABLE = """
DROP TABLE IF EXISTS embeddings;
CREATE TABLE embeddings (
    space TEXT COLLATE "C" NOT NULL,
    key BIGINT NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    entry_key BIGINT NOT NULL,
    embedding {extension}.vector NOT NULL,
    PRIMARY KEY (space, key),
    FOREIGN KEY (space, key) REFERENCES vectors (space, key) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
-- In the row, as long as a page has room for it: comparing all of them reads nothing else.
ALTER TABLE embeddings ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX idx_embeddings_space ON embeddings (space, model);
-- Planned each time for the very space and model, of which alone an index of the nearest is made.
-- Vectors are of length one, so that their product is their likeness.
CREATE OR REPLACE FUNCTION recollect_nearest(
    space TEXT, model TEXT, kinds TEXT[], numbers TEXT, dimensions INT, count BIGINT
) RETURNS TABLE (kind TEXT, entry_key BIGINT) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT e.kind, e.entry_key FROM embeddings e'
        ' WHERE e.space = %L AND e.model = %L AND e.kind = ANY($1)'
        ' AND vector_dims(e.embedding) = %s'
        ' ORDER BY CAST(e.embedding AS vector(%s)) <#> (SELECT CAST($2 AS vector(%s))) LIMIT $3',
        space, model, dimensions, dimensions, dimensions) USING kinds, numbers, count;
END
$$;
ALTER TABLE embeddings ENABLE ROW LEVEL SECURITY;
ALTER TABLE embeddings FORCE ROW LEVEL SECURITY;
CREATE POLICY one_space ON embeddings USING (
    space = current_setting('recollect.space', true)
    OR current_setting('recollect.operator', true) = 'on');
"""

_ADD_TO_PATH = """
SELECT set_config('search_path',
    concat_ws(', ', nullif(current_setting('search_path'), ''), quote_ident(%s)), true)
"""

_MAKE_INDEX = """
CREATE INDEX CONCURRENTLY {name} ON embeddings
    USING hnsw ((CAST(embedding AS {type}({dimensions}))) {class})
    WHERE space = {space} AND model = {model} AND {dims}(embedding) = {dimensions}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """The schema it is in, what it can do, and of what vectors were taken up when it was found."""

    name: str
    has_indexes: bool
    caught_up: frozenset[tuple[str, str, int]] = frozenset()


class PgVectorIndex:
    """Implements `VectorIndex`."""

    def __init__(self, database: Database, extension: Extension, connect: Connect) -> None:
        self._database = database
        self._extension = extension
        self._connect = connect
        self._grown: set[tuple[str, str, int]] = set(extension.caught_up)

    def add(self, c: Connection, space: str, model: str, vectors: Sequence[NewVector]) -> None:
        given = [
            {
                "space": space,
                "model": model,
                "kind": each.entry.kind.value,
                "entry_key": each.entry.key,
                "vector": each.vector,
                "numbers": numbers,
            }
            for each in vectors
            if (numbers := _numbers(each.vector)) is not None
        ]
        if given:
            self._see(c)
            c.run_many("put_embedding", given)
            self._grown |= {(space, model, len(each.vector) // 4) for each in vectors}

    def additions(self, space: str) -> int:
        row = self._database.read(space, lambda c: c.row("vector_additions", {"space": space}))
        return 0 if row is None else int(row[0])

    def nearest(
        self, space: str, model: str, vector: bytes, kinds: Collection[EntryKind], limit: int
    ) -> list[tuple[EntryKind, int]]:
        names = _asked(space, model, vector) | {"kinds": sorted(kinds), "limit": limit}
        if not any(vector):
            return []  # it resembles nothing

        def job(c: Connection) -> list[tuple[EntryKind, int]]:
            self._see(c)
            if self._extension.has_indexes:
                c.run("search_far", {"candidates": max(CANDIDATES_MIN, 2 * limit)})
            return [(EntryKind(row[0]), row[1]) for row in c.rows("nearest_embeddings", names)]

        return self._database.read(space, job)

    def similarities(
        self, space: str, model: str, vector: bytes, entries: Collection[tuple[EntryKind, int]]
    ) -> Mapping[tuple[EntryKind, int], float]:
        wanted = sorted(entries)
        names = _asked(space, model, vector) | {
            "kinds": [kind.value for kind, _ in wanted],
            "entry_keys": [key for _, key in wanted],
        }
        if not any(vector) or not wanted:
            return {}

        def job(c: Connection) -> dict[tuple[EntryKind, int], float]:
            c.run("steer", {})
            self._see(c)
            rows = c.rows("compared_embeddings", names)
            return {(EntryKind(kind), key): float(value) for kind, key, value in rows}

        return self._database.read(space, job)

    def usual(self, space: str, model: str, dimensions: int) -> tuple[float, float]:
        names = {"space": space, "model": model, "dimensions": dimensions, "rows": USUAL_ROWS}

        def job(c: Connection) -> tuple[float, float]:
            self._see(c)
            row = c.row("usual_likeness", names)
            mean, spread = (None, None) if row is None else row
            return float(mean or 0.0), float(spread or 0.0)

        return self._database.read(space, job)

    def tend(self, model: str) -> None:
        """Make an index of the nearest for every space that has grown large, and drop old ones.

        It takes minutes, and nobody waits for it: until then all vectors are compared.
        """
        grown, self._grown = self._grown, set()
        large = [each for each in sorted(grown) if each[1] == model and self._is_large(*each)]
        if not self._extension.has_indexes or not grown:
            return
        with self._connect() as connection:
            try:
                for space, _, dimensions in large:
                    make_index(connection, self._extension.name, space, model, dimensions)
                drop_indexes(connection, model)
            except _REFUSALS as error:
                _log.info("all vectors of a space are compared, without an index: %s", error)

    def _is_large(self, space: str, model: str, dimensions: int) -> bool:
        names = {"space": space, "model": model, "dimensions": dimensions, "limit": INDEXED_ROWS}

        def job(c: Connection) -> bool:
            self._see(c)
            row = c.row("count_embeddings", names)
            return row is not None and row[0] >= INDEXED_ROWS

        return dimensions <= INDEXED_DIMENSIONS_MAX and self._database.read(space, job)

    def _see(self, c: Connection) -> None:
        c.run("see_vectors", {"extension": self._extension.name})


def make_index(connection: _Pg, extension: str, space: str, model: str, dimensions: int) -> None:
    """An index of one space, unless it is there or somebody is making it.

    Of one: in an index of several, those of others would be passed over on the way, and how long
    that takes would tell where they stand.
    """
    digest = hashlib.sha256(f"{space}\0{model}\0{dimensions}".encode()).hexdigest()[:24]
    name = f"{INDEX_PREFIX}{digest}"
    row = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s), 1)", (name,)).fetchone()
    if row is None or not row[0]:
        return
    made = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
    found = connection.execute(made, (name,)).fetchone()
    if found is not None and found[0]:
        return
    names = {
        "name": sql.Identifier(name),
        "type": sql.SQL("{}.vector").format(sql.Identifier(extension)),
        "class": sql.Identifier(extension, "vector_ip_ops"),
        "dims": sql.Identifier(extension, "vector_dims"),
        "dimensions": sql.Literal(dimensions),
        "space": sql.Literal(space),
        "model": sql.Literal(model),
    }
    for statement in (
        "DROP INDEX CONCURRENTLY IF EXISTS {name}",  # one that was begun and not finished
        "SET maintenance_work_mem = '256MB'",
        _MAKE_INDEX,
        "COMMENT ON INDEX {name} IS {model}",
    ):
        connection.execute(sql.SQL(statement).format(**names))


def drop_indexes(connection: _Pg, model: str) -> None:
    """Those of models that are not used any more."""
    old = connection.execute(
        "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " WHERE i.indrelid = to_regclass('embeddings') AND starts_with(c.relname, %s)"
        " AND obj_description(c.oid, 'pg_class') <> %s",
        (INDEX_PREFIX, model),
    ).fetchall()
    for (name,) in old:
        dropped = sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name))
        connection.execute(dropped)


def make_ready(connection: _Pg, schema: str, grant: Callable[[_Pg, str], None]) -> Extension | None:
    """Create the table for the extension and return the extension; None where there is none.

    Runs with the rights of the user who opened the store, outside a transaction. Several processes
    may try at once.
    """
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('recollect'), 0)")
            extension = _extension(connection, schema)
            if extension is None:
                return None
            _make_table(connection, schema, extension.name, grant)
    except _REFUSALS as error:
        _log.info("vectors are compared in memory, because pgvector cannot be used: %s", error)
        return None
    try:
        caught_up = _catch_up(connection, schema, extension.name)
    except pg.ReadOnlySqlTransaction:  # a replica: who writes to the primary does it there
        return extension
    return replace(extension, caught_up=caught_up)


def _extension(connection: _Pg, schema: str) -> Extension | None:
    where = (
        "SELECT n.nspname, e.extversion FROM pg_extension e"
        " JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
    )
    found = connection.execute(where).fetchone()
    if found is None:
        available = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        if connection.execute(available).fetchone() is None:
            _log.info("vectors are compared in memory: this server has no pgvector")
            return None
        # Where it would be if made by hand: a database has one for all of its stores, and it must
        # not go with the schema of one. In ours only where that path leads nowhere.
        connection.execute("SET LOCAL search_path TO DEFAULT")
        connection.execute(_ADD_TO_PATH, (schema,))
        connection.execute("CREATE EXTENSION vector")
        found = connection.execute(where).fetchone()
    if found is None:
        return None
    version = tuple(int(part) for part in str(found[1]).split(".")[:2])
    return Extension(name=str(found[0]), has_indexes=version >= ITERATING_SINCE)


def _make_table(
    connection: _Pg, schema: str, extension: str, grant: Callable[[_Pg, str], None]
) -> None:
    """A table that has lost its column went with an extension that was dropped: made again."""
    table = sql.Identifier(schema, "embeddings").as_string(connection)
    column = (
        "SELECT 1 FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attname = 'embedding' AND NOT attisdropped"
    )
    if connection.execute(column, (table,)).fetchone() is not None:
        return
    connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema)))
    connection.execute(sql.SQL(_MAKE_TABLE).format(extension=sql.Identifier(extension)))
    grant(connection, schema)


def _catch_up(connection: _Pg, schema: str, extension: str) -> frozenset[tuple[str, str, int]]:
    """Take up the vectors of processes that had no extension; of which space, model and size."""
    grown: set[tuple[str, str, int]] = set()
    page = {"after": 0, "limit": CAUGHT_UP_ROWS}
    names = sql.Identifier(schema), sql.Identifier(extension)
    while True:
        with connection.transaction():
            connection.execute(sql.SQL("SET LOCAL search_path TO {}, {}").format(*names))
            connection.execute("SET LOCAL recollect.operator = 'on'")
            rows = connection.execute(QUERIES["vectors_without_embedding"], page).fetchall()
            given = [
                {
                    "space": space,
                    "model": model,
                    "kind": kind,
                    "entry_key": entry_key,
                    "vector": vector,
                    "numbers": numbers,
                }
                for _, space, model, kind, entry_key, vector in rows
                if (numbers := _numbers(vector)) is not None
            ]
            if given:
                connection.cursor().executemany(QUERIES["put_embedding"], given)
        grown |= {(each["space"], each["model"], len(each["vector"]) // 4) for each in given}
        if len(rows) < CAUGHT_UP_ROWS:
            return frozenset(grown)
        page["after"] = rows[-1][0]


def _asked(space: str, model: str, vector: bytes) -> dict[str, object]:
    return {
        "space": space,
        "model": model,
        "numbers": _numbers(vector),
        "dimensions": len(vector) // 4,
    }


def _numbers(vector: bytes) -> str | None:
    """A vector as pgvector reads it; none for what is no vector."""
    if not vector or len(vector) % 4:
        return None
    numbers = struct.unpack(f"<{len(vector) // 4}f", vector)
    if not all(map(math.isfinite, numbers)):
        return None
    return f"[{','.join(f'{number:.9g}' for number in numbers)}]"

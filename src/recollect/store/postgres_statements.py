"""Runs statements inside a PostgreSQL transaction, sent together where no result is needed.

A statement that is run for its effect alone is sent with the next one whose rows are wanted, or at
last with the commit. The server runs all of them in the order in which they were asked for, and an
error in one prevents all that follow, the commit included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from recollect.errors import (
    InvalidUrl,
    NotAStore,
    RecollectError,
    StoreBusy,
    StoreCorrupt,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from recollect.store.address import without_secrets
from recollect.store.relational.database import Asked, Params, Row
from recollect.store.sql import queries

PREPARED_MAX = 500  # statements that a connection keeps prepared
TOGETHER_MAX = 200  # statements that wait to be sent
_PARAMETER = re.compile(r"%\((\w+)\)s")
_NOTHING: Params = {}


class Keeping(Enum):
    """For how long the server keeps a statement that it has prepared."""

    CONNECTED = auto()  # under a name, for as long as the connection lasts
    FLEETING = auto()  # under none, until the next one of that kind


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedStatement:
    """What the server is sent, and the names of its parameters in the order of their numbers."""

    text: bytes
    names: tuple[str, ...]
    formats: tuple[PyFormat, ...]
    keeping: Keeping


def statement(text: str, keeping: Keeping = Keeping.CONNECTED) -> PreparedStatement:
    """A statement whose parameters are written `%(name)s`."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    numbers = {name: f"${number}" for number, name in enumerate(names, start=1)}
    numbered = _PARAMETER.sub(lambda found: numbers[found[1]], text)
    return PreparedStatement(
        text=numbered.encode(),
        names=names,
        formats=tuple(PyFormat.AUTO for _ in names),
        keeping=keeping,
    )


def as_it_stands(text: str) -> PreparedStatement:
    """A statement without parameters that is seldom sent twice; whatever is quoted in it stays."""
    return PreparedStatement(text=text.encode(), names=(), formats=(), keeping=Keeping.FLEETING)


# An extension can be dropped and made again, or be found by another path: a prepared statement
# would go on asking for the type that it was when it was prepared.
_STATEMENTS = {name: statement(text) for name, text in queries("postgres").items()} | {
    name: statement(text, Keeping.FLEETING) for name, text in queries("pgvector").items()
}
_COMMIT = statement("COMMIT")
CHANNEL = "recollect_due"
WAKE = statement(f"SELECT pg_notify('{CHANNEL}', current_schema())")
_DONE = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})


# What a prepared statement is known by: its text and the types of its parameters. And one that
# waits, with its values and their formats as psycopg made them.
_Key = tuple[bytes, tuple[int, ...]]
_Waiting = tuple[_Key, Keeping, Sequence[Any], Sequence[Any]]
_UNNAMED = b""  # the server's one statement without a name, which the next one replaces


class PreparingConnection(psycopg.Connection[Row]):
    """A connection that knows what it has prepared: names by text and types of parameters."""

    def __init__(self, *args: Any, **options: Any) -> None:  # psycopg's own business
        super().__init__(*args, **options)
        self.prepared: dict[_Key, bytes] = {}
        self.prepared_ever = 0

    def give_up(self) -> None:
        """Leave whatever was begun, so that the next one finds nothing of it."""
        if self.pgconn.pipeline_status != PipelineStatus.OFF:
            self.pgconn.exit_pipeline_mode()
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            self.execute(b"ROLLBACK")


class PostgresConnection:
    """Implements `Connection` on a psycopg connection that is nobody else's meanwhile.

    psycopg's own cursors take several times as long over a statement as the statement takes, and
    its pipelines longer still; its adaptation of values, its waiting and its errors are used.
    """

    __slots__ = (
        "_adapt",
        "_connection",
        "_is_over",
        "_is_reading",
        "_pgconn",
        "_waiting",
        "_wakes",
        "has_answered",
    )

    def __init__(self, connection: PreparingConnection, *, is_reading: bool = False) -> None:
        self._is_reading = is_reading
        self._connection = connection
        self._pgconn: PGconn = connection.pgconn
        self._adapt = Transformer(connection)
        self._waiting: list[_Waiting] = []
        self._is_over = False
        self._wakes = False
        self.has_answered = False  # the server, and did the first of what it was asked

    def rows(self, name: str, params: Params) -> list[Row]:
        return self.fetch(_STATEMENTS[name], params)

    def row(self, name: str, params: Params) -> Row | None:
        found = self.fetch(_STATEMENTS[name], params)
        return found[0] if found else None

    def rows_each(self, asked: Sequence[Asked]) -> list[list[Row]]:
        found: list[list[Row]] = []
        for start in range(0, len(asked), TOGETHER_MAX):
            together = asked[start : start + TOGETHER_MAX]
            for name, params in together:
                self._put(_STATEMENTS[name], params)
            found += [self._loaded(result) for result in self._send()[-len(together) :]]
        return found

    def last_rows(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """The same, with the end of a transaction that only reads."""
        if not self._is_reading or len(asked) >= TOGETHER_MAX:
            return self.rows_each(asked)
        for name, params in asked:
            self._put(_STATEMENTS[name], params)
        self._put(_COMMIT, _NOTHING)
        results = self._send()[-len(asked) - 1 : -1]
        self._is_over = True
        return [self._loaded(result) for result in results]

    def run(self, name: str, params: Params) -> None:
        self.put(_STATEMENTS[name], params)

    def run_many(self, name: str, params: Sequence[Params]) -> None:
        for each in params:
            self.put(_STATEMENTS[name], each)

    def wake(self) -> None:
        """The server tells all hosts at the commit, once."""
        self._wakes = True

    def fetch(self, asked: PreparedStatement, params: Params) -> list[Row]:
        """The rows of a statement, after all that waited has been done."""
        self._put(asked, params)
        return self._loaded(self._send()[-1])

    def put(self, asked: PreparedStatement, params: Params = _NOTHING) -> None:
        """Have a statement done before the next one whose answer is waited for."""
        self._put(asked, params)
        if len(self._waiting) >= TOGETHER_MAX:
            self._send()

    def commit(self) -> None:
        """Commit, with what waits. Never with the first: who has not answered may be long gone.

        What was only read is over already where its last rows were asked for.
        """
        if self._is_over:
            return
        if not self.has_answered:
            self._send()
        if self._wakes:
            self._put(WAKE, _NOTHING)
        self._put(_COMMIT, _NOTHING)
        self._send()

    def _put(self, asked: PreparedStatement, params: Params) -> None:
        assert not self._is_over, "nothing is asked after what comes last"
        adapt = self._adapt
        values = adapt.dump_sequence([params[name] for name in asked.names], asked.formats)
        key = (asked.text, adapt.types or ())
        self._waiting.append((key, asked.keeping, values, adapt.formats or ()))

    def _send(self) -> list[PGresult]:
        """Send what waits, and wait for its results."""
        waiting, self._waiting = self._waiting, []
        pgconn = self._pgconn
        if pgconn.pipeline_status == PipelineStatus.OFF:
            pgconn.enter_pipeline_mode()
        preparing: dict[int, _Key] = {}
        sent = 0
        unnamed: _Key | None = None
        for key, keeping, values, formats in waiting:
            name, is_new = self._name(key, keeping)
            if name == _UNNAMED:
                is_new, unnamed = key != unnamed, key
            if is_new:
                preparing[sent] = key
                pgconn.send_prepare(name, key[0], param_types=key[1])
                sent += 1
            pgconn.send_query_prepared(name, values, param_formats=formats)
            sent += 1
        pgconn.pipeline_sync()
        results = self._connection.wait(_exchange(pgconn, sent + 1))
        self.has_answered |= results[0].status in _DONE
        self._check(results, preparing)
        if not preparing:
            return results[:-1]  # without the end of it all
        return [each for number, each in enumerate(results[:-1]) if number not in preparing]

    def _name(self, key: _Key, keeping: Keeping) -> tuple[bytes, bool]:
        """Under which name a statement is prepared, and whether it has to be first."""
        connection = self._connection
        known = connection.prepared.get(key)
        if known is not None:
            return known, False
        if keeping is Keeping.FLEETING or len(connection.prepared) >= PREPARED_MAX:
            return _UNNAMED, True
        connection.prepared_ever += 1
        name = connection.prepared[key] = b"recollect_%d" % connection.prepared_ever
        return name, True

    def _check(self, results: Sequence[PGresult], preparing: Mapping[int, _Key]) -> None:
        failed = [each for each in results if each.status == ExecStatus.FATAL_ERROR]
        if not failed:
            return
        for number, key in preparing.items():
            if number >= len(results) or results[number].status != ExecStatus.COMMAND_OK:
                self._connection.prepared.pop(key, None)
        raise pg.error_from_result(failed[0], encoding=self._connection.info.encoding)

    def _loaded(self, result: PGresult) -> list[Row]:
        self._adapt.set_pgresult(result)
        return self._adapt.load_rows(0, result.ntuples, tuple)


def _exchange(pgconn: PGconn, count: int) -> PQGen[list[PGresult]]:
    """Send what libpq holds and take so many results; an error that ended it all is one of them."""
    yield from generators.send(pgconn)
    results: list[PGresult] = []
    try:
        while len(results) < count:
            results += yield from generators.fetch_many(pgconn)
    except psycopg.OperationalError:
        if not any(each.status == ExecStatus.FATAL_ERROR for each in results):
            raise
    return results


_POOLED = (
    "a pooler gives this connection to others between transactions; let it pool sessions, or keep"
    " prepared statements (PgBouncer 1.21 and later: max_prepared_statements)"
)

_STOOD_STILL = "the server ended a transaction that took too long; nothing was stored, retry"

_ADVICE: tuple[tuple[type[psycopg.Error], type[RecollectError], str], ...] = (
    (pg.DuplicatePreparedStatement, StoreDenied, _POOLED),
    (pg.InvalidSqlStatementName, StoreDenied, _POOLED),
    (pg.InsufficientPrivilege, StoreDenied, "permission denied; check this user's rights"),
    (pg.ReadOnlySqlTransaction, StoreDenied, "the server is read only; use the primary"),
    (pg.DiskFull, StoreFull, "the server's disk is full; free some room and retry"),
    (pg.ProgramLimitExceeded, StoreError, "the server has no room for such a value"),
    (pg.LockNotAvailable, StoreBusy, "it is locked; retry"),
    (pg.QueryCanceled, StoreBusy, "the server cancelled the statement; retry"),
    (pg.IdleInTransactionSessionTimeout, StoreUnavailable, _STOOD_STILL),
    (pg.TransactionTimeout, StoreUnavailable, _STOOD_STILL),
    (pg.ForeignKeyViolation, StoreBusy, "what it belongs to was forgotten meanwhile; retry"),
    (pg.DataCorrupted, StoreCorrupt, "the data is damaged; restore a backup"),
    (pg.IndexCorrupted, StoreCorrupt, "an index is damaged; REINDEX it"),
    (pg.UndefinedTable, NotAStore, "the tables are gone; open the store again to create them"),
    (pg.InvalidSchemaName, NotAStore, "the schema is gone; open the store again to create it"),
    (
        psycopg.OperationalError,
        StoreUnavailable,
        (
            "cannot be reached; check that the server runs and that host, port, database, user and "
            "password in the URL are right, then retry"
        ),
    ),
    (psycopg.ProgrammingError, InvalidUrl, "the URL is not one PostgreSQL understands"),
)


def translate(error: psycopg.Error, location: str, url: str = "") -> RecollectError:
    """An error of the database as one of ours: the type says what it means, the text what to do."""
    detail = without_secrets(" ".join(str(error).split()), url)
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        detail = detail.partition(': "')[0]  # libpq quotes the URL, and the password in it
    for theirs, ours, advice in _ADVICE:
        if isinstance(error, theirs) and not (
            theirs is psycopg.ProgrammingError and error.sqlstate is not None
        ):
            return ours(f"{location}: {advice} ({detail})")
    return StoreError(f"{location}: {detail}")

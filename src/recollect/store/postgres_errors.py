"""PostgreSQL's errors as ours: the type says what they mean, the text what to do."""

from __future__ import annotations

import psycopg
from psycopg import errors as pg

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

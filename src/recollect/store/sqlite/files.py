"""The database file: created durably and for its owner only, recognised, locked and migrated."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import apsw

from recollect.clock import Clock, to_micros
from recollect.crashpoints import reach
from recollect.errors import (
    NotAStore,
    OutcomeUnknown,
    RecollectError,
    StoreBusy,
    StoreCorrupt,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnavailable,
    TooLarge,
)
from recollect.store.schema import (
    CREATE_VERSION_TABLE,
    migrations,
    newest_version,
    refuse_newer,
)

_ADVICE: tuple[tuple[type[Exception], type[RecollectError], str], ...] = (
    (apsw.BusyError, StoreBusy, "another process kept it locked; retry, or raise the busy timeout"),
    (apsw.LockedError, StoreBusy, "it is locked; retry"),
    (apsw.FullError, StoreFull, "the disk is full; free some room and retry"),
    (apsw.CorruptError, StoreCorrupt, "the file is damaged; restore a backup"),
    (UnicodeDecodeError, StoreCorrupt, "the file is damaged; restore a backup"),
    (apsw.NotADBError, NotAStore, "the file is not a database; choose another path"),
    (
        apsw.ReadOnlyError,
        StoreDenied,
        "it is read only; check the permissions of file and directory",
    ),
    (apsw.PermissionsError, StoreDenied, "permission denied; check file and directory"),
    (apsw.CantOpenError, StoreDenied, "it cannot be opened; check the path and its permissions"),
    (apsw.IOError, StoreUnavailable, "reading or writing failed; check the disk and retry"),
    (apsw.TooBigError, TooLarge, "a value is larger than the database can hold"),
)


def translate(error: apsw.Error | UnicodeDecodeError, location: str) -> RecollectError:
    """An error of the database as one of ours: the type says what it means, the text what to do."""
    for theirs, ours, advice in _ADVICE:
        if isinstance(error, theirs):
            return ours(f"{location}: {advice} ({error})")
    return StoreError(f"{location}: {error}")


def wants_room(error: apsw.Error) -> bool:
    """Whether it is for want of room on the disk; what processes share of the log needs some."""
    return isinstance(error, apsw.FullError) or (
        getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE
    )


def outcome_unknown(error: apsw.IOError, location: str) -> OutcomeUnknown:
    """A commit whose sync failed: a crash now may bring it back, the next commit may bury it."""
    unknown = OutcomeUnknown(
        f"{location}: the disk failed at commit ({error}); what was written may or may not be "
        "stored. Check the disk, then retry with the same append key: it is stored once"
    )
    unknown.__cause__ = error
    return unknown


def as_recollect_error(error: Exception, location: str) -> Exception:
    if isinstance(error, (apsw.Error, UnicodeDecodeError)):
        translated = translate(error, location)
        translated.__cause__ = error
        return translated
    return error


APPLICATION_ID = 0x52434C31  # "RCL1": tells our files from everybody else's
ENCODING = "UTF-8"
LOCK_POLL_MS = 5  # between two questions whether another process's lock is free


class Snapshot:
    """A read transaction: every statement inside sees the same state."""

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN")

    def __exit__(self, *_: object) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


@contextlib.contextmanager
def closed_on_failure(connection: apsw.Connection) -> Iterator[None]:
    """A connection that is of no use keeps no file open until somebody collects it."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(apsw.Error):
            connection.close()
        raise


def wait_for_lock(timeout_ms: int, attempts: int) -> bool:
    """Ask again at an even pace until the time is over.

    SQLite's own handler asks ever more rarely, so that in a storm of writers those who have waited
    longest have the least chance, and some run out of time.
    """
    if attempts * LOCK_POLL_MS >= timeout_ms:
        return False
    apsw.sleep(LOCK_POLL_MS)
    return True


def prepare_file(path: Path) -> None:
    """Create the directory (0700) and the file (0600), durably, if they are missing."""
    try:
        missing = [parent for parent in path.parents if not parent.exists()]
        for directory in reversed(missing):
            directory.mkdir(mode=0o700, exist_ok=True)
            _sync_directory(directory.parent)
        # Only a file that is new: closing a descriptor of one that is open elsewhere in this
        # process would drop SQLite's locks on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        _sync_directory(path.parent)
    except FileExistsError:
        return
    except OSError as error:
        raise StoreDenied(
            f"cannot open {path}: {error.strerror}; check that the path is right and that this "
            "user may write to it and to its directory"
        ) from error


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_journal_mode(connection: apsw.Connection, mode: str) -> None:
    """Switching needs the file alone, and SQLite does not wait for that by itself."""
    for _ in range(100):
        try:
            connection.pragma("journal_mode", mode)
            return
        except apsw.BusyError:
            connection.execute("BEGIN IMMEDIATE; ROLLBACK")  # waits for the lock's holder
    connection.pragma("journal_mode", mode)


def migrate(writer: apsw.Connection, clock: Clock, location: str) -> int:
    version = check(writer, location)
    for migration in migrations("sqlite")[version:]:
        writer.execute("BEGIN IMMEDIATE")
        try:
            if schema_version(writer, location) < migration.version:
                writer.execute(CREATE_VERSION_TABLE)
                for statement in migration.statements:
                    writer.execute(statement)
                reach("migration.applied")
                writer.execute(
                    "INSERT INTO schema_version VALUES (?, ?, ?)",
                    (migration.version, migration.name, to_micros(clock.now())),
                )
                writer.pragma("application_id", APPLICATION_ID)
            writer.execute("COMMIT")
        finally:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
    return max(version, newest_version("sqlite"))


def check(writer: apsw.Connection, location: str) -> int:
    """The version of the schema, 0 for an empty file; a file that is not ours is left as it is."""
    with Snapshot(writer):  # somebody else may be creating it at this moment
        return schema_version(writer, location)


def schema_version(writer: apsw.Connection, location: str) -> int:
    """The same, inside a transaction."""
    application = writer.pragma("application_id")
    encoding = writer.pragma("encoding")
    if encoding != ENCODING:
        raise StoreError(
            f"{location} is a database with the encoding {encoding}, and Recollect needs "
            f"{ENCODING}; choose another path"
        )
    if application != APPLICATION_ID:
        if writer.execute("SELECT count(*) FROM sqlite_schema").get:
            raise NotAStore(f"{location} is a database of another program; choose another path")
        return 0
    version = int(writer.execute("SELECT max(version) FROM schema_version").get)
    refuse_newer(version, "sqlite", location)
    return version

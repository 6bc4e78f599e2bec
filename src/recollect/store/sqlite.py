"""SQLite through apsw: one writer that commits for those who wait, and a pool of readers.

Owns invariant 1 (an acknowledged write survives power loss: WAL with `synchronous=FULL`) and
invariant 8 (every write transaction is `BEGIN IMMEDIATE`) for SQLite.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import apsw

from recollect.clock import Clock, to_micros
from recollect.crashpoints import reach
from recollect.domain import StoreDescription
from recollect.errors import (
    NotAStore,
    RecollectError,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreDenied,
    StoreError,
    StoreForked,
    StoreFull,
    StoreUnavailable,
    TooLarge,
)
from recollect.store.migrations import (
    CREATE_VERSION_TABLE,
    migrations,
    newest_version,
    refuse_newer,
)
from recollect.store.relational import Connection
from recollect.store.relational.database import Params, Row
from recollect.store.sql import queries

T = TypeVar("T")
Synchronous = Literal["full", "off"]

APPLICATION_ID = 0x52434C54  # "RCLT": tells our files from everybody else's
BATCH_MAX = 64  # turns that one leader commits together
_QUERIES = queries("sqlite")


class SqliteConnection:
    """Implements `Connection` on an apsw connection that is inside a transaction."""

    __slots__ = ("_execute", "_execute_many")

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany

    def rows(self, name: str, params: Params) -> list[Row]:
        return self._execute(_QUERIES[name], params).fetchall()

    def row(self, name: str, params: Params) -> Row | None:
        found = self._execute(_QUERIES[name], params).fetchall()
        return found[0] if found else None

    def run(self, name: str, params: Params) -> None:
        self._execute(_QUERIES[name], params)

    def run_many(self, name: str, params: Sequence[Params]) -> None:
        self._execute_many(_QUERIES[name], params)


class _Turn:
    """A write that waits to be committed, and what came of it."""

    __slots__ = ("done", "error", "job", "result")

    def __init__(self, job: Callable[[Connection], Any]) -> None:
        self.job = job
        self.done = False
        self.result: Any = None
        self.error: Exception | None = None


class SqliteDatabase:
    """Implements `Database` on one SQLite file, or in memory for as long as this lives."""

    def __init__(
        self,
        path: Path | None,
        clock: Clock,
        *,
        wal: bool = True,
        busy_timeout_ms: int = 5000,
        synchronous: Synchronous = "full",
        vfs: str | None = None,
    ) -> None:
        # Readers are opened later: by then a relative path might mean another file.
        self._path = path = None if path is None else path.absolute()
        self._wal = wal
        self._busy_timeout_ms = busy_timeout_ms
        self._synchronous = synchronous
        self._vfs = vfs
        self._closed = False
        self._forked = False
        self._progress = threading.Condition(threading.Lock())
        self._leading = False
        self._waiting: deque[_Turn] = deque()
        self._readers: deque[apsw.Connection] = deque()
        self._wakes: list[Callable[[], None]] = []
        self._jobs_touched = False
        if path is not None:
            _prepare_file(path)
        try:
            self._writer = self._open_writer()
            self._version = _migrate(self._writer, clock, self.location)
        except apsw.Error as error:
            raise translate(error, self.location) from error
        self._connection = SqliteConnection(self._writer)
        _open_databases.add(self)

    @property
    def location(self) -> str:
        return ":memory:" if self._path is None else str(self._path)

    def describe(self) -> StoreDescription:
        return StoreDescription(kind="sqlite", location=self.location, schema_version=self._version)

    def write(self, space: str | None, job: Callable[[Connection], T]) -> T:  # noqa: ARG002
        """Run a job in a durable transaction, alone or together with others that wait.

        Everybody queues a turn. Whoever finds nobody leading leads: it commits all the turns there
        are with one sync, and then wakes everybody. Those whose turn is done go on at once, one of
        the others leads next.
        """
        self._check_usable()
        turn = _Turn(job)
        self._waiting.append(turn)
        if self._lead(turn):
            try:
                while not turn.done:
                    self._check_usable()
                    self._commit_waiting(turn)
            finally:
                self._stop_leading()
        if turn.error is not None:
            raise _as_recollect_error(turn.error, self.location)
        return cast(T, turn.result)

    def read(self, space: str | None, job: Callable[[Connection], T]) -> T:
        """Run a job on one snapshot of the database."""
        self._check_usable()
        if self._path is None:
            return self.write(space, job)
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = self._open_reader()
        try:
            with _Snapshot(reader):
                return job(SqliteConnection(reader))
        except apsw.Error as error:
            raise translate(error, self.location) from error
        finally:
            self._readers.append(reader)
            if self._closed:
                self._close_readers()

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Tell a worker of this process about new work; other processes look by themselves."""
        self._lead(None)
        try:
            self._check_usable()
            self._wakes.append(wake)
            self._writer.set_update_hook(self._note_change)
        finally:
            self._stop_leading()

        def stop() -> None:
            self._lead(None)
            self._wakes.remove(wake)
            if not self._wakes and not self._closed:
                self._writer.set_update_hook(None)
            self._stop_leading()

        return stop

    def _note_change(self, _kind: int, _database: str, table: str, _row: int) -> None:
        if table == "jobs":
            self._jobs_touched = True

    def close(self) -> None:
        if self._forked or self._closed:
            return
        self._lead(None)
        try:
            self._closed = True
            self._close_readers()
            self._writer.close()
        except apsw.Error as error:  # the last checkpoint failed; the log has it all
            raise translate(error, self.location) from error
        finally:
            self._stop_leading()

    def abandon(self) -> None:
        """Called in a forked child: SQLite's connections must not be used, nor closed, there."""
        self._forked = True
        _abandoned.extend((self._writer, *self._readers))

    def _check_usable(self) -> None:
        if self._forked:
            raise StoreForked(
                "this store was opened before a fork; open it again in the child process"
            )
        if self._closed:
            raise StoreClosed(f"the store {self.location} is closed; open it again")

    def _lead(self, turn: _Turn | None) -> bool:
        """Wait until nobody leads, and lead; False if somebody has done the turn meanwhile."""
        with self._progress:
            while self._leading and not (turn is not None and turn.done):
                self._progress.wait()
            if turn is not None and turn.done:
                return False
            self._leading = True
            return True

    def _stop_leading(self) -> None:
        with self._progress:
            self._leading = False
            self._progress.notify_all()

    def _commit_waiting(self, own: _Turn) -> None:
        batch = [self._waiting.popleft()]
        try:
            if not self._commit(batch, room=BATCH_MAX):
                # One of them failed and took the rest along. Alone, each gets its own outcome.
                for turn in batch:
                    self._commit([turn], room=1)
        except BaseException:
            # The leader itself was interrupted. The others are still waiting for somebody.
            self._waiting.extendleft(t for t in reversed(batch) if t is not own and not t.done)
            raise
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    def _commit(self, batch: list[_Turn], *, room: int) -> bool:
        """Run turns in one transaction, adding those that wait or come while there is room.

        False: nothing happened, try them one by one.
        """
        results = []
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for turn in batch:
                results.append(turn.job(self._connection))
                if self._waiting and len(batch) < room:
                    batch.append(self._waiting.popleft())  # the loop comes to it
            reach("write.committing")
            self._writer.execute("COMMIT")
        except Exception as error:  # told to the one caller whose job it is
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            if len(batch) > 1:
                return False
            batch[0].error = error
            batch[0].done = True
            return True
        reach("write.committed")
        if self._jobs_touched:
            self._jobs_touched = False
            for wake in self._wakes:
                wake()
        for turn, result in zip(batch, results, strict=True):
            turn.result = result
            turn.done = True
        return True

    def _open_writer(self) -> apsw.Connection:
        writer = self._connect()
        journal = "wal" if self._wal else "delete"
        if self._path is not None:
            _set_journal_mode(writer, journal)
        # With a rollback journal only EXTRA syncs the directory after the journal is gone.
        durable = "FULL" if self._wal else "EXTRA"
        writer.pragma("synchronous", durable if self._synchronous == "full" else "OFF")
        writer.pragma("foreign_keys", "ON")
        return writer

    def _open_reader(self) -> apsw.Connection:
        try:
            reader = self._connect()
            reader.pragma("query_only", "ON")
        except apsw.Error as error:
            raise translate(error, self.location) from error
        return reader

    def _connect(self) -> apsw.Connection:
        name = ":memory:" if self._path is None else str(self._path)
        connection = apsw.Connection(name, vfs=self._vfs)
        connection.set_busy_timeout(self._busy_timeout_ms)
        return connection

    def _close_readers(self) -> None:
        """Close idle readers; one that is in use is closed by whoever gives it back."""
        while True:
            try:
                self._readers.pop().close()
            except IndexError:
                return


class _Snapshot:
    """A read transaction: every statement inside sees the same state."""

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN")

    def __exit__(self, *_: object) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _prepare_file(path: Path) -> None:
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


def _set_journal_mode(connection: apsw.Connection, mode: str) -> None:
    """Switching needs the file alone, and SQLite does not wait for that by itself."""
    for _ in range(100):
        try:
            connection.pragma("journal_mode", mode)
            return
        except apsw.BusyError:
            connection.execute("BEGIN IMMEDIATE; ROLLBACK")  # waits for whoever holds it
    connection.pragma("journal_mode", mode)


def _migrate(writer: apsw.Connection, clock: Clock, location: str) -> int:
    version = _version(writer, location)
    for migration in migrations("sqlite")[version:]:
        writer.execute("BEGIN IMMEDIATE")
        try:
            if _version(writer, location) < migration.version:
                writer.execute(CREATE_VERSION_TABLE)
                writer.execute(migration.script)
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


def _version(writer: apsw.Connection, location: str) -> int:
    if writer.pragma("application_id") != APPLICATION_ID:
        if writer.execute("SELECT count(*) FROM sqlite_schema").get:
            raise NotAStore(f"{location} is a database of another program; choose another path")
        return 0
    version = int(writer.execute("SELECT max(version) FROM schema_version").get)
    refuse_newer(version, "sqlite", location)
    return version


_ADVICE: tuple[tuple[type[apsw.Error], type[RecollectError], str], ...] = (
    (apsw.BusyError, StoreBusy, "another process kept it locked; retry, or raise the busy timeout"),
    (apsw.LockedError, StoreBusy, "it is locked; retry"),
    (apsw.FullError, StoreFull, "the disk is full; free some room and retry"),
    (apsw.CorruptError, StoreCorrupt, "the file is damaged; restore a backup"),
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


def translate(error: apsw.Error, location: str) -> RecollectError:
    """An error of the database as one of ours: the type says what it means, the text what to do."""
    for theirs, ours, advice in _ADVICE:
        if isinstance(error, theirs):
            return ours(f"{location}: {advice} ({error})")
    return StoreError(f"{location}: {error}")


def _as_recollect_error(error: Exception, location: str) -> Exception:
    if isinstance(error, apsw.Error):
        translated = translate(error, location)
        translated.__cause__ = error
        return translated
    return error


_open_databases: weakref.WeakSet[SqliteDatabase] = weakref.WeakSet()
_abandoned: list[apsw.Connection] = []  # a child keeps its parent's connections alive, unused


def _abandon_after_fork() -> None:
    for database in list(_open_databases):
        database.abandon()


os.register_at_fork(after_in_child=_abandon_after_fork)

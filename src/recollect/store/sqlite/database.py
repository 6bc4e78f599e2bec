"""SQLite through apsw: one writer that commits for all waiting threads, and a pool of readers.

Owns invariant 1 (an acknowledged write survives power loss: WAL with `synchronous=FULL`) and
invariant 8 (every write transaction is `BEGIN IMMEDIATE`) for SQLite.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import apsw

from recollect.clock import Clock
from recollect.crashpoints import reach
from recollect.errors import InvalidValue, StoreClosed, StoreForked, StoreFull
from recollect.store.relational import Connection
from recollect.store.relational.database import Asked, Params, Row
from recollect.store.sql import queries
from recollect.store.sqlite.files import (
    Snapshot,
    as_recollect_error,
    check,
    closed_on_failure,
    migrate,
    outcome_unknown,
    prepare_file,
    set_journal_mode,
    translate,
    wait_for_lock,
    wants_room,
)
from recollect.store.sqlite.forking import Gate, Inode, in_use, inode_of, refuse_inherited, watch
from recollect.store.sqlite.scrubbing import Reserve, Scrubber, ZeroedGaps
from recollect.store.whole import NO_VALUES, Access, Column, Values
from recollect.types.records import StoreDescription

# What an index of words is kept in is nobody's table.
_COLUMNS = """
SELECT m.name, x.name, x.type, x.pk
FROM sqlite_schema m, pragma_table_xinfo(m.name) x
WHERE m.type = 'table' AND x.hidden = 0 AND m.name NOT LIKE 'sqlite%'
    AND instr(m.name, '_fts') = 0
ORDER BY m.name, x.cid
"""


class SqliteWhole:
    """Implements `Whole` on a connection that is inside a transaction."""

    dialect: Literal["sqlite"] = "sqlite"

    def __init__(self, connection: apsw.Connection, location: str) -> None:
        self.connection = connection
        self.location = location

    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        found: defaultdict[str, list[Column]] = defaultdict(list)
        for table, name, kind, position in self.connection.execute(_COLUMNS):
            found[table].append(
                Column(
                    name=name,
                    is_text=kind == "TEXT",
                    is_boolean=False,
                    key_position=position or None,
                )
            )
        return {table: tuple(columns) for table, columns in found.items()}

    def stream(self, text: str, values: Values = NO_VALUES) -> Iterator[tuple[Any, ...]]:
        yield from self.connection.execute(text, values)

    def run(self, text: str, values: Values = NO_VALUES) -> None:
        self.connection.execute(text, values)

    def run_many(self, text: str, values: Iterable[Values]) -> None:
        try:
            self.connection.executemany(text, values)
        except (apsw.ConstraintError, apsw.MismatchError) as error:
            raise InvalidValue(f"{self.location}: {error}") from error


@contextlib.contextmanager
def transaction(
    connection: apsw.Connection, access: Access, location: str
) -> Iterator[SqliteWhole]:
    """One transaction, committed at the end if it is for writing and nothing was raised."""
    try:
        connection.execute("BEGIN IMMEDIATE" if access is Access.WRITE else "BEGIN")
        yield SqliteWhole(connection, location)
        if access is Access.WRITE:
            reach("write.committing")
            connection.execute("COMMIT")
            reach("write.committed")
    except (apsw.Error, UnicodeDecodeError) as error:
        raise translate(error, location) from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


_QUERIES = queries("sqlite")


class SqliteConnection:
    """Implements `Connection` on an apsw connection that is inside a transaction."""

    __slots__ = ("_execute", "_execute_many", "wakes")

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany
        self.wakes = False  # there is work for those who listen

    def rows(self, name: str, params: Params) -> list[Row]:
        return self._execute(_QUERIES[name], params).fetchall()

    def row(self, name: str, params: Params) -> Row | None:
        found = self._execute(_QUERIES[name], params).fetchall()
        return found[0] if found else None

    def rows_each(self, asked: Sequence[Asked]) -> list[list[Row]]:
        return [self._execute(_QUERIES[name], params).fetchall() for name, params in asked]

    def last_rows(self, asked: Sequence[Asked]) -> list[list[Row]]:
        return self.rows_each(asked)

    def run(self, name: str, params: Params) -> None:
        self._execute(_QUERIES[name], params)

    def run_many(self, name: str, params: Sequence[Params]) -> None:
        self._execute_many(_QUERIES[name], params)

    def wake(self) -> None:
        self.wakes = True


T = TypeVar("T")
Synchronous = Literal["full", "off"]

STATEMENTS_CACHED = 512  # every query we have, and room
BATCH_MAX = 64  # turns that one leader commits together
_log = logging.getLogger(__name__)


class _Turn:
    """A write that waits to be committed, and its result."""

    __slots__ = ("done", "error", "job", "result")

    def __init__(self, job: Callable[[Connection], Any]) -> None:
        self.job = job
        self.done = False
        self.result: Any = None
        self.error: Exception | None = None


def _settle(batch: Sequence[_Turn]) -> None:
    for turn in batch:
        turn.done = True


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
        # SQLite tells a file that may not be written from a broken one only without a layer below.
        is_written = path is not None and (not path.exists() or os.access(path, os.W_OK))
        self._vfs = ZeroedGaps(vfs) if is_written else None
        self._closed = False
        self._forked = False
        self._is_suspended = False
        self._resuming = threading.Lock()
        self.gate = Gate()
        self._progress = threading.Condition(threading.Lock())
        self._leader: _Turn | None = None
        self._waiting: deque[_Turn] = deque()
        self._readers: deque[apsw.Connection] = deque()
        self._wakes: list[Callable[[], None]] = []
        # Who does not wait for the disk does not mind losing it all, either.
        reserve = Reserve(path) if path is not None and synchronous == "full" else None
        watch(self)
        with self.gate:
            self._open(clock, reserve)

    def _open(self, clock: Clock, reserve: Reserve | None) -> None:
        if self._path is not None:
            prepare_file(self._path)
            refuse_inherited(self._path)
        try:
            self._version = self._begin(clock)
        except apsw.Error as error:
            if reserve is None or not wants_room(error) or not reserve.lend():
                raise translate(error, self.location) from error
            self._version = self._begin_again(clock)
        self._connection = SqliteConnection(self._writer)
        self._scrubber = Scrubber(
            self._writer,
            self.location,
            reserve,
            is_file=self._path is not None,
            busy_timeout_ms=self._busy_timeout_ms,
        )

    def _begin(self, clock: Clock) -> int:
        """Open the file to write to it; the version of its schema."""
        self._writer = self._connect()
        with closed_on_failure(self._writer):
            check(self._writer, self.location)
            self._make_durable(self._writer)
            return migrate(self._writer, clock, self.location)

    def _begin_again(self, clock: Clock) -> int:
        try:
            return self._begin(clock)
        except apsw.Error as error:
            raise translate(error, self.location) from error

    @property
    def location(self) -> str:
        return ":memory:" if self._path is None else str(self._path)

    def vector_index(self) -> None:
        """SQLite compares no vectors: they are held in memory, which is beside it anyway."""

    def describe(self) -> StoreDescription:
        return StoreDescription(kind="sqlite", location=self.location, schema_version=self._version)

    def write(self, space: str | None, job: Callable[[Connection], T]) -> T:  # noqa: ARG002
        """Run a job in a durable transaction, alone or together with others that wait.

        Every thread queues a turn. The first to find no leader leads: it commits all the queued
        turns with one sync, then wakes every thread. Those whose turn is done return at once; one
        of the others leads next.
        """
        self._check_usable()
        with self.gate:
            self._resume()
            return self._take_turn(job)

    def _take_turn(self, job: Callable[[Connection], T]) -> T:
        turn = _Turn(job)
        self._waiting.append(turn)
        try:
            self._lead(turn)
            while not turn.done:
                self._check_usable()
                self._commit_waiting(turn)
        except BaseException:
            # Closed, or interrupted: nobody is to do later what its caller has given up.
            with contextlib.suppress(ValueError):
                self._waiting.remove(turn)
            raise
        finally:
            self._stop_leading(turn)
        if turn.error is not None:
            raise as_recollect_error(turn.error, self.location)
        return cast(T, turn.result)

    def erase(self, space: str | None, job: Callable[[Connection], T]) -> T:
        """Like write, for what makes room in the end: on a full disk it gets what is kept for it.

        If that is not enough, it is done in less room, and `scrub` has more to do.
        """
        with self._in_use():
            try:
                return self.write(space, job)
            except StoreFull:
                with self._alone():
                    if not self._scrubber.make_room():
                        raise
            try:
                return self._erase_in_little_room(space, job)
            finally:
                with self._alone():
                    self._scrubber.done()

    def _erase_in_little_room(self, space: str | None, job: Callable[[Connection], T]) -> T:
        try:
            return self.write(space, job)
        except StoreFull:
            with self._alone():
                self._scrubber.overwrite_later()
        return self.write(space, job)

    def read(self, space: str | None, job: Callable[[Connection], T]) -> T:
        """Run a job on one snapshot of the database."""
        if self._path is None:
            return self.write(space, job)
        self._check_usable()
        with self.gate:
            self._resume()
            return self._look(job)

    def _look(self, job: Callable[[Connection], T]) -> T:
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = self._open_reader()
        try:
            with Snapshot(reader):
                return job(SqliteConnection(reader))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise translate(error, self.location) from error
        finally:
            self._readers.append(reader)
            if self._closed:
                self._close_readers()

    def ask(self, space: str | None, asked: Sequence[Asked]) -> list[list[Row]]:
        return self.read(space, lambda c: c.rows_each(asked))

    @contextlib.contextmanager
    def whole(self, access: Access) -> Iterator[SqliteWhole]:
        """All tables in one transaction; in memory nobody else gets a turn meanwhile."""
        if self._path is None:
            alone = transaction(self._writer, access, self.location)
            with self._in_use(), self._alone(), alone as whole:
                yield whole
            return
        with self._in_use():
            connection = self._open_writer()
            try:
                with transaction(connection, access, self.location) as whole:
                    yield whole
                with contextlib.suppress(apsw.Error):  # it is in the log
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            finally:
                connection.close()

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Tell a worker of this process about new work; other processes look by themselves."""
        with self._in_use(), self._alone():
            self._check_usable()
            self._wakes.append(wake)

        def stop() -> None:
            if self._forked:
                return
            with self.gate, self._alone():
                self._wakes.remove(wake)

        return stop

    def scrub(self) -> bool:
        """See to it that what was deleted is in no file any more. False: not while it is read."""
        with self._in_use(), self._alone():
            self._check_usable()
            return self._scrubber.scrub()

    def close(self) -> None:
        if self._forked or self._closed:
            return
        try:
            with self.gate, self._alone():
                self._closed = True
                self._close_readers()
                if not self._is_suspended:
                    self._writer.close()
        except apsw.Error as error:  # the last checkpoint failed; the log has it all
            raise translate(error, self.location) from error

    def suspend(self) -> None:
        """Called before a fork, when nobody is at work: close the file until it is used again."""
        if self._path is None or self._closed or self._forked or self._is_suspended:
            return
        with contextlib.suppress(apsw.Error):  # then it is open, and the child is told so
            self._close_readers()
            self._writer.close()
            self._is_suspended = True

    def abandon(self) -> Inode | None:
        """Called in a forked child: SQLite's connections must not be used, nor closed, there."""
        if not self._forked:
            self._forked = True
            _abandoned.append(self)
        is_open = not self._is_suspended and not self._closed
        return inode_of(self._path) if is_open and self._path is not None else None

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Keep the file open, through forks."""
        self._check_usable()
        with self.gate:
            self._resume()
            yield

    def _resume(self) -> None:
        """Open the file again after a fork, unless somebody else is quicker."""
        if self._is_suspended:
            with self._resuming:
                self._open_again()

    def _open_again(self) -> None:
        self._check_usable()
        if not self._is_suspended:
            return
        self._writer = self._open_writer()
        self._connection = SqliteConnection(self._writer)
        self._scrubber.go_on_with(self._writer)
        self._is_suspended = False

    def _open_writer(self) -> apsw.Connection:
        """One more connection to a file that there is."""
        try:
            writer = self._connect(apsw.SQLITE_OPEN_READWRITE)
            with closed_on_failure(writer):
                self._make_durable(writer)
        except apsw.Error as error:
            raise translate(error, self.location) from error
        return writer

    def _check_usable(self) -> None:
        if self._forked and not self._is_suspended and self._path is not None:
            raise in_use(self.location)
        if self._forked:
            raise StoreForked(
                "this store was opened before a fork; open it again in the child process"
            )
        if self._closed:
            raise StoreClosed(f"the store {self.location} is closed; open it again")

    def _lead(self, turn: _Turn) -> None:
        """Wait until nobody leads, and lead, unless somebody has done the turn meanwhile."""
        with self._progress:
            while self._leader is not None and not turn.done:
                self._progress.wait()
            if not turn.done:
                self._leader = turn

    def _stop_leading(self, turn: _Turn) -> None:
        # Everybody asks on the way out, so that no interrupt leaves a leader behind.
        if self._leader is turn:
            with self._progress:
                self._leader = None
                self._progress.notify_all()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Lead without a job: nobody writes meanwhile."""
        turn = _Turn(lambda _: None)
        try:
            self._lead(turn)
            yield
        finally:
            self._stop_leading(turn)

    def _announce(self) -> None:
        if self._connection.wakes:
            self._connection.wakes = False
            for wake in self._wakes:
                wake()

    def _commit_waiting(self, own: _Turn) -> None:
        batch = [self._waiting.popleft()]
        try:
            if not self._commit(batch, room=BATCH_MAX):
                # One of them failed and took the rest along. Alone, each gets its own outcome.
                for turn in batch:
                    self._commit([turn], room=1)
            self._scrubber.after_commit()
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
        committing = False
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for turn in batch:
                turn.result = turn.job(self._connection)
                if self._waiting and len(batch) < room:
                    batch.append(self._waiting.popleft())  # the loop comes to it
            reach("write.committing")
            committing = True
            self._writer.execute("COMMIT")
            reach("write.committed")
            _settle(batch)
        except Exception as error:  # told to the one caller whose job it is
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            if len(batch) > 1:
                return False
            if committing and isinstance(error, apsw.IOError):
                error = outcome_unknown(error, self.location)
            batch[0].error = error
            batch[0].done = True
        except BaseException:
            # The leader was interrupted. What it has committed must not be done a second time.
            if committing and not self._writer.in_transaction:
                _settle(batch)
            raise
        self._announce()
        return True

    def _make_durable(self, writer: apsw.Connection) -> None:
        journal = "wal" if self._wal else "delete"
        if self._path is not None:
            set_journal_mode(writer, journal)
        # With a rollback journal only EXTRA syncs the directory after the journal is gone.
        durable = "FULL" if self._wal else "EXTRA"
        writer.pragma("synchronous", durable if self._synchronous == "full" else "OFF")
        writer.pragma("foreign_keys", "ON")
        writer.pragma("secure_delete", "ON")

    def _open_reader(self) -> apsw.Connection:
        try:
            reader = self._connect()
            with closed_on_failure(reader):
                reader.pragma("query_only", "ON")
        except apsw.Error as error:
            raise translate(error, self.location) from error
        return reader

    def _connect(
        self, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    ) -> apsw.Connection:
        connection = apsw.Connection(
            self.location,
            flags=flags,
            vfs=None if self._vfs is None else self._vfs.name,
            statementcachesize=STATEMENTS_CACHED,
        )
        connection.set_busy_handler(partial(wait_for_lock, self._busy_timeout_ms))
        connection.wal_autocheckpoint(0)  # the writer sees to that
        # What a parameter is bound to never makes a statement be planned anew.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        return connection

    def _close_readers(self) -> None:
        """Close idle readers; one that is in use is closed when it is given back."""
        while True:
            try:
                self._readers.pop().close()
            except IndexError:
                return


_abandoned: list[SqliteDatabase] = []  # a child keeps its parent's connections alive, unused

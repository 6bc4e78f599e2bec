"""The interface that the relational store needs of a database: transactions and named SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from recollect.clock import to_micros

if TYPE_CHECKING:
    from recollect.store.whole import Access, Whole
    from recollect.types.recall import EntryKind, NewVector
    from recollect.types.records import StoreDescription

T = TypeVar("T")
Params = Mapping[str, Any]
Row = tuple[Any, ...]
Asked = tuple[str, Params]


class Connection(Protocol):
    """Runs named queries inside one transaction."""

    def rows(self, name: str, params: Params) -> list[Row]: ...

    def row(self, name: str, params: Params) -> Row | None: ...

    def rows_each(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """The rows of each of several queries, asked one after the other and answered together."""
        ...

    def last_rows(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """The same, where nothing is asked after them."""
        ...

    def run(self, name: str, params: Params) -> None:
        """Have something done. It may fail as late as when something is asked, or at the commit."""
        ...

    def run_many(self, name: str, params: Sequence[Params]) -> None: ...

    def wake(self) -> None:
        """Have those who listen woken when this transaction commits."""
        ...


class VectorSearch(Protocol):
    """Vectors that a store compares itself. A vector is float32, little-endian, of length one."""

    def additions(self, space: str) -> int:
        """The number of times vectors were added to a space; 0: it has none."""
        ...

    def nearest(
        self, space: str, model: str, vector: bytes, kinds: Collection[EntryKind], limit: int
    ) -> list[tuple[EntryKind, int]]:
        """The most similar entries, best first, by kind and key."""
        ...

    def similarities(
        self, space: str, model: str, vector: bytes, entries: Collection[tuple[EntryKind, int]]
    ) -> Mapping[tuple[EntryKind, int], float]:
        """The similarity of entries; those without a vector are left out."""
        ...

    def usual(self, space: str, model: str, dimensions: int) -> tuple[float, float]:
        """The similarity of any two vectors of a space: the mean, and the spread around it."""
        ...


class VectorIndex(VectorSearch, Protocol):
    """What a database needs in order to compare vectors, kept with them."""

    def add(self, c: Connection, space: str, model: str, vectors: Sequence[NewVector]) -> None:
        """Take vectors up in the transaction in which they are kept."""
        ...

    def tend(self, model: str) -> None:
        """Do what makes comparing quicker, as long as it takes."""
        ...


class Snapshots(Protocol):
    """Runs jobs that only read."""

    def read(self, space: str | None, job: Callable[[Connection], T]) -> T: ...

    def ask(self, space: str | None, asked: Sequence[Asked]) -> list[list[Row]]:
        """The rows of each of several queries, where that is all there is to be read at once."""
        ...


class OpenTransaction:
    """Implements `Snapshots` inside a transaction, with all that was done in it so far."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, space: str | None, job: Callable[[Connection], T]) -> T:  # noqa: ARG002
        return job(self._connection)

    def ask(self, space: str | None, asked: Sequence[Asked]) -> list[list[Row]]:  # noqa: ARG002
        return self._connection.rows_each(asked)


class Database(Snapshots, Protocol):
    """Runs a job in one transaction that sees one space, or all of them for None.

    A job may be run again from the start when the database asks for it, so it has no effects of its
    own. Errors leave it as RecollectErrors. A write returns only when it is durable.
    """

    def write(self, space: str | None, job: Callable[[Connection], T]) -> T: ...

    def erase(self, space: str | None, job: Callable[[Connection], T]) -> T:
        """Write something that makes room in the end: it may use what is kept for a full disk."""
        ...

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after commits that made jobs due; returns a function that ends it."""
        ...

    def scrub(self) -> bool:
        """See to it that what was deleted is in no file any more. False: not while it is read."""
        ...

    def vector_index(self) -> VectorIndex | None:
        """What compares vectors, if the database can."""
        ...

    def whole(self, access: Access) -> AbstractContextManager[Whole]:
        """All tables in one transaction that sees every space."""
        ...

    def describe(self) -> StoreDescription: ...

    def close(self) -> None: ...


class ReadAggregate:
    """What only reads a part of a store; most of what it is asked for is one statement."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots

    def _rows(self, space: str | None, name: str, params: Params) -> list[Row]:
        return self._snapshots.read(space, lambda c: c.rows(name, params))

    def _row(self, space: str | None, name: str, params: Params) -> Row | None:
        return self._snapshots.read(space, lambda c: c.row(name, params))

    def _page(
        self, read: Callable[[Row], T], space: str | None, name: str, params: Params
    ) -> list[T]:
        return [read(row) for row in self._rows(space, name, params)]

    def _one(
        self, read: Callable[[Row], T], space: str | None, name: str, params: Params
    ) -> T | None:
        row = self._row(space, name, params)
        return None if row is None else read(row)

    def _count(self, space: str | None, name: str, params: Params) -> int:
        row = self._row(space, name, params)
        assert row is not None, "it counts"
        return int(row[0])


class Aggregate(ReadAggregate):
    """A part of a store, on its database."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._database = database

    def _run(self, space: str | None, name: str, params: Params) -> None:
        self._database.write(space, lambda c: c.run(name, params))


def scope(space: str | None) -> dict[str, object]:
    """One space, or all of them for None."""
    return {"any_space": space is None, "space": space or ""}


def moment(c: Connection, now: datetime | None) -> int:
    """A moment that is given, or else the database's clock, the one that all workers share."""
    if now is not None:
        return to_micros(now)
    row = c.row("clock", {"now": None})
    assert row is not None
    return int(row[0])


def in_each_space(
    database: Database,
    space: str | None,
    listed: Asked,
    change: Callable[[Connection, str], T],
) -> dict[str, T]:
    """Change something in one space, or in one after the other of those that are listed.

    A transaction each: one that held the rows of several could wait for another in a ring.
    """
    names: list[str] = [] if space is None else [space]
    if space is None:
        names = [row[0] for row in database.read(None, lambda c: c.rows(*listed))]

    def changed(name: str) -> T:
        return database.write(name, lambda c: change(c, name))

    return {name: changed(name) for name in names}


EVERY_SPACE: Asked = ("list_spaces", {"after": "", "limit": 2**62})

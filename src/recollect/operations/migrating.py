"""Migration: copies every space from one store into another, on either database, and verifies it.

Each space is one transaction on the target. As long as something is missing, a note there names the
source: an interrupted migration is run again, and skips what is already the same. At the end both
sides are read again and compared, table by table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from recollect.errors import InvalidUrl, NotEmpty, StoreBusy, StoreCorrupt
from recollect.operations.tables import (
    OF_THE_STORE,
    Digest,
    Tally,
    clear,
    digests,
    index,
    shapes,
    spaces,
    tallied,
)
from recollect.progress import tell
from recollect.store.protocol import Store
from recollect.store.relational.rows import reader
from recollect.store.whole import Access, Whole, first
from recollect.types.records import StoreDescription

NOTE = "migrating-from"
Digests = Mapping[str, Digest]


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """What is in both stores now, rows by space and table, and what had come over before."""

    source: str
    target: str
    spaces: Mapping[str, Mapping[str, int]]
    already_there: tuple[str, ...]


def migrate(source: Store, target: Store, *, origin: str | None = None) -> Migrated:
    """Copy everything, but for what is made anew: vectors, indexes, leases.

    The target holds nothing, or what an earlier attempt left there. The source is only read; what
    is written to it meanwhile is noticed at the end, and comes over by running this once more.
    `origin` says what it comes from where the store itself is only a copy of that.
    """
    here, there = source.describe(), target.describe()
    if (here.kind, here.location) == (there.kind, there.location):
        raise InvalidUrl(f"{here.location} is the store itself; name another one")
    move = _Move(source, target, origin or _origin(here))
    move.begin()
    move.copy()
    done = move.verified()
    move.finish()
    return Migrated(
        source=here.location,
        target=there.location,
        spaces={
            space: {table: each.rows for table, each in found.items()}
            for space, found in done.items()
        },
        already_there=tuple(move.already_there),
    )


class _Move:
    """One attempt at a migration."""

    def __init__(self, source: Store, target: Store, origin: str) -> None:
        self._source = source
        self._target = target
        self._origin = origin
        self._is_noted = False
        self._copied: dict[str, Digests] = {}
        self.already_there: list[str] = []

    def begin(self) -> None:
        """Put the note, or find it; a target with anything else in it is left alone."""
        with self._target.whole(Access.WRITE) as whole:
            noted = _note(whole)
            if noted is not None and noted != self._origin:
                raise NotEmpty(
                    f"{whole.location} holds part of an unfinished migration from {noted};"
                    " choose an empty store"
                )
            # Without a note it is empty, or it is compared: all may have come over already.
            self._is_noted = noted is not None or not spaces(whole)
            if noted is None and self._is_noted:
                values = {"name": NOTE, "value": self._origin}
                whole.run("INSERT INTO properties (name, value) VALUES (:name, :value)", values)

    def copy(self) -> None:
        with self._source.whole(Access.READ) as snapshot:
            names = spaces(snapshot)
            there = self._there(names)
            for number, name in enumerate(names):
                tell(f"copying {name}", number, 2 * len(names))
                if name in there and self._is_same(snapshot, name):
                    continue
                if not self._is_noted:
                    raise self._holds_something_else()
                self._copied[name] = self._copy_space(snapshot, name)

    def verified(self) -> Mapping[str, Digests]:
        """Both sides, read anew after the last commit."""
        with self._target.whole(Access.READ) as target, self._source.whole(Access.READ) as source:
            names = spaces(source)
            found: dict[str, Digests] = {}
            for number, name in enumerate(names, start=len(names)):
                tell(f"comparing {name}", number, 2 * len(names))
                found[name] = digests(target, name)
                expected = digests(source, name)
                if found[name] == expected:
                    continue
                if expected == self._copied.get(name):
                    raise StoreCorrupt(f"{target.location}: {name!r} is not what was copied to it")
                raise StoreBusy(
                    f"{source.location} was written to while it was migrated; stop what writes to"
                    " it, then run this again: only what has changed is copied"
                )
        return found

    def finish(self) -> None:
        """Take what belongs to the store itself along, and the note away."""
        with self._source.whole(Access.READ) as source, self._target.whole(Access.WRITE) as target:
            for table in OF_THE_STORE:
                _copy_rows(source, target, table)
            target.run("DELETE FROM properties WHERE name = :name", {"name": NOTE})

    def _there(self, expected: list[str]) -> set[str]:
        with self._target.whole(Access.READ) as target:
            there = set(spaces(target))
        if there - set(expected):
            raise self._holds_something_else()
        return there

    def _is_same(self, snapshot: Whole, space: str) -> bool:
        with self._target.whole(Access.READ) as target:
            is_same = digests(target, space) == digests(snapshot, space)
        if is_same:
            self.already_there.append(space)
        return is_same

    def _copy_space(self, snapshot: Whole, space: str) -> Digests:
        copied: dict[str, Digest] = {}
        with self._target.whole(Access.WRITE) as target:
            into = {shape.table.name: shape for shape in shapes(target)}
            clear(target, space)
            for shape in shapes(snapshot):
                tally = Tally()
                name = shape.table.name
                into[name].write(space, tallied(shape.lines(space), tally))
                copied[name] = tally.digest()
            index(target, space)
            if digests(target, space) != copied:
                raise StoreCorrupt(f"{target.location}: {space!r} differs from what was copied")
        return copied

    def _holds_something_else(self) -> NotEmpty:
        return NotEmpty("the target holds something else; nothing was written. Choose another one")


def _copy_rows(source: Whole, target: Whole, table: str) -> None:
    """Bring over what is small and of no space; what the target has besides is left to it."""
    columns = target.tables()[table]
    names = [column.name for column in columns]
    keys = [column.name for column in columns if column.key_position is not None]
    values = ", ".join(f":{name}" for name in names)
    newer = ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    text = (
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"
        f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {newer}"
    )
    rows = source.stream(f"SELECT {', '.join(names)} FROM {table}")
    target.run_many(text, (dict(zip(names, row, strict=True)) for row in rows))


def _note(whole: Whole) -> str | None:
    row = first(whole.stream("SELECT value FROM properties WHERE name = :name", {"name": NOTE}))
    return None if row is None else str(row[0])


def _origin(source: StoreDescription) -> str:
    return f"{source.kind} {source.location}"


_COUNTS = """
SELECT s.space, s.created_at,
    (SELECT count(*) FROM sessions x WHERE x.space = s.space),
    (SELECT count(*) FROM session_history x WHERE x.space = s.space),
    (SELECT count(*) FROM facts x
        WHERE x.space = s.space AND x.deleted_at IS NULL AND x.superseded_by IS NULL),
    (SELECT count(*) FROM documents x WHERE x.space = s.space AND x.deleted_at IS NULL)
FROM spaces s ORDER BY s.space
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceCounts:
    """What a space holds now: facts that stand, documents that were not deleted."""

    space: str
    created_at: datetime
    sessions: int
    records: int
    facts: int
    documents: int


def count_spaces(store: Store) -> list[SpaceCounts]:
    with store.whole(Access.READ) as whole:
        return [reader(SpaceCounts)(row) for row in whole.stream(_COUNTS)]

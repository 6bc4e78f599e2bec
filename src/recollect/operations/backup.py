"""Backups: copies of a store at one moment, taken while others write, and restoring from one.

A backup of SQLite is its file, copied page by page; one of PostgreSQL is an archive of all spaces,
read in one snapshot. Either can be restored into either.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from recollect.clock import Clock
from recollect.collection import check_flag
from recollect.config import Settings
from recollect.errors import NotEmpty, NotFound, UsageError
from recollect.operations.archive import export, load, opened
from recollect.operations.files import (
    check_free,
    copy,
    exchange,
    made_aside,
    put_into_place,
    reading,
)
from recollect.operations.migrating import migrate
from recollect.operations.tables import spaces
from recollect.store.address import path_of
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.store.sqlite.database import SqliteWhole
from recollect.store.whole import Access, first

# Published files are not part of a backup: those at their place are of another time, or none.
_WITHOUT_FILES = "UPDATE consolidations SET files_generation = 0"

BackupKind = Literal["database", "archive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """Where a backup is and what it is."""

    path: Path
    kind: BackupKind
    size_bytes: int
    spaces: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A store that was made from a backup, and where the one is kept whose place it took."""

    path: Path
    kind: BackupKind
    store: str
    spaces: int
    kept: Path | None


def back_up(store: Store, path: str | Path) -> BackedUp:
    """Copy a store into a new file, while others go on writing to the store."""
    path = Path(path).absolute()
    check_free(path, "a backup is never written over")
    with store.whole(Access.READ) as whole:
        count = len(spaces(whole))  # and from here on it is this moment that is read
        if isinstance(whole, SqliteWhole):
            with made_aside(path) as aside:
                copy(whole.connection, aside, origin=whole.location)
                put_into_place(aside, path)
            return BackedUp(
                path=path, kind="database", size_bytes=path.stat().st_size, spaces=count
            )
    exported = export(store, path)
    return BackedUp(
        path=path, kind="archive", size_bytes=exported.size_bytes, spaces=len(exported.spaces)
    )


class Restoring:
    """Makes a store from a backup: into a place of its own, or in place of a store on request."""

    def __init__(self, backup: str | Path, settings: Settings, clock: Clock) -> None:
        self._backup = Path(backup).absolute()
        self._settings = settings
        self._clock = clock
        if not self._backup.is_file():
            raise NotFound(f"there is no backup {self._backup}")
        self._kind: BackupKind = "archive" if zipfile.is_zipfile(self._backup) else "database"

    def restore(self, address: str | Path, *, replace: bool = False) -> Restored:
        """With `replace` an old store is kept beside the new one; it must not be in use."""
        path, replace = path_of(address), check_flag(replace, "replace")
        if path is None:
            if replace:
                raise UsageError(
                    "a store on a server is not replaced: restore into a new schema, with"
                    " ?schema=<name> in the URL, and use that"
                )
            return self._into_server(str(address))
        if path.is_dir():
            check_free(path, "it is a directory: name a file")
        if not replace:
            check_free(path, "use another path, or --replace, which keeps the old one beside it")
        return self._into_file(path)

    def _into_file(self, path: Path) -> Restored:
        kept: Path | None = None
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with made_aside(path) as aside:
            if self._kind == "database":
                with reading(self._backup) as source:
                    copy(source, aside, origin=str(self._backup))
            count = self._checked(aside)
            if path.exists():
                kept = exchange(aside, path, self._clock.now())
            else:
                put_into_place(aside, path)
        return self._restored(str(path), count, kept)

    def _checked(self, aside: Path) -> int:
        """Open it as a store, which refuses what is none, and bring in what is in an archive."""
        with closing(open_store(aside, self._settings, self._clock)) as store:
            if self._kind == "archive":
                load(store, self._backup)
            else:
                with store.whole(Access.WRITE) as whole:
                    whole.run(_WITHOUT_FILES)
            return _count_spaces(store)

    def _into_server(self, address: str) -> Restored:
        with closing(open_store(address, self._settings, self._clock)) as target:
            if self._kind == "archive":
                self._check_empty(target)
                load(target, self._backup)
            else:
                self._migrate_copy(target)
            return self._restored(target.describe().location, _count_spaces(target), None)

    def _migrate_copy(self, target: Store) -> None:
        """From a copy, so that the backup stays as it is."""
        with self._copy_name() as aside:
            with reading(self._backup) as source:
                copy(source, aside, origin=str(self._backup))
            with closing(open_store(aside, self._settings, self._clock)) as source_store:
                migrate(source_store, target, origin=f"backup {self._backup}")

    @contextmanager
    def _copy_name(self) -> Iterator[Path]:
        """Beside the backup, where the next attempt clears away what a killed one has left."""
        if os.access(self._backup.parent, os.W_OK):
            with made_aside(self._backup) as aside:
                yield aside
            return
        with TemporaryDirectory(prefix="recollect-") as directory:
            yield Path(directory) / "backup.db"

    def _check_empty(self, target: Store) -> None:
        """Nothing but what an earlier attempt at the same brought is there: load looks at that."""
        version = target.describe().schema_version
        with opened(self._backup, version) as archive:
            expected = {entry.space for entry in archive.spaces}
        with target.whole(Access.READ) as whole:
            others = set(spaces(whole)) - expected
        if others:
            raise NotEmpty(f"{target.describe().location} holds something else; use a new schema")

    def _restored(self, location: str, count: int, kept: Path | None) -> Restored:
        return Restored(path=self._backup, kind=self._kind, store=location, spaces=count, kept=kept)


def _count_spaces(store: Store) -> int:
    with store.whole(Access.READ) as whole:
        row = first(whole.stream("SELECT count(*) FROM spaces"))
    return 0 if row is None else int(row[0])

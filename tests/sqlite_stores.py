"""New stores on SQLite as copies of one that was made as ever.

To make the schema takes longer than most tests. The first store of a test process is migrated step
by step; what came of it is kept, and whoever wants an empty store later gets that. Tests that are
about the making ask for `new_store_url` or name a file of their own: a file is never touched here
unless a fixture puts it there.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import apsw
import pytest

from recollect.clock import Clock, ManualClock, to_micros
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect.store.schema import migrations, newest_version
from recollect.store.sqlite import database, files

_migrate = files.migrate


@cache
def _made() -> bytes:
    """A whole store, as a file of default settings is once it is closed."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "memory.db"
        open_store(f"sqlite:///{path}?synchronous=off", Settings(), ManualClock()).close()
        return path.read_bytes()


@cache
def _made_in_memory() -> apsw.Connection:
    """The same where it can be copied from."""
    kept = apsw.Connection(":memory:")
    _migrate(kept, ManualClock(), ":memory:")
    return kept


def put_empty_store(path: Path) -> None:
    """A file that holds a store and nothing in it, for its owner alone as those we make."""
    path.touch(mode=0o600)
    path.write_bytes(_made())


def migrate_by_copy(writer: apsw.Connection, clock: Clock, location: str) -> int:
    """What `migrate` does to a store in memory, where all are alike and none was there before."""
    if location != ":memory:" or _is_changed(files):
        return _migrate(writer, clock, location)
    with writer.backup("main", _made_in_memory(), "main") as copying:
        copying.step()
    writer.execute("UPDATE schema_version SET applied_at = ?", (to_micros(clock.now()),))
    return newest_version("sqlite")


def _is_changed(module: ModuleType) -> bool:
    """Whether a test has other migrations in force than there are."""
    return module.migrations is not migrations


def copy_stores_in_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(database, "migrate", migrate_by_copy)

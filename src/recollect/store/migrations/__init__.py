"""Numbered migrations, one file per number and dialect, each applied in a transaction of its own.

A store that was killed between two of them goes on with the next one; a store that has more of them
than this version knows is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from recollect.errors import SchemaTooNew
from recollect.store.sql import Dialect

CREATE_VERSION_TABLE = """
CREATE TABLE IF NOT EXISTS schema_version (
    version BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)
"""

_FILE = re.compile(r"(\d{4})_(\w+)\.(sqlite|postgres)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of the schema."""

    version: int
    name: str
    script: str


@cache
def migrations(dialect: Dialect) -> tuple[Migration, ...]:
    """Every migration of a dialect, in order and without a gap."""
    found = []
    for file in Path(__file__).parent.iterdir():
        match = _FILE.fullmatch(file.name)
        if match and match[3] == dialect:
            found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    found.sort(key=lambda migration: migration.version)
    assert [m.version for m in found] == list(range(1, len(found) + 1)), "numbers have a gap"
    return tuple(found)


def newest_version(dialect: Dialect) -> int:
    return len(migrations(dialect))


def refuse_newer(version: int, dialect: Dialect, location: str) -> None:
    known = newest_version(dialect)
    if version > known:
        raise SchemaTooNew(
            f"{location} has schema version {version}; this Recollect knows {known}. "
            "Upgrade Recollect, or open another store. Nothing was changed."
        )

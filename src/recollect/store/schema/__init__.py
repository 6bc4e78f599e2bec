"""The schema: numbered files for both databases, each applied in a transaction of its own.

The first file is the whole schema; later ones change it. A migration that was killed between two of
them continues with the next one. A store with more of them than this version knows is refused, and
so is one that was made before the numbering was restarted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")
_FOR = re.compile(r"^ *-- (?:only (sqlite|postgres)|both)$", re.MULTILINE)
_COMMENT = re.compile(r" *--[^\n]*")
_CREATED = re.compile(r"CREATE TABLE (\w+) \((.*)\)", re.DOTALL)
_STORED = re.compile(r"ALTER TABLE (\w+) SET \(.*\)")
_SPACE = re.compile(r"^    space TEXT", re.MULTILINE)
_ITS_SPACE = re.compile(r"^    space TEXT .*(?:NOT NULL|PRIMARY KEY)", re.MULTILINE)
_WORDS = {
    "sqlite": [(r"\bBOOLEAN\b", "INTEGER")],
    "postgres": [
        (
            r"\b(\w+) INTEGER PRIMARY KEY(?: AUTOINCREMENT)?,",
            r"\1 BIGINT GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (space, \1),",
        ),
        (r"\bINTEGER\b", "BIGINT"),
        (r"\bTEXT\b", 'TEXT COLLATE "C"'),
        (r"\bBLOB\b", "BYTEA"),
        (r"\) STRICT(?:, WITHOUT ROWID)?;", ");"),
    ],
}


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of the schema."""

    version: int
    name: str
    statements: tuple[str, ...]

    @property
    def tables_with_space(self) -> tuple[str, ...]:
        """The tables it makes whose rows are shown to their space alone."""
        return self._tables(_SPACE)

    @property
    def tenant_tables(self) -> tuple[str, ...]:
        """Those of which every row belongs to a space: what is partitioned, or sharded, by it."""
        return self._tables(_ITS_SPACE)

    def partitioned(self, count: int) -> Migration:
        """The same with every tenant table in so many hash partitions by its space.

        A partition lets in nobody who does not come through its table, where the policies are.
        """
        tables = set(self.tenant_tables)
        made: list[str] = []
        for statement in self.statements:
            created, stored = _CREATED.match(statement), _STORED.match(statement)
            if created and created[1] in tables:
                made.append(f"{statement} PARTITION BY HASH (space)")
                for part in range(count):
                    name = _partition(created[1], part)
                    made += [
                        (
                            f"CREATE TABLE {name} PARTITION OF {created[1]}"
                            f" FOR VALUES WITH (MODULUS {count}, REMAINDER {part})"
                        ),
                        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
                        f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY",
                    ]
            elif stored and stored[1] in tables:  # a partitioned table stores nothing itself
                names = (_partition(stored[1], part) for part in range(count))
                made += [statement.replace(stored[1], name, 1) for name in names]
            else:
                made.append(statement)
        return replace(self, statements=tuple(made))

    def _tables(self, column: re.Pattern[str]) -> tuple[str, ...]:
        made = [_CREATED.match(statement) for statement in self.statements]
        return tuple(each[1] for each in made if each and column.search(each[2]))


def _partition(table: str, part: int) -> str:
    return f"{table}_p{part}"


@cache
def migrations(dialect: Dialect) -> tuple[Migration, ...]:
    """Every migration of a dialect, in order and without a gap."""
    found = []
    for file in Path(__file__).parent.iterdir():
        match = _FILE.fullmatch(file.name)
        if match:
            text = file.read_text(encoding="utf-8")
            found.append(Migration(int(match[1]), match[2], statements(text, dialect)))
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


def statements(text: str, dialect: Dialect) -> tuple[str, ...]:
    """The statements of a file that are for one dialect, in its words."""
    parts = [None, *_FOR.split(text)]
    chosen = [
        _in_words_of(dialect, part) if only is None else part
        for only, part in zip(parts[::2], parts[1::2], strict=True)
        if only in (None, dialect)
    ]
    return tuple(_split(_COMMENT.sub("", "".join(part or "" for part in chosen))))


def _in_words_of(dialect: Dialect, text: str | None) -> str:
    text = _COMMENT.sub("", text or "")
    for theirs, ours in _WORDS[dialect]:
        text = re.sub(theirs, ours, text)
    return text


def _split(text: str) -> list[str]:
    """At semicolons that end a line, but for those inside a trigger or a function."""
    found, begun = [], ""
    for line in text.splitlines(keepends=True):
        begun += line
        is_inside = begun.count("$$") % 2 or not _is_closed(begun)
        if line.rstrip().endswith(";") and not is_inside:
            found.append(begun.strip(" \n;"))
            begun = ""
    assert not begun.strip(), f"a statement has no end: {begun}"
    return found


def _is_closed(statement: str) -> bool:
    is_trigger = statement.lstrip().startswith("CREATE TRIGGER") and "BEGIN" in statement
    return not is_trigger or statement.rstrip().endswith("\nEND;")

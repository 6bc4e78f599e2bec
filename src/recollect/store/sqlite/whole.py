"""SQLite's side of whole tables: a connection of its own, in one transaction."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import apsw

from recollect.crashpoints import reach
from recollect.errors import InvalidValue
from recollect.store.sqlite.errors import translate
from recollect.store.whole import NO_VALUES, Access, Column, Values

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

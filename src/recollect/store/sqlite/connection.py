"""Named SQL on a connection to SQLite that is inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from recollect.store.relational.database import Asked, Params, Row
from recollect.store.sql import queries

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

"""The relational store: its aggregates over one database."""

from __future__ import annotations

from collections.abc import Callable

from recollect.domain import StoreDescription
from recollect.store.relational.database import Database
from recollect.store.relational.leases import RelationalLeases
from recollect.store.relational.marks import RelationalMarks
from recollect.store.relational.records import RelationalRecords
from recollect.store.relational.sessions import RelationalSessions


class RelationalStore:
    """Implements `recollect.store.protocol.Store`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.sessions = RelationalSessions(database)
        self.records = RelationalRecords(database)
        self.marks = RelationalMarks(database)
        self.leases = RelationalLeases(database)

    def describe(self) -> StoreDescription:
        return self._database.describe()

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._database.listen(wake)

    def close(self) -> None:
        self._database.close()

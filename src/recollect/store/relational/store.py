"""The relational store: its aggregates over one database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from recollect.domain import StoreDescription
from recollect.errors import StoreError
from recollect.store.relational.agents import RelationalAgents
from recollect.store.relational.audit import RelationalAudit
from recollect.store.relational.clearing import RelationalErasure
from recollect.store.relational.database import Connection, Database
from recollect.store.relational.documents import RelationalDocuments
from recollect.store.relational.extractions import RelationalExtractions
from recollect.store.relational.facts import RelationalFacts
from recollect.store.relational.generations import RelationalGenerations
from recollect.store.relational.imports import RelationalImports
from recollect.store.relational.keys import RelationalApiKeys
from recollect.store.relational.leases import RelationalLeases
from recollect.store.relational.ledger import RelationalLedger
from recollect.store.relational.marks import RelationalMarks
from recollect.store.relational.records import RelationalRecords
from recollect.store.relational.search import RelationalSearch
from recollect.store.relational.sessions import RelationalSessions
from recollect.store.relational.vectors import RelationalVectors
from recollect.store.whole import Access, Whole, WholeDatabase


class RelationalStore:
    """Implements `recollect.store.protocol.Store`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.sessions = RelationalSessions(database)
        self.records = RelationalRecords(database)
        self.marks = RelationalMarks(database)
        self.leases = RelationalLeases(database)
        self.extractions = RelationalExtractions(database)
        self.facts = RelationalFacts(database)
        self.ledger = RelationalLedger(database)
        self.documents = RelationalDocuments(database)
        self.search = RelationalSearch(database)
        self.vectors = RelationalVectors(database)
        self.agents = RelationalAgents(database)
        self.generations = RelationalGenerations(database)
        self.imports = RelationalImports(database)
        self.api_keys = RelationalApiKeys(database)
        self.erasure = RelationalErasure(database)
        self.audit = RelationalAudit(database)

    def describe(self) -> StoreDescription:
        return self._database.describe()

    def keep(self, name: str, value: str) -> str:
        def job(c: Connection) -> str:
            c.run("put_property", {"name": name, "value": value})
            row = c.row("get_property", {"name": name})
            assert row is not None
            return str(row[0])

        known = self._database.read(None, lambda c: c.row("get_property", {"name": name}))
        return self._database.write(None, job) if known is None else str(known[0])

    def whole(self, access: Access) -> AbstractContextManager[Whole]:
        """All tables, for what moves or examines everything: see `recollect.operations`."""
        if not isinstance(self._database, WholeDatabase):
            raise StoreError("this store cannot be read as a whole")
        return self._database.whole(access)

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._database.listen(wake)

    def close(self) -> None:
        self._database.close()

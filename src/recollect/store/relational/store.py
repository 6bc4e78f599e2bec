"""The relational store: its aggregates over one database."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING

from recollect.errors import StoreError
from recollect.store.whole import Access, Whole, WholeDatabase

if TYPE_CHECKING:
    from recollect.store.relational.access import (
        RelationalApiKeys,
        RelationalAudit,
        RelationalServing,
    )
    from recollect.store.relational.agents import RelationalAgents
    from recollect.store.relational.contexts import RelationalContexts
    from recollect.store.relational.database import Connection, Database
    from recollect.store.relational.documents import RelationalDocuments
    from recollect.store.relational.extractions import RelationalExtractions, RelationalLedger
    from recollect.store.relational.facts import RelationalFacts
    from recollect.store.relational.forgetting import RelationalErasure
    from recollect.store.relational.generations import RelationalGenerations
    from recollect.store.relational.imports import RelationalImports
    from recollect.store.relational.leases import RelationalLeases
    from recollect.store.relational.marks import RelationalMarks
    from recollect.store.relational.records import RelationalRecords
    from recollect.store.relational.search import RelationalSearch
    from recollect.store.relational.session_keys import RelationalSessions
    from recollect.store.relational.vectors import RelationalVectors
    from recollect.types.records import StoreDescription

# Where each aggregate is at home.
_HOMES = {
    "sessions": "session_keys.RelationalSessions",
    "records": "records.RelationalRecords",
    "marks": "marks.RelationalMarks",
    "leases": "leases.RelationalLeases",
    "extractions": "extractions.RelationalExtractions",
    "facts": "facts.RelationalFacts",
    "ledger": "extractions.RelationalLedger",
    "documents": "documents.RelationalDocuments",
    "search": "search.RelationalSearch",
    "vectors": "vectors.RelationalVectors",
    "agents": "agents.RelationalAgents",
    "generations": "generations.RelationalGenerations",
    "imports": "imports.RelationalImports",
    "api_keys": "access.RelationalApiKeys",
    "erasure": "forgetting.RelationalErasure",
    "audit": "access.RelationalAudit",
    "contexts": "contexts.RelationalContexts",
    "serving": "access.RelationalServing",
}


# A module that a thread is loading when the process forks could never be loaded in the child.
_loading = threading.RLock()
os.register_at_fork(
    before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release
)


class RelationalStore:
    """Implements `recollect.store.protocol.Store`.

    An aggregate is loaded when it is first asked for: a hook needs one or two, and an agent waits.
    """

    sessions: RelationalSessions
    records: RelationalRecords
    marks: RelationalMarks
    leases: RelationalLeases
    extractions: RelationalExtractions
    facts: RelationalFacts
    ledger: RelationalLedger
    documents: RelationalDocuments
    search: RelationalSearch
    vectors: RelationalVectors
    agents: RelationalAgents
    generations: RelationalGenerations
    imports: RelationalImports
    api_keys: RelationalApiKeys
    erasure: RelationalErasure
    audit: RelationalAudit
    contexts: RelationalContexts
    serving: RelationalServing

    def __init__(self, database: Database) -> None:
        self._database = database

    if not TYPE_CHECKING:  # checkers go by the names above

        def __getattr__(self, name: str) -> object:
            if name not in _HOMES:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            module, _, kind = _HOMES[name].partition(".")
            with _loading:
                home = import_module(f"recollect.store.relational.{module}")
            # The first one made is kept by all threads: an aggregate may hold state.
            return self.__dict__.setdefault(name, getattr(home, kind)(self._database))

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
            raise StoreError("this kind of store cannot be read as a whole")
        return self._database.whole(access)

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._database.listen(wake)

    def close(self) -> None:
        self._database.close()

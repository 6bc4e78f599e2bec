"""The relational store: its aggregates over one database."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING

from recollect.store.protocol import Store
from recollect.store.whole import Access, Whole

if TYPE_CHECKING:
    from recollect.store.relational.database import Aggregate, Connection, Database
    from recollect.types.records import StoreDescription

# The modules of the aggregates whose module has another name.
_MODULES = {
    "sessions": "session_keys",
    "ledger": "extractions",
    "api_keys": "access",
    "erasure": "forgetting",
    "audit": "access",
    "serving": "access",
}


# A module that a thread is loading when the process forks could never be loaded in the child.
_loading = threading.RLock()
os.register_at_fork(
    before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release
)


def aggregate_type(name: str) -> type[Aggregate]:
    """The class of an aggregate, of which `Store` has the name."""
    with _loading:
        home = import_module(f"recollect.store.relational.{_MODULES.get(name, name)}")
    found: type[Aggregate] = getattr(home, Store.__annotations__[name])
    return found


class RelationalStore(Store):
    """Implements `Store` on a database.

    An aggregate is loaded when it is first asked for: a hook needs one or two, and an agent waits.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    if not TYPE_CHECKING:  # checkers go by the names of `Store`

        def __getattr__(self, name: str) -> object:
            if name not in Store.__annotations__:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            # The first one made is kept by all threads: an aggregate may hold state.
            return self.__dict__.setdefault(name, aggregate_type(name)(self._database))

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
        return self._database.whole(access)

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._database.listen(wake)

    def close(self) -> None:
        self._database.close()

"""A store whose every verb goes through observers. A store that nobody observes is not wrapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ParamSpec, TypeVar, cast

from recollect.domain import StoreDescription
from recollect.errors import StoreError
from recollect.observing.seam import Observer, StoreVerb, begin, end, look
from recollect.store.protocol import Store
from recollect.store.vector_protocol import Vectors, VectorSearch
from recollect.store.verbs import KEEP, READ_WHOLE, WRITE_WHOLE, verbs_of
from recollect.store.whole import Access, Whole, WholeDatabase

P = ParamSpec("P")
T = TypeVar("T")


class ObservedStore:
    """Implements `recollect.store.protocol.Store` on another one."""

    def __init__(self, store: Store, observers: Sequence[Observer]) -> None:
        self._store = store
        self._observers = tuple(observers)
        self.sessions = self._seen("sessions", store.sessions)
        self.records = self._seen("records", store.records)
        self.marks = self._seen("marks", store.marks)
        self.leases = self._seen("leases", store.leases)
        self.extractions = self._seen("extractions", store.extractions)
        self.facts = self._seen("facts", store.facts)
        self.ledger = self._seen("ledger", store.ledger)
        self.documents = self._seen("documents", store.documents)
        self.search = self._seen("search", store.search)
        self.vectors = self._seen_vectors(store.vectors)
        self.agents = self._seen("agents", store.agents)
        self.generations = self._seen("generations", store.generations)
        self.imports = self._seen("imports", store.imports)
        self.api_keys = self._seen("api_keys", store.api_keys)
        self.erasure = self._seen("erasure", store.erasure)
        self.audit = self._seen("audit", store.audit)
        self.keep = seen(self._observers, KEEP, store.keep)

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._store.listen(wake)

    def describe(self) -> StoreDescription:
        return self._store.describe()

    @contextmanager
    def whole(self, access: Access) -> Iterator[Whole]:
        """All tables, where the store can be had like that."""
        if not isinstance(self._store, WholeDatabase):
            raise StoreError("this store cannot be read as a whole")
        verb = READ_WHOLE if access is Access.READ else WRITE_WHOLE
        minding = [observer for observer in self._observers if observer.minds(verb)]
        with look(minding, verb), self._store.whole(access) as whole:
            yield whole

    def close(self) -> None:
        self._store.close()

    def _seen(self, name: str, aggregate: T) -> T:
        """The aggregate as others see it: its verbs, each through those who mind it."""
        face = _Face()
        for method, verb in verbs_of(name).items():
            setattr(face, method, seen(self._observers, verb, getattr(aggregate, method)))
        return cast(T, face)

    def _seen_vectors(self, vectors: Vectors) -> Vectors:
        """What compares vectors is handed out, and is observed from then on."""
        face = self._seen("vectors", vectors)
        handed: list[tuple[VectorSearch, VectorSearch]] = []

        def search() -> VectorSearch | None:
            found = vectors.search()
            if found is None:
                return None
            if not handed or handed[0][0] is not found:
                handed[:] = [(found, self._seen("vector_search", found))]
            return handed[0][1]

        setattr(face, "search", search)  # noqa: B010  # a protocol has methods, no places
        return face


class _Face:
    """Has the verbs of an aggregate, set one by one."""


def seen(observers: Sequence[Observer], verb: StoreVerb, method: Callable[P, T]) -> Callable[P, T]:
    """A method that goes through those who mind it; itself where nobody does."""
    minding = tuple(observer for observer in observers if observer.minds(verb))
    if not minding:
        return method

    def observed(*args: P.args, **named: P.kwargs) -> T:
        ends = begin(minding, verb, args, named)
        try:
            result = method(*args, **named)
        except BaseException as error:
            end(ends, error, None)
            raise
        end(ends, None, result)
        return result

    return observed

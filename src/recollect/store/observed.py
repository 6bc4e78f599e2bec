"""Lists every verb of a store by aggregate, as a read, a write or upkeep, and observes the calls.

A verb that is listed neither as a read nor as upkeep is a write: a new verb is treated with caution
until it is listed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar, cast

from recollect.clock import Clock
from recollect.config import Settings
from recollect.errors import RecollectError
from recollect.ids import Ids
from recollect.observing.actors import actor
from recollect.observing.metrics import VERBS
from recollect.observing.seam import End, Kind, Observer, StoreVerb, watched
from recollect.observing.traces import VerbSpans
from recollect.store.protocol import Store
from recollect.store.relational.access import Audit
from recollect.store.relational.database import VectorSearch
from recollect.store.relational.store import aggregate_type
from recollect.store.relational.vectors import Vectors
from recollect.store.whole import Access, Whole
from recollect.types.access import DONE, AuditEntry
from recollect.types.records import Claim, KeyRef, StoreDescription

AGGREGATES: Final = (*Store.__annotations__, "vector_search")

_READS: Mapping[str, str] = {
    "sessions": "key_agents find_key current get list rotations spaces",
    "records": "recent recent_with_summary after all_rotations count summary",
    "marks": "find_invalidated max_seq count_since ranges marked waiting",
    "leases": "load jobs get",
    "extractions": "get list progress",
    "facts": "get list search search_metadata history waiting naming",
    "ledger": "calls",
    "documents": "find get find_deleted tree history search deleted references_from references_to"
    " broken orphans preview",
    "search": "candidates latest load revisions usage",
    "vectors": "pending",  # its texts go to the embedder
    "agents": "ref item find_record get list",
    "generations": "select memos standings list get parts documents",
    "api_keys": "list",
    "erasure": "moment forgettable",
    "audit": "list",
    "contexts": "get list readers asked versions",
    "vector_search": "nearest similarities",
}
_UPKEEP: Mapping[str, str] = {
    "marks": "counts bound_activity mark_idle request_marked waiting_newest",
    "leases": "claim claim_consolidation renew defer fail await_pause release"
    " ensure_recurring make_due finish_recurring counts count_due",
    "extractions": "revision count_due",
    "facts": "count count_waiting count_naming",
    "ledger": "reserve settle spent spent_by_purpose spent_daily",
    "documents": "render unrendered",  # says no more than the facts do
    "search": "prune",
    "vectors": "put changes use delete_others tend search",
    "agents": "due_signals next_signal_at counts fail release",
    "generations": "states hurry expire note_edits files_published without_files",
    "imports": "known cursor",
    "api_keys": "find used",  # who signs in is named with what they then do
    "audit": "begin end prune",
    "contexts": "add refs prune",  # the reads that are told of are in the log as such
    "serving": "begin put get drop count prune schema_version",
    "vector_search": "additions usual",
}
KEEP = StoreVerb(name="store.keep", kind=Kind.UPKEEP, parameters=("name", "value"))
READ_WHOLE = StoreVerb(name="store.read_whole", kind=Kind.READ, parameters=())
WRITE_WHOLE = StoreVerb(name="store.write_whole", kind=Kind.WRITE, parameters=())


@cache
def verbs_of(aggregate: str) -> Mapping[str, StoreVerb]:
    """The verbs of an aggregate by the name of their method."""
    kind = VectorSearch if aggregate == "vector_search" else aggregate_type(aggregate)
    parts = reversed(kind.__mro__)
    methods = {name: each for part in parts for name, each in vars(part).items()}
    return {
        name: StoreVerb(
            name=f"{aggregate}.{name}",
            kind=_kind(aggregate, name),
            parameters=method.__code__.co_varnames[1 : method.__code__.co_argcount],
        )
        for name, method in methods.items()
        if isinstance(method, FunctionType) and not name.startswith("_")
    }


def _kind(aggregate: str, name: str) -> Kind:
    if name in _READS.get(aggregate, "").split():
        return Kind.READ
    return Kind.UPKEEP if name in _UPKEEP.get(aggregate, "").split() else Kind.WRITE


P = ParamSpec("P")
T = TypeVar("T")


class ObservedStore(Store):
    """Implements `Store` on another one."""

    def __init__(self, store: Store, observers: Sequence[Observer]) -> None:
        self._store = store
        self._observers = tuple(observers)
        for name in Store.__annotations__:
            setattr(self, name, self._seen(name, getattr(store, name)))
        self.vectors = self._seen_vectors(store.vectors)
        self._keep = seen(self._observers, KEEP, store.keep)

    def keep(self, name: str, value: str) -> str:
        return self._keep(name, value)

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._store.listen(wake)

    def describe(self) -> StoreDescription:
        return self._store.describe()

    @contextmanager
    def whole(self, access: Access) -> Iterator[Whole]:
        verb = READ_WHOLE if access is Access.READ else WRITE_WHOLE
        minding = [observer for observer in self._observers if observer.minds(verb)]
        with watched(minding, verb, (), {}), self._store.whole(access) as whole:
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
        with watched(minding, verb, args, named) as came:
            result = method(*args, **named)
            came(result)
            return result

    return observed


TARGETS_MAX = 20
_OURS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_log = logging.getLogger(__name__)


class Auditor:
    """Implements `Observer` by entries in the store itself, each in a transaction of its own."""

    def __init__(self, audit: Audit, clock: Clock, *, reads: bool) -> None:
        self._audit = audit
        self._clock = clock
        self._ids = Ids(clock)
        self._kinds = {Kind.WRITE, Kind.READ} if reads else {Kind.WRITE}

    def minds(self, verb: StoreVerb) -> bool:
        return verb.kind in self._kinds

    def begin(self, verb: StoreVerb, args: Sequence[Any], named: Mapping[str, Any]) -> End:
        given = verb.given(args, named)
        if given.get("limit") == 0:  # a page of nothing shows nothing
            return lambda _error, _result: None
        entry = AuditEntry(
            id=self._ids.new(),
            space=verb.space(args, named),
            at=self._clock.now(),
            actor=actor(),
            verb=verb.name,
            targets=_distinct(_asked_for(given)),
        )
        self._audit.begin(entry)

        def end(error: BaseException | None, result: object) -> None:
            outcome = DONE if error is None else type(error).__name__
            targets = _distinct((*entry.targets, *_named_by(result)))
            try:
                self._audit.end(replace(entry, outcome=outcome, targets=targets))
            except RecollectError as failed:  # it was done, also where the store is closed by now
                _log.warning(
                    "the outcome of %s is not in the audit: %s", verb.name, type(failed).__name__
                )

        return end


def _asked_for(given: Mapping[str, Any]) -> Iterator[str]:
    """What a verb is done to, as far as it was told by an id."""
    for name, value in given.items():
        match value:
            case KeyRef(key_id=number):
                yield f"key:{number}"
            case Claim(job_id=number, key=key):
                yield f"job:{number}"
                yield from _ours((key,))
            case str() if name.endswith("_id") or name == "key":
                yield from _ours((value,))
            case tuple() | list() if name.endswith("_ids"):
                yield from _ours(value[:TARGETS_MAX])


def _named_by(result: object) -> Iterator[str]:
    """The ids in the result of a verb."""
    several = result[:TARGETS_MAX] if isinstance(result, list | tuple) else (result,)
    for each in several:
        yield from _ours((getattr(each, "id", None), getattr(each, "session_id", None)))


def _ours(ids: Iterable[object]) -> Iterator[str]:
    """Only what Recollect itself has made."""
    return (each for each in ids if isinstance(each, str) and _OURS.fullmatch(each))


def _distinct(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))[:TARGETS_MAX]


def observe(store: Store, settings: Settings, clock: Clock) -> Store:
    """The store with its observers around it; itself where nobody looks."""
    observers: list[Observer] = []
    if settings.metrics:
        observers.append(VERBS)
    if settings.traces:
        observers.append(VerbSpans())
    if settings.audit != "off":  # the last: what it does is measured as well
        observers.append(Auditor(store.audit, clock, reads=settings.audit == "all"))
    return ObservedStore(store, observers) if observers else store

"""What is alike by meaning: a question compared to the vectors of a space.

By the store where it can, in memory otherwise. Only where there is an embedder; recall goes on
without it when it cannot be asked.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

from recollect.embedding.protocol import FLOAT_BYTES, Embedder
from recollect.errors import ModelError
from recollect.observing.log_text import loggable
from recollect.recall.vectors import Comparison, SpaceVectors, VectorCache, VectorRow
from recollect.store.protocol import Store
from recollect.types.recall import EntryKind

if TYPE_CHECKING:
    from recollect.store.relational.database import VectorSearch

CHANGES = 8192  # rows read at a time
ALIKE = 100  # entries that a question brings along
ALIKE_SPREADS = 1.0  # above the usual, from which on likeness alone is a reason; by judgement
ALIKE_ENOUGH = 0.35  # of any embedder, so that where all is about one thing it is found
USUAL_CHANGE = 8  # one in so many additions has to be new before it is judged again
USUAL_SPACES_MAX = 10_000  # of which it is remembered

_KINDS = {kind.value: kind for kind in EntryKind}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HeldVectorQuery:
    """A question's vector among those of a space, which are held in memory.

    `usual` is what is usual between any two of the space's texts: the mean, and the spread.
    """

    compared: Comparison
    usual: tuple[float, float]

    def nearest(self, kinds: Collection[EntryKind]) -> Mapping[EntryKind, Sequence[int]]:
        """The keys of the entries most alike, of those that are more so than is usual."""
        nearest, least = self.compared.nearest(ALIKE, {*map(str, kinds)}), _least(*self.usual)
        return _by_kind((_KINDS[kind], key) for kind, key, value in nearest if value >= least)

    def cosines(self, entries: Sequence[tuple[EntryKind, int]]) -> Sequence[float | None]:
        """How alike entries are, named by kind and key; none where there is no vector."""
        return self.compared.of(entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVectorQuery:
    """The same among vectors that the store compares."""

    space: str
    model: str
    vector: bytes
    vectors: VectorSearch
    usual: tuple[float, float]

    def nearest(self, kinds: Collection[EntryKind]) -> Mapping[EntryKind, Sequence[int]]:
        nearest = self.vectors.nearest(self.space, self.model, self.vector, kinds, ALIKE)
        values = self.vectors.similarities(self.space, self.model, self.vector, nearest)
        least = _least(*self.usual)
        return _by_kind(each for each in nearest if values.get(each, -1.0) >= least)

    def cosines(self, entries: Sequence[tuple[EntryKind, int]]) -> Sequence[float | None]:
        found = self.vectors.similarities(self.space, self.model, self.vector, entries)
        return [found.get(entry) for entry in entries]


VectorQuery = HeldVectorQuery | StoredVectorQuery


def _least(usual: float, spread: float) -> float:
    """How alike an entry has to be, so that a question about nothing here finds nothing."""
    return min(usual + ALIKE_SPREADS * spread, ALIKE_ENOUGH)


def _by_kind(entries: Iterable[tuple[EntryKind, int]]) -> Mapping[EntryKind, Sequence[int]]:
    found: dict[EntryKind, list[int]] = defaultdict(list)
    for kind, key in entries:
        found[kind].append(key)
    return found


class Meaning:
    """The vectors of a store's spaces, and who makes them. Safe to share between threads."""

    def __init__(self, store: Callable[[], Store], embedder: Embedder, bytes_max: int) -> None:
        self._store = store
        self._embedder = embedder
        self._cache = VectorCache(bytes_max)
        self._dropped: WeakKeyDictionary[SpaceVectors, int] = WeakKeyDictionary()
        self._usual: dict[str, tuple[int, tuple[float, float]]] = {}  # after how many additions
        self._lock = threading.Lock()
        self._reading: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def of(self, space: str, text: str) -> VectorQuery | None:
        """A question's place among a space's vectors; none where there are none, or no embedder."""
        try:
            stored = self._store().vectors.search()
            if stored is not None:
                return self._stored(stored, space, text)
            vectors = self._current(space)
            if not len(vectors):
                return None
            vector = self._embedder.embed([text]).vectors[0]
            return HeldVectorQuery(vectors.compared(vector), vectors.usual())
        except ModelError as error:
            _log.warning(
                "recalled by words alone, as the embedder cannot be asked: %s", loggable(error)
            )
            return None

    def _stored(self, vectors: VectorSearch, space: str, text: str) -> VectorQuery | None:
        additions = vectors.additions(space)
        if not additions:
            return None
        judged, usual = self._usual.get(space, (0, (0.0, 0.0)))
        if abs(additions - judged) * USUAL_CHANGE > judged:
            usual = vectors.usual(space, self._embedder.name, self._embedder.dimensions)
            if len(self._usual) >= USUAL_SPACES_MAX:
                self._usual.clear()
            self._usual[space] = additions, usual
        return StoredVectorQuery(
            space=space,
            model=self._embedder.name,
            vector=self._embedder.embed([text]).vectors[0],
            vectors=vectors,
            usual=usual,
        )

    def _current(self, space: str) -> SpaceVectors:
        """The vectors of a space as they are now. Of threads that come at once, one reads them."""
        dimensions = self._embedder.dimensions  # which may have to be asked for: nobody else waits
        key = space, self._embedder.name
        with self._lock_of(space):
            vectors = self._cache.get(key, dimensions)
            is_all = False
            while not is_all:
                dropped = self._dropped.get(vectors, 0)
                changes = self._store().vectors.changes(
                    space, self._embedder.name, vectors.last_key, dropped, CHANGES
                )
                if changes.upto < vectors.last_key:
                    self._cache.discard(key)
                    vectors = self._cache.get(key, dimensions)
                    continue
                # What went and came again went first: its new vector stays.
                if changes.dropped:
                    vectors.drop(changes.dropped)
                vectors.extend(_of_length(FLOAT_BYTES * dimensions, changes.added))
                self._dropped[vectors] = changes.dropped_upto
                is_all = changes.is_all
            self._cache.trim()
            return vectors

    def _lock_of(self, space: str) -> threading.Lock:
        """One for each space: reading the vectors of another may take seconds."""
        with self._lock:
            return self._reading.setdefault(space, threading.Lock())


def _of_length(size: int, rows: Iterable[VectorRow]) -> Iterator[VectorRow]:
    """Vectors of so many bytes. Others are as if there were none."""
    for row in rows:
        yield row if len(row[3]) == size else (*row[:3], b"")

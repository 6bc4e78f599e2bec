"""What is alike by meaning: the vectors of a space kept in memory, and a question compared to them.

Only where there is an embedder. Recall goes on without it when it cannot be asked.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from recollect.embedding.protocol import Embedder
from recollect.errors import ModelError
from recollect.recall.vectors import SpaceVectors, VectorCache
from recollect.recollection import EntryKind
from recollect.store.protocol import Store

CHANGES = 8192  # rows read at a time
ALIKE = 100  # entries that a question brings along

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Likeness:
    """A question's vector among those of a space."""

    vector: bytes
    vectors: SpaceVectors

    def nearest(self, kinds: Collection[EntryKind]) -> Mapping[EntryKind, Sequence[int]]:
        """The keys of the entries most alike."""
        found: dict[EntryKind, list[int]] = defaultdict(list)
        for kind, key, _ in self.vectors.search(self.vector, ALIKE, kinds={*map(str, kinds)}):
            found[EntryKind(kind)].append(key)
        return found

    @property
    def usual(self) -> tuple[float, float]:
        """What is usual between any two of the space's texts: the mean, and the spread."""
        return self.vectors.usual()

    def cosines(self, entries: Collection[tuple[EntryKind, int]]) -> dict[str, float]:
        """How alike entries are, by kind and key; those without a vector are left out."""
        found = self.vectors.similarities(self.vector, ((str(kind), key) for kind, key in entries))
        return {f"{kind}:{key}": value for (kind, key), value in found.items()}


class Meaning:
    """The vectors of a store's spaces, and who makes them. Safe to share between threads."""

    def __init__(self, store: Callable[[], Store], embedder: Embedder, bytes_max: int) -> None:
        self._store = store
        self._embedder = embedder
        self._cache = VectorCache(bytes_max)
        self._dropped: WeakKeyDictionary[SpaceVectors, int] = WeakKeyDictionary()
        self._reading = threading.Lock()

    def of(self, space: str, text: str) -> Likeness | None:
        """A question's place among a space's vectors; none where there are none, or no embedder."""
        try:
            vectors = self._current(space)
            if not len(vectors):
                return None
            return Likeness(self._embedder.embed([text]).vectors[0], vectors)
        except ModelError as error:
            _log.warning("recalled by words alone, because the embedder cannot be asked: %s", error)
            return None

    def _current(self, space: str) -> SpaceVectors:
        """The vectors of a space as they are now. Of threads that come at once, one reads them."""
        model = self._embedder.name
        with self._reading:
            vectors = self._cache.get((space, model), self._embedder.dimensions)
            is_all = False
            while not is_all:
                dropped = self._dropped.get(vectors, 0)
                changes = self._store().vectors.changes(
                    space, model, vectors.last_key, dropped, CHANGES
                )
                # What went and came again went first: its new vector stays.
                vectors.drop(changes.dropped)
                vectors.extend(changes.added)
                self._dropped[vectors] = changes.dropped_upto
                is_all = changes.is_all
            self._cache.trim()
            return vectors

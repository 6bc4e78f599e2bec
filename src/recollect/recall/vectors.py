"""The vectors of one space in memory: searched in milliseconds, kept current row by row.

One writer at a time changes them, any number of readers search meanwhile: a reader works on the
chunks it found, and a writer puts others in their place. Up to `comparison.EXACT_ROWS` every vector
is compared; beyond, those whose signs are most alike, which misses a few of a thousand.

Whoever imports this loads numpy.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import islice

import numpy as np

from recollect.errors import InvalidValue
from recollect.recall.comparison import KEY_BITS, Comparison, EntryKey, codes_by_entry, in_order
from recollect.recall.vector_chunks import GONE, Chunk, Codes, Floats, Room, joined

VectorRow = tuple[int, str, int, bytes]  # the vector's own key, kind, entry key, vector

BATCH_ROWS = 8192
CHUNK_BYTES = 16_777_216
CHUNK_ROWS_MIN = 64
SPARE_SHARE = 12  # a chunk is begun with room for one in so many of all there are
GAPS_SHARE = 20  # a chunk is copied when more than one in so many of its rows are gone
USUAL_ROWS = 256  # that are compared with each other
USUAL_CHANGE = 8  # one in so many has to be new or gone


class SpaceVectors:
    """One vector for each entry of a space: the newest. Safe to share between threads."""

    def __init__(self, dimensions: int) -> None:
        if dimensions < 1:
            raise InvalidValue(f"a vector has at least one number, not {dimensions}")
        self.dimensions = dimensions
        self._last_key = 0
        self._chunks: tuple[Chunk, ...] = ()
        self._room: Room | None = None  # behind the last chunk, unless that is complete
        self._kinds: tuple[str, ...] = ()
        self._usual = (0, (0.0, 0.0))  # and of how many it was found
        self._writing = threading.Lock()

    def __len__(self) -> int:
        return _count(self._chunks)

    @property
    def last_key(self) -> int:
        """The key of the newest vector that was ever taken; 0 at first."""
        return self._last_key

    @property
    def nbytes(self) -> int:
        """Bytes of memory, with the room that is kept for more."""
        room = self._room
        held = sum(chunk.nbytes for chunk in self._chunks)
        return held + (room.spare_bytes if room is not None else 0)

    def catch_up(self, rows_after: Callable[[int], Iterable[VectorRow]]) -> None:
        """Take what came after `last_key`. Of threads that come at once, one reads it."""
        with self._writing:
            self._extend(rows_after(self._last_key))

    def extend(self, rows: Iterable[VectorRow]) -> None:
        """Take vectors, in the order of their keys. An entry's older vector goes.

        An empty one says that the entry has none.
        """
        with self._writing:
            self._extend(rows)

    def drop(self, entries: Iterable[EntryKey]) -> None:
        """Let go of the vectors of entries; of those that have none, too."""
        with self._writing:
            self._chunks = tuple(self._without(self._codes(entries)))

    def compared(self, query: bytes) -> Comparison:
        """A query among all there are now."""
        if len(query) != 4 * self.dimensions:
            raise InvalidValue(f"a query here has {self.dimensions} numbers of four bytes")
        numbers = np.frombuffer(query, dtype="<f4").astype(np.float32, copy=False)
        return Comparison(numbers if numbers.any() else None, self._chunks, self._kinds)

    def search(
        self,
        query: bytes,
        limit: int,
        allowed: Collection[EntryKey] | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[tuple[str, int, float]]:
        """The entries most similar to a query, best first: kind, key, similarity.

        `allowed` limits them to entries that were found otherwise, `kinds` to those of some kinds.
        """
        return self.compared(query).nearest(limit, allowed, kinds)

    def similarities(self, query: bytes, entries: Iterable[EntryKey]) -> dict[EntryKey, float]:
        """How similar entries are to a query; those without a vector are left out."""
        asked = list(entries)
        found = zip(asked, self.compared(query).of(asked), strict=True)
        return {entry: value for entry, value in found if value is not None}

    def usual(self) -> tuple[float, float]:
        """What two of the vectors have in common, as a rule: the mean, and the spread around it.

        Judged by some of them, and again when there are much more or fewer.
        """
        chunks = self._chunks
        count, (judged, found) = _count(chunks), self._usual
        if abs(count - judged) * USUAL_CHANGE > judged:
            found = _usual(chunks, count)
            self._usual = count, found
        return found

    def _extend(self, rows: Iterable[VectorRow]) -> None:
        taken = iter(rows)
        while batch := list(islice(taken, BATCH_ROWS)):
            self._learn_kinds(batch)
            newest = {self._code(kind, entry_key): vector for _, kind, entry_key, vector in batch}
            codes = np.fromiter(newest, dtype=np.int64, count=len(newest))
            sizes = np.fromiter(map(len, newest.values()), dtype=np.int64, count=len(newest))
            if not np.isin(sizes, (0, 4 * self.dimensions)).all():
                raise InvalidValue(f"a vector here has {self.dimensions} numbers of four bytes")
            content = b"".join(newest.values())
            vectors = np.frombuffer(content, dtype="<f4").astype(np.float32, copy=False)
            chunks = self._without(np.sort(codes))
            codes = codes[sizes > 0]
            self._append(chunks, vectors.reshape(-1, self.dimensions), codes)
            self._chunks = tuple(chunks)
            self._last_key = max(self._last_key, batch[-1][0])

    def _append(self, chunks: list[Chunk], vectors: Floats, codes: Codes) -> None:
        while len(codes):
            if self._room is not None:
                chunks.pop()  # it is the beginning of the next
            else:
                self._room = Room(self._capacity(chunks, len(codes)), self.dimensions)
            count = min(self._room.left, len(codes))
            chunks.append(self._room.filled(vectors[:count], codes[:count]))
            vectors, codes = vectors[count:], codes[count:]
            if not self._room.left:
                self._room = None
                _put(chunks, chunks.pop(), self._capacity(chunks))

    def _capacity(self, chunks: Sequence[Chunk], coming: int = 0) -> int:
        """How many rows the next chunk has: those that come at once, or a part of all there are."""
        rows = max((_count(chunks) + coming) // SPARE_SHARE, coming)
        return max(min(rows, CHUNK_BYTES // (4 * self.dimensions)), CHUNK_ROWS_MIN)

    def _without(self, wanted: Codes) -> list[Chunk]:
        """The chunks without these entries."""
        left = [
            chunk.emptied(gone) if len(gone := chunk.rows_of(wanted)) else chunk
            for chunk in self._chunks
        ]
        capacity = self._capacity(left)
        last = None
        if self._room is not None and self._room.capacity > 2 * capacity:
            self._room = None  # it was made for many more than there are now
            left[-1] = left[-1].compacted()
        elif self._room is not None:
            last = left.pop()
            self._room.take(last.codes)
        chunks: list[Chunk] = []
        for chunk in left:
            _put(chunks, chunk, capacity)
        return chunks if last is None else [*chunks, last]

    def _learn_kinds(self, rows: Sequence[VectorRow]) -> None:
        new = {kind: None for _, kind, _, _ in rows if kind not in self._kinds}
        if new:
            self._kinds = (*self._kinds, *new)

    def _code(self, kind: str, key: int) -> int:
        if key >> KEY_BITS:
            raise InvalidValue(f"an entry's key that is none: {key}")
        return self._kinds.index(kind) << KEY_BITS | key

    def _codes(self, entries: Iterable[EntryKey]) -> Codes:
        """The codes of entries that can be here, in order, each once."""
        return in_order(codes_by_entry(self._kinds, entries))


def _count(chunks: Iterable[Chunk]) -> int:
    return sum(chunk.rows - chunk.gone for chunk in chunks)


def _put(chunks: list[Chunk], chunk: Chunk, capacity: int) -> None:
    """Add a complete chunk: one with many gaps is copied without, or joins the one before it."""
    if chunk.gone == chunk.rows:
        return
    if chunk.gone * GAPS_SHARE <= chunk.rows:
        chunks.append(chunk)
    elif chunks and _count([chunks[-1], chunk]) <= capacity:
        chunks[-1] = joined([chunks[-1].compacted(), chunk.compacted()])
    else:
        chunks.append(chunk.compacted())


def _usual(chunks: Sequence[Chunk], count: int) -> tuple[float, float]:
    if count < 2:
        return 0.0, 0.0
    step = -(-count // USUAL_ROWS)
    some, before = [], 0
    for chunk in chunks:  # every so many of all, however they lie in chunks
        rows = np.flatnonzero(chunk.codes != GONE)
        some.append(chunk.vectors[rows[-before % step :: step]])
        before += len(rows)
    vectors = np.concatenate(some)
    pairs = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
    return float(pairs.mean()), float(pairs.std())


class VectorCache:
    """The vectors of the spaces used last, within a bound of bytes. Safe to share."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._spaces: OrderedDict[Hashable, SpaceVectors] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, dimensions: int) -> SpaceVectors:
        """The vectors kept by this key, which names space and embedder; at first there are none."""
        with self._lock:
            vectors = self._spaces.get(key)
            if vectors is None or vectors.dimensions != dimensions:
                vectors = self._spaces[key] = SpaceVectors(dimensions)
            self._spaces.move_to_end(key)
            self._trim()
            return vectors

    def trim(self) -> None:
        """Let go of what was not used for longest, down to the bound. The last used stays."""
        with self._lock:
            self._trim()

    def discard(self, key: Hashable) -> None:
        with self._lock:
            self._spaces.pop(key, None)

    @property
    def nbytes(self) -> int:
        with self._lock:
            return sum(vectors.nbytes for vectors in self._spaces.values())

    def _trim(self) -> None:
        held = sum(vectors.nbytes for vectors in self._spaces.values())
        while held > self._bytes_max and len(self._spaces) > 1:
            _, oldest = self._spaces.popitem(last=False)
            held -= oldest.nbytes

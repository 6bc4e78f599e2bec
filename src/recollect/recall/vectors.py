"""The vectors of one space in memory: searched in milliseconds, kept current row by row.

One writer at a time changes them, any number of readers search meanwhile: a reader works on the
chunks it found, and a writer puts others in their place. Up to `EXACT_ROWS` every vector is
compared; beyond, those whose signs are most alike, which misses a few of a thousand.

Whoever imports this loads numpy.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import islice

import numpy as np

from recollect.errors import InvalidValue
from recollect.recall.vector_chunks import (
    GONE,
    Chunk,
    Codes,
    Floats,
    Room,
    Rows,
    joined,
    signs_of,
)

EntryKey = tuple[str, int]  # its kind, and its key among those of the kind
VectorRow = tuple[int, str, int, bytes]  # the vector's own key, kind, entry key, vector

EXACT_ROWS = 20_000  # below, comparing every vector takes two milliseconds at most
SHORTLIST_ROWS = 4096
SHORTLIST_SHARE = 128  # one in so many; both found by measuring how many of the best are missed
SHORTLIST_PER_HIT = 160

BATCH_ROWS = 8192
CHUNK_BYTES = 16_777_216
CHUNK_ROWS_MIN = 64
SPARE_SHARE = 12  # a chunk is begun with room for one in so many of all there are
GAPS_SHARE = 20  # a chunk is copied when more than one in so many of its rows are gone
SIMILARITY_DIGITS = 6
USUAL_ROWS = 256  # that are compared with each other
USUAL_CHANGE = 8  # one in so many has to be new or gone
KEY_BITS = 56  # of an entry's code; above them stands its kind

Part = tuple[Chunk, Rows | None]  # rows of a chunk; None is all of them


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
        sought, chunks = self._read(query), self._chunks
        if sought is None or limit < 1:
            return []
        parts: list[Part] = [(chunk, None) for chunk in chunks]
        if allowed is not None:
            wanted = self._codes(allowed)
            parts = [(chunk, chunk.rows_of(wanted)) for chunk in chunks]
        if kinds is not None:
            parts = self._of_kinds(parts, kinds)
        return self._best(_shortlisted(parts, sought, limit), sought, limit)

    def similarities(self, query: bytes, entries: Iterable[EntryKey]) -> dict[EntryKey, float]:
        """How similar entries are to a query; those without a vector are left out."""
        sought, chunks = self._read(query), self._chunks
        if sought is None:
            return {}
        entry_of = self._by_code(entries)
        wanted = _in_order(entry_of)
        found: dict[EntryKey, float] = {}
        for chunk in chunks:
            if len(rows := chunk.rows_of(wanted)):
                values = chunk.similarities(sought, rows).tolist()
                theirs = map(entry_of.__getitem__, chunk.codes[rows].tolist())
                found.update(zip(theirs, values, strict=True))
        return found

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
        rows = (_count(chunks) + coming) // SPARE_SHARE
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

    def _read(self, query: bytes) -> Floats | None:
        """The query as numbers; None for one that resembles nothing."""
        if len(query) != 4 * self.dimensions:
            raise InvalidValue(f"a query here has {self.dimensions} numbers of four bytes")
        numbers = np.frombuffer(query, dtype="<f4").astype(np.float32, copy=False)
        return numbers if numbers.any() else None

    def _of_kinds(self, parts: list[Part], kinds: Collection[str]) -> list[Part]:
        known = [at for at, kind in enumerate(self._kinds) if kind in kinds]
        is_any = len(known) == len(self._kinds)
        limited: list[Part] = []
        for chunk, rows in parts:
            if is_any and not chunk.gone:  # mostly: nothing is to be left out
                limited.append((chunk, rows))
                continue
            codes = chunk.codes if rows is None else chunk.codes[rows]
            right = np.flatnonzero(np.isin(codes >> KEY_BITS, known))
            limited.append((chunk, right if rows is None else rows[right]))
        return limited

    def _best(self, parts: list[Part], query: Floats, limit: int) -> list[tuple[str, int, float]]:
        if not parts:
            return []
        values = np.concatenate([chunk.similarities(query, rows) for chunk, rows in parts])
        codes = np.concatenate(
            [chunk.codes if rows is None else chunk.codes[rows] for chunk, rows in parts]
        )
        if any(chunk.gone for chunk, _ in parts):
            values, codes = values[codes != GONE], codes[codes != GONE]
        if len(values) > limit:
            best = np.argpartition(-values, limit - 1)[:limit]
            values, codes = values[best], codes[best]
        values = values.round(SIMILARITY_DIGITS)  # the same vector is the same in every place
        order = np.lexsort((codes, -values))
        entries = self._entries(codes[order])
        return [
            (kind, key, value)
            for (kind, key), value in zip(entries, values[order].tolist(), strict=True)
        ]

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
        return _in_order(self._by_code(entries))

    def _by_code(self, entries: Iterable[EntryKey]) -> dict[int, EntryKey]:
        """The entries that can be here, by their codes."""
        parts = {kind: at << KEY_BITS for at, kind in enumerate(self._kinds)}
        return {
            parts[entry[0]] | entry[1]: entry
            for entry in entries
            if entry[0] in parts and not entry[1] >> KEY_BITS
        }

    def _entries(self, codes: Codes) -> list[EntryKey]:
        kinds, mask = self._kinds, (1 << KEY_BITS) - 1
        return [(kinds[code >> KEY_BITS], code & mask) for code in codes.tolist()]


def _in_order(codes: Collection[int]) -> Codes:
    return np.sort(np.fromiter(codes, dtype=np.int64, count=len(codes)))


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


def _shortlisted(parts: list[Part], query: Floats, limit: int) -> list[Part]:
    """The rows worth comparing: all, or where they are many, those whose signs are most alike."""
    total = sum(chunk.rows if rows is None else len(rows) for chunk, rows in parts)
    wanted = max(SHORTLIST_ROWS, total // SHORTLIST_SHARE, SHORTLIST_PER_HIT * limit)
    if total <= EXACT_ROWS or 4 * wanted >= total:
        return parts
    signs = signs_of(query[np.newaxis])[:, 0]
    distances = []
    counts = np.zeros(len(query) + 1, dtype=np.int64)
    for chunk, rows in parts:
        far = chunk.distances(signs)
        far = far if rows is None else far[rows]
        counts += np.bincount(far, minlength=len(counts))
        distances.append(far)
    furthest = np.searchsorted(np.cumsum(counts), wanted)
    shortlist: list[Part] = []
    for (chunk, rows), far in zip(parts, distances, strict=True):
        near = np.flatnonzero(far <= furthest)
        shortlist.append((chunk, near if rows is None else rows[near]))
    return shortlist


def _usual(chunks: Sequence[Chunk], count: int) -> tuple[float, float]:
    if count < 2:
        return 0.0, 0.0
    step = -(-count // USUAL_ROWS)
    some = [chunk.vectors[chunk.codes != GONE][::step] for chunk in chunks]
    vectors = np.concatenate(some)[:USUAL_ROWS]
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

"""The vectors of one space in memory: searched in milliseconds, kept current row by row.

One writer at a time changes them, any number of readers search meanwhile: a reader works on the
chunks it found, and a writer puts others in their place. Beside each vector lie its entry as one
number, and the signs of its numbers, a bit each: how many signs differ tells roughly how far apart
two vectors are, at a thirtieth of the reading. Up to `EXACT_ROWS` every vector is compared; beyond,
those whose signs are most alike, which misses a few of a thousand.

Importing this module loads numpy.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from recollect.errors import InvalidValue

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Signs = npt.NDArray[np.uint64]

GONE = -1
WORD_BITS = 64
GATHERED_SHARE = 0.25  # of a chunk; for more it is quicker to calculate all of it
# Compared in one call. Of more, a library of linear algebra makes work for several threads, and
# putting them to work takes many times as long as the work.
BLOCK_NUMBERS = 262_144


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk:
    """Some vectors. Those that a reader holds stay as they are, unless they are forgotten."""

    vectors: Floats  # a row each
    codes: Codes  # the entry of each row, or GONE
    order: npt.NDArray[np.int32]  # the rows by ascending code
    signs: Signs  # a column each, so that equal words lie together
    gone: int  # rows that hold nothing any more

    @property
    def rows(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        held = (self.vectors, self.codes, self.order, self.signs)
        return sum(each.nbytes for each in held)

    def rows_of(self, wanted: Codes) -> Rows:
        """The rows whose entry is among the wanted, which are in order and each once."""
        if not len(wanted):
            return np.empty(0, dtype=np.intp)
        if len(wanted) > self.rows:
            places = np.searchsorted(wanted, self.codes)
            return np.flatnonzero(wanted[np.minimum(places, len(wanted) - 1)] == self.codes)
        places = np.searchsorted(self.codes, wanted, sorter=self.order)
        rows = self.order[np.minimum(places, self.rows - 1)]
        found: Rows = rows[self.codes[rows] == wanted].astype(np.intp)
        return found

    def row_of_each(self, wanted: Codes) -> Rows:
        """The row of each wanted entry, in their order; below 0 where it has none here."""
        places = np.searchsorted(self.codes, wanted, sorter=self.order)
        rows = self.order[np.minimum(places, self.rows - 1)]
        is_here = (self.codes[rows] == wanted) & (wanted != GONE)
        found: Rows = np.where(is_here, rows, -1)
        return found

    def similarities(self, query: Floats, rows: Rows | None = None) -> Floats:
        """What each row, or each of these, has in common with a query."""
        if rows is None:
            return _products(self.vectors, query)
        if len(rows) > GATHERED_SHARE * self.rows:
            return _products(self.vectors, query)[rows]
        return _products(self.vectors[rows], query)

    def distances(self, signs: Signs) -> npt.NDArray[np.uint16]:
        """How many signs of each row differ from these."""
        total = np.zeros(self.rows, dtype=np.uint16)
        for mine, word in zip(self.signs, signs, strict=True):
            total += np.bitwise_count(mine ^ word)
        return total

    def emptied(self, rows: Rows) -> Chunk:
        """The chunk without what stands in these rows.

        It is wiped where it lies: what is forgotten is gone for readers on their way, too.
        """
        codes = self.codes.copy()
        codes[rows] = GONE
        self.vectors[rows] = 0
        self.signs[:, rows] = 0
        return chunk_of(self.vectors, codes, self.signs)

    def compacted(self) -> Chunk:
        """A copy of the rows that are left, and of nothing else."""
        rows = np.flatnonzero(self.codes != GONE)
        return chunk_of(self.vectors[rows], self.codes[rows], self.signs[:, rows])


def _products(vectors: Floats, query: Floats) -> Floats:
    """What each vector has in common with a query, some rows at a time."""
    step = max(BLOCK_NUMBERS // len(query), 1)
    if len(vectors) <= step:
        return vectors @ query
    found = np.empty(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), step):
        np.dot(vectors[start : start + step], query, out=found[start : start + step])
    return found


def chunk_of(vectors: Floats, codes: Codes, signs: Signs) -> Chunk:
    # Entries mostly come in order, which a stable sort is quick with.
    order = np.argsort(codes, kind="stable").astype(np.int32)
    gone = int(np.searchsorted(codes, 0, sorter=order))
    return Chunk(vectors=vectors, codes=codes, order=order, signs=signs, gone=gone)


def joined(chunks: Sequence[Chunk]) -> Chunk:
    return chunk_of(
        np.concatenate([each.vectors for each in chunks]),
        np.concatenate([each.codes for each in chunks]),
        np.concatenate([each.signs for each in chunks], axis=1),
    )


def signs_of(vectors: Floats) -> Signs:
    """The signs of vectors: a column of words for each row."""
    rows, dimensions = vectors.shape
    packed = np.zeros((rows, words_for(dimensions) * 8), dtype=np.uint8)
    bits = np.packbits(vectors > 0, axis=1)
    packed[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(packed.view(np.uint64).T)


def words_for(dimensions: int) -> int:
    return -(-dimensions // WORD_BITS)


EntryKey = tuple[str, int]  # its kind, and its key among those of the kind

EXACT_ROWS = 20_000  # below, comparing every vector takes two milliseconds at most
SHORTLIST_ROWS = 4096
SHORTLIST_SHARE = 128  # one in so many; both found by measuring how many of the best are missed
SHORTLIST_PER_HIT = 160
SIMILARITY_DIGITS = 6
KEY_BITS = 56  # of an entry's code; above them stands its kind

Part = tuple[int, Rows | None]  # rows of the chunk at a place; None is all of them


def codes_by_entry(kinds: Sequence[str], entries: Iterable[EntryKey]) -> dict[int, EntryKey]:
    """The entries that can be here, by their codes."""
    parts = {kind: at << KEY_BITS for at, kind in enumerate(kinds)}
    return {
        parts[entry[0]] | entry[1]: entry
        for entry in entries
        if entry[0] in parts and not entry[1] >> KEY_BITS
    }


def in_order(codes: Collection[int]) -> Codes:
    return np.sort(np.fromiter(codes, dtype=np.int64, count=len(codes)))


class Comparison:
    """A query, none where it resembles nothing, and the chunks it is compared to."""

    def __init__(self, query: Floats | None, chunks: Sequence[Chunk], kinds: Sequence[str]) -> None:
        self._query = query
        self._chunks = chunks
        self._kinds = kinds
        self._whole: dict[int, Floats] = {}  # what all rows of the chunk at a place have in common

    def nearest(
        self,
        limit: int,
        kinds: Collection[str] | None = None,
    ) -> list[tuple[str, int, float]]:
        """The entries most alike, best first: kind, key, similarity."""
        if self._query is None or limit < 1:
            return []
        parts: list[Part] = [(place, None) for place in range(len(self._chunks))]
        if kinds is not None:
            parts = self._of_kinds(parts, kinds)
        return self._best(self._shortlisted(parts, self._query, limit), self._query, limit)

    def of(self, entries: Sequence[EntryKey]) -> list[float | None]:
        """How alike each of these entries is; none for one without a vector."""
        if self._query is None:
            return [None] * len(entries)
        parts = {kind: at << KEY_BITS for at, kind in enumerate(self._kinds)}
        wanted = np.array(
            [
                parts[kind] | key if kind in parts and not key >> KEY_BITS else GONE
                for kind, key in entries
            ],
            dtype=np.int64,
        )
        found = np.zeros(len(wanted), dtype=np.float32)
        missing = np.ones(len(wanted), dtype=np.bool_)
        for place, chunk in enumerate(self._chunks):
            rows = chunk.row_of_each(wanted)
            here = np.flatnonzero(rows >= 0)
            if len(here):
                found[here] = self._similarities((place, rows[here]), self._query)
                missing[here] = False
        values: list[float | None] = [*found.tolist()]
        for at in np.flatnonzero(missing).tolist():
            values[at] = None
        return values

    def _similarities(self, part: Part, query: Floats) -> Floats:
        place, rows = part
        known = self._whole.get(place)
        if known is None and rows is None:
            known = self._whole[place] = self._chunks[place].similarities(query)
        if known is None:
            return self._chunks[place].similarities(query, rows)
        return known if rows is None else known[rows]

    def _codes(self, part: Part) -> Codes:
        place, rows = part
        codes = self._chunks[place].codes
        return codes if rows is None else codes[rows]

    def _of_kinds(self, parts: Iterable[Part], kinds: Collection[str]) -> list[Part]:
        known = [at for at, kind in enumerate(self._kinds) if kind in kinds]
        is_any = len(known) == len(self._kinds)
        limited: list[Part] = []
        for place, rows in parts:
            if is_any and not self._chunks[place].gone:  # mostly: nothing is to be left out
                limited.append((place, rows))
                continue
            right = np.flatnonzero(np.isin(self._codes((place, rows)) >> KEY_BITS, known))
            limited.append((place, right if rows is None else rows[right]))
        return limited

    def _best(self, parts: list[Part], query: Floats, limit: int) -> list[tuple[str, int, float]]:
        if not parts:
            return []
        values = np.concatenate([self._similarities(part, query) for part in parts])
        codes = np.concatenate([self._codes(part) for part in parts])
        if any(self._chunks[place].gone for place, _ in parts):
            values, codes = values[codes != GONE], codes[codes != GONE]
        if len(values) > limit:
            best = np.argpartition(-values, limit - 1)[:limit]
            values, codes = values[best], codes[best]
        values = values.round(SIMILARITY_DIGITS)  # the same vector is the same in every place
        order = np.lexsort((codes, -values))
        kinds, mask = self._kinds, (1 << KEY_BITS) - 1
        return [
            (kinds[code >> KEY_BITS], code & mask, value)
            for code, value in zip(codes[order].tolist(), values[order].tolist(), strict=True)
        ]

    def _shortlisted(self, parts: list[Part], query: Floats, limit: int) -> list[Part]:
        """The rows worth comparing: all, or where they are many, those whose signs are alike."""
        total = sum(len(self._codes(part)) for part in parts)
        wanted = max(SHORTLIST_ROWS, total // SHORTLIST_SHARE, SHORTLIST_PER_HIT * limit)
        if total <= EXACT_ROWS or 4 * wanted >= total:
            return parts
        signs = signs_of(query[np.newaxis])[:, 0]
        distances = []
        counts = np.zeros(len(query) + 1, dtype=np.int64)
        for place, rows in parts:
            far = self._chunks[place].distances(signs)
            far = far if rows is None else far[rows]
            counts += np.bincount(far, minlength=len(counts))
            distances.append(far)
        furthest = np.searchsorted(np.cumsum(counts), wanted)
        shortlist: list[Part] = []
        for (place, rows), far in zip(parts, distances, strict=True):
            near = np.flatnonzero(far <= furthest)
            shortlist.append((place, near if rows is None else rows[near]))
        return shortlist


VectorRow = tuple[int, str, int, bytes]  # the vector's own key, kind, entry key, vector

BATCH_ROWS = 8192
CHUNK_BYTES = 16_777_216
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
        """Bytes of memory."""
        return sum(chunk.nbytes for chunk in self._chunks)

    def extend(self, rows: Iterable[VectorRow]) -> None:
        """Take vectors, in the order of their keys. An entry's older vector goes.

        An empty one says that the entry has none.
        """
        with self._writing:
            self._extend(rows)

    def drop(self, entries: Iterable[EntryKey]) -> None:
        """Let go of the vectors of entries; of those that have none, too."""
        with self._writing:
            self._chunks = self._merged(self._without(self._codes(entries)))

    def compared(self, query: bytes) -> Comparison:
        """A query among all there are now."""
        if len(query) != 4 * self.dimensions:
            raise InvalidValue(f"a query here has {self.dimensions} numbers of four bytes")
        numbers = np.frombuffer(query, dtype="<f4").astype(np.float32, copy=False)
        return Comparison(numbers if numbers.any() else None, self._chunks, self._kinds)

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
            vectors = np.frombuffer(content, dtype="<f4").astype(np.float32)
            chunks = self._without(np.sort(codes))
            vectors = vectors.reshape(-1, self.dimensions)
            chunks.append(chunk_of(vectors, codes[sizes > 0], signs_of(vectors)))
            self._chunks = self._merged(chunks)
            self._last_key = max(self._last_key, batch[-1][0])

    def _without(self, wanted: Codes) -> list[Chunk]:
        """The chunks without these entries."""
        return [
            chunk.emptied(gone) if len(gone := chunk.rows_of(wanted)) else chunk
            for chunk in self._chunks
        ]

    def _merged(self, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
        """The chunks, few and without many gaps: each that is not full is more than twice as long
        as the next, so that a row is copied a few times, however many come one by one."""
        rows_max = CHUNK_BYTES // (4 * self.dimensions)
        merged: list[Chunk] = []
        for chunk in chunks:
            if chunk.gone * GAPS_SHARE > chunk.rows:
                chunk = chunk.compacted()
            while (
                merged
                and merged[-1].rows <= 2 * chunk.rows
                and merged[-1].rows + chunk.rows <= rows_max
            ):
                chunk = joined([merged.pop(), chunk])
            if chunk.rows:
                merged.append(chunk)
        return tuple(merged)

    def _learn_kinds(self, rows: Sequence[VectorRow]) -> None:
        new = {kind: None for _, kind, _, _ in rows if kind not in self._kinds}
        if new:
            self._kinds = (*self._kinds, *new)

    def _code(self, kind: str, key: int) -> int:
        if key >> KEY_BITS:
            raise InvalidValue(f"not the key of an entry: {key}")
        return self._kinds.index(kind) << KEY_BITS | key

    def _codes(self, entries: Iterable[EntryKey]) -> Codes:
        """The codes of entries that can be here, in order, each once."""
        return in_order(codes_by_entry(self._kinds, entries))


def _count(chunks: Iterable[Chunk]) -> int:
    return sum(chunk.rows - chunk.gone for chunk in chunks)


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

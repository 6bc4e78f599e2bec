"""Stretches of vectors side by side, and the arithmetic on one of them.

Beside each vector lie its entry as one number, and the signs of its numbers, a bit each: how many
signs differ tells roughly how far apart two vectors are, at a thirtieth of the reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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


class Room:
    """A chunk that is being filled. Rows that were handed out are never written again."""

    def __init__(self, capacity: int, dimensions: int) -> None:
        # Zeros, since what memory held before may be a vector that was to be gone.
        self._vectors = np.zeros((capacity, dimensions), dtype=np.float32)
        self._codes = np.empty(capacity, dtype=np.int64)
        self._signs = np.zeros((words_for(dimensions), capacity), dtype=np.uint64)
        self._used = 0

    @property
    def capacity(self) -> int:
        return len(self._codes)

    @property
    def left(self) -> int:
        return self.capacity - self._used

    @property
    def spare_bytes(self) -> int:
        held = self._vectors.nbytes + self._codes.nbytes + self._signs.nbytes
        return held * self.left // self.capacity

    def filled(self, vectors: Floats, codes: Codes) -> Chunk:
        """The chunk with more rows, for which there is room."""
        start, self._used = self._used, self._used + len(codes)
        self._vectors[start : self._used] = vectors
        self._codes[start : self._used] = codes
        self._signs[:, start : self._used] = signs_of(vectors)
        return chunk_of(
            self._vectors[: self._used], self._codes[: self._used], self._signs[:, : self._used]
        )

    def take(self, codes: Codes) -> None:
        """Remember which rows of the chunk hold what, after some were emptied."""
        kept = self._codes.copy()  # readers hold on to the old ones
        kept[: self._used] = codes
        self._codes = kept

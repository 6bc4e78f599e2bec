"""One query among the vectors of a space: the entries most alike, and how alike any others are.

Works on the chunks it was given, whatever becomes of the space meanwhile. What was multiplied to
find the most alike is not multiplied again to tell how alike others are.

Whoever imports this loads numpy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from recollect.recall.vector_chunks import GONE, Chunk, Codes, Floats, Rows, signs_of

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
        allowed: Collection[EntryKey] | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[tuple[str, int, float]]:
        """The entries most alike, best first: kind, key, similarity."""
        if self._query is None or limit < 1:
            return []
        parts: list[Part] = [(place, None) for place in range(len(self._chunks))]
        if allowed is not None:
            wanted = in_order(codes_by_entry(self._kinds, allowed))
            parts = [(place, chunk.rows_of(wanted)) for place, chunk in enumerate(self._chunks)]
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

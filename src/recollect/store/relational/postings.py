"""Posting lists: which entries have a stem, newest first and never to their end; their order."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recollect.store.relational.asked import plain_fields
from recollect.store.relational.database import Asked, Params, Row
from recollect.types.recall import AllOf, EntryKind, Extent, Filters, Reach, Sought

POSTINGS_MIN = 100  # of one word, however many words a question has
RELATED_POSTINGS = 200  # of all the words together that may stand instead of one
RELATED = "~"

# Facts that said something else at the time that is asked for, by the stems of that.
Reworded = Mapping[int, frozenset[str]]

_POSTINGS = {
    EntryKind.RECORD: "record_postings",
    EntryKind.FACT: "fact_postings",
    EntryKind.SUMMARY: "summary_postings",
    EntryKind.DOCUMENT: "document_postings",
}
# The same, without those that may not be found: dearer, since each is looked at.
ASKED_POSTINGS = {
    **_POSTINGS,
    EntryKind.RECORD: "asked_record_postings",
    EntryKind.FACT: "asked_fact_postings",
}


# What finds entries by any of some words at once. Pages and summaries are found by a question's own
# words: they are long, and have words of every kind.
_RELATED = {
    EntryKind.RECORD: "related_record_postings",
    EntryKind.FACT: "related_fact_postings",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """For each stem the keys of the newest entries that have it, newest first.

    `cut` are the stems that more entries have. What was found by words related to a stem stands
    under that stem with RELATED behind it.
    """

    keys: Mapping[str, Sequence[int]]
    cut: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What asks for the postings of some stems, and reads the answer."""

    kind: EntryKind
    name: str
    words: Mapping[str, tuple[str, ...]]  # of each list: a stem, or those related to one
    limit: int

    def asked(self, asked: Params) -> list[Asked]:
        wanted = [self._asked(name, words, asked) for name, words in self.words.items()]
        if self.kind is EntryKind.RECORD and wanted:
            wanted.append(("unindexed_records", asked))
        return wanted

    def _asked(self, name: str, words: tuple[str, ...], asked: Params) -> Asked:
        if name.endswith(RELATED):
            limited = {"words": json.dumps(words), "limit": RELATED_POSTINGS}
            return _RELATED[self.kind], {**asked, **limited}
        return self.name, {**asked, "limit": self.limit, "word": name}

    def read(self, found: Sequence[Sequence[Row]], reworded: Reworded) -> Postings:
        listed = zip(self.words, found, strict=False)
        lists = {name: [row[0] for row in rows] for name, rows in listed}
        cut = frozenset(name for name, keys in lists.items() if len(keys) >= self._limit(name))
        if self.kind is EntryKind.RECORD and found:
            self._add_unindexed(lists, found[-1])
        if reworded:
            self._reword(lists, reworded)
        return Postings(keys=lists, cut=cut)

    def _limit(self, name: str) -> int:
        return RELATED_POSTINGS if name.endswith(RELATED) else self.limit

    def _reword(self, lists: dict[str, list[int]], reworded: Reworded) -> None:
        """Facts that were edited since the time that is asked for are found by what they said."""
        for name, keys in lists.items():
            then = [
                key for key, stems in reworded.items() if not stems.isdisjoint(self.words[name])
            ]
            now = [key for key in keys if key not in reworded]
            lists[name] = sorted((*then, *now), reverse=True)

    def _add_unindexed(self, lists: Mapping[str, list[int]], fresh: Sequence[Row]) -> None:
        """The records that are too new for the index, looked through one by one."""
        apart = [(key, frozenset(stems.split())) for key, stems in fresh]
        for name, keys in lists.items():
            words = self.words[name]
            keys[:0] = [key for key, stems in apart if not stems.isdisjoint(words)]


def lookup(kind: EntryKind, sought: Sought, filters: Filters, reach: Reach) -> Lookup:
    # A stem is letters and digits; anything else would mean something to a database.
    words: dict[str, tuple[str, ...]] = {stem: (stem,) for stem in sought.stems if stem.isalnum()}
    share = reach.postings // max(len(words), 1)
    if kind in _RELATED:
        words |= {stem + RELATED: sought.related[stem] for stem in words if stem in sought.related}
    return Lookup(
        kind=kind,
        name=(ASKED_POSTINGS if _is_narrow(kind, filters) else _POSTINGS)[kind],
        words=words,
        limit=max(POSTINGS_MIN, min(reach.postings_of_one, share)),
    )


def ranked(postings: Postings, extent: Extent) -> Iterator[int]:
    """The keys that have the rarest words first, the newest of equals before the others.

    Most keys have one of the words, and most of those are never asked for: they stay in their
    lists.
    """
    seen: set[int] = set()
    shared: set[int] = set()
    for keys in postings.keys.values():
        shared |= seen.intersection(keys)
        seen.update(keys)
    worth = dict.fromkeys(shared, 0.0)
    words: dict[float, list[str]] = defaultdict(list)
    for word, keys in postings.keys.items():
        rarity = math.log1p(extent.entries / (extent.holders[word] + 0.5))
        words[rarity].append(word)
        for key in shared.intersection(keys):
            worth[key] += rarity
    equals: dict[float, list[int]] = defaultdict(list)
    for key, value in worth.items():
        equals[value].append(key)
    for value in sorted(equals.keys() | words.keys(), reverse=True):
        alone = (key for word in words.get(value, ()) for key in postings.keys[word])
        yield from sorted(
            {*equals.get(value, ()), *(key for key in alone if key not in shared)}, reverse=True
        )


def _is_narrow(kind: EntryKind, filters: Filters) -> bool:
    """Whether entries are left out because of what is asked, and not just here and there."""
    named = (filters.agent, filters.project, filters.session_id, filters.trust)
    if any(each is not None for each in (filters.since, filters.until, filters.as_of, *named)):
        return True
    return bool(plain_fields(filters.where)) or (kind is EntryKind.FACT and is_picky(filters))


def is_picky(filters: Filters) -> bool:
    """Whether entries are looked at one by one after they are found."""
    return bool(filters.tags) or filters.trust is not None or filters.where != AllOf()

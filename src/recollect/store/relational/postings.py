"""Posting lists: which entries have a stem, newest first and never to their end; their order."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from recollect.recollection import AllOf, EntryKind, Extent, Filters, Reach
from recollect.store.relational.asked import plain_fields
from recollect.store.relational.database import Asked, Params, Row

POSTINGS_MIN = 100  # of one word, however many words a question has
SPLIT_STEMS_MIN = 8

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """For each stem the keys of the newest entries that have it, newest first.

    `cut` are the stems that more entries have.
    """

    keys: Mapping[str, Sequence[int]]
    cut: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What asks for the postings of some stems, and reads the answer."""

    kind: EntryKind
    name: str
    stems: Sequence[str]
    limit: int

    def asked(self, asked: Params) -> list[Asked]:
        limited = {**asked, "limit": self.limit}
        wanted: list[Asked] = [(self.name, {**limited, "word": stem}) for stem in self.stems]
        if self.kind is EntryKind.RECORD and wanted:
            wanted.append(("unindexed_records", asked))
        return wanted

    def read(self, found: Sequence[Sequence[Row]], reworded: Reworded) -> Postings:
        listed = zip(self.stems, found, strict=False)
        lists = {stem: [row[0] for row in rows] for stem, rows in listed}
        cut = frozenset(stem for stem, keys in lists.items() if len(keys) >= self.limit)
        if self.kind is EntryKind.RECORD and found:
            _add_unindexed(lists, found[-1])
        if reworded:
            _reword(lists, reworded)
        return Postings(keys=lists, cut=cut)


def lookup(kind: EntryKind, stems: Sequence[str], filters: Filters, reach: Reach) -> Lookup:
    share = reach.postings // max(len(stems), 1)
    return Lookup(
        kind=kind,
        name=(ASKED_POSTINGS if _is_narrow(kind, filters) else _POSTINGS)[kind],
        stems=stems,
        limit=max(POSTINGS_MIN, min(reach.postings_of_one, share)),
    )


def _reword(lists: dict[str, list[int]], reworded: Reworded) -> None:
    """Facts that were edited since the time that is asked for are found by what they said then."""
    for stem, keys in lists.items():
        then = [key for key, stems in reworded.items() if stem in stems]
        now = [key for key in keys if key not in reworded]
        lists[stem] = sorted((*then, *now), reverse=True)


def _add_unindexed(lists: Mapping[str, list[int]], fresh: Sequence[Row]) -> None:
    """The records that are too new for the index, looked through one by one."""
    # Taken apart once where there is much to look for; else it is quicker to look.
    if len(lists) > SPLIT_STEMS_MIN:
        apart = [(key, lists.keys() & stems.split()) for key, stems in fresh]
        for stem, keys in lists.items():
            keys[:0] = [key for key, stems in apart if stem in stems]
        return
    joined = [(key, f" {stems} ") for key, stems in fresh]
    for stem, keys in lists.items():
        keys[:0] = [key for key, stems in joined if f" {stem} " in stems]


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

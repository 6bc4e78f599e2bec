"""Finding entries by words: posting lists, newest first and never to their end, then the entries.

A question costs the same however much a space holds: of each word only the newest entries are
taken, so that a common word cannot be slow, and it says so little that nothing is lost by it.
"""

from __future__ import annotations

import builtins
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from recollect.clock import to_micros
from recollect.descriptors import cache_key, read_descriptor
from recollect.knowledge import Trust
from recollect.messages import Role
from recollect.recollection import (
    AllOf,
    Entry,
    EntryKind,
    Extent,
    Filters,
    Found,
    Hit,
    Reach,
    Sought,
    Usage,
    UsageKind,
)
from recollect.stems import indexed, indexed_record, indexed_summary
from recollect.store.relational.database import Connection, Database, Params, Row
from recollect.store.relational.entries import READ, passes, record_entry

_EVER = 2**62
POSTINGS_MIN = 100  # of one word, however many words a question has
POSTINGS_MAX = 1000
TRIED_SHARE = 2  # so many times as many entries are tried as are wanted
TRIED_MIN = 20
WHOLE_TEXT = 1_000_000
CONDITIONS_FACTOR = 20  # more entries are loaded where metadata then leaves out most of them
CAUGHT_UP_CHARS_MAX = 65_536

_POSTINGS = {
    EntryKind.RECORD: "record_postings",
    EntryKind.FACT: "fact_postings",
    EntryKind.SUMMARY: "summary_postings",
    EntryKind.DOCUMENT: "document_postings",
}
# The same, without those that may not be found: dearer, since each is looked at.
_ASKED_POSTINGS = {
    **_POSTINGS,
    EntryKind.RECORD: "asked_record_postings",
    EntryKind.FACT: "asked_fact_postings",
}
_EXTENTS = {
    EntryKind.RECORD: "record_extent",
    EntryKind.FACT: "fact_extent",
    EntryKind.SUMMARY: "summary_extent",
    EntryKind.DOCUMENT: "document_extent",
}
_LOADS = {
    EntryKind.RECORD: "load_records",
    EntryKind.FACT: "load_facts",
    EntryKind.SUMMARY: "load_summaries",
    EntryKind.DOCUMENT: "load_documents",
}


class RelationalSearch:
    """Implements `recollect.store.protocol.Search`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        asked = _asked(space, filters, now, reach.chars)
        if filters.where != AllOf():
            reach = replace(
                reach,
                postings=reach.postings * CONDITIONS_FACTOR,
                postings_of_one=reach.postings_of_one * CONDITIONS_FACTOR,
            )
        # A stem is letters and digits; anything else would mean something to a database.
        stems = [stem for stem in sought.stems if stem.isalnum()]

        def job(c: Connection) -> Found:
            entries: list[Entry] = []
            extents: dict[EntryKind, Extent] = {}
            for kind in sorted(filters.kinds):
                found, extents[kind] = _worded(c, kind, stems, asked, filters, reach)
                others = list(sought.alike.get(kind, ()))
                if kind is EntryKind.RECORD:
                    others += _timed(c, sought, asked, reach)
                known = {entry.key for entry in found}
                others = [key for key in dict.fromkeys(others) if key not in known]
                found += _load(c, kind, others, asked, filters)
                if kind is EntryKind.RECORD:
                    found += _beside(c, found, asked, filters, reach)
                entries += found
            return Found(entries=tuple(entries), extents=extents)

        return self._database.read(space, job)

    def load(
        self, space: str, keys: Mapping[EntryKind, Sequence[int]], filters: Filters, now: datetime
    ) -> builtins.list[Entry]:
        asked = _asked(space, filters, now, WHOLE_TEXT)

        def job(c: Connection) -> list[Entry]:
            return [
                entry
                for kind, wanted in keys.items()
                for entry in _load(c, kind, wanted, asked, filters)
            ]

        return self._database.read(space, job)

    def use(self, space: str, usage: Usage) -> int:
        def job(c: Connection) -> int:
            counted = 0
            # In one order, so that two who count the same things do not wait for each other.
            for hit in sorted(usage.hits, key=lambda hit: (hit.kind, hit.id)):
                counted += _use(c, space, usage, hit)
            return counted

        return self._database.write(space, job) if usage.hits else 0

    def usage(self, space: str, kind: EntryKind, entry_id: str) -> Mapping[UsageKind, int]:
        names = {"space": space, "entry_kind": kind.value, "entry_id": entry_id}
        rows = self._database.read(space, lambda c: c.rows("count_usages", names))
        return {UsageKind(row[0]): int(row[1]) for row in rows}

    def catch_up(self, limit: int) -> int:
        page = {"limit": limit, "chars_max": CAUGHT_UP_CHARS_MAX}
        # Looked for first, because there is nearly never anything to write.
        found = self._database.read(
            None, lambda c: {name: c.rows(name, page) for name in _WORDLESS}
        )
        for space in sorted({row[0] for rows in found.values() for row in rows}):
            named = {
                _WORDLESS[name][0]: [_WORDLESS[name][1](row) for row in rows if row[0] == space]
                for name, rows in found.items()
            }

            def job(c: Connection, named: Mapping[str, Sequence[Params]] = named) -> None:
                for name, rows in named.items():
                    c.run_many(name, rows)

            self._database.write(space, job)
        return sum(map(len, found.values()))

    def prune(self, before: datetime) -> int:
        names = {"before": to_micros(before)}
        spaces = [
            row[0] for row in self._database.read(None, lambda c: c.rows("aged_usages", names))
        ]

        def pruned(space: str) -> int:
            own = {**names, "space": space}
            return self._database.write(space, lambda c: len(c.rows("prune_usages", own)))

        return sum(map(pruned, spaces))


def _fact_words(row: Row) -> Params:
    space, key, content = row
    return {"space": space, "key": key, "content": content, "words": indexed(content)}


def _summary_words(row: Row) -> Params:
    return {"space": row[0], "key": row[1], "words": indexed_summary(*row[2:])}


def _record_words(row: Row) -> Params:
    return {"space": row[0], "key": row[1], "words": indexed_record(row[2])}


# What finds entries that are not indexed yet, what indexes them, and by which words.
_WORDLESS: Mapping[str, tuple[str, Callable[[Row], Params]]] = {
    "wordless_facts": ("set_fact_words", _fact_words),
    "wordless_extractions": ("set_extraction_words", _summary_words),
    "wordless_records": ("set_record_words", _record_words),
}


def _use(c: Connection, space: str, usage: Usage, hit: Hit) -> bool:
    """Count one use. What a fact rests on has been of use as well."""
    grounds = sorted({source.session_id for source in hit.sources})
    names = {
        "space": space,
        "turn_id": usage.turn_id,
        "kind": usage.kind.value,
        "entry_kind": hit.kind.value,
        "entry_id": hit.id,
        "session_id": grounds[0] if grounds else None,
        "now": to_micros(usage.at),
    }
    if c.row("insert_usage", names) is None:
        return False
    if hit.kind is EntryKind.FACT:
        c.run("use_fact", names)
    for session_id in grounds:
        c.run("use_extraction", {**names, "session_id": session_id})
    return True


def _asked(space: str, filters: Filters, now: datetime, chars_max: int) -> dict[str, Any]:
    """What is asked for, as the queries want it."""
    at = now if filters.as_of is None else filters.as_of
    until = _EVER if filters.until is None else to_micros(filters.until)
    if filters.as_of is not None:
        until = min(until, to_micros(filters.as_of) + 1)
    agent = filters.agent
    if agent is not None and not agent.startswith("/"):
        agent = cache_key(read_descriptor(agent))
    return {
        "space": space,
        "at": to_micros(at),
        "known": _EVER if filters.as_of is None else to_micros(filters.as_of),
        "since": -_EVER if filters.since is None else to_micros(filters.since),
        "until": until,
        "any_session": filters.session_id is None,
        "session_id": filters.session_id or "",
        "any_agent": agent is None,
        "agent": agent or "",
        "any_tags": not filters.tags,
        "tags": json.dumps(list(filters.tags), ensure_ascii=False),
        "any_trust": filters.trust is None,
        "trusts": json.dumps(sorted(filters.trust or ())),
        "roles": json.dumps([role.value for role in Role if _may_be(role, filters.trust)]),
        "any_project": filters.project is None,
        "project": filters.project or "",
        "chars_max": chars_max,
        "sources_max": 20,
    }


def _is_narrow(kind: EntryKind, filters: Filters) -> bool:
    """Whether entries are left out because of what is asked, and not just here and there."""
    named = (filters.agent, filters.project, filters.session_id, filters.trust)
    if any(each is not None for each in (filters.since, filters.until, filters.as_of, *named)):
        return True
    return kind is EntryKind.FACT and _is_picky(filters)


def _may_be(role: Role, trust: frozenset[Trust] | None) -> bool:
    """Whether what a role says can be of that trust; in some sessions a user is no person."""
    match role:
        case Role.USER:
            return trust is None or bool(trust & {Trust.USER, Trust.AGENT})
        case Role.ASSISTANT:
            return trust is None or Trust.AGENT in trust
        case _:
            return trust is None or Trust.TOOL in trust


def _loaded(reach: Reach, kind: EntryKind, filters: Filters) -> int:
    return reach.loaded[kind] * (CONDITIONS_FACTOR if filters.where != AllOf() else 1)


def _is_picky(filters: Filters) -> bool:
    """Whether entries are looked at one by one after they are found."""
    return bool(filters.tags) or filters.trust is not None or filters.where != AllOf()


def _worded(
    c: Connection,
    kind: EntryKind,
    stems: Sequence[str],
    asked: Params,
    filters: Filters,
    reach: Reach,
) -> tuple[list[Entry], Extent]:
    """The entries that have the rarest of the stems, best first, and how many there are."""
    room = _room(c, kind, asked)
    if not room.entries:
        return [], Extent(entries=0, holders=dict.fromkeys(stems, 0))
    limit = _loaded(reach, kind, filters)
    name = (_ASKED_POSTINGS if _is_narrow(kind, filters) else _POSTINGS)[kind]
    postings = _postings(c, kind, name, stems, asked, reach)
    extent = _extent(kind, room, postings)
    ranked = _ranked(postings, extent)
    found, are_missing = _first(c, kind, ranked, limit, asked, filters)
    is_cut = bool(postings.cut) or next(ranked, None) is not None
    if are_missing and is_cut and name != _ASKED_POSTINGS[kind]:
        # Those that may not be found have taken the place of others.
        postings = _postings(c, kind, _ASKED_POSTINGS[kind], stems, asked, reach)
        extent = _extent(kind, room, postings)
        found, _ = _first(c, kind, _ranked(postings, extent), limit, asked, filters)
    return found, extent


def _first(
    c: Connection,
    kind: EntryKind,
    ranked: Iterator[int],
    limit: int,
    asked: Params,
    filters: Filters,
) -> tuple[list[Entry], bool]:
    """So many of the first that may be found; and whether they are fewer, because some may not."""
    found: list[Entry] = []
    tried, tried_max = 0, limit if _is_picky(filters) else limit * TRIED_SHARE
    while len(found) < limit and tried < tried_max:
        wanted = max(limit - len(found), TRIED_MIN)
        some = list(islice(ranked, min(wanted, tried_max - tried)))
        if not some:
            break
        tried += len(some)
        found += _load(c, kind, some, asked, filters)
    return found[:limit], len(found) < min(tried, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Postings:
    """For each stem the keys of the newest entries that have it, newest first.

    `cut` are the stems that more entries have.
    """

    keys: Mapping[str, Sequence[int]]
    cut: frozenset[str]


def _postings(
    c: Connection, kind: EntryKind, name: str, stems: Sequence[str], asked: Params, reach: Reach
) -> _Postings:
    if not stems:
        return _Postings(keys={}, cut=frozenset())
    limit = max(POSTINGS_MIN, min(reach.postings_of_one, reach.postings // len(stems)))
    found = c.rows_each(name, [{**asked, "word": stem, "limit": limit} for stem in stems])
    lists = {stem: [row[0] for row in rows] for stem, rows in zip(stems, found, strict=True)}
    cut = frozenset(stem for stem, keys in lists.items() if len(keys) >= limit)
    if kind is EntryKind.RECORD:
        _add_unindexed(c, lists, asked)
    return _Postings(keys=lists, cut=cut)


def _add_unindexed(c: Connection, lists: Mapping[str, list[int]], asked: Params) -> None:
    """The records that are too new for the index, looked through one by one."""
    fresh = [(row[0], f" {row[1]} ") for row in c.rows("unindexed_records", asked)]
    for stem, keys in lists.items():
        keys[:0] = [key for key, stems in fresh if f" {stem} " in stems]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Room:
    """How many entries of a kind a space has, about, and the keys of the first and the last."""

    entries: int
    first: int
    last: int


def _room(c: Connection, kind: EntryKind, asked: Params) -> _Room:
    row = c.row(_EXTENTS[kind], {**asked, "limit": POSTINGS_MAX})
    count, low, high, first = (0, 0, 0, 0) if row is None else row
    if count >= POSTINGS_MAX and kind is not EntryKind.DOCUMENT:
        count = _spread(count, low, high, first)
    return _Room(entries=count, first=first, last=high)


def _extent(kind: EntryKind, room: _Room, postings: _Postings) -> Extent:
    holders = {stem: len(keys) for stem, keys in postings.keys.items()}
    for stem in postings.cut:
        count = holders[stem]
        if kind is not EntryKind.DOCUMENT:
            count = _spread(count, postings.keys[stem][-1], room.last, room.first)
        holders[stem] = min(room.entries, count)
    return Extent(entries=room.entries, holders=holders)


def _spread(count: int, low: int, high: int, first: int) -> int:
    """How many there are, if they are as dense below as in the newest part."""
    return max(count, count * (high - first + 1) // max(high - low + 1, 1))


def _ranked(postings: _Postings, extent: Extent) -> Iterator[int]:
    """The keys that have the rarest words first, the newest of equals before the others."""
    worth: dict[int, float] = defaultdict(float)
    for word, keys in postings.keys.items():
        rarity = math.log1p(extent.entries / (extent.holders[word] + 0.5))
        for key in keys:
            worth[key] += rarity
    # Twice, without a tuple for each of thousands: a sort leaves equals in their order.
    newest = sorted(worth, reverse=True)
    return iter(sorted(newest, key=worth.__getitem__, reverse=True))


def _load(
    c: Connection, kind: EntryKind, keys: Sequence[int], asked: Params, filters: Filters
) -> list[Entry]:
    if not keys:
        return []
    wanted = json.dumps(sorted(keys))  # in the order they are stored in
    rows = {row[0]: row for row in c.rows(_LOADS[kind], {**asked, "keys": wanted})}
    found = [READ[kind](rows[key]) for key in keys if key in rows]
    return _passing(found, filters)


def _passing(entries: list[Entry], filters: Filters) -> list[Entry]:
    if not _is_picky(filters):
        return entries
    return [entry for entry in entries if passes(entry, filters)]


def _timed(c: Connection, sought: Sought, asked: Params, reach: Reach) -> list[int]:
    limits = [
        {**asked, "start": to_micros(start), "end": to_micros(end), "limit": reach.timed}
        for start, end in sought.times
    ]
    found = c.rows_each("timed_records", limits) if limits else []
    return [row[0] for rows in found for row in rows][: reach.timed]


def _beside(
    c: Connection, entries: Sequence[Entry], asked: Params, filters: Filters, reach: Reach
) -> list[Entry]:
    """What was said just before and after the best records, which come first."""
    known = {entry.key for entry in entries}
    nearest = [entry.key for entry in entries[: reach.beside]]
    if not nearest:
        return []
    rows = c.rows("load_neighbours", {**asked, "keys": json.dumps(sorted(nearest))})
    found = {row[0]: record_entry(row) for row in rows if row[0] not in known}
    return _passing(list(found.values()), filters)

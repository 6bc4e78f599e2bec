"""Searches entries by words: posting lists, then the entries that they name, and their neighbours.

A question costs the same however much a space holds: of each word only the newest entries are
taken, so that a common word is not slow; it distinguishes so little that nothing is lost by it.
"""

from __future__ import annotations

import builtins
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice
from typing import Any

from recollect.clock import from_micros, to_micros
from recollect.descriptors import cache_key, read_descriptor
from recollect.messages import Role
from recollect.stemming import indexed_fact
from recollect.store.relational import rows as rows_of
from recollect.store.relational.database import (
    Aggregate,
    Asked,
    Connection,
    Params,
    Row,
    in_each_space,
)
from recollect.store.relational.entries import (
    READ,
    fact_entry,
    passes,
    read_sources,
    record_entry,
    summary_entry,
)
from recollect.store.relational.rows import storable, storable_json
from recollect.types.facts import Fact, FactTag, Trust
from recollect.types.recall import (
    AllOf,
    Condition,
    Entry,
    EntryKind,
    Extent,
    Filters,
    Found,
    Hit,
    HitUsage,
    Latest,
    Operator,
    PastSession,
    Reach,
    Sought,
    StatementRevision,
    UsageKind,
    Where,
)

SOURCES_MAX = 20  # of a fact that is shown, and facts of a document
WORDS_CHARS = 4000  # of what an entry is found by, to score it; what was found behind counts once
_EVER = 2**62


def asked_for(space: str, filters: Filters, now: datetime, chars_max: int) -> dict[str, Any]:
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
        "is_now": filters.as_of is None,
        "or_past": filters.or_past,
        **_asked_of(filters.trust),
        "any_fields": not (fields := plain_fields(filters.where)),
        "fields": json.dumps(fields, ensure_ascii=False),
        "any_project": filters.project is None and not filters.or_no_project,
        "project": filters.project or "",
        "or_no_project": filters.or_no_project,
        "chars_max": chars_max,
        "words_max": WORDS_CHARS,
        "sources_max": SOURCES_MAX,
    }


def _asked_of(trust: frozenset[Trust] | None) -> dict[str, Any]:
    """Parameters for the trust that is asked for. That of users depends on the session."""
    wanted = frozenset(Trust) if trust is None else trust
    said_by = {role: Trust.AGENT if role is Role.ASSISTANT else Trust.TOOL for role in Role}
    return {
        "any_trust": trust is None,
        "trusts": json.dumps(sorted(wanted)),
        "roles": json.dumps([role.value for role in Role if said_by[role] in wanted]),
        "peoples_word": Trust.USER in wanted,
        "agents_word": Trust.AGENT in wanted,
    }


def plain_fields(where: Where) -> dict[str, list[Any]]:
    """The fields of metadata that have to have one of some plain values, by those values."""
    match where:
        case AllOf(parts):
            return {name: values for part in parts for name, values in plain_fields(part).items()}
        case Condition(operator=Operator.EQ | Operator.IN):
            listed = where.value if where.operator is Operator.IN else [where.value]
            return (
                {where.field: list(listed)} if all(map(_is_plain, (where.field, *listed))) else {}
            )
        case _:
            return {}


def _is_plain(value: object) -> bool:
    """Whether every database reads it in JSON as it is meant."""
    if isinstance(value, float):
        return math.isfinite(value)
    return (
        value is None
        or isinstance(value, int)
        or (isinstance(value, str) and storable(value) == value)
    )


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


POSTINGS_MAX = 1000
TRIED_SHARE = 2  # so many times as many entries are tried as are wanted
TRIED_MIN = 20
WHOLE_TEXT = 1_000_000
CONDITIONS_FACTOR = 20  # more entries are loaded where metadata then leaves out most of them
REVISIONS_MAX = 1000
REWORDED_MAX = 1000  # facts that are looked through for what they said before they were edited

# What people ask of an agent, and what else a recap has.
_INSTRUCTIONS = (FactTag.INSTRUCTION, FactTag.CORRECTION, FactTag.PREFERENCE)
_PLANS = (FactTag.GOAL, FactTag.COMMITMENT)
_PERSONAL = (FactTag.DETAIL, FactTag.RELATION)
_KNOWLEDGE = (FactTag.DECISION, FactTag.PROCEDURE, FactTag.LESSON)

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


class Search(Aggregate):
    """Search of entries of every kind by their words. A committed entry can be found."""

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        """The entries most worth a look, because they have the rarest of the stems.

        However common a stem is, only so many entries are looked at: the newest. Their texts may
        be cut, and the sources of facts are left to `load`.
        """
        # Where facts come from is told of the few that are chosen, by `load`.
        asked = {**asked_for(space, filters, now, reach.chars), "sources_max": 0}
        if filters.where != AllOf():
            reach = replace(
                reach,
                postings=reach.postings * CONDITIONS_FACTOR,
                postings_of_one=reach.postings_of_one * CONDITIONS_FACTOR,
            )
        kinds = sorted(filters.kinds)
        # There nearly always are records: their postings come with the first answer.
        has_records = EntryKind.RECORD in kinds
        ahead = lookup(EntryKind.RECORD, sought, filters, reach) if has_records else None

        def job(c: Connection) -> Found:
            c.run("steer", {})
            entries: list[Entry] = []
            extents: dict[EntryKind, Extent] = {}
            rooms, postings = _rooms(c, kinds, asked, ahead)
            for kind, room in rooms.items():
                given = postings if kind is EntryKind.RECORD else None
                found, extents[kind] = _worded(c, room, sought, asked, filters, reach, given)
                alike = [key for key in sought.alike.get(kind, ()) if key not in room.reworded]
                named = _named_otherwise(c, kind, sought, asked, reach)
                known = {entry.key for entry in found}
                others = [key for key in dict.fromkeys((*named, *alike)) if key not in known]
                found += _load(c, kind, others, asked, filters)
                if kind is EntryKind.RECORD:
                    later = kinds[kinds.index(kind) + 1 :]
                    is_last = not any(rooms[each].entries or each in sought.alike for each in later)
                    found += _beside(c, found, alike, asked, filters, reach, is_last=is_last)
                entries += found
            return Found(entries=tuple(entries), extents=extents)

        return self._database.read(space, job)

    def load(
        self, space: str, keys: Mapping[EntryKind, Sequence[int]], filters: Filters, now: datetime
    ) -> builtins.list[Entry]:
        """Entries by their keys, as far as they are there and pass, whole and with sources."""
        asked = asked_for(space, filters, now, WHOLE_TEXT)

        def job(c: Connection) -> list[Entry]:
            c.run("steer", {})
            loaded = [
                entry
                for kind, wanted in keys.items()
                for entry in _load(c, kind, wanted, asked, filters)
            ]
            _follow_facts(c, loaded, asked)
            return loaded

        return self._database.read(space, job)

    def latest(
        self,
        space: str,
        filters: Filters,
        now: datetime,
        *,
        facts: int,
        sessions: int,
        beside: str = "",
    ) -> Latest:
        """What a recap of a project is made of, or of what belongs to none; so many of each.

        What people want, they may have said in no project. `beside` is the session that is shown
        anyway: neither what it came to, nor what was compacted into it, is among them.
        """
        here = replace(filters, or_no_project=filters.project is None)
        told = _among(filters, Trust.USER, Trust.AGENT)
        peoples = replace(filters, or_no_project=True, trust=told)
        users = replace(peoples, trust=_among(filters, Trust.USER))
        known = (*_PLANS, *(_PERSONAL if filters.project is None else _KNOWLEDGE))
        place = " ".join((filters.project or "").split())  # as facts name it: on one line

        def asked(which: Filters, *tags: FactTag) -> Asked:
            wanted = {"wanted": json.dumps(tags), "is_untagged": not tags, "limit": facts}
            names = {**asked_for(space, which, now, WHOLE_TEXT), "place": place, **wanted}
            return "latest_facts", names

        queries = [
            asked(users, *_INSTRUCTIONS),
            asked(replace(here, trust=told), *known),
            asked(peoples),
        ]
        last = {**asked_for(space, here, now, WHOLE_TEXT), "beside": beside, "limit": sessions}
        queries.append(("latest_sessions", last))
        rows = self._database.read(space, lambda c: c.rows_each(queries))
        past = [
            PastSession(entry=summary_entry(row[:7]), raw_memory=row[7], slug=row[8] or "")
            for row in rows[3]
        ]
        return Latest(
            instructions=_newest(rows[0], filters),
            known=_newest(rows[1], filters),
            added=_newest(rows[2], filters),
            sessions=tuple(each for each in past if passes(each.entry, filters)),
        )

    def revisions(
        self, space: str, sessions: Sequence[str], now: datetime, since: datetime | None = None
    ) -> builtins.list[StatementRevision]:
        """What was learned from these sessions and does not hold any more as it was said there.

        With `since` also what became so from then on, wherever it was learned; it names no session.
        """
        names = {"space": space, "at": to_micros(now), "limit": REVISIONS_MAX}
        wanted: list[Asked] = []
        if sessions:
            ids = json.dumps(sorted(set(sessions)))
            wanted.append(("revised_statements", {**names, "ids": ids}))
        if since is not None:
            wanted.append(("revised_since", {**names, "since": to_micros(since)}))
        if not wanted:
            return []
        found = self._database.read(space, lambda c: c.rows_each(wanted))
        return [_revision(row) for rows in found for row in rows]

    def use(self, space: str, usage: HitUsage) -> int:
        """Count uses of entries, each once in a turn; return how many had not been counted.

        What was opened or cited was used, and so were the sessions it rests on. What was only
        shown was not: facts count how often by itself.
        """
        # In one order, so that two who count the same things do not wait for each other.
        hits = sorted(usage.hits, key=lambda hit: (hit.kind, hit.id))
        if not hits:
            return 0
        return self._database.write(space, lambda c: _use(c, space, usage, hits))

    def usage(self, space: str, kind: EntryKind, entry_id: str) -> Mapping[UsageKind, int]:
        """The numbers of times an entry was shown, opened and cited."""
        names = {"space": space, "entry_kind": kind.value, "entry_id": entry_id}
        rows = self._rows(space, "count_usages", names)
        return {UsageKind(row[0]): int(row[1]) for row in rows}

    def prune(self, before: datetime) -> int:
        """Delete uses from before a time and return their number; their totals stay."""
        names = {"before": to_micros(before)}

        def pruned(c: Connection, space: str) -> int:
            return len(c.rows("prune_usages", {**names, "space": space}))

        return sum(in_each_space(self._database, None, ("aged_usages", names), pruned).values())


def _newest(rows: Iterable[Row], filters: Filters) -> tuple[Entry, ...]:
    """The facts among these that pass, the one that was said last first."""
    found = [entry for entry in map(fact_entry, rows) if passes(entry, filters)]
    return tuple(sorted(found, key=lambda entry: (entry.at, entry.key), reverse=True))


def _among(filters: Filters, *trusts: Trust) -> frozenset[Trust]:
    """Return those of these trusts that are asked for."""
    return frozenset(trusts).intersection(Trust if filters.trust is None else filters.trust)


def _revision(row: Row) -> StatementRevision:
    session_id, seq, seq_to, content, quote, is_withdrawn, at, successor = row
    return StatementRevision(
        session_id=session_id,
        seq=seq,
        seq_to=seq_to,
        statement=content,
        quote=quote,
        at=from_micros(at),
        is_withdrawn=bool(is_withdrawn),
        now=successor or "",
    )


def _use(c: Connection, space: str, usage: HitUsage, hits: Sequence[Hit]) -> int:
    """Count uses; how many were new. What a used fact rests on has been of use as well."""
    names = {
        "space": space,
        "turn_id": usage.turn_id,
        "kind": usage.kind.value,
        "now": to_micros(usage.at),
    }
    # First, as those who learn: they come to the same facts and memories in an order of their own.
    c.run("hold_memory", {"space": space})
    told = storable_json([_named(hit) for hit in hits])
    new = {(row[0], row[1]) for row in c.rows("insert_usages", {**names, "hits": told})}
    counted = [hit for hit in _once(hits) if (hit.kind.value, hit.id) in new]
    facts = [{**names, "entry_id": hit.id} for hit in counted if hit.kind is EntryKind.FACT]
    if usage.kind is UsageKind.SHOWN:
        c.run_many("show_fact", facts)
        return len(counted)
    grounds = Counter(
        session_id
        for hit in counted
        for session_id in {source.session_id for source in hit.sources}
    )
    sessions = [
        {**names, "session_id": session_id, "uses": uses}
        for session_id, uses in sorted(grounds.items())
    ]
    c.run_many("use_fact", facts)
    c.run_many("use_extraction", sessions)
    return len(counted)


def _once(hits: Sequence[Hit]) -> Iterable[Hit]:
    """Each that is named, in the same order; of those that are named alike the first."""
    known: dict[tuple[EntryKind, str], Hit] = {}
    for hit in hits:
        known.setdefault((hit.kind, hit.id), hit)
    return known.values()


def _named(hit: Hit) -> tuple[str, str, str | None, int]:
    """A hit by its name, and by the first of what it rests on."""
    grounds = ((source.session_id, source.seq) for source in hit.sources)
    session_id, seq = min(grounds, default=(None, 0))
    return hit.kind.value, hit.id, session_id, seq


def _loaded(reach: Reach, kind: EntryKind, filters: Filters) -> int:
    return reach.loaded[kind] * (CONDITIONS_FACTOR if filters.where != AllOf() else 1)


def _worded(
    c: Connection,
    room: _Room,
    sought: Sought,
    asked: Params,
    filters: Filters,
    reach: Reach,
    given: Postings | None,
) -> tuple[list[Entry], Extent]:
    """The entries that have the rarest of the stems, best first, and how many there are."""
    kind = room.kind
    if not room.entries:
        return [], Extent(entries=0, holders=dict.fromkeys(sought.stems, 0))
    limit = _loaded(reach, kind, filters)
    asking = lookup(kind, sought, filters, reach)
    postings = given or asking.read(c.rows_each(asking.asked(asked)), room.reworded)
    extent = _extent(room, postings)
    in_order = ranked(postings, extent)
    found, are_missing = _first(c, kind, in_order, limit, asked, filters)
    is_cut = bool(postings.cut) or next(in_order, None) is not None
    if are_missing and is_cut and asking.name != ASKED_POSTINGS[kind]:
        # Those that may not be found have taken the place of others.
        asking = replace(asking, name=ASKED_POSTINGS[kind])
        postings = asking.read(c.rows_each(asking.asked(asked)), room.reworded)
        extent = _extent(room, postings)
        found, _ = _first(c, kind, ranked(postings, extent), limit, asked, filters)
    _add_words(found, postings)
    return found, extent


def _add_words(entries: Sequence[Entry], postings: Postings) -> None:
    """What long entries were found by counts, also if it stands behind what is loaded of them."""
    long = [entry for entry in entries if len(entry.stems) >= WORDS_CHARS]
    for stem, keys in postings.keys.items() if long else ():
        if stem.endswith(RELATED):
            continue
        holders = frozenset(keys)
        for entry in long:
            if entry.key in holders and f" {stem} " not in f" {entry.stems} ":
                entry.stems = f"{entry.stems} {stem}"


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
    tried, tried_max = 0, limit if is_picky(filters) else limit * TRIED_SHARE
    while len(found) < limit and tried < tried_max:
        wanted = max(limit - len(found), TRIED_MIN)
        some = list(islice(ranked, min(wanted, tried_max - tried)))
        if not some:
            break
        tried += len(some)
        found += _load(c, kind, some, asked, filters)
    return found[:limit], len(found) < min(tried, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Room:
    """The approximate number of a space's entries of a kind, and their first and last keys."""

    kind: EntryKind
    entries: int
    first: int
    last: int
    # Facts that said something else at the time that is asked for, by the stems of that.
    reworded: Reworded = field(default_factory=dict)


def _rooms(
    c: Connection, kinds: Sequence[EntryKind], asked: Params, ahead: Lookup | None
) -> tuple[dict[EntryKind, _Room], Postings | None]:
    """How much there is of each kind, and the postings that are asked for with it."""
    limited = {**asked, "limit": POSTINGS_MAX}
    extents: list[Asked] = [(_EXTENTS[kind], limited) for kind in kinds]
    found = c.rows_each([*extents, *(ahead.asked(asked) if ahead is not None else ())])
    rooms = {kind: _room(kind, rows) for kind, rows in zip(kinds, found, strict=False)}
    if EntryKind.FACT in rooms and not asked["is_now"]:
        rows = c.rows("reworded_facts", {**asked, "reworded_max": REWORDED_MAX})
        reworded = {row[0]: _stems_then(rows_of.fact(row[1:])) for row in rows}
        rooms[EntryKind.FACT] = replace(rooms[EntryKind.FACT], reworded=reworded)
    return rooms, None if ahead is None else ahead.read(found[len(kinds) :], {})


def _stems_then(fact: Fact) -> frozenset[str]:
    return frozenset(indexed_fact(fact.content, fact.topic, fact.metadata).split())


def _room(kind: EntryKind, rows: Sequence[Row]) -> _Room:
    count, low, high, first = rows[0] if rows else (0, 0, 0, 0)
    if count >= POSTINGS_MAX and kind is not EntryKind.DOCUMENT:
        count = _spread(count, low, high, first)
    return _Room(kind=kind, entries=count, first=first, last=high)


def _extent(room: _Room, postings: Postings) -> Extent:
    holders = {stem: len(keys) for stem, keys in postings.keys.items()}
    for stem in postings.cut:
        count = holders[stem]
        if room.kind is not EntryKind.DOCUMENT:
            count = _spread(count, postings.keys[stem][-1], room.last, room.first)
        holders[stem] = min(room.entries, count)
    return Extent(entries=room.entries, holders=holders)


def _spread(count: int, low: int, high: int, first: int) -> int:
    """Estimate the count, if entries are as dense below as in the newest part."""
    return max(count, count * (high - first + 1) // max(high - low + 1, 1))


def _load(
    c: Connection, kind: EntryKind, keys: Sequence[int], asked: Params, filters: Filters
) -> list[Entry]:
    if not keys:
        return []
    wanted = json.dumps(sorted(keys))  # in the order they are stored in
    rows = {row[0]: row for row in c.rows(_LOADS[kind], {**asked, "keys": wanted})}
    found = [READ[kind](rows[key]) for key in keys if key in rows]
    return _passing(found, filters)


def _follow_facts(c: Connection, entries: Sequence[Entry], asked: Params) -> None:
    """A document rests on what the facts rest on that it names."""
    named = sorted({fact for entry in entries for fact in entry.facts[:SOURCES_MAX]})
    if not named:
        return
    rows = c.rows("grounds_of_facts", {**asked, "ids": json.dumps(named)})
    grounds = {row[0]: read_sources(row[1]) for row in rows}
    for entry in entries:
        followed = (grounds.get(fact, ()) for fact in entry.facts)
        entry.sources = tuple(dict.fromkeys(chain(entry.sources, *followed)))


def _passing(entries: list[Entry], filters: Filters) -> list[Entry]:
    if not is_picky(filters):
        return entries
    return [entry for entry in entries if passes(entry, filters)]


def _named_otherwise(
    c: Connection, kind: EntryKind, sought: Sought, asked: Params, reach: Reach
) -> list[int]:
    """What a question asks for by other than words: what is of a time, facts that were replaced."""
    if kind is EntryKind.RECORD:
        return _timed(c, "timed_records", sought, asked, reach)
    if kind is not EntryKind.FACT:
        return []
    rows = c.rows("replaced_facts", {**asked, "limit": sought.replaced}) if sought.replaced else []
    timed = _timed(c, "timed_facts", sought, asked, reach)
    return [*(key for row in rows for key in row if key is not None), *timed]


def _timed(c: Connection, name: str, sought: Sought, asked: Params, reach: Reach) -> list[int]:
    limits = [
        {**asked, "start": to_micros(start), "end": to_micros(end), "limit": reach.timed}
        for start, end in sought.times
    ]
    found = c.rows_each([(name, each) for each in limits])
    return [row[0] for rows in found for row in rows][: reach.timed]


def _beside(
    c: Connection,
    entries: Sequence[Entry],
    alike: Sequence[int],
    asked: Params,
    filters: Filters,
    reach: Reach,
    *,
    is_last: bool,
) -> list[Entry]:
    """What was said just before and after the best records: by words, and by likeness."""
    known = {entry.key for entry in entries}
    nearest = {entry.key for entry in entries[: reach.beside]}
    nearest.update(key for key in alike[: reach.beside] if key in known)
    if not nearest:
        return []
    wanted: list[Asked] = [("load_neighbours", {**asked, "keys": json.dumps(sorted(nearest))})]
    [rows] = c.last_rows(wanted) if is_last else c.rows_each(wanted)
    found = {row[0]: record_entry(row) for row in rows if row[0] not in known}
    return _passing(list(found.values()), filters)

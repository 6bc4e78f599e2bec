"""Short words for cases about search: things to find, questions, and what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.messages import Role
from recollect.stemming import asked_stems
from recollect.types.facts import NewFact, Source
from recollect.types.recall import (
    Entry,
    EntryKind,
    Extent,
    Filters,
    Found,
    Hit,
    HitUsage,
    Reach,
    Sought,
    UsageKind,
)
from recollect.types.records import KeyRef, NewRecord, Record, Recorded
from recollect_conformance.harness import KEY, NEVER, SPACE, Harness
from recollect_conformance.lessons import claim, day, draft, lesson, record

LATER = day(365)
FACT, DOCUMENT, SUMMARY, RECORD = (
    *(EntryKind.FACT, EntryKind.DOCUMENT),
    *(EntryKind.SUMMARY, EntryKind.RECORD),
)
ALONE = Reach(beside=0)  # without what was said around it
NEWEST = 256  # records that a store may look through before its index takes them


def reaching(entries: int, postings: int = 6000) -> Reach:
    """So many entries of each kind, and nothing around them."""
    return Reach(beside=0, postings=postings, loaded=dict.fromkeys(EntryKind, entries))


def tell(
    store: Harness,
    *texts: str,
    key: str = KEY,
    space: str = SPACE,
    said: datetime | None = None,
    role: Role = Role.USER,
) -> list[Record]:
    """Records in one call."""
    return tell_in(store, store.key(key, space=space), *texts, said=said, role=role)


def tell_in(
    store: Harness,
    ref: KeyRef,
    *texts: str,
    said: datetime | None = None,
    role: Role = Role.USER,
    metadata: str | None = None,
) -> list[Record]:
    """The same to a key that is open."""
    records = [
        NewRecord(role=role, content=text, said_at=said, metadata=metadata) for text in texts
    ]
    return store.say(ref, *records, policy=NEVER)


def sum_up(
    store: Harness, summary: str, *, memory: str = "", key: str = KEY, space: str = SPACE
) -> str:
    """One more record in a session, and what the session comes to; the id of the session."""
    return learn_in(store, store.key(key, space=space), summary=summary, memory=memory)


def learn_in(
    store: Harness,
    ref: KeyRef,
    *facts: NewFact,
    summary: str = "",
    memory: str = "",
    said: datetime | None = None,
) -> str:
    """One more record, and what a run over it finds, in the session of a key that is open."""
    tell_in(store, ref, store.text().content, said=said)
    session = store.sleep(ref)
    claimed = claim(store)
    assert claimed.key == session.id, "another job was due before"
    made = replace(draft(*facts, memory=memory, summary=summary), rollout_slug=None)
    assert isinstance(record(store, claimed, lesson(made)), Recorded)
    return session.id


def at(store: Harness, moment: datetime) -> None:
    """Let the time be that, or later."""
    store.clock.advance(max((moment - store.now()).total_seconds(), 0.0))


def look(
    store: Harness,
    text: str,
    *,
    space: str = SPACE,
    filters: Filters | None = None,
    reach: Reach = ALONE,
    now: datetime = LATER,
    sought: Sought | None = None,
) -> Found:
    """What a question in plain words finds. Nothing comes twice."""
    asked = sought or Sought(stems=())
    asked = replace(asked, stems=tuple(asked_stems(text)))
    found = store.handle.search.candidates(space, asked, filters or Filters(), now, reach)
    keys = [(entry.kind, entry.key) for entry in found.entries]
    assert len(set(keys)) == len(keys), "an entry came twice"
    return found


def entries(
    store: Harness,
    text: str,
    *kinds: EntryKind,
    space: str = SPACE,
    filters: Filters | None = None,
    reach: Reach = ALONE,
    now: datetime = LATER,
) -> list[Entry]:
    """What a question finds of some kinds, of all if none is named."""
    allowed = filters or Filters()
    if kinds:
        allowed = replace(allowed, kinds=frozenset(kinds))
    return list(look(store, text, space=space, filters=allowed, reach=reach, now=now).entries)


def found(
    store: Harness,
    text: str,
    *kinds: EntryKind,
    space: str = SPACE,
    filters: Filters | None = None,
    reach: Reach = ALONE,
    now: datetime = LATER,
) -> list[str]:
    """The texts of what a question finds, in alphabetical order."""
    given = entries(store, text, *kinds, space=space, filters=filters, reach=reach, now=now)
    return sorted(entry.text for entry in given)


def extent(store: Harness, text: str, kind: EntryKind, *, space: str = SPACE) -> Extent:
    only = Filters(kinds=frozenset({kind}))
    return look(store, text, space=space, filters=only).extents[kind]


def load(
    store: Harness,
    keys: Mapping[EntryKind, Sequence[int]],
    *,
    space: str = SPACE,
    filters: Filters | None = None,
    now: datetime = LATER,
) -> list[Entry]:
    return store.handle.search.load(space, keys, filters or Filters(), now)


def use(
    store: Harness,
    turn: str,
    *used: Entry,
    kind: UsageKind = UsageKind.CITED,
    space: str = SPACE,
) -> int:
    """Count what became of entries in a turn; how many had not been counted."""
    # As recall does: where a fact comes from is told by what is loaded.
    shown = [(load(store, {entry.kind: [entry.key]}, space=space) or [entry])[0] for entry in used]
    usage = HitUsage(kind=kind, turn_id=turn, hits=tuple(map(_hit, shown)), at=store.now())
    return store.handle.search.use(space, usage)


def uses(store: Harness, entry: Entry, *, space: str = SPACE) -> dict[UsageKind, int]:
    return dict(store.handle.search.usage(space, entry.kind, entry.id))


def _hit(entry: Entry) -> Hit:
    """What recall makes of an entry."""
    sources = entry.sources
    if entry.kind in (RECORD, SUMMARY):
        first = max(entry.seq, 1)
        sources = (Source(session_id=entry.session_id, seq=first, seq_to=first),)
    return Hit(
        id=entry.id,
        kind=entry.kind,
        text=entry.text,
        score=1.0,
        why={},
        sources=sources,
        at=entry.at,
        trust=entry.trust,
    )


def numbered(word: str, numbers: Iterable[int]) -> list[str]:
    """Texts that have a word in common and one of their own each."""
    return [f"{word} {word}{number}" for number in numbers]

"""Everything known of a person, a project or a thing: statements, a timeline, pages and sessions.

One query for each part, all of them bounded; statements come a page at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from recollect import collection
from recollect.documents.paths import memory_root
from recollect.documents.tree import Documents
from recollect.recall.recaller import Recaller
from recollect.runtime import Runtime
from recollect.session import page_size
from recollect.stemming import words
from recollect.topics.claims import claim_of
from recollect.topics.directory import directory_of
from recollect.topics.subjects import KnownPages
from recollect.types.facts import Fact
from recollect.types.recall import About, EntryKind, Hit, SessionMention, TimelineEvent

NAMED_MAX = 500  # facts that are read for other spellings of a name
RECORDS_MAX = 100  # that name it
PAGES_MAX = 20
SESSIONS_MAX = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Looks up what a space knows of something by its name."""

    runtime: Runtime
    space: str
    documents: Documents
    recaller: Recaller
    project: str | None  # only what belongs to it or to none; none: all there is

    def about(self, name: str, limit: int, before: str | None) -> About:
        name = " ".join((collection.check_label(name, "a name") or "").split())
        facts, now = self.runtime.store.facts, self.runtime.now()
        spellings = self._spellings(name)
        last = None if before is None else facts.get(self.space, collection.check_id(before))
        size = page_size(limit)
        listed = facts.naming(self.space, spellings, now, size, last)
        found = [each for each in listed if self._is_here(each.metadata.get("project"))]
        records = self._records(spellings)
        return About(
            name=spellings[0],
            spellings=spellings[1:],
            count=facts.count_naming(self.space, spellings, now),
            current=tuple(sorted(filter(lambda each: each.holds(now), found), key=_kind)),
            earlier=tuple(each for each in found if not each.holds(now)),
            timeline=tuple(sorted(_events(found), key=lambda each: (each.at, each.fact_id))),
            pages=tuple(self._pages(spellings)),
            sessions=tuple(self._sessions(found, records)),
            next=listed[-1].id if listed and len(listed) == size else None,
        )

    def _is_here(self, project: object) -> bool:
        return self.project is None or project in (None, self.project)

    def _recalled(self, name: str, limit: int, kind: EntryKind) -> list[Hit]:
        here = None if self.project is None else {"project": [self.project, None]}
        return self.recaller.recall(name, limit, kinds=[kind], filters=here)

    def _spellings(self, name: str) -> tuple[str, ...]:
        """The name in full as it is known, and how else whoever has it is called."""
        first = name.split(" ")[0]
        store, now = self.runtime.store.facts, self.runtime.now()
        found = store.naming(self.space, (first,), now, NAMED_MAX, None)
        people = memory_root().child("people")
        known = self.documents.find(str(people)) and self.documents.tree(str(people), depth=1)
        titles = {each.path.rpartition("/")[2]: each.title for each in known or ()}
        pages = KnownPages(people={slug: title for slug, title in titles.items() if title})
        names = directory_of((claim_of(fact, None) for fact in found), pages)
        entity = names.person(name)
        if entity is None:
            return (name,)
        short = entity.name.split(" ")[0]
        also = [short] if names.person(short) == entity else []
        return tuple(dict.fromkeys([entity.name, *also]))

    def _records(self, spellings: Sequence[str]) -> list[Hit]:
        """What was said about it, or by it."""
        sought = tuple(f" {words(each)} " for each in spellings)
        hits = self._recalled(spellings[0], RECORDS_MAX, EntryKind.RECORD)
        return [
            hit
            for hit in hits
            if any(each in f" {words(hit.text)} {words(hit.speaker)} " for each in sought)
        ]

    def _pages(self, spellings: Sequence[str]) -> Iterator[Hit]:
        sought = tuple(f" {words(each)} " for each in spellings)
        for hit in self._recalled(spellings[0], PAGES_MAX, EntryKind.DOCUMENT):
            if any(each in f" {words(f'{hit.title} {hit.id} {hit.text}')} " for each in sought):
                yield hit

    def _sessions(self, facts: Sequence[Fact], records: Iterable[Hit]) -> Iterator[SessionMention]:
        """Where it came up, the latest first."""
        moments: dict[str, list[datetime]] = {}
        said: dict[str, int] = {}
        for hit in records:
            session_id = hit.sources[0].session_id
            moments.setdefault(session_id, []).append(hit.at)
            said[session_id] = said.get(session_id, 0) + 1
        learned: dict[str, int] = {}
        for fact in facts:
            for session_id in {source.session_id for source in fact.sources}:
                learned[session_id] = learned.get(session_id, 0) + 1
                moments.setdefault(session_id, []).append(_said_at(fact))
        latest = sorted(moments, key=lambda each: (max(moments[each]), each), reverse=True)
        for session_id in latest[:SESSIONS_MAX]:
            state = self.runtime.store.sessions.get(self.space, session_id)
            if state is not None and state.remembered and self._is_here(state.project):
                yield SessionMention(
                    session_id=session_id,
                    key=state.key,
                    project=state.project,
                    first_at=min(moments[session_id]),
                    last_at=max(moments[session_id]),
                    records=said.get(session_id, 0),
                    facts=learned.get(session_id, 0),
                )


def _kind(fact: Fact) -> str:
    return fact.tags[0] if fact.tags else "~"  # those of no kind last


def _said_at(fact: Fact) -> datetime:
    moment = fact.valid_from or fact.created_at
    assert moment is not None, "a stored fact has its time"
    return moment


def _events(facts: Iterable[Fact]) -> Iterator[TimelineEvent]:
    """When what they tell of happened, else when they were said; and when they ceased to hold."""
    for fact in facts:
        happened = fact.happened_from or _dated(fact)
        event = ("said", _said_at(fact)) if happened is None else ("happened", happened)
        for name, at in (event, ("ended", fact.valid_to)):
            if at is not None:
                yield TimelineEvent(at=at, event=name, text=fact.content, fact_id=fact.id)


def _dated(fact: Fact) -> datetime | None:
    """The day that the rules read in it; none once somebody has put it into other words."""
    told = None if fact.extractor is None else fact.metadata.get("date")
    try:
        return datetime.fromisoformat(told).replace(tzinfo=UTC) if isinstance(told, str) else None
    except ValueError:
        return None

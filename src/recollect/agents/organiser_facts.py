"""What a store holds true of what pages of memory say: which facts stay, and which hold again.

A fact holds again when what had superseded it is gone: a page that said `until` is wrong then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from recollect.knowledge import Fact, FactQuery, When
from recollect.store.protocol import Store
from recollect.topics.claims import Claim, claims_of

FACTS_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingFacts:
    """The facts of a space that hold at a time, but for one that is looked after otherwise."""

    store: Store
    space: str
    now: datetime
    besides: str = ""

    def on(self, topics: Collection[str]) -> list[Claim]:
        """What is so of things, as claims of the sessions that said it."""
        query = FactQuery(at=self.now, when=When.NOW)
        found = [fact for each in sorted(topics) for fact in self._all(replace(query, topic=each))]
        found = [fact for fact in found if fact.id != self.besides]
        projects = {each: self._project(each) for each in {fact.source for fact in found}}
        return [one for fact in found for one in claims_of([fact], project=projects[fact.source])]

    def of_session(self, session_id: str) -> frozenset[str]:
        """The ids of what a session said and holds, also where it may not be remembered."""
        query = FactQuery(at=self.now, when=When.NOW, session_id=session_id)
        return frozenset(fact.id for fact in self._all(query))

    def _all(self, query: FactQuery) -> Iterator[Fact]:
        before: Fact | None = None
        while True:
            page = self.store.facts.list(self.space, replace(query, before=before), FACTS_PAGE)
            yield from page
            if len(page) < FACTS_PAGE:
                return
            before = page[-1]

    def _project(self, session_id: str | None) -> str | None:
        session = self.store.sessions.get(self.space, session_id) if session_id else None
        return None if session is None else session.project

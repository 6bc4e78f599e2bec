"""Facts as the memories that mem0 asks for: found by id, by whose they are, and by a question.

A memory that was inferred does not say by itself whose it is: the record it comes from does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from recollect import memory as core
from recollect.compat.mem0_scopes import WITHOUT_USER, memory_id, read_memory_id
from recollect.compat.mem0_shapes import normal, shape
from recollect.errors import InvalidValue
from recollect.knowledge import Fact, Trust
from recollect.recollection import Entry, EntryKind, Filters, Hit, Where
from recollect.session import LIST_MAX
from recollect.space import Space
from recollect.stems import asked_stems, stems
from recollect.store.relational.entries import passes

TAG = "mem0"
PAYLOADS_KEPT = 10_000
PAGE_MIN = 32  # facts of the first page; most callers want no more
_ANY_TIME = datetime.min.replace(tzinfo=UTC)

Scored = tuple[Fact, float, Mapping[str, float]]


class Memories:
    """All memories of a store, and whose each is."""

    def __init__(self, memory: core.Memory) -> None:
        self._memory = memory
        self._said_about = lru_cache(maxsize=PAYLOADS_KEPT)(self._read_said_about)

    def refresh(self) -> None:
        """Keep nothing in mind of what may be gone."""
        self._said_about.cache_clear()

    def find(self, named: str) -> tuple[Space, Fact] | None:
        fact_id, space_name = read_memory_id(named)
        space = self._memory.space(space_name)
        fact = space.facts.get(fact_id)
        return None if fact is None else (space, fact)

    def there(self, named: str) -> tuple[Space, Fact]:
        found = self.find(named)
        if found is None:
            raise InvalidValue(f"there is no memory with the id {named!r}")
        return found

    def standing(self, space: Space, where: Where, *, show_expired: bool) -> Iterator[Fact]:
        """Memories that hold, with those that have expired if they are wanted, newest first."""
        for fact in pages(space, every=show_expired):
            if fact.superseded_by is None and self.is_meant(space, fact, where):
                yield fact

    def is_meant(self, space: Space, fact: Fact, where: Where) -> bool:
        """Whether it is asked for: for one of all who said it that is enough."""
        return any(_has(payload, where) for payload in self._payloads(space, fact))

    def shaped(self, space: Space, fact: Fact) -> dict[str, Any]:
        return shape(fact, self.payload(space, fact), memory_id(fact.id, space.name))

    def payload(self, space: Space, fact: Fact) -> dict[str, Any]:
        """Whose a memory is and what else was said about it: by itself, or where it comes from."""
        return next(self._payloads(space, fact))

    def _payloads(self, space: Space, fact: Fact) -> Iterator[dict[str, Any]]:
        """The same for each of its sources, the earliest first."""
        user = {} if space.name == WITHOUT_USER else {"user_id": space.name}
        places = [(source.session_id, source.seq) for source in fact.sources]
        for place in places or [("", 0)]:
            yield {**self._said_about(space.name, *place), **fact.metadata, **user}

    def _read_said_about(self, space: str, session_id: str, seq: int) -> Mapping[str, Any]:
        if seq < 1:
            return {}
        found = self._memory.space(space).sessions.records(session_id, seq - 1, 1)
        said = found[0].metadata.get(TAG) if found and found[0].seq == seq else None
        return said if isinstance(said, dict) else {}

    def ranked(self, space: Space, hits: Iterable[Hit], where: Where) -> Iterator[Scored]:
        for hit in hits:
            fact = space.facts.get(hit.id)
            if fact is not None and self.is_meant(space, fact, where):
                yield fact, normal(hit.score), hit.why

    def with_expired(
        self, space: Space, query: str, where: Where, ranked: Iterable[Scored]
    ) -> Iterator[Scored]:
        """Also what recall leaves out, as it does not hold any more, by how many words it has."""
        found = list(ranked)
        asked, known = asked_stems(query).keys(), {fact.id for fact, _, _ in found}
        for fact in self.standing(space, where, show_expired=True):
            share = len(asked & set(stems(fact.content))) / max(len(asked), 1)
            if share and fact.id not in known:
                found.append((fact, normal(share), {"words": share}))
        return iter(sorted(found, key=lambda each: -each[1]))


def pages(space: Space, **asked: Any) -> Iterator[Fact]:
    """All facts that are asked for, newest first, in pages that grow."""
    before: Fact | None = None
    size = PAGE_MIN
    while page := space.facts.list(size, before, **asked):
        yield from page
        before, size = page[-1], min(2 * size, LIST_MAX)


def _has(payload: Mapping[str, Any], where: Where) -> bool:
    entry = Entry(
        kind=EntryKind.FACT,
        key=0,
        id="",
        text="",
        stems="",
        at=_ANY_TIME,
        trust=Trust.USER,
        metadata=payload,
    )
    return passes(entry, Filters(where=where))

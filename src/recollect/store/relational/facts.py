"""Facts by themselves: added, edited and deleted by people, listed and searched by everybody."""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Sequence
from datetime import datetime

from recollect.clock import to_micros
from recollect.knowledge import (
    Fact,
    FactChange,
    FactEvent,
    FactQuery,
    Source,
    Trust,
    content_key,
)
from recollect.store.protocol import MetadataValue, NewId
from recollect.store.relational import rows
from recollect.store.relational.database import Connection, Database, Params, Row
from recollect.store.relational.learning import delete, note, strengthen
from recollect.store.relational.text import storable, storable_json

_LAST_MOMENT = 2**62  # later than any time
BY_USER = "user"
TERMS_MAX = 1000  # of one search; PostgreSQL's parser goes a step deeper with every one
TERM_CHARS_MAX = 100


class RelationalFacts:
    """Implements `recollect.store.protocol.Facts`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, space: str, fact: Fact, now: datetime, new_id: NewId) -> Fact:
        def job(c: Connection) -> Fact:
            c.run("insert_space", {"space": space, "now": to_micros(now)})
            c.run("lock_memory", {"space": space})
            known, is_news = (None, True) if fact.id else _say_again(c, space, fact, now)
            if known is None:
                given = fact if fact.id else dataclasses.replace(fact, id=new_id())
                _put(c, space, given, now, is_named=bool(fact.id))
                known = given.id
            if is_news:
                c.run("note_change", {"space": space, "now": to_micros(now)})
            return _get(c, space, known)

        return self._database.write(space, job)

    def get(self, space: str, fact_id: str) -> Fact | None:
        names = {"space": space, "id": fact_id}
        row = self._database.read(space, lambda c: c.row("get_fact", names))
        return None if row is None else rows.fact(row)

    def update(self, space: str, fact: Fact, now: datetime) -> Fact | None:
        def job(c: Connection) -> Fact | None:
            c.run("lock_memory", {"space": space})
            before = c.row("find_fact", {"space": space, "id": fact.id})
            if before is None:
                return None
            edited = dataclasses.replace(fact, extractor=None)
            columns = _columns(space, edited, now, key=None)
            kept = {"expires_at": _expiry(fact, before), "standalone": before[5]}
            c.row("replace_fact", {**columns, **kept})
            _note_edit(c, space, edited, before, now)
            c.run("note_change", {"space": space, "now": to_micros(now)})
            return _get(c, space, fact.id)

        return self._database.write(space, job)

    def delete(self, space: str, fact_id: str, now: datetime) -> bool:
        def job(c: Connection) -> bool:
            c.run("lock_memory", {"space": space})
            if not delete(c, space, fact_id, FactEvent.DELETED, now, by=BY_USER):
                return False
            c.run("note_change", {"space": space, "now": to_micros(now)})
            return True

        return self._database.write(space, job)

    def list(self, space: str, query: FactQuery, limit: int) -> builtins.list[Fact]:
        before = query.before
        page = {
            "space": space,
            "at": to_micros(query.at),
            "every": query.every,
            "any_tag": query.tag is None,
            "tag": query.tag or "",
            "any_session": query.session_id is None,
            "session_id": query.session_id or "",
            "before": _LAST_MOMENT if before is None else _created(before),
            "before_id": "" if before is None else before.id,
            "limit": limit,
        }
        found = self._database.read(space, lambda c: c.rows("list_facts", page))
        return [rows.fact(row) for row in found]

    def search(
        self, space: str, terms: Sequence[str], at: datetime, limit: int
    ) -> builtins.list[Fact]:
        if not terms:
            return []
        # Both databases read quoted words joined by OR; a word holds no quote.
        words = [storable(term[:TERM_CHARS_MAX]).replace('"', " ") for term in terms[:TERMS_MAX]]
        query = " OR ".join(f'"{word}"' for word in words)
        wanted = {"space": space, "query": query, "at": to_micros(at), "limit": limit}
        found = self._database.read(space, lambda c: c.rows("search_facts", wanted))
        return [rows.fact(row) for row in found]

    def search_metadata(
        self, space: str, key: str, value: MetadataValue, at: datetime, limit: int
    ) -> builtins.list[Fact]:
        wanted = {
            "space": space,
            "field": storable(key),
            "value": storable_json(value),
            "at": to_micros(at),
            "limit": limit,
        }
        found = self._database.read(space, lambda c: c.rows("search_fact_metadata", wanted))
        return [rows.fact(row) for row in found]

    def count(self, space: str, at: datetime) -> int:
        names = {"space": space, "at": to_micros(at)}
        row = self._database.read(space, lambda c: c.row("count_facts", names))
        assert row is not None
        return int(row[0])

    def history(self, space: str, fact_id: str) -> builtins.list[FactChange]:
        names = {"space": space, "id": fact_id}
        found = self._database.read(space, lambda c: c.rows("fact_changes", names))
        return [rows.fact_change(row) for row in found]


def _get(c: Connection, space: str, fact_id: str) -> Fact:
    row = c.row("get_fact", {"space": space, "id": fact_id})
    assert row is not None, "it has just been stored"
    return rows.fact(row)


def _say_again(c: Connection, space: str, fact: Fact, now: datetime) -> tuple[str | None, bool]:
    """The id of a live fact that says the same already, and whether it has gained anything."""
    said = to_micros(fact.valid_from or now)
    nowhere = {"session_id": "", "seq": 0, "seq_to": 0}
    key = content_key(storable(fact.content))
    names = {"space": space, "content_key": key, "valid_from": said}
    row = c.row("find_same_fact", {**names, **nowhere})
    if row is None:
        return None, True
    is_news = strengthen(c, space, row[0], Trust(row[2]), fact.trust, now)
    is_news |= _put_sources(c, space, row[0], fact.sources, now)
    if fact.extractor is None:
        own = {"space": space, "key": row[0], "standalone": not fact.sources}
        if c.row("adopt_fact", {**own, "now": to_micros(now)}) is not None:
            note(c, {"space": space, "id": row[1]}, FactEvent.EDITED, row[5], now, by=BY_USER)
            is_news = True
    return str(row[1]), is_news


def _put(c: Connection, space: str, fact: Fact, now: datetime, *, is_named: bool) -> None:
    """Store a fact under its id. Under an id of its own it is kept as it is and never merged."""
    names = {"space": space, "id": fact.id}
    before = c.row("find_fact", names)
    key = None if is_named else content_key(storable(fact.content))
    columns = _columns(space, fact, now, key=key)
    c.run("revive_fact", names)
    row = c.row("replace_fact", {**columns, "expires_at": _expiry(fact, before)})
    if row is None:
        row = c.row("insert_fact", columns)
    assert row is not None
    c.run("delete_sources", {"space": space, "fact_key": row[0]})
    _put_sources(c, space, row[0], fact.sources, now)
    if before is not None:
        _note_edit(c, space, fact, before, now)
        return
    by = fact.extractor or BY_USER
    note(c, names, FactEvent.ADDED, storable(fact.content), now, by=by)


def _note_edit(c: Connection, space: str, fact: Fact, before: Row, now: datetime) -> None:
    """What it said before does not come back from its session."""
    note(
        c,
        {"space": space, "id": fact.id},
        FactEvent.EDITED,
        storable(fact.content),
        now,
        by=fact.extractor or BY_USER,
        before=before[2] or content_key(before[1]),
    )


def _expiry(fact: Fact, before: Row | None) -> int | None:
    """When it says it is over: a fact as it was read shows when it was superseded, if sooner."""
    given = None if fact.valid_to is None else to_micros(fact.valid_to)
    if before is not None and given is not None and given == before[4]:
        return None if before[3] is None else int(before[3])
    return given


def _put_sources(
    c: Connection, space: str, key: int, sources: Sequence[Source], now: datetime
) -> bool:
    stored = [
        c.row(
            "insert_source",
            {
                "space": space,
                "fact_key": key,
                "session_id": source.session_id,
                "seq": source.seq,
                "seq_to": source.seq_to,
                "quote": storable(source.quote),
                "now": to_micros(now),
            },
        )
        for source in sources
    ]
    return any(row is not None for row in stored)


def _columns(space: str, fact: Fact, now: datetime, *, key: str | None) -> Params:
    return {
        "id": fact.id,
        "space": space,
        "content": storable(fact.content),
        "content_key": key,
        "tags": storable_json(list(fact.tags)),
        "metadata": storable_json(dict(fact.metadata)),
        "trust": fact.trust.value,
        "topic": fact.topic,
        "extractor": fact.extractor,
        "standalone": not fact.sources,
        "created_at": _created(fact, now),
        "valid_from": to_micros(fact.valid_from or now),
        "expires_at": None if fact.valid_to is None else to_micros(fact.valid_to),
        "now": to_micros(now),
    }


def _created(fact: Fact, now: datetime | None = None) -> int:
    moment = fact.created_at or now
    assert moment is not None, "a stored fact has its time"
    return to_micros(moment)

"""Facts: added, edited and deleted by hand, listed and searched."""

from __future__ import annotations

import builtins
import dataclasses
import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.clock import to_micros
from recollect.stemming import indexed_fact, stems
from recollect.store.relational import rows
from recollect.store.relational.database import Aggregate, Connection, Params, Row, scope
from recollect.store.relational.fact_changes import (
    BY_USER,
    delete,
    find_same_fact,
    note,
    settle_trust,
    told_of,
)
from recollect.store.relational.indexing import put_entry
from recollect.store.relational.jobs import note_change
from recollect.store.relational.rows import storable, storable_json
from recollect.types.facts import (
    ENDS,
    Fact,
    FactChange,
    FactEdit,
    FactEvent,
    FactQuery,
    Proposal,
    Remembered,
    ReviewQuery,
    Trust,
    Unchanged,
    When,
    content_key,
    kind_of,
)
from recollect.types.recall import EntryKind

if TYPE_CHECKING:
    from recollect.ids import NewId
    from recollect.types.facts import MetadataValue

_LAST_MOMENT = 2**62  # later than any time
TERMS_MAX = 1000  # of one search; PostgreSQL's parser goes a step deeper with every one
TERM_CHARS_MAX = 100
SOURCES_MAX = 1000  # that come with a fact that is asked for by itself
LISTED_SOURCES_MAX = 20  # that come with each of many
REWORDED_MAX = 1000  # facts that are looked through for what they said before they were edited


class FactStore(Aggregate):
    """Statements with sources, validity and history. Deleted ones are as if they were not there."""

    def add(self, space: str, fact: Fact, now: datetime, new_id: NewId) -> Fact:
        """Store a fact: under its id, replacing the fact that has it; without an id, only once.

        What replaces another holds from when that did, if it does not say.
        A live fact that says the same gains its sources, and is what comes back.
        """

        def job(c: Connection) -> Fact:
            return _get(c, space, _add(c, space, fact, now, new_id)[0])

        return self._database.write(space, job)

    def remember(self, space: str, fact: Fact, now: datetime, new_id: NewId) -> Remembered:
        """Store a person's statement as `add` does; it ends what was believed on its topic.

        Also what people had stated themselves, which nothing that is learned ends.
        """
        from recollect.store.relational.review import state  # for a person at the keyboard alone

        def job(c: Connection) -> Remembered:
            fact_id, is_known = _add(c, space, fact, now, new_id)
            ended = state(c, space, _get(c, space, fact_id), now)
            replaced = tuple(_get(c, space, each) for each in ended)
            return Remembered(fact=_get(c, space, fact_id), is_known=is_known, replaced=replaced)

        return self._database.write(space, job)

    def get(self, space: str, fact_id: str) -> Fact | None:
        """A fact with up to 1,000 of its sources; lists and searches give the 20 earliest."""
        return self._database.read(space, lambda c: _find(c, space, fact_id))

    def update(self, space: str, fact_id: str, edit: FactEdit, now: datetime) -> Fact | None:
        """Change a fact; it belongs to its editor from then on. None: there is no such fact.

        Edits that are made at once lose nothing of each other. A statement that still says the same
        is still known by it, and gains sources. What its sessions came to says the new one, also
        where it is learned again.
        """

        def job(c: Connection) -> Fact | None:
            _lock(c, space, is_corrected=not isinstance(edit.content, Unchanged))
            before = c.row("find_fact", {"space": space, "id": fact_id})
            if before is None:
                return None
            _edit(c, space, fact_id, before, edit, now, FactEvent.EDITED)
            return _get(c, space, fact_id)

        return self._database.write(space, job)

    def accept(self, space: str, facts: Sequence[Fact], now: datetime) -> builtins.list[Fact]:
        """Let facts be told that wait and still say the same; those that did come back.

        Each ends what it would have ended when it was learned. What a tool said is a person's word
        from then on. They still go with the sessions they rest on, but no new pass withdraws them.
        """

        def job(c: Connection) -> builtins.list[Fact]:
            c.run("lock_memory", {"space": space})
            taken = [fact.id for fact in facts if _accept(c, space, fact, now)]
            if taken:
                note_change(c, space, now)
            return [_get(c, space, each) for each in taken]

        return self._database.write(space, job)

    def reject(self, space: str, facts: Sequence[Fact], now: datetime) -> builtins.list[Fact]:
        """Delete those that wait; what they say is learned from no session again."""

        def job(c: Connection) -> builtins.list[Fact]:
            _lock(c, space, is_corrected=True)
            return [
                fact
                for fact in facts
                if c.row("proposed_fact", {"space": space, "id": fact.id}) is not None
                and _delete(c, space, fact.id, FactEvent.REJECTED, now)
            ]

        return self._database.write(space, job)

    def delete(self, space: str, fact_id: str, now: datetime) -> bool:
        """Delete a fact; its history stays, and what its sessions have said does not bring it back.

        What was extracted from them no longer contains it. If it is said there again, it is
        believed only from a person.
        """

        def job(c: Connection) -> bool:
            _lock(c, space, is_corrected=True)
            return _delete(c, space, fact_id, FactEvent.DELETED, now)

        return self._database.write(space, job)

    def waiting(
        self, space: str, query: ReviewQuery, at: datetime, limit: int
    ) -> builtins.list[Proposal]:
        """A page of the facts that wait for a person, newest first.

        One that waits is learned and told to nobody: it is in no list, search or page, ends nothing
        and is in no text of its session.
        """
        wanted = {
            **_page_of(space, query.before, limit),
            "at": to_micros(at),
            "is_now": True,
            "any_tag": query.kind is None,
            "tag": query.kind or "",
            "any_session": query.session_id is None,
            "session_id": query.session_id or "",
            "any_project": query.project is None,
            "project": query.project or "",
            "any_person": query.person is None,
            "phrase": phrase(query.person or ""),
        }

        def job(c: Connection) -> builtins.list[Proposal]:
            found = [rows.fact(row) for row in c.rows("waiting_facts", wanted)]
            return [_proposal(c, space, fact) for fact in found]

        return self._database.read(space, job)

    def count_waiting(self, space: str | None) -> int:
        return self._count(space, "count_unreviewed", scope(space))

    def list(self, space: str, query: FactQuery, limit: int) -> builtins.list[Fact]:
        """A page of facts, newest first."""
        page = {
            **_page_of(space, query.before, limit),
            "at": to_micros(query.at),
            "is_now": query.when is When.NOW,
            "every": query.every,
            "any_tag": query.tag is None,
            "tag": query.tag or "",
            "any_session": query.session_id is None,
            "session_id": query.session_id or "",
        }
        name = "list_facts"
        if query.topic is not None:
            name, page = "list_topic_facts", {**page, "topic": query.topic}
        return self._page(rows.fact, space, name, page)

    def search(
        self,
        space: str,
        terms: Sequence[str],
        at: datetime,
        limit: int,
        sources_max: int = LISTED_SOURCES_MAX,
        when: When = When.THEN,
    ) -> builtins.list[Fact]:
        """Facts that hold at a time and have any of the words, the best first.

        `when` says how the time is meant: facts that were edited since are found by what they said.

        Each comes with the earliest of its sources, at most as many as asked for; ask for none
        where they are not needed.
        """
        sought = stems(" ".join(term[:TERM_CHARS_MAX] for term in terms[:TERMS_MAX]))
        if not sought:
            return []
        wanted = {
            "space": space,
            "words": json.dumps(sought, ensure_ascii=False),
            "at": to_micros(at),
            "is_now": when is When.NOW,
            "limit": limit,
            "sources_max": min(sources_max, LISTED_SOURCES_MAX),
        }

        def job(c: Connection) -> builtins.list[Fact]:
            if when is When.NOW:
                return [rows.fact(row) for row in c.rows("search_facts", wanted)]
            return _search_then(c, wanted, sought)

        return self._database.read(space, job)

    def search_metadata(
        self,
        space: str,
        key: str,
        value: MetadataValue,
        at: datetime,
        limit: int,
        when: When = When.THEN,
        before: Fact | None = None,
    ) -> builtins.list[Fact]:
        """Facts that hold at a time and whose metadata has this value under this very key.

        Newest first; `before` is the last one of the page before.
        """
        wanted = {
            **_page_of(space, before, limit),
            "field": storable(key),
            "value": storable_json(value),
            "at": to_micros(at),
            "is_now": when is When.NOW,
        }
        return self._page(rows.fact, space, "search_fact_metadata", wanted)

    def count(self, space: str, at: datetime, when: When = When.THEN) -> int:
        names = {"space": space, "at": to_micros(at), "is_now": when is When.NOW}
        return self._count(space, "count_facts", names)

    def naming(
        self, space: str, names: Sequence[str], at: datetime, limit: int, before: Fact | None
    ) -> builtins.list[Fact]:
        """A page of the facts that say one of some names in a row, newest first.

        Those that are over or superseded as well, not those that wait for a person.
        """
        named = {**_page_of(space, before, limit), **_named(names, at)}
        return self._page(rows.fact, space, "facts_naming", named)

    def count_naming(self, space: str, names: Sequence[str], at: datetime) -> int:
        return self._count(space, "count_facts_naming", {"space": space, **_named(names, at)})

    def history(self, space: str, fact_id: str) -> builtins.list[FactChange]:
        names = {"space": space, "id": fact_id}
        return self._page(rows.fact_change, space, "fact_changes", names)


def _named(names: Sequence[str], at: datetime) -> Params:
    phrases = [" ".join(stems(name[:TERM_CHARS_MAX])) for name in names]
    said = json.dumps([each for each in phrases if each], ensure_ascii=False)
    return {"words": said, "at": to_micros(at), "is_now": True}


def phrase(text: str) -> str:
    """A pattern for the indexed words of facts that have those of a text in a row."""
    return f"% {' '.join(stems(text))} %"


def _page_of(space: str, before: Fact | None, limit: int) -> Params:
    return {
        "space": space,
        "before": _LAST_MOMENT if before is None else _created(before),
        "before_id": "" if before is None else before.id,
        "limit": limit,
        "sources_max": LISTED_SOURCES_MAX,
    }


def _delete(c: Connection, space: str, fact_id: str, event: FactEvent, now: datetime) -> bool:
    before = c.row("find_fact", {"space": space, "id": fact_id})
    if not delete(c, space, fact_id, event, now, by=BY_USER):
        return False
    assert before is not None, "it was there"
    _take_back(c, space, fact_id, _sources_of(c, space, before[0]), now)
    note_change(c, space, now, is_urgent=True)
    return True


def _accept(c: Connection, space: str, fact: Fact, now: datetime) -> bool:
    """Let a fact that waits be told of, if it still says what was read."""
    from recollect.store.relational.review import accept  # who only reads needs none

    row = c.row("proposed_fact", {"space": space, "id": fact.id})
    if row is None or row[1] != storable(fact.content):
        return False
    accept(c, space, fact.id, row, now)
    return True


def _proposal(c: Connection, space: str, fact: Fact) -> Proposal:
    from recollect.store.relational.review import ended_by  # who only reads needs none

    row = c.row("proposed_fact", {"space": space, "id": fact.id})
    assert row is not None, "it has just been read"
    ended = (_find(c, space, each, 0) for each in ended_by(c, space, fact.id, row))
    return Proposal(fact=fact, replaces=tuple(filter(None, ended)), is_end=ENDS in fact.metadata)


def _add(c: Connection, space: str, fact: Fact, now: datetime, new_id: NewId) -> tuple[str, bool]:
    """Store a fact: its id, and whether it was known."""
    c.run("insert_space", {"space": space, "now": to_micros(now)})
    _lock(c, space, is_corrected=bool(fact.id))
    known, is_news = (None, True) if fact.id else _say_again(c, space, fact, now)
    given = fact if fact.id else dataclasses.replace(fact, id=known or new_id())
    if known is None:
        _put(c, space, given, now, is_named=bool(fact.id))
    if is_news:
        note_change(c, space, now)
    return given.id, known is not None


def _search_then(c: Connection, wanted: Params, sought: Sequence[str]) -> list[Fact]:
    """Facts by what they said at a time; the index has what they say now."""
    then = {**wanted, "reworded_max": REWORDED_MAX}
    reworded = [rows.fact(row[1:]) for row in c.rows("reworded_facts", then)]
    limit = wanted["limit"]
    found = c.rows("search_facts", {**wanted, "limit": limit + len(reworded)})
    if not reworded:
        return [rows.fact(row) for row in found]
    words = frozenset(sought)
    theirs = {fact.id for fact in reworded}
    others = [fact for fact in map(rows.fact, found) if fact.id not in theirs]
    shared = {
        fact.id: len(words.intersection(_words(fact).split())) for fact in (*others, *reworded)
    }
    best = sorted((*others, *reworded), key=lambda fact: -shared[fact.id])
    return [fact for fact in best if shared[fact.id]][:limit]


def _find(c: Connection, space: str, fact_id: str, sources_max: int = SOURCES_MAX) -> Fact | None:
    names = {"space": space, "id": fact_id, "sources_max": sources_max}
    row = c.row("get_fact", {**names, "is_now": True, "at": _LAST_MOMENT})
    return None if row is None else rows.fact(row)


def _get(c: Connection, space: str, fact_id: str) -> Fact:
    fact = _find(c, space, fact_id)
    assert fact is not None, "it has just been stored"
    return fact


def _say_again(c: Connection, space: str, fact: Fact, now: datetime) -> tuple[str | None, bool]:
    """The id of a live fact that says the same already, and whether it has gained anything."""
    said = to_micros(fact.valid_from or now)
    nowhere = {"session_id": "", "seq": 0, "seq_to": 0}
    key = content_key(storable(fact.content))
    names = {"space": space, "content_key": key, "valid_from": said}
    same = find_same_fact(c, {**names, **nowhere})
    if same is None:
        return None, True
    by = fact.extractor or BY_USER
    known = {"space": space, "key": same.key, "now": to_micros(now)}
    is_edit = False
    if fact.extractor is None and fact.trust is Trust.USER:  # who says it has accepted it
        _accept(c, space, dataclasses.replace(fact, id=same.id, content=same.content), now)
    if not fact.sources:
        is_edit |= c.row("vouch_for_fact", {**known, "trust": fact.trust.value}) is not None
    if fact.extractor is None:
        is_edit |= c.row("adopt_fact", known) is not None
    if is_edit:
        note(c, {"space": space, "id": same.id}, FactEvent.EDITED, same.content, now, by=by)
    is_news = _put_sources(c, space, same.key, fact, now)
    is_news |= settle_trust(c, space, same.key, now, by=by)
    return same.id, is_edit or is_news


def _put(c: Connection, space: str, fact: Fact, now: datetime, *, is_named: bool) -> None:
    """Store a fact under its id. Under an id of its own it is kept as it is and never merged."""
    names = {"space": space, "id": fact.id}
    before = c.row("find_fact", names)
    key = None if is_named else content_key(storable(fact.content))
    columns = _columns(space, fact, now, key=key)
    c.run("revive_fact", names)
    kept = {"expires_at": _expiry(fact, before), "valid_from": _start(fact, before, now)}
    row = put_entry(c, EntryKind.FACT, "replace_fact", {**columns, **kept})
    if row is None:
        row = put_entry(c, EntryKind.FACT, "insert_fact", columns, is_new=True)
    assert row is not None
    sources = _sources_of(c, space, row[0])
    event = FactEvent.ADDED if before is None else FactEvent.EDITED
    replaced = None if before is None else _statement_key(before)
    by = fact.extractor or BY_USER
    note(c, names, event, storable(fact.content), now, by=by, before=replaced)
    c.run("delete_sources", {"space": space, "fact_key": row[0]})
    _put_sources(c, space, row[0], fact, now)
    if before is not None and content_key(fact.content) != content_key(before[1]):
        _take_back(c, space, fact.id, sources, now)


def _edit(
    c: Connection,
    space: str,
    fact_id: str,
    before: Row,
    edit: FactEdit,
    now: datetime,
    event: FactEvent,
) -> None:
    columns = _merged(edit, before)
    kept = {"space": space, "key": before[0]}
    names = {"space": space, "id": fact_id}
    edited = {**columns, **kept, **names, "now": to_micros(now)}
    is_reworded = not isinstance(edit.content, Unchanged) and columns["trust"] is None
    proposed = c.row("proposed_fact", names) if is_reworded else None
    put_entry(c, EntryKind.FACT, "edit_fact", edited)
    if proposed is not None:  # who puts it into words of their own has accepted it
        from recollect.store.relational.review import accept  # for these edits alone

        accept(c, space, fact_id, proposed, now, content=columns["content"])
    if columns["trust"] is not None:
        c.run("reword_sources", {**kept, "trust": columns["trust"]})
    # What it said before does not come back from its session, unless it says so still.
    replaced = None if columns["content_key"] else _statement_key(before)
    note(c, names, event, columns["content"], now, by=BY_USER, before=replaced)
    # What memory says must not go on saying what somebody has corrected.
    is_corrected = content_key(columns["content"]) != content_key(before[1])
    if is_corrected:
        _take_back(c, space, fact_id, _sources_of(c, space, before[0]), now)
    note_change(c, space, now, is_urgent=is_corrected)


def _lock(c: Connection, space: str, *, is_corrected: bool) -> None:
    """Hold the memory of a space; what may say something that is corrected is held before."""
    if is_corrected:
        from recollect.store.relational.page_inputs import revoke_memory_agents  # for edits alone

        revoke_memory_agents(c, space)
    c.run("lock_memory", {"space": space})


def _sources_of(c: Connection, space: str, key: int) -> builtins.list[Row]:
    return c.rows("sources_of_fact", {"space": space, "fact_key": key})


def _take_back(
    c: Connection, space: str, fact_id: str, sources: Sequence[Row], now: datetime
) -> None:
    from recollect.store.relational.derived import take_back  # who only reads needs none

    take_back(c, space, fact_id, sources, now)


def _statement_key(before: Row) -> str:
    """What a fact said, by which it is known when a session says it again."""
    return str(before[2] or content_key(before[1]))


def _merged(edit: FactEdit, before: Row) -> dict[str, Any]:
    """The columns of a fact after an edit.

    It keeps its key while it says the same. One that was stored under an id of its own has none:
    it is never merged.
    """
    _, content, key, expires_at, _, tags, metadata, topic, _ = before
    if not isinstance(edit.content, Unchanged):
        content = storable(edit.content)
    if not isinstance(edit.tags, Unchanged):
        tags = storable_json(list(edit.tags))
    if not isinstance(edit.metadata, Unchanged):
        metadata = storable_json(dict(edit.metadata))
    if not isinstance(edit.valid_to, Unchanged):
        expires_at = None if edit.valid_to is None else to_micros(edit.valid_to)
    return {
        "content": content,
        "words": indexed_fact(content, topic, json.loads(metadata)),
        "content_key": key if key == content_key(content) else None,
        "tags": tags,
        "metadata": metadata,
        "expires_at": expires_at,
        "trust": None if isinstance(edit.trust, Unchanged) else edit.trust.value,
        "kind": kind_of(json.loads(tags)),
        "is_reworded": content_key(content) != content_key(before[1]),
    }


def _expiry(fact: Fact, before: Row | None) -> int | None:
    """When it says it is over: a fact as it was read shows when it was superseded, if sooner."""
    given = None if fact.valid_to is None else to_micros(fact.valid_to)
    if before is not None and given is not None and given == before[4]:
        return None if before[3] is None else int(before[3])
    return given


def _start(fact: Fact, before: Row | None, now: datetime) -> int:
    """Since when it holds: what is replaced held before, unless it was superseded meanwhile."""
    if fact.valid_from is None and before is not None and before[4] is None:
        return int(before[8])
    return to_micros(fact.valid_from or now)


def _put_sources(c: Connection, space: str, key: int, fact: Fact, now: datetime) -> bool:
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
                "trust": fact.trust.value,
                "now": to_micros(now),
            },
        )
        for source in fact.sources
    ]
    return any(row is not None for row in stored)


def _columns(space: str, fact: Fact, now: datetime, *, key: str | None) -> Params:
    content = storable(fact.content)
    return {
        "id": fact.id,
        "space": space,
        "content": content,
        "words": _words(dataclasses.replace(fact, content=content)),
        "content_key": key,
        "tags": storable_json(list(fact.tags)),
        "metadata": storable_json(dict(fact.metadata)),
        "trust": fact.trust.value,
        "topic": fact.topic,
        **told_of(fact),
        "extractor": fact.extractor,
        "own_trust": None if fact.sources else fact.trust.value,
        "created_at": _created(fact, now),
        "valid_from": to_micros(fact.valid_from or now),
        "expires_at": None if fact.valid_to is None else to_micros(fact.valid_to),
        "review_state": fact.review,
        "replaces": "[]",
        "now": to_micros(now),
    }


def _words(fact: Fact) -> str:
    return indexed_fact(fact.content, fact.topic, fact.metadata)


def _created(fact: Fact, now: datetime | None = None) -> int:
    moment = fact.created_at or now
    assert moment is not None, "a stored fact has its time"
    return to_micros(moment)

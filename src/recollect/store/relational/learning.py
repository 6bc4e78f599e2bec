"""Applies a draft to a space's memory, inside the transaction that moves the cursor.

Owns T4: the same statement is stored once with every source, a newer one supersedes an older one on
the same topic and nothing is destroyed; and X8/X9: one extraction per session, which keeps its use
and what phase 2 has seen of it. And T1: what was learned from records that a purge has removed
stays, since no run can find it again. Callers hold the space's memory (`lock_memory`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from recollect.clock import to_micros
from recollect.ids import NewId
from recollect.quarantine import is_quarantined, review_of
from recollect.stemming import indexed_fact, indexed_summary
from recollect.store.relational.database import Asked, Connection, Params, Row
from recollect.store.relational.derived import following_facts
from recollect.store.relational.fact_changes import (
    STRENGTH,
    SameFact,
    delete,
    find_same_fact,
    meant,
    note,
    settle_trust,
    told_of,
)
from recollect.store.relational.indexing import erase_entries, put_entry
from recollect.store.relational.jobs import has_lost_records, note_change
from recollect.store.relational.rows import storable, storable_json
from recollect.types.facts import (
    ENDS,
    Draft,
    FactEvent,
    Learned,
    NewFact,
    Review,
    Trust,
    content_key,
    names_what_ends,
)
from recollect.types.generations import RemovedBecause
from recollect.types.recall import EntryKind

EMPTIED = RemovedBecause.EMPTIED.value
Place = tuple[int, int, int]  # the key of a fact, and the records of the session that bear it out


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Where and when something is being learned."""

    space: str
    session_id: str
    extractor: str
    now: datetime
    new_id: NewId
    review: str = "off"  # what of it waits for a person
    is_persons: bool = False  # it ends also what people stated
    # The facts that make a statement, by its key: looked up together before any is made.
    known: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def at(self) -> int:
        return to_micros(self.now)

    @property
    def session(self) -> dict[str, object]:
        return {"space": self.space, "session_id": self.session_id}


def learn(c: Connection, lesson: Lesson, learned: Learned, upto: int) -> None:
    """Store a draft: extraction and facts; say so to consolidation if anything changed."""
    c.run("lock_memory", {"space": lesson.space})
    facts = [_as_of_now(fact, lesson) for fact in learned.draft.facts]
    statements = [_names(lesson, fact) for fact in facts]
    earlier, disputed, taken_back = _look_up(c, lesson, statements, is_whole=learned.is_whole)
    unsaid = _suppressed(c, facts, statements, disputed)
    is_rejected = any(disputed.get(names["content_key"]) for names in statements)
    anew = c.rows("said_anew", lesson.session) if unsaid else []
    changed = False
    for fact, names in zip(facts, statements, strict=True):
        if fact in unsaid:
            # An extractor may name the first of all places; it was said again in another.
            key = names["content_key"]
            earlier -= {(row[1], row[2], row[3]) for row in anew if row[0] == key}
            continue
        key, is_news = _put_fact(c, lesson, fact, names)
        changed |= is_news
        earlier.discard((key, fact.seq, fact.seq_to))
    if earlier:
        _take_back(c, lesson, earlier)
        changed = True
    is_reviewed = (
        lesson.review == "all"
        or is_rejected
        or (c.row("session_waits", lesson.session) is not None)
    )
    draft = following_facts(c, lesson.session, learned.draft, taken_back, always=is_reviewed)
    changed |= _put_extraction(c, lesson, replace(learned, draft=draft), upto)
    if changed:
        note_change(c, lesson.space, lesson.now)


def _as_of_now(fact: NewFact, lesson: Lesson) -> NewFact:
    """A record may bear a time to come; what was learned from it is believed from now on."""
    return fact if fact.valid_from <= lesson.now else replace(fact, valid_from=lesson.now)


def _look_up(
    c: Connection, lesson: Lesson, statements: Sequence[Params], *, is_whole: bool
) -> tuple[set[Place], dict[str, bool], list[Row]]:
    """Where a session that is gone through as a whole said something, and what is disputed.

    A statement is disputed if somebody has changed or deleted it, which few are; true: a person
    rejected it, and no session may bring it back. Last, what
    was taken back in this session. What is known of each statement is kept in the lesson until it
    is made, or something changes.
    """
    first: dict[str, Params] = {}
    for names in statements:
        first.setdefault(names["content_key"], names)
    keys = {"space": lesson.space, "content_keys": storable_json(list(first))}
    asked: list[Asked] = [("find_same_fact", names) for names in first.values()]
    if first:
        asked.append(("disputed_statements", keys))
    if is_whole:
        asked.append(("session_sources", lesson.session))
    asked.append(("taken_back", lesson.session))
    found = c.rows_each(asked)
    taken_back = found.pop()
    places = {(row[0], row[1], row[2]) for row in found.pop()} if is_whole else set[Place]()
    disputed = {row[0]: bool(row[1]) for row in found.pop()} if first else dict[str, bool]()
    lesson.known.update(zip(first, found, strict=True))
    return places, disputed, taken_back


def _suppressed(
    c: Connection,
    facts: Sequence[NewFact],
    statements: Sequence[Params],
    disputed: Mapping[str, bool],
) -> list[NewFact]:
    """The facts that the session must not bring back."""
    return [
        fact
        for fact, names in zip(facts, statements, strict=True)
        if names["content_key"] in disputed
        and (disputed[names["content_key"]] or c.row("is_suppressed", names) is not None)
    ]


def _names(lesson: Lesson, fact: NewFact) -> dict[str, Any]:
    """What tells whether a statement is known."""
    return {
        **lesson.session,
        "content_key": content_key(storable(fact.content)),
        "valid_from": to_micros(fact.valid_from),
        "seq": fact.seq,
        "seq_to": fact.seq_to,
        "is_persons_word": fact.trust is Trust.USER,
    }


def _put_extraction(c: Connection, lesson: Lesson, learned: Learned, upto: int) -> bool:
    draft = learned.draft
    if not (draft.raw_memory.strip() or draft.rollout_summary.strip()):
        if not learned.is_whole or has_lost_records(c, lesson.space, lesson.session_id):
            return False
        c.run("bury_memory", {**lesson.session, "reason": EMPTIED, "now": lesson.at})
        return bool(erase_entries(c, EntryKind.SUMMARY, "delete_extraction", lesson.session))
    texts = _texts(draft)
    read = {
        **lesson.session,
        "extractor": lesson.extractor,
        "pass": learned.pass_number,
        "upto": upto,
    }
    raw_memory, rollout_summary, rollout_slug = texts
    said = {
        **read,
        "raw_memory": raw_memory,
        "rollout_summary": rollout_summary,
        "rollout_slug": rollout_slug,
        "words": indexed_summary(*texts),
        "now": lesson.at,
    }
    put = put_entry(c, EntryKind.SUMMARY, "put_extraction", said)
    if put is None:
        c.run("extend_extraction", read)
    return put is not None


def _texts(draft: Draft) -> tuple[str, str, str | None]:
    slug = draft.rollout_slug
    return (
        storable(draft.raw_memory),
        storable(draft.rollout_summary),
        None if slug is None else storable(slug),
    )


def _put_fact(c: Connection, lesson: Lesson, fact: NewFact, names: Params) -> tuple[int, bool]:
    """Add a fact, or a source to the one that says the same: its key, and whether that is news."""
    content = storable(fact.content)
    fact = narrowed(c, lesson, fact)
    known = lesson.known.pop(names["content_key"], None)
    same = find_same_fact(c, names) if known is None else meant(known, names)
    if same is not None:
        return same.key, _say_again(c, lesson, fact, same)
    fact_id = lesson.new_id()
    review = review_of(lesson.review, content, fact.trust, fact.tags)
    row = put_entry(
        c,
        EntryKind.FACT,
        "insert_fact",
        {
            **names,
            "id": fact_id,
            "content": content,
            "words": indexed_fact(content, fact.topic, fact.metadata),
            "tags": storable_json(list(fact.tags)),
            "metadata": storable_json(dict(fact.metadata)),
            "trust": fact.trust.value,
            "own_trust": None,
            "topic": fact.topic,
            **told_of(fact),
            "extractor": lesson.extractor,
            "created_at": lesson.at,
            "expires_at": None if fact.valid_to is None else to_micros(fact.valid_to),
            "review_state": review,
            "replaces": storable_json(list(fact.supersedes)),
            "now": max(lesson.at, names["valid_from"]),  # on a host whose clock goes ahead
        },
        is_new=True,
    )
    assert row is not None
    c.run("insert_source", _source(lesson, fact, row[0]))
    own = {"space": lesson.space, "id": fact_id}
    note(c, own, FactEvent.ADDED, content, lesson.now, by=lesson.extractor)
    if review is None:
        supersede(c, lesson, fact, (row[0], fact_id, content), is_known=False)
    return row[0], True


def _say_again(c: Connection, lesson: Lesson, fact: NewFact, same: SameFact) -> bool:
    """A known statement gains a source, and its word if it is better. False: nothing is new."""
    source = _source(lesson, fact, same.key)
    if same.is_replay or STRENGTH[fact.trust] > STRENGTH[same.trust]:
        changed = c.row("insert_source", source) is not None
        if changed and STRENGTH[fact.trust] > STRENGTH[same.trust]:
            settle_trust(c, lesson.space, same.key, lesson.now, by=lesson.extractor)
            lesson.known.clear()
        if same.is_replay:
            return changed
    else:
        c.run("insert_source", source)
    said = to_micros(fact.valid_from)
    moment = {"space": lesson.space, "key": same.key, "valid_from": said, "now": lesson.at}
    moment["is_single"] = fact.is_single
    is_first = said >= same.valid_from or c.row("said_earlier", moment) is not None
    if is_first and not _waits(c, lesson, fact, same):
        supersede(c, lesson, fact, (same.key, same.id, same.content), is_known=True)
    return True


def _waits(c: Connection, lesson: Lesson, fact: NewFact, same: SameFact) -> bool:
    """Whether a statement goes on waiting that was made again, perhaps by somebody better."""
    if same.review is Review.QUARANTINED and not is_quarantined(same.content, fact.trust):
        asked = review_of(lesson.review, same.content, fact.trust, fact.tags)
        moment = {"space": lesson.space, "key": same.key, "now": lesson.at, "trust": None}
        c.run("set_review", {**moment, "review_state": asked})
        c.run("unfile_held_back", {"space": lesson.space, "id": same.id})
        return asked is not None
    return same.review not in (None, Review.ACCEPTED)


def _source(lesson: Lesson, fact: NewFact, key: int) -> Params:
    return {
        **lesson.session,
        "fact_key": key,
        "seq": fact.seq,
        "seq_to": fact.seq_to,
        "quote": storable(fact.quote),
        "trust": fact.trust.value,
        "now": lesson.at,
    }


def supersede(
    c: Connection, lesson: Lesson, fact: NewFact, own: tuple[int, str, str], *, is_known: bool
) -> None:
    """Let the newer statement win, of those the new one is about; never over a better word."""
    for older, newer in ended(c, lesson, fact, own, is_known=is_known):
        end(c, lesson, older, newer)


def ended(
    c: Connection, lesson: Lesson, fact: NewFact, own: tuple[int, str, str], *, is_known: bool
) -> Iterator[tuple[Row, Row]]:
    """The statements that end, each before what ends it; one of both is the new one.

    The result does not depend on the order in which statements arrive: one that lies between two
    others ends the first and is ended by the second. A known one that is said again ends others,
    and is not ended by what it has outlived.
    """
    said = to_micros(fact.valid_from)
    key, fact_id, content = own
    ours = (key, fact_id, fact.trust.value, said, content)
    for rival in _rivals(c, lesson, fact, key):
        older, newer = (rival, ours) if rival[3] <= said else (ours, rival)
        if older is ours and is_known:
            return
        if STRENGTH[Trust(newer[2])] < STRENGTH[Trust(older[2])]:
            continue
        yield older, newer
        if older is ours:
            return


def narrowed(c: Connection, lesson: Lesson, fact: NewFact) -> NewFact:
    """One that says what is over leaves a topic alone on which something else holds."""
    if ENDS not in fact.metadata:
        return fact
    others = _on_topic(c, lesson, fact, key=0)
    is_meant = all(names_what_ends(fact, content) for *_, content in others)
    return fact if is_meant else replace(fact, topic=None)


def _on_topic(c: Connection, lesson: Lesson, fact: NewFact, key: int) -> list[Row]:
    if fact.topic is None or not fact.is_single:
        return []
    topic = {"topic": fact.topic, "valid_from": to_micros(fact.valid_from)}
    whose = {"or_own": lesson.is_persons}
    return c.rows("find_topic_facts", {"space": lesson.space, "key": key, **topic, **whose})


def _rivals(c: Connection, lesson: Lesson, fact: NewFact, key: int) -> list[Row]:
    """Statements the new one may contradict, the oldest first."""
    names = {"space": lesson.space, "key": key}
    found = _on_topic(c, lesson, fact, key)
    for other_id in fact.supersedes:
        found += c.rows("find_supersedable", {**names, "id": other_id})
    return sorted({row[0]: row for row in found}.values(), key=lambda row: (row[3], row[0]))


def end(c: Connection, lesson: Lesson, older: Row, newer: Row) -> None:
    """Let a statement be superseded; both are as in what `ended` gives."""
    lesson.known.clear()  # the older may be one of them
    c.run(
        "supersede_fact",
        {
            "space": lesson.space,
            "key": older[0],
            "other_id": newer[1],
            "superseded_at": newer[3],
            "now": max(lesson.at, newer[3]),  # on a host whose clock goes ahead
        },
    )
    note(
        c,
        {"space": lesson.space, "id": older[1]},
        FactEvent.SUPERSEDED,
        older[4],
        lesson.now,
        by=lesson.extractor,
        other_id=newer[1],
    )


def _take_back(c: Connection, lesson: Lesson, places: AbstractSet[Place]) -> None:
    """Drop what the session no longer says; a fact without another source is withdrawn.

    A withdrawn fact keeps its last sources, so that forgetting the session finds it.
    """
    by_fact: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for key, seq, seq_to in sorted(places):
        by_fact[key].append((seq, seq_to))
    for key, gone in by_fact.items():
        row = c.row("foundation", {"space": lesson.space, "fact_key": key})
        assert row is not None
        fact_id, is_standalone, sources = row
        if sources == len(gone) and not is_standalone:
            delete(c, lesson.space, fact_id, FactEvent.WITHDRAWN, lesson.now, by=lesson.extractor)
            continue
        for seq, seq_to in gone:
            place = {**lesson.session, "fact_key": key, "seq": seq, "seq_to": seq_to}
            c.run("delete_source", place)
        settle_trust(c, lesson.space, key, lesson.now, by=lesson.extractor)

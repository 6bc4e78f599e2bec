"""Lets facts that wait for a person take the place they would have had, once that person accepts.

Until then a fact ends nothing and stands on no page. Callers hold the space's memory
(`lock_memory`), and note afterwards that it has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from recollect.clock import from_micros, to_micros
from recollect.stemming import indexed_summary
from recollect.store.relational.database import Connection, Row
from recollect.store.relational.derived import rendered
from recollect.store.relational.fact_changes import BY_USER, note
from recollect.store.relational.indexing import put_entry
from recollect.store.relational.jobs import note_change
from recollect.store.relational.learning import Lesson, end, ended, narrowed, supersede
from recollect.types.facts import Fact, FactEvent, NewFact, Review, Trust
from recollect.types.recall import EntryKind


def accept(
    c: Connection,
    space: str,
    fact_id: str,
    proposed: Row,
    now: datetime,
    *,
    content: str | None = None,
) -> None:
    """Let a fact be believed from now on, and end what it would have ended when it was learned.

    `proposed` is its row of `proposed_fact`; `content` is what a person has it say instead. What a
    tool said becomes the word of who accepts it.
    """
    key, said, content_key, *_, review = proposed
    name = {"space": space, "id": fact_id}
    own = {"space": space, "key": key}
    lesson, fact = _learned(space, proposed, now)
    if review == Review.QUARANTINED:
        c.run("reword_sources", {**own, "trust": Trust.USER.value})
    if content is None:
        ours = (key, fact_id, fact.trust.value, to_micros(fact.valid_from), said)
        for same in c.rows("find_live_same", {**own, "content_key": content_key}):
            end(c, lesson, (same[2], same[0], same[4], same[1], same[3]), ours)
        note(c, name, FactEvent.APPROVED, said, now, by=BY_USER)
    accepted = {"review_state": Review.ACCEPTED.value, "trust": fact.trust.value}
    c.run("set_review", {**own, **accepted, "now": to_micros(now)})
    place = (key, fact_id, content or said)
    supersede(c, lesson, narrowed(c, lesson, fact), place, is_known=False)
    c.run("unfile_held_back", name)
    c.run("drop_held_back", name)
    if review == Review.WAITING:
        _tell_again(c, lesson, key)


def ended_by(c: Connection, space: str, fact_id: str, proposed: Row) -> Iterator[str]:
    """The ids of what a fact ends once it is accepted."""
    lesson, fact = _learned(space, proposed, from_micros(proposed[6]))
    place = (proposed[0], fact_id, proposed[1])
    for older, newer in ended(c, lesson, narrowed(c, lesson, fact), place, is_known=False):
        if newer[1] == fact_id:
            yield older[1]


def state(c: Connection, space: str, fact: Fact, now: datetime) -> list[str]:
    """Let a person's statement end what was believed on its topic; the ids of that."""
    row = c.row("find_fact", {"space": space, "id": fact.id})
    assert row is not None, "it has just been stored"
    said = NewFact(
        content=fact.content,
        seq=0,
        seq_to=0,
        valid_from=now,
        trust=fact.trust,
        topic=fact.topic,
        metadata=fact.metadata,
    )
    lesson = _lesson(space, BY_USER, now, is_persons=True)
    place = (int(row[0]), fact.id, fact.content)
    pairs = list(ended(c, lesson, said, place, is_known=False))
    for older, newer in pairs:
        end(c, lesson, older, newer)
    if pairs:
        note_change(c, space, now)
    return [older[1] for older, newer in pairs if newer[1] == fact.id]


def _lesson(space: str, by: str, now: datetime, *, is_persons: bool = False) -> Lesson:
    return Lesson(
        space=space, session_id="", extractor=by, now=now, new_id=str, is_persons=is_persons
    )


def _learned(space: str, proposed: Row, now: datetime) -> tuple[Lesson, NewFact]:
    """A fact as it was learned."""
    _, content, _, trust, topic, metadata, valid_from, replaces, extractor, review = proposed
    fact = NewFact(
        content=content,
        seq=0,
        seq_to=0,
        valid_from=from_micros(valid_from),
        trust=Trust.USER if review == Review.QUARANTINED else Trust(trust),
        topic=topic,
        metadata=json.loads(metadata),
        supersedes=tuple(json.loads(replaces)),
    )
    return _lesson(space, extractor or BY_USER, now), fact


def _tell_again(c: Connection, lesson: Lesson, key: int) -> None:
    """Have the texts of the sessions say it from which a fact was learned."""
    for session_id, number, upto in c.rows("sessions_of_fact", {"space": lesson.space, "key": key}):
        names = {"space": lesson.space, "session_id": session_id}
        text = rendered(c.rows("session_statements", names))
        said = {"raw_memory": text, "rollout_summary": text, "rollout_slug": None}
        read = {"extractor": lesson.extractor, "pass": number, "upto": upto, "now": lesson.at}
        words = indexed_summary(text, text, None)
        put_entry(c, EntryKind.SUMMARY, "put_extraction", {**names, **said, **read, "words": words})

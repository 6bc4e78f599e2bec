"""Changes of facts and their histories, as learning, people, modes and forgetting make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.clock import to_micros
from recollect.store.relational.database import Connection, Params, Row
from recollect.store.relational.documents import unfile_fact
from recollect.store.relational.indexing import erase_entries
from recollect.store.relational.rows import reader, storable_json
from recollect.types.facts import (
    Fact,
    FactEvent,
    NewFact,
    Review,
    Trust,
    content_key,
    kind_of,
)
from recollect.types.recall import EntryKind

BY_USER = "user"
STRENGTH = {Trust.TOOL: 0, Trust.AGENT: 1, Trust.USER: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class SameFact:
    """A fact that makes the statement that is being made."""

    key: int
    id: str
    valid_from: int
    content: str
    trust: Trust
    superseded_at: int | None
    is_replay: bool  # of these very records
    review: Review | None

    def rank(self, said: int) -> tuple[bool, bool, bool, int]:
        """The lowest is meant: the replayed, else one believed at the time, else the live one."""
        is_later = self.valid_from > said
        return not self.is_replay, is_later, self.superseded_at is not None, -self.valid_from


_same_fact = reader(SameFact)


def told_of(fact: Fact | NewFact) -> dict[str, Any]:
    """The columns that say whom a fact is about, what kind it is, and when that happened."""
    began, ended = fact.happened_from, fact.happened_to
    return {
        "about": storable_json(list(fact.about)) if fact.about else None,
        "kind": kind_of(fact.tags),
        "happened_from": None if began is None else to_micros(began),
        "happened_to": None if ended is None else to_micros(ended),
    }


def find_same_fact(c: Connection, names: Params) -> SameFact | None:
    """The fact that makes a statement already.

    There is hardly ever more than one, and to make SQLite sort takes it longer than to find them.
    """
    return meant(c.rows("find_same_fact", names), names)


def meant(found: Sequence[Row], names: Params) -> SameFact | None:
    """Which of the facts that make a statement is the one."""
    same = map(_same_fact, found)
    return min(same, key=lambda each: each.rank(names["valid_from"]), default=None)


def settle_trust(c: Connection, space: str, key: int, now: datetime, *, by: str) -> bool:
    """Let a fact be worth as much as the best of those who make the statement still.

    One that has lost a better word supersedes no better word any more; one that is left a tool's
    and reads like a command waits for a person.
    """
    changed = {"space": space, "key": key, "now": to_micros(now)}
    row = c.row("settle_trust", changed)
    if row is None:
        return False
    fact_id, trust, content, review, *successor = row
    names = {"space": space, "id": fact_id}
    is_doubted = review is None and trust == Trust.TOOL and _is_order(content)
    if is_doubted:
        c.run("set_review", {**changed, "review_state": Review.QUARANTINED.value, "trust": None})
        unfile_fact(c, space, fact_id, now)
    above = None if is_doubted else Trust(trust)
    release_superseded(c, names, tuple(successor), now, by=by, above=above)
    return True


def _is_order(content: str) -> bool:
    from recollect.quarantine import is_quarantined  # many a pattern

    return is_quarantined(content, Trust.TOOL)


def delete(
    c: Connection, space: str, fact_id: str, event: FactEvent, now: datetime, *, by: str
) -> bool:
    """Take a fact out of sight; its history stays. What somebody deleted must not come back."""
    names = {"space": space, "id": fact_id}
    row = c.row("delete_fact", {**names, "now": to_micros(now)})
    if row is None:
        return False
    content, key, successor, superseded_at = row
    before = None if event is FactEvent.WITHDRAWN else key or content_key(content)
    note(c, names, event, content, now, by=by, before=before)
    c.run("drop_held_back", names)
    release_superseded(c, names, (successor, superseded_at), now, by=by)
    return True


def erase_sourceless(c: Connection, space: str, key: int, now: datetime, *, by: str) -> str | None:
    """Erase a fact that has lost its last source, with its history; its id, if it has."""
    row = c.row("sourceless", {"space": space, "fact_key": key})
    if row is None:
        return None
    names = {"space": space, "id": row[0]}
    c.run("erase_changes", names)
    c.run("drop_held_back", names)
    erase_entries(c, EntryKind.FACT, "erase_fact", {"space": space, "fact_key": key})
    release_superseded(c, names, (row[1], row[2]), now, by=by)
    return str(row[0])


def release_superseded(
    c: Connection,
    fact: Params,
    successor: tuple[str | None, int | None],
    now: datetime,
    *,
    by: str,
    above: Trust | None = None,
) -> None:
    """What a vanished fact had superseded comes back to life, or passes to its successor.

    `above`: only what is worth more than that, for the fact is there still.
    """
    space = fact["space"]
    for key, other_id, content, same, trust in c.rows("superseded_by", fact):
        if above is not None and STRENGTH[Trust(trust)] <= STRENGTH[above]:
            continue
        heir, since = successor
        if heir is None and same is not None:
            live = c.row("find_live_same", {"space": space, "content_key": same, "key": key})
            heir, since = (None, None) if live is None else (live[0], live[1])
        inherited = {"space": space, "key": key, "other_id": heir, "superseded_at": since}
        c.run("inherit_superseded", {**inherited, "now": to_micros(now)})
        if heir is None:
            note(c, {"space": space, "id": other_id}, FactEvent.RESTORED, content, now, by=by)


def note(
    c: Connection,
    fact: Params,
    event: FactEvent,
    content: str,
    now: datetime,
    *,
    by: str,
    other_id: str | None = None,
    before: str | None = None,
) -> None:
    """Add to a fact's history.

    `before` is the key of a statement that nobody may bring back from what the sessions have said
    so far from which the fact was learned: its sources have to be there still.
    """
    change = {**fact, "content_key": before, "made_by": by, "now": to_micros(now)}
    said = {"event": event.value, "content": content, "other_id": other_id}
    c.run("insert_change", {**change, **said})
    if event is not FactEvent.ADDED:
        unfile_fact(c, fact["space"], fact["id"], now)
    if before is not None:
        c.run("unsay", change)

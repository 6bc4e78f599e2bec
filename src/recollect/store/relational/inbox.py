"""What comes into an inbox, inside the transaction of whoever sends it."""

from __future__ import annotations

from datetime import datetime

from recollect.agency import HandOver, Item, NewItem
from recollect.clock import to_micros
from recollect.domain import JobKind, KeyRef, SessionBirth
from recollect.store.protocol import NewId
from recollect.store.relational import agent_rows
from recollect.store.relational.database import Connection
from recollect.store.relational.session_keys import create_key, expect_key, find_key
from recollect.store.relational.text import storable


def post(c: Connection, ref: KeyRef, item: NewItem, job: JobKind, now: datetime) -> Item | None:
    """Put something into an inbox, inside a transaction; what was there already, if it was."""
    at = to_micros(now)
    names = agent_rows.names(ref)
    known = {**names, "item_id": item.id}
    life, found = c.rows_each([("lock_life", names), ("get_item", known)])
    if not life:
        expect_key(c, ref)
    elif found:
        return agent_rows.item(found[0])  # and the agent is left as it is, whatever became of it
    c.run("wake_agent", {**names, "job": job.value, "now": at})
    about = item.about
    inserted = c.row(
        "insert_item",
        {
            **names,
            "item_id": item.id,
            "kind": item.kind.value,
            "text": storable(item.text),
            "origin": storable(item.origin),
            "about_session": None if about is None else about.session_id,
            "about_first": None if about is None else about.first,
            "about_last": None if about is None else about.last,
            "now": at,
        },
    )
    if inserted is None:  # by somebody who was quicker
        row = c.row("get_item", known)
        assert row is not None
        return agent_rows.item(row)
    c.run("cancel_own_signals", names)
    lane = ref.agent_id if job is JobKind.AGENT else ""
    due = {"space": ref.space, "job": job.value, "job_key": str(ref.key_id), "lane": lane}
    c.run("make_agent_due", {**due, "now": at})
    return None


def hand_over(c: Connection, space: str, given: HandOver, now: datetime, new_id: NewId) -> None:
    """Post to a memory-agent, which is made on first use, inside a transaction."""
    ref = find_key(c, space, given.key, given.agent_id)
    if ref is None:
        ref = create_key(
            c, space, given.key, given.agent_id, SessionBirth(source="memory"), now, new_id
        )
        ref = ref or find_key(c, space, given.key, given.agent_id)
    assert ref is not None, "somebody has just made it"
    post(c, ref, given.item, JobKind.MEMORY_AGENT, now)

"""What comes into an inbox, inside the transaction of whoever sends it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.clock import to_micros
from recollect.errors import AppendKeyReused
from recollect.store.protocol import NewId
from recollect.store.relational import agent_rows, forgotten_keys, rows
from recollect.store.relational.database import Asked, Connection, Row
from recollect.store.relational.jobs import make_due
from recollect.store.relational.session_keys import ensure_key, expect_key, find_key
from recollect.store.relational.text import storable
from recollect.types.agents import HandOver, Item, ItemKind, ItemState, NewItem
from recollect.types.records import JobKind, KeyRef, SessionBirth


def post(c: Connection, ref: KeyRef, item: NewItem, job: JobKind, now: datetime) -> Item | None:
    """Put something into an inbox, inside a transaction; what was there already, if it was."""
    at = to_micros(now)
    names = agent_rows.names(ref)
    known = {**names, "item_id": item.id}
    said: Asked = ("find_append_key", {**names, "append_key": forgotten_keys.INBOX + item.id})
    life, found, records = c.rows_each([("lock_life", names), ("get_item", known), said])
    if not life:
        expect_key(c, ref)
    _check_same(item, found, records)
    if found:
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
        found = c.rows("get_item", known)
        _check_same(item, found, ())
        return agent_rows.item(found[0])
    c.run("cancel_own_signals", names)
    lane = ref.agent_id if job is JobKind.AGENT else ""
    due = {"space": ref.space, "job": job.value, "job_key": str(ref.key_id), "lane": lane}
    make_due(c, "make_agent_due", {**due, "now": at})
    return None


def _check_same(given: NewItem, found: Sequence[Row], records: Sequence[Row]) -> None:
    """An id stands for one message, which is in the inbox, or in the history when it is done."""
    if given.kind is not ItemKind.USER_MESSAGE:
        return
    words = [rows.record(row).content for row in records]
    for item in map(agent_rows.item, found):
        words += [item.text] if item.state is not ItemState.DONE else []
    if any(each != storable(given.text) for each in words):
        raise AppendKeyReused(
            f"the id {given.id!r} was used for another message; use a new id for a new message"
        )


def hand_over(c: Connection, space: str, given: HandOver, now: datetime, new_id: NewId) -> None:
    """Post to a memory-agent, which is made on first use, inside a transaction."""
    ref = find_key(c, space, given.key, given.agent_id)
    if ref is None:
        birth = SessionBirth(source="memory")
        ref = ensure_key(c, space, given.key, given.agent_id, birth, now, new_id)
    post(c, ref, given.item, JobKind.MEMORY_AGENT, now)

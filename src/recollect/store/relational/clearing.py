"""Forgetting much at once: the sessions of an agent or a source, and a space with all it holds.

Piece by piece, each in a transaction of its own, so that nobody waits for long; whoever is stopped
half-way goes on by asking again. What comes after the moment that is given is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from recollect.agency import Life
from recollect.clock import from_micros, to_micros
from recollect.knowledge import ForgettableSession, Receipt, SessionsMeant
from recollect.store.audit_protocol import SPACE_FORGOTTEN
from recollect.store.relational.database import Connection, Params, Row
from recollect.store.relational.document_rows import note_purge, purge_documents
from recollect.store.relational.forgetting import RelationalForgetting
from recollect.store.relational.jobs import make_due, note_change

PIECE = 200  # rows that one transaction erases
_FIRST = -1  # below every key
_NAMED = ("ledger", "audit", "keys", "vectors")  # where the name of a forgotten space may stay


class RelationalErasure(RelationalForgetting):
    """Implements `recollect.store.protocol.Erasure`."""

    def moment(self, space: str, now: datetime) -> datetime:
        row = self._database.read(space, lambda c: c.row("newest_moment", {"space": space}))
        return now if row is None or row[0] is None else max(now, from_micros(row[0]))

    def forgettable(
        self,
        space: str,
        meant: SessionsMeant,
        before: datetime,
        after: ForgettableSession | None,
        limit: int,
    ) -> list[ForgettableSession]:
        page = {
            "space": space,
            "before": to_micros(before),
            "any_agent": meant.agent_id is None,
            "agent_id": meant.agent_id or "",
            "any_source": meant.source is None,
            "source": meant.source or "",
            "after": -1 if after is None else to_micros(after.created_at),
            "after_id": "" if after is None else after.id,
            "limit": limit,
        }
        found = self._database.read(space, lambda c: c.rows("forgettable_sessions", page))
        return [
            ForgettableSession(created_at=from_micros(row[0]), id=row[1], is_forgotten=bool(row[2]))
            for row in found
        ]

    def forget_sessions(
        self, space: str, session_ids: Sequence[str], now: datetime, *, all_pages: bool = False
    ) -> Receipt:
        total = Receipt(space=space, at=now)
        for session_id in session_ids:
            receipt = self._erase_session(space, session_id, now, all_pages=all_pages)
            if receipt is not None:
                total = total.plus(receipt)
        return self._scrubbed(total)

    def forget_agent(self, space: str, agent_id: str, before: datetime) -> int:
        names = {"space": space, "agent_id": agent_id}
        keys = self._database.read(space, lambda c: c.rows("keys_of_agent", names))
        items = sum(
            self._database.erase(
                space, partial(_forget_life, space=space, key=row[0], before=before)
            )
            for row in keys
        )
        self._database.scrub()
        return items

    def forget_facts(self, space: str, before: datetime, now: datetime) -> int:
        facts, after = 0, _FIRST
        while found := self._database.erase(
            space, partial(_erase_facts, space=space, before=before, now=now, after=after)
        ):
            facts, after = facts + len(found), found[-1]
        return facts

    def forget_space(self, space: str, before: datetime, now: datetime) -> Receipt:
        documents, versions = self._forget_documents(space, before)
        items, after = 0, _FIRST
        while found := self._database.erase(
            space, partial(_clear_next, space=space, before=before, after=after)
        ):
            items, after = items + found[1], found[0]
        name_in = self._database.erase(space, lambda c: _drop_rest(c, space, now))
        return Receipt(
            space=space,
            at=now,
            documents=documents,
            versions=versions,
            items=items,
            name_in=name_in,
            is_complete=self._database.scrub(),
        )

    def _forget_documents(self, space: str, before: datetime) -> tuple[int, int]:
        documents, versions, after = 0, 0, _FIRST
        while found := self._database.erase(
            space, partial(_erase_documents, space=space, before=before, after=after)
        ):
            documents, after = documents + len(found), found[-1][0]
            versions += sum(row[3] for row in found)
        return documents, versions


def _erase_facts(
    c: Connection, *, space: str, before: datetime, now: datetime, after: int
) -> list[int]:
    """Erase the next so many facts; their keys."""
    c.run("lock_memory", {"space": space})
    make_due(c, "revoke_consolidation", {"space": space})
    old = {"space": space, "before": to_micros(before), "after": after, "limit": PIECE}
    found = [row[0] for row in c.rows("old_facts", old)]
    c.run_many("erase_fact", [{"space": space, "fact_key": key} for key in found])
    c.run("forget_changes", {"space": space, "before": to_micros(before)})
    if found:
        note_change(c, space, now, is_urgent=True)
    return found


def _erase_documents(c: Connection, *, space: str, before: datetime, after: int) -> list[Row]:
    c.row("lock_tree", {"space": space})
    old = {"space": space, "before": to_micros(before), "after": after, "limit": PIECE}
    found = c.rows("old_documents", old)
    purge_documents(c, space, [row[0] for row in found])
    if found:
        note_purge(c, space, max(row[2] for row in found))
    live = sum(row[1] is None for row in found)
    if live:
        c.run("count_documents", {"space": space, "more": -live})
    return found


def _forget_life(c: Connection, *, space: str, key: int, before: datetime) -> int:
    """End an agent and remove what waits for it; how many items those were.

    Its row stays while its key does: whoever speaks to it holds that before its job.
    """
    names = {"space": space, "key_id": key}
    own = {"space": space, "job_key": str(key)}
    c.row("lock_life", names)
    make_due(c, "revoke_agent", own)
    items = len(c.rows("forget_inbox", {**names, "before": to_micros(before)}))
    c.run("forget_own_signals", names)
    if c.row("has_items", names) is None:
        c.run("void_agent_job", own)
        c.run("set_life", {**names, "life": Life.DEAD.value, "now": to_micros(before)})
    return items


def _clear_next(
    c: Connection, *, space: str, before: datetime, after: int
) -> tuple[int, int] | None:
    """Remove what is left of the next key that a session was forgotten of: it, and its items.

    One at a time: whoever holds the session of one may wait for the life of another.
    """
    row = c.row("key_left", {"space": space, "after": after})
    if row is None:
        return None
    c.run("reserve_keys", {"space": space})
    return row[0], _clear_key(c, {"space": space, "key_id": row[0]}, before)


def _clear_key(c: Connection, key: Params, before: datetime) -> int:
    # Its life and its job before the key, as in a turn.
    items = _forget_life(c, space=key["space"], key=key["key_id"], before=before)
    c.row("lock_key", key)
    c.run("drop_told_by", key)
    c.run("drop_ranges", key)
    c.run("drop_jobs", key)
    c.run("drop_sessions", key)
    c.run("forget_life", key)
    if c.row("drop_key", key) is not None:
        c.run("drop_agent_job", {"space": key["space"], "job_key": str(key["key_id"])})
    return items


def _drop_rest(c: Connection, space: str, now: datetime) -> tuple[str, ...]:
    """Remove what is left of a space; where its name stays, if nothing has come there since."""
    names = {"space": space}
    c.run("drop_agents", names)  # before the memory, as where a memory-agent is made
    c.run("lock_memory", names)
    c.run("drop_generations", names)
    c.run("drop_generation_documents", names)
    c.run("drop_tombstones", names)
    c.run("drop_all_inputs", names)
    c.run("drop_usages", names)
    c.run("drop_calls", names)
    c.run("drop_imported", names)
    c.run("drop_import_cursors", names)
    c.run("drop_audit", {**names, "kept": SPACE_FORGOTTEN})
    c.run("drop_space", names)
    if c.row("find_space", names) is not None:
        c.run("settle_consolidation", names)
        c.run("rest_consolidation", names)
        note_change(c, space, now)
        return ()
    c.run("drop_consolidation_job", names)
    c.run("drop_tree", names)
    c.run("drop_consolidation", names)
    row = c.row("name_left", names)
    assert row is not None
    return tuple(place for place, is_there in zip(_NAMED, row, strict=True) if is_there)

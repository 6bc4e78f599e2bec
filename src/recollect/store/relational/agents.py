"""Turns of agents: taken from an inbox, stored with their effects, fenced by the agent's claim.

Owns A7 and M13 for agents: an item leaves its inbox in the transaction that stores what came of it.
On PostgreSQL an agent's life is locked before its job, its job before its key and session, and all
of them before the document tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from recollect.agency import (
    DocumentChanges,
    Item,
    ItemKind,
    ItemState,
    Life,
    MoreWork,
    NewItem,
    NoTurn,
    Signal,
    Turn,
)
from recollect.clock import from_micros, to_micros
from recollect.crashpoints import reach
from recollect.domain import (
    BackedOff,
    Claim,
    JobKind,
    JobState,
    KeyRef,
    LeasePolicy,
    MarkCause,
    MarkPolicy,
    NewRecord,
    Parked,
    Record,
    Released,
    SessionState,
    StaleClaim,
)
from recollect.messages import Role
from recollect.store.protocol import NewId
from recollect.store.relational import agent_rows, rows
from recollect.store.relational.database import Connection
from recollect.store.relational.documents import apply_edits
from recollect.store.relational.inbox import post
from recollect.store.relational.lives import RelationalLives, put_signals
from recollect.store.relational.records import append_keyed
from recollect.store.relational.sessions import current_session, rotate_session
from recollect.store.relational.telling import begin_told, carry_told, end_told
from recollect.store.relational.text import storable

MERGED_MAX = 50  # user messages that one turn answers
MERGED_CHARS_MAX = 200_000
DONE_KEPT = timedelta(hours=1)  # for those who ask what became of an item
ERROR_CHARS_MAX = 2000


class RelationalAgents(RelationalLives):
    """Implements `recollect.store.protocol.Agents`."""

    def post(self, ref: KeyRef, item: NewItem, job: JobKind, now: datetime) -> Item:
        def work(c: Connection) -> Item:
            post(c, ref, item, job, now)
            row = c.row("get_item", {**agent_rows.names(ref), "item_id": item.id})
            assert row is not None
            return agent_rows.item(row)

        return self._database.write(ref.space, work)

    def ref(self, claim: Claim) -> KeyRef | None:
        names = {"space": claim.space, "key_id": int(claim.key)}
        row = self._database.read(claim.space, lambda c: c.row("agent_of_job", names))
        return None if row is None else agent_rows.key_ref(row)

    def take(
        self, claim: Claim, policy: MarkPolicy, now: datetime, new_id: NewId
    ) -> Turn | NoTurn | StaleClaim:
        agent = {"space": claim.space, "key_id": int(claim.key)}

        def work(c: Connection) -> Turn | NoTurn | StaleClaim:
            life = c.row("lock_life", agent)
            ref = _held(c, claim)
            if ref is None:
                return StaleClaim()
            names = agent_rows.names(ref)
            found = c.rows("waiting_items", {**names, "limit": MERGED_MAX})
            items = _of_one_turn([agent_rows.item(row) for row in found])
            if not items:
                return NoTurn()
            if life is not None and life[0] != Life.ACTIVE:  # what it could not do was revived
                c.run("wake_agent", {**names, "job": life[1], "now": to_micros(now)})
                c.run("cancel_own_signals", names)
            turn_id = items[0].turn_id or items[0].id
            if items[0].state is ItemState.QUEUED:
                taken = [{**names, "turn_id": turn_id, "item_id": each.id} for each in items]
                c.run_many("take_item", taken)
            said = [_said(item) for item in items if item.kind is not ItemKind.RESET]
            begun = append_keyed(c, ref, said, policy, now, new_id) if said else []
            begin_told(c, ref, items, begun)
            reach("agent.taken")
            return Turn(
                id=turn_id,
                items=items,
                session=current_session(c, ref),
                records=tuple(_since(c, ref, begun)),
            )

        return self._database.write(claim.space, work)

    def step(
        self,
        claim: Claim,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
    ) -> list[Record] | StaleClaim:
        def work(c: Connection) -> list[Record] | StaleClaim:
            ref = _held(c, claim)
            if ref is None or not _has_turn(c, claim, ref):
                return StaleClaim()
            return append_keyed(c, ref, records, policy, now, new_id)

        return self._database.write(claim.space, work)

    def finish(
        self,
        claim: Claim,
        turn: Turn,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
        documents: DocumentChanges | None = None,
    ) -> list[Record] | StaleClaim:
        def work(c: Connection) -> list[Record] | StaleClaim:
            ref = _held(c, claim)
            if ref is None or not _has_turn(c, claim, ref, turn):
                return StaleClaim()
            answer = append_keyed(c, ref, records, policy, now, new_id) if records else []
            reach("agent.answered")
            if answer and turn.records and answer[-1].session_id != turn.records[0].session_id:
                carry_told(c, ref, turn.items, answer[-1].session_id)
            _finish_items(c, claim, ref, turn, now)
            if documents is not None and documents.edits:
                apply_edits(c, ref.space, documents, now, new_id)
            reach("agent.finished")
            return answer

        return self._database.write(claim.space, work)

    def rotate(
        self,
        claim: Claim,
        cause: MarkCause,
        now: datetime,
        new_id: NewId,
        *,
        turn: Turn | None = None,
        summary: str | None = None,
        retain: int = 0,
    ) -> SessionState | StaleClaim:
        def work(c: Connection) -> SessionState | StaleClaim:
            ref = _held(c, claim)
            if ref is None or (turn is not None and not _has_turn(c, claim, ref, turn)):
                return StaleClaim()
            items = [agent_rows.item(row) for row in c.rows("lock_turn", agent_rows.names(ref))]
            end_told(c, ref, items)
            session = rotate_session(c, ref, cause, now, new_id, summary=summary, retain=retain)
            if turn is not None:
                _finish_items(c, claim, ref, turn, now)
            else:
                carry_told(c, ref, items, session.id)
            return session

        return self._database.write(claim.space, work)

    def fail(
        self,
        claim: Claim,
        turn_id: str | None,
        error: str,
        delay_seconds: float,
        policy: LeasePolicy,
        now: datetime | None,
        *,
        is_final: bool = False,
    ) -> BackedOff | Parked | Released | StaleClaim:
        told = storable(error[:ERROR_CHARS_MAX])
        at = None if now is None else to_micros(now)
        failure = {"is_final": is_final, "failures_max": policy.failures_max, "error": told}

        def work(c: Connection) -> BackedOff | Parked | Released | StaleClaim:
            ref = _held(c, claim)
            if ref is None:
                return StaleClaim()
            names = agent_rows.names(ref)
            items = [agent_rows.item(row) for row in c.rows("lock_turn", names)]
            failed = c.rows("fail_items", {**names, **failure, "turn_id": turn_id})
            is_parked = any(row[0] == ItemState.PARKED for row in failed)
            if is_parked:
                end_told(c, ref, items)
            is_gone = turn_id is not None and not failed  # forgotten: nothing of it is left
            if is_gone or (is_parked and c.row("has_items", names) is not None):
                c.run("note_progress", {"id": claim.job_id, "is_last": False, "now": at})
                _give_back(c, claim)
                return Released()
            row = c.row(
                "fail_claim",
                {
                    **_token(claim),
                    **failure,
                    "is_final": is_parked or (is_final and not failed),
                    "delay_micros": round(delay_seconds * 1_000_000),
                    "now": at,
                },
            )
            assert row is not None, "the claim is held"
            return Parked() if row[0] == JobState.PARKED else BackedOff(from_micros(row[1]))

        return self._database.write(claim.space, work)

    def release(
        self, claim: Claim, signals: Sequence[Signal], now: datetime
    ) -> Released | MoreWork | StaleClaim:
        names = {"space": claim.space, "key_id": int(claim.key)}

        def work(c: Connection) -> Released | MoreWork | StaleClaim:
            c.row("lock_life", names)
            ref = _held(c, claim)
            if ref is None:
                return StaleClaim()
            if c.row("has_items", names) is not None:
                return MoreWork()
            put_signals(c, ref, signals)
            c.run("drop_done_items", {**names, "before": to_micros(now - DONE_KEPT)})
            c.run("rest_agent", {**_token(claim), "now": to_micros(now)})
            return Released()

        return self._database.write(claim.space, work)

    def item(self, ref: KeyRef, item_id: str) -> Item | None:
        names = {**agent_rows.names(ref), "item_id": item_id}
        row = self._database.read(ref.space, lambda c: c.row("get_item", names))
        return None if row is None else agent_rows.item(row)

    def find_record(self, ref: KeyRef, append_key: str) -> Record | None:
        names = {**agent_rows.names(ref), "append_key": append_key}
        row = self._database.read(ref.space, lambda c: c.row("find_append_key", names))
        return None if row is None else rows.record(row)


def _held(c: Connection, claim: Claim) -> KeyRef | None:
    """Whose claim it is, if it is still held; nobody else takes it until we commit."""
    names = {**_token(claim), "space": claim.space, "key": claim.key}
    if c.row("lock_claim", names) is None:
        return None
    row = c.row("agent_of_job", {"space": claim.space, "key_id": int(claim.key)})
    return None if row is None else agent_rows.key_ref(row)


def _of_one_turn(waiting: Sequence[Item]) -> tuple[Item, ...]:
    """What an interrupted turn was made of; else the first item, with user messages that follow."""
    if not waiting:
        return ()
    first = waiting[0]
    if first.state is ItemState.TAKEN:
        return tuple(item for item in waiting if item.turn_id == first.turn_id)
    if first.kind is not ItemKind.USER_MESSAGE:
        return (first,)
    merged: list[Item] = []
    size = 0
    for item in waiting:
        size += len(item.text)
        if item.kind is not ItemKind.USER_MESSAGE or (merged and size > MERGED_CHARS_MAX):
            break
        merged.append(item)
    return tuple(merged)


def _said(item: Item) -> NewRecord:
    is_user = item.kind is ItemKind.USER_MESSAGE
    return NewRecord(
        role=Role.USER if is_user else Role.NOTE,
        content=item.text,
        name=None if is_user else item.origin or None,
        said_at=item.created_at,
        append_key=f"inbox:{item.id}",
    )


def _since(c: Connection, ref: KeyRef, begun: Sequence[Record]) -> list[Record]:
    """The records of a turn so far, from its first on."""
    if not begun:
        return []
    first = begun[0]
    page = {"space": ref.space, "id": first.session_id, "after": first.seq - 1, "limit": 10_000}
    return [rows.record(row) for row in c.rows("records_after", page)]


def _has_turn(c: Connection, claim: Claim, ref: KeyRef, turn: Turn | None = None) -> bool:
    """Whether what the agent works on is still to be done; if not, the claim is over at once.

    What a session said that was forgotten must not be stored by those who have read it before.
    """
    taken = [agent_rows.item(row) for row in c.rows("lock_turn", agent_rows.names(ref))]
    if any(turn is None or item.turn_id == turn.id for item in taken):
        return True
    _give_back(c, claim)
    return False


def _give_back(c: Connection, claim: Claim) -> None:
    c.row("give_back", {**_token(claim), "due_at": None, "first_due_at": None})


def _finish_items(c: Connection, claim: Claim, ref: KeyRef, turn: Turn, now: datetime) -> None:
    names = agent_rows.names(ref)
    c.rows("finish_items", {**names, "turn_id": turn.id, "now": to_micros(now)})
    c.run("note_progress", {"id": claim.job_id, "is_last": False, "now": to_micros(now)})
    end_told(c, ref, turn.items, turn.records)


def _token(claim: Claim) -> dict[str, object]:
    return {"id": claim.job_id, "token": claim.token}

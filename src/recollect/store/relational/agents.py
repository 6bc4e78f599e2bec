"""Lives of agents and the signals that change them: durable, replaced by name, delivered once.

Owns M14: an agent that gets no messages falls asleep, which marks its session; one that sleeps too
long is dead. A signal is removed in the transaction in which it takes effect.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from recollect.clock import from_micros, to_micros
from recollect.crashpoints import reach
from recollect.descriptors import from_cache_key, type_of
from recollect.errors import AppendKeyReused
from recollect.ids import NewId
from recollect.messages import Role
from recollect.store.relational import rows
from recollect.store.relational.database import Aggregate, Asked, Connection, Row, scope
from recollect.store.relational.document_edits import apply_edits
from recollect.store.relational.documents import render_pages
from recollect.store.relational.jobs import make_due, mark
from recollect.store.relational.records import INBOX, append_keyed, asking_for
from recollect.store.relational.rows import moment, storable
from recollect.store.relational.sessions import ensure_key, expect_key, find_key, rotate_session
from recollect.types import agents as agency
from recollect.types.agents import (
    AgentState,
    Delivery,
    DocumentChanges,
    DueSignal,
    HandOver,
    Item,
    ItemKind,
    ItemState,
    Life,
    LifePolicy,
    MoreWork,
    NewItem,
    NoTurn,
    Signal,
    Span,
    Turn,
)
from recollect.types.pages import Filing
from recollect.types.records import (
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
    SessionBirth,
    SessionState,
    StaleClaim,
)


def named(ref: KeyRef) -> dict[str, object]:
    return {"space": ref.space, "key_id": ref.key_id}


key_ref = rows.reader(KeyRef)


def as_item(row: Row) -> Item:
    about = None if row[4] is None else Span(session_id=row[4], first=row[5], last=row[6])
    return Item(
        id=row[0],
        kind=ItemKind(row[1]),
        text=row[2],
        origin=row[3],
        about=about,
        state=ItemState(row[7]),
        turn_id=row[8],
        attempts=row[9],
        last_error=row[10],
        created_at=from_micros(row[11]),
    )


def posted_item(new: NewItem, now: datetime) -> Item:
    """What a reader would see of an item that was just stored, without reading it back."""
    return Item(
        id=new.id,
        kind=new.kind,
        text=storable(new.text),
        origin=storable(new.origin),
        about=new.about,
        state=ItemState.QUEUED,
        turn_id=None,
        attempts=0,
        last_error=None,
        created_at=from_micros(to_micros(now)),
    )


as_signal = rows.reader(Signal)


def agent_state(row: Row, signals: list[Signal]) -> AgentState:
    return AgentState(
        ref=key_ref(row),
        life=Life(row[4]),
        since=from_micros(row[5]),
        incarnation=row[6],
        session_id=row[7],
        queued=int(row[8]),
        parked=int(row[9]),
        signals=tuple(signals),
        job=JobKind(row[10]),
        job_state=None if row[11] is None else JobState(row[11]),
        next_try_at=moment(row[12]),
        last_error=row[13],
    )


def post(c: Connection, ref: KeyRef, item: NewItem, job: JobKind, now: datetime) -> Item | None:
    """Put something into an inbox, inside a transaction; what was there already, if it was."""
    at = to_micros(now)
    names = named(ref)
    known = {**names, "item_id": item.id}
    said: Asked = ("find_append_key", {**names, "append_key": INBOX + item.id})
    life, found, records = c.rows_each([("lock_life", names), ("get_item", known), said])
    if not life:
        expect_key(c, ref)
    _check_same(item, found, records)
    if found:
        return as_item(found[0])  # and the agent is left as it is, whatever became of it
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
        return as_item(found[0])
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
    for item in map(as_item, found):
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


_OPEN = 2**62  # the last record of a turn that is under way


def begin_told(c: Connection, ref: KeyRef, items: Sequence[Item], begun: Sequence[Record]) -> None:
    """A turn begins, or goes on, with these records."""
    if begun:
        _tell(c, ref, items, begun[0].session_id, begun[0].seq)


def carry_told(c: Connection, ref: KeyRef, items: Sequence[Item], session_id: str) -> None:
    """A turn goes on in a session that has just begun."""
    _tell(c, ref, items, session_id, 1)


def end_told(
    c: Connection, ref: KeyRef, items: Sequence[Item], begun: Sequence[Record] = ()
) -> None:
    """A turn is over: in the current session of its key, and in the one in which it began."""
    if all(item.about is None for item in items):
        return
    current = c.row("current_session", named(ref))
    assert current is not None, "a key always has a session"
    sessions = {current[0], *(record.session_id for record in begun)}
    for item in items:
        if item.about is not None:
            spoken = {"space": ref.space, "about_session": item.about.session_id, "open": _OPEN}
            for session_id in sorted(sessions):
                c.run("end_told", {**spoken, "session_id": session_id})


def _tell(c: Connection, ref: KeyRef, items: Sequence[Item], session_id: str, first: int) -> None:
    for item in items:
        if item.about is not None:
            spoken = {
                "space": ref.space,
                "about_session": item.about.session_id,
                "session_id": session_id,
                "first_seq": first,
                "last_seq": _OPEN,
            }
            c.run("put_told", spoken)


class Agents(Aggregate):
    """Inboxes, lives and signals. A claim is on an agent's job; what it stores is fenced by it."""

    def set_signal(self, ref: KeyRef, signal: Signal, job: JobKind, now: datetime) -> None:
        """Schedule a signal, in place of one with the same name."""

        def work(c: Connection) -> None:
            if c.row("lock_life", named(ref)) is None:
                expect_key(c, ref)
                woken = {**named(ref), "job": job.value, "now": to_micros(now)}
                c.run("wake_agent", woken)
            put_signals(c, ref, [signal])

        self._database.write(ref.space, work)

    def cancel_signal(self, ref: KeyRef, name: str) -> bool:
        names = {**named(ref), "name": name}
        return self._database.write(ref.space, lambda c: c.row("cancel_signal", names)) is not None

    def due_signals(
        self, now: datetime, limit: int, space: str | None = None
    ) -> builtins.list[DueSignal]:
        """Signals whose time has come, of one space or all, the earliest first."""
        page = {**scope(space), "now": to_micros(now), "limit": limit}
        return self._page(rows.reader(DueSignal), space, "due_signals", page)

    def deliver(self, due: DueSignal, policy: LifePolicy, now: datetime, new_id: NewId) -> Delivery:
        """Apply a signal and remove it, in one step.

        An idle agent falls asleep and its session is marked; one that sleeps too long is dead.
        """
        names = named(due.ref)
        taken = {**names, "name": due.signal.name, "now": to_micros(now)}

        def work(c: Connection) -> Delivery:
            life = c.row("lock_life", names)
            row = c.row("take_signal", taken)
            if life is None or row is None:
                return Delivery.VOID
            reach("signal.taken")
            match due.signal.name:
                case agency.IDLE:
                    return _fall_asleep(c, due.ref, policy, now)
                case agency.POISON_PILL:
                    return _die_asleep(c, due.ref, now)
                case name:
                    item = NewItem(id=new_id(), kind=ItemKind.SIGNAL, text=row[0], origin=name)
                    post(c, due.ref, item, JobKind(life[1]), now)
                    return Delivery.POSTED

        return self._database.write(due.ref.space, work)

    def next_signal_at(self) -> datetime | None:
        row = self._row(None, "next_signal", {})
        return None if row is None or row[0] is None else from_micros(row[0])

    def kill(self, ref: KeyRef, now: datetime) -> bool:
        """End an agent at once: what waits for it is dropped. False: there is none alive."""
        names = named(ref)

        def work(c: Connection) -> bool:
            row = c.row("lock_life", names)
            if row is None or row[0] == Life.DEAD:
                return False
            # Its job before its session, as in a turn of its own.
            c.run("void_agent_job", {"job_key": str(ref.key_id), "space": ref.space})
            end_told(c, ref, [as_item(each) for each in c.rows("lock_turn", names)])
            c.run("drop_items", names)
            _mark(c, ref, now)
            _die(c, ref, now)
            return True

        return self._database.write(ref.space, work)

    def get(self, ref: KeyRef) -> AgentState | None:
        wanted = {"any_space": False, "space": ref.space, "any_key": False, "key_id": ref.key_id}
        found = self._states(ref.space, {**wanted, "limit": 1})
        return found[0] if found else None

    def list(self, space: str | None, limit: int) -> builtins.list[AgentState]:
        """Agents, those that are awake first."""
        return self._states(space, {**scope(space), "any_key": True, "key_id": 0, "limit": limit})

    def _states(self, space: str | None, wanted: dict[str, object]) -> builtins.list[AgentState]:
        def work(c: Connection) -> builtins.list[AgentState]:
            found = c.rows("agent_states", wanted)
            each = [{"space": row[0], "key_id": row[3]} for row in found]
            signals = c.rows_each([("agent_signals", one) for one in each])
            return [
                agent_state(row, [as_signal(one) for one in own])
                for row, own in zip(found, signals, strict=True)
            ]

        return self._database.read(space, work)

    def counts(self, space: str | None) -> dict[Life, int]:
        found = self._rows(space, "count_agents", scope(space))
        return {Life(row[0]): int(row[1]) for row in found}

    def post(self, ref: KeyRef, item: NewItem, job: JobKind, now: datetime) -> Item:
        """Put something into an inbox: the agent wakes, and its job is due.

        An item that is known already is not stored again; it is returned in its current state.
        AppendKeyReused: the id of the message was used for another text.
        """

        def work(c: Connection) -> Item:
            known = post(c, ref, item, job, now)
            return posted_item(item, now) if known is None else known

        return self._database.write(ref.space, work)

    def ref(self, claim: Claim) -> KeyRef | None:
        """The agent whose job is claimed; None: it does not exist any more."""
        [found] = self._database.ask(claim.space, [("agent_of_job", _agent(claim))])
        return key_ref(found[0]) if found else None

    def take(
        self, claim: Claim, policy: MarkPolicy, now: datetime, new_id: NewId
    ) -> Turn | NoTurn | StaleClaim:
        """The next turn, its messages appended to the history; one that was interrupted first."""
        names = _agent(claim)
        lock: Asked = ("lock_life", names)
        waiting: Asked = ("waiting_items", {**names, "limit": MERGED_MAX})

        def work(c: Connection) -> Turn | NoTurn | StaleClaim:
            lives, *held, found = c.rows_each([lock, *_holding(claim), waiting])
            ref = _holder(held)
            if ref is None:
                return StaleClaim()
            items = _of_one_turn([as_item(row) for row in found])
            if not items:
                return NoTurn()
            if lives and lives[0][0] != Life.ACTIVE:  # what it could not do was revived
                c.run("wake_agent", {**names, "job": lives[0][1], "now": to_micros(now)})
                c.run("cancel_own_signals", names)
            turn_id = items[0].turn_id or items[0].id
            if items[0].state is ItemState.QUEUED:
                taken = [{**names, "turn_id": turn_id, "item_id": each.id} for each in items]
                c.run_many("take_item", taken)
            said = [_said(item) for item in items if item.kind is not ItemKind.RESET]
            begun = append_keyed(c, ref, said, policy, now, new_id) if said else []
            begin_told(c, ref, items, begun)
            reach("agent.taken")
            session, records = _so_far(c, ref, begun)
            return Turn(id=turn_id, items=items, session=session, records=records)

        return self._database.write(claim.space, work)

    def step(
        self,
        claim: Claim,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
    ) -> builtins.list[Record] | StaleClaim:
        """Append what happens during a turn. A record whose append key is known is there already.

        NotFound: the key's session is gone.
        """

        def work(c: Connection) -> builtins.list[Record] | StaleClaim:
            ref, items, _ = _working(c, claim)
            if ref is None or not _is_at_work(c, claim, items, None):
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
        documents: DocumentChanges | Filing | None = None,
    ) -> builtins.list[Record] | StaleClaim:
        """Store the answer and other results of a turn, and remove its items from the inbox.

        The documents are the edits of a model, or the facts that are to be rendered.
        """
        spoken_to = KeyRef(key=turn.session.key, agent_id=turn.session.agent_id, **_agent(claim))
        asked = asking_for(spoken_to, records) if records else []

        def work(c: Connection) -> builtins.list[Record] | StaleClaim:
            ref, items, found = _working(c, claim, asked)
            if ref is None or not _is_at_work(c, claim, items, turn):
                return StaleClaim()
            answer = append_keyed(c, ref, records, policy, now, new_id, found) if records else []
            reach("agent.answered")
            if answer and turn.records and answer[-1].session_id != turn.records[0].session_id:
                carry_told(c, ref, turn.items, answer[-1].session_id)
            _finish_items(c, claim, ref, turn, now)
            match documents:
                case DocumentChanges():
                    apply_edits(c, ref.space, documents, now, new_id)
                    if (said := documents.instead_of) is not None:
                        render_pages(c, ref.space, said, now, new_id, is_said=True)
                case Filing():
                    render_pages(c, ref.space, documents, now, new_id)
                case None:
                    pass
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
        """Rotate the agent's session as `Sessions.rotate` does; a turn that asked for it ends."""

        def work(c: Connection) -> SessionState | StaleClaim:
            ref, items, _ = _working(c, claim)
            if ref is None or (turn is not None and not _is_at_work(c, claim, items, turn)):
                return StaleClaim()
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
        """Count a failure against a turn. Its items are parked when there are too many.

        Released: they are, and the next ones are due.
        """
        told = storable(error[:ERROR_CHARS_MAX])
        at = None if now is None else to_micros(now)
        failure = {"is_final": is_final, "failures_max": policy.failures_max, "error": told}

        def work(c: Connection) -> BackedOff | Parked | Released | StaleClaim:
            ref, items, _ = _working(c, claim)
            if ref is None:
                return StaleClaim()
            names = named(ref)
            # What was read together is tried apart: one that cannot be done holds up no other.
            is_apart = sum(each.about is not None for each in items) > 1
            failed = c.rows(
                "fail_items", {**names, **failure, "turn_id": turn_id, "is_apart": is_apart}
            )
            is_parked = any(row[0] == ItemState.PARKED for row in failed)
            if is_parked:
                end_told(c, ref, items)
            is_gone = turn_id is not None and not failed  # forgotten: nothing of it is left
            if is_gone or is_apart or (is_parked and c.row("has_items", names) is not None):
                c.run("note_progress", {**_token(claim), "is_last": False, "now": at})
                _give_back(c, claim)
                return Released()
            [row] = make_due(
                c,
                "fail_claim",
                {
                    **_token(claim),
                    **failure,
                    "is_final": is_parked or (is_final and not failed),
                    "delay_micros": round(delay_seconds * 1_000_000),
                    "now": at,
                },
            )
            return Parked() if row[0] == JobState.PARKED else BackedOff(from_micros(row[1]))

        return self._database.write(claim.space, work)

    def release(
        self, claim: Claim, signals: Sequence[Signal], now: datetime
    ) -> Released | MoreWork | StaleClaim:
        """Set an agent with an empty inbox to rest, with its later signals."""
        names = _agent(claim)

        def work(c: Connection) -> Released | MoreWork | StaleClaim:
            _, *held, waiting = c.rows_each(
                [("lock_life", names), *_holding(claim), ("has_items", names)]
            )
            ref = _holder(held)
            if ref is None:
                return StaleClaim()
            if waiting:
                return MoreWork()
            put_signals(c, ref, signals)
            c.run("drop_done_items", {**names, "before": to_micros(now - DONE_KEPT)})
            c.run("rest_agent", {**_token(claim), "now": to_micros(now)})
            return Released()

        return self._database.write(claim.space, work)

    def item(self, ref: KeyRef, item_id: str) -> Item | None:
        names = {**named(ref), "item_id": item_id}
        [found] = self._database.ask(ref.space, [("get_item", names)])
        return as_item(found[0]) if found else None

    def find_record(self, ref: KeyRef, append_key: str) -> Record | None:
        """The record that was appended under an append key."""
        names = {**named(ref), "append_key": append_key}
        [found] = self._database.ask(ref.space, [("find_append_key", names)])
        return rows.record(found[0]) if found else None


def put_signals(c: Connection, ref: KeyRef, signals: Sequence[Signal]) -> None:
    for each in signals:
        row = {"name": each.name, "due_at": to_micros(each.due_at), "body": storable(each.body)}
        c.run("put_signal", {**named(ref), **row})


def _fall_asleep(c: Connection, ref: KeyRef, policy: LifePolicy, now: datetime) -> Delivery:
    names = named(ref)
    if c.row("has_items", names) is not None:
        return Delivery.VOID  # the turn that is to come sets the next one
    c.run("set_life", {**names, "life": Life.SLEEPING.value, "now": to_micros(now)})
    _mark(c, ref, now)
    if type_of(from_cache_key(ref.agent_id)) not in policy.immortal_types:
        deadline = now + timedelta(seconds=policy.poison_pill_seconds)
        put_signals(c, ref, [Signal(name=agency.POISON_PILL, due_at=deadline)])
    return Delivery.SLEPT


def _mark(c: Connection, ref: KeyRef, now: datetime) -> None:
    """Mark what was said so far. A session that rotates meanwhile is marked by that."""
    current = c.row("current_session", named(ref))
    assert current is not None, "a key always has a session"
    session = {"space": ref.space, "id": current[0]}
    row = c.row("lock_session", session)
    assert row is not None
    mark(c, session, row[0], MarkCause.SLEEP, now)


def _die_asleep(c: Connection, ref: KeyRef, now: datetime) -> Delivery:
    if c.row("has_items", named(ref)) is not None:
        return Delivery.VOID  # something was revived meanwhile
    return _die(c, ref, now)


def _die(c: Connection, ref: KeyRef, now: datetime) -> Delivery:
    names = named(ref)
    c.run("set_life", {**names, "life": Life.DEAD.value, "now": to_micros(now)})
    c.run("cancel_signals", names)
    return Delivery.DIED


MERGED_MAX = 50  # user messages that one turn answers
MERGED_CHARS_MAX = 200_000
READ_MAX = 8  # stretches of sessions that one turn is about
READ_RECORDS_MAX = 400  # and their records, of which one stretch may have more
DONE_KEPT = timedelta(hours=1)  # for those who ask what became of an item
RECORDS_MAX = 10_000  # that a turn has so far
ERROR_CHARS_MAX = 2000


def _holding(claim: Claim) -> tuple[Asked, Asked]:
    """What tells whether a claim is still held, and whose; nobody else takes it until we commit."""
    names = {**_token(claim), "key": claim.key}
    return ("lock_claim", names), ("agent_of_job", _agent(claim))


def _holder(held: Sequence[Sequence[Row]]) -> KeyRef | None:
    locked, agents = held
    return key_ref(agents[0]) if locked and agents else None


def _working(
    c: Connection, claim: Claim, then: Sequence[Asked] = ()
) -> tuple[KeyRef | None, list[Item], list[list[Row]]]:
    """Return the agent of a claim that is still held, its items, and the rows of `then`."""
    held = [*_holding(claim), ("lock_turn", _agent(claim))]
    locked, agents, taken, *found = c.rows_each([*held, *then])
    return _holder((locked, agents)), [as_item(row) for row in taken], found


def _of_one_turn(waiting: Sequence[Item]) -> tuple[Item, ...]:
    """What an interrupted turn was made of; else the first item, with those that go with it.

    User messages are answered together, and stretches of sessions are read together: a model that
    is asked once for several costs less. One that failed is tried by itself.
    """
    if not waiting:
        return ()
    first = waiting[0]
    if first.state is ItemState.TAKEN:
        return tuple(item for item in waiting if item.turn_id == first.turn_id)
    if first.about is not None:
        return tuple(_read_together(waiting))
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


def _read_together(waiting: Sequence[Item]) -> Iterator[Item]:
    records = 0
    for number, item in enumerate(waiting[:READ_MAX]):
        records += 0 if item.about is None else item.about.last - item.about.first + 1
        is_one = item.about is not None and not item.attempts and records <= READ_RECORDS_MAX
        if number and not is_one:
            return
        yield item
        if not is_one:
            return


def _said(item: Item) -> NewRecord:
    is_user = item.kind is ItemKind.USER_MESSAGE
    return NewRecord(
        role=Role.USER if is_user else Role.NOTE,
        content=item.text,
        name=None if is_user else item.origin or None,
        said_at=item.created_at,
        append_key=f"inbox:{item.id}",
    )


def _so_far(
    c: Connection, ref: KeyRef, begun: Sequence[Record]
) -> tuple[SessionState, tuple[Record, ...]]:
    """The current session, and the records of a turn so far, from its first on."""
    asked: list[Asked] = [("get_current_session", named(ref))]
    for first in begun[:1]:
        page = {"space": ref.space, "id": first.session_id, "after": first.seq - 1}
        asked.append(("records_after", {**page, "limit": RECORDS_MAX}))
    [current], *since = c.rows_each(asked)
    return rows.session_state(current), tuple(rows.record(row) for found in since for row in found)


def _is_at_work(c: Connection, claim: Claim, taken: Sequence[Item], turn: Turn | None) -> bool:
    """Whether what the agent works on is still to be done; if not, the claim is over at once.

    What a session said that was forgotten must not be stored by those who have read it before.
    """
    if any(turn is None or item.turn_id == turn.id for item in taken):
        return True
    _give_back(c, claim)
    return False


def _give_back(c: Connection, claim: Claim) -> None:
    make_due(c, "give_back", {**_token(claim), "due_at": None, "first_due_at": None})


def _finish_items(c: Connection, claim: Claim, ref: KeyRef, turn: Turn, now: datetime) -> None:
    names = named(ref)
    c.run("finish_items", {**names, "turn_id": turn.id, "now": to_micros(now)})
    c.run("note_progress", {**_token(claim), "is_last": False, "now": to_micros(now)})
    end_told(c, ref, turn.items, turn.records)


def _agent(claim: Claim) -> dict[str, Any]:
    return {"space": claim.space, "key_id": int(claim.key)}


def _token(claim: Claim) -> dict[str, object]:
    return {"space": claim.space, "id": claim.job_id, "token": claim.token}

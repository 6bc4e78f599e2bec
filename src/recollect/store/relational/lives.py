"""Lives of agents and the signals that change them: durable, replaced by name, delivered once.

Owns M14: an agent that nobody speaks to falls asleep, which marks its session; one that sleeps too
long is dead. A signal goes in the transaction in which it has its effect.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime, timedelta

from recollect import agency
from recollect.agency import (
    AgentState,
    Delivery,
    DueSignal,
    ItemKind,
    Life,
    LifePolicy,
    NewItem,
    Signal,
)
from recollect.clock import from_micros, to_micros
from recollect.crashpoints import reach
from recollect.descriptors import from_cache_key, type_of
from recollect.domain import JobKind, KeyRef, MarkCause
from recollect.store.protocol import NewId
from recollect.store.relational import agent_rows
from recollect.store.relational.database import Connection, Database
from recollect.store.relational.inbox import post
from recollect.store.relational.jobs import mark
from recollect.store.relational.session_keys import expect_key
from recollect.store.relational.telling import end_told
from recollect.store.relational.text import storable


class RelationalLives:
    """The part of `recollect.store.protocol.Agents` that is about time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set_signal(self, ref: KeyRef, signal: Signal, job: JobKind, now: datetime) -> None:
        def work(c: Connection) -> None:
            if c.row("lock_life", agent_rows.names(ref)) is None:
                expect_key(c, ref)
                woken = {**agent_rows.names(ref), "job": job.value, "now": to_micros(now)}
                c.run("wake_agent", woken)
            put_signals(c, ref, [signal])

        self._database.write(ref.space, work)

    def cancel_signal(self, ref: KeyRef, name: str) -> bool:
        names = {**agent_rows.names(ref), "name": name}
        return self._database.write(ref.space, lambda c: c.row("cancel_signal", names)) is not None

    def due_signals(
        self, now: datetime, limit: int, space: str | None = None
    ) -> builtins.list[DueSignal]:
        scope = {"any_space": space is None, "space": space or ""}
        page = {**scope, "now": to_micros(now), "limit": limit}
        return [
            DueSignal(
                ref=KeyRef(space=row[0], key=row[1], agent_id=row[2], key_id=row[3]),
                signal=agent_rows.signal(row[4:7]),
            )
            for row in self._database.read(space, lambda c: c.rows("due_signals", page))
        ]

    def deliver(self, due: DueSignal, policy: LifePolicy, now: datetime, new_id: NewId) -> Delivery:
        names = agent_rows.names(due.ref)
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
        row = self._database.read(None, lambda c: c.row("next_signal", {}))
        return None if row is None or row[0] is None else from_micros(row[0])

    def kill(self, ref: KeyRef, now: datetime) -> bool:
        names = agent_rows.names(ref)

        def work(c: Connection) -> bool:
            row = c.row("lock_life", names)
            if row is None or row[0] == Life.DEAD:
                return False
            # Its job before its session, as in a turn of its own.
            c.run("void_agent_job", {"job_key": str(ref.key_id), "space": ref.space})
            end_told(c, ref, [agent_rows.item(each) for each in c.rows("lock_turn", names)])
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
        scope = {"any_space": space is None, "space": space or ""}
        return self._states(space, {**scope, "any_key": True, "key_id": 0, "limit": limit})

    def _states(self, space: str | None, wanted: dict[str, object]) -> builtins.list[AgentState]:
        def work(c: Connection) -> builtins.list[AgentState]:
            found = c.rows("agent_states", wanted)
            each = [{"space": row[0], "key_id": row[3]} for row in found]
            signals = c.rows_each([("agent_signals", one) for one in each])
            return [
                agent_rows.agent_state(row, [agent_rows.signal(one) for one in own])
                for row, own in zip(found, signals, strict=True)
            ]

        return self._database.read(space, work)

    def counts(self, space: str | None) -> dict[Life, int]:
        scope = {"any_space": space is None, "space": space or ""}
        found = self._database.read(space, lambda c: c.rows("count_agents", scope))
        return {Life(row[0]): int(row[1]) for row in found}


def put_signals(c: Connection, ref: KeyRef, signals: Sequence[Signal]) -> None:
    for each in signals:
        row = {"name": each.name, "due_at": to_micros(each.due_at), "body": storable(each.body)}
        c.run("put_signal", {**agent_rows.names(ref), **row})


def _fall_asleep(c: Connection, ref: KeyRef, policy: LifePolicy, now: datetime) -> Delivery:
    names = agent_rows.names(ref)
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
    current = c.row("current_session", agent_rows.names(ref))
    assert current is not None, "a key always has a session"
    session = {"space": ref.space, "id": current[0]}
    row = c.row("lock_session", session)
    assert row is not None
    mark(c, session, row[0], MarkCause.SLEEP, now)


def _die_asleep(c: Connection, ref: KeyRef, now: datetime) -> Delivery:
    if c.row("has_items", agent_rows.names(ref)) is not None:
        return Delivery.VOID  # something was revived meanwhile
    return _die(c, ref, now)


def _die(c: Connection, ref: KeyRef, now: datetime) -> Delivery:
    names = agent_rows.names(ref)
    c.run("set_life", {**names, "life": Life.DEAD.value, "now": to_micros(now)})
    c.run("cancel_signals", names)
    return Delivery.DIED

"""What a store does for agents at work; one of the aggregates of `store/protocol.py`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from recollect.types.agents import (
        AgentState,
        Delivery,
        DocumentChanges,
        DueSignal,
        Item,
        Life,
        LifePolicy,
        MoreWork,
        NewItem,
        NoTurn,
        Signal,
        Turn,
    )
    from recollect.types.pages import Filing
    from recollect.types.records import (
        BackedOff,
        Claim,
        JobKind,
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

NewId = Callable[[], str]


class Agents(Protocol):
    """Inboxes, lives and signals. A claim is on an agent's job; what it stores is fenced by it."""

    def post(self, ref: KeyRef, item: NewItem, job: JobKind, now: datetime) -> Item:
        """Put something into an inbox: the agent wakes, and its job is due.

        An item that is known already is not taken in again, and comes back as it stands.
        AppendKeyReused: a message's id has stood for other words.
        """
        ...

    def ref(self, claim: Claim) -> KeyRef | None:
        """Whose job it is; none: there is no such agent any more."""
        ...

    def take(
        self, claim: Claim, policy: MarkPolicy, now: datetime, new_id: NewId
    ) -> Turn | NoTurn | StaleClaim:
        """The next turn, its messages appended to the history; one that was interrupted first."""
        ...

    def step(
        self,
        claim: Claim,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
    ) -> list[Record] | StaleClaim:
        """Append what happens during a turn. A record whose append key is known is there already.

        NotFound: the key's session is gone.
        """
        ...

    def finish(
        self,
        claim: Claim,
        turn: Turn,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
        documents: DocumentChanges | Filing | None = None,
    ) -> list[Record] | StaleClaim:
        """Store the answer and what else came of a turn, and take its items off the inbox.

        The documents are the edits of a model, or the facts that are to be rendered.
        """
        ...

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
        ...

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
        ...

    def release(
        self, claim: Claim, signals: Sequence[Signal], now: datetime
    ) -> Released | MoreWork | StaleClaim:
        """Let an agent rest whose inbox is empty, with what is to happen later."""
        ...

    def item(self, ref: KeyRef, item_id: str) -> Item | None: ...

    def find_record(self, ref: KeyRef, append_key: str) -> Record | None:
        """The record that was appended under a key of its own."""
        ...

    def set_signal(self, ref: KeyRef, signal: Signal, job: JobKind, now: datetime) -> None:
        """Let something happen later, in place of what has the same name."""
        ...

    def cancel_signal(self, ref: KeyRef, name: str) -> bool: ...

    def due_signals(self, now: datetime, limit: int, space: str | None = None) -> list[DueSignal]:
        """Signals whose time has come, of one space or all, the earliest first."""
        ...

    def deliver(self, due: DueSignal, policy: LifePolicy, now: datetime, new_id: NewId) -> Delivery:
        """Let a signal have its effect, and be gone, in one step.

        An idle agent falls asleep and its session is marked; one that sleeps too long is dead.
        """
        ...

    def next_signal_at(self) -> datetime | None: ...

    def kill(self, ref: KeyRef, now: datetime) -> bool:
        """End an agent at once: what waits for it is dropped. False: there is none alive."""
        ...

    def get(self, ref: KeyRef) -> AgentState | None: ...

    def list(self, space: str | None, limit: int) -> builtins.list[AgentState]:
        """Agents, those that are awake first."""
        ...

    def counts(self, space: str | None) -> dict[Life, int]: ...

"""What a store can do, by aggregate. Each method is one transaction: all of it happens, or nothing.

The space comes first in every call; no method reads or writes another one. Methods that work for
the operator of the store take `space=None` for all of them. Times and ids are handed in, never
made here. A backend is right when it passes `recollect.store.conformance`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from recollect.domain import (
    BackedOff,
    CapReached,
    Claim,
    Job,
    JobKind,
    JobState,
    KeyRef,
    LeasePolicy,
    MarkCause,
    MarkPolicy,
    Mode,
    NewRecord,
    NothingDue,
    Outcome,
    Parked,
    Range,
    Record,
    Recorded,
    Released,
    Renewed,
    SessionBirth,
    SessionState,
    StaleClaim,
    StoreDescription,
)

NewId = Callable[[], str]


class Sessions(Protocol):
    """Sessions and the stable keys behind which they rotate."""

    def open_key(
        self, space: str, key: str, agent_id: str, birth: SessionBirth, now: datetime, new_id: NewId
    ) -> KeyRef:
        """Find a stable key, or create it with its first session."""
        ...

    def key_agents(self, space: str, key: str) -> builtins.list[str]:
        """The ids of the agents that use a stable key."""
        ...

    def find_key(self, space: str, key: str, agent_id: str) -> KeyRef | None: ...

    def current(self, ref: KeyRef) -> SessionState: ...

    def get(self, space: str, session_id: str) -> SessionState | None: ...

    def list(
        self, space: str, limit: int, before: SessionState | None
    ) -> builtins.list[SessionState]:
        """A page of sessions, newest first: those after `before` in that order."""
        ...

    def rotations(self, ref: KeyRef) -> builtins.list[SessionState]:
        """Every session of a key, oldest first."""
        ...

    def rotate(
        self,
        ref: KeyRef,
        cause: MarkCause,
        now: datetime,
        new_id: NewId,
        *,
        reason: str | None = None,
        summary: str | None = None,
        retain: int = 0,
    ) -> SessionState:
        """Mark and close the current session and open the next one behind the key.

        `retain` keeps that many of the newest records for the new session, by reference and from
        the start of a turn on; a compaction that is given no summary carries the old one over.
        """
        ...

    def end(self, ref: KeyRef, now: datetime) -> SessionState:
        """Mark and close the current session; the next append opens a new one."""
        ...

    def set_mode(self, ref: KeyRef, mode: Mode, now: datetime) -> SessionState: ...

    def spaces(self, after: str, limit: int) -> builtins.list[str]:
        """The names of the spaces above `after`, in order."""
        ...


class Records(Protocol):
    """The history of sessions."""

    def append(
        self,
        ref: KeyRef,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
    ) -> list[Record]:
        """Append to the key's current session and mark it if the policy says so.

        A record whose append key is known already is not stored again; it comes back as it was
        stored, and AppendKeyReused is raised if it says something else.
        """
        ...

    def recent(self, ref: KeyRef, limit: int | None) -> list[Record]:
        """The newest records of the current session (all for None), oldest first."""
        ...

    def after(self, space: str, session_id: str, seq: int, limit: int) -> list[Record]:
        """Records of one session above a seq, in order."""
        ...

    def all_rotations(self, ref: KeyRef) -> list[Record]:
        """Everything said under a key, in order."""
        ...

    def count(self, ref: KeyRef) -> int: ...

    def trim(self, ref: KeyRef, keep: int) -> None:
        """Drop all but the newest records of the current session: for what is not kept."""
        ...

    def purge(self, ref: KeyRef, now: datetime) -> None:
        """Remove the current session's history and summary; seq goes on, no mark is left."""
        ...

    def summary(self, ref: KeyRef) -> str: ...

    def set_summary(self, ref: KeyRef, content: str, now: datetime) -> None: ...


class Marks(Protocol):
    """Marks, cursors, and the ranges that have been dealt with."""

    def invalidate(
        self, space: str, session_id: str, seq: int, cause: MarkCause, now: datetime
    ) -> None: ...

    def invalidate_current(self, ref: KeyRef, cause: MarkCause, now: datetime) -> SessionState:
        """Mark the key's current session up to its last record."""
        ...

    def find_invalidated(self, space: str, limit: int) -> list[SessionState]: ...

    def mark_processed(
        self, space: str, session_id: str, processed_until: int, expected: int, now: datetime
    ) -> bool: ...

    def max_seq(self, space: str, session_id: str) -> int | None: ...

    def count_since(self, space: str, session_id: str, seq: int) -> int: ...

    def mark_idle(
        self, space: str | None, idle_since: datetime, now: datetime, limit: int
    ) -> list[tuple[str, str]]:
        """Mark at most `limit` sessions without activity since; (space, session id) of each."""
        ...

    def ranges(self, space: str, session_id: str) -> list[Range]: ...

    def counts(self, space: str | None) -> tuple[int, int]:
        """How many sessions are marked, and how many wait with unprocessed records."""
        ...

    def marked(self, space: str | None, limit: int) -> list[SessionState]:
        """Marked sessions, first marked first."""
        ...

    def waiting(self, space: str | None, limit: int) -> list[SessionState]:
        """Sessions with unprocessed records and no mark, longest without activity first."""
        ...

    def waiting_newest(self, limit: int) -> list[SessionState]:
        """The same over all spaces, the most recent activity first."""
        ...


class Leases(Protocol):
    """Jobs, claimed under leases with fencing tokens.

    `now=None` is the database's own clock, the one that all workers share.
    """

    def claim(
        self, owner: str, policy: LeasePolicy, now: datetime | None
    ) -> Claim | NothingDue | CapReached:
        """Take over the job whose lease ran out first, else the one that has been due longest."""
        ...

    def renew(
        self, claim: Claim, policy: LeasePolicy, now: datetime | None
    ) -> Renewed | StaleClaim: ...

    def record(
        self, claim: Claim, upto: int, outcome: Outcome, reason: str | None, now: datetime
    ) -> Recorded | StaleClaim:
        """Store what became of the records up to `upto`, with the cursor, fenced by the token.

        Below `read_upto` it is a piece of a longer job, which stays claimed; at `read_upto` it is
        the last one: the mark is cleared, or the job is due again if the mark has moved on.
        """
        ...

    def fail(
        self,
        claim: Claim,
        error: str,
        delay_seconds: float,
        policy: LeasePolicy,
        now: datetime | None,
        *,
        is_final: bool = False,
    ) -> BackedOff | Parked | StaleClaim:
        """Count a failure. `is_final`: trying again would not help, park it at once."""
        ...

    def release(self, claim: Claim) -> Released | StaleClaim:
        """Give a job back unharmed."""
        ...

    def ensure_recurring(self, kind: JobKind, now: datetime | None) -> None:
        """Make sure the store has its one job of a kind that comes round again."""
        ...

    def make_due(self, kind: JobKind) -> None:
        """Let a recurring job come round at once, unless it is being worked on."""
        ...

    def finish_recurring(
        self, claim: Claim, delay_seconds: float, now: datetime | None
    ) -> Released | StaleClaim:
        """Done for this time; due again after the delay."""
        ...

    def revive(self, space: str | None, key: str | None) -> int:
        """Give parked jobs another chance: one, those of a space, or all. How many it were."""
        ...

    def jobs(self, space: str | None, limit: int) -> list[Job]:
        """What is due, claimed or parked, first due first."""
        ...

    def get(self, space: str | None, kind: JobKind, key: str) -> Job | None: ...

    def counts(self, space: str | None) -> dict[JobState, int]: ...


class Store(Protocol):
    """A place to keep everything. Safe to use from any number of threads."""

    @property
    def sessions(self) -> Sessions: ...

    @property
    def records(self) -> Records: ...

    @property
    def marks(self) -> Marks: ...

    @property
    def leases(self) -> Leases: ...

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` from any thread when work may have become due; returns how to stop it."""
        ...

    def describe(self) -> StoreDescription: ...

    def close(self) -> None:
        """Close every connection; calling it again does nothing."""
        ...

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
    KeyRef,
    MarkCause,
    MarkPolicy,
    Mode,
    NewRecord,
    Range,
    Record,
    SessionBirth,
    SessionState,
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


class Store(Protocol):
    """A place to keep everything. Safe to use from any number of threads."""

    @property
    def sessions(self) -> Sessions: ...

    @property
    def records(self) -> Records: ...

    @property
    def marks(self) -> Marks: ...

    def describe(self) -> StoreDescription: ...

    def close(self) -> None:
        """Close every connection; calling it again does nothing."""
        ...

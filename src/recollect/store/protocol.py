"""What a store can do, by aggregate. Each method is one transaction: all of it happens, or nothing.

Only forgetting much takes several, each of which can be taken up again where it was left.

The space comes first in every call; no method reads or writes another one. Methods that work for
the operator of the store take `space=None` for all of them. Times and ids are handed in, never
made here. A backend is right when it passes `recollect_conformance`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from recollect.store.agent_protocol import Agents as Agents  # and the next: names of this module
from recollect.store.audit_protocol import Audit as Audit
from recollect.store.generation_protocol import GenerationStore as GenerationStore
from recollect.store.import_protocol import Imports as Imports
from recollect.store.key_protocol import ApiKeys as ApiKeys
from recollect.store.lease_protocol import Leases as Leases
from recollect.store.search_protocol import Search as Search
from recollect.store.tree_protocol import DocumentStore as DocumentStore
from recollect.store.tree_protocol import Tree as Tree
from recollect.store.vector_protocol import Vectors as Vectors
from recollect.types.facts import (
    Call,
    CallOutcome,
    Caps,
    Extraction,
    Fact,
    FactChange,
    FactEdit,
    FactQuery,
    ForgettableSession,
    NewCall,
    OverCap,
    Receipt,
    Reserved,
    Revision,
    SessionsMeant,
    Spent,
    When,
)
from recollect.types.records import (
    KeyRef,
    MarkCause,
    MarkPolicy,
    Mode,
    NewRecord,
    Range,
    Record,
    SessionBirth,
    SessionProgress,
    SessionState,
    StoreDescription,
    Unattended,
)

NewId = Callable[[], str]
MetadataValue = str | int | float | bool | None


class SessionStore(Protocol):
    """Sessions and the stable keys behind which they rotate."""

    def open_key(
        self, space: str, key: str, agent_id: str, birth: SessionBirth, now: datetime, new_id: NewId
    ) -> KeyRef:
        """Find a stable key, or create it with its first session.

        Behind a session that was forgotten the next one is of the project that is given now.
        """
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

    def set_mode(self, ref: KeyRef, mode: Mode, now: datetime) -> SessionState:
        """Say what may be learned from the current session; forbidding it voids all work on it.

        Allowed again, what was said meanwhile is skipped, and what had waited before is marked.
        """
        ...

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
        batch: str | None = None,
    ) -> list[Record]:
        """Append to the key's current session and mark it if the policy says so.

        A record whose append key is known already is not stored again; it comes back as it was
        stored, and AppendKeyReused is raised if it says something else. Of one that was forgotten
        an empty note with the seq 0 comes back, whatever is said. Records of a `batch` have its
        numbered keys, or keys of their own; AppendKeyReused: more or fewer came under it before.
        """
        ...

    def recent(self, ref: KeyRef, limit: int | None) -> list[Record]:
        """The newest records of the current session (all for None), oldest first."""
        ...

    def recent_with_summary(self, ref: KeyRef, limit: int) -> tuple[list[Record], str]:
        """The same, with the summary of what came before: what an agent's turn begins with."""
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

    def bound_activity(self, space: str | None, now: datetime) -> None:
        """Let no waiting session have been active later than now: another clock went ahead."""
        ...

    def mark_idle(
        self, space: str | None, which: Unattended | None, now: datetime, limit: int
    ) -> list[tuple[str, str]]:
        """Mark at most `limit` waiting sessions, of these or of all; (space, session id) of each.

        Those longest without activity come first.
        """
        ...

    def ranges(self, space: str, session_id: str) -> list[Range]:
        """What became of the records up to the cursor, and what is skipped above it."""
        ...

    def counts(self, space: str | None) -> tuple[int, int]:
        """How many sessions are marked, and how many wait with unprocessed records."""
        ...

    def marked(self, space: str | None, limit: int) -> list[SessionState]:
        """Marked sessions, first marked first."""
        ...

    def waiting(
        self, space: str | None, limit: int, which: Unattended | None = None
    ) -> list[SessionState]:
        """Sessions with unprocessed records and no mark, longest without activity first.

        All, or which of them.
        """
        ...

    def waiting_newest(self, which: Unattended, rows_max: int, limit: int) -> list[SessionState]:
        """Which of them over all spaces, the most recent activity first, among the newest rows."""
        ...


class Extractions(Protocol):
    """What sessions came to."""

    def get(self, space: str, session_id: str) -> Extraction | None: ...

    def list(self, space: str, limit: int, before: Extraction | None) -> builtins.list[Extraction]:
        """A page of extractions, the most recently made first."""
        ...

    def revision(self, space: str) -> Revision:
        """How often the space's memory has changed, and how much consolidation has seen."""
        ...

    def count_due(self, space: str | None) -> int:
        """How many spaces have changes that consolidation has not seen."""
        ...

    def progress(self, space: str | None, limit: int) -> builtins.list[SessionProgress]:
        """How extraction stands per session, the most recently begun first."""
        ...

    def request_passes(self, space: str | None, session_id: str | None, now: datetime) -> int:
        """Make a new pass due over one session, those of a space, or all; how many it are."""
        ...


class FactStore(Protocol):
    """Statements with sources, validity and history. Deleted ones are as if they were not there."""

    def add(self, space: str, fact: Fact, now: datetime, new_id: NewId) -> Fact:
        """Store a fact: under its id as it is, replacing what was there; without an id, once.

        What replaces another holds from when that did, if it does not say.
        A live fact that says the same gains its sources, and is what comes back.
        """
        ...

    def get(self, space: str, fact_id: str) -> Fact | None:
        """A fact with up to 1,000 of its sources; lists and searches give the 20 earliest."""
        ...

    def update(self, space: str, fact_id: str, edit: FactEdit, now: datetime) -> Fact | None:
        """Change what a fact says; it is somebody's own from then on. None: there is none.

        Edits that are made at once lose nothing of each other. A statement that still says the same
        is still known by it, and gains sources. What its sessions came to says the new one, also
        where it is learned again.
        """
        ...

    def approve(self, space: str, fact_id: str, content: str, now: datetime) -> Fact | None:
        """Make a fact a person's word, and with it what bears it out. None: it does not say this.

        It still goes with the sessions it rests on.
        """
        ...

    def delete(self, space: str, fact_id: str, now: datetime) -> bool:
        """Delete a fact; its history stays, and what its sessions have said does not bring it back.

        What they came to does not say it any more. Whoever says it there again is believed, if that
        is a person.
        """
        ...

    def list(self, space: str, query: FactQuery, limit: int) -> builtins.list[Fact]:
        """A page of facts, newest first."""
        ...

    def search(
        self,
        space: str,
        terms: Sequence[str],
        at: datetime,
        limit: int,
        sources_max: int = 20,
        when: When = When.THEN,
    ) -> builtins.list[Fact]:
        """Facts that hold at a time and have any of the words, the best first.

        `when` says how the time is meant: facts that were edited since are found by what they said.

        Each with the earliest of its sources, no more than asked for: whoever needs none asks for
        none.
        """
        ...

    def search_metadata(
        self,
        space: str,
        key: str,
        value: MetadataValue,
        at: datetime,
        limit: int,
        when: When = When.THEN,
        before: Fact | None = None,
    ) -> builtins.list[Fact]:
        """Facts that hold at a time and whose metadata has this value under this very key.

        Newest first; `before` is the last one of the page before.
        """
        ...

    def count(self, space: str, at: datetime, when: When = When.THEN) -> int: ...

    def history(self, space: str, fact_id: str) -> builtins.list[FactChange]: ...


class Ledger(Protocol):
    """What model calls take, held against what a space may use."""

    def reserve(self, call: NewCall, caps: Caps, now: datetime) -> Reserved | OverCap:
        """Enter a call with what it may take at most, unless that exceeds a cap."""
        ...

    def settle(self, space: str, call_id: int, spent: Spent, outcome: CallOutcome) -> bool:
        """Replace the estimate by what the call took: nothing, if it never began.

        False: it was settled before.
        """
        ...

    def spent(self, space: str | None, day: datetime) -> Spent: ...

    def spent_by_purpose(self, space: str | None, day: datetime) -> list[tuple[str, Spent, Spent]]:
        """What each purpose that calls were made for took on a day, and in all."""
        ...

    def spent_daily(
        self, space: str | None, first: datetime, last: datetime
    ) -> list[tuple[datetime, Spent]]:
        """What each day took from the first to the last, by its midnight; none: nothing."""
        ...

    def calls(
        self, space: str, session_id: str | None, limit: int, before: Call | None
    ) -> list[Call]:
        """A page of calls, newest first."""
        ...


class Erasure(Protocol):
    """Forgetting for good. Receipts that are none: there is no such thing in the space."""

    def forget_session(
        self, space: str, session_id: str, now: datetime, *, all_pages: bool = False
    ) -> Receipt | None:
        """Erase a session and what rests on it alone.

        Here and below: pages that a model wrote from it go whole, and what else they were written
        from is filed again; those that somebody else wrote on are `left`, or go with `all_pages`.
        The summaries of the sessions that compactions carried its words into go with it. Its append
        keys are known from then on, and nothing is stored under them.
        """
        ...

    def forget_record(
        self, space: str, session_id: str, seq: int, now: datetime, *, all_pages: bool = False
    ) -> Receipt | None:
        """Erase a record, what rests on it alone, and every text that may carry it.

        An empty note keeps its number. A new pass over what is left of its session is due.
        """
        ...

    def forget_fact(
        self, space: str, fact_id: str, now: datetime, *, all_pages: bool = False
    ) -> Receipt | None:
        """Erase a fact with its history and its sources; its sessions do not bring it back.

        What its sessions came to does not say it any more.
        """
        ...

    def moment(self, space: str, now: datetime) -> datetime:
        """By when everything there is was there: now, or when the newest was made by its clock."""
        ...

    def forgettable(
        self,
        space: str,
        meant: SessionsMeant,
        before: datetime,
        after: ForgettableSession | None,
        limit: int,
    ) -> list[ForgettableSession]:
        """A page of the sessions that had begun by a time, the oldest first."""
        ...

    def forget_sessions(
        self, space: str, session_ids: Sequence[str], now: datetime, *, all_pages: bool = False
    ) -> Receipt:
        """Erase sessions one after the other, each by itself."""
        ...

    def forget_agent(self, space: str, agent_id: str, before: datetime) -> int:
        """Remove how an agent lives, its signals, and its inbox up to a time; how many items."""
        ...

    def forget_facts(self, space: str, before: datetime, now: datetime) -> int:
        """Erase every fact there was by a time, with its history; how many it were."""
        ...

    def forget_space(self, space: str, before: datetime, now: datetime) -> Receipt:
        """Erase what a space has left by a time: documents, forgotten sessions, and its name.

        What was spent stays in the books. The receipt says where the name does.
        """
        ...


class Store(Protocol):
    """A place to keep everything. Safe to use from any number of threads."""

    @property
    def sessions(self) -> SessionStore: ...

    @property
    def records(self) -> Records: ...

    @property
    def marks(self) -> Marks: ...

    @property
    def leases(self) -> Leases: ...

    @property
    def extractions(self) -> Extractions: ...

    @property
    def facts(self) -> FactStore: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def documents(self) -> DocumentStore: ...

    @property
    def search(self) -> Search: ...

    @property
    def vectors(self) -> Vectors: ...

    @property
    def agents(self) -> Agents: ...

    @property
    def generations(self) -> GenerationStore: ...

    @property
    def imports(self) -> Imports: ...

    @property
    def api_keys(self) -> ApiKeys: ...

    @property
    def erasure(self) -> Erasure: ...

    @property
    def audit(self) -> Audit: ...

    def keep(self, name: str, value: str) -> str:
        """What the store keeps under a name; the first one to come with a value sets it."""
        ...

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` from any thread when work may have become due; returns how to stop it."""
        ...

    def describe(self) -> StoreDescription: ...

    def close(self) -> None:
        """Close every connection; calling it again does nothing."""
        ...

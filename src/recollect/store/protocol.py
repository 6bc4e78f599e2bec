"""The protocol of a store, by aggregate. Each method is one transaction: all of it or nothing.

Only forgetting a large amount takes several; an interrupted one is resumed where it stopped.

The space comes first in every call; no method reads or writes another one. Methods that work for
the operator of the store take `space=None` for all of them. Times and ids are handed in, never
made here. A backend is right when it passes `recollect_conformance`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, TypeVar

from recollect.ids import SYSTEM_RANDOMNESS, Randomness
from recollect.types.facts import When

if TYPE_CHECKING:
    from recollect.types.access import ApiKey, AuditEntry, AuditQuery, ServingState, StateKind
    from recollect.types.agents import (
        AgentState,
        Delivery,
        DocumentChanges,
        DueSignal,
        HandOver,
        Item,
        Life,
        LifePolicy,
        MoreWork,
        NewItem,
        NoTurn,
        Signal,
        Turn,
    )
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
        Learned,
        NewCall,
        OverCap,
        Proposal,
        Reader,
        Receipt,
        Remembered,
        Reserved,
        ReviewQuery,
        Revision,
        SessionsMeant,
        Spent,
        Staged,
    )
    from recollect.types.generations import (
        ConsolidationState,
        Generation,
        GenerationDocument,
        GenerationDraft,
        Memo,
        Outdated,
        Published,
        Selection,
        SelectionPolicy,
        Standing,
    )
    from recollect.types.imports import Adopted, Arrival, Cursor
    from recollect.types.pages import (
        Because,
        DeletedDocument,
        Document,
        Edit,
        Filing,
        Node,
        Place,
        Purged,
        Reference,
        TreeLimits,
        Version,
    )
    from recollect.types.recall import (
        Entry,
        EntryKind,
        EntryVersions,
        Filters,
        Found,
        HitUsage,
        KeptContext,
        Latest,
        NewVector,
        Reach,
        Sought,
        StatementRevision,
        Unembedded,
        UsageKind,
        VectorChanges,
    )
    from recollect.types.records import (
        BackedOff,
        Behind,
        CapReached,
        Claim,
        Deferred,
        Job,
        JobKind,
        JobState,
        KeyRef,
        LeasePolicy,
        LoadedWork,
        MarkCause,
        MarkPolicy,
        Mode,
        NewRecord,
        NothingDue,
        Outcome,
        Overtaken,
        Parked,
        Pause,
        Range,
        Record,
        Recorded,
        Released,
        Renewed,
        SessionBirth,
        SessionProgress,
        SessionState,
        StaleClaim,
        StoreDescription,
        Unattended,
    )


NewId = Callable[[], str]
T = TypeVar("T")

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
        """Set what may be learned from the current session; forbidding it voids all work on it.

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
        """Cap the last activity of waiting sessions at now: another clock was ahead."""
        ...

    def mark_idle(
        self, space: str | None, which: Unattended | None, now: datetime, limit: int
    ) -> list[tuple[str, str]]:
        """Mark at most `limit` waiting sessions, of these or of all; (space, session id) of each.

        Those longest without activity come first.
        """
        ...

    def request_marked(self, space: str | None) -> None:
        """Have no marked session wait for a pause, in a space or in all."""
        ...

    def ranges(self, space: str, session_id: str) -> list[Range]:
        """The ranges up to the cursor with their outcomes, and those skipped above it."""
        ...

    def counts(self, space: str | None) -> tuple[int, int]:
        """The numbers of sessions that are marked, and that wait with unprocessed records."""
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
        """Such sessions over all spaces, the most recent activity first, among the newest rows."""
        ...


class Extractions(Protocol):
    """Extractions of sessions."""

    def get(self, space: str, session_id: str) -> Extraction | None: ...

    def list(self, space: str, limit: int, before: Extraction | None) -> builtins.list[Extraction]:
        """A page of extractions, the most recently made first."""
        ...

    def revision(self, space: str) -> Revision:
        """The number of changes of the space's memory, and of those consolidation has seen."""
        ...

    def count_due(self, space: str | None) -> int:
        """The number of spaces with changes that consolidation has not seen."""
        ...

    def progress(self, space: str | None, limit: int) -> builtins.list[SessionProgress]:
        """The progress of extraction per session, the most recently begun first."""
        ...

    def request_passes(self, space: str | None, session_id: str | None, now: datetime) -> int:
        """Make a new pass due over one session, those of a space, or all; return the number."""
        ...


class FactStore(Protocol):
    """Statements with sources, validity and history. Deleted ones are as if they were not there."""

    def add(self, space: str, fact: Fact, now: datetime, new_id: NewId) -> Fact:
        """Store a fact: under its id, replacing the fact that has it; without an id, only once.

        What replaces another holds from when that did, if it does not say.
        A live fact that says the same gains its sources, and is what comes back.
        """
        ...

    def remember(self, space: str, fact: Fact, now: datetime, new_id: NewId) -> Remembered:
        """Store a person's statement as `add` does; it ends what was believed on its topic.

        Also what people had stated themselves, which nothing that is learned ends.
        """
        ...

    def get(self, space: str, fact_id: str) -> Fact | None:
        """A fact with up to 1,000 of its sources; lists and searches give the 20 earliest."""
        ...

    def update(self, space: str, fact_id: str, edit: FactEdit, now: datetime) -> Fact | None:
        """Change a fact; it belongs to its editor from then on. None: there is no such fact.

        Edits that are made at once lose nothing of each other. A statement that still says the same
        is still known by it, and gains sources. What its sessions came to says the new one, also
        where it is learned again.
        """
        ...

    def waiting(
        self, space: str, query: ReviewQuery, at: datetime, limit: int
    ) -> builtins.list[Proposal]:
        """A page of the facts that wait for a person, newest first.

        One that waits is learned and told to nobody: it is in no list, search or page, ends nothing
        and is in no text of its session.
        """
        ...

    def count_waiting(self, space: str | None) -> int: ...

    def accept(self, space: str, facts: Sequence[Fact], now: datetime) -> builtins.list[Fact]:
        """Let facts be told that wait and still say the same; those that did come back.

        Each ends what it would have ended when it was learned. What a tool said is a person's word
        from then on. They still go with the sessions they rest on, but no new pass withdraws them.
        """
        ...

    def reject(self, space: str, facts: Sequence[Fact], now: datetime) -> builtins.list[Fact]:
        """Delete those that wait; what they say is learned from no session again."""
        ...

    def delete(self, space: str, fact_id: str, now: datetime) -> bool:
        """Delete a fact; its history stays, and what its sessions have said does not bring it back.

        What was extracted from them no longer contains it. If it is said there again, it is
        believed only from a person.
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

        Each comes with the earliest of its sources, at most as many as asked for; ask for none
        where they are not needed.
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

    def naming(
        self, space: str, names: Sequence[str], at: datetime, limit: int, before: Fact | None
    ) -> builtins.list[Fact]:
        """A page of the facts that say one of some names in a row, newest first.

        Those that are over or superseded as well, not those that wait for a person.
        """
        ...

    def count_naming(self, space: str, names: Sequence[str], at: datetime) -> int: ...

    def history(self, space: str, fact_id: str) -> builtins.list[FactChange]: ...


class Ledger(Protocol):
    """The spending of model calls, checked against the caps of a space."""

    def reserve(self, call: NewCall, caps: Caps, now: datetime) -> Reserved | OverCap:
        """Reserve the most that a call may use, unless that exceeds a cap."""
        ...

    def settle(self, space: str, call_id: int, spent: Spent, outcome: CallOutcome) -> bool:
        """Replace the reservation by what the call used: nothing, if it never began.

        False: it was settled before.
        """
        ...

    def spent(self, space: str | None, day: datetime) -> Spent: ...

    def spent_by_purpose(self, space: str | None, day: datetime) -> list[tuple[str, Spent, Spent]]:
        """The spending for each purpose of calls, on a day and in all."""
        ...

    def spent_daily(
        self, space: str | None, first: datetime, last: datetime
    ) -> list[tuple[datetime, Spent]]:
        """The spending of each day from the first to the last, by its midnight; none: nothing."""
        ...

    def calls(
        self, space: str, session_id: str | None, limit: int, before: Call | None
    ) -> list[Call]:
        """A page of calls, newest first."""
        ...


class Erasure(Protocol):
    """Forgetting for good. A receipt of None: the space has no such thing."""

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
        """A time by which everything existed: now, or the time of the newest, if that is later."""
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
        """Erase sessions one after the other, each in its own transaction."""
        ...

    def forget_agent(self, space: str, agent_id: str, before: datetime) -> int:
        """Remove an agent's life, signals, and inbox up to a time; return the number of items."""
        ...

    def forget_facts(self, space: str, before: datetime, now: datetime) -> int:
        """Erase every fact there was by a time, with its history; return their number."""
        ...

    def forget_space(self, space: str, before: datetime, now: datetime) -> Receipt:
        """Erase what a space has left by a time: documents, forgotten sessions, and its name.

        What was spent stays in the books. The receipt says where the name does.
        """
        ...


class Agents(Protocol):
    """Inboxes, lives and signals. A claim is on an agent's job; what it stores is fenced by it."""

    def post(self, ref: KeyRef, item: NewItem, job: JobKind, now: datetime) -> Item:
        """Put something into an inbox: the agent wakes, and its job is due.

        An item that is known already is not stored again; it is returned in its current state.
        AppendKeyReused: the id of the message was used for another text.
        """
        ...

    def ref(self, claim: Claim) -> KeyRef | None:
        """The agent whose job is claimed; None: it does not exist any more."""
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
        """Store the answer and other results of a turn, and remove its items from the inbox.

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
        """Set an agent with an empty inbox to rest, with its later signals."""
        ...

    def item(self, ref: KeyRef, item_id: str) -> Item | None: ...

    def find_record(self, ref: KeyRef, append_key: str) -> Record | None:
        """The record that was appended under an append key."""
        ...

    def set_signal(self, ref: KeyRef, signal: Signal, job: JobKind, now: datetime) -> None:
        """Schedule a signal, in place of one with the same name."""
        ...

    def cancel_signal(self, ref: KeyRef, name: str) -> bool: ...

    def due_signals(self, now: datetime, limit: int, space: str | None = None) -> list[DueSignal]:
        """Signals whose time has come, of one space or all, the earliest first."""
        ...

    def deliver(self, due: DueSignal, policy: LifePolicy, now: datetime, new_id: NewId) -> Delivery:
        """Apply a signal and remove it, in one step.

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


class GenerationStore(Protocol):
    """Generations of a space's memory, and what the next one is made of."""

    def select(self, space: str, policy: SelectionPolicy, now: datetime) -> Selection:
        """What would be selected now, and how that differs from the last generation.

        The most used come first, then those used or made last. What changed since it was consumed
        counts as added; what was consumed and is not selected any more, or not there, as removed.
        """
        ...

    def memos(self, space: str, session_ids: Sequence[str]) -> builtins.list[Memo]:
        """The extractions of sessions, in full and in this order; without those that are gone."""
        ...

    def standings(
        self, space: str, session_ids: Sequence[str], now: datetime, limit: int
    ) -> builtins.list[Standing]:
        """Facts that hold and that these sessions support, or somebody added; most used first.

        Each with those of its sources alone that lie in these sessions.
        """
        ...

    def publish(
        self, claim: Claim, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Published | Outdated | StaleClaim:
        """Make a generation the current one, fenced by the token.

        Documents, generation, consumed memories and watermark go together. The job is done, or due
        again where something changed meanwhile. A draft made of what the current one was made of
        moves the watermark alone. Outdated: something it was made of may not be remembered any
        more; nothing was published, and the job is due at once. StaleVersion, DocumentExists,
        DocumentReferenced or NotFound: somebody changed the documents it was to replace.
        """
        ...

    def restore(
        self, space: str, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Generation:
        """Make a generation current by hand; a run under way is void."""
        ...

    def amend(self, space: str, draft: GenerationDraft, now: datetime, new_id: NewId) -> bool:
        """Replace the content of the current generation, under its number.

        Nothing is consumed, and what only it said before is erased. False: it is not current any
        more. StaleVersion and the like: as `publish`.
        """
        ...

    def list(self, space: str, limit: int, before: int | None) -> builtins.list[Generation]:
        """A page of generations, the newest first."""
        ...

    def get(self, space: str, number: int) -> Generation | None: ...

    def parts(self, space: str, number: int) -> str:
        """What a model wrote of a generation, by part, as it was stored; empty: nothing."""
        ...

    def documents(self, space: str, number: int) -> builtins.list[GenerationDocument]:
        """The documents of a generation that still exist."""
        ...

    def states(
        self, space: str | None, limit: int, after: str, now: datetime | None
    ) -> builtins.list[ConsolidationState]:
        """The state of consolidation, a page of spaces in the order of their names."""
        ...

    def request(self, space: str, now: datetime | None) -> bool:
        """Make a space due for consolidation as soon as nothing in it is left to distil.

        No cooldown, backoff or parking keeps it. False: it is paused.
        """
        ...

    def hurry(self, space: str | None) -> int:
        """Let the jobs that wait for a cooldown run at once; return their number."""
        ...

    def pause(self, space: str, now: datetime | None) -> None:
        """Stop consolidation of the space until it is resumed; a run under way is void."""
        ...

    def resume(self, space: str, now: datetime | None) -> None: ...

    def expire(self, now: datetime | None, space: str | None = None) -> builtins.list[str]:
        """Make due the spaces that time alone has changed, one or all; return them."""
        ...

    def note_edits(self, space: str, now: datetime) -> None:
        """Note that people edited published files: the next generation is due."""
        ...

    def prune(self, older_than: datetime, limit: int) -> int:
        """Drop memories that nobody has used since and no generation has, the oldest first."""
        ...

    def files_published(self, space: str, generation: int) -> None:
        """Note that the files of a generation were published."""
        ...

    def without_files(self, limit: int, space: str | None = None) -> builtins.list[tuple[str, int]]:
        """Spaces whose current generation was never written as files, with its number."""
        ...


class Leases(Protocol):
    """Jobs, claimed under leases with fencing tokens.

    `now=None` is the database's own clock, the one that all workers share.
    """

    def claim(
        self,
        owner: str,
        policy: LeasePolicy,
        now: datetime | None,
        lane: str | None = "",
        randomness: Randomness = SYSTEM_RANDOMNESS,
    ) -> Claim | NothingDue | CapReached:
        """Take over the job whose lease ran out first, else the next one that is due.

        Of those any worker can run; or of one agent that somebody hosts, or of all such (None).
        Spaces take turns, in any order; within a space it is the one that has been due longest of
        those that nobody else is taking.
        """
        ...

    def claim_consolidation(
        self,
        owner: str,
        space: str,
        policy: LeasePolicy,
        now: datetime | None,
        *,
        takes_over: bool = False,
        spared: str = "",
    ) -> Claim | None:
        """Claim the job that consolidates a space, whatever it waits for.

        None: another owner holds it, or the space is paused. With `takes_over` neither matters, and
        the holder becomes stale, unless its name begins with `spared`.
        """
        ...

    def renew(
        self, claim: Claim, policy: LeasePolicy, now: datetime | None
    ) -> Renewed | StaleClaim: ...

    def load(self, claim: Claim, after: int | None, limit: int) -> LoadedWork | None:
        """A piece of the claimed session, with its extraction so far; None: it is gone.

        The records above the cursor that the claim covers, `limit` at most; or, of a run that goes
        through all of it, those above `after`, without the ones that were skipped before. With them
        come a few of those before, how far such a run has got, and whether records are gone that
        something was learned from: what they came to stays.
        """
        ...

    def record(
        self,
        claim: Claim,
        upto: int,
        outcome: Outcome,
        reason: str | None,
        now: datetime,
        learned: Learned | None = None,
        new_id: NewId | None = None,
        handed: HandOver | None = None,
    ) -> Recorded | Overtaken | StaleClaim:
        """Store the outcome of the records up to `upto`, with the cursor, fenced by the token.

        Extraction, facts, cursor, the news for consolidation and what is handed over to the
        memory-agent go together. Below `read_upto` it
        is a piece of a longer job, which stays claimed; at `read_upto` it is the last one: the mark
        is cleared, or the job is due again if the mark has moved on. Overtaken: it was learned in
        another pass than the session's.
        """
        ...

    def record_pass(
        self,
        claim: Claim,
        upto: int,
        learned: Learned | None,
        now: datetime,
        new_id: NewId,
        handed: HandOver | None = None,
    ) -> Recorded | Behind | StaleClaim:
        """Replace what was learned from a session by a new pass over all of it, fenced.

        None: there is nothing left to go through, and what was learned stays. Behind: the session
        has been processed beyond `upto` meanwhile, and nothing was stored. From one that may not be
        remembered any more, or was forgotten, nothing is stored either, and the pass is done.
        """
        ...

    def stage(self, claim: Claim, staged: Staged) -> Recorded | StaleClaim:
        """Stage the progress of a run through a whole session, fenced; nothing else reads it."""
        ...

    def defer(
        self, claim: Claim, reason: str, delay_seconds: float, now: datetime | None
    ) -> Deferred | StaleClaim:
        """Defer a job without counting a failure."""
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
        """Count a failure. `is_final`: a retry would not help, so park the job at once."""
        ...

    def await_pause(
        self, claim: Claim, pause: Pause, now: datetime | None
    ) -> Deferred | StaleClaim | None:
        """Give a session back that is going on and that nobody asked for; None: it is its time."""
        ...

    def release(self, claim: Claim) -> Released | StaleClaim:
        """Give a job back without counting a failure."""
        ...

    def ensure_recurring(self, kind: JobKind, now: datetime | None) -> None:
        """Create the store's one job of a recurring kind, if it is missing."""
        ...

    def make_due(self, kind: JobKind) -> None:
        """Make a recurring job due now, unless it is being worked on."""
        ...

    def finish_recurring(
        self, claim: Claim, delay_seconds: float, now: datetime | None
    ) -> Released | StaleClaim:
        """Finish a run of a recurring job; it is due again after the delay."""
        ...

    def revive(self, space: str | None, key: str | None) -> int:
        """Make parked jobs due again: one, those of a space, or all; return their number."""
        ...

    def jobs(self, space: str | None, limit: int) -> list[Job]:
        """Jobs that are due, claimed or parked, first due first."""
        ...

    def get(self, space: str | None, kind: JobKind, key: str) -> Job | None: ...

    def counts(self, space: str | None) -> dict[JobState, int]: ...

    def count_due(self, now: datetime | None = None) -> tuple[int, timedelta]:
        """The number of jobs that could be claimed, and for how long the first has been due.

        All spaces; `now` is the database's clock unless it is given.
        """
        ...


class Tree(Protocol):
    """Reads a tree of documents, as it is or as edits would leave it."""

    def find(self, space: str, place: Place) -> Document | None:
        """The document at a path, or the one that was moved away from it."""
        ...

    def get(self, space: str, document_id: str) -> Document | None:
        """A document by its id, also a deleted one."""
        ...

    def find_deleted(self, space: str, place: Place) -> Document | None:
        """The document that was deleted last at a path."""
        ...

    def tree(
        self, space: str, root: Place, after: str, depth_max: int, limit: int
    ) -> builtins.list[Node]:
        """A page of the tree from a root on, each before its children; `after` is a path's key."""
        ...

    def history(
        self, space: str, document_id: str, before: int | None, limit: int
    ) -> builtins.list[Version]:
        """A page of versions, the newest first."""
        ...

    def search(
        self, space: str, terms: Sequence[str], root: Place, limit: int
    ) -> builtins.list[Document]:
        """Documents below a root that have any of the words, the best first."""
        ...

    def deleted(
        self, space: str, root: Place, after: str | None, limit: int
    ) -> builtins.list[DeletedDocument]:
        """A page of what was deleted at a root and below it, the last first; `after` is an id."""
        ...

    def references_from(self, space: str, document_id: str) -> builtins.list[Reference]: ...

    def references_to(
        self,
        space: str,
        document_id: str,
        *,
        root: Place | None = None,
        after: str = "",
        limit: int | None = None,
    ) -> builtins.list[Reference]:
        """References to a document, from below a root, by source; `after` is a path's key."""
        ...


class DocumentStore(Tree, Protocol):
    """A tree of versioned documents, each at a path; old paths lead to documents that moved."""

    def broken(self, space: str, limit: int, root: Place | None = None) -> builtins.list[Reference]:
        """References to missing documents. With a root, all documents outside count as missing."""
        ...

    def orphans(self, space: str, limit: int, root: Place | None = None) -> builtins.list[str]:
        """Paths of documents that no other one mentions; with a root, nothing outside counts."""
        ...

    def apply(
        self,
        space: str,
        edits: Sequence[Edit],
        because: Because,
        limits: TreeLimits,
        now: datetime,
        new_id: Callable[[], str],
    ) -> builtins.list[Document]:
        """Make all edits or none, in order; each document as it is afterwards.

        A version that one document had at a path never comes again there with another one. What
        was said in a session that has been forgotten is no ground for anything. An edit without
        grounds of its own is made on those of all.

        StaleVersion, DocumentExists, DocumentReferenced, NotFound, InvalidPath or TooLarge if one
        of them cannot be made.
        """
        ...

    def preview(
        self,
        space: str,
        changes: DocumentChanges,
        now: datetime,
        new_id: NewId,
        look: Callable[[Tree, Sequence[Document]], T],
    ) -> T:
        """What `look` finds in the tree as edits would leave it, and in the documents they make.

        They are made as `apply` makes them, and taken back: nothing of it stays. `look` may be
        called several times, while others wait.
        """
        ...

    def render(self, space: str, filing: Filing, now: datetime, new_id: Callable[[], str]) -> int:
        """Render the facts that are still to be put on a page; return the number of pages written.

        Those are the facts of pages that lost something, and those of the stretch that `filing`
        names. What has not changed makes no version; a page of which nothing is left goes.
        """
        ...

    def unrendered(self, space: str | None, now: datetime | None, limit: int) -> builtins.list[str]:
        """Spaces, or that one, with facts to come on a page, and with a time, ended on one."""
        ...

    def erase_versions(self, space: str, document_id: str, numbers: Sequence[int]) -> int:
        """Remove earlier versions of a document for good; return their number."""
        ...

    def erase_deleted(self, space: str, document_id: str) -> bool:
        """Remove a deleted document for good, with every version. False: there is none."""
        ...

    def purge(self, space: str, place: Place) -> Purged:
        """Remove for good what is or was at a path and below it, with every version."""
        ...


class Search(Protocol):
    """Search of entries of every kind by their words. A committed entry can be found."""

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        """The entries most worth a look, because they have the rarest of the stems.

        However common a stem is, only so many entries are looked at: the newest. Their texts may
        be cut, and the sources of facts are left to `load`.
        """
        ...

    def load(
        self, space: str, keys: Mapping[EntryKind, Sequence[int]], filters: Filters, now: datetime
    ) -> builtins.list[Entry]:
        """Entries by their keys, as far as they are there and pass, whole and with sources."""
        ...

    def latest(
        self,
        space: str,
        filters: Filters,
        now: datetime,
        *,
        facts: int,
        sessions: int,
        beside: str = "",
    ) -> Latest:
        """What a recap of a project is made of, or of what belongs to none; so many of each.

        What people want, they may have said in no project. `beside` is the session that is shown
        anyway: neither what it came to, nor what was compacted into it, is among them.
        """
        ...

    def revisions(
        self, space: str, sessions: Sequence[str], now: datetime, since: datetime | None = None
    ) -> builtins.list[StatementRevision]:
        """What was learned from these sessions and does not hold any more as it was said there.

        With `since` also what became so from then on, wherever it was learned; it names no session.
        """
        ...

    def use(self, space: str, usage: HitUsage) -> int:
        """Count uses of entries, each once in a turn; return how many had not been counted.

        What was opened or cited was used, and so were the sessions it rests on. What was only
        shown was not: facts count how often by itself.
        """
        ...

    def usage(self, space: str, kind: EntryKind, entry_id: str) -> Mapping[UsageKind, int]:
        """The numbers of times an entry was shown, opened and cited."""
        ...

    def prune(self, before: datetime) -> int:
        """Delete uses from before a time and return their number; their totals stay."""
        ...


class VectorSearch(Protocol):
    """Vectors that a store compares itself. A vector is float32, little-endian, of length one."""

    def additions(self, space: str) -> int:
        """The number of times vectors were added to a space; 0: it has none."""
        ...

    def nearest(
        self, space: str, model: str, vector: bytes, kinds: Collection[EntryKind], limit: int
    ) -> builtins.list[tuple[EntryKind, int]]:
        """The most similar entries, best first, by kind and key."""
        ...

    def similarities(
        self, space: str, model: str, vector: bytes, entries: Collection[tuple[EntryKind, int]]
    ) -> Mapping[tuple[EntryKind, int], float]:
        """The similarity of entries; those without a vector are left out."""
        ...

    def usual(self, space: str, model: str, dimensions: int) -> tuple[float, float]:
        """The similarity of any two vectors of a space: the mean, and the spread around it."""
        ...


class Vectors(Protocol):
    """Vectors of entries by model. A vector goes with its entry, and when that changes."""

    def pending(
        self, model: str, limit: int, space: str | None = None
    ) -> builtins.list[Unembedded]:
        """Entries of a space, or of all, that have no vector of a model yet."""
        ...

    def put(self, model: str, vectors: Sequence[NewVector]) -> int:
        """Store vectors, unless their entries are gone or changed; return the number given."""
        ...

    def changes(
        self, space: str, model: str, after: int, dropped_after: int, limit: int
    ) -> VectorChanges:
        """Return what was added and removed since earlier numbers, as of one moment.

        A caller that holds nothing yet passes 0 and is told of no removals. An `upto` of 0 in reply
        to another number means that the removals are no longer known: start over from 0.
        """
        ...

    def use(self, model: str, now: datetime) -> None:
        """Note that a model is used now; one that was never noted counts as used from now on."""
        ...

    def delete_others(self, model: str, now: datetime, limit: int) -> bool:
        """Delete vectors of other models that nobody used for a day; whether there may be more."""
        ...

    def tend(self, model: str) -> None:
        """Do what makes comparing quicker, however long it takes; for when nothing is pending."""
        ...

    def search(self) -> VectorSearch | None:
        """The search that compares vectors in the store. None: the caller holds them in memory."""
        ...


class Imports(Protocol):
    """Items of other programs, each imported once in a space; items are digests."""

    def adopt(
        self,
        ref: KeyRef,
        arrivals: Sequence[Arrival],
        cursor: Cursor,
        policy: MarkPolicy,
        now: datetime,
        new_id: Callable[[], str],
    ) -> Adopted:
        """Append what is new of a batch to the key's session, and move the cursor with it.

        What has come in before from the same source, here or in another session, is left out, also
        if it has been forgotten since.
        """
        ...

    def note(self, space: str, items: Sequence[str], cursor: Cursor, now: datetime) -> None:
        """Note items that did not become records, and how far a file was read."""
        ...

    def known(self, space: str, source: str, items: Sequence[str]) -> frozenset[str]:
        """Those of these items that were imported before."""
        ...

    def cursor(self, space: str, source: str, place: str) -> Cursor | None:
        """How far a file has been read; None: not at all."""
        ...


class ApiKeys(Protocol):
    """The keys of a store: for its operator, over all spaces."""

    def add(self, key: ApiKey) -> None:
        """Keep a new key."""
        ...

    def find(self, digest: str) -> ApiKey | None:
        """The key with this digest, also an expired or revoked one."""
        ...

    def list(self, after: str, limit: int) -> builtins.list[ApiKey]:
        """Keys with an id above `after`, in order, also expired and revoked ones."""
        ...

    def revoke(self, key_id: str, now: datetime) -> bool:
        """Revoke a key for good. False: there is none, or it was revoked before."""
        ...

    def used(self, key_id: str, now: datetime) -> None:
        """Note that a key was used; the time only rises."""
        ...


class Serving(Protocol):
    """What the processes that serve a store have in common for a while; never any content."""

    def begin(self, state: ServingState) -> ServingState | None:
        """Keep a state, unless one of its kind and id has not expired: that one is returned."""
        ...

    def put(self, state: ServingState) -> None:
        """Keep a state in place of whatever there was."""
        ...

    def get(self, kind: StateKind, state_id: str, now: datetime) -> ServingState | None:
        """The state, if it has not expired."""
        ...

    def drop(self, kind: StateKind, state_id: str) -> None: ...

    def count(self, kind: StateKind, now: datetime) -> int:
        """The number of states that have not expired."""
        ...

    def prune(self, kind: StateKind, most: int, now: datetime) -> None:
        """Drop what has expired, and of each owner's the oldest above so many."""
        ...

    def schema_version(self) -> int:
        """The newest migration in the store now, whoever applied it."""
        ...


class Audit(Protocol):
    """The audit log. Entries go with their space, except those that say it was forgotten."""

    def begin(self, entry: AuditEntry) -> None:
        """Write an entry for a call that is about to begin."""
        ...

    def end(self, entry: AuditEntry) -> None:
        """Note the outcome and the objects of a call, if its entry still exists."""
        ...

    def list(
        self, query: AuditQuery, limit: int, before: AuditEntry | None
    ) -> builtins.list[AuditEntry]:
        """A page of entries, the newest first: those after `before` in that order."""
        ...

    def prune(self, before: datetime, limit: int) -> int:
        """Drop entries from before a time, the oldest first; return their number."""
        ...


class Contexts(Protocol):
    """What was told, by reference. What is erased goes from here in the same transaction."""

    def add(self, space: str, kept: Sequence[KeptContext]) -> None:
        """Keep blocks, without lines from what has been erased since they were made."""
        ...

    def get(self, space: str, context_id: str) -> KeptContext | None: ...

    def list(self, space: str, limit: int) -> builtins.list[KeptContext]:
        """The newest first."""
        ...

    def refs(self, space: str) -> Mapping[str, tuple[str, str, str | None, datetime]]:
        """What each block of a space refers to, its reader, the session, and when it was told."""
        ...

    def readers(self, space: str, fact_id: str) -> builtins.list[Reader]:
        """Who was told of a fact, who was told last first."""
        ...

    def asked(self, space: str, fact_id: str) -> str:
        """What was asked when a fact was told last; empty: nothing that is kept."""
        ...

    def versions(self, space: str, refs: Collection[str]) -> Mapping[str, EntryVersions]:
        """What entries say and said; none of what was erased."""
        ...

    def prune(self, before: datetime, keep: int) -> int:
        """Drop what was told before a time, and all but the newest of a space; their number."""
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

    @property
    def contexts(self) -> Contexts: ...

    @property
    def serving(self) -> Serving: ...

    def keep(self, name: str, value: str) -> str:
        """The value that the store keeps under a name; the first caller with a value sets it."""
        ...

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` from any thread when work may have become due; returns how to stop it."""
        ...

    def describe(self) -> StoreDescription: ...

    def close(self) -> None:
        """Close every connection; calling it again does nothing."""
        ...

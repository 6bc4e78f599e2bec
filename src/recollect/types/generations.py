"""The types of consolidation: what is selected, what has changed since, and the result.

Frozen values without behaviour beyond reading themselves. A memory here is what a session came to
in phase 1; a generation is phase 2's result for a space, published whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from recollect.types.facts import NOTHING_SPENT, Extraction, Fact, Spent
from recollect.types.records import JobState

if TYPE_CHECKING:
    from recollect.types.agents import DocumentChanges


BY_RULES = "rules"  # who made a generation, where no model did


class SelectionClock(StrEnum):
    """By what time a memory that was never used counts as fresh."""

    GENERATED = "generated_at"
    SOURCE = "source_updated_at"  # a backlog that is worked off late is as old as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionPolicy:
    """Which memories are selected: the best `top_n` of those used within `max_unused_days`."""

    top_n: int
    max_unused_days: int
    clock: SelectionClock = SelectionClock.GENERATED


class RemovedBecause(StrEnum):
    """Why a memory that was part of a generation is not part of the next."""

    UNSELECTED = "unselected"  # others are used more, or it has not been used for long
    DISABLED = "disabled"
    POLLUTED = "polluted"
    FORGOTTEN = "forgotten"
    EMPTIED = "emptied"  # a later run over the session found nothing worth remembering
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """A selected memory by reference: which state of it, and its page in the last generation.

    None: it has no page yet, or not any more.
    """

    session_id: str
    revision: int
    source_updated_at: datetime
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """A memory of the last generation that is not selected any more."""

    session_id: str
    because: RemovedBecause
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the next generation is made of, and how that differs from the last.

    `revision` is how often the space's memory had changed when this was read: the watermark that a
    generation made of it completes. `expires_at` is when time alone will change the selection.
    """

    space: str
    revision: int
    added: tuple[Pick, ...]
    retained: tuple[Pick, ...]
    removed: tuple[Removed, ...]
    generation: int  # the current one; 0: none yet
    digest: str | None  # of what the current one was made of
    expires_at: datetime | None = None

    @property
    def picks(self) -> tuple[Pick, ...]:
        return (*self.added, *self.retained)

    @property
    def is_forgetting(self) -> bool:
        """Whether something is to be gone for good, earlier versions included."""
        return any(each.because is RemovedBecause.FORGOTTEN for each in self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memo:
    """A selected memory in full, with what is known about its session.

    One that was imported began when its first word was said, not when it was opened.
    """

    extraction: Extraction
    revision: int
    began_at: datetime
    key: str
    agent_id: str
    project: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A fact that a selected memory supports, or somebody's own; `project` of its session."""

    fact: Fact
    project: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationDraft:
    """A generation on its way into the store.

    `summaries` says which page stands for which session. `unconsumed` are sessions that the current
    generation has and this one does not, or not as they are now: they are news for the next. `kept`
    is how many generations stay; what only older ones had is erased. `parts` is what a model wrote
    of it, each with what it was shown: JSON, digests without a word of what they stand for.
    """

    made_by: str
    selection: Selection
    changes: DocumentChanges
    digest: str
    note: str = ""
    summaries: tuple[tuple[str, str], ...] = ()  # session id, path
    unconsumed: tuple[str, ...] = ()
    spent: Spent = NOTHING_SPENT
    cooldown_seconds: float = 0.0
    kept: int = 20
    restored_from: int | None = None
    parts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What a run of consolidation came to, as it is stored.

    `is_whole`: every version it had is still there, so that it can be restored.
    """

    space: str
    number: int
    made_at: datetime
    made_by: str
    note: str
    added: int
    retained: int
    removed: int
    documents: int
    changed: int  # documents written or deleted by it
    spent: Spent
    is_whole: bool
    restored_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationDocument:
    """A document as a generation has it."""

    document_id: str
    version: int
    session_id: str | None  # of a summary


class DocumentChange(StrEnum):
    """What became of a document between two generations."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationChange:
    """How a document differs between two generations; `text` is a unified diff."""

    path: str
    change: DocumentChange
    text: str


@dataclass(frozen=True, slots=True)
class Published:
    """A generation is current. None: nothing had changed but the watermark."""

    generation: Generation | None
    is_due_again: bool


@dataclass(frozen=True, slots=True)
class Outdated:
    """What a run was made of must not be published any more: something was forgotten meanwhile."""


class Waiting(StrEnum):
    """Why the next generation is not being made right now."""

    NOTHING_CHANGED = "nothing changed"
    RUNNING = "running"
    PAUSED = "paused"
    PHASE_1 = "sessions are still to be distilled"
    COOLDOWN = "cooldown"
    BACKOFF = "backoff"
    PARKED = "parked"
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationState:
    """Where the consolidation of a space stands, for people."""

    space: str
    generation: int
    changed: int
    consolidated: int
    changed_at: datetime | None
    finished_at: datetime | None
    paused_at: datetime | None
    expires_at: datetime | None
    job: JobState
    due_at: datetime | None
    failures: int
    last_error: str | None
    phase1_due: int

    @classmethod
    def untouched(cls, space: str) -> ConsolidationState:
        """Of a space in which nothing was ever learned."""
        return cls(
            space=space,
            generation=0,
            changed=0,
            consolidated=0,
            changed_at=None,
            finished_at=None,
            paused_at=None,
            expires_at=None,
            job=JobState.IDLE,
            due_at=None,
            failures=0,
            last_error=None,
            phase1_due=0,
        )

    def waits_for(self, now: datetime) -> Waiting:
        """The first reason there is not to run now."""
        if self.job is JobState.CLAIMED:
            return Waiting.RUNNING
        if self.paused_at is not None:
            return Waiting.PAUSED
        if self.job is JobState.PARKED:
            return Waiting.PARKED
        if self.changed <= self.consolidated and self.job is JobState.IDLE:
            return Waiting.NOTHING_CHANGED
        if self.due_at is not None and self.due_at > now:
            return Waiting.BACKOFF if self.failures else Waiting.COOLDOWN
        return Waiting.PHASE_1 if self.phase1_due else Waiting.READY

    def next_attempt_at(self, now: datetime) -> datetime | None:
        """When the next generation is made, if there is a worker; none: not by itself."""
        match self.waits_for(now):
            case Waiting.COOLDOWN | Waiting.BACKOFF:
                return self.due_at
            case Waiting.READY | Waiting.PHASE_1:
                return now
            case Waiting.NOTHING_CHANGED:
                return self.expires_at
            case Waiting.RUNNING | Waiting.PAUSED | Waiting.PARKED:
                return None

"""The types of agents: their lives, their inboxes, their turns, and signals.

Frozen values without behaviour beyond reading themselves. An agent lives in one conversation: a
stable key of its own, behind which sessions rotate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from recollect.types.records import JobKind, JobState, KeyRef, Record, SessionState

if TYPE_CHECKING:
    from recollect.types.pages import Because, Edit, Filing, TreeLimits

IDLE = "idle"  # the signal that puts an agent to sleep
POISON_PILL = "poison-pill"  # the signal that ends one that sleeps
OWN_SIGNALS = frozenset({IDLE, POISON_PILL})


class Life(StrEnum):
    """Where an agent is in its life."""

    ACTIVE = "active"
    SLEEPING = "sleeping"  # nobody has spoken to it for a while; its session is marked
    DEAD = "dead"  # slept too long; the next message brings a new one, with the same history


class ItemKind(StrEnum):
    """What waits in an inbox."""

    USER_MESSAGE = "user_message"
    SYSTEM_MESSAGE = "system_message"  # from the host, or from the worker to a memory-agent
    SIGNAL = "signal"  # a delayed one whose time has come
    RESET = "reset"  # start an empty conversation


class ItemState(StrEnum):
    """Where an item of an inbox stands."""

    QUEUED = "queued"
    TAKEN = "taken"  # a turn is made of it
    PARKED = "parked"  # failed too often, or for good; waits for a retry by hand
    DONE = "done"  # its effects are stored; what it said is gone from here


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Records of a session that an item is about. They are read when it is delivered."""

    session_id: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """Something for an inbox; the same id is taken in once."""

    id: str
    kind: ItemKind
    text: str = ""
    origin: str = ""
    about: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something in an inbox."""

    id: str
    kind: ItemKind
    text: str
    origin: str
    about: Span | None
    state: ItemState
    turn_id: str | None
    attempts: int
    last_error: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What an agent answers at once: one item, or several user messages that came in a row.

    What was said is in the session's history already; `records` are those of this turn so far, so
    that one that was interrupted is seen to be.
    """

    id: str
    items: tuple[Item, ...]
    session: SessionState
    records: tuple[Record, ...]

    @property
    def kind(self) -> ItemKind:
        return self.items[0].kind

    @property
    def text(self) -> str:
        return "\n\n".join(item.text for item in self.items if item.text)


@dataclass(frozen=True, slots=True)
class NoTurn:
    """Nothing waits in the inbox."""


@dataclass(frozen=True, slots=True)
class MoreWork:
    """Something came into the inbox meanwhile; the claim is still held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChanges:
    """Edits to the document tree that are made together with what made them.

    `instead_of` are facts that the edits say: they come off the pages that are rendered.
    """

    edits: tuple[Edit, ...]
    because: Because
    limits: TreeLimits
    instead_of: Filing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """A stretch of a session, on its way to the inbox of its memory-agent."""

    agent_id: str
    key: str
    item: NewItem


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Something that is to happen later. Another one of the same name takes its place."""

    name: str
    due_at: datetime
    body: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSignal:
    """A signal whose time has come, and whom it is for."""

    ref: KeyRef
    signal: Signal


class Delivery(StrEnum):
    """The outcome of a signal."""

    SLEPT = "slept"
    DIED = "died"
    POSTED = "posted"  # it is in the inbox
    VOID = "void"  # replaced or cancelled meanwhile, or the agent has something to do


@dataclass(frozen=True, slots=True, kw_only=True)
class LifePolicy:
    """When agents fall asleep, and which of them may die of it."""

    idle_seconds: float = 60.0
    poison_pill_seconds: float = 3600.0
    immortal_types: frozenset[str] = frozenset({"user"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """An agent as `status` shows it: its life, its session, its queue, and what comes next."""

    ref: KeyRef
    session_id: str
    life: Life
    since: datetime
    incarnation: int  # how often it was made; 1 for the first
    queued: int  # with what it is working on
    parked: int
    signals: Sequence[Signal] = ()  # the next one first
    job: JobKind = JobKind.AGENT
    job_state: JobState | None = None
    next_try_at: datetime | None = None
    last_error: str | None = None

    @property
    def next_signal(self) -> Signal | None:
        return self.signals[0] if self.signals else None

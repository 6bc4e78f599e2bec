"""The words of Recollect as values: sessions, records, marks, and what a call can come to.

Frozen and free of behaviour beyond reading themselves. Times are aware UTC datetimes; `seq` counts
a session's records from 1, without holes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from recollect.messages import Attachment, Part, Reading, Role, Text, ToolCall, ToolResult, read


class Mode(StrEnum):
    """Whether a session may become memory."""

    ENABLED = "enabled"
    DISABLED = "disabled"  # the history is kept, nothing is learned
    POLLUTED = "polluted"  # outside content got in: nothing is learned


class MarkCause(StrEnum):
    """Why a session was marked; the first cause is kept until the mark is cleared."""

    THRESHOLD = "threshold"
    RESET = "reset"
    COMPACTION = "compaction"
    SLEEP = "sleep"
    END = "end"
    IDLE = "idle"
    REQUEST = "request"  # somebody called invalidate()


class MarkUnit(StrEnum):
    """What the threshold counts."""

    RECORDS = "records"
    TURNS = "turns"  # a turn is a user record and all up to the next one


class Outcome(StrEnum):
    """What became of a range of records."""

    EXTERNAL = "external"  # mark_processed() said so
    SKIPPED = "skipped"  # nothing may be learned from it; the reason says why


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkPolicy:
    """More than `threshold` unprocessed records, or completed turns, mark a session."""

    threshold: int = 5
    unit: MarkUnit = MarkUnit.RECORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRef:
    """A stable key as the store knows it; sessions rotate behind it."""

    space: str
    key: str
    agent_id: str
    key_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBirth:
    """What a new session starts with."""

    source: str = "api"
    project: str | None = None
    parent: str | None = None
    ephemeral: bool = False
    mode: Mode = Mode.ENABLED


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """A session as it stands: how far it goes, how far it is marked, how far it is processed."""

    id: str
    space: str
    key: str
    agent_id: str
    rotation: int
    source: str
    project: str | None
    parent: str | None
    ephemeral: bool
    mode: Mode
    remembered: bool
    last_seq: int
    invalidated_at: int | None
    processed_until: int | None
    marked_at: datetime | None
    marked_by: MarkCause | None
    created_at: datetime
    last_activity_at: datetime
    ended_at: datetime | None
    ended_by: MarkCause | None

    @property
    def unprocessed(self) -> int:
        return self.last_seq - (self.processed_until or 0)


@dataclass(slots=True, kw_only=True)
class NewRecord:
    """A record on its way in, checked and ready to be stored.

    `content` is the text; `body` is the verbatim message where text alone would lose something.
    Not frozen: it lives for one call, and freezing it is a third of its cost in a large batch.
    """

    role: Role
    content: str
    name: str | None = None
    body: str | None = None
    said_at: datetime | None = None
    append_key: str | None = None
    metadata: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entry of a session's history."""

    session_id: str
    seq: int
    role: Role
    content: str
    name: str | None
    body: str | None = field(repr=False)
    at: datetime
    created_at: datetime
    key: str | None
    metadata: Mapping[str, Any]

    @property
    def message(self) -> dict[str, Any]:
        """The message as it came in."""
        if self.body is not None:
            message: dict[str, Any] = json.loads(self.body)
            return message
        named = {} if self.name is None else {"name": self.name}
        return {"role": self.role.value, "content": self.content, **named}

    @property
    def parts(self) -> tuple[Part, ...]:
        return read(self.message).parts

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        return tuple(part for part in self.parts if isinstance(part, Attachment))

    @property
    def is_error(self) -> bool:
        if self.body is None:
            return False
        return self.message.get("is_error") is True or any(r.is_error for r in self.tool_results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A stretch of a session's records that has been dealt with, and how."""

    session_id: str
    first_seq: int
    last_seq: int
    outcome: Outcome
    reason: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreDescription:
    """Which store this is; the location carries no password."""

    kind: str
    location: str
    schema_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What is due, what waits and for what. The lists are bounded, the counts are not."""

    store: StoreDescription
    at: datetime
    marked: tuple[SessionState, ...]
    marked_count: int
    waiting: tuple[SessionState, ...]
    waiting_count: int
    idle_sweep_seconds: float


__all__ = [
    "Attachment",
    "KeyRef",
    "MarkCause",
    "MarkPolicy",
    "MarkUnit",
    "Mode",
    "NewRecord",
    "Outcome",
    "Part",
    "Range",
    "Reading",
    "Record",
    "Role",
    "SessionBirth",
    "SessionState",
    "Status",
    "StoreDescription",
    "Text",
    "ToolCall",
    "ToolResult",
]

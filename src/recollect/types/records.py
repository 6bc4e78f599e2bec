"""The basic types of Recollect: sessions, records, marks, jobs, and the outcomes of calls.

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

from recollect.messages import Attachment, Part, Role, ToolCall, ToolResult, read
from recollect.types.facts import NO_FAULTS, NOTHING_SPENT, Extraction, FactFaults, Spent, Staged


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
    SCAN = "scan"  # the start-up scan found it
    IMPORT = "import"  # it came in as a whole
    REQUEST = "request"  # somebody called invalidate()


class MarkUnit(StrEnum):
    """What the threshold counts."""

    RECORDS = "records"
    TURNS = "turns"  # a turn is a user record and all up to the next one


class Outcome(StrEnum):
    """What became of a range of records."""

    EXTRACTED = "extracted"
    NO_OUTPUT = "no_output"  # read, and nothing in it is worth remembering
    EXTERNAL = "external"  # mark_processed() said so
    SKIPPED = "skipped"  # nothing may be learned from it; the reason says why
    HANDED_OVER = "handed_over"  # it is in the inbox of the memory-agent, which does the rest


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
    """The state of a session: its last record, and how far it is marked and processed."""

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
    pass_number: int = 1
    forgotten_at: datetime | None = None  # when it was erased: nothing else is known of it

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
    words: str = ""  # by which it is found; filled in by the store


def numbered_key(batch: str, number: int) -> str:
    """The append key of a record that came with others under one key."""
    return f"{batch}#{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entry of a session's history; `seq` counts from 1, and is 0 for what is not in it."""

    session_id: str
    seq: int
    role: Role
    name: str | None
    content: str
    body: str | None = field(repr=False)
    at: datetime
    created_at: datetime
    key: str | None
    metadata: Mapping[str, Any]

    @property
    def is_forgotten(self) -> bool:
        """Whether it is the empty note that stands for what was forgotten."""
        is_empty = self.role is Role.NOTE and not self.content and self.body is None
        return is_empty and self.metadata == {"forgotten": True}

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
    pass_number: int = 1
    extractor: str | None = None
    attempt: int | None = None
    spent: Spent = NOTHING_SPENT
    faults: FactFaults = NO_FAULTS


class JobKind(StrEnum):
    """What there is to do."""

    EXTRACT = "extract"  # one per session; due while the session is marked
    EXTRACT_AGAIN = "extract-again"  # a new pass over a session, by request
    IDLE_SWEEP = "idle-sweep"  # one per store; comes round again
    STARTUP_SCAN = "startup-scan"  # one per store; due when a worker starts
    EMBED = "embed"  # one per store, where there is an embedder; comes round again
    SIGNALS = "signals"  # one per store, where there are agents; comes round again
    AGENT = "agent"  # one per agent; due while its inbox is not empty, for the agent's host
    MEMORY_AGENT = "memory-agent"  # the same, of those that any worker can run
    CONSOLIDATE = "consolidate"  # one per space; due when its memory has changed


class JobState(StrEnum):
    """Where a job stands. Backing off is due, with a time before which it is not claimed."""

    IDLE = "idle"
    DUE = "due"
    CLAIMED = "claimed"
    PARKED = "parked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A permanent row of due work; the mark says how far, the job says when."""

    id: int
    space: str
    kind: JobKind
    key: str
    state: JobState
    first_due_at: datetime
    due_at: datetime | None
    owner: str | None
    lease_expires_at: datetime | None
    token: int
    failures: int
    takeovers: int
    last_error: str | None
    last_error_at: datetime | None
    finished_at: datetime | None
    pauses: int = 0  # how often it was put off since it last got on; counts against nobody

    @property
    def is_paused(self) -> bool:
        """Put off by something that is not its fault: a cap, a refused key, a provider."""
        return self.state is JobState.DUE and self.due_at is not None and self.pauses > 0

    def next_attempt_at(self, now: datetime) -> datetime | None:
        """When it is worked on next: as soon as there is a worker, or once its time has come."""
        match self.state:
            case JobState.IDLE | JobState.PARKED:
                return None
            case JobState.DUE:
                return max(self.due_at or now, now)
            case JobState.CLAIMED:
                return max(self.lease_expires_at or now, now)

    def why(self, now: datetime) -> str:
        """Why it is not running, or who runs it."""
        match self.state:
            case JobState.IDLE:
                return "nothing to do"
            case JobState.CLAIMED if self.lease_expires_at is not None:
                if self.lease_expires_at <= now:
                    return f"the lease of {self.owner} has run out; next worker takes over"
                return f"claimed by {self.owner}"
            case JobState.PARKED:
                return f"parked: failed {self.failures} x, taken over {self.takeovers} x"
            case JobState.DUE if self.due_at is not None and self.due_at > now:
                if self.is_paused:
                    return "paused"
                if self.kind is JobKind.EXTRACT and not self.failures:
                    return f"waits for a pause until {self.due_at:%Y-%m-%d %H:%M:%S}Z"
                return "waiting for its time" if self.last_error is None else "backing off"
            case _:
                return "waiting for a worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unattended:
    """Which sessions that nobody marked are learned from: active last between two moments.

    And only from these sources, if any are named.
    """

    oldest: datetime
    newest: datetime
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """How long nothing is said before a session that is going on is learned from.

    One with so many unprocessed records does not wait for that.
    """

    seconds: float
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePolicy:
    """How long a claim lives, and when to give up on a job.

    `consolidates`: whether spaces are consolidated by this worker; one in which there is always
    something left to distil, after `patience_seconds` all the same. `space`: the only one of which
    anything is claimed. `space_running_max`: jobs of one space that run at the same time.
    `takes_turns`: whether spaces do, or what has been due longest goes first. `in_order`: what came
    in by an import is learned from in the order of time, one session of a space after the other.
    `review`: what of all that is learned waits for a person.
    """

    lease_seconds: float = 60.0
    failures_max: int = 5
    takeovers_max: int = 20
    backoff_seconds: float = 60.0
    backoff_seconds_max: float = 3600.0
    running_max: int = 64
    consolidates: bool = False
    patience_seconds: float = 3600.0
    space: str | None = None
    space_running_max: int | None = None
    takes_turns: bool = True
    in_order: bool = False
    review: str = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A lease on a job: only this token can finish it.

    `read_upto` is the last record there was when it was claimed; the claim is about nothing beyond.
    `is_by_hand`: somebody asked for it now.
    """

    job_id: int
    kind: JobKind
    space: str
    key: str
    owner: str
    token: int
    attempt: int
    expires_at: datetime
    read_upto: int
    claimed_mark: int
    pauses: int = 0
    is_by_hand: bool = False


@dataclass(frozen=True, slots=True)
class NothingDue:
    """No job can be claimed now; the next one in so many seconds, if any waits."""

    next_in_seconds: float | None


@dataclass(frozen=True, slots=True)
class CapReached:
    """As many jobs are running in the whole store as may."""

    running: int


@dataclass(frozen=True, slots=True)
class StaleClaim:
    """The claim is not the current one any more; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The lease lives longer."""

    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Recorded:
    """Result, range and cursor are stored together. `is_done`: the mark is cleared as well."""

    is_done: bool


@dataclass(frozen=True, slots=True)
class BackedOff:
    """The job failed and is tried again, not before `until`."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Parked:
    """The job failed too often, or for good, and waits for a retry by hand or for new activity."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The job waits until then, and nothing was counted against it."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Behind:
    """A pass has to go on: the session has been processed further meanwhile."""

    processed_until: int


@dataclass(frozen=True, slots=True)
class Overtaken:
    """A new pass over the session has come in between; the claim is still held, nothing stored."""


@dataclass(frozen=True, slots=True)
class Released:
    """The job is due again, and nothing was counted against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedWork:
    """What a claim is to be worked on with: a piece of the session, and what it came to so far."""

    session: SessionState
    records: tuple[Record, ...]
    extraction: Extraction | None
    before: tuple[Record, ...] = ()  # those just before, for what they began
    is_rest: bool = False  # there is nothing after these
    staged: Staged | None = None
    has_lost_records: bool = False  # some it was learned from are gone; what they came to stays


class SessionOutcome(StrEnum):
    """How the last run on a session ended."""

    SUCCEEDED = "succeeded"
    SUCCEEDED_NO_OUTPUT = "succeeded_no_output"
    FAILED = "failed"
    SKIPPED = "skipped"
    EXTERNAL = "external"
    HANDED_OVER = "handed_over"
    FORGOTTEN = "forgotten"  # the session was


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionProgress:
    """One line of `status`: how a session's extraction stands, and what it took."""

    session_id: str
    space: str
    key: str
    mode: Mode
    remembered: bool
    last_activity_at: datetime
    last_seq: int
    processed_until: int | None
    outcome: SessionOutcome | None  # none: it has not been processed yet
    attempt: int | None
    finished_at: datetime | None
    extractor: str | None
    facts: int
    spent: Spent
    state: JobState
    next_try_at: datetime | None
    last_error: str | None
    handed_over: int = 0  # stretches of it that wait for its memory-agent
    faults: FactFaults = NO_FAULTS


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreDescription:
    """Which store this is; the location carries no password."""

    kind: str
    location: str
    schema_version: int

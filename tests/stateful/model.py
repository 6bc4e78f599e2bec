"""The store as plain dictionaries: short enough to be seen to be right, and slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from recollect.descriptors import from_cache_key, is_remembered
from recollect.messages import Role
from recollect.types.records import (
    KeyRef,
    MarkCause,
    MarkPolicy,
    MarkUnit,
    Mode,
    NewRecord,
    Outcome,
    Record,
    SessionBirth,
    SessionState,
)

Range = tuple[int, int, Outcome]


class Reused(Exception):
    """An append key stands for something else already."""


@dataclass(kw_only=True)
class ModelSession:
    """One session and all that belongs to it."""

    ref: KeyRef
    id: str
    rotation: int
    birth: SessionBirth
    mode: Mode
    created_at: datetime
    last_activity_at: datetime
    records: dict[int, Record] = field(default_factory=dict)
    retained: list[Record] = field(default_factory=list)
    summary: str = ""
    ranges: list[Range] = field(default_factory=list)
    last_seq: int = 0
    mark: int | None = None
    marked_at: datetime | None = None
    marked_by: MarkCause | None = None
    cursor: int = 0
    left: int = 0  # the last record before the mode forbade to learn
    ended_at: datetime | None = None
    ended_by: MarkCause | None = None

    @property
    def remembered(self) -> bool:
        agent = from_cache_key(self.ref.agent_id)
        return self.mode is Mode.ENABLED and not self.birth.ephemeral and is_remembered(agent)

    @property
    def waits(self) -> bool:
        return self.remembered and self.mark is None and self.last_seq > self.cursor

    @property
    def shown(self) -> list[Record]:
        return [*self.retained, *self.records.values()]

    @property
    def state(self) -> SessionState:
        return SessionState(
            id=self.id,
            space=self.ref.space,
            key=self.ref.key,
            agent_id=self.ref.agent_id,
            rotation=self.rotation,
            source=self.birth.source,
            project=self.birth.project,
            parent=self.birth.parent,
            ephemeral=self.birth.ephemeral,
            mode=self.mode,
            remembered=self.remembered,
            last_seq=self.last_seq,
            invalidated_at=self.mark,
            processed_until=self.cursor or None,
            marked_at=self.marked_at,
            marked_by=self.marked_by,
            created_at=self.created_at,
            last_activity_at=self.last_activity_at,
            ended_at=self.ended_at,
            ended_by=self.ended_by,
        )

    def set_mark(self, seq: int, cause: MarkCause, now: datetime) -> None:
        above = self.cursor if self.mark is None else self.mark
        if self.remembered and self.records and seq > above:
            self.mark = seq
            self.marked_at = self.marked_at or now
            self.marked_by = self.marked_by or cause

    def clear_mark(self) -> None:
        self.mark = self.marked_at = self.marked_by = None

    def move_cursor(self, seq: int, outcome: Outcome) -> None:
        if seq > self.cursor:
            self.cursor = moved(self.ranges, self.cursor, seq, outcome)
            if self.mark is not None and self.mark <= self.cursor:
                self.clear_mark()

    def skip_rest(self) -> None:
        self.move_cursor(self.last_seq, Outcome.SKIPPED)
        self.clear_mark()

    def come_back(self, now: datetime) -> None:
        """The mode allows to learn again, and from what was said before it did not."""
        pending = before(self.ranges, self.left)
        if pending <= self.cursor:
            self.skip_rest()
        else:
            moved(self.ranges, self.left, self.last_seq, Outcome.SKIPPED)
        self.mode = Mode.ENABLED
        self.set_mark(pending, MarkCause.REQUEST, now)
        self.left = 0

    def process(self, until: int, expected: int) -> bool:
        if self.mark != expected:
            return False
        self.clear_mark()
        self.move_cursor(min(until, self.last_seq), Outcome.EXTERNAL)
        return True

    def close(self, cause: MarkCause, now: datetime) -> None:
        if self.ended_at is None:
            self.ended_at, self.ended_by = now, cause
            self.set_mark(self.last_seq, cause, now)

    def is_over(self, policy: MarkPolicy) -> bool:
        if policy.unit is MarkUnit.RECORDS:
            return self.last_seq - self.cursor > policy.threshold
        words = [r for seq, r in self.records.items() if seq > self.cursor and r.role is Role.USER]
        return len(words) - 1 > policy.threshold


@dataclass(kw_only=True)
class ModelKey:
    """A stable key: its sessions, oldest first, and where its append keys went."""

    ref: KeyRef
    sessions: list[ModelSession]
    append_keys: dict[str, Record] = field(default_factory=dict)

    @property
    def current(self) -> ModelSession:
        return self.sessions[-1]

    @property
    def everything(self) -> list[Record]:
        return [record for session in self.sessions for record in session.records.values()]

    def needs_session_for(self, records: Sequence[NewRecord]) -> bool:
        """Whether appending these opens a session, because the last one has ended."""
        is_new = any(r.append_key is None or r.append_key not in self.append_keys for r in records)
        return is_new and self.current.ended_at is not None

    def check_keys(self, records: Sequence[NewRecord]) -> None:
        """Raise Reused if one of these uses an append key for something else."""
        said: dict[str, tuple[Role, str]] = {
            key: (record.role, record.content) for key, record in self.append_keys.items()
        }
        for record in records:
            content = (record.role, record.content)
            if record.append_key and said.setdefault(record.append_key, content) != content:
                raise Reused

    def append(
        self, records: Sequence[NewRecord], policy: MarkPolicy, now: datetime
    ) -> list[Record]:
        """Append to the current session, which is open; gives what the store has to return."""
        self.check_keys(records)
        session = self.current
        before, result = session.last_seq, []
        for given in records:
            known = self.append_keys.get(given.append_key or "")
            if known is None:
                session.last_seq += 1
                known = _stored(session, given, now)
                session.records[session.last_seq] = known
                if given.append_key:
                    self.append_keys[given.append_key] = known
            result.append(known)
        if session.last_seq > before:
            session.last_activity_at = max(session.last_activity_at, now)
            if session.remembered and session.is_over(policy):
                session.set_mark(session.last_seq, MarkCause.THRESHOLD, now)
        return result

    def open_next(self, state_id: str, cause: MarkCause, now: datetime) -> ModelSession:
        old = self.current
        is_clean = old.mode is Mode.POLLUTED and cause is not MarkCause.COMPACTION
        new = ModelSession(
            ref=self.ref,
            id=state_id,
            rotation=old.rotation + 1,
            birth=old.birth,
            mode=Mode.ENABLED if is_clean else old.mode,
            created_at=now,
            last_activity_at=now,
        )
        self.sessions.append(new)
        return new

    def rotate(
        self, state_id: str, cause: MarkCause, now: datetime, summary: str | None, retain: int
    ) -> None:
        old = self.current
        old.close(cause, now)
        new = self.open_next(state_id, cause, now)
        new.retained = _whole_turns(old.shown[-retain:] if retain else [])
        if summary is not None:
            new.summary = summary
        elif cause is MarkCause.COMPACTION:
            new.summary = old.summary

    def purge(self) -> None:
        session = self.current
        session.skip_rest()
        for record in session.records.values():
            if record.key is not None:
                del self.append_keys[record.key]
        session.records, session.retained, session.summary = {}, [], ""

    def set_mode(self, mode: Mode, now: datetime) -> None:
        session = self.current
        if session.mode is mode:
            return
        if mode is Mode.ENABLED:
            session.come_back(now)
        elif session.mode is Mode.ENABLED:
            session.left = session.last_seq
        session.mode = mode
        if not session.remembered:
            session.clear_mark()


@dataclass(kw_only=True)
class Model:
    """Every key there is."""

    keys: dict[tuple[str, str, str], ModelKey] = field(default_factory=dict)

    def sessions(self, space: str | None = None) -> Iterator[ModelSession]:
        for key in self.keys.values():
            if space in (None, key.ref.space):
                yield from key.sessions

    def spaces(self) -> list[str]:
        return sorted({key.ref.space for key in self.keys.values()})

    def find_invalidated(self, space: str) -> list[SessionState]:
        marked = [session.state for session in self.sessions(space) if session.mark is not None]
        return sorted(marked, key=lambda s: (s.invalidated_at, s.marked_at, s.id))

    def idle(self, space: str | None, since: datetime) -> list[ModelSession]:
        waiting = [s for s in self.sessions(space) if s.waits and s.last_activity_at <= since]
        return sorted(waiting, key=lambda session: (session.last_activity_at, session.id))

    def counts(self, space: str | None) -> tuple[int, int]:
        sessions = list(self.sessions(space))
        return sum(s.mark is not None for s in sessions), sum(s.waits for s in sessions)


def moved(ranges: list[Range], cursor: int, upto: int, outcome: Outcome) -> int:
    """Give a range to all up to a record that has none, and where the cursor is then."""
    known = {seq for first, last, _ in ranges for seq in range(first, last + 1)}
    first = cursor + 1
    for seq in range(cursor + 1, upto + 2):
        if seq in known or seq == upto + 1:
            if first < seq:
                ranges.append((first, seq - 1, outcome))
            first = seq + 1
    ranges.sort()
    cursor = max(cursor, upto)
    while cursor + 1 in known:
        cursor += 1
    return cursor


def before(ranges: list[Range], seq: int) -> int:
    """The last record up to one that has no range."""
    known = {each for first, last, _ in ranges for each in range(first, last + 1)}
    while seq in known:
        seq -= 1
    return seq


def _stored(session: ModelSession, given: NewRecord, now: datetime) -> Record:
    return Record(
        session_id=session.id,
        seq=session.last_seq,
        role=given.role,
        content=given.content,
        name=given.name,
        body=given.body,
        at=given.said_at or now,
        created_at=now,
        key=given.append_key,
        metadata={},
    )


def _whole_turns(records: list[Record]) -> list[Record]:
    """From the first word of a user on; without one, from the first that is no tool's answer."""
    for starts in ({Role.USER}, set(Role) - {Role.TOOL}):
        for position, record in enumerate(records):
            if record.role in starts:
                return records[position:]
    return []

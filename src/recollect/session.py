"""Sessions for callers: append, read, mark, rotate; one short method per verb."""

from __future__ import annotations

import builtins
import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect import collection
from recollect.collection import Message, StableKey
from recollect.descriptors import Descriptor, cache_key, from_cache_key
from recollect.errors import InvalidValue
from recollect.messages import Attachment, storable_json
from recollect.runtime import Runtime
from recollect.types.facts import Call, Extraction
from recollect.types.records import (
    KeyRef,
    MarkCause,
    MarkPolicy,
    Mode,
    NewRecord,
    Range,
    Record,
    SessionBirth,
    SessionState,
    numbered_key,
)

if TYPE_CHECKING:
    from recollect.redaction import Redactor
    from recollect.store.protocol import Store
    from recollect.types.imports import Adopted, Arrival, Cursor

LIST_MAX = 1000  # rows of one page, for every caller
UNREACHABLE = 2**62  # the threshold of what marks nothing


def open_session(
    runtime: Runtime, space: str, key: StableKey, agent: Descriptor, **born: Any
) -> Session:
    """The conversation behind a stable key, created if it is new; `born` is for a new one."""
    store, is_kept = runtime.store_of(agent)
    birth = SessionBirth(mode=Mode.ENABLED if is_kept else Mode.DISABLED, **born)
    ref = store.sessions.open_key(
        space,
        collection.encode_key(key),
        cache_key(agent),
        birth,
        runtime.now(),
        runtime.ids.new,
    )
    return Session(runtime, store, ref, is_kept=is_kept)


class Sessions:
    """A space's sessions by id, and the seed documents' marking interface."""

    def __init__(self, runtime: Runtime, store: Store, space: str) -> None:
        self._runtime = runtime
        self._store = store
        self._space = space

    def get(self, session_id: str) -> SessionState | None:
        return self._store.sessions.get(self._space, collection.check_id(session_id))

    def list(
        self, limit: int = 50, before: SessionState | None = None
    ) -> builtins.list[SessionState]:
        """A page of sessions, newest first; `before` is the last one of the page before."""
        return self._store.sessions.list(self._space, page_size(limit), before)

    def invalidate(self, session_id: str, seq: int) -> None:
        """Mark a session up to a record. Idempotent; a mark only rises until it is cleared."""
        seq = collection.check_seq(seq)
        session_id = collection.check_id(session_id)
        self._store.marks.invalidate(
            self._space, session_id, seq, MarkCause.REQUEST, self._runtime.now()
        )

    def find_invalidated(self, limit: int = 10) -> builtins.list[SessionState]:
        """Marked sessions, the lowest mark first."""
        return self._store.marks.find_invalidated(self._space, page_size(limit))

    def mark_processed(
        self, session_id: str, processed_until: int, expected_invalidated_at: int
    ) -> bool:
        """Clear the mark and move the cursor, if the mark is still the expected one.

        False: it is not, and nothing has changed. The cursor never passes the last record.
        """
        return self._store.marks.mark_processed(
            self._space,
            collection.check_id(session_id),
            collection.check_seq(processed_until, "processed_until"),
            collection.check_seq(expected_invalidated_at, "expected_invalidated_at"),
            self._runtime.now(),
        )

    def max_seq(self, session_id: str) -> int | None:
        """The newest record's seq, None for an empty session."""
        return self._store.marks.max_seq(self._space, collection.check_id(session_id))

    def count_since(self, session_id: str, seq: int) -> int:
        """How many records a session has above a seq."""
        session_id = collection.check_id(session_id)
        return self._store.marks.count_since(self._space, session_id, collection.check_seq(seq))

    def records(
        self, session_id: str, after: int = 0, limit: int = LIST_MAX
    ) -> builtins.list[Record]:
        """Records of one session above a seq, a page at a time."""
        session_id = collection.check_id(session_id)
        return self._store.records.after(
            self._space, session_id, collection.check_seq(after), page_size(limit)
        )

    def ranges(self, session_id: str) -> builtins.list[Range]:
        """What has become of a session's records so far."""
        return self._store.marks.ranges(self._space, collection.check_id(session_id))

    def extraction(self, session_id: str) -> Extraction | None:
        """What a session came to; none when nothing was learned from it."""
        return self._store.extractions.get(self._space, collection.check_id(session_id))

    def extractions(
        self, limit: int = 50, before: Extraction | None = None
    ) -> builtins.list[Extraction]:
        """A page of what sessions came to, the most recent first."""
        return self._store.extractions.list(self._space, page_size(limit), before)

    def calls(
        self, session_id: str | None = None, limit: int = 50, before: Call | None = None
    ) -> builtins.list[Call]:
        """A page of the model calls made for one session or for all, newest first."""
        session_id = None if session_id is None else collection.check_id(session_id)
        return self._store.ledger.calls(self._space, session_id, page_size(limit), before)


class Session:
    """One conversation, found by its stable key; the session behind it may rotate at any time."""

    def __init__(self, runtime: Runtime, store: Store, ref: KeyRef, *, is_kept: bool) -> None:
        self._runtime = runtime
        self._store = store
        self._ref = ref
        self._is_kept = is_kept

    def __repr__(self) -> str:
        return f"Session({self.key!r}, agent={self._ref.agent_id!r}, space={self._ref.space!r})"

    @property
    def store(self) -> Store:
        """Where it is kept: with memory off, in this process alone."""
        return self._store

    @property
    def ref(self) -> KeyRef:
        """The key as the store knows it."""
        return self._ref

    @property
    def key(self) -> str:
        return self._ref.key

    @property
    def agent(self) -> Descriptor:
        return from_cache_key(self._ref.agent_id)

    @property
    def state(self) -> SessionState:
        """The current state of the session."""
        return self._store.sessions.current(self._ref)

    @property
    def id(self) -> str:
        """The id of the current session; reset, compact and end change it."""
        return self.state.id

    # append

    def append(
        self,
        role: str,
        content: str | Sequence[Any] | None = None,
        *,
        parts: Sequence[Any] | None = None,
        tool_calls: Sequence[Any] | None = None,
        tool_call_id: str | None = None,
        is_error: bool = False,
        attachments: Sequence[Attachment] = (),
        name: str | None = None,
        at: datetime | str | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Record:
        """Add one record, durably: it is stored when this returns.

        `key` makes a retry safe: the same key stores once, and returns what is stored. If that was
        forgotten, nothing is stored, and an empty note comes back (`is_forgotten`).
        """
        limit = self._runtime.settings.record_bytes_max
        if isinstance(content, str) and not (
            parts or tool_calls or tool_call_id or is_error or attachments
        ):
            record = collection.prepare_plain(
                role, content, record_bytes_max=limit, name=name, at=at, key=key, metadata=metadata
            )
        else:
            message = {
                "role": role,
                "content": _content(content, parts, attachments),
                "tool_calls": tool_calls or None,
                "tool_call_id": tool_call_id,
                "is_error": is_error or None,
                "name": name,
            }
            given = {field: value for field, value in message.items() if value is not None}
            record = collection.prepare(
                Message(message=given, at=at, key=key, metadata=metadata or {}),
                record_bytes_max=limit,
            )
        return self._append([record])[0]

    def append_many(
        self,
        messages: Sequence[Message | Mapping[str, Any] | object],
        *,
        key: str | None = None,
    ) -> list[Record]:
        """Add OpenAI- or Anthropic-style messages as they are: all of them, or none.

        `key` makes a retry of them all safe, as in `append`; more messages under it, or fewer, are
        refused as others are. A message that has a key of its own keeps it.
        """
        settings = self._runtime.settings
        prepared = collection.prepare_many(
            messages,
            record_bytes_max=settings.record_bytes_max,
            batch_records_max=settings.batch_records_max,
        )
        if key is not None:
            collection.check_label(numbered_key(key, len(prepared)), "an append key")
            for number, record in enumerate(prepared):
                record.append_key = record.append_key or numbered_key(key, number)
        return self._append(prepared, key) if prepared or key is not None else []

    def adopt(self, arrivals: Sequence[Arrival], cursor: Cursor, *, marks: bool = True) -> Adopted:
        """Add what another program's file holds, each item once in a space, and move the cursor.

        Without `marks`, however much it is marks nothing: somebody else does.
        """
        runtime = self._runtime
        now = runtime.now()
        records = self.admitted([each.record for each in arrivals])
        admitted = [
            dataclasses.replace(each, record=record)
            for each, record in zip(arrivals, records, strict=True)
        ]
        policy = runtime.settings.mark_policy if marks else MarkPolicy(threshold=UNREACHABLE)
        adopted = self._store.imports.adopt(
            self._ref, admitted, cursor, policy, now, runtime.ids.new
        )
        self._added(adopted.records, now)
        return adopted

    def _append(self, records: list[NewRecord], batch: str | None = None) -> list[Record]:
        runtime = self._runtime
        now = runtime.now()
        policy = runtime.settings.mark_policy
        stored = self._store.records.append(
            self._ref, self.admitted(records), policy, now, runtime.ids.new, batch
        )
        self._added(stored, now)
        return stored

    def admitted(self, records: Sequence[NewRecord]) -> Sequence[NewRecord]:
        """Records as they may be stored; what they bring in is said before anybody learns of it."""
        redactor = self._redactor()
        if redactor is not None:
            records = [_redacted(record, redactor) for record in records]
        polluting = self._runtime.settings.polluting_tools
        if polluting and collection.calls_any(records, polluting) and self.mode is Mode.ENABLED:
            self.set_mode(Mode.POLLUTED)
        return records

    def admitted_text(self, text: str) -> str:
        """What is said in a conversation or about it, as it may be stored."""
        redactor = self._redactor()
        return text if redactor is None else redactor.redact(text)

    def _redactor(self) -> Redactor | None:
        """What redacts all that is to be stored here; none: it is stored as it was said."""
        if not self._runtime.settings.redact_on_append:
            return None
        return self._runtime.redactor().keyed(self._ref.space)

    def _added(self, stored: Sequence[Record], now: datetime) -> None:
        runtime = self._runtime
        if not stored:
            return
        if not self._is_kept:
            self._store.records.trim(self._ref, runtime.settings.max_history_len)
        elif next((each.seq for each in stored if each.seq), 0) == 1:
            runtime.on_began(lambda: self.state, now)

    # read

    def recent(self, n: int = 20) -> list[Record]:
        """The newest n records of the current session, oldest first."""
        return self._store.records.recent(self._ref, collection.check_seq(n, "n"))

    def all(self, rotations: bool = False) -> list[Record]:
        """Every record of the current session, or of all sessions the key has had."""
        if rotations:
            return self._store.records.all_rotations(self._ref)
        return self._store.records.recent(self._ref, None)

    def count(self) -> int:
        """How many records `all()` gives."""
        return self._store.records.count(self._ref)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # an empty conversation is still one

    @property
    def max_seq(self) -> int | None:
        """The newest record's seq in the current session, None when it has none."""
        return self._store.marks.max_seq(self._ref.space, self.id)

    def count_since(self, seq: int) -> int:
        """How many records the current session has above a seq."""
        seq = collection.check_seq(seq)
        return self._store.marks.count_since(self._ref.space, self.id, seq)

    # summary

    def get_summary(self) -> str:
        """The current session's summary, empty when it has none."""
        return self._store.records.summary(self._ref)

    @property
    def summary(self) -> str:
        return self.get_summary()

    def set_summary(self, text: str) -> None:
        """Replace the current session's summary."""
        self._store.records.set_summary(self._ref, self._checked_summary(text), self._runtime.now())

    def _checked_summary(self, text: str) -> str:
        checked = collection.check_summary(text, self._runtime.settings.record_bytes_max)
        return self.admitted_text(checked)

    # life

    def purge(self) -> None:
        """Remove the current session's history and summary; `seq` goes on from where it was."""
        self._store.records.purge(self._ref, self._runtime.now())

    def reset(self, reason: str | None = None) -> SessionState:
        """Mark the conversation and start an empty one under the same key."""
        checked = collection.check_label(reason, "a reason")
        return self._store.sessions.rotate(
            self._ref,
            MarkCause.RESET,
            self._runtime.now(),
            self._runtime.ids.new,
            reason=None if checked is None else self.admitted_text(checked),
        )

    def compact(self, summary: str | None = None, retain: int | None = None) -> SessionState:
        """Mark the conversation and go on in a new session, with a summary and the newest turns.

        The retained records stay where they are and are shown by reference, so nothing is learned
        twice. Without a summary the one there is goes along.
        """
        settings = self._runtime.settings
        keep = settings.retain_recent if retain is None else collection.check_seq(retain, "retain")
        return self._store.sessions.rotate(
            self._ref,
            MarkCause.COMPACTION,
            self._runtime.now(),
            self._runtime.ids.new,
            summary=None if summary is None else self._checked_summary(summary),
            retain=keep,
        )

    def sleep(self) -> SessionState:
        """Mark the conversation: its agent has gone idle."""
        return self._store.marks.invalidate_current(self._ref, MarkCause.SLEEP, self._runtime.now())

    def end(self) -> SessionState:
        """Mark and close the conversation; the next append opens a new session under the key."""
        return self._store.sessions.end(self._ref, self._runtime.now())

    @property
    def mode(self) -> Mode:
        """Whether this session may become memory: enabled, disabled or polluted."""
        return self.state.mode

    @mode.setter
    def mode(self, mode: Mode | str) -> None:
        self.set_mode(mode)

    def set_mode(self, mode: Mode | str) -> None:
        """Change the mode. What was said while it was not enabled is never learned later.

        What was said before that and waits to be processed is, once it is enabled again.
        While it is not enabled, nothing is recalled that was learned from this session alone.
        """
        if not isinstance(mode, str) or mode not in set(Mode):
            raise InvalidValue(f"a mode is one of {', '.join(Mode)}: {mode!r}")
        if self._is_kept:
            state = self._store.sessions.set_mode(self._ref, Mode(mode), self._runtime.now())
            if state.processed_until is not None and not state.remembered:
                self._runtime.on_left_out(state.space)


def _redacted(record: NewRecord, redactor: Redactor) -> NewRecord:
    def in_json(text: str | None) -> str | None:
        if text is None:
            return None
        redacted = redactor.redact_json(json.loads(text))
        return storable_json(json.dumps(redacted, ensure_ascii=False))

    return dataclasses.replace(
        record,
        content=redactor.redact(record.content),
        name=None if record.name is None else redactor.redact(record.name),
        body=in_json(record.body),
        metadata=in_json(record.metadata),
    )


def _content(
    content: str | Sequence[Any] | None,
    parts: Sequence[Any] | None,
    attachments: Sequence[Attachment],
) -> Any:
    """Text, parts and attachments as the content of one message."""
    if content is not None and parts is not None:
        raise InvalidValue("give content or parts, not both")
    given = content if parts is None else list(parts)
    if not attachments:
        return given
    words = [] if given is None else [given] if isinstance(given, str) else list(given)
    return words + [
        {
            "type": attachment.kind,
            "uri": attachment.uri,
            "media_type": attachment.media_type,
            "name": attachment.name,
        }
        for attachment in attachments
    ]


def page_size(limit: int) -> int:
    if type(limit) is not int or not 0 <= limit <= LIST_MAX:
        raise InvalidValue(f"a limit must be between 0 and {LIST_MAX:,}: {limit!r}")
    return limit

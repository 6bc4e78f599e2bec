"""What a case works with: a fresh store, a clock that stands, ids that count, and threads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TypeVar

from recollect.clock import ManualClock
from recollect.messages import Role
from recollect.store.protocol import Store
from recollect.store.relational.marks import Marks
from recollect.store.relational.records import Records
from recollect.store.relational.session_keys import SessionStore
from recollect.types.records import (
    KeyRef,
    MarkCause,
    MarkPolicy,
    Mode,
    NewRecord,
    Record,
    SessionBirth,
    SessionState,
)

T = TypeVar("T")
OpenStore = Callable[[], Store]

SPACE = "space-a"
KEY = "telegram:42:main"
AGENT = "/user/assistant"


class Harness:
    """A store that holds nothing yet, and short words for what cases do with it all the time.

    `open_store` opens the same place again at every call. A volatile store is one whose data lives
    and dies with the handle, as a database in memory does.
    """

    def __init__(self, open_store: OpenStore, *, volatile: bool = False) -> None:
        self._open_store = open_store
        self._handles = [open_store()]
        self._numbers = itertools.count(1)
        self._ids = itertools.count(1)
        self.clock = ManualClock()
        self.is_volatile = volatile

    @property
    def handle(self) -> Store:
        return self._handles[0]

    @property
    def sessions(self) -> SessionStore:
        return self.handle.sessions

    @property
    def records(self) -> Records:
        return self.handle.records

    @property
    def marks(self) -> Marks:
        return self.handle.marks

    def now(self) -> datetime:
        return self.clock.now()

    def new_id(self) -> str:
        return f"session-{next(self._ids):06}"

    def second_handle(self) -> Store:
        """Another handle on the same place while the first stays open; closed after the case."""
        self._handles.append(self._open_store())
        return self._handles[-1]

    def reopen(self) -> None:
        """Close the store and open it again; from here on the case works with the new handle."""
        self.handle.close()
        self._handles[0] = self._open_store()

    def close(self) -> None:
        for handle in self._handles:
            handle.close()

    # making things

    def key(
        self,
        key: str = KEY,
        *,
        space: str = SPACE,
        agent: str = AGENT,
        birth: SessionBirth | None = None,
    ) -> KeyRef:
        """A stable key, created if it is new."""
        return self.sessions.open_key(
            space, key, agent, birth or SessionBirth(), self.now(), self.new_id
        )

    def append(
        self,
        ref: KeyRef,
        count: int = 1,
        *,
        role: Role = Role.USER,
        policy: MarkPolicy | None = None,
    ) -> list[Record]:
        """That many records of plain text, one call each."""
        return [self.say(ref, self.text(role), policy=policy)[0] for _ in range(count)]

    def say(
        self, ref: KeyRef, *records: NewRecord, policy: MarkPolicy | None = None
    ) -> list[Record]:
        """These records in one call."""
        return self.records.append(ref, records, policy or MarkPolicy(), self.now(), self.new_id)

    def text(self, role: Role = Role.USER) -> NewRecord:
        """A record that says something nobody has said before."""
        return NewRecord(role=role, content=f"word {next(self._numbers)}")

    def marked(self, key: str = KEY, seq: int = 1, *, space: str = SPACE) -> SessionState:
        """A session of a new key with a mark at `seq`, and at least as many records."""
        ref = self.key(key, space=space)
        self.say(ref, *(self.text() for _ in range(seq)), policy=NEVER)
        self.invalidate(ref, seq)
        return self.sessions.current(ref)

    # changing things

    def invalidate(
        self, ref: KeyRef, seq: int, cause: MarkCause = MarkCause.REQUEST
    ) -> SessionState:
        session = self.sessions.current(ref)
        self.marks.invalidate(ref.space, session.id, seq, cause, self.now())
        return self.sessions.current(ref)

    def process(self, ref: KeyRef, until: int, expected: int) -> bool:
        session = self.sessions.current(ref)
        return self.marks.mark_processed(ref.space, session.id, until, expected, self.now())

    def process_all(self, ref: KeyRef) -> SessionState:
        """Mark the current session up to its last record and process it up to there."""
        last = self.sessions.current(ref).last_seq
        self.invalidate(ref, last)
        assert self.process(ref, last, last)
        return self.sessions.current(ref)

    def reset(self, ref: KeyRef) -> SessionState:
        return self.sessions.rotate(ref, MarkCause.RESET, self.now(), self.new_id)

    def compact(self, ref: KeyRef, retain: int = 0, summary: str | None = None) -> SessionState:
        return self.sessions.rotate(
            ref, MarkCause.COMPACTION, self.now(), self.new_id, summary=summary, retain=retain
        )

    def sleep(self, ref: KeyRef) -> SessionState:
        return self.marks.invalidate_current(ref, MarkCause.SLEEP, self.now())

    def end(self, ref: KeyRef) -> SessionState:
        return self.sessions.end(ref, self.now())

    def set_mode(self, ref: KeyRef, mode: Mode) -> SessionState:
        return self.sessions.set_mode(ref, mode, self.now())

    # looking at things

    def current(self, ref: KeyRef) -> SessionState:
        return self.sessions.current(ref)

    def session(self, session_id: str, space: str = SPACE) -> SessionState:
        """A session that has to be there."""
        found = self.sessions.get(space, session_id)
        assert found is not None, f"the session {session_id} is gone"
        return found

    def everything(self, ref: KeyRef) -> list[Record]:
        """Every record of the current session."""
        return self.records.recent(ref, None)

    def words(self, ref: KeyRef, limit: int | None = None) -> list[str]:
        return [record.content for record in self.records.recent(ref, limit)]

    def at_once(self, *jobs: Callable[[], T]) -> list[T]:
        """Run every job in a thread of its own, all released at the same moment."""
        barrier = threading.Barrier(len(jobs))

        def released(job: Callable[[], T]) -> T:
            barrier.wait(timeout=60)
            return job()

        with ThreadPoolExecutor(max_workers=len(jobs)) as threads:
            return list(threads.map(released, jobs))


NEVER = MarkPolicy(threshold=2**31 - 1)  # a policy under which no append marks anything


def seqs(records: Sequence[Record]) -> list[int]:
    return [record.seq for record in records]


def ids(sessions: Sequence[SessionState]) -> list[str]:
    return [session.id for session in sessions]

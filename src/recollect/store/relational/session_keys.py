"""Stable keys and their sessions, as in the protocol: each method is one transaction."""

from __future__ import annotations

import builtins
from datetime import datetime

from recollect.clock import to_micros
from recollect.ids import NewId
from recollect.store.relational import rows
from recollect.store.relational.database import Aggregate, Connection
from recollect.store.relational.sessions import (
    close_session,
    current_session,
    ensure_key,
    find_key,
    locked_session,
    rotate_session,
)
from recollect.types.records import KeyRef, MarkCause, Mode, SessionBirth, SessionState

_END_OF_TIME = 2**62  # above every time a clock can show


class SessionStore(Aggregate):
    """Sessions and the stable keys behind which they rotate."""

    def open_key(
        self, space: str, key: str, agent_id: str, birth: SessionBirth, now: datetime, new_id: NewId
    ) -> KeyRef:
        """Find a stable key, or create it with its first session.

        Behind a session that was forgotten the next one is of the project that is given now.
        """
        names = {"space": space, "key": key, "agent_id": agent_id}
        row = self._row(space, "find_key", names)
        if row is not None:
            found = KeyRef(**names, key_id=row[0])
            if row[1] and birth.project is not None:  # a later call names it again
                project = {"space": space, "key_id": found.key_id, "project": birth.project}
                self._run(space, "name_project", project)
            return found

        def create(c: Connection) -> KeyRef:
            return ensure_key(c, space, key, agent_id, birth, now, new_id)

        return self._database.write(space, create)

    def find_key(self, space: str, key: str, agent_id: str) -> KeyRef | None:
        return self._database.read(space, lambda c: find_key(c, space, key, agent_id))

    def key_agents(self, space: str, key: str) -> builtins.list[str]:
        """The ids of the agents that use a stable key."""
        names = {"space": space, "key": key}
        found = self._rows(space, "find_key_agents", names)
        return [row[0] for row in found]

    def current(self, ref: KeyRef) -> SessionState:
        return self._database.read(ref.space, lambda c: current_session(c, ref))

    def get(self, space: str, session_id: str) -> SessionState | None:
        names = {"space": space, "id": session_id}
        return self._one(rows.session_state, space, "get_session", names)

    def list(
        self, space: str, limit: int, before: SessionState | None
    ) -> builtins.list[SessionState]:
        """A page of sessions, newest first: those after `before` in that order."""
        page = {
            "space": space,
            "before": _END_OF_TIME if before is None else to_micros(before.created_at),
            "before_id": "" if before is None else before.id,
            "limit": limit,
        }
        return self._page(rows.session_state, space, "list_sessions", page)

    def rotations(self, ref: KeyRef) -> builtins.list[SessionState]:
        """Every session of a key, oldest first."""
        names = {"space": ref.space, "key_id": ref.key_id}
        return self._page(rows.session_state, ref.space, "key_sessions", names)

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

        def job(c: Connection) -> SessionState:
            return rotate_session(
                c, ref, cause, now, new_id, reason=reason, summary=summary, retain=retain
            )

        return self._database.write(ref.space, job)

    def end(self, ref: KeyRef, now: datetime) -> SessionState:
        """Mark and close the current session; the next append opens a new one."""

        def job(c: Connection) -> SessionState:
            close_session(c, locked_session(c, ref), MarkCause.END, now, None)
            return current_session(c, ref)

        return self._database.write(ref.space, job)

    def set_mode(self, ref: KeyRef, mode: Mode, now: datetime) -> SessionState:
        """Set what may be learned from the current session; forbidding it voids all work on it.

        Allowed again, what was said meanwhile is skipped, and what had waited before is marked.
        """
        from recollect.store.relational.modes import change_mode

        def job(c: Connection) -> SessionState:
            old = locked_session(c, ref)
            if old.mode is mode:
                return old
            change_mode(c, old, mode, now)
            return current_session(c, ref)

        return self._database.write(ref.space, job)

    def spaces(self, after: str, limit: int) -> builtins.list[str]:
        """The names of the spaces above `after`, in order."""
        page = {"after": after, "limit": limit}
        return [row[0] for row in self._rows(None, "list_spaces", page)]

"""Stable keys and their sessions, as in the protocol: each method is one transaction."""

from __future__ import annotations

import builtins
from datetime import datetime

from recollect.clock import to_micros
from recollect.store.protocol import NewId
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


class RelationalSessions(Aggregate):
    """Implements `recollect.store.protocol.SessionStore`."""

    def open_key(
        self, space: str, key: str, agent_id: str, birth: SessionBirth, now: datetime, new_id: NewId
    ) -> KeyRef:
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
        page = {
            "space": space,
            "before": _END_OF_TIME if before is None else to_micros(before.created_at),
            "before_id": "" if before is None else before.id,
            "limit": limit,
        }
        return self._page(rows.session_state, space, "list_sessions", page)

    def rotations(self, ref: KeyRef) -> builtins.list[SessionState]:
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
        def job(c: Connection) -> SessionState:
            return rotate_session(
                c, ref, cause, now, new_id, reason=reason, summary=summary, retain=retain
            )

        return self._database.write(ref.space, job)

    def end(self, ref: KeyRef, now: datetime) -> SessionState:
        def job(c: Connection) -> SessionState:
            close_session(c, locked_session(c, ref), MarkCause.END, now, None)
            return current_session(c, ref)

        return self._database.write(ref.space, job)

    def set_mode(self, ref: KeyRef, mode: Mode, now: datetime) -> SessionState:
        from recollect.store.relational.modes import change_mode

        def job(c: Connection) -> SessionState:
            old = locked_session(c, ref)
            if old.mode is mode:
                return old
            change_mode(c, old, mode, now)
            return current_session(c, ref)

        return self._database.write(ref.space, job)

    def spaces(self, after: str, limit: int) -> builtins.list[str]:
        page = {"after": after, "limit": limit}
        return [row[0] for row in self._rows(None, "list_spaces", page)]

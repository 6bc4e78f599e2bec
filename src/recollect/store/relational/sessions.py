"""Sessions and stable keys: created once however many ask at once, rotated in one transaction."""

from __future__ import annotations

import builtins
from datetime import datetime

from recollect.clock import to_micros
from recollect.crashpoints import reach
from recollect.messages import Role
from recollect.store.protocol import NewId
from recollect.store.relational import rows
from recollect.store.relational.database import Connection, Database
from recollect.store.relational.jobs import mark
from recollect.store.relational.session_keys import ensure_key, find_key, gone, insert_session
from recollect.types.records import KeyRef, MarkCause, Mode, SessionBirth, SessionState

_END_OF_TIME = 2**62  # above every time a clock can show


class RelationalSessions:
    """Implements `recollect.store.protocol.SessionStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_key(
        self, space: str, key: str, agent_id: str, birth: SessionBirth, now: datetime, new_id: NewId
    ) -> KeyRef:
        names = {"space": space, "key": key, "agent_id": agent_id}
        row = self._database.read(space, lambda c: c.row("find_key", names))
        if row is not None:
            found = KeyRef(**names, key_id=row[0])
            if row[1] and birth.project is not None:  # whoever goes on says it once more
                project = {"space": space, "key_id": found.key_id, "project": birth.project}
                self._database.write(space, lambda c: c.run("name_project", project))
            return found

        def create(c: Connection) -> KeyRef:
            return ensure_key(c, space, key, agent_id, birth, now, new_id)

        return self._database.write(space, create)

    def find_key(self, space: str, key: str, agent_id: str) -> KeyRef | None:
        return self._database.read(space, lambda c: find_key(c, space, key, agent_id))

    def key_agents(self, space: str, key: str) -> builtins.list[str]:
        names = {"space": space, "key": key}
        found = self._database.read(space, lambda c: c.rows("find_key_agents", names))
        return [row[0] for row in found]

    def current(self, ref: KeyRef) -> SessionState:
        return self._database.read(ref.space, lambda c: current_session(c, ref))

    def get(self, space: str, session_id: str) -> SessionState | None:
        names = {"space": space, "id": session_id}
        row = self._database.read(space, lambda c: c.row("get_session", names))
        return None if row is None else rows.session_state(row)

    def list(
        self, space: str, limit: int, before: SessionState | None
    ) -> builtins.list[SessionState]:
        page = {
            "space": space,
            "before": _END_OF_TIME if before is None else to_micros(before.created_at),
            "before_id": "" if before is None else before.id,
            "limit": limit,
        }
        found = self._database.read(space, lambda c: c.rows("list_sessions", page))
        return [rows.session_state(row) for row in found]

    def rotations(self, ref: KeyRef) -> builtins.list[SessionState]:
        names = {"space": ref.space, "key_id": ref.key_id}
        found = self._database.read(ref.space, lambda c: c.rows("key_sessions", names))
        return [rows.session_state(row) for row in found]

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
        return [row[0] for row in self._database.read(None, lambda c: c.rows("list_spaces", page))]


def rotate_session(
    c: Connection,
    ref: KeyRef,
    cause: MarkCause,
    now: datetime,
    new_id: NewId,
    *,
    reason: str | None = None,
    summary: str | None = None,
    retain: int = 0,
) -> SessionState:
    """Mark and close the current session and open the next one, inside a transaction."""
    old = locked_session(c, ref)
    close_session(c, old, cause, now, reason)
    reach("rotate.closed")
    new = open_next_session(c, ref, old, cause, now, new_id)
    if retain:
        _retain(c, old, new, retain)
    text = summary
    if text is None and cause is MarkCause.COMPACTION:
        text = _summary(c, old)
    if text:
        content = {"space": ref.space, "id": new, "content": text, "now": to_micros(now)}
        c.run("set_summary", content)
    reach("rotate.opened")
    return current_session(c, ref)


def current_session(c: Connection, ref: KeyRef) -> SessionState:
    row = c.row("get_current_session", {"space": ref.space, "key_id": ref.key_id})
    if row is None:
        raise gone(ref)
    return rows.session_state(row)


def locked_session(c: Connection, ref: KeyRef) -> SessionState:
    """The current session, held so that nobody else rotates its key before we commit."""
    c.row("lock_key", {"space": ref.space, "key_id": ref.key_id})
    return current_session(c, ref)


def close_session(
    c: Connection, old: SessionState, cause: MarkCause, now: datetime, reason: str | None
) -> None:
    """Mark a session up to its last record and end it, unless it has ended before."""
    if old.ended_at is not None:
        return
    names = {"space": old.space, "id": old.id}
    ended = {**names, "now": to_micros(now), "cause": cause.value, "reason": reason}
    # Ended first: on PostgreSQL this waits for appends under way, and marks their records too.
    c.run("end_session", ended)
    row = c.row("lock_session", names)
    assert row is not None
    mark(c, names, row[0], cause, now)


def open_next_session(
    c: Connection, ref: KeyRef, old: SessionState, cause: MarkCause, now: datetime, new_id: NewId
) -> str:
    """Put a new session behind the key. It inherits what its predecessor was; a decision to keep it
    out of memory survives every rotation, pollution only the one that carries its text along."""
    polluted = old.mode is Mode.POLLUTED and cause is not MarkCause.COMPACTION
    birth = SessionBirth(
        source=old.source,
        project=old.project,
        parent=old.parent,
        ephemeral=old.ephemeral,
        mode=Mode.ENABLED if polluted else old.mode,
    )
    session_id = new_id()
    insert_session(c, ref, session_id, old.rotation + 1, birth, to_micros(now))
    names = {"space": ref.space, "key_id": ref.key_id, "session_id": session_id}
    c.run("point_key", names)
    return session_id


def _retain(c: Connection, old: SessionState, new: str, limit: int) -> None:
    """Reference the newest records from the new session, from the start of a turn on."""
    names = {"space": old.space, "id": old.id, "limit": limit}
    newest = c.rows("recent_records", names)
    if len(newest) < limit:
        newest += c.rows("recent_retained", {**names, "limit": limit - len(newest)})
    kept = [rows.record(row) for row in reversed(newest)]
    kept = kept[_first_of_a_turn([record.role for record in kept]) :]
    c.run_many(
        "insert_retained",
        [
            {
                "space": old.space,
                "session_id": new,
                "position": position,
                "source_session_id": record.session_id,
                "source_seq": record.seq,
            }
            for position, record in enumerate(kept, start=1)
        ],
    )


def _first_of_a_turn(roles: builtins.list[Role]) -> int:
    """Where to cut so that a turn stays whole, or at least no tool's answer stands alone."""
    if Role.USER in roles:
        return roles.index(Role.USER)
    return next((i for i, role in enumerate(roles) if role is not Role.TOOL), len(roles))


def _summary(c: Connection, old: SessionState) -> str | None:
    row = c.row("get_summary", {"space": old.space, "id": old.id})
    return None if row is None else str(row[0])

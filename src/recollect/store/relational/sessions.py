"""Sessions and stable keys: created once however many ask at once, rotated in one transaction."""

from __future__ import annotations

import builtins
from datetime import datetime

from recollect.clock import to_micros
from recollect.crashpoints import reach
from recollect.descriptors import from_cache_key, is_remembered
from recollect.errors import NotFound, StoreBusy
from recollect.ids import NewId
from recollect.messages import Role
from recollect.store.relational import rows
from recollect.store.relational.database import Connection
from recollect.store.relational.jobs import mark
from recollect.types.records import KeyRef, MarkCause, Mode, SessionBirth, SessionState


def find_key(c: Connection, space: str, key: str, agent_id: str) -> KeyRef | None:
    names = {"space": space, "key": key, "agent_id": agent_id}
    row = c.row("find_key", names)
    return None if row is None else KeyRef(**names, key_id=row[0])


def ensure_key(
    c: Connection,
    space: str,
    key: str,
    agent_id: str,
    birth: SessionBirth,
    now: datetime,
    new_id: NewId,
) -> KeyRef:
    """A key that was made by us, or by somebody who was quicker."""
    made = create_key(c, space, key, agent_id, birth, now, new_id)
    made = made or find_key(c, space, key, agent_id)
    if made is None:  # older versions could leave a key behind whose session was forgotten
        c.run("point_key_back", {"space": space, "key": key, "agent_id": agent_id})
        made = find_key(c, space, key, agent_id)
    if made is None:
        raise StoreBusy(f"all of space {space!r} is being forgotten, {key!r} with it; retry")
    return made


def create_key(
    c: Connection,
    space: str,
    key: str,
    agent_id: str,
    birth: SessionBirth,
    now: datetime,
    new_id: NewId,
) -> KeyRef | None:
    """A key with its first session. None: another caller created it since we looked."""
    at = to_micros(now)
    session_id = new_id()
    c.run("insert_space", {"space": space, "now": at})
    c.run("insert_agent", {"space": space, "agent_id": agent_id, "now": at})
    names = {"space": space, "key": key, "agent_id": agent_id}
    row = c.row("insert_key", {**names, "session_id": session_id})
    if row is None:
        return None
    ref = KeyRef(**names, key_id=row[0])
    insert_session(c, ref, session_id, 1, birth, at)
    reach("key.created")
    return ref


def may_be_remembered(agent_id: str, ephemeral: bool, mode: Mode) -> bool:
    return mode is Mode.ENABLED and not ephemeral and is_remembered(from_cache_key(agent_id))


def expect_key(c: Connection, ref: KeyRef) -> None:
    """NotFound: somebody holds a key that is gone."""
    if c.row("current_session", {"space": ref.space, "key_id": ref.key_id}) is None:
        raise gone(ref)


def gone(ref: KeyRef) -> NotFound:
    """A key always has a session, and both go only with everything in their space."""
    return NotFound(f"{ref.key!r} was forgotten with all of space {ref.space!r}; open it again")


def insert_session(
    c: Connection, ref: KeyRef, session_id: str, rotation: int, birth: SessionBirth, at: int
) -> None:
    c.run(
        "insert_session",
        {
            "id": session_id,
            "space": ref.space,
            "key_id": ref.key_id,
            "rotation": rotation,
            "source": birth.source,
            "project": birth.project,
            "parent": birth.parent,
            "ephemeral": birth.ephemeral,
            "mode": birth.mode.value,
            "remembered": may_be_remembered(ref.agent_id, birth.ephemeral, birth.mode),
            "now": at,
        },
    )


_END_OF_TIME = 2**62  # above every time a clock can show


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

"""Stable keys and the sessions they begin with, inside the transaction of whoever asks."""

from __future__ import annotations

from datetime import datetime

from recollect.clock import to_micros
from recollect.crashpoints import reach
from recollect.descriptors import from_cache_key, is_remembered
from recollect.errors import NotFound, StoreBusy
from recollect.store.protocol import NewId
from recollect.store.relational.database import Connection
from recollect.types.records import KeyRef, Mode, SessionBirth


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

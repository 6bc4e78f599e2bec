"""Stores for the measurements: made by Recollect, filled by raw SQL where there is much to fill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

import recollect
from bench.bare import NOW
from recollect.clock import SystemClock
from recollect.store.opening import open_store
from recollect.types.records import KeyRef

SETTINGS = recollect.Settings()  # the defaults, whatever the environment says
SPACE = "default"
KEY = "bench:main"


def open_memory(address: str) -> recollect.Memory:
    return recollect.open(address, settings=SETTINGS)


def sqlite_address(path: Path, *, synchronous: str = "full", vfs: str | None = None) -> str:
    return f"sqlite:///{path}?synchronous={synchronous}" + (f"&vfs={vfs}" if vfs else "")


def with_schema(url: str, schema: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}schema={schema}"


def make_key(address: str, key: str = KEY) -> KeyRef:
    """Create a store with one session of one record, close it, and return the key's reference."""
    with open_memory(address) as memory:
        session = memory.space(SPACE).session(key)
        session.append("user", "Good morning.")
        agent_id = session.state.agent_id
    store = open_store(address, SETTINGS, SystemClock())
    try:
        ref = store.sessions.find_key(SPACE, key, agent_id)
    finally:
        store.close()
    assert ref is not None
    return ref


def lengthen_session(path: Path, ref: KeyRef, records: int, text: str) -> None:
    """Give a key's current session as many records as asked for."""
    connection = apsw.Connection(str(path))
    with connection:
        connection.execute(
            """
            WITH RECURSIVE n (seq) AS (SELECT 2 UNION ALL SELECT seq + 1 FROM n WHERE seq < ?1)
            INSERT INTO session_history
                (space, session_id, seq, key_id, role, content, said_at, created_at)
            SELECT k.space, k.session_id, n.seq, k.id, 'user', ?2, ?3, ?3
            FROM session_keys k JOIN n WHERE k.id = ?4
            """,
            (records, text, NOW, ref.key_id),
        )
        connection.execute(
            "UPDATE sessions SET last_seq = ?1, unprocessed_turns = ?1, invalidated_at = ?1,"
            " marked_at = ?2, marked_by = 'threshold'"
            " WHERE id = (SELECT session_id FROM session_keys WHERE id = ?3)",
            (records, NOW, ref.key_id),
        )
    connection.close()


def add_clean_sessions(connection: Any, series: str, sessions: int) -> None:
    """Add keys with one session each that has nothing due: its only record is processed.

    `connection` runs SQL (apsw's or psycopg's) and `series` is a query for 1 … sessions as `i`.
    """
    no, yes = ("0", "1") if isinstance(connection, apsw.Connection) else ("FALSE", "TRUE")
    for statement in _CLEAN_SESSIONS:
        filled = statement.replace("{series}", series).replace("{no}", no).replace("{yes}", yes)
        connection.execute(filled.replace("{now}", str(NOW)).replace("{space}", SPACE))
    count = "SELECT count(*) FROM sessions WHERE id LIKE 'clean-%'"
    assert connection.execute(count).fetchall() == [(sessions,)]


_CLEAN_SESSIONS = (
    """
    INSERT INTO session_keys (space, agent_id, key, session_id)
    SELECT '{space}', (SELECT agent_id FROM session_keys LIMIT 1), 'clean:' || i, 'clean-' || i
    FROM {series}
    """,
    """
    INSERT INTO sessions (
        id, space, key_id, rotation, source, ephemeral, mode, remembered,
        last_seq, processed_until, created_at, last_activity_at)
    SELECT session_id, space, id, 1, 'api', {no}, 'enabled', {yes}, 1, 1, {now}, {now}
    FROM session_keys WHERE session_id LIKE 'clean-%'
    """,
    """
    INSERT INTO session_history (
        space, session_id, seq, key_id, role, content, said_at, created_at)
    SELECT space, session_id, 1, id, 'user', 'Good morning.', {now}, {now}
    FROM session_keys WHERE session_id LIKE 'clean-%'
    """,
    """
    INSERT INTO session_ranges (session_id, pass, first_seq, last_seq, space, outcome, created_at)
    SELECT id, pass, 1, 1, space, 'external', {now} FROM sessions WHERE id LIKE 'clean-%'
    """,
)

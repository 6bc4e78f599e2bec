"""The limit: the two statements of an append, run on the bare driver with nothing around them.

Same SQL, same schema, same settings of the connection, no checks and no values made from rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from recollect.stemming import indexed_record
from recollect.store.sql import queries
from recollect.types.records import KeyRef

NOW = 1_777_000_000_000_000
THRESHOLD = 5  # the default of mark_threshold

_SQLITE = queries("sqlite")
_POSTGRES = {name: text.encode() for name, text in queries("postgres").items()}


def numbers(ref: KeyRef, count: int) -> dict[str, Any]:
    """The parameters of `sequence_records`."""
    return {
        "space": ref.space,
        "key_id": ref.key_id,
        "count": count,
        "turns": count,
        "now": NOW,
        "by_turns": False,
        "threshold": THRESHOLD,
    }


def row(ref: KeyRef, session_id: str, seq: int, text: str) -> dict[str, Any]:
    """The parameters of `insert_record`."""
    return {
        "space": ref.space,
        "session_id": session_id,
        "seq": seq,
        "key_id": ref.key_id,
        "role": "user",
        "name": None,
        "content": text,
        "body": None,
        "append_key": None,
        "said_at": NOW,
        "now": NOW,
        "metadata": None,
        "words": indexed_record(text),
    }


class BareSqlite:
    """An apsw connection to a store that Recollect created and closed."""

    def __init__(self, path: Path, ref: KeyRef, *, synchronous: str) -> None:
        self._ref = ref
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(60_000)
        self._connection.pragma("synchronous", synchronous)
        self._connection.pragma("foreign_keys", "ON")

    def append(self, text: str) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        found: Any = execute(_SQLITE["sequence_records"], numbers(self._ref, 1)).fetchall()
        session_id, seq = found[0]
        execute(_SQLITE["insert_record"], row(self._ref, session_id, seq, text))
        execute("COMMIT")

    def append_many(self, texts: list[str]) -> None:
        execute, count = self._connection.execute, len(texts)
        execute("BEGIN IMMEDIATE")
        found: Any = execute(_SQLITE["sequence_records"], numbers(self._ref, count)).fetchall()
        session_id, last_seq = found[0]
        rows = [
            row(self._ref, session_id, seq, text)
            for seq, text in enumerate(texts, last_seq - count + 1)
        ]
        self._connection.executemany(_SQLITE["insert_record"], rows)
        execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class BarePostgres:
    """A psycopg connection to a store that Recollect created, outside its role and its pool."""

    def __init__(self, connection: Any, schema: str, ref: KeyRef) -> None:
        # Any: psycopg is an extra, and this module has to load without it.
        self._ref = ref
        self._connection = connection
        connection.execute("SELECT set_config('search_path', %s, false)", (schema,))
        connection.execute("SELECT set_config('recollect.space', %s, false)", (ref.space,))

    def append(self, text: str) -> None:
        execute = self._connection.execute
        execute(b"BEGIN")
        found = execute(_POSTGRES["sequence_records"], numbers(self._ref, 1)).fetchone()
        execute(_POSTGRES["insert_record"], row(self._ref, found[0], found[1], text))
        execute(b"COMMIT")

    def append_many(self, texts: list[str]) -> None:
        execute, count = self._connection.execute, len(texts)
        execute(b"BEGIN")
        found = execute(_POSTGRES["sequence_records"], numbers(self._ref, count)).fetchone()
        session_id, last_seq = found
        rows = [
            row(self._ref, session_id, seq, text)
            for seq, text in enumerate(texts, last_seq - count + 1)
        ]
        with self._connection.cursor() as cursor:
            cursor.executemany(_POSTGRES["insert_record"], rows)
        execute(b"COMMIT")

    def close(self) -> None:
        self._connection.close()

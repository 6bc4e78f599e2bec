"""P11 on PostgreSQL: no query sees what was forgotten, and which of the server's files keep it.

A deleted row stays in the heap until the table is vacuumed, and in unused parts of its pages until
the table is written anew: that is what docs/how-to/deletion.md says, and what is shown here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import recollect

pytestmark = pytest.mark.postgres

WORD = "zanzibarq"
SETTINGS = {"pipeline": "both", "consolidation_cooldown_seconds": 0.0}
TABLES = "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
FILES = """
SELECT pg_relation_filepath(c.oid) FROM pg_class c
WHERE pg_relation_filepath(c.oid) IS NOT NULL AND (
    c.relnamespace = %(schema)s::regnamespace OR c.oid IN (
        SELECT t.reltoastrelid FROM pg_class t WHERE t.relnamespace = %(schema)s::regnamespace))
"""


class Server:
    """The server as whoever runs it sees it: every row of a schema, and every file."""

    def __init__(self, connection: psycopg.Connection[tuple[str]], schema: str) -> None:
        self._connection = connection
        self._schema = schema
        row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        self._directory = Path(row[0])

    def tables_with(self, word: str) -> list[str]:
        return [name for name in self._tables() if self._count(name, word)]

    def files_with(self, word: str) -> list[str]:
        self._connection.execute("CHECKPOINT")
        found = self._connection.execute(FILES, {"schema": self._schema}).fetchall()
        paths = [self._directory / row[0] for row in found]
        return [path.name for path in paths if word.encode() in path.read_bytes().lower()]

    def write_anew(self) -> None:
        for name in self._tables():
            self._connection.execute(sql.SQL("VACUUM FULL {}").format(self._named(name)))

    def _count(self, table: str, word: str) -> int:
        query = sql.SQL("SELECT count(*) FROM {} t WHERE lower(CAST(t AS TEXT)) LIKE {}")
        asked = query.format(self._named(table), sql.Literal(f"%{word}%"))
        row = self._connection.execute(asked).fetchone()
        assert row is not None
        return int(row[0])

    def _tables(self) -> list[str]:
        return [row[0] for row in self._connection.execute(TABLES, (self._schema,))]

    def _named(self, table: str) -> sql.Identifier:
        return sql.Identifier(self._schema, table)


@pytest.fixture
def server(postgres_url: str, postgres_schema: str) -> Iterator[Server]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield Server(connection, postgres_schema)


def test_a_forgotten_space_is_in_no_row_and_in_no_file_that_was_written_anew(
    server: Server, postgres_store_url: str, tmp_path: Path
) -> None:
    settings = SETTINGS | {"memories_root": str(tmp_path / "memories")}
    with recollect.open(postgres_store_url, settings=settings) as memory:
        space = memory.space("a")
        for number in range(3):
            session = space.session(f"{WORD}:{number}", agent=WORD, source=WORD)
            session.append("user", f"I like {WORD}{number} tea.", name=f"Ana {WORD}")
            session.append("user", f"I live in {WORD}.", metadata={"at": WORD})
            session.end()
        space.documents.write(WORD, f"{WORD} first", title=WORD)
        space.documents.write(WORD, f"{WORD} second", title=WORD)
        memory.space("b").session("k").append("user", "something else")
        memory.work()
        assert {"facts", "session_history", "documents", "document_versions"} <= set(
            server.tables_with(WORD)
        )
        assert server.files_with(WORD)
        space.forget(everything=True)
        assert server.tables_with(WORD) == []
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
        server.write_anew()
        assert server.files_with(WORD) == []
        assert memory.spaces() == ["b"]

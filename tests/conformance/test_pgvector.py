"""Recall by meaning on PostgreSQL: by pgvector, and in memory where it cannot be had (N1, P11)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.embedding.protocol import Embedded, never
from recollect.store import pgvector
from recollect.store.postgres import PostgresDatabase
from recollect.store.relational import RelationalStore
from recollect.types.recall import EntryKind
from recollect_conformance.scripted_embedder import HashEmbedder
from tests.conformance.test_postgres_security import login_user, own_database, raw, url_as
from tests.postgres_server import url_with

WORDS = (
    *("car", "tram", "train", "ship", "boat", "plane", "road", "rail"),
    *("sea", "sky", "wheel", "sail", "wing", "engine", "ticket"),
)
QUESTIONS = ("automobile", "a ship on the sea", "wing of a plane", "the ticket for the tram")


class Synonyms(HashEmbedder):
    """Takes two words for one."""

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        return super().embed(
            [text.replace("automobile", "car") for text in texts], is_cancelled=is_cancelled
        )


def fill(memory: recollect.Memory) -> None:
    space, session = memory.space(), memory.space().session("k")
    for at, word in enumerate(WORDS):
        session.append("user", f"{word} {WORDS[at - 3]} {WORDS[at * 7 % len(WORDS)]}")
        space.facts.add(f"{word} and {WORDS[at - 5]}")
    space.documents.write("transport", "car and ship", title="Transport")
    memory.work()


def hits(memory: recollect.Memory) -> list[list[tuple[str, float]]]:
    """What is found, in its order; scores as far as both count alike."""
    return [
        [(hit.text, round(hit.score, 4)) for hit in memory.space().recall(query)]
        for query in QUESTIONS
    ]


def compares_itself(memory: recollect.Memory) -> bool:
    return memory.store.vectors.search() is not None


def test_the_same_is_found_by_pgvector_and_in_memory(
    postgres_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recollect.open(postgres_store_url, embedder=Synonyms()) as memory:
        fill(memory)
        assert compares_itself(memory)
        by_pgvector = hits(memory)
    with recollect.open(tmp_path / "m.db", embedder=Synonyms()) as memory:
        fill(memory)
        assert not compares_itself(memory)
        assert hits(memory) == by_pgvector
    monkeypatch.setattr(PostgresDatabase, "vector_index", lambda _: None)
    with recollect.open(postgres_store_url, embedder=Synonyms()) as memory:
        assert not compares_itself(memory)
        assert hits(memory) == by_pgvector
    assert all(found for found in by_pgvector)


def _indexes(url: str, schema: str) -> list[str]:
    """The models that have an index of the nearest."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT obj_description(i.indexrelid, 'pg_class') FROM pg_index i"
            " JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_am a ON a.oid = c.relam AND a.amname = 'hnsw'"
            " WHERE i.indisvalid AND c.relnamespace = to_regnamespace(%s)",
            (schema,),
        )
        return sorted(row[0] for row in rows.fetchall())


def test_a_large_space_gets_an_index_of_its_own_and_finds_the_same(
    postgres_store_url: str,
    postgres_url: str,
    postgres_schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with recollect.open(postgres_store_url, embedder=Synonyms()) as memory:
        fill(memory)
        assert _indexes(postgres_url, postgres_schema) == []
    monkeypatch.setattr(pgvector, "INDEXED_ROWS", 10)
    with recollect.open(postgres_store_url, embedder=Synonyms()) as memory:
        memory.space("small").facts.add("car")
        memory.space().session("other").append("tool", "")
        memory.work()
        assert _indexes(postgres_url, postgres_schema) == []
        memory.space().facts.add("an elephant")
        memory.work()
        assert _indexes(postgres_url, postgres_schema) == ["hash:32"]
        by_index = hits(memory)
        assert [hit.text for hit in memory.space("small").recall("automobile")] == ["car"]
    with monkeypatch.context() as without:
        without.setattr(PostgresDatabase, "vector_index", lambda _: None)
        with recollect.open(postgres_store_url, embedder=Synonyms()) as memory:
            assert hits(memory) == by_index
    with recollect.open(postgres_store_url, embedder=Synonyms(dimensions=16)) as memory:
        memory.work()  # the vectors of the other model go
        memory.work()
        assert _indexes(postgres_url, postgres_schema) == ["hash:16"]


def test_the_index_of_a_space_is_what_is_asked(
    postgres_store_url: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the role that recall has, under row-level security, and of enough rows to be worth it."""
    monkeypatch.setattr(pgvector, "INDEXED_ROWS", 10)
    # What a connection has scanned it tells others after a second: there is one.
    one = {"postgres_pool_max": 1}
    with recollect.open(postgres_store_url, embedder=HashEmbedder(), settings=one) as memory:
        session = memory.space().session("k")
        for first in (0, 1000):
            said = [f"word{number}" for number in range(first, first + 1000)]
            session.append_many([{"role": "user", "content": text} for text in said])
        memory.work()
        search = memory.store.vectors.search()
        assert search is not None
        [asked] = HashEmbedder().embed(["word77"]).vectors
        found = search.nearest("default", "hash:32", asked, [EntryKind.RECORD], 5)
        assert isinstance(memory.store, RelationalStore)
        scanned = memory.store._database.read(
            "default",
            raw(
                "SELECT pg_stat_get_xact_numscans(c.oid) + pg_stat_get_numscans(c.oid)"
                " FROM pg_class c JOIN pg_am a ON a.oid = c.relam AND a.amname = 'hnsw'"
                " WHERE c.relnamespace = to_regnamespace(%(schema)s)",
                schema=postgres_schema,
            ),
        )
        best = search.similarities("default", "hash:32", asked, found)
        assert max(best.values()) == pytest.approx(1.0)
        assert scanned == [(1,)]


def test_what_is_forgotten_leaves_no_vector_behind(
    postgres_store_url: str, postgres_url: str, postgres_schema: str
) -> None:
    with recollect.open(postgres_store_url, embedder=Synonyms()) as memory:
        space, session = memory.space(), memory.space().session("k")
        session.append("user", "car")
        memory.work()
        assert [hit.text for hit in space.recall("automobile")] == ["car"]
        space.forget(session=session)
        assert space.recall("automobile") == []
    with psycopg.connect(postgres_url) as connection:
        for table in ("vectors", "embeddings"):
            left = connection.execute(f'SELECT 1 FROM "{postgres_schema}".{table}'.encode())
            assert left.fetchall() == []


def test_another_model_embeds_everything_again(
    postgres_store_url: str, postgres_url: str, postgres_schema: str
) -> None:
    clock = ManualClock()
    with recollect.open(postgres_store_url, embedder=HashEmbedder(), clock=clock) as memory:
        memory.space().facts.add("car")
        memory.work()
    other = Synonyms(dimensions=16)
    with recollect.open(postgres_store_url, embedder=other, clock=clock) as memory:
        assert memory.space().recall("automobile") == []
        memory.work()
        assert [hit.text for hit in memory.space().recall("automobile")] == ["car"]
        clock.advance(86_400.0)  # nobody has used the other one
        memory.work()
        assert [hit.text for hit in memory.space().recall("automobile")] == ["car"]
    with psycopg.connect(postgres_url) as connection:
        query = f'SELECT DISTINCT model FROM "{postgres_schema}".embeddings'
        models = connection.execute(query.encode())
        assert models.fetchall() == [("hash:16",)]


def test_whoever_may_not_make_the_extension_compares_in_memory_and_is_told(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with login_user(postgres_url) as user, own_database(postgres_url, user) as name:
        url = url_as(postgres_url, user, name)
        with caplog.at_level(logging.INFO), recollect.open(url, embedder=Synonyms()) as memory:
            memory.space().facts.add("car")
            memory.work()
            assert not compares_itself(memory)
            assert [hit.text for hit in memory.space().recall("automobile")] == ["car"]
        assert "vectors are compared in memory" in caplog.text
        # Whoever looks after the server makes it; what was embedded before is taken up.
        with psycopg.connect(url_as(postgres_url, "postgres", name), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        with recollect.open(url, embedder=Synonyms()) as memory:
            assert compares_itself(memory)
            assert [hit.text for hit in memory.space().recall("automobile")] == ["car"]


def test_a_store_that_is_dropped_leaves_the_vectors_of_another(postgres_url: str) -> None:
    """A database has one extension for all of its stores."""
    with login_user(postgres_url) as user, own_database(postgres_url, user) as name:
        url = url_as(postgres_url, "postgres", name)
        with recollect.open(url_with(url, schema="first"), embedder=Synonyms()) as memory:
            fill(memory)
            assert compares_itself(memory)
        with recollect.open(url_with(url, schema="second"), embedder=Synonyms()) as memory:
            fill(memory)
            before = hits(memory)
            with psycopg.connect(url) as connection:
                connection.execute("DROP SCHEMA first CASCADE")
            assert compares_itself(memory)
            assert hits(memory) == before


def test_an_extension_that_is_made_again_is_used_by_who_had_the_one_before(
    postgres_url: str,
) -> None:
    """On the connections it has: nothing that was prepared may outlive the type."""
    with login_user(postgres_url) as user, own_database(postgres_url, user) as name:
        url = url_as(postgres_url, "postgres", name)
        one = {"postgres_pool_max": 1}
        with recollect.open(url, embedder=Synonyms(), settings=one) as memory:
            fill(memory)
            before = hits(memory)
            with psycopg.connect(url) as connection:
                connection.execute("DROP EXTENSION vector CASCADE")
            with recollect.open(url, embedder=Synonyms()) as other:
                assert compares_itself(other)
                assert hits(other) == before
            assert hits(memory) == before
            memory.space().facts.add("a new car")
            memory.work()
            assert "a new car" in [hit.text for hit in memory.space().recall("automobile")]


def test_a_store_without_an_embedder_needs_no_extension(postgres_url: str) -> None:
    with login_user(postgres_url) as user, own_database(postgres_url, user) as name:
        url = url_as(postgres_url, "postgres", name)  # who might make it
        with recollect.open(url) as memory:
            memory.space().facts.add("car")
            memory.work()
            assert len(memory.space().recall("car")) == 1
        with psycopg.connect(url) as connection:
            made = connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
            assert made.fetchall() == []

"""PostgreSQL's postings: what a question reads of them, and that they agree with the rows (N1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TypeVar

import psycopg
import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.ids import Randomness
from recollect.store import postgres
from recollect.store.opening import open_store
from recollect.store.postgres import PostgresDatabase
from recollect.store.postgres_statements import PostgresConnection
from recollect.store.postgres_statements import statement as sql_statement
from recollect.store.protocol import Store
from recollect.store.relational import Connection, RelationalStore
from recollect.types.facts import Source
from recollect.types.pages import Because
from recollect.types.recall import Filters, Reach
from recollect_conformance import Harness
from recollect_conformance.findings import (
    DOCUMENT,
    FACT,
    RECORD,
    entries,
    found,
    look,
    numbered,
    sum_up,
    tell,
    tell_in,
)
from recollect_conformance.harness import SPACE
from recollect_conformance.lessons import add, day, edit
from recollect_conformance.pages import apply, write, writing
from tests.conformance.broken_learning import MutedDatabase
from tests.conformance.catalogue import Catalogue
from tests.conformance.test_postgres_security import raw

T = TypeVar("T")
SEED = 20261115
LITTLE = Reach(
    postings=100, postings_of_one=100, loaded=dict.fromkeys(Filters().kinds, 20), beside=10
)
MANY = 6000
PLACES = {"r": ("session_history", "id"), "f": ("facts", "key")}
PLACES |= {"s": ("extractions", "key"), "d": ("documents", "key")}
READ_ROWS = "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables"


def open_at(url: str) -> Store:
    return open_store(url, Settings(), ManualClock())


@pytest.fixture
def store(postgres_store_url: str) -> Iterator[Harness]:
    with closing(Harness(lambda: open_at(postgres_store_url))) as opened:
        yield opened


# what a question reads


class CountingDatabase(MutedDatabase):
    """Counts the rows that a transaction has read. It mutes nothing."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database, "")
        self.rows_read = 0

    def read(self, space: str | None, job: Callable[[Connection], T]) -> T:
        def counted(c: Connection) -> T:
            before = _rows_read(c)
            assert isinstance(c, PostgresConnection)
            c._is_reading = False  # its last rows are not to end what is counted
            result = job(c)
            self.rows_read = _rows_read(c) - before
            return result

        return self._database.read(space, counted)


def counted_at(url: str) -> CountingDatabase:
    """With one connection: what it has planned it plans no more."""
    settings = Settings()
    return CountingDatabase(
        PostgresDatabase(
            url, ManualClock(), schema=settings.postgres_schema, pool_max=1, timeout_seconds=10
        )
    )


def _rows_read(c: Connection) -> int:
    """What the server has not yet passed on: of this transaction, and maybe of the one before."""
    assert isinstance(c, PostgresConnection)
    [(count,)] = c.fetch(sql_statement(READ_ROWS), {})
    return int(count or 0)


@pytest.mark.parametrize(
    "filters",
    [Filters(), Filters(since=day(0)), Filters(agent="/user/somebody-else")],
    ids=["plain", "a time", "an agent"],
)
def test_a_question_reads_as_much_of_a_large_space_as_of_a_small_one(
    postgres_store_url: str, filters: Filters
) -> None:
    """Planned while there was nearly nothing, and anew without statistics of what there is now."""
    counting = counted_at(postgres_store_url)
    with closing(Harness(lambda: RelationalStore(counting))) as store:

        def rows_read() -> int:
            look(store, "saffron other", filters=filters, reach=LITTLE)
            return counting.rows_read

        tell(store, *numbered("saffron", range(20)))
        add(store, "likes saffron")
        for _ in range(12):
            rows_read()
        for part in range(0, MANY, 1000):
            tell(store, *numbered("said", range(part, part + 1000)), key=f"key {part}")
        tell(store, *numbered("saffron", range(20, 300)))
        read = rows_read()
        # The extent of a kind is told from the newest thousand.
        assert read < 1000 + MANY / 2, read
        tell(store, *numbered("said", range(MANY, 2 * MANY)), key="more")
        assert rows_read() < read + 500
        # As any change of a table does, and too many changes of others.
        counting.read(SPACE, raw("DISCARD PLANS"))
        assert rows_read() < read + 500


def test_what_a_document_names_is_followed_without_reading_the_other_facts(
    postgres_store_url: str,
) -> None:
    counting = counted_at(postgres_store_url)
    with closing(Harness(lambda: RelationalStore(counting))) as store:
        [said] = tell(store, "where it comes from")
        source = Source(session_id=said.session_id, seq=said.seq, seq_to=said.seq)
        for number in range(300):
            add(store, f"fact {number}", named=f"fact {number}", sources=[source])
        apply(store, writing("page", "saffron"), because=Because(facts=("fact 7", "fact 250")))
        [page] = entries(store, "saffron", DOCUMENT)
        now = store.now()
        [loaded] = store.handle.search.load(SPACE, {DOCUMENT: [page.key]}, Filters(), now)
        assert [each.session_id for each in loaded.sources] == [source.session_id]
        assert counting.rows_read < 50


def test_every_word_of_a_question_is_looked_for_in_its_own_space(store: Harness) -> None:
    for space in (SPACE, "theirs"):
        tell(store, f"saffron of {space}", space=space)
        add(store, f"likes saffron of {space}", space=space)
    assert found(store, "saffron", RECORD, FACT) == [
        f"likes saffron of {SPACE}",
        f"saffron of {SPACE}",
    ]


def test_a_word_of_any_length_is_found(store: Harness) -> None:
    """An index takes no more than some thousand bytes of one."""
    long = "x" * 20_000
    tell(store, f"said {long}", f"wrote {long}y", "wrote nothing")
    found_first = [entry.text[:5] for entry in entries(store, f"wrote {long}y", RECORD)]
    assert sorted(found_first) == ["said ", "wrote", "wrote"]


# the postings and the rows


def _assert_posted(catalogue: Catalogue) -> dict[str, int]:
    """Every word of every row is there, and nothing else; how many of each kind."""
    counts = {}
    for kind, (table, key) in PLACES.items():
        rows = catalogue.run(f"SELECT space, {key}, words FROM {table}")
        wanted = {
            (space, word[:128], entry_key)
            for space, entry_key, words in rows
            for word in str(words or "").split()
        }
        posted = catalogue.run(f"SELECT space, word, key FROM postings WHERE kind = '{kind}'")
        assert set(posted) == wanted
        counts[kind] = len(posted)
    return counts


@pytest.fixture
def catalogue(postgres_url: str, postgres_schema: str) -> Iterator[Catalogue]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'SET search_path TO "{postgres_schema}"'.encode())

        def run(statement: str) -> list[tuple[object, ...]]:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

        yield Catalogue(run, postgres)


def _change_at_random(store: Harness) -> None:
    choice = Randomness(SEED)
    for step in range(60):
        key, space = f"key {choice.choice(range(6))}", choice.choice((SPACE, "theirs"))
        ref = store.key(key, space=space)
        said = [f"w{choice.choice(range(40))} n{step}" for _ in range(choice.choice((1, 5)))]
        match choice.choice(("tell", "tell", "sum up", "fact", "page", "purge", "forget", "trim")):
            case "tell":
                tell_in(store, ref, *said)
            case "sum up":
                sum_up(store, said[0], key=key, space=space)
            case "page":
                write(store, f"page {step % 4}", said[0], space=space)
            case "fact":
                fact = add(store, said[0], named=f"fact {step % 9}", space=space)
                if step % 2:
                    edit(store, fact.id, space=space, content=f"{said[0]} edited")
                if step % 5 == 0:
                    store.handle.facts.delete(space, fact.id, store.now())
            case "purge":
                store.records.purge(ref, store.now())
            case "trim":
                store.records.trim(ref, 3)
            case _:
                session = store.current(ref).id
                store.handle.erasure.forget_session(space, session, store.now())


def test_postings_and_rows_agree_after_random_changes(store: Harness, catalogue: Catalogue) -> None:
    _change_at_random(store)
    counts = _assert_posted(catalogue)
    assert min(counts.values()) > 0, counts


@pytest.mark.parametrize("query", ["post", "unpost"])
def test_a_store_that_leaves_out_postings_would_be_noticed(
    postgres_store_url: str, catalogue: Catalogue, query: str
) -> None:
    muted = MutedDatabase(counted_at(postgres_store_url), query)
    with closing(Harness(lambda: RelationalStore(muted))) as store:
        _change_at_random(store)
    with pytest.raises(AssertionError):
        _assert_posted(catalogue)


@pytest.mark.parametrize(
    "damage",
    [
        "INSERT INTO postings VALUES ('space-a', 'r', 'ghost', 1)",
        "DELETE FROM postings WHERE kind = 'f'",
        "DELETE FROM extractions",
        "UPDATE facts SET words = 'ginger'",
    ],
)
def test_damaged_postings_would_be_noticed(
    store: Harness, catalogue: Catalogue, damage: str
) -> None:
    tell(store, "likes saffron", "likes ginger")
    add(store, "likes saffron")
    sum_up(store, "about saffron")
    _assert_posted(catalogue)
    catalogue.run(damage)
    with pytest.raises(AssertionError):
        _assert_posted(catalogue)

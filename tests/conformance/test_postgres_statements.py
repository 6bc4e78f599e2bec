"""Statements that nobody waits for: done in their order, and never committed past an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from recollect.clock import ManualClock
from recollect.errors import StoreError
from recollect.store import postgres_statements
from recollect.store.postgres import PostgresDatabase
from recollect.store.postgres_statements import PostgresConnection, statement
from recollect.store.relational import Connection

pytestmark = pytest.mark.postgres

NOTE = statement("INSERT INTO properties (name, value) VALUES (%(name)s, %(value)s)")
NOTED = statement("SELECT value FROM properties WHERE name LIKE 'note%%' ORDER BY value")
PUT = "put_property"  # keeps what is there already


@pytest.fixture
def database(postgres_store_url: str) -> Iterator[PostgresDatabase]:
    """A store with one connection, so that every transaction meets what the one before left."""
    database = PostgresDatabase(
        postgres_store_url, ManualClock(), schema="unused", pool_max=1, timeout_seconds=10
    )
    with closing(database):
        yield database


def in_one(database: PostgresDatabase, job: Callable[[PostgresConnection], list[str]]) -> list[str]:
    def checked(connection: Connection) -> list[str]:
        assert isinstance(connection, PostgresConnection)
        return job(connection)

    return database.write(None, checked)


def note(c: PostgresConnection, number: int) -> None:
    c.put(NOTE, {"name": f"note {number:04}", "value": f"{number:04}"})


def noted(c: PostgresConnection) -> list[str]:
    return [row[0] for row in c.fetch(NOTED, {})]


def test_what_is_run_is_done_before_what_is_asked_next(database: PostgresDatabase) -> None:
    def job(c: PostgresConnection) -> list[str]:
        note(c, 1)
        seen = noted(c)
        note(c, 2)
        return seen

    assert in_one(database, job) == ["0001"]
    assert in_one(database, noted) == ["0001", "0002"]


def test_an_error_of_what_nobody_waited_for_is_raised_and_nothing_is_committed(
    database: PostgresDatabase,
) -> None:
    def job(c: PostgresConnection) -> list[str]:
        note(c, 1)
        note(c, 1)
        note(c, 2)
        return []

    with pytest.raises(StoreError, match="duplicate key"):
        in_one(database, job)
    assert in_one(database, noted) == []


def test_what_is_only_asked_is_over_when_it_is_answered(database: PostgresDatabase) -> None:
    database.write(None, lambda c: c.run(PUT, {"name": "note", "value": "0001"}))
    key = {"space": "nobody", "key_id": 1}
    asked = [("current_session", key), ("next_signal", {}), ("current_session", key)]
    assert database.ask(None, asked) == [[], [(None,)], []]
    with pytest.raises(StoreError, match="invalid input"):
        database.ask(None, [("current_session", {**key, "key_id": "none"}), *asked])
    assert database.ask("nobody", asked[:1]) == [[]], "its one connection is as good as before"
    assert in_one(database, noted) == ["0001"]


def test_a_job_that_fails_sends_nothing_more(database: PostgresDatabase) -> None:
    def job(c: PostgresConnection) -> list[str]:
        note(c, 1)
        noted(c)
        note(c, 2)
        raise LookupError("of its own")

    with pytest.raises(LookupError, match="of its own"):
        in_one(database, job)
    assert in_one(database, noted) == []


def test_a_statement_that_an_error_kept_from_being_prepared_can_be_used_afterwards(
    database: PostgresDatabase,
) -> None:
    def failing(c: PostgresConnection) -> list[str]:
        c.put(statement("SELECT 1 / %(zero)s::int"), {"zero": 0})
        note(c, 1)
        return noted(c)

    for _ in range(2):
        with pytest.raises(StoreError, match="division by zero"):
            in_one(database, failing)

    def job(c: PostgresConnection) -> list[str]:
        note(c, 1)
        return noted(c)

    assert in_one(database, job) == ["0001"]


def test_more_can_be_run_and_asked_than_is_sent_at_once(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_statements, "TOGETHER_MAX", 3)

    def job(c: PostgresConnection) -> list[str]:
        c.run_many(PUT, [{"name": f"note {number}", "value": f"{number}"} for number in range(8)])
        asked = [("get_property", {"name": f"note {number}"}) for number in range(8)]
        return [row[0] for [row] in c.rows_each(asked)]

    assert in_one(database, job) == [str(number) for number in range(8)]


def test_statements_beyond_those_that_are_kept_prepared_work_as_well(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_statements, "PREPARED_MAX", 1)

    def job(c: PostgresConnection) -> list[str]:
        note(c, 1)
        c.run(PUT, {"name": "note 2", "value": "0002"})
        note(c, 3)
        return noted(c)

    assert in_one(database, job) == ["0001", "0002", "0003"]
    assert in_one(database, noted) == ["0001", "0002", "0003"]


def test_a_value_that_cannot_be_sent_fails_without_harm(database: PostgresDatabase) -> None:
    def job(c: PostgresConnection) -> list[str]:
        note(c, 1)
        c.run(PUT, {"name": "note 2", "value": "no\x00text"})
        return []

    with pytest.raises(StoreError):
        in_one(database, job)
    assert in_one(database, noted) == []

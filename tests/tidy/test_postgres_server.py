"""The PostgreSQL that tests run against keeps its own promises."""

from __future__ import annotations

import psycopg
import pytest

import recollect
from tests.postgres_schemas import Schemas
from tests.postgres_server import PostgresServer, url_with


def is_up(server: PostgresServer) -> bool:
    try:
        psycopg.connect(server.url).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_killed_server_comes_back_with_every_acknowledged_commit(
    own_postgres: PostgresServer,
) -> None:
    with psycopg.connect(own_postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        for n in range(50):
            connection.execute("INSERT INTO kept VALUES (%s)", [n])
        own_postgres.kill()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert not is_up(own_postgres)
    own_postgres.start()
    with psycopg.connect(own_postgres.url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (50,)


def test_a_server_can_be_stopped_and_started(own_postgres: PostgresServer) -> None:
    own_postgres.stop()
    own_postgres.stop()
    assert not is_up(own_postgres)
    own_postgres.start()
    assert is_up(own_postgres)


@pytest.mark.postgres
def test_a_closed_server_leaves_nothing_behind(postgres_url: str) -> None:
    server = PostgresServer()
    assert server.url != postgres_url
    assert is_up(server)
    server.close()
    assert not is_up(server)
    assert not server.directory.exists()


def test_a_store_url_is_the_server_url_and_a_schema(
    postgres_url: str, postgres_schema: str, postgres_store_url: str
) -> None:
    assert postgres_store_url == f"{postgres_url}&schema={postgres_schema}"
    assert url_with("postgresql://host/db", schema="a&b") == "postgresql://host/db?schema=a%26b"


def test_a_schema_given_back_is_lent_again_and_holds_nothing(
    postgres_url: str, postgres_schemas: Schemas
) -> None:
    name = postgres_schemas.lend()
    url = url_with(postgres_url, schema=name)
    with recollect.open(url) as memory:
        first = memory.space("home").session("s").append("user", "I moved to Oslo.")
    postgres_schemas.take_back(name)
    assert postgres_schemas.lend() == name
    with recollect.open(url) as memory:
        assert list(memory.spaces()) == []
        assert memory.space("home").recall("Oslo") == []
        again = memory.space("home").session("s").append("user", "I moved to Oslo.")
    assert again.seq == first.seq
    postgres_schemas.take_back(name)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE {}.jobs ADD COLUMN extra int",
        "ALTER TABLE {}.jobs DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE {}.retained_records DISABLE TRIGGER ALL",
        "CREATE INDEX extra ON {}.jobs (kind)",
        "GRANT SELECT ON {}.jobs TO pg_monitor",
        "DELETE FROM {}.schema_version",
        "CREATE TABLE {}.extra (n int)",
        "DROP SCHEMA {} CASCADE",
    ],
)
def test_a_schema_that_a_test_changed_is_not_lent_again(
    postgres_url: str, postgres_schemas: Schemas, change: str
) -> None:
    name = postgres_schemas.lend()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(change.format(name).encode())
    postgres_schemas.take_back(name)
    with psycopg.connect(postgres_url) as connection:
        left = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [name])
        assert left.fetchone() is None


def test_a_schema_that_is_still_in_use_is_not_lent_again(
    postgres_url: str, postgres_schemas: Schemas
) -> None:
    name = postgres_schemas.lend()
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"SELECT 1 FROM {name}.jobs".encode())
        with pytest.raises(psycopg.errors.LockNotAvailable):
            postgres_schemas.take_back(name, wait="50ms")
    other = postgres_schemas.lend()
    assert other != name
    postgres_schemas.take_back(other)

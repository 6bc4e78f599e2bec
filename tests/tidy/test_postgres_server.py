"""The PostgreSQL that tests run against keeps its own promises."""

from __future__ import annotations

import psycopg
import pytest

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

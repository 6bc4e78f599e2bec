"""What the tests of stores share: cases that explain themselves, and a look behind the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import psycopg
import pytest

from recollect.store import postgres
from recollect.store.sqlite import files
from tests.conformance.catalogue import Catalogue


@pytest.fixture
def catalogue(durable_store_url: str, tmp_path: Path) -> Iterator[Catalogue]:
    """The catalogue behind `durable_store_url`, without opening the store."""
    if durable_store_url.startswith("sqlite"):
        path = tmp_path / "memory.db"

        def run(statement: str) -> list[tuple[object, ...]]:
            with closing(apsw.Connection(str(path))) as connection:
                return connection.execute(statement).fetchall()

        yield Catalogue(run, files)
        return
    conninfo, schema, _ = postgres.split_options(durable_store_url, "")
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f'SET search_path TO "{schema}"'.encode())

        def run_there(statement: str) -> list[tuple[object, ...]]:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

        yield Catalogue(run_there, postgres)

"""PostgreSQL with every tenant table in hash partitions by space: `?partitions=N`.

Its promises are kept in `test_conformance`; here is how such a store is made, opened and moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors as pg

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import InvalidUrl
from recollect.operations.checks import examine
from recollect.store.opening import open_store
from recollect.store.postgres import PARTITIONS_MAX, ROLE
from recollect.store.schema import migrations
from tests.postgres_server import url_with
from tests.unit.operations.material import SETTINGS, fill

TENANT_TABLES = {table for each in migrations("postgres") for table in each.tenant_tables}


def opened(url: str) -> recollect.Memory:
    return recollect.open(url, settings=SETTINGS, clock=ManualClock())


@pytest.fixture
def connection(
    postgres_url: str, partitioned_store_url: str
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    schema = partitioned_store_url.partition("schema=")[2].partition("&")[0]
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT set_config('search_path', %s, false)", (schema,))
        yield connection


def test_every_table_of_a_space_is_partitioned_by_it_and_no_other(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    found = connection.execute(
        "SELECT p.partrelid::regclass::text, pg_get_partkeydef(p.partrelid), count(i.inhrelid)"
        " FROM pg_partitioned_table p JOIN pg_inherits i ON i.inhparent = p.partrelid"
        " JOIN pg_class c ON c.oid = p.partrelid AND c.relnamespace = current_schema::regnamespace"
        " GROUP BY p.partrelid"
    ).fetchall()
    assert {row[0] for row in found} == TENANT_TABLES
    assert {row[1:] for row in found} == {("HASH (space)", 2)}


def test_a_partition_shows_nothing_by_itself(
    partitioned_store_url: str, connection: psycopg.Connection[tuple[object, ...]]
) -> None:
    """The policies are its table's: whoever names the partition goes round them."""
    with opened(partitioned_store_url) as memory:
        memory.space("ours").session("k", agent="assistant").append("user", "Hello.")
    connection.execute(f"SET ROLE {ROLE}".encode())
    connection.execute("SET recollect.space = 'ours'")
    shown = "SELECT count(*) FROM {}"
    assert connection.execute(shown.format("session_history").encode()).fetchone() == (1,)
    for part in range(2):
        table = f"session_history_p{part}"
        assert connection.execute(shown.format(table).encode()).fetchone() == (0,)
    with pytest.raises(pg.InsufficientPrivilege):
        connection.execute("INSERT INTO spending_p0 VALUES ('ours', 1, 1, 1, 1)")


def test_a_store_goes_into_partitions_and_out_of_them_as_it_is(
    partitioned_store_url: str, tmp_path: Path
) -> None:
    with opened(":memory:") as memory:
        fill(memory)
        memory.export(tmp_path / "before.zip")
    with opened(partitioned_store_url) as memory:
        memory.load(tmp_path / "before.zip")
        memory.export(tmp_path / "after.zip")
        assert examine(memory.store, memory.clock.now()).is_sound
    assert (tmp_path / "after.zip").read_bytes() == (tmp_path / "before.zip").read_bytes()


def test_how_many_there_are_is_decided_when_a_store_is_made(
    partitioned_store_url: str, lent_store_url: str
) -> None:
    opened(partitioned_store_url.replace("&partitions=2", "")).close()
    with pytest.raises(InvalidUrl, match="has 2 partitions, not 3; recollect migrate"):
        opened(partitioned_store_url.replace("partitions=2", "partitions=3"))
    with pytest.raises(InvalidUrl, match="has no partitions, not 2; recollect migrate"):
        opened(url_with(lent_store_url, partitions="2"))


@pytest.mark.parametrize("number", ["", "-1", "2.5", "x", str(PARTITIONS_MAX + 1), "9" * 5000])
def test_a_number_that_makes_no_sense_is_refused(number: str) -> None:
    with pytest.raises(InvalidUrl, match=f"from 1 to {PARTITIONS_MAX}"):
        open_store(f"postgresql://nowhere/x?partitions={number}", Settings(), ManualClock())

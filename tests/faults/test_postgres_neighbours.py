"""What stands beside a store on PostgreSQL: replicas, poolers, and a newer Recollect.

A replica is a server on which every transaction is read only, a pooler one whose connections have
been somebody else's; both are had here without a second server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.errors import SchemaTooNew, StoreDenied
from recollect.interfaces.http.bearer import Authenticator, make_key
from recollect.store.opening import open_store
from recollect.store.postgres import PostgresDatabase, split_options
from recollect.types.access import Scope
from recollect.types.records import Claim, JobKind, LeasePolicy, NothingDue
from recollect.worker import Worker
from tests.e2e.command_line import fill
from tests.postgres_server import url_with

SPACE = "s"


@pytest.fixture
def filled(lent_store_url: str) -> str:
    """A store in which something was learned, and something else is still to be."""
    with recollect.open(lent_store_url) as memory:
        session = memory.space(SPACE).session("k")
        session.append("user", "I moved to Lisbon in May.")
        memory.work(all=True)
        session.append("user", "It is sunny there.")
    return lent_store_url


@pytest.fixture
def replica(filled: str) -> str:
    return url_with(filled, options="-c default_transaction_read_only=on")


def test_a_replica_answers_everything_that_only_reads(replica: str) -> None:
    with recollect.open(replica) as memory:
        space = memory.space(SPACE)
        assert "Lisbon" in space.recall("where did I move?")[0].text
        assert "Lisbon" in space.context("where did I move?").text
        assert space.facts.list()
        assert space.sessions.list()
        assert space.documents.tree()
        assert memory.status().marked_count == 0


def test_a_replica_that_has_no_table_of_vectors_yet_compares_them_in_memory(replica: str) -> None:
    with closing(open_store(replica, Settings(), ManualClock())) as store:
        database = store._database  # type: ignore[attr-defined]
        assert isinstance(database, PostgresDatabase)
        assert database.vector_index() is None


def test_a_replica_lets_holders_of_keys_in(filled: str, replica: str) -> None:
    with recollect.open(filled) as memory:
        key, secret = make_key(memory, "reader", space=SPACE, scope=Scope.READ)
    with recollect.open(replica) as memory:
        found = Authenticator(memory).authenticate(f"Bearer {secret}")
    assert found is not None
    assert found.id == key.id


@pytest.mark.parametrize(
    "write",
    [
        lambda memory: memory.space(SPACE).session("k").append("user", "more"),
        lambda memory: memory.space(SPACE).forget(everything=True),
        lambda memory: memory.worker().start(),
        lambda memory: memory.work(all=True),
    ],
    ids=["append", "forget", "worker", "work"],
)
def test_a_replica_says_that_it_takes_no_writes(
    replica: str, write: Callable[[recollect.Memory], object]
) -> None:
    with (
        recollect.open(replica) as memory,
        pytest.raises(StoreDenied, match="read only; use the primary") as caught,
    ):
        write(memory)
    assert not caught.value.retry_helps


@pytest.mark.parametrize("before", [b"PREPARE recollect_1 AS SELECT 1", b"DEALLOCATE ALL"])
def test_a_pooler_that_shares_connections_within_a_session_is_named(
    postgres_store_url: str, before: bytes
) -> None:
    """The one has a name of ours already, the other has lost those that were prepared."""
    settings = Settings(postgres_pool_max=1)
    with closing(open_store(postgres_store_url, settings, ManualClock())) as store:
        if before.startswith(b"DEALLOCATE"):
            store.leases.counts(SPACE)
        database = store._database  # type: ignore[attr-defined]
        assert isinstance(database, PostgresDatabase)
        with database._pool.connection() as connection:
            connection.execute(before)
        with pytest.raises(StoreDenied, match="max_prepared_statements"):
            store.leases.counts(SPACE)


def _of_the_future(url: str) -> None:
    """Its first job is one that only a newer version knows."""
    conninfo, schema, _ = split_options(url, "")
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {schema}".encode())
        connection.execute("SET recollect.operator = 'on'")
        connection.execute(
            "INSERT INTO jobs (space, kind, key, state, first_due_at)"
            " VALUES ('s', 'dream', 'd', 'due', 0)"
        )


def test_a_job_that_only_a_newer_version_knows_is_left_to_it(lent_store_url: str) -> None:
    [session] = fill(lent_store_url, "k", space=SPACE).values()
    _of_the_future(lent_store_url)
    with closing(open_store(lent_store_url, Settings(), ManualClock())) as store:
        with pytest.raises(SchemaTooNew, match=r"'dream'.*newer Recollect"):
            store.leases.claim("old", LeasePolicy(), None)
        job = store.leases.get(SPACE, JobKind.EXTRACT, session)
        assert job is not None
        assert job.owner is None


def test_an_old_worker_says_so_in_one_line_and_goes_on_afterwards(
    lent_store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(lent_store_url, "k", space=SPACE)
    _of_the_future(lent_store_url)
    with closing(open_store(lent_store_url, Settings(), ManualClock())) as store:
        worker = Worker(store, Settings(worker_tick_seconds=0.01), ManualClock())
        with caplog.at_level(logging.ERROR, logger="recollect.worker"):
            worker.start()
            while not caplog.records:
                worker.wake()
            worker.stop()
        assert {record.exc_info for record in caplog.records} == {None}
        assert "newer Recollect" in caplog.records[0].getMessage()
        conninfo, schema, _ = split_options(lent_store_url, "")
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("SET recollect.operator = 'on'")
            connection.execute(f"DELETE FROM {schema}.jobs WHERE kind = 'dream'".encode())
        claims = [store.leases.claim("old", LeasePolicy(), None) for _ in range(9)]
    kinds = {claim.kind for claim in claims if isinstance(claim, Claim)}
    assert JobKind.EXTRACT in kinds
    assert isinstance(claims[-1], NothingDue)

"""PostgreSQL goes away and comes back: typed errors meanwhile, nothing acknowledged is lost."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Self

import psycopg
import pytest

import recollect
from recollect.errors import OutcomeUnknown, StoreUnavailable
from recollect.store.postgres_statements import PostgresConnection, statement
from tests.crash.soundness import assert_store_is_sound
from tests.postgres_server import PostgresServer, url_with

IMPATIENT = {"postgres_timeout_seconds": 0.3}
RECOVERY_SECONDS_MAX = 30
SPACE = "s"


@pytest.fixture
def server(own_postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A server that runs; whatever a test does to it, the next one finds it running."""
    yield own_postgres
    own_postgres.stop()
    own_postgres.start()


@pytest.fixture
def url(server: PostgresServer) -> str:
    return url_with(server.url, schema=f"t_{secrets.token_hex(8)}")


def until_it_works(call: Callable[[], object]) -> float:
    """Try as a caller would; returns how many seconds it took."""
    started = time.monotonic()
    while True:
        try:
            call()
            return time.monotonic() - started
        except recollect.RecollectError as error:
            if not error.retry_helps or time.monotonic() - started > RECOVERY_SECONDS_MAX:
                raise


def test_a_server_that_is_down_at_the_start_can_be_opened_when_it_is_up(
    server: PostgresServer, url: str
) -> None:
    server.stop()
    with pytest.raises(StoreUnavailable, match="check that the server runs") as caught:
        recollect.open(url, settings=IMPATIENT)
    assert caught.value.retry_helps
    server.start()
    with recollect.open(url, settings=IMPATIENT) as memory:
        memory.space(SPACE).session("k", agent="a").append("user", "one")


def test_the_same_memory_goes_on_when_the_server_is_back(server: PostgresServer, url: str) -> None:
    with recollect.open(url, settings=IMPATIENT) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        stored = [session.append("user", f"before {n}").content for n in range(7)]
        server.stop()
        calls: list[Callable[[], object]] = [
            lambda: session.append("user", "while it is down"),
            session.all,
            session.reset,
            memory.status,
            lambda: memory.space(SPACE).session("new", agent="a"),
            *[session.count] * 5,
        ]
        for call in calls:
            with pytest.raises((StoreUnavailable, OutcomeUnknown)) as caught:
                call()
            assert caught.value.retry_helps
            assert "retry" in str(caught.value)
        server.start()
        seconds = until_it_works(lambda: session.append("user", "after"))
        print(f"worked again after {seconds:.1f} s")
        assert seconds < 5, "it waits longer the longer the server was away"
        absent = ["while it is down"]
        assert assert_store_is_sound(memory, SPACE, stored=[*stored, "after"], absent=absent) == 8


def test_a_restart_between_two_appends_costs_nobody_an_error(
    server: PostgresServer, url: str
) -> None:
    with recollect.open(url, settings=IMPATIENT) as memory:
        session = memory.space(SPACE).session("k", agent="a")
        session.append("user", "before")
        server.stop()
        server.start()
        session.append("user", "after")
        assert [record.content for record in session.all()] == ["before", "after"]


def test_appends_with_a_key_are_stored_once_while_the_server_is_killed_again_and_again(
    server: PostgresServer, url: str
) -> None:
    stop = threading.Event()
    with recollect.open(url, settings=IMPATIENT) as memory:
        session = memory.space(SPACE).session("k", agent="a")

        def append_and_retry(thread: int) -> list[str]:
            stored: list[str] = []
            while not stop.is_set():
                text = f"{thread}-{len(stored)}"
                until_it_works(partial(session.append, "user", text, key=text))
                stored.append(text)
            return stored

        with ThreadPoolExecutor(4) as threads:
            futures = [threads.submit(append_and_retry, number) for number in range(4)]
            try:
                for kills in range(3):
                    grow(session, more=20, futures=futures)
                    server.kill()
                    server.start()
                    print(f"kill {kills + 1}")
                grow(session, more=20, futures=futures)
            finally:
                stop.set()
            stored = [text for future in futures for text in future.result()]
        assert assert_store_is_sound(memory, SPACE, stored=stored) == len(stored)
    assert len(stored) >= 80


def grow(session: recollect.Session, more: int, futures: list[Future[list[str]]]) -> None:
    """Wait until the session has some more records than now."""
    sizes: list[int] = []

    def look() -> None:
        sizes.append(session.count())

    until_it_works(look)
    goal = sizes[-1] + more
    deadline = time.monotonic() + RECOVERY_SECONDS_MAX
    while sizes[-1] < goal:
        assert time.monotonic() < deadline
        assert not any(future.done() for future in futures), [f.exception() for f in futures]
        until_it_works(look)


WAITING = """
SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%sessions SET%'
"""


HURRY = statement(
    "SELECT pg_backend_pid() FROM set_config('idle_in_transaction_session_timeout', '1ms', true)"
)
RUNNING = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"


class Holder:
    """Somebody else's transaction, which holds every session of a store."""

    def __init__(self, server: PostgresServer, url: str) -> None:
        self._watcher = psycopg.connect(server.url, autocommit=True)
        self._holder = psycopg.connect(server.url)
        schema = url.rpartition("=")[2]
        self._holder.execute(f"SELECT id FROM {schema}.sessions FOR UPDATE".encode())

    def waiting(self) -> int:
        """The server's process of an append that waits for this transaction."""
        deadline = time.monotonic() + RECOVERY_SECONDS_MAX
        while True:
            row = self._watcher.execute(WAITING).fetchone()
            if row is not None:
                return int(row[0])
            assert time.monotonic() < deadline

    def terminate(self, process: int) -> None:
        self._watcher.execute("SELECT pg_terminate_backend(%s)", (process,))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.close()
        self._watcher.close()


def test_an_append_whose_connection_is_cut_is_not_stored_and_the_next_one_is(
    server: PostgresServer, url: str
) -> None:
    with recollect.open(url, settings=IMPATIENT) as memory, ThreadPoolExecutor(1) as thread:
        session = memory.space(SPACE).session("k", agent="a")
        with Holder(server, url) as holder:
            append = thread.submit(session.append, "user", "cut off")
            holder.terminate(holder.waiting())
            with pytest.raises(StoreUnavailable) as caught:
                append.result()
        assert caught.value.retry_helps
        session.append("user", "whole")
        assert [record.content for record in session.all()] == ["whole"]


def test_a_transaction_that_stood_still_for_too_long_is_not_stored_and_can_be_retried(
    server: PostgresServer, url: str
) -> None:
    """The server ends it, so that nobody waits for one who froze: it says so, and what to do."""
    with recollect.open(url) as memory, psycopg.connect(server.url, autocommit=True) as watcher:
        session = memory.space(SPACE).session("k", agent="a")

        def stand_still(c: PostgresConnection) -> None:
            c.run("put_property", {"name": "frozen", "value": "yes"})
            [(process,)] = c.fetch(HURRY, {})
            while watcher.execute(RUNNING, (process,)).fetchone() is not None:
                pass

        with pytest.raises(StoreUnavailable, match="nothing was stored, retry") as caught:
            memory.store._database.write(SPACE, stand_still)  # type: ignore[attr-defined]
        assert caught.value.retry_helps
        assert memory.store.keep("frozen", "no") == "no"
        session.append("user", "whole")


def test_a_pool_that_is_used_up_is_unavailable_until_somebody_is_done(
    server: PostgresServer, url: str
) -> None:
    narrow = {"postgres_pool_max": 1, "postgres_timeout_seconds": 0.2}
    with recollect.open(url, settings=narrow) as memory, ThreadPoolExecutor(1) as thread:
        session = memory.space(SPACE).session("k", agent="a")
        with Holder(server, url) as holder:
            append = thread.submit(session.append, "user", "first")
            holder.waiting()
            with pytest.raises(StoreUnavailable, match="connections to spare"):
                session.append("user", "no room")
        append.result()
        session.append("user", "second")
        assert [record.content for record in session.all()] == ["first", "second"]

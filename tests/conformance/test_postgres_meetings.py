"""PostgreSQL: whoever waits for a row holds none that those with the row may want next.

Made to happen rather than waited for: somebody holds one row, a verb comes to it, and then the
other row has to be free. The plays beside this one find rings by chance.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect.types.agents import Span
from recollect.types.facts import Spent, Staged
from recollect.types.recall import EntryKind, NewVector
from recollect.types.records import JobKind, Recorded, StaleClaim
from recollect_conformance import Harness, handbooks, inboxes
from recollect_conformance.findings import entries, use
from recollect_conformance.harness import SPACE
from recollect_conformance.lessons import claim, draft, facts, lesson, statement
from recollect_conformance.pages import apply, writing

WAIT_SECONDS_MAX = 60
OTHER = "space-b"
MODEL = "table/1"
pytestmark = pytest.mark.postgres
_WAITING = """
WITH RECURSIVE waiting (pid) AS (
    SELECT CAST(%s AS INTEGER)
    UNION
    SELECT a.pid FROM pg_stat_activity a JOIN waiting w ON w.pid = ANY (pg_blocking_pids(a.pid)))
SELECT count(*) - 1 FROM waiting
"""
Awaited = Callable[..., None]


class Rows:
    """A store, and connections beside it that hold rows."""

    def __init__(self, store: Harness, url: str, schema: str) -> None:
        self.store = store
        self._url = url
        self._schema = schema

    @contextmanager
    def held(self, rows: str) -> Iterator[Awaited]:
        """Hold rows; what is given waits until verbs wait for them, or for whoever does."""
        with self._connected() as holder, self._connected() as watcher:
            assert holder.execute(f"SELECT 1 FROM {rows} FOR UPDATE".encode()).fetchall()

            def until_awaited(*verbs: Future[Any]) -> None:
                deadline = time.monotonic() + WAIT_SECONDS_MAX
                own = (holder.info.backend_pid,)
                while watcher.execute(_WAITING, own).fetchone() != (len(verbs),):
                    watcher.rollback()
                    assert not any(verb.done() for verb in verbs), f"it did not wait for {rows}"
                    assert time.monotonic() < deadline

            yield until_awaited

    def assert_free(self, rows: str) -> None:
        with self._connected() as connection:
            asked = f"SELECT 1 FROM {rows} FOR UPDATE NOWAIT"
            assert connection.execute(asked.encode()).fetchall()

    def run(self, text: str) -> None:
        with self._connected() as connection:
            connection.execute(text.encode())

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self._url) as connection:
            connection.execute("SELECT set_config('search_path', %s, false)", (self._schema,))
            yield connection


@pytest.fixture
def rows(postgres_url: str, lent_store_url: str) -> Iterator[Rows]:
    opening = Harness(lambda: open_store(lent_store_url, Settings(), ManualClock()))
    with closing(opening) as store:
        yield Rows(store, postgres_url, lent_store_url.rpartition("=")[2])


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def meet(
    rows: Rows, threads: ThreadPoolExecutor, verb: Callable[[], Any], *, held: str, free: str
) -> Future[Any]:
    """A verb that comes to rows that are held, while which others are free."""
    with rows.held(held) as until_awaited:
        done = threads.submit(verb)
        until_awaited(done)
        rows.assert_free(free)
    return done


@pytest.mark.parametrize(("held", "free"), [(SPACE, OTHER), (OTHER, SPACE)])
def test_what_waits_for_one_space_holds_nothing_of_another(
    rows: Rows, threads: ThreadPoolExecutor, held: str, free: str
) -> None:
    """G1: time and impatience come to every space in turn."""
    generations = rows.store.handle.generations
    for space in (SPACE, OTHER):
        handbooks.remember(rows.store, "one", space=space)
        generations.request(space, rows.store.now())
    rows.run("UPDATE jobs SET due_at = 1 WHERE kind = 'consolidate'")
    rows.run("UPDATE consolidations SET expires_at = 1")
    own, other = (f"jobs WHERE kind = 'consolidate' AND key = '{each}'" for each in (held, free))
    assert meet(rows, threads, lambda: generations.hurry(None), held=own, free=other).result() == 2
    own, other = (f"consolidations WHERE space = '{each}'" for each in (held, free))
    later = rows.store.now() + timedelta(days=31)
    expired = meet(rows, threads, lambda: generations.expire(later), held=own, free=other)
    assert expired.result() == [SPACE, OTHER]


def test_a_session_that_is_being_forgotten_gets_no_other_pass(
    rows: Rows, threads: ThreadPoolExecutor
) -> None:
    """P11: whoever asks for one meanwhile waits, and what is asked for is looked at after that."""
    store = rows.store
    forgotten, other = (handbooks.remember(store, key) for key in ("one", "two"))
    with rows.held("consolidations") as until_awaited:
        forgetting = threads.submit(handbooks.forget, store, forgotten)
        until_awaited(forgetting)
        asked = threads.submit(store.handle.extractions.request_passes, None, None, store.now())
        until_awaited(forgetting, asked)
    forgetting.result()
    assert asked.result() == 1
    due = store.handle.leases.jobs(None, 10)
    assert [job.key for job in due if job.kind is JobKind.EXTRACT_AGAIN] == [other]


def test_nothing_is_learned_from_a_session_after_it_was_forgotten(rows: Rows) -> None:
    """P11: also where a job of it is due all the same, as older versions left one."""
    store = rows.store
    session_id = handbooks.remember(store, "one", statement("It was so."))
    store.handle.extractions.request_passes(None, None, store.now())
    handbooks.forget(store, session_id)
    rows.run("UPDATE jobs SET state = 'due' WHERE kind = 'extract-again'")
    claimed = claim(store)
    again = lesson(draft(statement("It was so.")), pass_number=2)
    leases = store.handle.leases
    staged = Staged(draft=again.draft, extractor="rules", pass_number=2, upto=1, spent=Spent())
    assert leases.stage(claimed, staged) == StaleClaim()
    made = leases.record_pass(claimed, 1, again, store.now(), store.new_id)
    assert made == Recorded(is_done=True)
    assert facts(store) == []
    assert store.handle.extractions.get(SPACE, session_id) is None
    assert store.handle.erasure.forget_space(SPACE, store.now(), store.now()).is_complete


def test_what_is_being_forgotten_gets_no_vectors(rows: Rows, threads: ThreadPoolExecutor) -> None:
    """P11: they would stay for ever, for what they are of is gone when they come."""
    store = rows.store
    vectors = store.handle.vectors
    session_id = handbooks.remember(store, "one", statement("likes tea"))
    apply(store, writing("a"))
    vectors.search()  # what compares them is made when it is first asked for, and has to wait
    pending = vectors.pending(MODEL, 10)
    assert {entry.kind for entry in pending} == set(EntryKind)
    with rows.held("trees") as until_awaited:  # which comes after what is erased
        forgetting = threads.submit(handbooks.forget, store, session_id)
        until_awaited(forgetting)
        vectors.put(MODEL, [NewVector(entry=each, vector=b"1234") for each in pending])
    forgetting.result()
    kept = vectors.changes(SPACE, MODEL, 0, 0, 10).added
    assert [EntryKind(kind) for _, kind, *_ in kept] == [EntryKind.DOCUMENT]


def test_what_was_used_is_counted_after_the_memory_of_a_space(
    rows: Rows, threads: ThreadPoolExecutor
) -> None:
    """G4: those who learn come to the same facts and memories in an order of their own."""
    handbooks.remember(rows.store, "one", statement("likes tea"))
    found = entries(rows.store, "tea", EntryKind.FACT)
    for table in ("facts", "extractions"):
        verb = partial(use, rows.store, table, *found)
        counting = meet(rows, threads, verb, held="consolidations", free=table)
        assert counting.result() == 1


def test_what_is_stuck_is_revived_after_all_jobs(rows: Rows, threads: ThreadPoolExecutor) -> None:
    """P5: in the order in which those who forget come to them, and before what waits for agents."""
    store = rows.store
    first, second = (handbooks.remember(store, key) for key in ("one", "two"))
    about = Span(session_id=first, first=1, last=1)
    inboxes.post(store, store.key("memory"), inboxes.note(about=about))
    store.handle.extractions.request_passes(None, None, store.now())
    rows.run("UPDATE inbox SET state = 'parked'")
    rows.run("UPDATE jobs SET state = 'idle' WHERE kind = 'consolidate'")
    # Whatever lies first in the table.
    rows.run(f"UPDATE jobs SET state = 'parked' WHERE kind = 'extract-again' AND key = '{second}'")
    rows.run(f"UPDATE jobs SET state = 'parked' WHERE kind = 'extract-again' AND key = '{first}'")
    jobs = [f"jobs WHERE kind = 'extract-again' AND key = '{key}'" for key in (first, second)]
    order = ["jobs WHERE kind = 'agent'", *jobs, "inbox"]

    def revive() -> int:
        return store.handle.leases.revive(None, None)

    for held, free in pairwise(order):
        assert meet(rows, threads, revive, held=held, free=free).result() > 0
        rows.run("UPDATE inbox SET state = 'parked'")
        rows.run("UPDATE jobs SET state = 'parked' WHERE kind = 'extract-again'")


def test_the_agents_of_a_space_are_dropped_before_its_memory(
    rows: Rows, threads: ThreadPoolExecutor
) -> None:
    """P11: where a memory-agent is made, it comes before what it is to be told of."""
    store = rows.store
    handbooks.remember(store, "one")
    erasure, now = store.handle.erasure, store.now()
    erasure.forget_sessions(SPACE, [store.current(store.key("one")).id], now)
    dropping = meet(
        *(rows, threads, lambda: erasure.forget_space(SPACE, now, now)),
        held="agents",
        free="consolidations",
    )
    assert dropping.result().is_complete

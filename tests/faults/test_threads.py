"""Many threads on one memory: no hole, and a clear outcome when it closes or is interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect import crashpoints
from recollect.errors import StoreClosed
from recollect.store.relational.database import Connection
from tests.crash.soundness import assert_store_is_sound

SPACE = "s"
THREADS = 8
APPENDS = 200


@pytest.mark.parametrize("sessions", [1, 3])
def test_appends_of_many_threads_leave_no_hole_and_keep_each_threads_order(
    store_url: str, sessions: int
) -> None:
    with recollect.open(store_url) as memory:
        targets = [memory.space(SPACE).session(f"k:{n}", agent="a") for n in range(sessions)]

        def append_all(thread: int) -> None:
            for number in range(APPENDS):
                targets[number % sessions].append("user", f"{thread}/{number}")

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(append_all, range(THREADS)))
        assert assert_store_is_sound(memory, SPACE) == THREADS * APPENDS
        for position, target in enumerate(targets):
            said = [record.content.split("/") for record in target.all()]
            for thread in range(THREADS):
                numbers = [int(number) for name, number in said if name == str(thread)]
                assert numbers == list(range(position, APPENDS, sessions))


def test_close_while_threads_append_gives_each_append_a_clear_outcome(
    durable_store_url: str,
) -> None:
    memory = recollect.open(durable_store_url)
    session = memory.space(SPACE).session("k", agent="a")
    stored: list[str] = []
    refused: list[str] = []
    under_way = threading.Barrier(THREADS + 1)

    def append_until_closed(thread: int) -> None:
        for number in range(100_000):
            text = f"{thread}/{number}"
            try:
                session.append("user", text)
                session.recent(1)
            except StoreClosed:
                refused.append(text)
                return
            stored.append(text)
            if number == 5:
                under_way.wait()

    with ThreadPoolExecutor(THREADS) as threads:
        futures = [threads.submit(append_until_closed, number) for number in range(THREADS)]
        under_way.wait()
        memory.close()
    for future in futures:
        future.result()
    assert len(refused) == THREADS
    with recollect.open(durable_store_url) as again:
        # The last append of a thread may be there: it was its reading that came too late.
        records = assert_store_is_sound(again, SPACE, stored=stored)
    assert len(stored) <= records <= len(stored) + THREADS


class Crowd:
    """Holds the writer of a store until some threads wait behind it, then lets them all go."""

    def __init__(self, memory: recollect.Memory) -> None:
        self._database: Any = memory.store._database  # type: ignore[attr-defined]
        self._holding = threading.Event()
        self._release = threading.Event()

    def write(self, job: Callable[[Connection], object]) -> object:
        return self._database.write(SPACE, job)

    def hold(self) -> object:
        def wait(_: Connection) -> None:
            self._holding.set()
            self._release.wait()

        return self.write(wait)

    def gather(self, jobs: list[Callable[[], object]]) -> list[BaseException | None]:
        """Run the jobs so that they share a commit; what the holder and each of them raised."""
        with ThreadPoolExecutor(len(jobs) + 1) as threads:
            futures: list[Future[object]] = [threads.submit(self.hold)]
            self._holding.wait()
            for waiting, job in enumerate(jobs, start=1):
                futures.append(threads.submit(job))
                while len(self._database._waiting) < waiting:
                    pass
            self._release.set()
            return [future.exception() for future in futures]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[recollect.Memory]:
    with recollect.open(tmp_path / "memory.db") as opened:
        yield opened


def appends(memory: recollect.Memory, texts: list[str]) -> list[Callable[[], object]]:
    session = memory.space(SPACE).session("k", agent="a")
    return [partial(session.append, "user", text) for text in texts]


def test_a_leader_that_is_interrupted_leaves_the_others_to_somebody_else(
    memory: recollect.Memory,
) -> None:
    texts = [f"{n}" for n in range(6)]
    crowd = Crowd(memory)
    interruptions = iter([KeyboardInterrupt()])

    def interrupted(_: Connection) -> None:
        for interruption in interruptions:
            raise interruption

    jobs = appends(memory, texts)
    outcomes = crowd.gather([*jobs[:3], lambda: crowd.write(interrupted), *jobs[3:]])
    assert [type(outcome) for outcome in outcomes if outcome] == [KeyboardInterrupt]
    # Whoever was interrupted gave up its own; everybody else's is stored, and once.
    own = outcomes[1:4] + outcomes[5:]
    stored = [text for text, outcome in zip(texts, own, strict=True) if outcome is None]
    assert assert_store_is_sound(memory, SPACE, stored=stored) == len(stored) >= 5


def test_a_leader_that_is_interrupted_after_the_commit_has_nothing_done_twice(
    memory: recollect.Memory,
) -> None:
    texts = [f"{n}" for n in range(6)]
    jobs = appends(memory, texts)
    inserted: list[str] = []
    interruptions = iter([KeyboardInterrupt()])

    def interrupt(point: str) -> None:
        if point == "append.inserted":
            inserted.append(point)
        if point == "write.committed" and len(inserted) > 1:
            for interruption in interruptions:
                raise interruption

    crashpoints.arm(interrupt)
    try:
        outcomes = Crowd(memory).gather(jobs)
    finally:
        crashpoints.arm(None)
    assert [type(outcome) for outcome in outcomes if outcome] == [KeyboardInterrupt]
    assert len(inserted) == 6, "an append was made again"
    assert assert_store_is_sound(memory, SPACE, stored=texts) == 6


def test_one_bad_turn_takes_no_other_along(memory: recollect.Memory) -> None:
    session = memory.space(SPACE).session("k", agent="a")
    session.append("user", "first", key="taken")
    texts = [f"{n}" for n in range(4)]
    crowd = Crowd(memory)
    bad = [lambda: session.append("user", "other", key="taken")]
    outcomes = crowd.gather([*appends(memory, texts[:2]), *bad, *appends(memory, texts[2:])])
    assert [type(outcome).__name__ for outcome in outcomes if outcome] == ["AppendKeyReused"]
    assert assert_store_is_sound(memory, SPACE, stored=["first", *texts]) == 5

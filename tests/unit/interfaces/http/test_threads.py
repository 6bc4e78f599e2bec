"""Threads beside the event loop: no more than allowed, none that is stuck, none that stays."""

from __future__ import annotations

import asyncio
import sys
import threading
from functools import partial

import pytest

from recollect.interfaces.http import threads
from recollect.interfaces.http.threads import Threads

WAIT_SECONDS = 30.0


def test_no_more_run_at_once_than_allowed_and_all_are_run() -> None:
    beside = Threads(3)
    running, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(3)  # three at once there must be, or it breaks

    def job(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(WAIT_SECONDS)
        with lock:
            running -= 1
        return number

    async def main() -> list[int]:
        return list(await asyncio.gather(*(beside.run(partial(job, n)) for n in range(30))))

    assert asyncio.run(main()) == list(range(30))
    assert most == 3
    assert beside.waiting == 0


def test_what_a_job_raises_is_raised_where_it_is_waited_for() -> None:
    def wrong() -> None:
        raise ValueError("it went wrong")

    with pytest.raises(ValueError, match="it went wrong"):
        asyncio.run(Threads(1).run(wrong))


def test_a_job_that_nobody_waits_for_any_more_does_no_harm() -> None:
    begun, over = threading.Event(), threading.Event()

    def job() -> None:
        begun.set()
        over.wait(WAIT_SECONDS)

    async def main() -> str:
        beside = Threads(1)
        task = asyncio.ensure_future(beside.run(job))
        await asyncio.to_thread(begun.wait, WAIT_SECONDS)
        task.cancel()
        over.set()
        return str(await beside.run(lambda: "the next one"))

    assert asyncio.run(main()) == "the next one"


def test_what_finds_no_thread_is_told_so_and_the_next_one_is_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    async def main() -> str:
        beside = Threads(1)
        with monkeypatch.context() as short:
            short.setattr(threading, "Thread", Refused)
            with pytest.raises(RuntimeError, match="new thread"):
                await beside.run(lambda: "never run")
        async with asyncio.timeout(WAIT_SECONDS):
            return str(await beside.run(lambda: "the next one"))

    assert asyncio.run(main()) == "the next one"


def test_a_thread_that_nobody_needs_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.001)
    used = asyncio.run(Threads(2).run(threading.current_thread))
    used.join(WAIT_SECONDS)
    assert not used.is_alive()


def test_no_job_waits_for_a_thread_that_is_just_going(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        beside = Threads(2)
        async with asyncio.timeout(WAIT_SECONDS):
            for number in range(6000):  # some of them come just as the last one's patience ends
                monkeypatch.setattr(threads, "IDLE_SECONDS", number % 150 * 2e-6)
                assert await beside.run(lambda: "done") == "done", number

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # a switch between any two steps
    try:
        asyncio.run(main())
    finally:
        sys.setswitchinterval(before)

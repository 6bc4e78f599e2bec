"""Runs what is synchronous beside the event loop, in so many threads and no more.

A thread comes when one is needed, and goes when nobody has needed it for a while.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

IDLE_SECONDS = 10.0


class _Job(NamedTuple):
    run: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    outcome: asyncio.Future[Any]


class Threads:
    """At most `threads_max` of them; what comes while all are busy waits its turn."""

    def __init__(self, threads_max: int) -> None:
        self._threads_max = threads_max
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._count = 0
        self._under_way = 0  # jobs that wait or run

    @property
    def waiting(self) -> int:
        """How many jobs no thread has begun with."""
        return self._jobs.qsize()

    async def run(self, job: Callable[[], Any]) -> Any:
        """What it returns, or raises. RuntimeError: there is no thread, and none can be had."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            self._under_way += 1
            is_short = self._count < min(self._under_way, self._threads_max)
            self._count += is_short
        if is_short:
            self._hire()
        self._jobs.put(_Job(job, loop, outcome))
        return await outcome

    def _hire(self) -> None:
        try:
            threading.Thread(target=self._work, name="recollect-http", daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._count -= 1
                is_alone = not self._count
                self._under_way -= is_alone
            if is_alone:
                raise

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._is_dismissed():
                    return
                continue
            self._do(job)
            del job  # whoever waits for the next one holds nothing of the last

    def _is_dismissed(self) -> bool:
        """Not while there are as many jobs as threads: one of them is just being handed over."""
        with self._lock:
            is_spare = self._under_way < self._count
            self._count -= is_spare
        return is_spare

    def _do(self, job: _Job) -> None:
        result, error = None, None
        try:
            result = job.run()
        except BaseException as raised:  # it is the caller's, whatever it is
            error = raised
        with self._lock:
            self._under_way -= 1
        try:
            job.loop.call_soon_threadsafe(_settle, job.outcome, result, error)
        except RuntimeError:  # the loop has ended: nobody waits any more
            return


def _settle(outcome: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if outcome.cancelled():
        return
    if error is None:
        outcome.set_result(result)
    else:
        outcome.set_exception(error)

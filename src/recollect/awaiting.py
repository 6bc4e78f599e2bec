"""Runs what is synchronous beside an event loop, in threads that belong to that loop.

The loop's own executor is left to the host. What may take long, and looks whether somebody has
answered, have threads of their own: a storage call never waits behind them.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from enum import IntEnum, unique
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


@unique
class Lane(IntEnum):
    """What a call is, by how many of the kind run at a time; the others wait their turn."""

    CALLS = 16  # to the store: SQLite commits those together that wait for it at the same time
    LOOKS = 2  # whether there is an answer; whoever has to wait for a thread looks less often
    LONG = 64  # for a model, for workers that stop, for all of a store


_Pools = dict[Lane, ThreadPoolExecutor]
_pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pools] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


async def run(job: Callable[[], T], lane: Lane = Lane.CALLS) -> T:
    """What it returns, or raises. Who is cancelled stops waiting; what has begun is finished."""
    return await asyncio.wrap_future(_begin(job, lane))


async def run_or_undo(job: Callable[[], T], undo: Callable[[T], object]) -> T:
    """What a long job returns. If nobody waits for that any more it is undone."""
    begun = _begin(job, Lane.LONG)
    try:
        return await asyncio.wrap_future(begun)
    except asyncio.CancelledError:
        _begin(lambda: _undone(begun, undo), Lane.LONG)
        raise


def _begin(job: Callable[[], T], lane: Lane) -> Future[T]:
    """Let it be run for the loop that is running, with the context variables as they are."""
    return _pool(asyncio.get_running_loop(), lane).submit(contextvars.copy_context().run, job)


def _undone(begun: Future[T], undo: Callable[[T], object]) -> None:
    if not begun.cancelled() and begun.exception() is None:
        undo(begun.result())


def _pool(loop: asyncio.AbstractEventLoop, lane: Lane) -> ThreadPoolExecutor:
    """Made on first use; its threads end with the loop, or with the process."""
    with _lock:
        pools = _pools.setdefault(loop, {})
        if lane not in pools:
            name = f"recollect.aio.{lane.name.lower()}"
            pools[lane] = ThreadPoolExecutor(lane.value, thread_name_prefix=name)
        return pools[lane]


class Wraps(Protocol[S_co]):
    """Something with a synchronous twin inside."""

    @property
    def sync(self) -> S_co: ...


def in_thread(
    method: Callable[Concatenate[S, P], T], lane: Lane = Lane.CALLS
) -> Callable[Concatenate[Wraps[S], P], Awaitable[T]]:
    """A method of the twin as a coroutine."""

    @wraps(method)
    async def twin(self: Wraps[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await run(lambda: method(self.sync, *args, **kwargs), lane)

    return twin


def at_length(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[Wraps[S], P], Awaitable[T]]:
    """The same for what takes as long as a model, a worker or a whole store does."""
    return in_thread(method, Lane.LONG)


class Closable(Protocol):
    """Something that is opened, and closed once."""

    @property
    def close(self) -> Callable[[], Awaitable[None]]: ...


C = TypeVar("C", bound=Closable)


class Opening(Coroutine[Any, Any, C], Generic[C]):
    """A coroutine that opens something, and a context manager that also closes it."""

    def __init__(self, opening: Coroutine[Any, Any, C]) -> None:
        self._opening = opening
        self._opened: C | None = None

    def send(self, value: Any) -> Any:
        return self._opening.send(value)

    def throw(self, *raised: Any) -> Any:
        return self._opening.throw(*raised)

    def close(self) -> None:
        """As every coroutine has it: what was not begun is not done."""
        self._opening.close()

    def __await__(self) -> Generator[Any, Any, C]:
        return self._opening.__await__()

    async def __aenter__(self) -> C:
        self._opened = await self
        return self._opened

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._opened is not None, "it was entered"
        await self._opened.close()

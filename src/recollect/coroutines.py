"""Runs synchronous calls beside an event loop, in threads that belong to that loop.

The loop's own executor is left to the host. Calls that may take long, and polls for an answer, have
threads of their own: a storage call never waits behind them. `twin_of` makes the classes of
`recollect.aio`; it is here because type checkers read the stub instead of that module.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from enum import IntEnum, unique
from functools import wraps
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from recollect.agents.reply import POLL_SECONDS, Reply, Ticket
from recollect.verbs import OWNERS, VERBS

T = TypeVar("T")


@unique
class Lane(IntEnum):
    """Kinds of calls, each with the number that run at a time; the others wait their turn."""

    CALLS = 16  # to the store: SQLite commits those together that wait for it at the same time
    LOOKS = 2  # whether there is an answer; a caller that waits for a thread looks less often
    LONG = 64  # for a model, for workers that stop, for all of a store


_Pools = dict[Lane, ThreadPoolExecutor]
_pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pools] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


async def run(job: Callable[[], T], lane: Lane = Lane.CALLS) -> T:
    """Return what the job returns. Cancelling stops the wait; a job that has begun is finished."""
    return await asyncio.wrap_future(_begin(job, lane))


async def run_or_undo(job: Callable[[], T], undo: Callable[[T], object]) -> T:
    """Return what a long job returns, and undo it if nobody waits for that any more."""
    begun = _begin(job, Lane.LONG)
    try:
        return await asyncio.wrap_future(begun)
    except asyncio.CancelledError:
        _begin(lambda: _undone(begun, undo), Lane.LONG)
        raise


def _begin(job: Callable[[], T], lane: Lane) -> Future[T]:
    """Start a job for the loop that is running, with the context variables as they are."""
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


async def answer_to(ticket: Ticket, timeout: float | None) -> Reply:  # noqa: ASYNC109
    """Wait for an answer without a thread: one is taken only to look whether it is there."""
    loop, settled = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody waits any more
            loop.call_soon_threadsafe(settled.set)

    with ticket.telling(tell), suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while not ticket.is_settled and not await _is_set_soon(settled):
                await run(ticket.look, Lane.LOOKS)
    return ticket.outcome(timeout)


async def _is_set_soon(event: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(POLL_SECONDS):
            await event.wait()
    return event.is_set()


class Twin:
    """Something for asyncio with the synchronous one inside, as `.sync`."""

    twins: ClassVar[dict[type, type[Twin]]] = {}

    def __init__(self, sync: Any) -> None:
        self.sync = sync


K = TypeVar("K", bound=type[Twin])


def twin_of(core: type, *, awaited: str = "", long: str = "", plain: str = "") -> Callable[[K], K]:
    """Give a class the methods of its synchronous twin: its verbs, and others that are named.

    `awaited` and `long` become coroutines, `plain` stay methods. An annotation in the class body is
    an attribute of the twin; one of `Awaitable[…]` reads the store and is awaited.
    """
    owner = next((name for name, kind in OWNERS.items() if issubclass(core, kind)), "")
    verbs = [verb for verb in VERBS if owner and verb.method and verb.name.startswith(f"{owner}.")]
    names = {verb.name.partition(".")[2]: _way(verb.is_handle, verb.is_long) for verb in verbs}
    names |= dict.fromkeys(awaited.split(), Lane.CALLS)
    names |= dict.fromkeys(long.split(), Lane.LONG)
    names |= dict.fromkeys(plain.split())

    def fill(made: K) -> K:
        Twin.twins[core] = made
        own = set(vars(made))
        for name, lane in names.items():
            if name not in own:
                setattr(made, name, _method(getattr(core, name), name, lane))
        for name, hint in made.__annotations__.items():
            if name not in own:
                setattr(made, name, _attribute(name, hint))
        return made

    return fill


def _way(is_handle: bool, is_long: bool) -> Lane | None:
    if is_long:
        return Lane.LONG
    return None if is_handle else Lane.CALLS


def _method(method: Callable[..., Any], name: str, lane: Lane | None) -> Callable[..., Any]:
    """The method as a coroutine, or as it is where it asks no store."""

    def call(self: Twin, args: Any, kwargs: Any) -> Any:
        bare = {key: _bare(each) for key, each in kwargs.items()}
        return getattr(self.sync, name)(*map(_bare, args), **bare)

    @wraps(method)
    def handle(self: Twin, /, *args: Any, **kwargs: Any) -> Any:
        return _wrapped(call(self, args, kwargs))

    if lane is None:
        return handle

    @wraps(method)
    async def coroutine(self: Twin, /, *args: Any, **kwargs: Any) -> Any:
        return _wrapped(await run(lambda: call(self, args, kwargs), lane))

    return coroutine


def _attribute(name: str, hint: str) -> property:
    def read(self: Twin) -> Any:
        return _wrapped(getattr(self.sync, name))

    def wait(self: Twin) -> Awaitable[Any]:
        return run(lambda: read(self))

    getter = wait if hint.startswith("Awaitable[") else read
    getter.__annotations__["return"] = hint
    return property(getter)


def _wrapped(value: Any) -> Any:
    twin = Twin.twins.get(type(value))
    return value if twin is None else twin(value)


def _bare(value: Any) -> Any:
    return value.sync if isinstance(value, Twin) else value


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

"""Progress of a long run, reported to the listener of this thread; to nobody if there is none.

Copying, restoring and deleting whole stores report it as they go, whatever called them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

ROWS_TOLD = 1_000  # rows between two words on them


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is being done, and how much of how much is; none: it is not known."""

    what: str
    done: int | None = None
    whole: int | None = None


Listener = Callable[[Progress], None]
_listener: ContextVar[Listener | None] = ContextVar("progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have what runs inside tell how far it has got."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: int | None = None, whole: int | None = None) -> None:
    listener = _listener.get()
    if listener is not None:
        listener(Progress(what=what, done=done, whole=whole))


def counted_rows(rows: Iterable[T], what: str) -> Iterator[T]:
    """The same rows; every thousand of them are told."""
    listener = _listener.get()
    if listener is None:
        yield from rows
        return
    for number, row in enumerate(rows, start=1):
        yield row
        if number % ROWS_TOLD == 0:
            listener(Progress(what=f"{what}, {number:,} rows"))

"""In whose name something is done: said once by an interface, asked for where it is written down.

An actor is never a person's name but a way in: `key:<id>`, `cli:<user of this machine>`, `mcp`,
`hook`, `worker:<owner>`; `library` where nobody said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LIBRARY = "library"
ACTOR_CHARS_MAX = 200

Named = str | Callable[[], str]

_actor: ContextVar[Named] = ContextVar("recollect_actor", default=LIBRARY)


def actor() -> str:
    """Return the name of the current actor."""
    named = _actor.get()
    return (named if isinstance(named, str) else named())[:ACTOR_CHARS_MAX]


@contextmanager
def acting(name: Named) -> Iterator[None]:
    """Until the end of this context it is this one who acts; asked for when it is written down."""
    token = _actor.set(name)
    try:
        yield
    finally:
        _actor.reset(token)

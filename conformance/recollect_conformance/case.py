"""What a case is: a named promise of the store, the mission rows it belongs to, and the check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from recollect_conformance.harness import Harness

Check = Callable[[Harness], None]

_registered: Final[dict[str, Case]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One promise. `run` returns when it is kept and raises when it is not."""

    name: str
    rows: tuple[str, ...]
    summary: str
    run: Check


def case(rows: str, summary: str) -> Callable[[Check], Check]:
    """Register a function as a case: the rows it belongs to (with spaces between), the promise."""

    def register(check: Check) -> Check:
        name = check.__name__
        assert name not in _registered, f"two cases are called {name}"
        _registered[name] = Case(name=name, rows=tuple(rows.split()), summary=summary, run=check)
        return check

    return register


def registered() -> tuple[Case, ...]:
    """Every case whose module has been imported, in the order in which they stand there."""
    return tuple(_registered.values())


@contextmanager
def refused(kind: type[Exception]) -> Iterator[None]:
    """What is done inside has to raise this."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"no {kind.__name__} was raised")

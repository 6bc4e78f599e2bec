"""What the relational store asks of a database: transactions that run a function, and named SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from recollect.domain import StoreDescription

T = TypeVar("T")
Params = Mapping[str, Any]
Row = tuple[Any, ...]


class Connection(Protocol):
    """Runs named queries inside one transaction."""

    def rows(self, name: str, params: Params) -> list[Row]: ...

    def row(self, name: str, params: Params) -> Row | None: ...

    def rows_each(self, name: str, params: Sequence[Params]) -> list[list[Row]]:
        """The rows for each of several sets of parameters, asked for together."""
        ...

    def run(self, name: str, params: Params) -> None: ...

    def run_many(self, name: str, params: Sequence[Params]) -> None: ...


class Database(Protocol):
    """Runs a job in one transaction that sees one space, or all of them for None.

    A job may be run again from the start when the database asks for it, so it has no effects of its
    own. Errors leave it as RecollectErrors. A write returns only when it is durable.
    """

    def write(self, space: str | None, job: Callable[[Connection], T]) -> T: ...

    def read(self, space: str | None, job: Callable[[Connection], T]) -> T: ...

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after commits that touched the jobs; returns a function that ends it."""
        ...

    def scrub(self) -> bool:
        """See to it that what was deleted is in no file any more. False: not while it is read."""
        ...

    def describe(self) -> StoreDescription: ...

    def close(self) -> None: ...

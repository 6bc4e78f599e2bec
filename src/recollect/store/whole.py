"""Reads and writes whole tables of a store, all spaces at once, to move or examine everything.

The SQL is generated from the schema of the database, so that none is written per table. It is for
operators: everything else goes through the named queries, one space at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from recollect.store.sql import Dialect

Values = Mapping[str, Any]
NO_VALUES: Values = {}


class Access(Enum):
    """What a transaction over whole tables is for."""

    READ = auto()  # one snapshot; others go on writing
    WRITE = auto()  # committed at the end, all of it or nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column that is stored, not one that the database works out by itself."""

    name: str
    is_text: bool
    is_boolean: bool
    key_position: int | None  # in the primary key


class Whole(Protocol):
    """One transaction that sees every space. Parameters are written `:name`."""

    @property
    def dialect(self) -> Dialect: ...

    @property
    def location(self) -> str: ...

    def tables(self) -> Mapping[str, tuple[Column, ...]]:
        """The tables there are, without those behind an index."""
        ...

    def stream(self, text: str, values: Values = NO_VALUES) -> Iterator[tuple[Any, ...]]:
        """Rows as they come, however many; a truth value is 0 or 1."""
        ...

    def run(self, text: str, values: Values = NO_VALUES) -> None: ...

    def run_many(self, text: str, values: Iterable[Values]) -> None:
        """Raises InvalidValue for what the tables do not take."""
        ...


def first(rows: Iterator[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """The first row, and the end of whatever was to come."""
    found = list(rows)
    return found[0] if found else None

"""What a store keeps of vectors; one of the aggregates of `store/protocol.py`."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from recollect.types.recall import EntryKind, NewVector, Unembedded, VectorChanges


class VectorSearch(Protocol):
    """Vectors that a store compares itself. A vector is float32, little-endian, of length one."""

    def additions(self, space: str) -> int:
        """How often vectors were added to a space; 0: it has none."""
        ...

    def nearest(
        self, space: str, model: str, vector: bytes, kinds: Collection[EntryKind], limit: int
    ) -> builtins.list[tuple[EntryKind, int]]:
        """The entries most alike, best first, by kind and key."""
        ...

    def similarities(
        self, space: str, model: str, vector: bytes, entries: Collection[tuple[EntryKind, int]]
    ) -> Mapping[tuple[EntryKind, int], float]:
        """How alike entries are; those without a vector are left out."""
        ...

    def usual(self, space: str, model: str, dimensions: int) -> tuple[float, float]:
        """How alike any two vectors of a space are: the mean, and the spread around it."""
        ...


class Vectors(Protocol):
    """Vectors of entries by model. A vector goes with its entry, and when that changes."""

    def pending(
        self, model: str, limit: int, space: str | None = None
    ) -> builtins.list[Unembedded]:
        """Entries of a space, or of all, that have no vector of a model yet."""
        ...

    def put(self, model: str, vectors: Sequence[NewVector]) -> int:
        """Keep vectors, unless what they are of is gone or has changed; how many were given."""
        ...

    def changes(
        self, space: str, model: str, after: int, dropped_after: int, limit: int
    ) -> VectorChanges:
        """What came and what went since, as of one moment; after the numbers of an earlier one.

        After 0 is for who holds nothing yet, and is told of nothing that went. An `upto` of 0 after
        another: it is not known any more what went, and whoever asks begins anew.
        """
        ...

    def use(self, model: str, now: datetime) -> None:
        """Say that a model is used now. One of which nobody has said so is from now on."""
        ...

    def delete_others(self, model: str, now: datetime, limit: int) -> bool:
        """Delete vectors of other models that nobody used for a day; whether there may be more."""
        ...

    def tend(self, model: str) -> None:
        """For when nothing is pending: do what makes comparing quicker, as long as it takes."""
        ...

    def search(self) -> VectorSearch | None:
        """What compares vectors here. None: whoever compares them holds them in memory."""
        ...

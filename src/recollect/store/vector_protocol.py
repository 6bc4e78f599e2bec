"""What a store keeps of vectors; one of the aggregates of `store/protocol.py`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Protocol

from recollect.recollection import NewVector, Unembedded, VectorChanges


class Vectors(Protocol):
    """Vectors of entries by model. A vector goes with its entry, and when that changes."""

    def pending(self, model: str, limit: int) -> builtins.list[Unembedded]:
        """Entries of every space that have no vector of a model yet."""
        ...

    def put(self, model: str, vectors: Sequence[NewVector]) -> int:
        """Keep vectors, unless what they are of is gone or has changed; how many were given."""
        ...

    def changes(
        self, space: str, model: str, after: int, dropped_after: int, limit: int
    ) -> VectorChanges:
        """What came and what went since, as of one moment; after the numbers of an earlier one."""
        ...

    def delete_others(self, model: str, limit: int) -> bool:
        """Delete vectors of other models; whether there may be more."""
        ...

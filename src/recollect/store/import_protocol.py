"""What a store knows about imports: which items came in, and how far files have been read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from recollect.types.imports import Adopted, Arrival, Cursor
    from recollect.types.records import KeyRef, MarkPolicy


class Imports(Protocol):
    """Items of other programs, each taken in once in a space; items are digests."""

    def adopt(
        self,
        ref: KeyRef,
        arrivals: Sequence[Arrival],
        cursor: Cursor,
        policy: MarkPolicy,
        now: datetime,
        new_id: Callable[[], str],
    ) -> Adopted:
        """Append what is new of a batch to the key's session, and move the cursor with it.

        What has come in before from the same source, here or in another session, is left out, also
        if it has been forgotten since.
        """
        ...

    def note(self, space: str, items: Sequence[str], cursor: Cursor, now: datetime) -> None:
        """Note items that became something else than records, and how far a file was read."""
        ...

    def known(self, space: str, source: str, items: Sequence[str]) -> frozenset[str]:
        """Which of these have come in before."""
        ...

    def cursor(self, space: str, source: str, place: str) -> Cursor | None:
        """How far a file has been read; none: not at all."""
        ...

"""What a store keeps of who did what; one of the aggregates of `store/protocol.py`.

An entry has ids that Recollect made, names of verbs and classes of errors: nothing anybody said.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

DONE = "done"
SPACE_FORGOTTEN = "erasure.forget_space"  # its entries outlive what it erases


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """That somebody did something. Without an outcome it is under way, or was cut short."""

    id: str
    space: str | None  # none: the store
    at: datetime
    actor: str
    verb: str
    targets: tuple[str, ...] = ()
    outcome: str | None = None  # `done`, or the class of the error


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Which entries are meant; None: whichever."""

    space: str | None = None  # none: those of all spaces, and of the store
    actor: str | None = None
    verb: str | None = None
    since: datetime | None = None


class Audit(Protocol):
    """Who did what. Entries go with their space, but for those that say it was forgotten."""

    def begin(self, entry: AuditEntry) -> None:
        """Write down what is about to be done."""
        ...

    def end(self, entry: AuditEntry) -> None:
        """Note what came of it, and to what it was done, if the entry is still there."""
        ...

    def list(
        self, query: AuditQuery, limit: int, before: AuditEntry | None
    ) -> builtins.list[AuditEntry]:
        """A page of entries, the newest first: those after `before` in that order."""
        ...

    def prune(self, before: datetime, limit: int) -> int:
        """Drop entries from before a time, the oldest first; how many it were."""
        ...

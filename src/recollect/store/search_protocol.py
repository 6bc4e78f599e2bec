"""What a store can find; one of the aggregates of `store/protocol.py`."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from recollect.types.recall import (
        Entry,
        EntryKind,
        Filters,
        Found,
        HitUsage,
        Latest,
        Reach,
        Sought,
        StatementRevision,
        UsageKind,
    )


class Search(Protocol):
    """Entries of every kind by the words they have. What is committed can be found."""

    def candidates(
        self, space: str, sought: Sought, filters: Filters, now: datetime, reach: Reach
    ) -> Found:
        """The entries most worth a look, because they have the rarest of the stems.

        However common a stem is, only so many entries are looked at: the newest. Their texts may
        be cut, and the sources of facts are left to `load`.
        """
        ...

    def load(
        self, space: str, keys: Mapping[EntryKind, Sequence[int]], filters: Filters, now: datetime
    ) -> builtins.list[Entry]:
        """Entries by their keys, as far as they are there and pass, whole and with sources."""
        ...

    def latest(
        self,
        space: str,
        filters: Filters,
        now: datetime,
        *,
        facts: int,
        sessions: int,
        beside: str = "",
    ) -> Latest:
        """What a recap of a project is made of, or of what belongs to none; so many of each.

        What people want, they may have said in no project. `beside` is the session that is shown
        anyway: neither what it came to, nor what was compacted into it, is among them.
        """
        ...

    def revisions(
        self, space: str, sessions: Sequence[str], now: datetime, since: datetime | None = None
    ) -> builtins.list[StatementRevision]:
        """What was learned from these sessions and does not hold any more as it was said there.

        With `since` also what became so from then on, wherever it was learned; it names no session.
        """
        ...

    def use(self, space: str, usage: HitUsage) -> int:
        """Count what became of entries, each once in a turn; how many had not been counted.

        What was opened or cited was used, and so were the sessions it rests on. What was only
        shown was not: facts count how often by itself.
        """
        ...

    def usage(self, space: str, kind: EntryKind, entry_id: str) -> Mapping[UsageKind, int]:
        """How often an entry was shown, opened and cited."""
        ...

    def prune(self, before: datetime) -> int:
        """Forget uses from before a time; what they were counted into stays. How many it were."""
        ...

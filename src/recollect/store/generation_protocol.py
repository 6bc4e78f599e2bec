"""What a store does for consolidation: one aggregate of the protocol."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from recollect.types.generations import (
        ConsolidationState,
        Generation,
        GenerationDocument,
        GenerationDraft,
        Memo,
        Outdated,
        Published,
        Selection,
        SelectionPolicy,
        Standing,
    )
    from recollect.types.records import Claim, StaleClaim

NewId = Callable[[], str]


class GenerationStore(Protocol):
    """Generations of a space's memory, and what the next one is made of."""

    def select(self, space: str, policy: SelectionPolicy, now: datetime) -> Selection:
        """What would be selected now, and how that differs from the last generation.

        The most used come first, then those used or made last. What changed since it was consumed
        counts as added; what was consumed and is not selected any more, or not there, as removed.
        """
        ...

    def memos(self, space: str, session_ids: Sequence[str]) -> builtins.list[Memo]:
        """What sessions came to, in full and in this order; without those that are gone."""
        ...

    def standings(
        self, space: str, session_ids: Sequence[str], now: datetime, limit: int
    ) -> builtins.list[Standing]:
        """Facts that hold and that these sessions support, or somebody added; most used first.

        Each with those of its sources alone that lie in these sessions.
        """
        ...

    def publish(
        self, claim: Claim, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Published | Outdated | StaleClaim:
        """Make a generation the current one, fenced by the token.

        Documents, generation, consumed memories and watermark go together. The job is done, or due
        again where something changed meanwhile. A draft made of what the current one was made of
        moves the watermark alone. Outdated: something it was made of may not be remembered any
        more; nothing was published, and the job is due at once. StaleVersion, DocumentExists,
        DocumentReferenced or NotFound: somebody changed the documents it was to replace.
        """
        ...

    def restore(
        self, space: str, draft: GenerationDraft, now: datetime, new_id: NewId
    ) -> Generation:
        """Make a generation current by hand; a run under way is void."""
        ...

    def amend(self, space: str, draft: GenerationDraft, now: datetime, new_id: NewId) -> bool:
        """Let the current generation say something else, under its number.

        Nothing is consumed, and what only it said before is erased. False: it is not current any
        more. StaleVersion and the like: as `publish`.
        """
        ...

    def list(self, space: str, limit: int, before: int | None) -> builtins.list[Generation]:
        """A page of generations, the newest first."""
        ...

    def get(self, space: str, number: int) -> Generation | None: ...

    def documents(self, space: str, number: int) -> builtins.list[GenerationDocument]:
        """What a generation has, as far as it is still there."""
        ...

    def states(
        self, space: str | None, limit: int, after: str, now: datetime | None
    ) -> builtins.list[ConsolidationState]:
        """Where consolidation stands, a page of spaces in the order of their names."""
        ...

    def request(self, space: str, now: datetime | None) -> bool:
        """Let a space be consolidated as soon as nothing of it is left to distil.

        No cooldown, backoff or parking keeps it. False: it is paused.
        """
        ...

    def hurry(self, space: str | None) -> int:
        """Let those that wait for a cooldown run at once; how many it were."""
        ...

    def pause(self, space: str, now: datetime | None) -> None:
        """No consolidation of the space until it is resumed; one under way is void."""
        ...

    def resume(self, space: str, now: datetime | None) -> None: ...

    def expire(self, now: datetime | None, space: str | None = None) -> builtins.list[str]:
        """Make due what time alone has changed, in one space or all; the spaces."""
        ...

    def note_edits(self, space: str, now: datetime) -> None:
        """People changed what was published: the next generation is due."""
        ...

    def prune(self, older_than: datetime, limit: int) -> int:
        """Drop memories that nobody has used since and no generation has, the oldest first."""
        ...

    def files_published(self, space: str, generation: int) -> None:
        """The files of a generation stand where they belong."""
        ...

    def without_files(self, limit: int, space: str | None = None) -> builtins.list[tuple[str, int]]:
        """Spaces whose current generation was never written as files, with its number."""
        ...

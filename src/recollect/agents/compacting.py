"""Compacts an agent's conversation between two turns, under the agent's claim.

What is older becomes part of the stored summary, or is dropped where nobody can summarise it. The
session rotates and the old one is marked; what is retained is shown by reference.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from recollect.clock import Clock
from recollect.config import Settings
from recollect.context.compaction import (
    SUMMARY_FAILURES,
    Compaction,
    ModelSummarizer,
    plan_compaction,
)
from recollect.extraction.spend import Till
from recollect.ids import Ids
from recollect.models.protocol import Completion, Request
from recollect.observing.log_text import loggable
from recollect.store.protocol import Store
from recollect.types.records import Claim, KeyRef, MarkCause, Record, SessionState, StaleClaim

COMPACTED_MAX = 500  # records that a compaction looks at; what is older was dropped long ago

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Knows when a conversation is too long, and makes it shorter."""

    store: Store
    settings: Settings
    clock: Clock
    ids: Ids
    redact: Callable[[str], Callable[[str], str]]  # of a space

    def compact_if_due(
        self,
        ref: KeyRef,
        claim: Claim,
        till: Callable[[str], Till] | None,
        is_lost: Callable[[], bool],
        *,
        seen: Sequence[Record] | None = None,
    ) -> SessionState | StaleClaim | None:
        """The new session, if there is one now. `till` pays for the summary of a session.

        `seen` is the conversation as it was a moment ago, where that is known.
        """
        # Mostly nothing is near: then the summary, which takes no half of the room, is not read,
        # and what was just shown is not read again.
        if seen is not None and self._planned(seen, share=2) is None:
            return None
        enough = self.settings.compaction_threshold + 1
        newest, summary = self.store.records.recent_with_summary(ref, enough)
        if self._planned(newest, summary) is None:
            return None
        planned = self._planned(self.store.records.recent(ref, COMPACTED_MAX), summary)
        if planned is None:
            return None
        text = None if till is None else self._summarised(ref, summary, planned, till, is_lost)
        return self.store.agents.rotate(
            claim,
            MarkCause.COMPACTION,
            self.clock.now(),
            self.ids.new,
            summary=text,
            retain=len(planned.retained),
        )

    def _planned(
        self, records: Sequence[Record], summary: str = "", *, share: int = 1
    ) -> Compaction | None:
        """What to compact, where there is room for one part in so many."""
        settings = self.settings
        taken = settings.agent_memory_tokens + settings.reply_tokens
        return plan_compaction(
            records,
            tokens_max=max(settings.model_window_tokens - taken, 0) // 2 // share,
            threshold=settings.compaction_threshold,
            retain_recent=settings.retain_recent,
            summary=summary,
        )

    def _summarised(
        self,
        ref: KeyRef,
        summary: str,
        planned: Compaction,
        till: Callable[[str], Till],
        is_lost: Callable[[], bool],
    ) -> str | None:
        """The new summary; none where that fails: older messages are dropped then."""
        paying = till(planned.summarised[-1].session_id)

        def ask(request: Request, what: str) -> Completion:
            return paying.ask(replace(request, is_cancelled=is_lost), what)

        summarizer = ModelSummarizer(
            ask,
            self.settings,
            redact=self.redact(ref.space),
            summary_tokens_max=self.settings.summary_tokens_max,
        )
        try:
            return summarizer.summarize(summary, planned.summarised)
        except SUMMARY_FAILURES as error:
            _log.warning("agent %s: older messages are dropped: %s", ref.agent_id, loggable(error))
            return None

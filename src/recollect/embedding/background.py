"""Makes vectors in the background: entries without one are embedded and stored in batches.

The embedder is a provider or this machine; a batch that is lost on the way is requested again by
the next run. Changing the model makes every entry pending; the vectors of the model before are
deleted once all have been made and it has not been used for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.clock import Clock
from recollect.config import Settings
from recollect.embedding.protocol import Billed, Embedded, Embedder, ask
from recollect.errors import (
    InvalidOutput,
    ModelError,
    ModelRejected,
    PromptTooLong,
    SpendCapReached,
)
from recollect.observing import traces
from recollect.observing.log_text import loggable
from recollect.store.protocol import Store
from recollect.types.facts import CallOutcome, Caps, NewCall, OverCap, Spent
from recollect.types.recall import NewVector, Unembedded

if TYPE_CHECKING:
    from recollect.store.relational.extractions import Ledger

PURPOSE = "embed"
PAUSE_SECONDS = 3600.0  # after which a space that may use no more is looked at again


class EmbeddingTill:
    """Asks an embedder for the texts of one space at a time, each request paid for."""

    def __init__(self, ledger: Ledger, settings: Settings, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._is_traced = settings.traces
        self._caps = Caps(
            tokens_per_day=settings.spend_tokens_per_day,
            calls_per_day=settings.spend_calls_per_day,
        )

    def embed(self, embedder: Embedder, space: str, texts: Sequence[str]) -> Embedded:
        """Reserve, ask, settle. SpendCapReached: the space may use no more today."""
        if not isinstance(embedder, Billed) or not texts:
            return self._asked(embedder, texts)
        most = embedder.tokens_of(texts)
        call_id = self._reserve(embedder.name, space, most)

        def settle(calls: int, tokens: int, outcome: CallOutcome) -> None:
            spent = Spent(calls=calls, input_tokens=tokens)
            self._ledger.settle(space, call_id, spent, outcome)

        try:
            embedded = self._asked(embedder, texts)
        except ModelError as error:
            settle(min(error.tries_begun, 1), most * error.tries_begun, CallOutcome.FAILED)
            raise
        used = most if embedded.usage is None else embedded.usage.input_tokens
        settle(1, used + most * embedded.tries_lost, CallOutcome.ANSWERED)
        return embedded

    def _asked(self, embedder: Embedder, texts: Sequence[str]) -> Embedded:
        asked = {traces.MODEL: embedder.name, traces.PURPOSE: PURPOSE}
        with traces.spanned("model", asked, traced=self._is_traced):
            return ask(embedder, texts)

    def _reserve(self, model: str, space: str, tokens: int) -> int:
        call = NewCall(
            space=space,
            session_id=None,
            purpose=PURPOSE,
            model=model,
            attempt=1,
            input_tokens=tokens,
            output_tokens=0,
        )
        reserved = self._ledger.reserve(call, self._caps, self._clock.now())
        if isinstance(reserved, OverCap):
            raise SpendCapReached(
                f"space {space} may use {reserved.cap}, and its vectors wait; "
                "raise spend_*_per_day or wait for the next day (UTC)",
                delay_seconds=PAUSE_SECONDS,
            )
        return reserved.call_id


OTHERS_AT_A_TIME = 2000
FAILURES_MAX = 16  # without a single vector, before the embedder itself is at fault

_log = logging.getLogger(__name__)


def embed_pending(
    store: Store,
    embedder: Embedder,
    till: EmbeddingTill,
    now: datetime,
    limit: int,
    space: str | None = None,
) -> int:
    """Embed up to so many entries, of a space or of all, without a vector; how many were looked at.

    SpendCapReached: none of those spaces may use more today. Where others may, they go on.
    """
    store.vectors.use(embedder.name, now)
    pending = store.vectors.pending(embedder.name, limit, space)
    if not pending:
        if not store.vectors.delete_others(embedder.name, now, OTHERS_AT_A_TIME):
            store.vectors.tend(embedder.name)
        return 0
    over: SpendCapReached | None = None
    is_any = False
    for name in dict.fromkeys(entry.space for entry in pending):
        batch = _VectorBatch(embedder, till, name)
        try:
            batch.embed([each for each in pending if each.space == name])
        except SpendCapReached as error:
            over = error
        finally:
            # What was paid for is kept, whatever became of the rest.
            if batch.made:
                is_any = True
                store.vectors.put(embedder.name, batch.made)
    if over is not None and not is_any:
        raise over
    return len(pending)


class _VectorBatch:
    """The vectors of one space's entries, as far as they were made."""

    def __init__(self, embedder: Embedder, till: EmbeddingTill, space: str) -> None:
        self._embedder = embedder
        self._till = till
        self._space = space
        self._failures = 0
        self._answered = 0
        self._refused: list[tuple[Unembedded, ModelError]] = []
        self.made: list[NewVector] = []

    def embed(self, entries: Sequence[Unembedded]) -> None:
        """What says nothing has no vector, and neither has what alone is refused."""
        wanted = [entry for entry in entries if entry.text.strip()]
        self.made += [
            NewVector(entry=entry, vector=b"") for entry in entries if not entry.text.strip()
        ]
        if wanted:
            self._ask(wanted)
        for entry, error in self._refused:
            if not self._answered:
                raise error
            shown = loggable(error)
            _log.warning(
                "%s %d of space %s has no vector: %s", entry.kind, entry.key, entry.space, shown
            )
            self.made.append(NewVector(entry=entry, vector=b""))

    def _ask(self, entries: Sequence[Unembedded]) -> None:
        """Ask for all of them; where that is refused, for each half."""
        try:
            texts = [entry.text for entry in entries]
            vectors = self._till.embed(self._embedder, self._space, texts).vectors
        except (ModelRejected, PromptTooLong, InvalidOutput) as error:
            self._failures += 1
            if not self._answered and self._failures >= FAILURES_MAX:
                raise
            if len(entries) == 1:
                self._refused.append((entries[0], error))
                return
            half = len(entries) // 2
            self._ask(entries[:half])
            self._ask(entries[half:])
            return
        self._answered += len(entries)
        self.made += [
            NewVector(entry=entry, vector=vector)
            for entry, vector in zip(entries, vectors, strict=True)
        ]

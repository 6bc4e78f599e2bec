"""What embeddings take: reserved against a space's caps before a request, settled after it.

Only where a provider is paid by the token, and only in the background: recall writes nothing, so
that the few tokens of a question are in no ledger. What they cost is unknown: the prices of the
settings are a model's.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.clock import Clock
from recollect.config import Settings
from recollect.embedding.checking import ask
from recollect.embedding.protocol import Billed, Embedded, Embedder
from recollect.errors import ModelError, SpendCapReached
from recollect.knowledge import CallOutcome, Caps, NewCall, OverCap, Spent
from recollect.observing import traces
from recollect.store.protocol import Ledger

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
        try:
            embedded = self._asked(embedder, texts)
        except ModelError as error:
            begun = error.tries_begun
            spent = Spent(calls=min(begun, 1), input_tokens=most * begun)
            self._ledger.settle(space, call_id, spent, CallOutcome.FAILED)
            raise
        used = most if embedded.usage is None else embedded.usage.input_tokens
        spent = Spent(calls=1, input_tokens=used + most * embedded.tries_lost)
        self._ledger.settle(space, call_id, spent, CallOutcome.ANSWERED)
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

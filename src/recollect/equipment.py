"""What a memory makes on first use: redactor, model, embedder, and processors for its workers.

Loading them takes longer than opening a store, and many a process never needs them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from recollect.clock import Clock
from recollect.config import Settings
from recollect.errors import RecollectError, StoreClosed
from recollect.ids import SYSTEM_RANDOMNESS
from recollect.store.protocol import Store

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder
    from recollect.extraction.plan import WorkPlan
    from recollect.extraction.run import ExtractionProcessor
    from recollect.models.protocol import Model
    from recollect.recall.meaning import Meaning
    from recollect.redaction import Redactor

_SALT = "redaction_salt"
_SALT_BYTES = 16
EMBED_BATCHES_MAX = 100_000


class Equipment:
    """Made once, shared by everything of one memory. Safe to use from any number of threads."""

    def __init__(
        self,
        store: Callable[[], Store],
        settings: Settings,
        clock: Clock,
        model: Model | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._model = model
        self._is_own_model = model is None
        self._embedder = embedder
        self._is_own_embedder = embedder is None
        self._meaning: Meaning | None = None
        self._redactor: Redactor | None = None
        self._closed = False
        self._lock = threading.Lock()

    def redactor(self) -> Redactor:
        """The store's redactor: the same secret looks the same in all that one store holds."""
        with self._lock:
            if self._redactor is None:
                from recollect.redaction import load_redactor

                salt = self._store().keep(_SALT, SYSTEM_RANDOMNESS.randbytes(_SALT_BYTES).hex())
                self._redactor = load_redactor(self._settings, bytes.fromhex(salt))
            return self._redactor

    def redacted(self, text: str) -> str:
        """What may be logged and shown of an error; nothing, if there is no telling."""
        try:
            return self.redactor().redact(text)
        except RecollectError:
            return text.partition(":")[0]

    def model(self) -> Model | None:
        """The model of the settings, or the one that was given; none where neither is."""
        with self._lock:
            if self._closed:
                raise StoreClosed("this memory is closed; open it again")
            if self._model is None:
                from recollect.models.opening import open_model

                self._model = open_model(self._settings, clock=self._clock)
            return self._model

    @property
    def has_embedder(self) -> bool:
        """Whether one was given, or is named by the settings."""
        return self._embedder is not None or self._settings.embedder.strip() not in ("none", "")

    def embedder(self) -> Embedder | None:
        """Who makes vectors; none where nobody is named."""
        if not self.has_embedder:
            return None
        with self._lock:
            if self._closed:
                raise StoreClosed("this memory is closed; open it again")
            if self._embedder is None:
                from recollect.embedding.opening import open_embedder

                self._embedder = open_embedder(self._settings, self.redacted, clock=self._clock)
            return self._embedder

    def meaning(self) -> Meaning | None:
        """The vectors in memory; none where there is no embedder."""
        embedder = self.embedder()
        if embedder is None:
            return None
        with self._lock:
            if self._meaning is None:
                from recollect.recall.meaning import Meaning

                self._meaning = Meaning(self._store, embedder, self._settings.vectors_bytes_max)
            return self._meaning

    def embed_some(self) -> int:
        """Embed a batch of what has no vector yet; how many entries were looked at."""
        embedder = self.embedder()
        if embedder is None:
            return 0
        from recollect.embedding.background import embed_pending

        return embed_pending(self._store(), embedder, embedder.batch_texts)

    def embed_all(self) -> None:
        """Embed until nothing is left. What somebody changes all the time is left to a worker."""
        for _ in range(EMBED_BATCHES_MAX):
            if not self.embed_some():
                return

    def processor(self) -> ExtractionProcessor:
        """What distils sessions, for one worker."""
        from recollect.extraction.opening import open_processor

        is_wanted = self._settings.extractor in ("auto", "model")
        return open_processor(
            self._store(),
            self._settings,
            self._clock,
            self.redactor(),
            self.model() if is_wanted else None,
        )

    def plan(self, space: str | None, *, all: bool, again: bool) -> WorkPlan:  # noqa: A002
        from recollect.extraction.plan import Wanted, plan_work

        wanted = Wanted(now=self._clock.now(), space=space, all=all, again=again)
        return plan_work(self._store(), self.processor(), self._settings, wanted)

    def close(self) -> None:
        """Let go of the model and the embedder, unless somebody else brought them."""
        with self._lock:
            self._closed = True
            if self._is_own_model and self._model is not None:
                self._model.close()
                self._model = None
            if self._is_own_embedder and self._embedder is not None:
                self._embedder.close()
                self._embedder = None

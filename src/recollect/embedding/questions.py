"""An embedder for questions, who wait for nothing long: a deadline, and a pause after a failure.

Entries are embedded in the background and may take their time. Somebody waits for a question: where
an endpoint is down, recall goes by words alone at once and asks it again after a while.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from recollect.clock import Clock
from recollect.embedding.protocol import FLOAT_BYTES, Embedded, Embedder, ask, never
from recollect.errors import CallCancelled, ModelError, ModelUnavailable

PAUSE_SECONDS = 30.0


class QuestionEmbedder:
    """Implements `Embedder` by asking another one, within a time. Threads may share it."""

    def __init__(self, embedder: Embedder, clock: Clock, seconds: float) -> None:
        self._embedder = embedder
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()
        self._silent_until: datetime | None = None
        self._dimensions = 0

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """Found out within the same time as anything else."""
        if not self._dimensions:
            [vector] = self.embed(["dimensions"]).vectors
            self._dimensions = len(vector) // FLOAT_BYTES
        return self._dimensions

    @property
    def batch_texts(self) -> int:
        return self._embedder.batch_texts

    def close(self) -> None:
        self._embedder.close()

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        asked_at = self._clock.now()
        self._check(asked_at)
        deadline = asked_at + timedelta(seconds=self._seconds)

        def is_late() -> bool:
            return self._clock.now() >= deadline

        try:
            return ask(self._embedder, texts, is_cancelled=lambda: is_late() or is_cancelled())
        except ModelError as error:
            if isinstance(error, CallCancelled) and not is_late():
                raise  # by whoever asked: that says nothing about the embedder
            self._fall_silent()
            if isinstance(error, CallCancelled):
                raise ModelUnavailable(
                    f"{self.name} had not answered after {self._seconds:g} s"
                ) from error
            raise

    def _check(self, now: datetime) -> None:
        with self._lock:
            if self._silent_until is not None and now < self._silent_until:
                raise ModelUnavailable(f"{self.name} failed a moment ago, and is left alone")

    def _fall_silent(self) -> None:
        with self._lock:
            self._silent_until = self._clock.now() + timedelta(seconds=PAUSE_SECONDS)

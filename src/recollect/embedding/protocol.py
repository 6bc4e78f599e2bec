"""What Recollect asks of an embedder: texts in, one vector for each out, or a typed error.

A vector crosses layers as bytes, so that only modules that calculate need to know how: numbers of
type float32, little-endian, of length one. A text that says nothing, as an empty one, has a vector
of zeros: it resembles nothing.

Entries are embedded in the background and may take their time. Somebody waits for a question: where
an endpoint is down, recall goes by words alone at once and asks it again after a while.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from recollect.clock import Clock
from recollect.errors import CallCancelled, InvalidOutput, ModelError, ModelUnavailable
from recollect.models.protocol import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The vectors of some texts, in their order, and what they took from a provider."""

    vectors: tuple[bytes, ...]
    usage: Usage | None = None  # None: nobody is paid for it
    tries_lost: int = 0  # that were taken on before these and broke off; they may be billed


def never() -> bool:
    return False


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. Safe to call from any number of threads."""

    @property
    def name(self) -> str:
        """Stored with every vector: vectors of two names cannot be compared. Asks nobody."""
        ...

    @property
    def dimensions(self) -> int:
        """Numbers in a vector. Some learn it from their first answer, which this may request."""
        ...

    @property
    def batch_texts(self) -> int:
        """Texts that one request takes; more are sent in several requests."""
        ...

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        """The vectors of any texts, or a ModelError that says whether trying again helps.

        Of a very long text only the beginning counts. `is_cancelled` is asked while it waits: true
        means that nobody waits for the vectors any more.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class Billed(Protocol):
    """What an embedder is as well whose provider is paid by the token."""

    def tokens_of(self, texts: Sequence[str]) -> int:
        """About how many tokens these texts are."""
        ...


FLOAT_BYTES = 4


def unit_bytes(values: Sequence[float]) -> bytes:
    """A vector of length one as bytes; zeros stay zeros. ValueError for what is no vector."""
    try:
        is_finite = all(map(math.isfinite, values))
    except (TypeError, OverflowError) as error:
        raise ValueError("the vector holds something that is not a number") from error
    if not is_finite:
        raise ValueError("a number of the vector is not finite")
    peak = max(map(abs, values), default=0) or 1  # what is very small or large stays exact
    scaled = [value / peak for value in values]
    length = math.hypot(*scaled) or 1
    return struct.pack(f"<{len(scaled)}f", *(value / length for value in scaled))


def zero_bytes(dimensions: int) -> bytes:
    return bytes(FLOAT_BYTES * dimensions)


def floats(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // FLOAT_BYTES}f", vector)


def cut(text: str, bytes_max: int) -> str:
    """The beginning of a text as valid UTF-8 of at most so many bytes."""
    whole = text[:bytes_max].encode("utf-8", "replace")  # a character has at least one byte
    return whole[:bytes_max].decode("utf-8", "ignore")


def ask(
    embedder: Embedder, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never
) -> Embedded:
    """The vectors of some texts, as an embedder promises them, or a ModelError."""
    try:
        embedded = embedder.embed(texts, is_cancelled=is_cancelled)
        size = FLOAT_BYTES * embedder.dimensions if texts else 0
    except OSError as error:
        raise ModelUnavailable(f"{embedder.name} cannot be asked: {error}") from error
    if len(embedded.vectors) != len(texts):
        raise InvalidOutput(
            f"{embedder.name} gave {len(embedded.vectors)} vectors for {len(texts)} texts"
        )
    for vector in embedded.vectors:
        if len(vector) != size:
            raise InvalidOutput(
                f"{embedder.name} gave {len(vector)} bytes where a vector has {size}"
            )
        if not math.isfinite(sum(floats(vector))):
            raise InvalidOutput(f"{embedder.name} gave a vector with a number that is not finite")
    return embedded


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
        with self._lock:
            if self._silent_until is not None and asked_at < self._silent_until:
                raise ModelUnavailable(f"{self.name} failed a moment ago and is not asked yet")
        deadline = asked_at + timedelta(seconds=self._seconds)

        def is_late() -> bool:
            return self._clock.now() >= deadline

        try:
            return ask(self._embedder, texts, is_cancelled=lambda: is_late() or is_cancelled())
        except ModelError as error:
            if isinstance(error, CallCancelled) and not is_late():
                raise  # the caller cancelled: that says nothing about the embedder
            with self._lock:
                self._silent_until = self._clock.now() + timedelta(seconds=PAUSE_SECONDS)
            if isinstance(error, CallCancelled):
                raise ModelUnavailable(
                    f"{self.name} had not answered after {self._seconds:g} s"
                ) from error
            raise

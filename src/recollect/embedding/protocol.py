"""What Recollect asks of an embedder: texts in, one vector for each out, or a typed error.

A vector crosses layers as bytes, so that only modules that calculate need to know how: numbers of
type float32, little-endian, of length one. A text that says nothing, as an empty one, has a vector
of zeros: it resembles nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from recollect.models.protocol import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The vectors of some texts, in their order, and what they took from a provider."""

    vectors: tuple[bytes, ...]
    usage: Usage | None = None  # None: nobody is paid for it
    requests: int = 0  # answered by a provider
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
        """Numbers in a vector. Only a first answer tells some, and it may have to be asked for."""
        ...

    @property
    def batch_texts(self) -> int:
        """Texts that one request takes: whoever hands in more makes several."""
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

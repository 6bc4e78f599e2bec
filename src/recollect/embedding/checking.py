"""Asks an embedder and looks at what it gives: as many vectors as texts, of its length, of numbers.

An embedder may be anybody's. What it does wrong is told as a ModelError here, before it is kept or
compared: one vector without an end would make every order a matter of chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from recollect.embedding.encoding import FLOAT_BYTES, floats
from recollect.embedding.protocol import Embedded, Embedder, never
from recollect.errors import InvalidOutput, ModelUnavailable


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
            raise InvalidOutput(f"{embedder.name} gave a vector without an end")
    return embedded

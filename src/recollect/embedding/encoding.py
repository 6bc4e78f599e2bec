"""The two currencies of embedding: vectors as bytes, and texts cut to what an embedder takes."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

FLOAT_BYTES = 4


def unit_bytes(values: Sequence[float]) -> bytes:
    """A vector of length one as bytes; zeros stay zeros. ValueError for what is no vector."""
    try:
        is_finite = all(map(math.isfinite, values))
    except (TypeError, OverflowError) as error:
        raise ValueError("a vector of something that is no number") from error
    if not is_finite:
        raise ValueError("a vector without an end")
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

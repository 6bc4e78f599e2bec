"""Vectors as bytes, and texts cut to size."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding.protocol import cut, floats, unit_bytes, zero_bytes
from tests.tables import every_row


def test_a_vector_is_little_endian_float32_of_length_one() -> None:
    assert unit_bytes([3, 4.0]) == struct.pack("<2f", 0.6, 0.8)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_any_finite_numbers_come_to_length_one_or_nothing(values: list[float]) -> None:
    length = math.hypot(*floats(unit_bytes(values)))
    assert length == pytest.approx(1.0 if any(values) else 0.0, abs=1e-5)


def test_zeros_stay_zeros() -> None:
    assert unit_bytes([0, 0, 0]) == zero_bytes(3) == bytes(12)


@every_row("values", [[math.nan], [math.inf, 1], ["1"], [None], [10**400], [[1.0]]])
def test_what_is_no_vector_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="vector"):
        unit_bytes(values)


@given(st.text(st.characters(exclude_categories=())), st.integers(0, 50))
def test_a_cut_text_is_a_valid_beginning_within_its_bytes(text: str, size: int) -> None:
    shorter = cut(text, size)
    assert len(shorter.encode()) <= size
    assert text.encode("utf-8", "replace").decode().startswith(shorter)


def test_no_character_is_cut_apart_and_none_that_fits_is_lost() -> None:
    assert [cut("aé€😀", size) for size in (0, 1, 2, 3, 6, 9, 10, 99)] == [
        *("", "a", "a", "aé", "aé€", "aé€", "aé€😀", "aé€😀")
    ]

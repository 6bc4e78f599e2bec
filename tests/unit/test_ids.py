"""Ids: UUIDs of version 7, ordered by time, the same again from the same seed."""

from __future__ import annotations

import random
import uuid

from hypothesis import given
from hypothesis import strategies as st

from recollect.clock import ManualClock, SystemClock, from_micros
from recollect.ids import Ids


@given(st.integers(0, 2**47), st.randoms())
def test_an_id_is_a_uuid_of_version_7_with_its_time(millis: int, randomness: random.Random) -> None:
    clock = ManualClock(from_micros(millis * 1000 + 999))
    made = uuid.UUID(Ids(clock, randomness).new())
    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert made.int >> 80 == millis


def test_ids_are_ordered_by_time() -> None:
    clock = ManualClock()
    ids = Ids(clock)
    made = []
    for _ in range(100):
        made.append(ids.new())
        clock.advance(0.001)
    assert made == sorted(made)


def test_the_same_seed_and_time_make_the_same_ids() -> None:
    def made(seed: int) -> list[str]:
        ids = Ids(ManualClock(), random.Random(seed))
        return [ids.new() for _ in range(10)]

    assert made(1) == made(1)
    assert made(1) != made(2)


def test_ids_of_one_moment_differ() -> None:
    ids = Ids(ManualClock())
    assert len({ids.new() for _ in range(1000)}) == 1000


def test_ids_need_nothing_but_a_clock() -> None:
    assert uuid.UUID(Ids(SystemClock()).new()).version == 7


def test_ids_of_one_moment_sort_in_the_order_they_were_made() -> None:
    ids = Ids(ManualClock())
    made = [ids.new() for _ in range(1000)]
    assert made == sorted(made)
    assert len(set(made)) == 1000

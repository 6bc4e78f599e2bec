"""The one place that makes ids and random numbers, so that a simulation can replay a seed."""

from __future__ import annotations

import random
from collections.abc import Callable

from recollect.clock import Clock, to_micros

NewId = Callable[[], str]
Randomness = random.Random
SYSTEM_RANDOMNESS: Randomness = random.SystemRandom()


class Ids:
    """Makes time-ordered ids (UUID version 7) from a clock and a source of randomness."""

    def __init__(self, clock: Clock, randomness: Randomness = SYSTEM_RANDOMNESS) -> None:
        self._clock = clock
        self._randomness = randomness

    def new(self) -> str:
        millis = to_micros(self._clock.now()) // 1000
        value = (millis & 0xFFFF_FFFF_FFFF) << 80 | self._randomness.getrandbits(80)
        value = value & ~(0xF << 76) | 0x7 << 76  # version 7
        value = value & ~(0x3 << 62) | 0x2 << 62  # the variant of RFC 9562
        text = f"{value:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

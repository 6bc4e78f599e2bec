"""The one place that makes ids and random numbers, so that a simulation can replay a seed."""

from __future__ import annotations

import random
import threading
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
        self._lock = threading.Lock()
        self._last = (-1, 0)  # milliseconds, and what the newest id has beside them

    def new(self) -> str:
        """An id that sorts after those made here before, as long as the clock does not go back."""
        millis = to_micros(self._clock.now()) // 1000
        with self._lock:
            at, before = self._last
            room = 74 if at != millis else 32  # random bits; the highest stays free to count into
            drawn = self._randomness.getrandbits(room - 1)
            rest = drawn if at != millis else before + 1 + drawn
            self._last = (millis, rest)
        value = (
            (millis & 0xFFFF_FFFF_FFFF) << 80 | (rest >> 62 & 0xFFF) << 64 | rest & (1 << 62) - 1
        )
        value |= 0x7 << 76 | 0x2 << 62  # version 7, and the variant of RFC 9562
        text = f"{value:032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

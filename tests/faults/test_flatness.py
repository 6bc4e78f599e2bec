"""What the soak goes by sees a slow leak through noise, and no leak in noise alone."""

from __future__ import annotations

import random

from tests.faults.flatness import course

LOOKS = 300
LEAK = 0.05  # a look, far below the noise


def looks(leak: float) -> list[tuple[float, float]]:
    noise = random.Random(7)
    peaks = dict.fromkeys(range(0, LOOKS, 9), 40.0)
    return [
        (float(number), 60 + leak * number + noise.gauss(0, 1) + peaks.get(number, 0.0))
        for number in range(LOOKS)
    ]


def test_noise_and_peaks_are_flat() -> None:
    assert abs(course("memory", looks(0)).growth) < 1


def test_a_slow_leak_is_seen() -> None:
    seen = course("memory", looks(LEAK)).growth
    assert abs(seen - LEAK * LOOKS / 2) < 2


def test_the_warm_up_does_not_count() -> None:
    warming = [(float(number), min(number, LOOKS / 2)) for number in range(LOOKS)]
    assert course("memory", warming).growth == 0

"""Whether one method is really better than another on the same questions, or only by chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recollect.benchmarks.stopwatch import percentile
from recollect.ids import Randomness

SEED = 1
RESAMPLES = 10_000
TAIL = 0.025  # outside either end of an interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """How much one method is above another, and the interval that 95 % of resamples fall into."""

    mean: float
    low: float
    high: float


def paired_bootstrap(groups: Sequence[Sequence[float]]) -> PairedDifference:
    """The mean of differences that belong together in groups; whole groups are drawn again.

    Questions about one conversation are no independent trials, conversations are.
    """
    sums = [(sum(group), len(group)) for group in groups if group]
    randomness = Randomness(SEED)
    means = [_mean(randomness.choices(sums, k=len(sums))) for _ in range(RESAMPLES)]
    return PairedDifference(
        mean=_mean(sums), low=percentile(means, TAIL), high=percentile(means, 1 - TAIL)
    )


def _mean(sums: Iterable[tuple[float, int]]) -> float:
    totals, counts = zip(*sums, strict=True)
    return math.fsum(totals) / int(sum(counts))


def mcnemar(only_first: int, only_second: int) -> float:
    """How likely so uneven a split is by chance: of the questions that just one of two got right.

    The exact two-sided test.
    """
    total, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(math.comb(total, count) for count in range(fewer + 1))
    return min(1.0, float(2 * tail / 2**total))

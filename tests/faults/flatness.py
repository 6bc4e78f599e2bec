"""Whether a figure stays where it is, by many looks at it, of which a few may lie far out."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

WARM_UP = 1 / 2  # of the time, in which caches fill and threads come to life
POINTS_MAX = 120  # that are compared with each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A figure over time, after the warm-up."""

    name: str
    points: tuple[tuple[float, float], ...]  # seconds, figure

    @property
    def middle(self) -> float:
        return statistics.median(figure for _, figure in self.points)

    @property
    def growth(self) -> float:
        """By how much it rose from end to end, by the median of all slopes between two points.

        A few that lie far out, up or down, move a median by nothing.
        """
        step = max(1, len(self.points) // POINTS_MAX)
        pairs = itertools.combinations(self.points[::step], 2)
        slopes = [(b - a) / (later - sooner) for (sooner, a), (later, b) in pairs]
        return statistics.median(slopes) * (self.points[-1][0] - self.points[0][0])

    def __str__(self) -> str:
        figures = [figure for _, figure in self.points]
        return (
            f"{self.name}: {self.middle:,.1f} (from {min(figures):,.1f} to {max(figures):,.1f}),"
            f" {self.growth:+,.2f} over {len(figures)} looks"
        )


def course(name: str, looks: Sequence[tuple[float, float]]) -> Course:
    """Without the warm-up."""
    first, last = looks[0][0], looks[-1][0]
    warm = first + (last - first) * WARM_UP
    return Course(name=name, points=tuple(look for look in looks if look[0] >= warm))

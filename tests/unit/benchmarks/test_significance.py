"""Chance: intervals that hold what they should, and tests that agree with what is known."""

from __future__ import annotations

import pytest

from recollect.benchmarks.figures import mcnemar, paired_bootstrap


def test_an_interval_is_the_same_every_time_and_has_the_mean_in_it() -> None:
    groups = [[0.0, 0.5, 1.0], [0.5], [-0.5, 0.0]]
    found = paired_bootstrap(groups)
    assert found == paired_bootstrap(groups)
    assert found.mean == pytest.approx(0.25)
    assert found.low < found.mean < found.high


def test_groups_are_drawn_whole() -> None:
    alike = paired_bootstrap([[1.0, -1.0]] * 5)
    assert (alike.mean, alike.low, alike.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("split", "chance"),
    [((0, 0), 1.0), ((5, 5), 1.0), ((0, 5), 0.0625), ((10, 1), 0.01171875), ((1, 10), 0.01171875)],
)
def test_an_uneven_split_is_as_likely_as_the_binomial_says(
    split: tuple[int, int], chance: float
) -> None:
    assert mcnemar(*split) == pytest.approx(chance)

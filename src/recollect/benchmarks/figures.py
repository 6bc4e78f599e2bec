"""What methods are worth on the same questions: shares of the evidence, time, and differences.

How early turns and sessions are found, averaged by category; the processor time of a search, all
threads of this process, so that neither others on the machine nor a database server count; whether
one method is really better than another, or only by chance.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from recollect.benchmarks.tasks import Query, session_of
from recollect.ids import Randomness

DEEP = 10
TURN_FIGURES = ("R@5", "R@10", "nDCG@10", "MRR")
SESSION_FIGURES = ("session any@5", "session R@5", "session nDCG@10")

Figures = Mapping[str, float]
T = TypeVar("T")


def of_turns(query: Query, order: Sequence[str]) -> dict[str, float]:
    """Of turns, best first; a session stands where its first turn does.

    Where it is not known which turns hold the answer, only sessions count.
    """
    found: dict[str, float] = {}
    if query.turns:
        found = {
            "R@5": share(order[:5], query.turns),
            "R@10": share(order[:DEEP], query.turns),
            "nDCG@10": _gain(order, query.turns),
            "MRR": _reciprocal(order, query.turns),
        }
    return found | of_sessions(query, list(dict.fromkeys(map(session_of, order))))


def of_sessions(query: Query, order: Sequence[str]) -> dict[str, float]:
    """Of sessions, best first."""
    return {
        "session any@5": float(any(each in query.sessions for each in order[:5])),
        "session R@5": share(order[:5], query.sessions),
        "session nDCG@10": _gain(order, query.sessions),
    }


def average(measured: Iterable[Figures]) -> dict[str, float]:
    """The mean of each figure over the questions that have it."""
    columns: dict[str, list[float]] = defaultdict(list)
    for row in measured:
        for name, value in row.items():
            columns[name].append(value)
    return {name: sum(values) / len(values) for name, values in columns.items()}


def share(found: Iterable[str], wanted: Collection[str]) -> float:
    """How much of what is wanted was found."""
    return len(set(found).intersection(wanted)) / len(wanted)


def _gain(found: Sequence[str], wanted: Collection[str]) -> float:
    best = sum(1 / math.log2(place + 2) for place in range(min(DEEP, len(wanted))))
    gained = sum(
        1 / math.log2(place + 2) for place, each in enumerate(found[:DEEP]) if each in wanted
    )
    return gained / best


def _reciprocal(found: Sequence[str], wanted: Collection[str]) -> float:
    return next((1 / (place + 1) for place, each in enumerate(found) if each in wanted), 0.0)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What the work gives, and the milliseconds it took."""
    began = time.process_time()
    result = work()
    return result, 1000 * (time.process_time() - began)


def cpu_milliseconds() -> float:
    """What this process has used so far, all its threads."""
    return 1000 * time.process_time()


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least this share of them does not exceed."""
    place = math.ceil(share * len(values)) - 1
    return sorted(values)[max(place, 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question put to one method: its figures, and the processor time it took."""

    query: Query
    figures: Figures
    cpu_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The questions of one category: how many, and the mean of each figure."""

    questions: int
    mean: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method on one file."""

    name: str
    mean: Figures
    by_category: Mapping[str, Group]
    cpu_ms_p50: float
    cpu_ms_p95: float


def row_of(name: str, answered: Sequence[Answered]) -> Row:
    spent = [each.cpu_ms for each in answered]
    by_category: dict[str, list[Figures]] = defaultdict(list)
    for each in answered:
        by_category[each.query.category].append(each.figures)
    return Row(
        name=name,
        mean=average(each.figures for each in answered),
        by_category={
            category: Group(questions=len(figures), mean=average(figures))
            for category, figures in sorted(by_category.items())
        },
        cpu_ms_p50=percentile(spent, 0.5),
        cpu_ms_p95=percentile(spent, 0.95),
    )


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

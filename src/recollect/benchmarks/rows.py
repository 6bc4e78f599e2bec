"""One method's figures: of every question, of each category, and of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.benchmarks.metrics import Figures, average
from recollect.benchmarks.stopwatch import percentile
from recollect.benchmarks.tasks import Query


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

"""What a ranking is worth: shares of the evidence found, and how early; by turn and by session."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from recollect.benchmarks.tasks import Query, session_of

DEEP = 10
TURN_FIGURES = ("R@5", "R@10", "nDCG@10", "MRR")
SESSION_FIGURES = ("session any@5", "session R@5", "session nDCG@10")

Figures = Mapping[str, float]


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

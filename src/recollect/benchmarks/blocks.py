"""Blocks measured: how much of what questions need a model is told, within budgets of tokens.

Recall's block stands beside blocks that everybody could make of FTS5, in the same run, on the same
conversations. Questions of another data set have no answer here: their blocks should stay short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from recollect.benchmarks.arms import Arm, PoolNotes
from recollect.benchmarks.evidence import Evidence
from recollect.benchmarks.figures import (
    Answered,
    PairedDifference,
    Row,
    paired_bootstrap,
    row_of,
    timed,
)
from recollect.benchmarks.ingest import LoadedPool, Progress, SetClock
from recollect.benchmarks.tasks import Query
from recollect.models.tokens import estimate_tokens
from recollect.types.recall import Context

BUDGETS = (500, 1000, 2000, 4000)
FTS_BLOCK = "FTS5"
NEIGHBOURS_BLOCK = "FTS5 with neighbours"
BLOCK = "block"

TOLD, STANDING, TOKENS = "told", "standing", "tokens"

_METHODS = {FTS_BLOCK: Arm.FTS5, NEIGHBOURS_BLOCK: Arm.NEIGHBOURS, BLOCK: Arm.RECOLLECT}


def figure(name: str, budget: int) -> str:
    """What a figure of blocks of this budget is called."""
    return f"{name}@{budget}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """How far recall's block is above another method's, at each budget."""

    against: str
    by_budget: Mapping[int, PairedDifference]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """Questions that have no answer here: how many, and the median share of the budget used."""

    questions: int
    by_budget: Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """What stood in the blocks of one file: by method, recall's last."""

    methods: tuple[Row, ...]
    differences: tuple[Compared, ...]
    elsewhere: Unanswered | None  # none: there was no other data set to ask from


def summed_up(
    by_pool: Sequence[Mapping[str, Sequence[Answered]]], unanswered: Unanswered | None
) -> Blocks:
    """All pools of a file together; differences are by pool, or by question where there is one."""
    names = list(by_pool[0])
    return Blocks(
        methods=tuple(
            row_of(name, [each for one in by_pool for each in one[name]]) for name in names
        ),
        differences=tuple(
            Compared(
                against=name,
                by_budget={
                    budget: paired_bootstrap(_differences(by_pool, name, figure(TOLD, budget)))
                    for budget in BUDGETS
                },
            )
            for name in names[:-1]
        ),
        elsewhere=unanswered,
    )


def _differences(
    by_pool: Sequence[Mapping[str, Sequence[Answered]]], against: str, name: str
) -> list[list[float]]:
    groups = [
        [
            ours.figures[name] - theirs.figures[name]
            for ours, theirs in zip(pool[BLOCK], pool[against], strict=True)
        ]
        for pool in by_pool
    ]
    return groups if len(groups) > 1 else [[each] for each in groups[0]]


class BlockBenchmark:
    """Asks every question of a pool for a block of each budget."""

    def __init__(self, clock: SetClock, progress: Progress) -> None:
        self._clock = clock
        self._progress = progress

    def measure(self, loaded: LoadedPool) -> Iterator[tuple[str, list[Answered]]]:
        pool = loaded.pool
        evidence = Evidence(pool)
        notes = PoolNotes(pool, loaded, self._clock)
        queries = [query for query in pool.queries if query.turns]
        for name, arm in _METHODS.items():
            answered = []
            for query in queries:
                answered.append(
                    _answered(query, partial(notes.of, arm, query), evidence, loaded.turns)
                )
                self._progress(f"{pool.name}: {name}", len(answered), len(queries))
            yield name, answered

    def shares_used(
        self, loaded: LoadedPool, queries: Sequence[Query]
    ) -> list[Mapping[int, float]]:
        """How much of each budget a block takes for questions that have no answer here."""
        self._clock.set(max(turn.said_at for turn in loaded.pool.turns))
        used: list[Mapping[int, float]] = []
        for query in queries:
            used.append(
                {
                    budget: loaded.space.context(query.text, budget).token_count / budget
                    for budget in BUDGETS
                }
            )
            self._progress(f"{loaded.pool.name}: nothing to say", len(used), len(queries))
        return used


def medians(used: Sequence[Mapping[int, float]]) -> Unanswered | None:
    if not used:
        return None
    return Unanswered(
        questions=len(used),
        by_budget={budget: median(each[budget] for each in used) for budget in BUDGETS},
    )


def _answered(
    query: Query, block: Callable[[int], Context], evidence: Evidence, turns: Mapping[str, str]
) -> Answered:
    figures: dict[str, float] = {}
    cpu_ms = 0.0
    for budget in BUDGETS:
        told, took = timed(partial(block, budget))
        found = evidence.found(query.turns, told.text, told.citations, turns)
        figures[figure(TOLD, budget)] = found.told
        figures[figure(STANDING, budget)] = found.standing
        figures[figure(TOKENS, budget)] = estimate_tokens(told.text)
        cpu_ms += took / len(BUDGETS)
    return Answered(query=query, figures=figures, cpu_ms=cpu_ms)

"""Recall measured: every turn appended to a real store, every question asked of it, and scored.

Questions are asked at their own date. Rankings are of records, before anything has been learned
from them; blocks are what a model would be told when all has been. Each file is measured by itself,
with the baselines on the same texts in the same run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from recollect.benchmarks.baselines import (
    PlainFts,
    WordCount,
    spoken,
    told_by_users,
)
from recollect.benchmarks.blocks import BlockBenchmark, Blocks, medians, summed_up
from recollect.benchmarks.figures import (
    Answered,
    Figures,
    Row,
    of_sessions,
    of_turns,
    row_of,
    timed,
)
from recollect.benchmarks.ingest import Ingest, LoadedPool, Progress, SetClock
from recollect.benchmarks.tasks import BenchTask, DataSet, Query
from recollect.memory import Memory
from recollect.types.recall import EntryKind

BY_WORDS = "recall, words"
BY_WORDS_AND_VECTORS = "recall, words and vectors"
FTS_TURNS = "FTS5, turns"
FTS_SESSIONS = "FTS5, sessions of user turns"
GREP = "grep, turns"
RECALLS = frozenset({BY_WORDS, BY_WORDS_AND_VECTORS})

HITS = 10  # of a recall whose time is taken
HITS_DEEP = 100  # sessions count by their first turn, and ten of them are wanted
_KINDS = (EntryKind.RECORD,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One file: what it is, every ranking of its turns, recall's last, and what blocks told."""

    file: str
    task: BenchTask
    spaces: int
    turns: int
    questions: int
    methods: tuple[Row, ...]
    blocks: Blocks


class RecallBenchmark:
    """Measures files in one store that was empty; `clock` is the memory's own."""

    def __init__(self, memory: Memory, clock: SetClock, progress: Progress) -> None:
        self._memory = memory
        self._clock = clock
        self._progress = progress
        self._ingest = Ingest(memory, clock, progress)
        self._blocks = BlockBenchmark(clock, progress)

    def measure(self, data: DataSet, elsewhere: Sequence[Query] = ()) -> Result:
        """All figures of a file; `elsewhere` are questions that have no answer in it."""
        rankings: dict[str, list[Answered]] = defaultdict(list)
        blocks: list[Mapping[str, Sequence[Answered]]] = []
        used: list[Mapping[int, float]] = []
        for number, pool in enumerate(data.pools):
            loaded = self._ingest.append(data, pool)
            for name, answered in self._ranked(loaded):
                rankings[name] += answered
            self._ingest.learn(loaded)
            blocks.append(dict(self._blocks.measure(loaded)))
            used += self._blocks.shares_used(loaded, elsewhere[number :: len(data.pools)])
        return Result(
            file=data.file,
            task=data.task,
            spaces=len(data.pools),
            turns=data.turns,
            questions=data.questions,
            methods=tuple(row_of(name, rankings[name]) for name in _ordered(rankings)),
            blocks=summed_up(blocks, medians(used)),
        )

    def _ranked(self, loaded: LoadedPool) -> Iterator[tuple[str, list[Answered]]]:
        """Every ranking of the turns, before anything has been learned from them."""
        pool = loaded.pool
        turns, sessions = spoken(pool), told_by_users(pool)
        for name, order, measure in (
            (FTS_TURNS, PlainFts(turns).order, of_turns),
            (FTS_SESSIONS, PlainFts(sessions).order, of_sessions),
            (GREP, WordCount(turns).order, of_turns),
        ):
            yield name, [_answered(query, order, measure) for query in pool.queries]
        yield BY_WORDS, self._asked(BY_WORDS, loaded)
        if self._memory.runtime.has_embedder:
            self._ingest.embed(pool)
            yield BY_WORDS_AND_VECTORS, self._asked(BY_WORDS_AND_VECTORS, loaded)

    def _asked(self, name: str, loaded: LoadedPool) -> list[Answered]:
        pool = loaded.pool
        if pool.queries:
            self._ask(loaded, pool.queries[0])  # what is made on first use is no part of a recall
        answered = []
        for query in pool.queries:
            answered.append(self._ask(loaded, query))
            self._progress(f"{pool.name}: {name}", len(answered), len(pool.queries))
        return answered

    def _ask(self, loaded: LoadedPool, query: Query) -> Answered:
        self._clock.set(query.asked_at)
        space, text = loaded.space, query.text
        _, cpu_ms = timed(lambda: space.recall(text, HITS, kinds=_KINDS))
        order = [loaded.turns[hit.id] for hit in space.recall(text, HITS_DEEP, kinds=_KINDS)]
        return Answered(query=query, figures=of_turns(query, order), cpu_ms=cpu_ms)


def _answered(
    query: Query,
    order: Callable[[Query], Sequence[str]],
    measure: Callable[[Query, Sequence[str]], Figures],
) -> Answered:
    found, cpu_ms = timed(lambda: order(query))
    return Answered(query=query, figures=measure(query, found), cpu_ms=cpu_ms)


def _ordered(answers: Mapping[str, Sequence[Answered]]) -> list[str]:
    """Baselines first."""
    asked = [name for name, answered in answers.items() if answered]
    return sorted(asked, key=lambda name: name in RECALLS)

"""Recall measured: every turn appended to a real store, every question asked of it, and scored.

Questions are asked at their own date, of records alone, since nothing has been learned from them.
Each file is measured by itself, with the baselines on the same texts in the same run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from recollect.benchmarks.baselines import (
    PlainFts,
    VectorsAlone,
    WordCount,
    spoken,
    told_by_users,
)
from recollect.benchmarks.metrics import Figures, average, of_sessions, of_turns, share
from recollect.benchmarks.stopwatch import percentile, timed
from recollect.benchmarks.tasks import DataSet, Pool, Query, Split, Task, Turn
from recollect.collection import Message
from recollect.errors import InvalidValue
from recollect.memory import Memory
from recollect.recollection import EntryKind
from recollect.space import Space

BY_WORDS = "recall, words"
BY_WORDS_AND_VECTORS = "recall, words and vectors"
FTS_TURNS = "FTS5, turns"
FTS_SESSIONS = "FTS5, sessions of user turns"
GREP = "grep, turns"
VECTORS = "vectors alone, turns"
RECALLS = frozenset({BY_WORDS, BY_WORDS_AND_VECTORS})

TOKENS = "context tokens"
CONTEXT_FIGURES = ("context R", TOKENS)
HITS = 10  # of a recall whose time is taken
HITS_DEEP = 100  # sessions count by their first turn, and ten of them are wanted
CONTEXT_TOKENS = 800
_KINDS = (EntryKind.RECORD,)

# What is being done, how far it is, and how far it goes.
Progress = Callable[[str, int, int], None]


class SetClock:
    """A clock that shows the time it was set to."""

    def __init__(self) -> None:
        self._now = datetime(2020, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def set(self, moment: datetime) -> None:
        self._now = moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One question put to one method: its figures, and the processor time it took."""

    query: Query
    figures: Figures
    cpu_ms: float


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One file: what it is, and every method on it, recall last."""

    file: str
    task: Task
    split: Split
    spaces: int
    turns: int
    questions: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A pool in its space. `turns` are the turns of records, by `session:seq`."""

    pool: Pool
    space: Space
    turns: Mapping[str, str]


class RecallBenchmark:
    """Measures files in one store that was empty; `clock` is the memory's own."""

    def __init__(self, memory: Memory, clock: SetClock, progress: Progress) -> None:
        if memory.spaces(1):
            raise InvalidValue("the store holds something; a benchmark needs an empty one")
        self._memory = memory
        self._clock = clock
        self._progress = progress

    def measure(self, data: DataSet) -> Result:
        answers: dict[str, list[Answered]] = defaultdict(list)
        for pool in data.pools:
            for name, answered in self._measured(data, pool):
                answers[name] += answered
        return Result(
            file=data.file,
            task=data.task,
            split=data.split,
            spaces=len(data.pools),
            turns=data.turns,
            questions=data.questions,
            rows=tuple(_row(name, answers[name]) for name in _ordered(answers)),
        )

    def _measured(self, data: DataSet, pool: Pool) -> Iterator[tuple[str, list[Answered]]]:
        loaded = self._load(data, pool)
        turns, sessions = spoken(pool), told_by_users(pool)
        for name, order, measure in (
            (FTS_TURNS, PlainFts(turns).order, of_turns),
            (FTS_SESSIONS, PlainFts(sessions).order, of_sessions),
            (GREP, WordCount(turns).order, of_turns),
        ):
            yield name, [_answered(query, order, measure) for query in pool.queries]
        yield BY_WORDS, self._asked(BY_WORDS, loaded)
        if self._memory.runtime.has_embedder:
            self._embed(pool)
            yield VECTORS, self._by_vectors(loaded)
            yield BY_WORDS_AND_VECTORS, self._asked(BY_WORDS_AND_VECTORS, loaded)

    def _load(self, data: DataSet, pool: Pool) -> Loaded:
        """Append every turn, at its time."""
        space = self._memory.space(f"bench:{data.file}:{pool.name}")
        batch = self._memory.settings.batch_records_max
        turns: dict[str, str] = {}
        for session, group in groupby(pool.turns, key=lambda turn: turn.session):
            said = list(group)
            handle = space.session((data.task.lower(), session), source="bench")
            for start in range(0, len(said), batch):
                part = said[start : start + batch]
                self._clock.set(part[-1].said_at)
                records = handle.append_many([_message(turn) for turn in part])
                for turn, record in zip(part, records, strict=True):
                    turns[f"{record.session_id}:{record.seq}"] = turn.id
            self._progress(f"{pool.name}: appended", len(turns), len(pool.turns))
        return Loaded(pool=pool, space=space, turns=turns)

    def _embed(self, pool: Pool) -> None:
        made = 0
        while looked_at := self._memory.pipeline.embed_some():
            made += looked_at
            self._progress(f"{pool.name}: embedded", made, len(pool.turns))

    def _by_vectors(self, loaded: Loaded) -> list[Answered]:
        meaning = self._memory._recallers.meaning()
        assert meaning is not None
        pool, store = loaded.pool, self._memory.store
        alone = VectorsAlone(meaning, store, loaded.space.name, pool, loaded.turns)
        return [_answered(query, alone.order, of_turns) for query in pool.queries]

    def _asked(self, name: str, loaded: Loaded) -> list[Answered]:
        pool = loaded.pool
        if pool.queries:
            self._ask(loaded, pool.queries[0])  # what is made on first use is no part of a recall
        answered = []
        for query in pool.queries:
            answered.append(self._ask(loaded, query))
            self._progress(f"{pool.name}: {name}", len(answered), len(pool.queries))
        return answered

    def _ask(self, loaded: Loaded, query: Query) -> Answered:
        self._clock.set(query.asked_at)
        space, text = loaded.space, query.text
        _, cpu_ms = timed(lambda: space.recall(text, HITS, kinds=_KINDS))
        order = [loaded.turns[hit.id] for hit in space.recall(text, HITS_DEEP, kinds=_KINDS)]
        block = space.context(text, CONTEXT_TOKENS, kinds=_KINDS)
        figures = of_turns(query, order)
        if query.turns:
            cited = (loaded.turns[citation.hit.id] for citation in block.citations)
            figures["context R"] = share(cited, query.turns)
        figures[TOKENS] = block.token_count
        return Answered(query=query, figures=figures, cpu_ms=cpu_ms)


def _message(turn: Turn) -> Message:
    named = {"name": turn.speaker} if turn.speaker else {}
    return Message(
        message={"role": turn.role, "content": turn.text, **named}, at=turn.said_at, key=turn.id
    )


def _answered(
    query: Query,
    order: Callable[[Query], Sequence[str]],
    measure: Callable[[Query, Sequence[str]], Figures],
) -> Answered:
    found, cpu_ms = timed(lambda: order(query))
    return Answered(query=query, figures=measure(query, found), cpu_ms=cpu_ms)


def _row(name: str, answered: Sequence[Answered]) -> Row:
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


def _ordered(answers: Mapping[str, Sequence[Answered]]) -> list[str]:
    """Baselines first."""
    asked = [name for name, answered in answers.items() if answered]
    return sorted(asked, key=lambda name: name in RECALLS)

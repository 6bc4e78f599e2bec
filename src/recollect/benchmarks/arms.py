"""What a model may answer from: a block of Recollect's, of FTS5's, or all that was said.

Each arm turns a question into notes, within the same budget where it has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from recollect.benchmarks.baselines import FtsBlock, transcript
from recollect.benchmarks.ingest import Ingest, LoadedPool, Progress, SetClock
from recollect.benchmarks.tasks import DataSet, Pool, Query
from recollect.types.recall import Context


class Arm(StrEnum):
    """Where the notes of an answer come from."""

    RECOLLECT = "recollect"
    FTS5 = "fts5"
    NEIGHBOURS = "neighbours"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One question put to one arm, and the notes that it is to be answered from."""

    file: str
    query: Query
    arm: Arm
    notes: str


class PoolNotes:
    """The notes of one pool, by arm. `loaded` is the pool in a memory that has learned from it."""

    def __init__(self, pool: Pool, loaded: LoadedPool | None, clock: SetClock) -> None:
        self._pool = pool
        self._loaded = loaded
        self._clock = clock
        self._plain, self._beside = FtsBlock(pool), FtsBlock(pool, beside=1)
        self._whole: dict[frozenset[str], str] = {}  # a conversation is long, its questions many

    def of(self, arm: Arm, query: Query, budget: int) -> Context:
        """The notes for a question; only Recollect's say where their lines come from."""
        match arm:
            case Arm.RECOLLECT:
                assert self._loaded is not None
                self._clock.set(query.asked_at)
                return self._loaded.space.context(query.text, budget)
            case Arm.FTS5:
                return Context(text=self._plain.text(query, budget))
            case Arm.NEIGHBOURS:
                return Context(text=self._beside.text(query, budget))
            case Arm.WHOLE:
                if query.asked_of not in self._whole:
                    self._whole[query.asked_of] = self._all_said(query)
                return Context(text=self._whole[query.asked_of])

    def _all_said(self, query: Query) -> str:
        """The whole conversation, or the sessions that the question is asked of."""
        wanted = query.asked_of
        return transcript(turn for turn in self._pool.turns if not wanted or turn.session in wanted)


def trials(
    data: DataSet, arms: Sequence[Arm], budget: int, ingest: Ingest, progress: Progress
) -> list[list[Trial]]:
    """The trials of each question. Only what Recollect's arm needs goes through a store."""
    found = []
    for pool in data.pools:
        loaded = None
        if Arm.RECOLLECT in arms:
            loaded = ingest.append(data, pool)
            ingest.learn(loaded)
        notes = PoolNotes(pool, loaded, ingest.clock)
        for number, query in enumerate(pool.queries, 1):
            found.append(
                [
                    Trial(
                        file=data.file,
                        query=query,
                        arm=arm,
                        notes=notes.of(arm, query, budget).text,
                    )
                    for arm in arms
                ]
            )
            progress(f"{pool.name}: notes", number, len(pool.queries))
    return found

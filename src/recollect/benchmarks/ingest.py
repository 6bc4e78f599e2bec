"""Stores public conversations as an agent's memory would: appended at their time, then learned.

An empty store gets a space for each pool; the measurement asks what it contains.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from recollect.benchmarks.tasks import DataSet, Pool, TaskTurn
from recollect.collection import Message
from recollect.errors import InvalidValue
from recollect.memory import Memory
from recollect.session import Session
from recollect.space import Space
from recollect.types.records import Record

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
class LoadedPool:
    """A pool in its space. `turns` are the turns of records, by `session:seq`."""

    pool: Pool
    space: Space
    turns: Mapping[str, str]


class Ingest:
    """Puts pools into a store that was empty; `clock` is the memory's own."""

    def __init__(self, memory: Memory, clock: SetClock, progress: Progress) -> None:
        if memory.spaces(1):
            raise InvalidValue("the store holds something; a benchmark needs an empty one")
        self._memory = memory
        self.clock = clock
        self._progress = progress

    def append(self, data: DataSet, pool: Pool) -> LoadedPool:
        """Append every turn, at its time."""
        space = self._memory.space(f"bench:{data.file}:{pool.name}")
        batch = self._memory.settings.batch_records_max
        turns: dict[str, str] = {}
        for session, group in groupby(pool.turns, key=lambda turn: turn.session):
            said = list(group)
            handle = space.session((data.task.lower(), session), source="bench")
            records = append(handle, [_message(turn) for turn in said], self.clock, batch)
            for turn, record in zip(said, records, strict=True):
                turns[f"{record.session_id}:{record.seq}"] = turn.id
            self._progress(f"{pool.name}: appended", len(turns), len(pool.turns))
        return LoadedPool(pool=pool, space=space, turns=turns)

    def learn(self, loaded: LoadedPool) -> None:
        """Have everything that is due done, as a worker would when the last turn was said."""
        sessions = len({turn.session for turn in loaded.pool.turns})
        self._progress(f"{loaded.pool.name}: learned from sessions", 0, sessions)
        self.clock.set(max(turn.said_at for turn in loaded.pool.turns))
        self._memory.work(all=True, space=loaded.space.name)
        if self._memory.runtime.has_embedder:
            self.embed(loaded.pool)
        self._progress(f"{loaded.pool.name}: learned from sessions", sessions, sessions)

    def embed(self, pool: Pool) -> None:
        made = 0
        while looked_at := self._memory.pipeline.embed_some():
            made += looked_at
            self._progress(f"{pool.name}: embedded", made, len(pool.turns))


def append(
    session: Session, messages: Sequence[Message], clock: SetClock, size: int
) -> list[Record]:
    """Append messages at their time, so many at once."""
    stored: list[Record] = []
    for start in range(0, len(messages), size):
        part = messages[start : start + size]
        assert isinstance(part[-1].at, datetime)
        clock.set(part[-1].at)
        stored += session.append_many(part)
    return stored


def _message(turn: TaskTurn) -> Message:
    named = {"name": turn.speaker} if turn.speaker else {}
    return Message(
        message={"role": turn.role, "content": turn.text, **named}, at=turn.said_at, key=turn.id
    )

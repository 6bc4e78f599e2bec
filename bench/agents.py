"""What agents cost: a turn outside the model, sleeping, and the way from a word to a run."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import recollect
from bench.report import Line, skipped
from bench.settings import Run
from bench.stores import sqlite_address, with_schema
from recollect.agents.profile import AgentProfile, Hooks, TurnStart
from recollect.agents.system import AgentSystem
from recollect.benchmarks.zipf import Language
from recollect.descriptors import UserAgent, cache_key
from recollect.models.protocol import Completion, Request, Usage
from recollect.types.agents import IDLE, Signal
from recollect.types.records import JobKind, SessionBirth

TURN_GROUP = "a turn of an agent, with a model that answers at once"
SLEEP_GROUP = "10,000 agents that sleep"
WAKE_GROUP = "from a word to the beginning of its turn"
TURN_MS_MAX, SLEEP_MB_MAX, SLEEP_MS_MAX, WAKE_MS_MAX = 10.0, 50.0, 30.0, 20.0


class InstantModel:
    """Answers at once; all that is measured is what stands around it."""

    name = "bench:instant"
    window_tokens = 128_000

    def complete(self, request: Request) -> Completion:
        usage = Usage(input_tokens=len(request.messages), output_tokens=5)
        return Completion(text="Noted, thank you.", usage=usage, model=self.name)

    def close(self) -> None:
        pass


def measure_agents(run: Run) -> Iterator[Line]:
    """Turns after a short and a long history, sleepers, and waking, on both databases."""
    yield from _measured(run, "SQLite", lambda name: sqlite_address(run.directory / f"{name}.db"))
    url = run.postgres_url
    if url is None:
        yield skipped(TURN_GROUP, "PostgreSQL", run.postgres_missing)
    else:
        yield from _measured(run, "PostgreSQL", lambda name: with_schema(url, f"bench_{name}"))


def _measured(run: Run, database: str, address: Callable[[str], str]) -> Iterator[Line]:
    for count in (100, run.scaled(10_000, 1000)):
        yield _turn(run, database, address(f"agents_{count}"), count)
    yield _wake(run, database, address("agents_wake"))
    yield from _sleepers(run, database, address("agents_sleep"))


@contextmanager
def _system(
    address: str, hooks: Hooks | None = None
) -> Iterator[tuple[recollect.Memory, AgentSystem]]:
    settings = {"pipeline": "none", "mark_threshold": 100_000}
    with recollect.open(address, settings=settings, model=InstantModel()) as memory:
        yield memory, memory.agents(default=AgentProfile(), hooks=hooks)


def _turn(run: Run, database: str, address: str, count: int) -> Line:
    turns = run.scaled(100, 20)
    with _system(address) as (memory, system):
        session = memory.space().session("main", "assistant")
        language = Language()
        texts = language.texts(1)
        for start in range(0, count, 500):
            messages = [
                {"role": "user" if n % 2 == 0 else "assistant", "content": next(texts)}
                for n in range(start, min(start + 500, count))
            ]
            session.append_many(messages)
        system.start(learn=False)
        for n in range(5):  # what the first turns have to load and compact is not a turn's cost
            system.ask("assistant", f"warming up {n}")
        samples = []
        questions = language.questions(2)
        for _ in range(turns):
            cpu = time.process_time()
            system.ask("assistant", next(questions))
            samples.append((time.process_time() - cpu) * 1000)
        system.stop()
    return Line(
        group=TURN_GROUP,
        name=f"{database}: CPU per turn after {count:,} records",
        unit="ms",
        measured=statistics.median(samples),
        target=TURN_MS_MAX,
        is_ratio=False,
        note="the median; recall and every write included",
    )


def _wake(run: Run, database: str, address: str) -> Line:
    began: list[float] = []

    def note(_: TurnStart) -> None:
        began.append(time.perf_counter())

    hooks = Hooks(before=note)
    samples = []
    with _system(address, hooks) as (_, system):
        system.start(learn=False)
        for n in range(run.scaled(100, 20)):
            ticket = system.post("assistant", f"hello {n}")
            posted = time.perf_counter()
            ticket.result(30)
            samples.append(max(began[-1] - posted, 0.0) * 1000)
        system.stop()
    return Line(
        group=WAKE_GROUP,
        name=f"{database}: stored until run",
        unit="ms",
        measured=statistics.median(samples),
        target=WAKE_MS_MAX,
        is_ratio=False,
        note="wall time, the median",
    )


def _sleepers(run: Run, database: str, address: str) -> Iterator[Line]:
    count, seconds = run.scaled(10_000, 500), run.scaled(30, 3)
    with _system(address) as (memory, system):
        _put_to_sleep(memory, count)
        before = _resident_mb()
        system.start(learn=True)
        time.sleep(2)  # the scan at the start is not sleep
        cpu = time.process_time()
        time.sleep(seconds)
        spent = (time.process_time() - cpu) * 1000 * 60 / seconds
        grown = _resident_mb() - before
        system.stop()
    note = f"{count:,} agents, over {seconds} s"
    yield Line(
        group=SLEEP_GROUP,
        name=f"{database}: memory of the process that hosts them",
        unit="MB",
        measured=max(grown, 0.0),
        target=SLEEP_MB_MAX,
        is_ratio=False,
        note=note,
    )
    yield Line(
        group=SLEEP_GROUP,
        name=f"{database}: CPU per minute, with the worker",
        unit="ms",
        measured=spent,
        target=SLEEP_MS_MAX,
        is_ratio=False,
        note=note,
    )


def _put_to_sleep(memory: recollect.Memory, count: int) -> None:
    store, settings = memory.store, memory.settings
    now = memory.status(limit=0).at
    numbers = iter(range(count * 10))

    def new_id() -> str:
        return f"bench-{next(numbers)}"

    agent = cache_key(UserAgent("assistant"))
    for n in range(count):
        birth = SessionBirth(source="agent")
        ref = store.sessions.open_key("default", f"chat:{n}:main", agent, birth, now, new_id)
        signal = Signal(name=IDLE, due_at=now - timedelta(seconds=1))
        store.agents.set_signal(ref, signal, JobKind.AGENT, now)
    while due := store.agents.due_signals(now, 500):
        for each in due:
            store.agents.deliver(each, settings.life_policy, now, new_id)


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1_048_576

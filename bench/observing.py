"""What it costs to be observed: an append and a recall with figures, spans and the audit on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import cycle, islice

import recollect
from bench.measure import Cost, take_turns
from bench.recalling import fill
from bench.report import Line
from bench.settings import Run
from bench.stores import KEY, SETTINGS, SPACE, open_memory, sqlite_address
from bench.texts import make_texts
from recollect.benchmarks.zipf import Language
from recollect.errors import MissingExtra

RECORDS, FACTS, QUESTIONS = 10_000, 1_000, 10
ASKED = 3  # the seed of the questions
METRICS_MAX = 1.1

# What is on, and the most that it may cost against nothing of it.
OBSERVED = {
    "nothing": (SETTINGS, None),
    "metrics": (replace(SETTINGS, metrics=True), METRICS_MAX),
    "traces, nobody collects them": (replace(SETTINGS, traces=True), None),
    "audit of writes": (replace(SETTINGS, audit="writes"), None),
    "audit of all": (replace(SETTINGS, audit="all"), None),
}


def measure_observing(run: Run) -> Iterator[Line]:
    """The same calls on the same file, each by a memory that is observed in another way."""
    address = sqlite_address(run.directory / "observing.db", synchronous="off")
    records, facts = run.scaled(RECORDS, RECORDS // 10), run.scaled(FACTS, FACTS // 10)
    with open_memory(address) as memory:
        fill(memory.space(SPACE), Language(), records, facts)
    with ExitStack() as stack:
        spaces: dict[str, recollect.Space] = {}
        for name, (settings, _) in OBSERVED.items():
            with suppress(MissingExtra):  # of the spans
                memory = stack.enter_context(recollect.open(address, settings=settings))
                spaces[name] = memory.space(SPACE)
        yield from _lines("append of one record", _appends(run, spaces))
        yield from _lines(
            f"recall among {facts:,} facts and {records:,} records", _recalls(run, spaces)
        )


def _appends(run: Run, spaces: dict[str, recollect.Space]) -> dict[str, Cost]:
    texts = cycle(make_texts(100))
    sessions = {
        name: space.session(f"{KEY}:{number}")
        for number, (name, space) in enumerate(spaces.items())
    }

    def append(session: recollect.Session) -> object:
        return session.append("user", next(texts))

    return take_turns(
        {name: partial(append, session) for name, session in sessions.items()},
        repetitions=run.scaled(60, 10),
        calls=50,
    )


def _recalls(run: Run, spaces: dict[str, recollect.Space]) -> dict[str, Cost]:
    asked = list(islice(Language().questions(ASKED), QUESTIONS))

    def recall(space: recollect.Space, questions: Iterator[str]) -> object:
        return space.recall(next(questions))

    return take_turns(
        {name: partial(recall, space, cycle(asked)) for name, space in spaces.items()},
        repetitions=run.scaled(60, 8),
        calls=QUESTIONS,
    )


def _lines(what: str, costs: dict[str, Cost]) -> Iterator[Line]:
    nothing = costs.pop("nothing")
    for name, cost in costs.items():
        yield Line(
            group="observed, SQLite without syncs (CPU)",
            name=f"{what}: {name}",
            unit="µs",
            measured=cost.cpu_us,
            limit=nothing.cpu_us,
            target=OBSERVED[name][1],
            note="beside it, observed by nobody",
        )

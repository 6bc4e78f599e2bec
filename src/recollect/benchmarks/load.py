"""Load as many people make it: an open loop, in steps, until a store or a server cannot keep up.

What is asked for, of which space and when is drawn before a step begins. An operation that has to
wait its turn has waited since its time came: nobody slows down because the server does.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from recollect.benchmarks.figures import cpu_milliseconds, percentile
from recollect.benchmarks.plot import Panel
from recollect.benchmarks.zipf import Language
from recollect.clock import ticks
from recollect.errors import InvalidValue, RecollectError
from recollect.ids import Randomness
from recollect.memory import Memory

GROWTH = 2.0  # of the rate, from step to step
OVERTIME = 1.1  # a step that takes so many times as long as it should cannot keep up
GIVEN_UP = 2.0  # and is ended after so many times
OPERATIONS_MAX = 1_000_000  # of one step
TEXTS = 5_000
CONVERSATIONS = 20  # of each space
ERASABLE_MAX = 100  # records of each space that may still be forgotten
HTTP_SECONDS = 60.0
QUANTILES = (0.5, 0.95, 0.99)


class LoadOperation(StrEnum):
    """What people do."""

    APPEND = "append"
    RECALL = "recall"
    CONTEXT = "context"
    FORGET = "forget"  # a record of before


SHARES: Mapping[LoadOperation, int] = {
    LoadOperation.APPEND: 60,
    LoadOperation.RECALL: 25,
    LoadOperation.CONTEXT: 10,
    LoadOperation.FORGET: 5,
}


class LoadTarget(Protocol):
    """Where it is done. Any error of it counts as a failure."""

    def append(self, space: str, key: str, text: str) -> str:
        """Return the id of the record."""
        ...

    def recall(self, space: str, query: str) -> object: ...

    def context(self, space: str, query: str) -> object: ...

    def forget(self, space: str, record: str) -> object: ...


class LibraryTarget:
    """Implements `LoadTarget` by the library, in this process."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def append(self, space: str, key: str, text: str) -> str:
        record = self._memory.space(space).session(key).append("user", text)
        return f"{record.session_id}:{record.seq}"

    def recall(self, space: str, query: str) -> object:
        return self._memory.space(space).recall(query)

    def context(self, space: str, query: str) -> object:
        return self._memory.space(space).context(query)

    def forget(self, space: str, record: str) -> object:
        return self._memory.space(space).forget(record=record)


class HttpTarget:
    """Implements `LoadTarget` over HTTP, by connections that are kept, to one server and the next.

    InvalidValue: an address is none.
    """

    def __init__(self, urls: Sequence[str], secret: str) -> None:
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.netloc:
                raise InvalidValue(f"not the URL of a server: {url!r}; it is http://host:port")
        self._urls = itertools.cycle(urls)
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        self._idle: deque[http.client.HTTPConnection] = deque()

    def append(self, space: str, key: str, text: str) -> str:
        said = {"key": key, "messages": [{"role": "user", "content": text}]}
        stored = self._post(space, "append", said)
        return f"{stored['session_id']}:{stored['records'][0]['seq']}"

    def recall(self, space: str, query: str) -> object:
        return self._post(space, "recall", {"query": query})

    def context(self, space: str, query: str) -> object:
        return self._post(space, "context", {"query": query})

    def forget(self, space: str, record: str) -> object:
        return self._post(space, "forget", {"record": record})

    def close(self) -> None:
        while self._idle:
            self._idle.popleft().close()

    def _post(self, space: str, verb: str, body: Any) -> Any:
        try:
            connection = self._idle.popleft()
        except IndexError:
            parts = urlsplit(next(self._urls))
            secure = parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            connection = kind(parts.netloc, timeout=HTTP_SECONDS)
        path = f"/v1/spaces/{quote(space, safe='')}/{verb}"
        try:
            connection.request("POST", path, json.dumps(body).encode(), self._headers)
            answer = connection.getresponse()
            said = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        self._idle.append(connection)
        if answer.status not in (200, 201):
            raise InvalidValue(f"{verb}: {answer.status}")
        return json.loads(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadScenario:
    """How much is asked, and of what."""

    spaces: int
    seconds: float  # of a step
    rate: float  # operations a second, of the first step
    steps: int
    connections: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long one operation took, from the time at which it was due; in milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Latency:
        p50, p95, p99 = (1000 * percentile(seconds, share) for share in QUANTILES)
        return cls(count=len(seconds), p50=p50, p95=p95, p99=p99)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStep:
    """What came of one rate."""

    rate: float  # that was asked for
    rate_done: float
    undone: int  # when it was given up
    failures: Mapping[str, int]  # by class
    latency: Mapping[LoadOperation, Latency]
    cpu: Mapping[str, float | None]  # milliseconds an operation, by process
    is_saturated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    at: float  # seconds from the beginning
    operation: LoadOperation
    space: str
    key: str
    text: int


class LoadRun:
    """Goes up a rate at a time. `children` are processes whose CPU counts, by name."""

    def __init__(
        self, target: LoadTarget, plan: LoadScenario, children: Mapping[str, Sequence[int]]
    ) -> None:
        self._target = target
        self._plan = plan
        self._children = children
        self._randomness = Randomness(plan.seed)
        language = Language()
        self._texts = list(itertools.islice(language.texts(plan.seed), TEXTS))
        self._questions = list(itertools.islice(language.questions(plan.seed), TEXTS))
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, plan.spaces + 1)))
        self._erasable: defaultdict[str, deque[str]] = defaultdict(
            lambda: deque(maxlen=ERASABLE_MAX)
        )

    def steps(self) -> Iterator[LoadStep]:
        """Each step as it is over; the last one is the first that cannot keep up."""
        # What is loaded with the first of each is no part of anybody's load.
        self._target.append("load-0", "warm-up", self._texts[0])
        self._target.recall("load-0", self._questions[0])
        self._target.context("load-0", self._questions[0])
        for number in range(self._plan.steps):
            step = self._step(self._plan.rate * GROWTH**number)
            yield step
            if step.is_saturated:
                return

    def _step(self, rate: float) -> LoadStep:
        arrivals = self._arrivals(rate)
        before, began = self._cpu(), ticks()
        done, failures = self._run(arrivals)
        elapsed, after = ticks() - began, self._cpu()
        count = sum(len(each) for each in done.values())
        undone = len(arrivals) - count - sum(failures.values())
        meant = max(self._plan.seconds, arrivals[-1].at)
        return LoadStep(
            rate=rate,
            rate_done=count / elapsed,
            undone=undone,
            failures=failures,
            latency={each: Latency.of(done[each]) for each in LoadOperation if each in done},
            cpu={name: _each(before[name], after[name], count) for name in before},
            is_saturated=undone > 0 or elapsed > OVERTIME * meant,
        )

    def _run(
        self, arrivals: Sequence[_Arrival]
    ) -> tuple[Mapping[LoadOperation, list[float]], Mapping[str, int]]:
        """Do all of it, each when its time has come; what took how long, and what failed."""
        waiting, lock, began = iter(arrivals), threading.Lock(), ticks()
        end = began + GIVEN_UP * max(self._plan.seconds, arrivals[-1].at)
        pause = threading.Event()  # nobody sets it
        done: defaultdict[LoadOperation, list[float]] = defaultdict(list)
        failures: defaultdict[str, int] = defaultdict(int)

        def work(_: int) -> None:
            while ticks() < end:
                with lock:
                    each = next(waiting, None)
                if each is None:
                    return
                pause.wait(max(0.0, began + each.at - ticks()))
                try:
                    operation = self._do(each)
                except (RecollectError, OSError, http.client.HTTPException) as error:
                    with lock:
                        failures[type(error).__name__] += 1
                else:
                    taken = ticks() - began - each.at
                    with lock:
                        done[operation].append(taken)

        with ThreadPoolExecutor(self._plan.connections, "recollect-load") as threads:
            list(threads.map(work, range(self._plan.connections)))
        return done, failures

    def _arrivals(self, rate: float) -> list[_Arrival]:
        count = round(rate * self._plan.seconds)
        if not 0 < count <= OPERATIONS_MAX:
            raise InvalidValue(
                f"a step of {rate:g} operations a second for {self._plan.seconds:g} s has {count:,}"
                f" of them; give a --rate and --seconds that make 1 to {OPERATIONS_MAX:,}"
            )
        draw = self._randomness
        times = itertools.accumulate(draw.expovariate(rate) for _ in range(count))
        operations = draw.choices(list(SHARES), list(SHARES.values()), k=count)
        spaces = draw.choices(range(self._plan.spaces), cum_weights=self._weights, k=count)
        return [
            _Arrival(
                at=at,
                operation=operation,
                space=f"load-{space}",
                key=f"talk:{draw.randrange(CONVERSATIONS)}",
                text=draw.randrange(TEXTS),
            )
            for at, operation, space in zip(times, operations, spaces, strict=True)
        ]

    def _do(self, each: _Arrival) -> LoadOperation:
        """Do it; return what was done: where nothing can be forgotten yet, something is said."""
        match each.operation:
            case LoadOperation.RECALL:
                self._target.recall(each.space, self._questions[each.text])
            case LoadOperation.CONTEXT:
                self._target.context(each.space, self._questions[each.text])
            case LoadOperation.FORGET if erasable := self._erasable[each.space]:
                try:
                    record = erasable.popleft()
                except IndexError:  # another thread was first
                    return self._do_append(each)
                self._target.forget(each.space, record)
            case _:
                return self._do_append(each)
        return each.operation

    def _do_append(self, each: _Arrival) -> LoadOperation:
        record = self._target.append(each.space, each.key, self._texts[each.text])
        self._erasable[each.space].append(record)
        return LoadOperation.APPEND

    def _cpu(self) -> dict[str, float | None]:
        counted = {name: _sum(map(_cpu_of, pids)) for name, pids in self._children.items()}
        return {"client": cpu_milliseconds(), **counted}


def panels(steps: Sequence[LoadStep]) -> list[Panel]:
    """Latencies by rate, a panel for each operation."""
    names = ("p50", "p99")
    made = []
    for operation in LoadOperation:
        groups = {
            f"{step.rate:,.0f}/s": {name: getattr(step.latency[operation], name) for name in names}
            for step in steps
            if operation in step.latency
        }
        if groups:
            most = max(max(each.values()) for each in groups.values())
            made.append(
                Panel(
                    title=f"{operation.value}: milliseconds, by operations asked for",
                    groups=groups,
                    series=names,
                    ours=frozenset(names),
                    most=most,
                )
            )
    return made


def _each(before: float | None, after: float | None, count: int) -> float | None:
    return None if before is None or after is None or not count else (after - before) / count


def _sum(values: Iterator[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(each for each in known if each is not None)


def _cpu_of(pid: int) -> float | None:
    """Milliseconds that a process has used; None: this system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")

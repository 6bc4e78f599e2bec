"""Takes the CPU and wall time of calls: contenders take turns, each one's best repetition counts.

Other work on the machine only ever adds time, so that the minimum of many short repetitions is the
steadiest figure there is; taking turns gives every contender the same good and bad moments.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Action = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call cost, in microseconds: the best repetition, and the middle one."""

    cpu_us: float
    wall_us: float
    cpu_median_us: float


def take_turns(
    contenders: Mapping[str, Action],
    *,
    repetitions: int,
    calls: int,
    before: Mapping[str, Action] | None = None,
) -> dict[str, Cost]:
    """Run every contender `calls` times per repetition, in changing order.

    What a contender needs `before` a repetition is not timed.
    """
    preparations = before or {}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    names = list(contenders)
    for repetition in range(repetitions + 1):
        for name in names[repetition % len(names) :] + names[: repetition % len(names)]:
            if name in preparations:
                preparations[name]()
            timed = _timed(contenders[name], calls)
            if repetition:  # the first one warms up
                taken[name].append(timed)
    return {name: _cost(samples) for name, samples in taken.items()}


def _timed(action: Action, calls: int) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        action()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu / calls * 1e6, wall / calls * 1e6


def _cost(samples: list[tuple[float, float]]) -> Cost:
    cpu = [sample[0] for sample in samples]
    return Cost(
        cpu_us=min(cpu),
        wall_us=min(sample[1] for sample in samples),
        cpu_median_us=statistics.median(cpu),
    )

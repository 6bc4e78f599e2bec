"""What the server has done, as Prometheus reads it; written by hand, since it is a few lines.

Labels are route templates, methods and statuses: nothing of what anybody sent.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping

from recollect.domain import JobState
from recollect.memory import Memory

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MICROS = 1_000_000


class Metrics:
    """Requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[method, route, status] += 1
            self._buckets[route][bisect_left(BUCKETS, seconds)] += 1
            self._seconds[route] += seconds

    def text(self, memory: Memory) -> str:
        status = memory.status(limit=0)
        spent = status.spent_today
        lines = [*self._request_lines(), *self._latency_lines()]
        states = {state.value: status.job_counts.get(state, 0) for state in JobState}
        lines += _gauge("recollect_jobs", "Jobs by state.", "state", states)
        told = {
            "recollect_sessions_marked": ("Sessions that are marked.", status.marked_count),
            "recollect_sessions_waiting": (
                "Sessions with records that are not marked.",
                status.waiting_count,
            ),
            "recollect_spent_tokens_today": ("Tokens used by models today.", spent.tokens),
            "recollect_spent_calls_today": ("Model calls made today.", spent.calls),
            "recollect_spent_cost_today": (
                "What they cost, as far as prices are known.",
                (spent.cost_micros or 0) / MICROS,
            ),
        }
        for name, (meaning, value) in told.items():
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join(lines) + "\n"

    def _request_lines(self) -> Iterator[str]:
        name = "recollect_http_requests_total"
        yield f"# HELP {name} Requests by method, route and status."
        yield f"# TYPE {name} counter"
        with self._lock:
            counted = sorted(self._requests.items())
        for (method, route, status), count in counted:
            labels = f'method="{_escaped(method)}",route="{_escaped(route)}",status="{status}"'
            yield f"{name}{{{labels}}} {count}"

    def _latency_lines(self) -> Iterator[str]:
        name = "recollect_http_request_seconds"
        yield f"# HELP {name} How long requests took."
        yield f"# TYPE {name} histogram"
        with self._lock:
            taken = sorted((route, list(counts)) for route, counts in self._buckets.items())
            seconds = dict(self._seconds)
        for route, counts in taken:
            label, total = f'route="{_escaped(route)}"', 0
            for bound, count in zip((*BUCKETS, "+Inf"), counts, strict=True):
                total += count
                yield f'{name}_bucket{{{label},le="{bound}"}} {total}'
            yield f"{name}_sum{{{label}}} {seconds[route]:.6f}"
            yield f"{name}_count{{{label}}} {total}"


def _gauge(name: str, meaning: str, label: str, values: Mapping[str, float]) -> list[str]:
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
    return lines + [f'{name}{{{label}="{_escaped(of)}"}} {value}' for of, value in values.items()]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

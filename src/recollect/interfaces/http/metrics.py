"""Metrics of the server, in the format of Prometheus.

Labels are route templates, methods and statuses, verbs and classes of errors: nothing from the
content of a request.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator

from recollect.memory import Memory
from recollect.observing.exposition import BUCKETS, TEXT_TYPE, Histogram, head, histogram, sample
from recollect.observing.metrics import VERBS
from recollect.types.records import JobState

__all__ = ["BUCKETS", "TEXT_TYPE", "Metrics", "store_lines"]

REQUESTS, SECONDS = "recollect_http_requests_total", "recollect_http_request_seconds"
MICROS = 1_000_000


class Metrics:
    """Requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._taken: dict[str, Histogram] = defaultdict(Histogram)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[method, route, status] += 1
            self._taken[route].add(seconds)

    def text(self, memory: Memory) -> str:
        lines = [*self._request_lines(), *self._latency_lines(), *VERBS.lines()]
        return "\n".join([*lines, *store_lines(memory)]) + "\n"

    def _request_lines(self) -> Iterator[str]:
        yield from head(REQUESTS, "Requests by method, route and status.", "counter")
        with self._lock:
            counted = sorted(self._requests.items())
        for (method, route, status), count in counted:
            yield sample(REQUESTS, {"method": method, "route": route, "status": status}, count)

    def _latency_lines(self) -> Iterator[str]:
        yield from head(SECONDS, "How long requests took.", "histogram")
        with self._lock:
            taken = sorted((route, each.copy()) for route, each in self._taken.items())
        for route, each in taken:
            yield from histogram(SECONDS, "route", route, each)


def store_lines(memory: Memory) -> Iterator[str]:
    """What is due, what waits and what was spent: counted, so that no list is read for it."""
    store = memory.store
    counts = store.leases.counts(None)
    yield from head("recollect_jobs", "Jobs by state.", "gauge")
    for state in JobState:
        yield sample("recollect_jobs", {"state": state.value}, counts.get(state, 0))
    marked, waiting = store.marks.counts(None)
    spent = store.ledger.spent(None, memory.clock.now())
    due, age = store.leases.count_due()
    gauges = {
        "recollect_jobs_due": ("Jobs that a worker could claim now.", due),
        "recollect_oldest_due_seconds": (
            "For how long the first of them has been due.",
            age.total_seconds(),
        ),
        "recollect_sessions_marked": ("Sessions that are marked.", marked),
        "recollect_sessions_waiting": ("Sessions with records that are not marked.", waiting),
        "recollect_spent_tokens_today": ("Tokens used by models today.", spent.tokens),
        "recollect_spent_calls_today": ("Model calls made today.", spent.calls),
        "recollect_spent_cost_today": (
            "What they cost, as far as prices are known.",
            (spent.cost_micros or 0) / MICROS,
        ),
    }
    for name, (meaning, value) in gauges.items():
        yield from head(name, meaning, "gauge")
        yield sample(name, {}, value)

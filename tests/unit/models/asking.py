"""Requests for the tests of the models, and calls that run beside a test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from recollect.models.protocol import Completion, Model, Request

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}
WAIT_SECONDS = 30  # until a test gives up on a thread


def asking(prompt: str = "What do you know?", **changes: Any) -> Request:
    return Request(**{"system": "Be brief.", "prompt": prompt} | changes)


@contextmanager
def beside(count: int = 1) -> Iterator[Callable[[Model, Request], Future[Completion]]]:
    """Runs calls on threads of their own; their end is waited for."""
    with ThreadPoolExecutor(count) as threads:
        yield lambda model, request: threads.submit(model.complete, request)


class Watched:
    """An `is_cancelled` that tells when it was asked again, which means that somebody waits."""

    def __init__(self) -> None:
        self.asked_again = threading.Event()
        self.cancelled = threading.Event()
        self._asked = 0

    def __call__(self) -> bool:
        self._asked += 1
        if self._asked > 1:
            self.asked_again.set()
        return self.cancelled.is_set()

"""The time an agent gives us: when it is over the process leaves, whatever it hangs on.

Owns two promises: an agent never waits longer, and it is told one whole answer or nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

LAST_WORDS_SECONDS = 0.2


def _leave() -> None:
    os._exit(0)


class Deadline:
    """Watches from a thread of its own, which nothing that the others wait for can stop."""

    def __init__(
        self,
        seconds: float,
        last_words: Callable[[], None],
        leave: Callable[[], None] = _leave,
    ) -> None:
        self._last_words = last_words
        self._leave = leave
        self._lock = threading.Lock()
        self._is_over = False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()

    def speak(self, say: Callable[[], None]) -> bool:
        """Say something, unless it is too late for that."""
        with self._lock:
            if self._is_over:
                return False
            say()
            return True

    def _end(self) -> None:
        # An answer on its way out is short; one that nobody takes must not hold us here.
        is_ours = self._lock.acquire(timeout=LAST_WORDS_SECONDS)
        self._is_over = True
        try:
            # A log on a disk that hangs is no reason to stay either.
            words = threading.Thread(target=self._said_quietly, daemon=True)
            words.start()
            words.join(LAST_WORDS_SECONDS)
        finally:
            if is_ours:
                self._lock.release()
            self._leave()

    def _said_quietly(self) -> None:
        with contextlib.suppress(OSError):
            self._last_words()

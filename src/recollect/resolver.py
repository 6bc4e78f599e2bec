"""Finds an agent's memory: one database for all, one each, or none, opened when first needed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from recollect import config
from recollect.clock import Clock, SystemClock
from recollect.config import Settings
from recollect.descriptors import read_descriptor
from recollect.errors import StoreClosed
from recollect.memory import Memory
from recollect.store.opening import open_store


def open_agents(
    settings: Settings | Mapping[str, Any] | str | Path | None = None,
    *,
    clock: Clock | None = None,
) -> AgentMemories:
    """The memories of several agents, as the settings lay them out. Opens nothing yet."""
    return AgentMemories(config.load(settings), clock or SystemClock())


class AgentMemories:
    """Resolves an agent's name to its memory; opens each store once, closes them together.

    A store that fails to open raises, and is tried again the next time: one bad moment does not
    switch memory off for good.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._opened: dict[str | Path | None, Memory] = {}
        self._closed = False

    def memory(self, agent: str) -> Memory:
        """The memory of one agent; switched off, it works and keeps nothing."""
        where = self._where(read_descriptor(agent).id)
        with self._lock:
            if self._closed:
                raise StoreClosed("these memories are closed; call open_agents() again")
            if where not in self._opened:
                store = None
                if where is not None:
                    store = open_store(where, self._settings, self._clock)
                self._opened[where] = Memory(store, self._settings, self._clock)
            return self._opened[where]

    def close(self) -> None:
        """Close every memory that was opened; a second time does nothing."""
        with self._lock:
            self._closed = True
            for memory in self._opened.values():
                memory.close()
            self._opened.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _where(self, name: str) -> str | Path | None:
        settings = self._settings
        if not settings.is_memory_enabled(name):
            return None
        if settings.database == "per-agent":
            return settings.agent_path(name)
        if settings.store is not None:
            return settings.store
        return settings.path() if settings.data_dir or settings.sqlite_path else None

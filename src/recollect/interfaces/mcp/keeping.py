"""Holds the memory behind the tools: opened when it is first needed, worked on, closed at the end.

Opening is kept out of the handshake. What fails to open is tried again by the next call, and that
call says why. Safe to use from any number of threads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from recollect.errors import NotAllowed, RecollectError, StoreClosed
from recollect.memory import Memory
from recollect.observing.telling import told
from recollect.space import Space

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On which terms a server gives memory away: whose space, who writes, for which project."""

    space: str
    agent: str
    project: str | None = None
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One space as a tool has it for one call."""

    space: Space
    redact: Callable[[str], str]
    terms: Terms


class Keeper:
    """One memory for every server of a process, and the worker that distils what is in it."""

    def __init__(self, open_memory: Callable[[], Memory], *, work: bool) -> None:
        self._open_memory = open_memory
        self._work = work
        self._lock = threading.Lock()
        self._memory: Memory | None = None
        self._warming: threading.Thread | None = None
        self._is_closed = False

    def holding(self, terms: Terms) -> Holding:
        """The space that the terms name, opened if nobody needed it before."""
        memory = self._held()
        redactor = memory.runtime.redactor().keyed(terms.space)
        return Holding(space=memory.space(terms.space), redact=redactor.redact, terms=terms)

    def check_writable(self, terms: Terms) -> None:
        """NotAllowed: nothing is to be remembered of what this agent does."""
        if not self._held().settings.is_memory_enabled(terms.agent):
            raise NotAllowed(f"memory is switched off for the agent {terms.agent!r}")

    def warm(self) -> None:
        """Open in the background, once; a client that never calls a tool has its worker, too."""
        if self._warming is None:
            self._warming = threading.Thread(target=self._warmed, name="recollect-mcp", daemon=True)
            self._warming.start()

    def close(self) -> None:
        """Stop the worker and close the memory; a second time does nothing."""
        with self._lock:
            self._is_closed = True
            memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

    def _held(self) -> Memory:
        with self._lock:
            if self._is_closed:
                raise StoreClosed("this server is ending")
            if self._memory is None:
                memory = self._open_memory()
                if self._work:
                    memory.worker().start()
                self._memory = memory
            return self._memory

    def _warmed(self) -> None:
        try:
            self._held().runtime.redactor()
        except RecollectError as error:
            _log.warning("the store could not be opened yet: %s", told(error))

"""The shared parts of one memory, made once and handed down: store, settings, clock, models.

A part that takes longer to load than a store takes to open is made on first use; many processes
never need it. Nothing here knows the memory that made it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from recollect.clock import Clock
from recollect.config import Settings
from recollect.context_log import ContextLog
from recollect.descriptors import Descriptor
from recollect.errors import RecollectError, StoreClosed
from recollect.ids import SYSTEM_RANDOMNESS, Ids
from recollect.store.opening import open_store
from recollect.types.records import SessionState

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder
    from recollect.models.jobs import Brought
    from recollect.redaction import Redactor
    from recollect.store.protocol import Store

_SALT = "redaction_salt"
_SALT_BYTES = 16

REDACTED_SPACES_MAX = 32  # of which is kept what was redacted
REDACTED_TEXTS_MAX = 1024  # of one space
REDACTED_CHARS_MAX = 4_000  # what is longer is looked through again


def _nobody_began(_session: Callable[[], SessionState], _now: datetime) -> None:
    return None


def _nothing_left_out(_space: str) -> None:
    return None


class Runtime:
    """Safe to use from any number of threads; close it once.

    `store=None` is memory switched off: everything works, and lives as long as the process.
    `on_began` is told when a session has its first record, `on_left_out` of one, by its space and
    its id, that was read and is not to be remembered any more.
    """

    def __init__(
        self, store: Store | None, settings: Settings, clock: Clock, brought: Brought | None = None
    ) -> None:
        from recollect.models.jobs import Brought, Models

        self.settings = settings
        self.clock = clock
        self.ids = Ids(clock)
        self.on_began: Callable[[Callable[[], SessionState], datetime], None] = _nobody_began
        self.on_left_out: Callable[[str], None] = _nothing_left_out
        brought = brought or Brought()
        self.models = Models(settings, clock, brought)
        self._store = store
        self._volatile: Store | None = None
        self._embedder = brought.embedder
        self._is_own_embedder = brought.embedder is None
        self._redactor: Redactor | None = None
        # What redacts the texts of a space.
        self.redacting: Callable[[str], Callable[[str], str]]
        self.redacting = lru_cache(REDACTED_SPACES_MAX)(self._redacting)
        self.told = ContextLog(
            lambda: self.store, self.redacting, self.now, is_on=settings.contexts_kept > 0
        )
        self._is_closed = False
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self.clock.now()

    # stores

    @property
    def store(self) -> Store:
        return self._store if self._store is not None else self._in_process()

    @property
    def stores(self) -> list[Store]:
        """The store, and where agents without memory talk, if any has."""
        return [each for each in (self._store, self._volatile) if each is not None]

    def store_of(self, agent: Descriptor) -> tuple[Store, bool]:
        """Where an agent's sessions are kept, and whether they are kept at all."""
        if self._store is None or not self.settings.is_memory_enabled(agent.id):
            return self._in_process(), False
        return self._store, True

    def _in_process(self) -> Store:
        with self._lock:
            if self._volatile is None:
                self._check_open()
                self._volatile = open_store(":memory:", self.settings, self.clock)
            return self._volatile

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosed("this memory is closed; open it again")

    # redaction

    def redactor(self) -> Redactor:
        """The store's redactor: the same secret looks the same in all that one space holds."""
        store = self.store
        with self._lock:
            if self._redactor is None:
                from recollect.redaction import load_redactor

                salt = store.keep(_SALT, SYSTEM_RANDOMNESS.randbytes(_SALT_BYTES).hex())
                self._redactor = load_redactor(self.settings, bytes.fromhex(salt))
            return self._redactor

    def _redacting(self, space: str) -> Callable[[str], str]:
        """It looks through a text once: the same records are shown again with every question."""
        redact = self.redactor().keyed(space).redact
        known = lru_cache(REDACTED_TEXTS_MAX)(redact)
        return lambda text: known(text) if len(text) <= REDACTED_CHARS_MAX else redact(text)

    def redacted(self, text: str) -> str:
        """What may be logged and shown of an error; nothing, if there is no telling."""
        try:
            return self.redactor().redact(text)
        except RecollectError:
            return text.partition(":")[0]

    # models

    @property
    def has_embedder(self) -> bool:
        """Whether one was given, or is named by the settings."""
        return self._embedder is not None or self.settings.embedder.strip() not in ("none", "")

    def embedder(self) -> Embedder | None:
        """Return the embedder, or None if none is set."""
        if not self.has_embedder:
            return None
        with self._lock:
            self._check_open()
            if self._embedder is None:
                from recollect.embedding.openai import open_embedder

                self._embedder = open_embedder(self.settings, self.redacted, clock=self.clock)
            return self._embedder

    def doers(self) -> dict[str, str]:
        """The doer of each job that a model may do: its name, `rules`, or `off`. Opens nothing."""
        embedder = self.settings.embedder if self._embedder is None else self._embedder.name
        return {**self.models.doers(), "embedding": embedder if self.has_embedder else "off"}

    def close(self) -> None:
        """Let go of the models and the embedder, unless somebody else brought them; then the
        stores. A second time does nothing."""
        self.told.close()
        self.models.close()
        with self._lock:
            self._is_closed = True
            if self._is_own_embedder and self._embedder is not None:
                self._embedder.close()
                self._embedder = None
        for store in self.stores:
            store.close()

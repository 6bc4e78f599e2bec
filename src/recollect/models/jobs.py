"""Which model does which job: one does everything, unless another or none is named for a job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from recollect.clock import Clock
from recollect.config import Settings
from recollect.errors import StoreClosed

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder
    from recollect.models.protocol import Completion, Model, Request

RULES, OFF = "rules", "off"  # who does a job that no model does
NO_MODEL = (RULES, "none")  # how a setting says that no model is to do a job


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What somebody else has opened and will close, in place of what the settings name."""

    model: Model | None = None
    memory_agent_model: Model | None = None
    consolidation_model: Model | None = None
    embedder: Embedder | None = None


def sorted_out(settings: Settings, **given: Any) -> tuple[Settings, Brought]:
    """The settings with the models that were given by name, and those that were brought."""
    named: dict[str, Any] = {name: each for name, each in given.items() if isinstance(each, str)}
    brought = {name: each for name, each in given.items() if name not in named}
    return replace(settings, **named), Brought(**brought)


class Models:
    """The models of one memory, each opened once, when it is first used. Safe to share."""

    def __init__(self, settings: Settings, clock: Clock, brought: Brought) -> None:
        self._settings = settings
        self._clock = clock
        # Who does a job: a model that was brought, the name of one, or none.
        self._main = settings.model if brought.model is None else brought.model
        reader = self._named(settings.memory_agent_model, brought.memory_agent_model)
        # Nobody has read what a model writes on pages from what was said.
        self._memory_agent = reader if settings.review == "off" else None
        self._consolidation = self._named(settings.consolidation_model, brought.consolidation_model)
        self.is_memory_agent_named = self._memory_agent is not self._main
        self._opened: dict[str, Model] = {}  # by name
        self._is_closed = False
        self._lock = threading.Lock()

    def _named(self, name: str | None, brought: Model | None) -> Model | str | None:
        if brought is not None:
            return brought
        if name is None:
            return self._main
        return None if name.strip().lower() in NO_MODEL else name

    def main(self) -> Model | None:
        """The one that does everything that no other is named for."""
        return self._usable(self._main)

    def memory_agent(self) -> Model | None:
        return self._usable(self._memory_agent)

    @property
    def has_memory_agent(self) -> bool:
        """Whether memory-agents have a model, which need not be opened to know it."""
        return self._memory_agent is not None

    def consolidation(self) -> Model | None:
        """Opened when it is first used: who only forgets needs no key."""
        model = self._consolidation
        return _OpenedWhenUsed(lambda: self._open(model)) if isinstance(model, str) else model

    def doers(self) -> dict[str, str]:
        """The doer of each job that a model may do: its name, `rules`, or `off`. Opens nothing."""
        settings = self._settings
        is_extracted = settings.pipeline in ("extraction", "both") and settings.extractor != "none"
        is_filed = settings.pipeline in ("memory-agent", "both")
        extractor = None if settings.extractor == RULES else self._main
        return {
            "extraction": _doer(extractor) if is_extracted else OFF,
            "memory-agent": _doer(self._memory_agent) if is_filed else OFF,
            "consolidation": _doer(self._consolidation) if settings.consolidation == "on" else OFF,
            "chat": _doer(self._main),
        }

    def _usable(self, model: Model | str | None) -> Model | None:
        if self._is_closed:
            raise StoreClosed("this memory is closed; open it again")
        return self._open(model) if isinstance(model, str) else model

    def _open(self, name: str) -> Model:
        with self._lock:
            if self._is_closed:
                raise StoreClosed("this memory is closed; open it again")
            if name not in self._opened:
                from recollect.models.served import open_model

                opened = open_model(replace(self._settings, model=name), clock=self._clock)
                assert opened is not None, "a name was given"
                self._opened[name] = opened
            return self._opened[name]

    def close(self) -> None:
        """Let go of what was opened here; what was brought is left to who brought it."""
        with self._lock:
            self._is_closed = True
            while self._opened:
                self._opened.popitem()[1].close()


def _doer(model: Model | str | None) -> str:
    if model is None:
        return RULES
    return model if isinstance(model, str) else model.name


class _OpenedWhenUsed:
    """Implements `Model`."""

    def __init__(self, opened: Callable[[], Model]) -> None:
        self._opened = opened

    @property
    def name(self) -> str:
        return self._opened().name

    @property
    def window_tokens(self) -> int:
        return self._opened().window_tokens

    def complete(self, request: Request) -> Completion:
        return self._opened().complete(request)

    def close(self) -> None:
        """Do nothing: the model is closed by its opener."""

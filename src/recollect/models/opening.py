"""Finds the model for each job that the settings name, and opens the way to it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from recollect.clock import Clock, SystemClock
from recollect.config import Settings
from recollect.errors import InvalidSetting, StoreClosed
from recollect.ids import SYSTEM_RANDOMNESS, Randomness
from recollect.models.anthropic import Messages
from recollect.models.openai import ChatCompletions
from recollect.models.protocol import Model, Pause
from recollect.models.wire import Wire

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder
    from recollect.models.protocol import Completion, Model, Request


OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider as the environment shows it."""

    name: str
    default_url: str
    url: str | None
    key: str | None = field(repr=False)

    @property
    def key_variable(self) -> str:
        return f"{self.name.upper()}_API_KEY"

    @property
    def is_known(self) -> bool:
        return bool(self.key or self.url)


def open_model(
    settings: Settings,
    environ: Mapping[str, str] | None = None,
    *,
    randomness: Randomness = SYSTEM_RANDOMNESS,
    clock: Clock | None = None,
    pause: Pause | None = None,
) -> Model | None:
    """The model of the settings; None when none is set. `pause` waits between tries."""
    if settings.model is None:
        return None
    from recollect.models.http import HttpModel  # brings the HTTP client

    wire = _wire(settings, os.environ if environ is None else environ)
    return HttpModel(
        wire, settings, clock=clock or SystemClock(), randomness=randomness, pause=pause
    )


def _wire(settings: Settings, environ: Mapping[str, str]) -> Wire:
    provider, model = _choose(settings, environ)
    if not model:
        raise InvalidSetting(f"model names no model: {settings.model!r}")
    if not provider.is_known:
        raise InvalidSetting(
            f"model {provider.name}:{model} needs a key: set {provider.key_variable}, "
            "or model_base_url for a server that needs none"
        )
    key = checked_key(provider)
    url = checked_url(provider.url or provider.default_url)
    if provider.name == "anthropic":
        return Messages(model=model, url=joined(url, "/messages"), key=key)
    return ChatCompletions(model=model, url=joined(url, "/chat/completions"), key=key)


def _choose(settings: Settings, environ: Mapping[str, str]) -> tuple[Provider, str]:
    """The provider of a model and the model's name there."""
    openai = _provider("openai", OPENAI_URL, settings, environ)
    anthropic = _provider("anthropic", ANTHROPIC_URL, settings, environ)
    given = (settings.model or "").strip()
    prefix, _, rest = given.partition(":")
    match prefix:
        case "openai":
            return openai, rest.strip()
        case "anthropic":
            return anthropic, rest.strip()
        case _:  # a colon may belong to the name: llama3:8b
            is_claude = given.startswith("claude") and (anthropic.key or not openai.is_known)
            return (anthropic if is_claude else openai), given


def _provider(name: str, url: str, settings: Settings, environ: Mapping[str, str]) -> Provider:
    key = environ.get(f"{name.upper()}_API_KEY", "").strip()
    own_url = settings.model_base_url or environ.get(f"{name.upper()}_BASE_URL", "")
    return Provider(name=name, default_url=url, url=own_url.strip() or None, key=key or None)


def checked_key(provider: Provider) -> str | None:
    key = provider.key or ""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidSetting(f"{provider.key_variable} holds characters that no key has")
    return provider.key


def checked_url(text: str) -> SplitResult:
    try:
        url = urlsplit(text)
        is_usable = url.scheme in ("http", "https") and bool(url.hostname) and " " not in text
        _ = url.port  # raises for a port that is none
    except ValueError:
        is_usable = False
    if not is_usable:
        raise InvalidSetting("the model's base URL is no http or https address")
    if "@" in url.netloc:
        raise InvalidSetting(
            "the model's base URL holds a user name or password: a key belongs in the environment"
        )
    return url


def joined(url: SplitResult, endpoint: str) -> str:
    """The address of an endpoint below a base URL, which may or may not name the version."""
    path = url.path.rstrip("/")
    if not path.endswith(endpoint):
        needs_version = not path or (endpoint == "/messages" and not path.endswith("/v1"))
        path += ("/v1" if needs_version else "") + endpoint
    return url._replace(path=path, fragment="").geturl()


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
        self._memory_agent = self._named(settings.memory_agent_model, brought.memory_agent_model)
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
        """Who does each job that a model may do: its name, `rules`, or `off`. Opens nothing."""
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
                from recollect.models.opening import open_model

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
        """Whoever opened it closes it."""

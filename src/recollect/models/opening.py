"""Finds the model that the settings and the environment name, and opens the way to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from recollect.clock import Clock, SystemClock
from recollect.config import Settings
from recollect.errors import InvalidSetting
from recollect.ids import SYSTEM_RANDOMNESS, Randomness
from recollect.models.anthropic import Messages
from recollect.models.openai import ChatCompletions
from recollect.models.protocol import Model, Pause
from recollect.models.wire import Wire

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
        raise InvalidSetting(f"the setting model names no model: {settings.model!r}")
    if not provider.is_known:
        raise InvalidSetting(
            f"model {provider.name}:{model} needs a key: set {provider.key_variable}, "
            "or model_base_url for a server that needs none"
        )
    key = checked_key(provider)
    url = checked_url(provider.url or provider.default_url)
    if provider.name == "anthropic":
        return Messages(model=model, url=joined(url, "/messages"), key=key, provider=provider.name)
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
        raise InvalidSetting("the model's base URL is not an http or https address")
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

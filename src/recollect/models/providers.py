"""Who serves models, and which of them the settings and the environment name.

One table has the providers. Three are programs on the user's own machine, which need no key and no
configuration: their models are named `ollama/<name>`, `lmstudio/<name>` and `llamacpp`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from urllib.parse import SplitResult, urlsplit

from recollect.config import Settings
from recollect.errors import InvalidSetting
from recollect.models.answers import NO_REMEDIES, Remedies
from recollect.models.anthropic import Messages
from recollect.models.openai import ChatCompletions, OllamaChat
from recollect.models.wire import Wire

_NEAR = (".local", ".localhost", ".lan", ".internal", ".home.arpa")  # ends of names at home


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Who serves models: where, by which protocol, and which variables say something else."""

    name: str
    title: str
    url: str
    url_variables: tuple[str, ...]  # the first that is set counts
    key_variable: str
    port_variable: str = ""  # of a program that is told host and port by two
    wire: type[Wire] = ChatCompletions
    endpoint: str = "/chat/completions"
    remedies: Remedies = NO_REMEDIES

    @property
    def is_local(self) -> bool:
        return self.url.startswith("http://")


PROVIDERS: Mapping[str, Provider] = {
    each.name: each
    for each in (
        Provider(
            name="openai",
            title="OpenAI",
            url="https://api.openai.com/v1",
            url_variables=("OPENAI_BASE_URL",),
            key_variable="OPENAI_API_KEY",
        ),
        Provider(
            name="anthropic",
            title="Anthropic",
            url="https://api.anthropic.com",
            url_variables=("ANTHROPIC_BASE_URL",),
            key_variable="ANTHROPIC_API_KEY",
            wire=Messages,
            endpoint="/messages",
        ),
        Provider(
            name="ollama",
            title="Ollama",
            url="http://127.0.0.1:11434",
            url_variables=("OLLAMA_HOST",),
            key_variable="OLLAMA_API_KEY",
            wire=OllamaChat,
            endpoint="/api/chat",
            remedies=Remedies(
                is_down="start Ollama with `ollama serve`",
                has_no_model="get it with `ollama pull {model}`",
                is_too_small="give it a longer window with RECOLLECT_MODEL_WINDOW_TOKENS=16384",
            ),
        ),
        Provider(
            name="lmstudio",
            title="LM Studio",
            url="http://127.0.0.1:1234",
            url_variables=("LMSTUDIO_BASE_URL", "LM_STUDIO_API_BASE"),
            key_variable="LM_API_TOKEN",
            remedies=Remedies(
                is_down="start LM Studio's server with `lms server start`",
                has_no_model="get it with `lms get {model}`",
                is_too_small="load it with more with `lms load {model} --context-length 16384`",
            ),
        ),
        Provider(
            name="llamacpp",
            title="llama.cpp",
            url="http://127.0.0.1:8080",
            url_variables=("LLAMA_ARG_HOST",),
            port_variable="LLAMA_ARG_PORT",
            key_variable="LLAMA_API_KEY",
            remedies=Remedies(
                is_down="start it with `llama-server -m model.gguf -c 16384`",
                has_no_model="start its server with that model: `llama-server -m model.gguf`",
                is_too_small="start its server with a longer window: `llama-server -c 16384 …`",
            ),
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAddress:
    """Where a provider is served, as settings and environment have it."""

    provider: Provider
    url: SplitResult
    key: str | None = field(repr=False)
    is_given: bool  # somebody said where; else it is the provider's own place

    @property
    def is_near(self) -> bool:
        """Whether it is on this machine or in the house, where models are small."""
        host = self.url.hostname or ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return "." not in host or host.endswith(_NEAR)
        return address.is_private or address.is_unspecified

    @property
    def can_be_asked(self) -> bool:
        """Whether it is a server that somebody named, and that has a list of its models."""
        is_listed = self.provider.is_local or self.provider.wire is ChatCompletions
        return is_listed and (self.is_given or self.provider.is_local)

    def joined(self, endpoint: str = "") -> str:
        """The address of an endpoint below the base URL, which may or may not name the version."""
        endpoint = endpoint or self.provider.endpoint
        path = self.url.path.rstrip("/")
        if endpoint.startswith("/api/"):
            path = path.removesuffix("/v1").removesuffix(endpoint) + endpoint
        elif not path.endswith(endpoint):
            needs_version = not path or (endpoint == "/messages" and not path.endswith("/v1"))
            path += ("/v1" if needs_version else "") + endpoint
        return self.url._replace(path=path, fragment="").geturl()


def place_of(
    provider: Provider, own_url: str | None, environ: Mapping[str, str], *, setting: str
) -> ModelAddress:
    """The endpoint of a provider; InvalidSetting where it is unusable, or lacks a key it needs."""
    given = (own_url or "").strip() or _url_in(environ, provider)
    key = environ.get(provider.key_variable, "").strip()
    if not given and not key and not provider.is_local:
        raise InvalidSetting(
            f"{provider.name} needs a key: set {provider.key_variable}, or {setting} for a server"
            " that needs none; recollect models shows what answers on this machine"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidSetting(f"{provider.key_variable} holds characters that no key has")
    url = _checked(given or provider.url)
    return ModelAddress(provider=provider, url=url, key=key or None, is_given=bool(given))


def _url_in(environ: Mapping[str, str], provider: Provider) -> str:
    """What the variables of a provider say; a program's may be a host, a port or both."""
    said = (environ.get(each, "").strip() for each in provider.url_variables)
    text = next(filter(None, said), "")
    port = environ.get(provider.port_variable, "").strip()
    if not provider.is_local or "://" in text or not (text or port):
        return text
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"
    host, _, own_port = (
        text.rpartition(":") if text.rpartition(":")[2].isdigit() else (text, "", "")
    )
    if host in ("", "0.0.0.0", "[::]"):
        host = "127.0.0.1"
    return f"http://{host}:{own_port or port or urlsplit(provider.url).port}"


def _checked(text: str) -> SplitResult:
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


def chosen(settings: Settings, environ: Mapping[str, str]) -> tuple[ModelAddress, str]:
    """Where the model of the settings is, and its name there."""
    given = (settings.model or "").strip()
    if given.startswith(("http://", "https://")):
        return _at_url(given, environ)
    prefix, mark, rest = cut_name(given)
    provider = PROVIDERS.get(prefix)
    if provider is None or (not provider.is_local and mark != ":"):
        rest = given  # a colon may belong to the name: llama3:8b
        openai, anthropic = PROVIDERS["openai"], PROVIDERS["anthropic"]
        has_key = environ.get(anthropic.key_variable, "").strip()
        is_claude = given.startswith("claude") and (
            has_key or not _is_known(openai, settings, environ)
        )
        provider = anthropic if is_claude else openai
    if not rest.strip() and not provider.is_local:
        raise InvalidSetting(f"the setting model names no model: {settings.model!r}")
    place = place_of(provider, settings.model_base_url, environ, setting="model_base_url")
    return place, rest.strip()


def cut_name(given: str) -> tuple[str, str, str]:
    """A name before the first colon or slash, that mark, and what follows."""
    mark = min((each for each in ":/" if each in given), key=given.index, default="")
    return given.partition(mark) if mark else (given, "", "")


def _is_known(provider: Provider, settings: Settings, environ: Mapping[str, str]) -> bool:
    key = environ.get(provider.key_variable, "").strip()
    return bool(key or settings.model_base_url or _url_in(environ, provider))


def _at_url(given: str, environ: Mapping[str, str]) -> tuple[ModelAddress, str]:
    """A server that is named by its address, with a model of it behind `#`, or its only one."""
    address, _, model = given.partition("#")
    provider = PROVIDERS["openai"]
    place = place_of(provider, address, environ, setting="model")
    # A key that is meant for somebody else does not go to whoever listens, least of all readable.
    return (place if place.url.scheme == "https" else replace(place, key=None)), model.strip()


def wire_to(place: ModelAddress, model: str) -> Wire:
    """The protocol of an endpoint, for one of its models."""
    provider = place.provider
    told = asdict(provider.remedies).items()
    remedies = Remedies(**{name: text.replace("{model}", model) for name, text in told})
    return provider.wire(
        model=model,
        url=place.joined(),
        key=place.key,
        provider=provider.name,
        remedies=remedies,
    )

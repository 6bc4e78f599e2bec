"""What servers say of themselves: the models they have, and how many tokens each can hold; and the
way to the model that the settings and the environment name.

Nothing is asked of a server that no setting, no variable and no table of ours names.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import httpx2

from recollect.clock import Clock, SystemClock
from recollect.config import Settings
from recollect.errors import InvalidSetting, ModelUnavailable
from recollect.ids import SYSTEM_RANDOMNESS, Randomness
from recollect.models.answers import shown, with_remedy
from recollect.models.http import HttpModel, open_client
from recollect.models.protocol import WINDOW_TOKENS, WINDOW_TOKENS_SMALL, Model, Pause
from recollect.models.providers import PROVIDERS, ModelAddress, chosen, place_of, wire_to

ASK_AGAIN = timedelta(seconds=30)
MODELS = "/models"  # the one path that stands below the base URL, not below the server's address
ASK_SECONDS = 2.0  # a server on this machine answers in milliseconds, or is busy loading
BODY_BYTES_MAX = 4_194_304
MODELS_MAX = 200  # of one server
OLLAMA_WINDOW_TOKENS = 16_384  # more of a model's own takes gigabytes: a setting may ask for it
LOADED_TOKENS = 4096  # what LM Studio, and Ollama where nobody tells it, load a model with

_OLLAMA_WINDOW = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)

# Asks for a path below the server's address, with a body by POST; None: there is no such thing.
Get = Callable[[str, Mapping[str, Any] | None], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model that a server has. What the server does not say is None."""

    name: str
    window_tokens: int | None = None
    takes_schema: bool | None = None
    is_settled: bool = True  # the window stays as it is; else it is known once the model is loaded

    def is_called(self, name: str) -> bool:
        return self.name in (name, f"{name}:latest")  # as Ollama calls what has no tag


Listing = Callable[[Get, Mapping[str, str]], Iterator[ServedModel]]


def served(place: ModelAddress, environ: Mapping[str, str], wanted: str = "") -> list[ServedModel]:
    """The models of a server, as far as the wanted one if there is such a one.

    ModelUnavailable where it does not answer, or is another program.
    """
    root = place.url._replace(path="", query="", fragment="").geturl()
    headers = wire_to(place, "").headers()
    with open_client(root) as client:

        def get(path: str, body: Mapping[str, Any] | None) -> Any:
            url = place.joined(path) if path == MODELS else root + path
            return _asked(client, url, headers, body)

        found = []
        for each in islice(LISTINGS[place.provider.name](get, environ), MODELS_MAX):
            found.append(each)
            if wanted and each.is_called(wanted):
                break
        return found


def _asked(
    client: httpx2.Client, url: str, headers: Mapping[str, str], body: Mapping[str, Any] | None
) -> Any:
    method, host = "GET" if body is None else "POST", urlsplit(url).netloc
    sent = {"accept-encoding": "identity", **headers}
    content = bytearray()
    try:
        with client.stream(method, url, headers=sent, json=body, timeout=ASK_SECONDS) as response:
            if response.status_code in (401, 403):
                raise ModelUnavailable(f"{host} wants a key")
            if not response.is_success:
                return None
            for chunk in response.iter_raw():
                content += chunk
                if len(content) > BODY_BYTES_MAX:
                    return None
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
    except httpx2.RequestError as error:
        said = f"{host} cannot be reached: {shown(str(error)) or type(error).__name__}"
    raise ModelUnavailable(said)


def listed_by_openai(get: Get, _environ: Mapping[str, str]) -> Iterator[ServedModel]:
    """Models of any compatible server; vLLM, OpenRouter, llama.cpp and others say their windows."""
    for entry in _listed(get, MODELS, "data"):
        owner = entry.get("owned_by")
        if owner == "llamacpp":
            yield from _by_llamacpp(get, entry)
            continue
        said = (entry.get(each) for each in ("max_model_len", "context_length", "context_window"))
        window = next(filter(None, map(_tokens, said)), None)
        if owner == "library":  # Ollama by this protocol cannot be told how long a window to take
            window = LOADED_TOKENS
        yield ServedModel(name=_text(entry, "id"), window_tokens=window)


def listed_by_llamacpp(get: Get, _environ: Mapping[str, str]) -> Iterator[ServedModel]:
    """The model of a llama.cpp server; a router has several and says of none what it holds."""
    for entry in _listed(get, "/v1/models", "data"):
        yield from _by_llamacpp(get, entry)


def _by_llamacpp(get: Get, entry: Mapping[str, Any]) -> Iterator[ServedModel]:
    window = _object(_object(get("/props", None)).get("default_generation_settings")).get("n_ctx")
    yield ServedModel(name=_text(entry, "id"), window_tokens=_tokens(window), takes_schema=True)


def listed_by_lmstudio(get: Get, _environ: Mapping[str, str]) -> Iterator[ServedModel]:
    """Models of LM Studio, the loaded ones first; one that is not is loaded when it is asked."""
    entries = [
        each for each in _listed(get, "/api/v0/models", "data") if each.get("type") != "embeddings"
    ]
    for entry in sorted(entries, key=lambda each: each.get("state") != "loaded"):
        loaded, most = _tokens(entry.get("loaded_context_length")), entry.get("max_context_length")
        window = loaded or min(_tokens(most) or LOADED_TOKENS, LOADED_TOKENS)
        yield ServedModel(
            name=_text(entry, "id"),
            window_tokens=window,
            takes_schema=True,
            is_settled=loaded is not None,
        )


def listed_by_ollama(get: Get, environ: Mapping[str, str]) -> Iterator[ServedModel]:
    """Models that were pulled. The window is what the model or the user says, within reason."""
    for entry in _listed(get, "/api/tags", "models"):
        name = _text(entry, "name") or _text(entry, "model")
        details = _object(get("/api/show", {"model": name}))
        if "completion" in details.get("capabilities", ("completion",)):
            window = _ollama_window(details, environ)
            yield ServedModel(name=name, window_tokens=window, takes_schema=True)


def _ollama_window(details: Mapping[str, Any], environ: Mapping[str, str]) -> int | None:
    chosen = _OLLAMA_WINDOW.search(str(details.get("parameters") or ""))
    told = _tokens(chosen[1] if chosen else environ.get("OLLAMA_CONTEXT_LENGTH"))
    own = _object(details.get("model_info")).items()
    most = next((_tokens(each) for name, each in own if name.endswith(".context_length")), None)
    if told is None:
        return min(most, OLLAMA_WINDOW_TOKENS) if most else None
    return min(told, most or told)


LISTINGS: Mapping[str, Listing] = {
    "openai": listed_by_openai,
    "ollama": listed_by_ollama,
    "lmstudio": listed_by_lmstudio,
    "llamacpp": listed_by_llamacpp,
}


class ModelDetails:
    """The server of one model: asked when something of it is needed, and until it is settled.

    Safe to share between threads. Without the model's name it is the only one that is served.
    """

    def __init__(
        self, place: ModelAddress, model: str, environ: Mapping[str, str], clock: Clock
    ) -> None:
        self._ask = partial(served, place, environ, model)
        self._remedies = place.provider.remedies
        self._model = model
        self._clock = clock
        self._known: ServedModel | None = None
        self._asked_at: datetime | None = None
        self._lock = threading.Lock()

    def name(self) -> str:
        """The model's name, as the server has it; ModelUnavailable where it does not answer."""
        if self._model:
            return self._model
        try:
            self._known = self._known or self._found(self._ask())
        except ModelUnavailable as error:
            raise ModelUnavailable(with_remedy(str(error), self._remedies.is_down)) from None
        return self._known.name if self._known else ""

    def window_tokens(self) -> int | None:
        """What the model holds; None where the server does not say, or does not answer now."""
        with self._lock:  # whoever comes while it is asked waits for the answer
            now = self._clock.now()
            is_settled = self._known is not None and self._known.is_settled
            is_recent = self._asked_at is not None and now - self._asked_at < ASK_AGAIN
            if not is_settled and not is_recent:
                self._asked_at = now
                with contextlib.suppress(ModelUnavailable, InvalidSetting):  # said with the answer
                    self._known = self._found(self._ask())
        return None if self._known is None else self._known.window_tokens

    def _found(self, models: Sequence[ServedModel]) -> ServedModel | None:
        if not self._model and len(models) != 1:
            names = ", ".join(each.name for each in models) or "none"
            raise InvalidSetting(
                f"model names no model, and the server has not just one: {names}; recollect models"
                " shows what to write"
            )
        return next(
            (each for each in models if not self._model or each.is_called(self._model)), None
        )


def _object(content: object) -> Mapping[str, Any]:
    return content if isinstance(content, dict) else {}


def _listed(get: Get, path: str, name: str) -> list[Mapping[str, Any]]:
    found = _object(get(path, None)).get(name)
    if not isinstance(found, list):
        raise ModelUnavailable("another program answers there")
    return [each for each in found if isinstance(each, dict)]


def _text(entry: Mapping[str, Any], name: str) -> str:
    return str(entry.get(name) or "")


def _tokens(value: object) -> int | None:
    try:
        number = int(str(value))
    except ValueError:
        return None
    return number if number > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServer:
    """A server that may have models, and what it said when it was asked."""

    provider: str
    title: str
    url: str
    models: tuple[ServedModel, ...]
    problem: str | None  # why nothing is known of it
    remedy: str

    def setting(self, model: ServedModel) -> str:
        """What has to be set for a model to be used."""
        name = model.name.removesuffix(":latest") if self.provider == "ollama" else model.name
        value = f"{self.provider}/{name}" if self.provider in LOCAL else f"{self.url}#{name}"
        is_only = self.provider == "llamacpp" and len(self.models) == 1
        return f"RECOLLECT_MODEL={shlex.quote(self.provider if is_only else value)}"


def model_servers(
    settings: Settings, environ: Mapping[str, str] | None = None
) -> list[ModelServer]:
    """What answers on this machine, or where settings and environment say; asked all at once."""
    variables = os.environ if environ is None else environ
    places = list(_places(settings, variables))
    with ThreadPoolExecutor(len(places)) as threads:
        return list(threads.map(lambda place: _asked_for(place, variables), places))


LOCAL = tuple(name for name, provider in PROVIDERS.items() if provider.is_local)


def _places(settings: Settings, environ: Mapping[str, str]) -> Iterator[ModelAddress]:
    """The programs of this machine, and the server that the settings or the environment name."""
    named = None
    with contextlib.suppress(InvalidSetting):  # no model is named, or it lacks a key
        named = chosen(replace(settings, model=settings.model or "any"), environ)[0]
    seen = set()
    for name in LOCAL:
        is_named = named is not None and named.provider.name == name
        url = settings.model_base_url if is_named else None
        place = place_of(PROVIDERS[name], url, environ, setting="model_base_url")
        seen.add(place.url.netloc)
        yield place
    if named is not None and named.can_be_asked and named.url.netloc not in seen:
        yield named


def _asked_for(place: ModelAddress, environ: Mapping[str, str]) -> ModelServer:
    models: list[ServedModel] = []
    problem, remedy = None, place.provider.remedies.is_down
    try:
        models = served(place, environ)
        remedy = "" if models else place.provider.remedies.has_no_model
    except ModelUnavailable as error:
        problem = str(error)
    base = place.url.geturl().rstrip("/")
    return ModelServer(
        provider=place.provider.name,
        title=place.provider.title,
        url=base,
        models=tuple(models),
        problem=problem,
        remedy=remedy.replace("{model}", "llama3.2"),
    )


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
    variables = os.environ if environ is None else environ
    clock = clock or SystemClock()
    place, model = chosen(settings, variables)
    details = ModelDetails(place, model, variables, clock) if place.can_be_asked else None
    is_small = place.is_near and details is not None
    return HttpModel(
        wire_to(place, model),
        settings,
        clock=clock,
        randomness=randomness,
        pause=pause,
        server=details,
        window_tokens=WINDOW_TOKENS_SMALL if is_small else WINDOW_TOKENS,
    )

"""Finds the embedder that the settings and the environment name, and opens the way to it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping

from recollect.clock import Clock, SystemClock
from recollect.config import Settings
from recollect.embedding.openai import Embeddings, OpenAIEmbedder
from recollect.embedding.protocol import Embedder
from recollect.errors import InvalidSetting, MissingExtra
from recollect.ids import SYSTEM_RANDOMNESS, Randomness
from recollect.models.opening import OPENAI_URL, Provider, checked_key, checked_url, joined
from recollect.models.protocol import Pause

VECTOR_BYTES_MAX = 65_536  # of one vector in base 64: more than twelve thousand numbers


def open_embedder(
    settings: Settings,
    redact: Callable[[str], str],
    environ: Mapping[str, str] | None = None,
    *,
    randomness: Randomness = SYSTEM_RANDOMNESS,
    clock: Clock | None = None,
    pause: Pause | None = None,
) -> Embedder | None:
    """The embedder of the settings; None when none is wanted. Texts are redacted before they leave.

    What a provider may take in time, tries and calls at once is what the settings allow a model.
    """
    prefix, _, model = settings.embedder.strip().partition(":")
    match prefix, model.strip():
        case ("none" | "", ""):
            return None
        case ("local" | "wordllama", ""):
            return _open_local()
        case ("openai", ""):
            raise InvalidSetting("embedder names no model: it is `openai:<name>`")
        case ("openai", name):
            wire = _wire(name, settings, os.environ if environ is None else environ)
        case _:
            raise InvalidSetting(
                f"embedder is none, local or openai:<name>, not {settings.embedder!r}"
            )
    from recollect.models.http import HttpModel  # brings the HTTP client

    allowed = dataclasses.replace(
        settings,
        model_timeout_seconds=settings.embedder_timeout_seconds,
        model_answer_bytes_max=VECTOR_BYTES_MAX * settings.embedder_batch,
    )
    return OpenAIEmbedder(
        HttpModel(wire, allowed, clock=clock or SystemClock(), randomness=randomness, pause=pause),
        redact=redact,
        dimensions=settings.embedder_dimensions,
        batch_texts=settings.embedder_batch,
        text_bytes_max=settings.embedder_text_bytes_max,
    )


def _open_local() -> Embedder:
    try:
        from recollect.embedding.local import open_wordllama  # numpy is an extra
    except ImportError as error:
        raise MissingExtra(
            f"local embeddings need an extra: pip install 'recollect[embed]' ({error})"
        ) from error
    return open_wordllama()


def _wire(model: str, settings: Settings, environ: Mapping[str, str]) -> Embeddings:
    provider = Provider(
        name="openai",
        default_url=OPENAI_URL,
        url=(settings.embedder_base_url or environ.get("OPENAI_BASE_URL", "")).strip() or None,
        key=environ.get("OPENAI_API_KEY", "").strip() or None,
    )
    if not provider.is_known:
        raise InvalidSetting(
            f"embedder openai:{model} needs a key: set {provider.key_variable}, "
            "or embedder_base_url for a server that needs none"
        )
    url = joined(checked_url(provider.url or provider.default_url), "/embeddings")
    return Embeddings(
        model=model, url=url, key=checked_key(provider), dimensions=settings.embedder_dimensions
    )

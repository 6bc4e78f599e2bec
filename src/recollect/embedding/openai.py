"""Embeddings by OpenAI's protocol, which many servers speak: `POST …/embeddings`.

The way there is that of the models: the same client, retries, pauses and limits. What is sent was
redacted; what comes back is checked before it counts as a vector. `open_embedder` finds the one
that the settings and the environment name, whichever it is.
"""

from __future__ import annotations

import base64
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from recollect.clock import Clock, SystemClock
from recollect.config import Settings
from recollect.embedding.protocol import (
    FLOAT_BYTES,
    Embedded,
    Embedder,
    cut,
    never,
    unit_bytes,
    zero_bytes,
)
from recollect.errors import InvalidOutput, InvalidSetting, MissingExtra, ModelError, PromptTooLong
from recollect.ids import SYSTEM_RANDOMNESS, Randomness
from recollect.models.answers import Gathering, StopReason
from recollect.models.protocol import Completion, Model, Pause, Request, Usage
from recollect.models.providers import PROVIDERS, Provider, cut_name, place_of
from recollect.models.tokens import estimate_tokens
from recollect.models.wire import Dialect, Wire

TEXT_BYTES_MIN = 200  # a server that takes less takes nothing
VECTOR_FRAMES = 128  # of a stream: what one vector of 4,096 numbers may take on the wire


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest(Request):
    """Texts that want vectors; as a prompt they stand in one, where tokens are estimated."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings(Wire):
    """Speaks `POST …/embeddings`. The answer's text is one vector a line, in base 64."""

    dimensions: int = 0  # asked for; 0 leaves it to the model

    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]:  # noqa: ARG002
        texts = request.texts if isinstance(request, EmbeddingRequest) else (request.prompt,)
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        return body | {"dimensions": self.dimensions} if self.dimensions else body

    def read(self, content: Mapping[str, Any], into: Gathering) -> None:
        if isinstance(content.get("model"), str):
            into.model = content["model"]
        usage = content.get("usage")
        if isinstance(usage, dict):
            # Nothing is said in answer; one token is the least that a count can be.
            into.count(sent=usage.get("prompt_tokens") or usage.get("total_tokens"), answered=1)
        into.add("\n".join(base64.b64encode(each).decode() for each in _vectors(content)))
        into.stop = StopReason.DONE


def _vectors(content: Mapping[str, Any]) -> list[bytes]:
    data = content.get("data")
    if not isinstance(data, list) or not data or not all(isinstance(each, dict) for each in data):
        raise InvalidOutput("the answer holds no embeddings")
    places = [each.get("index", at) for at, each in enumerate(data)]
    if sorted(map(str, places)) != sorted(map(str, range(len(data)))):
        raise InvalidOutput("the answer does not say which embedding belongs to which text")
    vectors = [b""] * len(data)
    for place, each in zip(places, data, strict=True):
        numbers = each.get("embedding")
        if not isinstance(numbers, list) or not numbers:
            raise InvalidOutput("the answer holds an embedding without numbers")
        try:
            vectors[int(place)] = unit_bytes(numbers)
        except ValueError as error:
            raise InvalidOutput(f"the answer holds no vectors: {error}") from None
    return vectors


class OpenAIEmbedder:
    """An Embedder whose vectors a server makes."""

    def __init__(
        self,
        model: Model,
        *,
        redact: Callable[[str], str],
        dimensions: int,
        batch_texts: int,
        text_bytes_max: int,
    ) -> None:
        self._model = model
        self._redact = redact
        self._asked_dimensions = dimensions
        self._known_dimensions = dimensions
        self._batch_texts = batch_texts
        self._text_bytes_max = text_bytes_max  # less once a server was found to take less

    @property
    def name(self) -> str:
        asked = self._asked_dimensions
        return f"{self._model.name}/{asked}" if asked else self._model.name

    @property
    def dimensions(self) -> int:
        if not self._known_dimensions:
            self.embed(["dimensions"])
        return self._known_dimensions

    @property
    def batch_texts(self) -> int:
        return self._batch_texts

    def __repr__(self) -> str:
        return f"<OpenAIEmbedder {self.name}>"

    def close(self) -> None:
        self._model.close()

    def tokens_of(self, texts: Sequence[str]) -> int:
        return sum(estimate_tokens(cut(text, self._text_bytes_max)) for text in texts)

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        cleaned = [cut(self._redact(text), self._text_bytes_max) for text in texts]
        # Providers refuse a text without words.
        places = [at for at, text in enumerate(cleaned) if text.strip()]
        answers: list[tuple[list[bytes], Completion]] = []
        try:
            for start in range(0, len(places), self._batch_texts):
                batch = places[start : start + self._batch_texts]
                self._ask([cleaned[at] for at in batch], is_cancelled, answers)
        except ModelError as error:
            error.tries_begun += sum(1 + each.tries_lost for _, each in answers)
            raise
        zero = zero_bytes(self.dimensions) if len(places) < len(cleaned) else b""
        vectors = [zero] * len(cleaned)
        made = chain.from_iterable(each for each, _ in answers)
        for at, vector in zip(places, made, strict=True):
            vectors[at] = vector
        usages = [each.usage for _, each in answers]
        sent = sum(each.input_tokens for each in usages)
        is_estimate = any(each.is_estimate for each in usages)
        return Embedded(
            vectors=tuple(vectors),
            usage=Usage(input_tokens=sent, output_tokens=0, is_estimate=is_estimate),
            tries_lost=sum(each.tries_lost for _, each in answers),
        )

    def _ask(
        self,
        texts: list[str],
        is_cancelled: Callable[[], bool],
        answers: list[tuple[list[bytes], Completion]],
    ) -> None:
        """Ask for all of them at once; where that is too long, for half, at last of half a text."""
        texts = [cut(text, self._text_bytes_max) for text in texts]
        try:
            answers.append(self._answered(texts, is_cancelled))
        except PromptTooLong:
            if len(texts) > 1:
                half = len(texts) // 2
                self._ask(texts[:half], is_cancelled, answers)
                self._ask(texts[half:], is_cancelled, answers)
                return
            size = len(texts[0].encode()) // 2
            if size < TEXT_BYTES_MIN:
                raise
            self._ask([cut(texts[0], size)], is_cancelled, answers)
            self._text_bytes_max = min(self._text_bytes_max, size)

    def _answered(
        self, texts: list[str], is_cancelled: Callable[[], bool]
    ) -> tuple[list[bytes], Completion]:
        completion = self._model.complete(
            EmbeddingRequest(
                system="",
                prompt="\n".join(texts),
                texts=tuple(texts),
                output_tokens_max=VECTOR_FRAMES * len(texts),
                is_cancelled=is_cancelled,
            )
        )
        vectors = [base64.b64decode(line) for line in completion.text.split("\n")]
        if len(vectors) != len(texts):
            raise InvalidOutput(f"{len(texts)} texts were answered with {len(vectors)} embeddings")
        self._check_dimensions({len(vector) // FLOAT_BYTES for vector in vectors})
        return vectors, completion

    def _check_dimensions(self, found: set[int]) -> None:
        known = self._known_dimensions
        if len(found) > 1 or (known and found != {known}):
            expected = f"{known} numbers" if known else "one number of them"
            told = ", ".join(map(str, sorted(found)))
            raise InvalidOutput(f"embeddings of {told} numbers, where {expected} were expected")
        self._known_dimensions = found.pop()


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
    prefix, _, model = cut_name(settings.embedder.strip())
    match prefix, model.strip():
        case ("none" | "", ""):
            return None
        case ("local" | "wordllama", ""):
            return _open_local()
        case (name, "") if name in PROVIDERS:
            raise InvalidSetting(f"embedder names no model: it is `{name}:<name>`")
        case (name, model) if name in PROVIDERS and name != "anthropic":
            variables = os.environ if environ is None else environ
            wire = _wire(PROVIDERS[name], model, settings, variables)
        case _:
            raise InvalidSetting(
                "embedder is none, local, openai:<name>, or ollama/<name>, lmstudio/<name>, "
                f"llamacpp/<name> on this machine, not {settings.embedder!r}"
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


def _wire(
    provider: Provider, model: str, settings: Settings, environ: Mapping[str, str]
) -> Embeddings:
    place = place_of(provider, settings.embedder_base_url, environ, setting="embedder_base_url")
    return Embeddings(
        model=model,
        url=place.joined("/embeddings"),
        key=place.key,
        provider=provider.name,
        dimensions=settings.embedder_dimensions,
    )

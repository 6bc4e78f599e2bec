"""Embedders for tests: one that needs nothing, and its answers over real HTTP.

    with ScriptedServer(embeddings_by(HashEmbedder())) as server:
        embedder = open_embedder(Settings(embedder="openai:m", embedder_base_url=server.url), …)

Texts with words in common have similar vectors, and the same text has the same one everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from operator import add

from recollect.embedding.protocol import Embedded, floats, never, unit_bytes
from recollect_conformance.scripted import Step, raw, status
from recollect_conformance.scripted_frames import MODEL, Received

USAGE_TOKENS = 7
DIMENSIONS_MAX = 64  # as many bytes as one hash has

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """The sum of what a hash makes of each word."""

    def __init__(self, dimensions: int = 32, name: str = "hash") -> None:
        if not 1 <= dimensions <= DIMENSIONS_MAX:
            raise ValueError(f"between 1 and {DIMENSIONS_MAX} dimensions, not {dimensions}")
        self._dimensions = dimensions
        self._name = f"{name}:{dimensions}"

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def batch_texts(self) -> int:
        return 64

    def close(self) -> None:
        """There is nothing to close."""

    def embed(
        self,
        texts: Sequence[str],
        *,
        is_cancelled: Callable[[], bool] = never,  # noqa: ARG002  it never waits
    ) -> Embedded:
        return Embedded(vectors=tuple(self._vector(text) for text in texts))

    def _vector(self, text: str) -> bytes:
        total = [0.0] * self._dimensions
        for word in _WORD.findall(text.casefold()):
            digest = blake2b(word.encode("utf-8", "replace"), digest_size=self._dimensions)
            total = list(map(add, total, (byte - 127.5 for byte in digest.digest())))
        return unit_bytes(total)


def embeddings_by(embedder: HashEmbedder) -> Callable[[Received], Step]:
    """A script for ScriptedServer: requests for embeddings are answered by this one."""

    def answered(received: Received) -> Step:
        if not received.path.partition("?")[0].endswith("/embeddings"):
            return status(404, f"nothing is served at {received.path}")
        return embeddings(embedder.embed(received.body["input"]).vectors)

    return answered


def embeddings(vectors: Sequence[bytes], *, tokens: int | None = USAGE_TOKENS) -> Step:
    """An answer with these vectors, in their order."""
    data = [
        {"object": "embedding", "index": at, "embedding": list(floats(vector))}
        for at, vector in enumerate(vectors)
    ]
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    return raw(json.dumps({"object": "list", "model": MODEL, "data": data} | usage).encode())

"""The embedder of tests: the same everywhere, and words in common tell."""

from __future__ import annotations

import math

import pytest

from recollect.embedding.protocol import Embedder, floats
from recollect_conformance.scripted_embedder import HashEmbedder


def similarity(one: str, other: str) -> float:
    left, right = map(floats, HashEmbedder().embed([one, other]).vectors)
    return sum(a * b for a, b in zip(left, right, strict=True))


def test_a_text_has_one_vector_whatever_stands_beside_it() -> None:
    texts = ["Bees dance.", "", "蜂が踊る", "\ud800", "x" * 1_000_000]
    together = HashEmbedder().embed(texts).vectors
    assert together == tuple(HashEmbedder().embed([text]).vectors[0] for text in texts)
    assert [math.hypot(*floats(each)) for each in together[:2]] == pytest.approx([1, 0])


def test_words_in_common_make_texts_similar() -> None:
    assert similarity("bees dance at noon", "Bees DANCE at night") > 0.5
    assert similarity("bees dance", "tax returns") < 0.5


def test_its_name_says_how_long_its_vectors_are() -> None:
    embedder: Embedder = HashEmbedder(8)
    assert (embedder.name, embedder.dimensions) == ("hash:8", 8)
    assert len(embedder.embed(["a"]).vectors[0]) == 32

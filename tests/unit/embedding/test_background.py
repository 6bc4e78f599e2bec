"""Vectors in the background: what is refused stands in nobody's way, what was paid for is kept."""

from __future__ import annotations

import logging
import math
import struct
from collections.abc import Callable, Sequence

import pytest

import recollect
from recollect.embedding.background import FAILURES_MAX
from recollect.embedding.protocol import Embedded, never
from recollect.errors import InvalidOutput, ModelError, ModelRejected, ModelUnavailable
from recollect_conformance.scripted_embedder import HashEmbedder

TEXTS = 50


class Picky(HashEmbedder):
    """Refuses texts with one of some words, with what else is in the same request."""

    def __init__(self, *refused: str, error: type[ModelError] = ModelRejected) -> None:
        super().__init__()
        self.refused = refused
        self.error = error
        self.requests = 0

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        self.requests += 1
        if any(word in text for word in self.refused for text in texts):
            raise self.error("content filter")
        return super().embed(texts, is_cancelled=is_cancelled)


class Odd(HashEmbedder):
    """Gives something else than it promised."""

    def __init__(self, given: Callable[[Sequence[bytes]], Sequence[bytes]]) -> None:
        super().__init__()
        self.given = given

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        vectors = super().embed(texts, is_cancelled=is_cancelled).vectors
        return Embedded(vectors=tuple(self.given(vectors)))


class Unplugged(HashEmbedder):
    """Fails as a socket does."""

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        raise ConnectionResetError("cut off")


def vectors_of(memory: recollect.Memory, space: str = "a") -> list[bytes]:
    changes = memory.store.vectors.changes(space, HashEmbedder().name, 0, 0, 1000)
    return [vector for *_, vector in changes.added if vector]


def fill(memory: recollect.Memory, *more: str) -> None:
    for number in range(TEXTS):
        memory.space("a").facts.add(f"fact {number}")
    for text in more:
        memory.space("a").facts.add(text)


@pytest.mark.parametrize("error", [ModelRejected, InvalidOutput])
def test_one_text_that_is_refused_stops_no_other(
    store_url: str, caplog: pytest.LogCaptureFixture, error: type[ModelError]
) -> None:
    with recollect.open(store_url, embedder=Picky("poison", error=error)) as memory:
        fill(memory, "poison", "poison ivy")
        with caplog.at_level(logging.WARNING):
            memory.pipeline.embed_all()
        assert len(vectors_of(memory)) == TEXTS
        assert caplog.text.count(f"has no vector: {error.__name__}") == 2
        assert memory.pipeline.embed_some() == 0


def test_an_embedder_that_refuses_everything_is_at_fault_and_no_text() -> None:
    embedder = Picky("fact")
    with recollect.open(":memory:", embedder=embedder) as memory:
        fill(memory)
        with pytest.raises(ModelRejected):
            memory.pipeline.embed_some()
        assert embedder.requests == FAILURES_MAX
        embedder.refused = ()
        memory.pipeline.embed_all()
        assert len(vectors_of(memory)) == TEXTS


def test_what_was_made_is_kept_when_another_space_cannot_be_embedded() -> None:
    with recollect.open(":memory:", embedder=Picky("b:", error=ModelUnavailable)) as memory:
        memory.space("a").facts.add("a: one")
        memory.space("b").facts.add("b: two")
        with pytest.raises(ModelUnavailable):
            memory.pipeline.embed_some()
        assert len(vectors_of(memory)) == 1


@pytest.mark.parametrize(
    "given",
    [
        lambda vectors: [*vectors, vectors[0]],
        lambda vectors: vectors[1:],
        lambda vectors: [vector[:-4] for vector in vectors],
        lambda vectors: [struct.pack("<f", math.nan) + vector[4:] for vector in vectors],
        lambda vectors: [struct.pack("<f", math.inf) + vector[4:] for vector in vectors],
    ],
)
def test_what_is_no_vector_is_not_kept(
    given: Callable[[Sequence[bytes]], Sequence[bytes]],
) -> None:
    with recollect.open(":memory:", embedder=Odd(given)) as memory:
        memory.space("a").facts.add("tea is green")
        with pytest.raises(InvalidOutput):
            memory.pipeline.embed_some()
        assert vectors_of(memory) == []


@pytest.mark.parametrize("embedder", [Picky(""), Unplugged()])
def test_work_says_what_it_did_though_nothing_can_be_embedded(
    caplog: pytest.LogCaptureFixture, embedder: HashEmbedder
) -> None:
    """P8."""
    with recollect.open(":memory:", embedder=embedder) as memory:
        session = memory.space("a").session("k")
        session.append("user", "My favourite fact is teal", name="Ana")
        session.sleep()
        with caplog.at_level(logging.WARNING):
            report = memory.work()
        assert report.processed == 1
        assert "vectors are left for later" in caplog.text


def test_work_for_one_space_shows_no_text_of_another_to_the_embedder(store_url: str) -> None:
    embedder = Picky("of bob")
    with recollect.open(store_url, embedder=embedder) as memory:
        for name in ("a", "b"):
            memory.space(name).facts.add("of bob" if name == "b" else "of alice")
        memory.work(space="a")
        assert embedder.requests == 1
        pages = {"MEMORY", "memory_summary"}
        assert (len(vectors_of(memory)), len(vectors_of(memory, "b"))) == (1 + len(pages), 0)

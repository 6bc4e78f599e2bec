"""Recall by meaning, end to end: vectors follow what is stored, and recall goes on without them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pytest

import recollect
from recollect.embedding.protocol import Embedded, never
from recollect.errors import ModelUnavailable
from recollect_conformance.scripted_embedder import HashEmbedder
from tests.unit.test_worker import eventually


class Synonyms(HashEmbedder):
    """Takes two words for one."""

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        return super().embed(
            [text.replace("automobile", "car") for text in texts], is_cancelled=is_cancelled
        )


class Silent(HashEmbedder):
    """Answers nothing once it is told so."""

    is_silent = False

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        if self.is_silent:
            raise ModelUnavailable("nobody is there")
        return super().embed(texts, is_cancelled=is_cancelled)


class Asked(HashEmbedder):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        self.texts += texts
        return super().embed(texts, is_cancelled=is_cancelled)


def texts(space: recollect.Space, query: str) -> list[str]:
    return [hit.text for hit in space.recall(query, kinds=["fact"])]


def test_what_means_the_same_is_found_by_other_words() -> None:
    """N1."""
    with recollect.open(":memory:", embedder=Synonyms()) as memory:
        space = memory.space()
        space.facts.add("car")
        assert texts(space, "automobile") == []
        memory.work()
        [hit] = space.recall("automobile", kinds=["fact"])
        assert hit.text == "car"
        assert hit.why["similarity"] > 0


def test_a_vector_follows_what_was_changed_and_goes_with_what_was_deleted() -> None:
    """N1, P11."""
    with recollect.open(":memory:", embedder=Synonyms()) as memory:
        space = memory.space()
        kept = space.facts.add("car")
        memory.work()
        space.facts.update(kept.id, "tram")
        assert texts(space, "automobile") == []
        memory.work()
        assert texts(space, "tram") == ["tram"]
        session = space.session("k")
        session.append("user", "car")
        memory.work()
        assert [hit.text for hit in space.recall("automobile", kinds=["record"])] == ["car"]
        space.forget(session=session)
        assert space.recall("automobile", kinds=["record"]) == []


def test_an_embedder_that_cannot_be_asked_leaves_recall_by_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """N1, P8."""
    embedder = Silent()
    with recollect.open(":memory:", embedder=embedder) as memory:
        space = memory.space()
        space.facts.add("a red car")
        memory.work()
        embedder.is_silent = True
        with caplog.at_level(logging.WARNING):
            assert texts(space, "car") == ["a red car"]
        assert "nobody is there" in caplog.text


def test_a_worker_embeds_in_the_background() -> None:
    with recollect.open(":memory:", embedder=Synonyms()) as memory:
        space = memory.space()
        space.facts.add("car")
        worker = memory.worker()
        worker.start()
        eventually(lambda: texts(space, "automobile") == ["car"])
        worker.stop()


def test_another_embedder_begins_anew(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("memory") / "m.db"
    with recollect.open(file, embedder=HashEmbedder()) as memory:
        memory.space().facts.add("car")
        memory.work()
    with recollect.open(file, embedder=Synonyms(dimensions=16)) as memory:
        assert texts(memory.space(), "automobile") == []
        memory.work()
        assert texts(memory.space(), "automobile") == ["car"]


def test_without_an_embedder_there_is_no_similarity() -> None:
    with recollect.open(":memory:") as memory:
        memory.space().facts.add("car")
        memory.work()
        [hit] = memory.space().recall("car")
        assert "similarity" not in hit.why


def test_a_question_is_embedded_without_the_names_it_asks_about() -> None:
    embedder = Asked()
    with recollect.open(":memory:", embedder=embedder) as memory:
        space = memory.space()
        for name in ("Ana", "Bo"):
            space.session(name).append("user", f"{name} rows a boat", name=name)
        memory.work()
        embedder.texts.clear()
        first = space.recall("Does Ana row?")
        assert embedder.texts[-1] == "Does row?"
        again, embedder.texts = embedder.texts, []
        assert space.recall("Does Ana row?") == first
        assert embedder.texts == ["Does row?"] != again  # who speaks here is known by now
        assert space.recall("Does Bo row?")[0].speaker == "Bo"
        assert embedder.texts == ["Does row?"] * 2


def test_a_name_of_somebody_who_is_not_found_is_embedded_as_any_word() -> None:
    embedder = Asked()
    with recollect.open(":memory:", embedder=embedder) as memory:
        space = memory.space()
        ana, bo = space.session("ana"), space.session("bo")
        ana.append("user", "A boat", name="Ana")
        bo.append("user", "A boat", name="Bo")
        memory.work()
        space.recall("Has Ana a boat?")
        embedder.texts.clear()
        assert space.recall("Has Ana a boat?", filters={"session": bo.id})
        assert embedder.texts[-1] == "Has Ana a boat?"

"""What recall holds in memory is what the store has: other models, many changes, odd rows (N1)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.embedding.protocol import Embedded, never
from recollect.recall import meaning
from recollect.store.postgres import PostgresDatabase
from recollect.store.relational import vectors as rows
from recollect.store.relational.vectors import Vectors
from recollect_conformance.scripted_embedder import HashEmbedder

DAY_SECONDS = 86_400.0
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Synonyms(HashEmbedder):
    """Takes two words for one."""

    def embed(self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never) -> Embedded:
        return super().embed(
            [text.replace("automobile", "car") for text in texts], is_cancelled=is_cancelled
        )


class Renamed(Synonyms):
    """Has the same name, whatever its length."""

    @property
    def name(self) -> str:
        return "renamed"


@pytest.fixture(autouse=True)
def _in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresDatabase, "vector_index", lambda _: None)


def found(memory: recollect.Memory, query: str = "automobile", space: str = "default") -> list[str]:
    return [hit.text for hit in memory.space(space).recall(query, kinds=["fact"])]


def held(memory: recollect.Memory) -> int:
    vectors = memory._recallers.meaning()
    assert vectors is not None
    return len(vectors._current("default"))


def opened(url: str, embedder: HashEmbedder, clock: ManualClock) -> recollect.Memory:
    settings = {"consolidation": "off"}  # whose pages have vectors as well
    return recollect.open(url, embedder=embedder, clock=clock, settings=settings)


def test_vectors_stay_when_those_of_another_model_go(durable_store_url: str) -> None:
    clock = ManualClock()
    with opened(durable_store_url, HashEmbedder(16), clock) as memory:
        memory.space().facts.add("car")
        memory.work()
    with opened(durable_store_url, Synonyms(), clock) as memory:
        memory.work()
        assert found(memory) == ["car"]
        clock.advance(DAY_SECONDS)
        memory.work()
        assert memory.store.vectors.changes("default", "hash:16", 0, 0, 9).added == []
        assert found(memory) == ["car"]


def test_two_embedders_on_one_store_embed_each_text_once(durable_store_url: str) -> None:
    """X11."""
    clock = ManualClock()
    asked: list[tuple[str, str]] = []

    class Counting(HashEmbedder):
        def embed(
            self, texts: Sequence[str], *, is_cancelled: Callable[[], bool] = never
        ) -> Embedded:
            asked.extend((self.name, text) for text in texts)
            return super().embed(texts, is_cancelled=is_cancelled)

    with (
        opened(durable_store_url, Counting(16), clock) as one,
        opened(durable_store_url, Counting(32), clock) as other,
    ):
        one.space().facts.add("car")
        for _ in range(6):
            one.work()
            other.work()
            clock.advance(DAY_SECONDS / 2)
    assert sorted(asked) == [("hash:16", "car"), ("hash:32", "car")]


def test_a_fresh_memory_holds_all_vectors_after_many_changes(
    durable_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "CHANGES", 3)
    clock = ManualClock()
    with opened(durable_store_url, Synonyms(), clock) as memory:
        facts = [memory.space().facts.add(f"old {name}") for name in NUMBERS]
        memory.work()
        assert found(memory) == []
        for fact, name in zip(facts, NUMBERS, strict=True):
            memory.space().facts.update(fact.id, f"car {name}")
            memory.work()
        assert held(memory) == len(NUMBERS)
        with opened(durable_store_url, Synonyms(), clock) as fresh:
            assert held(fresh) == len(NUMBERS)
            assert "car nine" in found(fresh, "automobile nine")


def test_who_has_missed_too_much_begins_anew(
    durable_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P11: a vector that is not told as gone any more is gone all the same."""
    monkeypatch.setattr(rows, "DROPPED_KEPT", 3)
    clock = ManualClock()
    with (
        opened(durable_store_url, Synonyms(), clock) as memory,
        opened(durable_store_url, Synonyms(), clock) as other,
    ):
        gone = memory.space().session("gone")
        gone.append("user", "car")
        kept = memory.space().facts.add("tram")
        memory.work()
        assert held(other) == 2
        memory.space().forget(session=gone)
        for name in NUMBERS:
            memory.space().facts.update(kept.id, f"tram {name}")
            memory.work()
        left = memory.store.vectors.changes("default", "hash:32", 1, 0, 100)
        assert (left.added, left.dropped, left.upto) == ([], [], 0), "little is remembered"
        assert found(other, "tram nine") == ["tram nine"]
        assert held(other) == 1


def test_vectors_of_another_length_are_as_if_there_were_none(durable_store_url: str) -> None:
    clock = ManualClock()
    with opened(durable_store_url, Renamed(32), clock) as memory:
        memory.space().facts.add("a red car")
        memory.work()
    with opened(durable_store_url, Renamed(16), clock) as memory:
        assert found(memory, "red") == ["a red car"]
        assert found(memory) == []
        memory.space().facts.add("car")
        memory.work()
        assert found(memory) == ["car"]


def test_one_space_that_is_read_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on = threading.Event(), threading.Event()
    changes = Vectors.changes

    def slow(self: Vectors, space: str, *args: Any) -> Any:
        if space == "large":
            reading.set()
            assert go_on.wait(30)
        return changes(self, space, *args)

    with recollect.open(":memory:", embedder=Synonyms()) as memory:
        for name in ("large", "small"):
            memory.space(name).facts.add("car")
        memory.work()
        monkeypatch.setattr(Vectors, "changes", slow)
        thread = threading.Thread(target=found, args=(memory, "automobile", "large"))
        thread.start()
        assert reading.wait(30)
        other: list[list[str]] = []
        second = threading.Thread(target=lambda: other.append(found(memory, space="small")))
        second.start()
        second.join(30)
        go_on.set()
        thread.join(30)
        assert other == [["car"]]


def test_a_question_about_nothing_here_finds_nothing() -> None:
    """T6."""
    with recollect.open(":memory:", embedder=HashEmbedder(64)) as memory:
        space = memory.space()
        for text in (
            "Ana lives in Lisbon",
            "Ana likes green tea",
            "The router stands behind the sofa",
            "Ben plays chess on Sundays",
        ):
            space.facts.add(text)
        memory.work()
        for query in ("zebra", "quantum chromodynamics lattice gauge"):
            assert space.recall(query) == []
            assert not space.context(query)


def test_what_has_vectors_is_not_looked_through_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with recollect.open(path, embedder=Synonyms()) as memory:
        for number in range(5):
            memory.space().session("k").append("user", f"record {number}")
        memory.work()
    with closing(apsw.Connection(str(path))) as connection:
        upto = "SELECT upto = (SELECT max(id) FROM session_history) FROM embedded_records"
        assert connection.execute(upto).fetchall() == [(1,)]

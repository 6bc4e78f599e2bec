"""The recall benchmark on real stores: what is appended, what is asked and when, what is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import recollect
from recollect.benchmarks import recall
from recollect.benchmarks.blocks import BLOCK, FTS_BLOCK, NEIGHBOURS_BLOCK
from recollect.benchmarks.ingest import SetClock
from recollect.benchmarks.recall import RecallBenchmark
from recollect.benchmarks.tasks import BenchTask, load
from recollect.errors import InvalidValue
from recollect_conformance.scripted_embedder import HashEmbedder
from tests.unit.benchmarks.conversations import (
    write_locomo,
    write_longmemeval,
    write_market_days,
)


@dataclass
class Heard:
    """What was told on the way."""

    said: list[tuple[str, int, int]] = field(default_factory=list)

    def __call__(self, what: str, done: int, total: int) -> None:
        self.said.append((what, done, total))


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def memory(durable_store_url: str, clock: SetClock) -> Iterator[recollect.Memory]:
    settings = {"extract_on_session_start": "off"}
    with recollect.open(durable_store_url, settings=settings, clock=clock) as opened:
        yield opened


def silent(what: str, done: int, total: int) -> None:
    """Nobody listens."""


def test_every_turn_is_appended_with_its_speaker_and_its_time(
    tmp_path: Path, memory: recollect.Memory, clock: SetClock
) -> None:
    RecallBenchmark(memory, clock, silent).measure(load(write_locomo(tmp_path)))
    assert memory.spaces() == ["bench:locomo-dev.json:conv-1"]
    sessions = memory.space(memory.spaces()[0]).sessions
    first, second = reversed([each for each in sessions.list() if each.source == "bench"])
    assert [record.name for record in sessions.records(first.id)] == ["Ana", "Ben", "Ana"]
    said = sessions.records(second.id)
    assert [record.at.isoformat() for record in said] == [
        "2023-08-19T10:04:00+00:00",
        "2023-08-19T10:05:00+00:00",
    ]


def test_each_method_has_its_figures_for_the_file_and_each_category(
    tmp_path: Path, memory: recollect.Memory, clock: SetClock
) -> None:
    result = RecallBenchmark(memory, clock, silent).measure(load(write_locomo(tmp_path)))
    assert (result.task, result.spaces) == (BenchTask.LOCOMO, 1)
    assert (result.turns, result.questions) == (5, 2)
    rows = {row.name: row for row in result.methods}
    assert list(rows) == [recall.FTS_TURNS, recall.FTS_SESSIONS, recall.GREP, recall.BY_WORDS]
    ours = rows[recall.BY_WORDS]
    assert (ours.mean["R@5"], ours.mean["MRR"]) == (1.0, 1.0)
    assert {name: group.questions for name, group in ours.by_category.items()} == {
        "single-hop": 1,
        "temporal": 1,
    }
    assert "R@5" not in rows[recall.FTS_SESSIONS].mean
    assert rows[recall.FTS_SESSIONS].mean["session any@5"] == 1.0


def test_each_block_has_its_share_of_the_evidence_within_its_budget(
    tmp_path: Path, memory: recollect.Memory, clock: SetClock
) -> None:
    result = RecallBenchmark(memory, clock, silent).measure(load(write_locomo(tmp_path)))
    rows = {row.name: row for row in result.blocks.methods}
    assert list(rows) == [FTS_BLOCK, NEIGHBOURS_BLOCK, BLOCK]
    ours = rows[BLOCK]
    assert [ours.mean[f"told@{budget}"] for budget in (500, 1000, 2000, 4000)] == [1.0] * 4
    assert all(0 < ours.mean[f"tokens@{budget}"] <= budget for budget in (500, 1000, 2000, 4000))
    assert rows[FTS_BLOCK].by_category["temporal"].mean["standing@500"] == 1.0
    assert [each.against for each in result.blocks.differences] == [FTS_BLOCK, NEIGHBOURS_BLOCK]
    assert result.blocks.elsewhere is None


def test_questions_of_another_data_set_say_how_much_is_told_where_there_is_nothing_to_say(
    tmp_path: Path, memory: recollect.Memory, clock: SetClock
) -> None:
    elsewhere = load(write_longmemeval(tmp_path)).pools[0].queries
    benchmark = RecallBenchmark(memory, clock, silent)
    unanswered = benchmark.measure(load(write_locomo(tmp_path)), elsewhere).blocks.elsewhere
    assert unanswered is not None
    assert unanswered.questions == 2
    assert all(0 <= share < 0.5 for share in unanswered.by_budget.values())


def test_the_second_speaker_may_sit_in_the_assistants_seat(
    tmp_path: Path, memory: recollect.Memory, clock: SetClock
) -> None:
    RecallBenchmark(memory, clock, silent).measure(load(write_locomo(tmp_path), "assistant"))
    sessions = memory.space(memory.spaces()[0]).sessions
    first = [each for each in sessions.list() if each.source == "bench"][-1]
    said = sessions.records(first.id)
    assert [(record.name, record.role) for record in said] == [
        ("Ana", "user"),
        ("Ben", "assistant"),
        ("Ana", "user"),
    ]


def test_pooled_sessions_are_found_by_what_was_said_in_them(
    tmp_path: Path, memory: recollect.Memory, clock: SetClock
) -> None:
    result = RecallBenchmark(memory, clock, silent).measure(load(write_longmemeval(tmp_path)))
    ours = result.methods[-1]
    assert (result.spaces, result.turns, result.questions) == (1, 6, 2)
    assert (ours.mean["session any@5"], ours.mean["session nDCG@10"]) == (1.0, 1.0)
    assert (ours.mean["R@5"], ours.mean["MRR"]) == (1.0, 1.0)


def test_a_question_is_asked_at_its_own_date(
    tmp_path: Path, memory: recollect.Memory, clock: SetClock
) -> None:
    path = write_market_days(tmp_path, "What did I buy at the market two weeks ago?")
    ours = RecallBenchmark(memory, clock, silent).measure(load(path)).methods[-1]
    assert (ours.mean["MRR"], ours.mean["session nDCG@10"]) == (1.0, 1.0)


def test_files_share_nothing_but_the_store(
    tmp_path: Path, memory: recollect.Memory, clock: SetClock
) -> None:
    benchmark = RecallBenchmark(memory, clock, silent)
    results = [
        benchmark.measure(load(write_locomo(tmp_path, name)))
        for name in ("locomo-dev.json", "locomo-test.json")
    ]
    assert [(each.file, each.turns) for each in results] == [
        ("locomo-dev.json", 5),
        ("locomo-test.json", 5),
    ]
    assert results[0].methods[-1].mean == results[1].methods[-1].mean
    assert len(memory.spaces()) == 2


def test_a_store_that_holds_anything_is_left_alone(
    memory: recollect.Memory, clock: SetClock
) -> None:
    memory.space("mine").session("telegram:42").append("user", "hello")
    with pytest.raises(InvalidValue, match="needs an empty one"):
        RecallBenchmark(memory, clock, silent)


def test_progress_is_told_to_the_end(
    tmp_path: Path, memory: recollect.Memory, clock: SetClock
) -> None:
    heard = Heard()
    RecallBenchmark(memory, clock, heard).measure(load(write_locomo(tmp_path)))
    assert heard.said == [
        ("conv-1: appended", 3, 5),
        ("conv-1: appended", 5, 5),
        ("conv-1: recall, words", 1, 2),
        ("conv-1: recall, words", 2, 2),
        ("conv-1: learned from sessions", 0, 2),
        ("conv-1: learned from sessions", 2, 2),
        *(
            (f"conv-1: {name}", done, 2)
            for name in (FTS_BLOCK, NEIGHBOURS_BLOCK, BLOCK)
            for done in (1, 2)
        ),
    ]


def test_with_an_embedder_vectors_are_measured_together_with_words(
    tmp_path: Path, clock: SetClock
) -> None:
    pytest.importorskip("numpy")
    with recollect.open(":memory:", embedder=HashEmbedder(), clock=clock) as memory:
        result = RecallBenchmark(memory, clock, silent).measure(load(write_locomo(tmp_path)))
    names = [row.name for row in result.methods]
    assert names[-2:] == [recall.BY_WORDS, recall.BY_WORDS_AND_VECTORS]

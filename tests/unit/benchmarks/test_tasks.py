"""Public data read as recall tasks: what counts as a turn, a question and its evidence."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.benchmarks.tasks import (
    ABSTENTION,
    ADVERSARIAL,
    BenchTask,
    find_files,
    limited,
    load,
    with_unanswerable,
)
from recollect.errors import InvalidValue
from tests.unit.benchmarks.conversations import write_locomo, write_longmemeval


def test_a_locomo_conversation_is_a_space_of_dated_turns(tmp_path: Path) -> None:
    data = load(write_locomo(tmp_path))
    assert (data.task, data.file) == (
        BenchTask.LOCOMO,
        "locomo-dev.json",
    )
    (pool,) = data.pools
    assert [turn.id for turn in pool.turns] == ["D1:1", "D1:2", "D1:3", "D2:1", "D2:2"]
    assert pool.turns[1].said_at == datetime(2023, 5, 8, 13, 57, tzinfo=UTC)
    assert (pool.turns[1].speaker, pool.turns[1].role) == ("Ben", "user")
    assert pool.turns[4].text == "Look at this. [a photo of a red kite on a beach]"


def test_questions_that_cannot_be_answered_stand_apart_until_they_are_asked_for(
    tmp_path: Path,
) -> None:
    for path, category in (
        (write_locomo(tmp_path), ADVERSARIAL),
        (write_longmemeval(tmp_path), ABSTENTION),
    ):
        data = load(path)
        (pool,) = data.pools
        (unanswerable,) = pool.unanswerable
        assert (unanswerable.category, unanswerable.is_answerable) == (category, False)
        assert unanswerable.answer == ""
        assert with_unanswerable(data).pools[0].queries == (*pool.queries, unanswerable)


def test_answers_are_texts_whatever_the_file_has(tmp_path: Path) -> None:
    (pool,) = load(write_locomo(tmp_path)).pools
    assert [query.answer for query in pool.queries] == ["A greyhound", "2023"]


def test_the_second_person_may_have_the_assistants_role(tmp_path: Path) -> None:
    (pool,) = load(write_locomo(tmp_path), "assistant").pools
    assert {(turn.speaker, turn.role) for turn in pool.turns} == {
        ("Ana", "user"),
        ("Ben", "assistant"),
    }


def test_locomo_questions_without_evidence_and_adversarial_ones_stay_out(tmp_path: Path) -> None:
    (pool,) = load(write_locomo(tmp_path)).pools
    assert [(query.category, {*query.turns}, {*query.sessions}) for query in pool.queries] == [
        ("single-hop", {"D1:1"}, {"D1"}),
        ("temporal", {"D2:1"}, {"D2"}),
    ]
    assert {query.asked_at for query in pool.queries} == {pool.turns[-1].said_at}


def test_evidence_in_every_spelling_is_read_and_what_is_unknown_left_out(tmp_path: Path) -> None:
    path = write_locomo(tmp_path)
    path.write_text(path.read_text().replace('["D2:1"]', '["D:1:02; D2:1", "D9:9"]'))
    (pool,) = load(path).pools
    assert pool.queries[1].turns == {"D1:2", "D2:1"}


def test_the_sessions_of_a_longmemeval_file_are_pooled_once_each_oldest_first(
    tmp_path: Path,
) -> None:
    data = load(write_longmemeval(tmp_path))
    assert data.task is BenchTask.LONGMEMEVAL
    (pool,) = data.pools
    assert [turn.id for turn in pool.turns] == [
        *("filler:0", "filler:1"),
        *("tea:0", "tea:1"),
        *("bicycle:0", "bicycle:1"),
    ]
    assert pool.turns[3].said_at == datetime(2023, 5, 20, 2, 22, tzinfo=UTC)
    assert (pool.turns[3].speaker, pool.turns[3].role) == ("", "assistant")


def test_longmemeval_questions_without_an_answer_stay_out(tmp_path: Path) -> None:
    (pool,) = load(write_longmemeval(tmp_path)).pools
    assert [(query.id, {*query.turns}, {*query.sessions}) for query in pool.queries] == [
        ("q1", {"tea:0"}, {"tea"}),
        ("q2", {"bicycle:0"}, {"bicycle"}),
    ]
    assert pool.queries[0].asked_at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)


def test_a_directory_gives_its_data_files_each_once_and_nothing_else(tmp_path: Path) -> None:
    locomo, longmemeval = write_locomo(tmp_path), write_longmemeval(tmp_path)
    (tmp_path / "package.json").write_text("{}")
    assert find_files([tmp_path, locomo]) == [locomo, longmemeval]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidValue, match=r"no locomo.* among the data"):
        find_files([tmp_path / "empty"])


@pytest.mark.parametrize("content", ["{}", "[]", "not json", '[{"question": 1}]', "[1]", "\udcff"])
def test_a_file_that_is_neither_is_said_to_be_so(tmp_path: Path, content: str) -> None:
    path = tmp_path / "locomo.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(InvalidValue, match=r"locomo\.json is neither"):
        load(path)


def test_a_limit_takes_questions_from_all_over_a_file(tmp_path: Path) -> None:
    data = load(write_locomo(tmp_path, "locomo.json", "one", "two", "three"))
    assert limited(data, 6) is data
    few = limited(data, 2)
    assert [[query.id for query in pool.queries] for pool in few.pools] == [["one-0"], ["two-1"]]
    assert (few.questions, few.turns) == (2, 10)

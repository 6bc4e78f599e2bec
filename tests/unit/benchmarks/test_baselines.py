"""What recall is compared with, on texts where the right order is plain to see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from recollect.benchmarks.baselines import (
    FtsBlock,
    PlainFts,
    WordCount,
    spoken,
    told_by_users,
)
from recollect.benchmarks.tasks import Pool, load
from tests.unit.benchmarks.conversations import write_locomo, write_longmemeval


def locomo(directory: Path) -> Pool:
    return load(write_locomo(directory)).pools[0]


def test_plain_fts_finds_other_forms_of_a_word(tmp_path: Path) -> None:
    pool = locomo(tmp_path)
    found = PlainFts(spoken(pool)).order(pool.queries[0])
    assert found[0] == "D1:1"  # adopted, for adopt, and Ana says it
    assert "D1:2" not in found


def test_grep_counts_the_words_as_they_are(tmp_path: Path) -> None:
    pool = locomo(tmp_path)
    query = replace(pool.queries[0], text="pottery class greyhound")
    assert WordCount(spoken(pool)).order(query) == ["D2:1", "D1:1"]


def test_a_question_of_nothing_but_stop_words_and_signs_finds_nothing(tmp_path: Path) -> None:
    pool = locomo(tmp_path)
    query = replace(pool.queries[0], text='" ? *')
    assert PlainFts(spoken(pool)).order(query) == []
    assert WordCount(spoken(pool)).order(query) == []


def test_the_speaker_stands_before_a_turn_and_the_role_where_there_is_no_name(
    tmp_path: Path,
) -> None:
    assert spoken(locomo(tmp_path))["D1:3"] == "Ana: Comet."
    pool = load(write_longmemeval(tmp_path)).pools[0]
    assert spoken(pool)["filler:0"] == "user: How do I boil an egg?"


def test_a_session_is_what_its_users_said(tmp_path: Path) -> None:
    pool = load(write_longmemeval(tmp_path)).pools[0]
    assert told_by_users(pool) == {
        "filler": "How do I boil an egg?",
        "tea": "My favourite tea is oolong.",
        "bicycle": "I keep my bicycle in the cellar.",
    }
    assert PlainFts(told_by_users(pool)).order(pool.queries[0]) == ["tea"]


def test_a_block_of_fts_has_the_day_and_the_speaker_of_each_turn_and_ends_with_its_budget(
    tmp_path: Path,
) -> None:
    pool = locomo(tmp_path)
    block = FtsBlock(pool)
    whole = "2023-05-08 Ana: I adopted a greyhound on Monday."
    assert block.text(pool.queries[0], 500).splitlines()[0] == whole
    assert block.text(pool.queries[0], 5) == whole[:20]


def test_neighbours_are_of_the_same_session_and_stand_once(tmp_path: Path) -> None:
    pool = locomo(tmp_path)
    query = replace(pool.queries[0], text="greyhound")
    assert FtsBlock(pool, beside=1).text(query, 500).splitlines() == [
        "2023-05-08 Ana: I adopted a greyhound on Monday.",
        "2023-05-08 Ben: Lovely! What is its name?",
    ]
    query = replace(pool.queries[0], text="Comet")
    assert len(FtsBlock(pool, beside=1).text(query, 500).splitlines()) == 2

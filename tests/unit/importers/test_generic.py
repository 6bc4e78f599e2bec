"""Lines of JSON from anywhere: which names are accepted, and what makes a line the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.importers import generic
from recollect.importers.generic import GenericJsonl
from tests.tables import every_row
from tests.unit.importers.foreign_json import ORIGIN, items, left_out, mutated, odd, read_all, said
from tests.unit.strategies import json_values

SOURCE = GenericJsonl()
LINE: dict[str, Any] = {
    "session": "s-1",
    "role": "user",
    "content": "hello",
    "at": "2026-01-01T00:00:00Z",
    "name": "Ana",
    "metadata": {"channel": "a"},
    "agent": "helper",
    "cwd": "/project",
}


def test_a_line_is_a_message_with_all_that_it_says() -> None:
    (item,) = items(read_all(SOURCE, [LINE]))
    assert item.message == {"role": "user", "content": "hello", "name": "Ana"}
    assert item.conversation.key == ("jsonl", "s-1")
    assert (item.conversation.agent, item.conversation.directory) == ("helper", "/project")
    assert item.at == datetime(2026, 1, 1, tzinfo=UTC)
    assert item.metadata == {"channel": "a"}


@every_row("name", generic.SESSIONS)
def test_a_conversation_goes_by_any_of_these_names(name: str) -> None:
    (item,) = items(read_all(SOURCE, [{name: 7, "role": "user", "text": "hello"}]))
    assert item.conversation.key == ("jsonl", "7")


@every_row(
    ("name", "value"),
    [
        *(("at", each) for each in ("2026-01-01T00:00:00", "2026-01-01T01:00:00+01:00")),
        *(("timestamp", each) for each in (1767225600, 1767225600.0, "1767225600")),
        ("created_at", 1767225600000),
        ("time", 1767225600000000),
    ],
)
def test_times_are_read_in_every_usual_form(name: str, value: object) -> None:
    (item,) = items(read_all(SOURCE, [{"role": "user", "text": "hello", name: value}]))
    assert item.at == datetime(2026, 1, 1, tzinfo=UTC)


@every_row("value", ["soon", 1e300, -1e300, 10**400, True, [], "nan", "9" * 5000])
def test_what_is_no_time_is_none(value: object) -> None:
    (item,) = items(read_all(SOURCE, [{"role": "user", "text": "hello", "at": value}]))
    assert item.at is None


def test_every_documented_name_is_accepted_and_every_accepted_name_documented() -> None:
    names = (*generic.SESSIONS, *generic.ROLES, *generic.CONTENTS, *generic.TIMES, *generic.KEYS)
    for name in (*names, *generic.DIRECTORIES):
        assert f"`{name}`" in (generic.__doc__ or "")


def test_without_a_session_a_file_is_one_conversation_that_may_grow_and_move() -> None:
    lines = [{"role": "user", "text": f"line {number}"} for number in range(3)]
    short = items(read_all(SOURCE, lines[:2]))
    elsewhere = replace(ORIGIN, path=Path("/else") / ORIGIN.path.name)
    whole = items(read_all(SOURCE, lines, elsewhere))
    assert len({item.conversation.key for item in whole}) == 1
    assert [(item.id, item.conversation) for item in whole[:2]] == [
        (item.id, item.conversation) for item in short
    ]


def test_the_same_words_again_are_another_message_unless_a_key_or_a_time_says_otherwise() -> None:
    for again, count in (({}, 2), ({"key": "k"}, 1), ({"at": 1767225600}, 1)):
        line = {"session": "s", "role": "user", "text": "yes", **again}
        assert len({item.id for item in items(read_all(SOURCE, [line, line]))}) == count
    keyed = [{"session": each, "role": "user", "text": "yes", "id": "1"} for each in ("a", "b")]
    assert len({item.id for item in items(read_all(SOURCE, keyed))}) == 2


def test_who_has_a_role_of_their_own_speaks_in_a_note() -> None:
    found = read_all(SOURCE, [{"role": "Captain", "text": "aye"}])
    assert said(found) == [("note", "aye")]
    assert items(found)[0].message["name"] == "Captain"
    assert odd(found) == ["role"]


def test_what_says_nothing_is_counted() -> None:
    lines = [{"role": "user", "text": ""}, {"role": "user"}, {}, 3, {"event": "tick"}]
    found = read_all(SOURCE, lines)
    assert items(found) == []
    assert left_out(found) == ["empty message"]
    assert len(odd(found)) == 4


def test_metadata_that_cannot_be_kept_costs_only_itself() -> None:
    found = read_all(SOURCE, [{**LINE, "metadata": {"a": "x" * 100_000}}])
    assert items(found)[0].metadata == {}
    assert odd(found) == ["metadata"]


@given(entries=st.lists(mutated({**LINE, "key": "k"}) | mutated(LINE) | json_values, max_size=3))
def test_nothing_that_stands_in_a_line_makes_it_raise(entries: list[Any]) -> None:
    read_all(SOURCE, entries)
    SOURCE.probe(entries)

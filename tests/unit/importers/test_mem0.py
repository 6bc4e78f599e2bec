"""mem0's memories as statements, with whom they belong to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given

from recollect.importers.items import ImportedFact
from recollect.importers.mem0 import Mem0
from tests.unit.importers.foreign_json import left_out, mutated, odd, read_all
from tests.unit.strategies import json_values

SOURCE = Mem0()
MEMORY: dict[str, Any] = {
    "id": "m-1",
    "memory": "Drinks green tea.",
    "hash": "abc",
    "metadata": {"channel": "phone"},
    "created_at": "2026-01-01T00:00:00-07:00",
    "updated_at": "2026-02-01T00:00:00-07:00",
    "user_id": "ana",
    "agent_id": "helper",
    "run_id": None,
    "categories": ["food", "food", "habits"],
}


def statements(*entries: object) -> list[ImportedFact]:
    return [each for each in read_all(SOURCE, entries) if isinstance(each, ImportedFact)]


def test_a_memory_is_a_statement_with_its_scopes_its_time_and_its_tags() -> None:
    assert statements(MEMORY) == [
        ImportedFact(
            id="m-1",
            text="Drinks green tea.",
            at=datetime(2026, 1, 1, 7, tzinfo=UTC),
            since=datetime(2026, 2, 1, 7, tzinfo=UTC),
            metadata={
                "user_id": "ana",
                "agent_id": "helper",
                "channel": "phone",
                "updated_at": "2026-02-01T07:00:00+00:00",
            },
            tags=("food", "habits"),
        )
    ]


def test_whole_answers_and_rows_of_a_vector_store_are_read_too() -> None:
    row = {"id": "m-1", "payload": {"data": "Drinks green tea.", "user_id": "ana"}}
    assert [each.id for each in statements({"results": [MEMORY, {**MEMORY, "id": "m-2"}]})] == [
        "m-1",
        "m-2",
    ]
    (found,) = statements(row)
    assert (found.id, found.text, found.metadata) == (
        "m-1",
        "Drinks green tea.",
        {"user_id": "ana"},
    )


def test_without_an_id_what_it_says_and_whose_it_is_make_it_the_same() -> None:
    bare = {"memory": "Likes rain.", "user_id": "ana"}
    first, again, others = statements(bare, bare, {**bare, "user_id": "ben"})
    assert first.id == again.id != others.id


def test_what_is_no_memory_is_said() -> None:
    found = read_all(
        SOURCE, [3, {"id": "x"}, {"memory": " "}, {**MEMORY, "metadata": {"a": 1e999}}]
    )
    assert odd(found) == ["int", "dict", "metadata"]
    assert left_out(found) == ["empty memory"]
    assert SOURCE.probe([MEMORY]) == "memories with ids"
    assert SOURCE.probe([{"role": "user"}, 3]) is None


@given(mutated(MEMORY) | mutated({"results": [MEMORY]}) | json_values)
def test_nothing_that_stands_in_an_export_makes_it_raise(entry: Any) -> None:
    read_all(SOURCE, [entry])
    SOURCE.probe([entry])

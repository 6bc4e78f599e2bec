"""What is wrong with a request is said in words: where, what was expected, and no content."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

import recollect
from recollect.errors import InvalidValue
from recollect.interfaces.http.app import OPERATIONS, Api
from recollect.interfaces.http.openapi import description
from recollect.interfaces.http.operations import INTEGER_MAX, Operation
from tests.tables import every_row

SECRET = "sk-" + "x" * 40
HIT = {"id": "a"}


def route(name: str) -> Operation:
    [found] = [each for each in OPERATIONS if each.name == name]
    return found


@every_row(
    ("name", "body", "words"),
    [
        ("facts_add", {"content": 7}, "body.content: expected a string, got an integer"),
        ("facts_add", {}, "body.content: missing"),
        (
            "facts_add",
            {"content": "a", "\ud800": 1},
            "body: the name of a field has an unpaired",
        ),
        ("facts_add", [SECRET], "body: expected an object, got a list"),
        ("facts_add", {"content": "a", "more": SECRET}, "body: has no field 'more'"),
        ("facts_add", {"content": "a", "tags": [SECRET, 1]}, "body.tags[1]: expected a string"),
        (
            "session_set_mode",
            {"mode": SECRET},
            "body.mode: expected one of enabled, disabled, polluted",
        ),
        ("space_forget", {"pages": SECRET}, "body.pages: expected one of keep, erase"),
        ("sessions_invalidate", {"seq": -1}, "body.seq: expected an integer of at least 0"),
        ("sessions_invalidate", {"seq": True}, "body.seq: expected an integer, got true or false"),
        (
            "sessions_invalidate",
            {"seq": INTEGER_MAX + 1},
            f"body.seq: expected an integer of at most {INTEGER_MAX}",
        ),
        (
            "space_recall",
            {"query": SECRET * 10_000},
            "body.query: expected a string with a length of at most 100000",
        ),
        ("space_recall", {"query": "a", "kinds": [SECRET]}, "body.kinds[0]: expected one of fact,"),
        (
            "space_cite",
            {"context": {"id": "a", "citations": [{"mark": "#1", "hit": {"id": "a"}}]}},
            "body.context.citations[0].hit.kind: missing",
        ),
        (
            "space_cite",
            {
                "context": {
                    "id": "a",
                    "citations": [{"mark": "1", "hit": {**HIT, "kind": SECRET}}],
                }
            },
            "body.context.citations[0].hit.kind: expected one of fact,",
        ),
    ],
)
def test_a_body_is_refused_in_words(name: str, body: Any, words: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        route(name).inputs.read_body(body)
    assert str(refused.value).startswith(words)
    assert SECRET not in str(refused.value)


@every_row(
    ("name", "query", "words"),
    [
        ("facts_list", {"limit": "many"}, "query.limit: expected an integer, got a string"),
        ("facts_list", {"limit": "1001"}, "query.limit: expected an integer of at most 1000"),
        ("facts_list", {"every": "yes"}, "query.every: expected true or false, got a string"),
        ("facts_list", {"more": SECRET}, "query: there is no such parameter; there are: as_of,"),
        ("facts_search", {}, "query.q: missing"),
        ("documents_diff", {"path": "a", "older": "0"}, "query.older: expected an integer of at"),
        ("generations_get", {}, "path.number: expected an integer, got a string"),
    ],
)
def test_a_parameter_is_refused_in_words(name: str, query: dict[str, str], words: str) -> None:
    places = dict.fromkeys(route(name).inputs.places, SECRET)
    with pytest.raises(InvalidValue) as refused:
        route(name).inputs.read_parameters(places, query)
    assert str(refused.value).startswith(words)
    assert SECRET not in str(refused.value)


def test_the_largest_integer_that_is_described_is_taken() -> None:
    """V-1."""
    places = {"space": "a", "number": str(INTEGER_MAX)}
    assert route("generations_get").inputs.read_parameters(places, {}) == {"number": INTEGER_MAX}
    taking = route("sessions_invalidate").inputs
    assert taking.read_body({"seq": INTEGER_MAX}) == {"seq": INTEGER_MAX}
    described = description([route("sessions_invalidate")])["components"]["schemas"]
    assert described["sessions_invalidate_body"]["properties"]["seq"]["maximum"] == INTEGER_MAX


def test_the_description_is_whole() -> None:
    """V-3: servers, tags, health, items of every array, and every schema is one."""
    with recollect.open(":memory:") as memory:
        described = description(Api(memory).operations)
    assert described["servers"]
    assert "/healthz" in described["paths"]
    tags = {each["name"] for each in described["tags"]}
    for path in described["paths"].values():
        for operation in path.values():
            assert set(operation["tags"]) <= tags
    for schema in _schemas(described):
        Draft202012Validator.check_schema(schema)
        assert schema.get("type") != "array" or "items" in schema, schema


def _schemas(described: Any) -> list[dict[str, Any]]:
    match described:
        case dict():
            below = [found for each in described.values() for found in _schemas(each)]
            kind = described.get("type")
            is_schema = isinstance(kind, list) or kind in ("object", "array", "string", "integer")
            return [described, *below] if is_schema else below
        case list():
            return [found for each in described for found in _schemas(each)]
        case _:
            return []

"""What is wrong with a request is said in words: where, what was expected, and no content."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

import recollect
from recollect.errors import InvalidValue
from recollect.interfaces.http.app import Api
from recollect.interfaces.http.binding import INTEGER_MAX
from recollect.interfaces.http.openapi import description
from recollect.interfaces.http.route import Route
from recollect.interfaces.http.table import ROUTES

SECRET = "sk-" + "x" * 40
HIT = {"id": "a"}


def route(name: str) -> Route:
    [found] = [each for each in ROUTES if each.name == name]
    return found


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("add_fact", {"content": 7}, "body.content: expected a string, got a number"),
        ("add_fact", {}, "body.content: missing"),
        ("add_fact", {"content": "a", "\ud800": 1}, "body: the name of a field has half a char"),
        ("add_fact", [SECRET], "body: expected an object, got a list"),
        ("add_fact", {"content": "a", "more": SECRET}, "body: has no field 'more'"),
        ("add_fact", {"content": "a", "tags": [SECRET, 1]}, "body.tags[1]: expected a string"),
        ("set_mode", {"mode": SECRET}, "body.mode: expected one of enabled, disabled, polluted"),
        ("forget", {"pages": SECRET}, "body.pages: expected one of keep, erase"),
        ("mark_session", {"seq": -1}, "body.seq: expected an integer of at least 0, got -1"),
        ("mark_session", {"seq": True}, "body.seq: expected an integer, got true or false"),
        (
            "mark_session",
            {"seq": INTEGER_MAX + 1},
            f"body.seq: expected an integer of at most {INTEGER_MAX:,}",
        ),
        (
            "recall",
            {"query": SECRET * 10_000},
            "body.query: expected a string of at most 100,000 characters, got 430,000",
        ),
        ("recall", {"query": "a", "kinds": [SECRET]}, "body.kinds[0]: expected one of fact,"),
        (
            "cite",
            {"context": {"id": "a", "citations": [{"mark": "#1", "hit": {"id": "a"}}]}},
            "body.context.citations[0].hit.kind: missing",
        ),
        (
            "cite",
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


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [
        ("list_facts", {"limit": "many"}, "query.limit: expected an integer, got a string"),
        ("list_facts", {"limit": "1001"}, "query.limit: expected an integer of at most 1,000"),
        ("list_facts", {"every": "yes"}, "query.every: expected true or false, got a string"),
        ("list_facts", {"more": SECRET}, "query: there is no such parameter; there are: as_of,"),
        ("search_facts", {}, "query.q: missing"),
        ("document_diff", {"path": "a", "older": "0"}, "query.older: expected an integer of at"),
        ("get_generation", {}, "path.number: expected an integer, got a string"),
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
    assert route("get_generation").inputs.read_parameters(places, {}) == {"number": INTEGER_MAX}
    described = route("mark_session").body
    assert described is not None
    assert described["properties"]["seq"]["maximum"] == INTEGER_MAX
    assert route("mark_session").inputs.read_body({"seq": INTEGER_MAX}) == {"seq": INTEGER_MAX}


def test_the_description_is_whole() -> None:
    """V-3: servers, tags, health, items of every array, and every schema is one."""
    with recollect.open(":memory:") as memory:
        described = description(Api(memory).routes)
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

"""What bodies and parameters are checked with says where a value is wrong, not what it was."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from recollect.errors import InvalidValue
from recollect.interfaces.http.schemas import (
    BOOL,
    NUMBER,
    Schema,
    check,
    listed,
    maybe,
    obj,
    one_of,
    read_parameter,
    text,
    whole,
)

SCHEMAS: tuple[Schema, ...] = (
    text(3),
    whole(1, 5),
    NUMBER,
    BOOL,
    one_of(("a", "b")),
    maybe(one_of(("a", "b"))),
    maybe(whole(1, 5)),
    listed(whole(1, 5), 2),
    obj({"a": text(3), "b": BOOL}, needs=("a",)),
    obj({"a": text(3)}, more=True),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 5, 6, 1.5, "", "a", "abc", "abcd", [], [1], [1, 2, 3], ["a"]),
    *({}, {"a": "x"}, {"a": "long"}, {"a": "x", "b": True}, {"a": "x", "b": 1}, {"c": 1}),
    {"a": "x", "c": [None]},
)


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_it_allows_what_json_schema_allows(schema: Schema) -> None:
    for value in VALUES:
        is_allowed = True
        try:
            check(value, schema)
        except InvalidValue:
            is_allowed = False
        assert is_allowed == Draft202012Validator(schema).is_valid(value), value


def test_a_refusal_says_where_and_not_what() -> None:
    schema = obj({"messages": listed(obj({"role": text()}))})
    with pytest.raises(InvalidValue, match=r"^body\.messages\[1\]\.role has to be text$"):
        check({"messages": [{"role": "user"}, {"role": 471_108_15}]}, schema)


@pytest.mark.parametrize(
    ("given", "schema", "value"),
    [("7", whole(), 7), ("true", BOOL, True), ("false", BOOL, False), ("7", text(), "7")],
)
def test_a_parameter_is_read_as_its_schema_says(given: str, schema: Schema, value: object) -> None:
    assert read_parameter(given, schema, "query.x") == value


@pytest.mark.parametrize("given", ["", "1.0", " 1", "1e3", "٣", "9" * 30, "0x1", "-1"])
def test_what_is_no_whole_number_is_none(given: str) -> None:
    with pytest.raises(InvalidValue):
        read_parameter(given, whole(), "query.x")


@pytest.mark.parametrize("given", ["", "1", "TRUE", "yes"])
def test_what_is_neither_true_nor_false_is_neither(given: str) -> None:
    with pytest.raises(InvalidValue):
        read_parameter(given, BOOL, "query.x")

"""The part of JSON Schema that bodies and parameters are described in, and what checks them.

One description serves both: what the OpenAPI document says is what is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from recollect.errors import InvalidValue
from recollect.interfaces.views import nullable

Schema = Mapping[str, Any]
maybe = nullable

PLACE_CHARS_MAX = 200
_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}
_IN_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}

ANY: Schema = {}
BOOL: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
FREE: Schema = {"type": "object", "additionalProperties": True}


def text(max_chars: int | None = None, description: str = "") -> Schema:
    limits = {} if max_chars is None else {"maxLength": max_chars}
    return {"type": "string", **limits, **_described(description)}


def whole(minimum: int = 0, maximum: int = 2**62 - 1, description: str = "") -> Schema:
    limits = {"minimum": minimum, "maximum": maximum}
    return {"type": "integer", **limits, **_described(description)}


def one_of(values: Any, description: str = "") -> Schema:
    return {"type": "string", "enum": [str(value) for value in values], **_described(description)}


def listed(items: Schema, max_items: int | None = None) -> Schema:
    limits = {} if max_items is None else {"maxItems": max_items}
    return {"type": "array", "items": items, **limits}


def obj(fields: Mapping[str, Schema], *, needs: Any = None, more: bool = False) -> Schema:
    """An object of these fields; all are needed unless `needs` says which, none besides."""
    needed = list(fields if needs is None else needs)
    return {
        "type": "object",
        "properties": dict(fields),
        **({"required": needed} if needed else {}),
        "additionalProperties": more,
    }


def _described(description: str) -> dict[str, str]:
    return {"description": description} if description else {}


TEXT = text()
COUNT = whole()


def check(value: Any, schema: Schema, where: str = "body") -> None:
    """InvalidValue: it is not what the schema says; the message says where, and not what it was."""
    _check_kind(value, schema, where)
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(str(each) for each in schema["enum"] if each is not None)
        raise InvalidValue(f"{where} has to be one of {allowed}")
    match value:
        case str():
            if len(value) > schema.get("maxLength", len(value)):
                raise InvalidValue(f"{where} has at most {schema['maxLength']:,} characters")
        case bool() | None:
            pass
        case int() | float():
            _check_bounds(value, schema, where)
        case list():
            _check_items(value, schema, where)
        case dict():
            _check_fields(value, schema, where)
        case _:
            raise InvalidValue(f"{where} is nothing that JSON has")


def _check_kind(value: Any, schema: Schema, where: str) -> None:
    kinds = schema.get("type")
    if kinds is None:
        return
    allowed = [kinds] if isinstance(kinds, str) else kinds
    is_bool = isinstance(value, bool)  # which Python takes for a number
    for kind in allowed:
        if isinstance(value, _KINDS[kind]) and (kind == "boolean" or not is_bool):
            return
    said = " or ".join(_IN_WORDS[kind] for kind in allowed)
    raise InvalidValue(f"{where} has to be {said}")


def _check_bounds(value: float, schema: Schema, where: str) -> None:
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and value < low) or (high is not None and value > high):
        raise InvalidValue(f"{where} has to lie between {low} and {high}")


def _check_items(value: list[Any], schema: Schema, where: str) -> None:
    if len(value) > schema.get("maxItems", len(value)):
        raise InvalidValue(f"{where} has at most {schema['maxItems']:,} items")
    for number, each in enumerate(value):
        check(each, schema.get("items", ANY), f"{where}[{number}]")


def _check_fields(value: dict[str, Any], schema: Schema, where: str) -> None:
    fields = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            raise InvalidValue(f"{where}.{name} is missing")
    for name, each in value.items():
        if name in fields:
            check(each, fields[name], f"{where}.{name}")
        elif not schema.get("additionalProperties", True):
            raise InvalidValue(f"{where} has no field {name[:PLACE_CHARS_MAX]!r}")


def read_parameter(given: str, schema: Schema, where: str) -> Any:
    """A parameter's text as the value that its schema asks for."""
    value: Any = given
    match schema.get("type"):
        case "integer":
            if not _WHOLE.fullmatch(given):
                raise InvalidValue(f"{where} has to be a whole number")
            value = int(given)
        case "boolean":
            if given not in ("true", "false"):
                raise InvalidValue(f"{where} has to be true or false")
            value = given == "true"
        case _:
            pass
    check(value, schema, where)
    return value

"""What a handler takes, read from its signature: parameters and body, checked and described alike.

Path and query become one struct, the body another; msgspec converts into them and describes them.
What it refuses is said in words: where, what was expected, and what was given, but no content.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Struct

from recollect.errors import InvalidValue
from recollect.interfaces.views import nullable
from recollect.session import LIST_MAX

INTEGER_MAX = 2**53 - 1  # what every reader of JSON keeps exactly
CURSOR_CHARS_MAX = 2000
NAME_CHARS_MAX = 200
BODY = "body"  # the parameter that has the whole body

Json = dict[str, Any]
Schema = Mapping[str, Any]


class Place(Enum):
    """Where a parameter is, if its method says otherwise."""

    QUERY = "query"


Count = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
Number = Annotated[int, Meta(ge=1, le=INTEGER_MAX)]
Limit = Annotated[int, Meta(ge=0, le=LIST_MAX, description="How many, at most.")]
Cursor = Annotated[
    str,
    Meta(max_length=CURSOR_CHARS_MAX, description="What `next` said on the page before."),
]
Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Tags = Annotated[list[str], Meta(max_length=1000)]

_KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_GIVEN = {**_KINDS, "int": "a number"}
_AT = re.compile(r"(?P<said>.*?)(?: - at `(?:key in )?\$(?P<at>.*)`)?", re.DOTALL)
_EXPECTED = re.compile(
    r"Expected `(?P<kinds>[^`]+)`(?P<of_length> of length)?(?: (?P<bound>[<>]=) (?P<limit>\S+))?"
    r"(?:, got `(?P<given>[^`]+)`)?"
)
_BOUNDS = {"<=": "at most", ">=": "at least"}


class Inputs:
    """The structs of a handler's parameters and body."""

    def __init__(self, handler: Callable[..., Any], places: list[str], *, has_body: bool) -> None:
        hints = get_type_hints(handler, include_extras=True)
        given = list(inspect.signature(handler).parameters.values())[1:]  # the request goes first
        name = "".join(part.capitalize() for part in handler.__name__.split("_"))
        bodily = [each for each in given if _is_in_body(each.name, hints, places, has_body)]
        outside = [each for each in given if each not in bodily]
        self.places = places
        self.is_whole = [each.name for each in bodily] == [BODY] and _is_struct(hints[BODY])
        # A place of the path that the handler does not name: the space, which the request has.
        others = [(place, str) for place in places if place not in hints]
        fields = [*others, *(_field(each, hints) for each in outside)]
        self.parameters = msgspec.defstruct(f"{name}Parameters", fields, kw_only=True)
        self.body: type[Struct] | None = None
        if self.is_whole:
            self.body = hints[BODY]
        elif has_body:
            self.body = msgspec.defstruct(
                f"{name}Body",
                [_field(each, hints) for each in bodily],
                kw_only=True,
                forbid_unknown_fields=True,
            )
        self._named = tuple(each.name for each in outside)
        self._known = frozenset(self._named) - set(places)

    def read_parameters(self, path: Mapping[str, str], query: Mapping[str, str]) -> Json:
        """The arguments that path and query give. InvalidValue: one of them is not as it should."""
        if query.keys() - self._known:
            there = ", ".join(sorted(self._known)) or "none"
            raise InvalidValue(f"query: there is no such parameter; there are: {there}")
        given = {**query, **path}
        try:
            read = msgspec.convert(given, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            where = "path" if _field_at(error) in self.places else "query"
            raise _refused(error, given, self.parameters, where) from error
        return {name: getattr(read, name) for name in self._named}

    def read_body(self, content: Any) -> Json:
        """The arguments that a body gives."""
        if self.body is None:
            return {}
        try:
            read = msgspec.convert(content, self.body)
        except msgspec.ValidationError as error:
            raise _refused(error, content, self.body, BODY) from error
        except UnicodeEncodeError as error:
            raise InvalidValue("body: the name of a field has half a character") from error
        if self.is_whole:
            return {BODY: read}
        return {name: getattr(read, name) for name in self.body.__struct_fields__}

    def body_schema(self) -> Schema | None:
        return None if self.body is None else struct_schema(self.body)

    def parameter_schemas(self) -> Schema:
        """The schema of an object that has them all; what is not given is left out, never null."""
        described = struct_schema(self.parameters)
        properties = {
            name: {**each, "type": each["type"][0]} if isinstance(each["type"], list) else each
            for name, each in described["properties"].items()
        }
        return {**described, "properties": properties}


def given_fields(body: Struct) -> Json:
    """The fields of a body that were sent and are not null."""
    fields = ((name, getattr(body, name)) for name in body.__struct_fields__)
    return {name: value for name, value in fields if value is not None and value is not UNSET}


def _is_in_body(name: str, hints: Json, places: list[str], has_body: bool) -> bool:
    is_query = Place.QUERY in get_args(hints[name])
    return has_body and name not in places and not is_query


def _field(parameter: inspect.Parameter, hints: Json) -> Any:
    hint = hints[parameter.name]
    if Place.QUERY in get_args(hint):
        rest = [each for each in get_args(hint) if each is not Place.QUERY]
        hint = Annotated[tuple(rest)] if len(rest) > 1 else rest[0]
    if parameter.default is parameter.empty:
        return parameter.name, hint
    return parameter.name, hint, parameter.default


def struct_schema(kind: type[Struct]) -> Schema:
    """The schema of a struct, with all that it refers to inside."""
    [schema], named = msgspec.json.schema_components([kind], ref_template="{name}")
    made: Json = _inlined(schema, named)
    return made


def _inlined(schema: Any, named: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(each, named) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(named[schema["$ref"]], named)
    made = {
        name: _inlined(each, named)
        for name, each in schema.items()
        # Names and defaults are Python's affair; a property may well be called `title`.
        if isinstance(each, dict) or (name not in ("title", "default") and each != [])
    }
    if "enum" in made:
        made.setdefault("type", "string")
    if made.get("type") == "array":
        made.setdefault("items", {})
    if made.get("type") == "object":
        made.setdefault("additionalProperties", True)
    others = [each for each in made.get("anyOf", ()) if each != NULL]
    if len(others) == 1:  # or null: in one type, where there is one
        del made["anyOf"]
        return {**nullable(others[0]), **made}
    more = [name for each in others for name in each if name != "type"]
    if others and "enum" not in more and len(set(more)) == len(more):  # what differs by type
        kinds = [each["type"] for each in made.pop("anyOf")]
        made |= {name: each for other in others for name, each in other.items()}
        made["type"] = kinds
    return made


NULL = {"type": "null"}


def _field_at(error: msgspec.ValidationError) -> str:
    found = _AT.fullmatch(str(error))
    return (found["at"] or "").lstrip(".").partition("[")[0].partition(".")[0] if found else ""


def _refused(
    error: msgspec.ValidationError, given: Any, kind: type[Struct], where: str
) -> InvalidValue:
    """What msgspec says, in words that hold nothing of what was sent but numbers and names."""
    found = _AT.fullmatch(str(error))
    assert found is not None
    said, at = found["said"], found["at"] or ""
    if name := re.fullmatch(r"Object missing required field `(.*)`", said, re.DOTALL):
        return InvalidValue(f"{where}{at}.{name[1]}: missing")
    if name := re.fullmatch(r"Object contains unknown field `(.*)`", said, re.DOTALL):
        return InvalidValue(f"{where}{at}: has no field {name[1][:NAME_CHARS_MAX]!r}")
    if said.startswith("Invalid enum value"):
        allowed = ", ".join(_choices(_hint_at(kind, at)))
        return InvalidValue(f"{where}{at}: expected one of {allowed}")
    expected = _EXPECTED.fullmatch(said)
    if expected is None:
        return InvalidValue(f"{where}{at}: not as it should be")
    return InvalidValue(f"{where}{at}: expected {_in_words(expected, _value_at(given, at))}")


def _in_words(expected: re.Match[str], value: Any) -> str:
    kinds = expected["kinds"].split(" | ")
    words = " or ".join(_KINDS.get(kind, kind) for kind in kinds)
    if expected["bound"]:
        words += f" of {_BOUNDS[expected['bound']]} {int(float(expected['limit'])):,}"
    if expected["of_length"]:
        words += " characters" if kinds == ["str"] else " items"
        return f"{words}, got {len(value):,}" if isinstance(value, str | list) else words
    if expected["given"]:
        return f"{words}, got {_GIVEN.get(expected['given'], expected['given'])}"
    is_short = isinstance(value, int | float) and abs(value) < 10**15
    return f"{words}, got {value}" if is_short else words


def _steps(at: str) -> list[str]:
    return re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", at) and [
        name or number for name, number in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", at)
    ]


def _value_at(given: Any, at: str) -> Any:
    for step in _steps(at):
        try:
            given = given[int(step)] if isinstance(given, list) else given[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return given


def _hint_at(hint: Any, at: str) -> Any:
    for step in _steps(at):
        kind = next((each for each in _within(hint) if _is_struct(each)), None)
        if kind is not None and step in kind.__struct_fields__:
            hint = get_type_hints(kind, include_extras=True)[step]
    return hint


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def _within(hint: Any) -> Iterator[Any]:
    """A type and all that it is made of."""
    yield hint
    for each in get_args(hint):
        yield from _within(each)


def _choices(hint: Any) -> list[str]:
    for each in _within(hint):
        if isinstance(each, type) and issubclass(each, Enum):
            return [str(one.value) for one in each]
        if get_origin(each) is Literal:
            return [str(one) for one in get_args(each)]
    return []

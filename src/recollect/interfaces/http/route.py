"""A route: a handler with its place, from whose signature all the rest is read.

The scope comes from the list of verbs, the summary from the docstring, parameters and body from the
signature, the answer from the annotation of what is returned.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct

from recollect import collection
from recollect.clock import from_micros, to_micros
from recollect.errors import InvalidValue
from recollect.interfaces.http.binding import Inputs, Json, Schema, struct_schema
from recollect.interfaces.http.messages import JSON_TYPE, Answer, Stream
from recollect.interfaces.views import schema_of, view
from recollect.store.key_protocol import Scope
from recollect.verbs import VERBS

SPACE = "/v1/spaces/{space}"
FIRST_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999

Handler = Callable[..., Any]
Reader = Callable[..., Any]  # of a request, and of the ids of what was made
SCOPES: Mapping[str, Scope] = {place: verb.scope for verb in VERBS for place in verb.http}


class Repeat(Enum):
    """What an Idempotency-Key does."""

    PLAIN = "plain"  # nothing: it is not read
    APPEND = "append"  # it becomes the append key, and is kept with the record
    ONCE = "once"  # a retry does nothing, for a while, and is told what the first one made


class Reach(Enum):
    """Whose keys open a route."""

    SPACE = "space"  # those of the space in the path
    OWN = "own"  # any; it answers with what the key may see
    STORE = "store"  # those of all spaces


@dataclass(frozen=True, kw_only=True)
class Route:
    """One method on one path. What is not given is read from the handler."""

    method: str
    path: str
    handler: Handler
    reach: Reach = Reach.SPACE
    answer: Any = None  # the type of what is answered, or types by field
    statuses: tuple[int, ...] = (200,)
    media_type: str = JSON_TYPE
    takes_append_key: bool = False
    again: Reader | None = None  # reads what was made by the ids of the first answer
    is_conditional: bool = False
    problems: frozenset[int] = frozenset()  # besides those that every route has

    @property
    def name(self) -> str:
        """By which clients that are generated call it."""
        return self.handler.__name__

    @cached_property
    def summary(self) -> str:
        return " ".join((self.handler.__doc__ or "").split())

    @cached_property
    def scope(self) -> Scope:
        return SCOPES[f"{self.method} {self.path}"]

    @property
    def repeat(self) -> Repeat:
        if self.again is not None:
            return Repeat.ONCE
        return Repeat.APPEND if self.takes_append_key else Repeat.PLAIN

    @cached_property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/"))

    @cached_property
    def inputs(self) -> Inputs:
        places = [part.strip("{}") for part in self.parts if part.startswith("{")]
        has_body = self.method in ("POST", "PUT", "PATCH")
        return Inputs(self.handler, places, has_body=has_body)

    @cached_property
    def query(self) -> Schema:
        """The parameters by name."""
        found = self.inputs.parameter_schemas().get("properties", {})
        return {name: each for name, each in found.items() if name not in self.inputs.places}

    @cached_property
    def needs(self) -> frozenset[str]:
        """The parameters that have to be given."""
        required = self.inputs.parameter_schemas().get("required", ())
        return frozenset(required) - set(self.inputs.places)

    @cached_property
    def body(self) -> Schema | None:
        return self.inputs.body_schema()

    @cached_property
    def answers(self) -> Mapping[int, Schema]:
        hint = self.answer
        if hint is None:
            returned = get_type_hints(self.handler)["return"]
            hint = next(each for each in (get_args(returned) or (returned,)) if each is not Answer)
        return dict.fromkeys(self.statuses, answer_schema(hint))


class Routes(list[Route]):
    """The routes of a module, in the order in which they stand there."""

    def __call__(self, method: str, path: str, **more: Any) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            self.append(Route(method=method, path=path, handler=handler, **more))
            return handler

        return add


def answer_schema(hint: Any) -> Schema:
    """The schema of an answer: of a type, or of an object of them, where `?` ends what may lack."""
    if isinstance(hint, dict):
        fields = {name.rstrip("?"): answer_schema(each) for name, each in hint.items()}
        return {
            "type": "object",
            "properties": fields,
            "required": [name for name in hint if not name.endswith("?")],
            "additionalProperties": False,
        }
    if get_origin(hint) is list:
        return {"type": "array", "items": answer_schema(get_args(hint)[0])}
    if isinstance(hint, type) and issubclass(hint, Struct):
        return struct_schema(hint)
    return schema_of(hint)


def answer_of(route: Route, value: Any) -> Answer | Stream:
    """What a handler gave, as an answer."""
    if isinstance(value, Answer | Stream):
        return value
    named = getattr(value, "id", None) or getattr(value, "number", None)
    version = getattr(value, "version", None)
    return Answer(
        content=view(value) if hasattr(value, "__dataclass_fields__") else value,
        status=route.statuses[0],
        media_type=route.media_type,
        headers={"ETag": f'"{version}"'} if isinstance(version, int) else {},
        ids=() if named is None else (str(named),),
    )


def paged(name: str, kind: Any) -> Json:
    """The types of a page."""
    return {name: list[kind], "next": str | None}


def page(
    name: str, found: Sequence[Any], limit: int, cursor: Callable[[Any], str | None]
) -> dict[str, Any]:
    """A page of a list, and where the next one begins, if there may be one."""
    is_full = bool(found) and len(found) == limit
    return {name: view(found), "next": cursor(found[-1]) if is_full else None}


def made_cursor(*parts: str | int) -> str:
    """Where a page ended, as a text that says nothing to its reader."""
    encoded = json.dumps(parts, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(encoded).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> list[Any]:
    """What a cursor was made of. InvalidValue: it was not made here."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        parts: list[Any] = json.loads(raw)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise InvalidValue("query.cursor is not one that a page gave") from error
    is_ours = isinstance(parts, list) and [type(each) for each in parts] == list(kinds)
    if not is_ours:
        raise InvalidValue("query.cursor is not one that a page gave")
    return parts


def read_one(cursor: str | None, kind: type) -> Any:
    """The one thing that a cursor was made of; none without a cursor."""
    return None if cursor is None else read_cursor(cursor, kind)[0]


def moment_cursor(at: datetime, name: str) -> str:
    return made_cursor(to_micros(at), name)


def read_moment_cursor(cursor: str) -> tuple[datetime, str]:
    micros, name = read_cursor(cursor, int, str)
    if not FIRST_MICROS <= micros <= LAST_MICROS:
        raise InvalidValue("query.cursor is not one that a page gave")
    return from_micros(micros), collection.check_id(name)

"""The OpenAPI description, generated from the operations, so that it matches what is served.

Schemas are msgspec's own, of the types that requests are checked against and of the views that are
returned; each is described once and referred to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

import recollect
from recollect.collection import KEY_BYTES_MAX
from recollect.interfaces.http.operations import Count, KeyReach, Operation, Repeat
from recollect.interfaces.http.problems import PROBLEM_TYPE, TITLES
from recollect.interfaces.views import shape_of
from recollect.types.access import Scope

IDEMPOTENCY_CHARS_MAX = 255
GONE = 410
REFERENCE = "#/components/schemas/{name}"
EVERYWHERE = frozenset({400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503})
TEXT: dict[str, Any] = {"type": "string"}
# A name as it may stand in a path: without control characters.
SPACE_NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": KEY_BYTES_MAX,
    "pattern": r"^[^\u0000-\u001f\u007f]*$",
}
CHAPTERS = {
    "append": "sessions",
    "document": "documents",
    "cite": "recall",
    "context": "recall",
    "review": "facts",
    **dict.fromkeys(("status", "jobs", "work", "forget", "events", "audit"), "operating"),
}


class ProblemDetails(Struct, forbid_unknown_fields=True):
    """What went wrong (RFC 9457), who can mend it, and whether a retry helps."""

    type: str
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    detail: str
    retry_helps: bool
    mended_by: str
    current_version: Count | UnsetType = UNSET


class Health(Struct, forbid_unknown_fields=True):
    """Whether the server can reach its store."""

    status: str


def documented(operation: Operation) -> frozenset[int]:
    """Every status that an operation may answer with."""
    return _problems(operation) | frozenset(operation.statuses)


def _problems(operation: Operation) -> frozenset[int]:
    repeated = frozenset() if operation.repeat is Repeat.PLAIN else frozenset({GONE})
    return EVERYWHERE | operation.problems | repeated


def description(operations: Sequence[Operation]) -> dict[str, Any]:
    """What is served, as OpenAPI 3.1."""
    types = [ProblemDetails, Health]
    for each in operations:
        types += [answer_type(each), each.inputs.parameters, each.inputs.body or Health]
    made, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    schemas, components = iter(_whole(list(made))), _whole(components)
    problem, health = next(schemas), _content("application/json", next(schemas))
    paths: dict[str, Any] = {
        "/healthz": {
            "get": {
                "operationId": "health",
                "summary": "Whether the server is alive, whatever its store does.",
                "tags": ["Server"],
                "security": [],
                "responses": {"200": {"description": "It is.", "content": health}},
            }
        },
        "/readyz": {
            "get": {
                "operationId": "ready",
                "summary": "Whether requests should be sent here: not without a store, nor to a"
                " server that is stopping.",
                "tags": ["Server"],
                "security": [],
                "responses": {
                    "200": {"description": "They should.", "content": health},
                    "503": {"description": "They should not, and why.", "content": health},
                },
            }
        },
    }
    for each in operations:
        answer, parameters, body = (next(schemas) for _ in range(3))
        fields = components.pop(parameters["$ref"].rpartition("/")[2])
        described = _operation(each, answer, fields)
        if each.inputs.body is not None:
            content = _content("application/json", body)
            is_required = any(each.inputs.fields.values())
            described["requestBody"] = {"required": is_required, "content": content}
        paths.setdefault(each.path, {})[each.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Recollect",
            "version": recollect.__version__,
            "description": "Durable memory for AI agents.",
        },
        "servers": [{"url": "/", "description": "Where this description is served."}],
        "tags": [{"name": name} for name in dict.fromkeys(map(chapter, operations))],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "responses": {
                str(status): {"description": title, "content": _content(PROBLEM_TYPE, problem)}
                for status, title in TITLES.items()
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _content(media_type: str, schema: Any) -> dict[str, Any]:
    return {media_type: {"schema": schema}}


def _operation(
    operation: Operation, answer: Mapping[str, Any], fields: Mapping[str, Any]
) -> dict[str, Any]:
    good = {"description": operation.summary, "content": _content(operation.media_type, answer)}
    places = operation.inputs.places
    parameters = [
        {
            "name": name,
            "in": "path" if name in places else "query",
            "required": name in fields.get("required", ()),
            "schema": SPACE_NAME if name == "space" else _given(schema),
        }
        for name, schema in fields["properties"].items()
    ]
    return {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [chapter(operation)],
        "description": _who(operation),
        "parameters": [*parameters, *_headers(operation)],
        "responses": {
            **{str(status): good for status in operation.statuses},
            **{
                str(status): {"$ref": f"#/components/responses/{status}"}
                for status in sorted(_problems(operation))
            },
        },
    }


def answer_type(operation: Operation) -> Any:
    """The type of an answer as msgspec describes it; in types by field, `?` ends what may lack."""
    hint = operation.answer
    if not isinstance(hint, dict):
        return list[shape_of(get_args(hint)[0])] if get_origin(hint) is list else shape_of(hint)  # type: ignore[misc]
    fields: list[Any] = []
    for name, each in hint.items():
        kind = shape_of(each)
        may_lack = name.endswith("?")
        fields.append((name[:-1], kind | UnsetType, UNSET) if may_lack else (name, kind))
    return msgspec.defstruct(
        f"{operation.name}_answer", fields, kw_only=True, forbid_unknown_fields=True
    )


def _whole(schema: Any) -> Any:
    """Generators of clients want a type of items in every array."""
    match schema:
        case dict():
            made = {name: _whole(each) for name, each in schema.items()}
            return {"items": {}, **made} if made.get("type") == "array" else made
        case list():
            return [_whole(each) for each in schema]
        case _:
            return schema


def chapter(operation: Operation) -> str:
    """What it is about: the first word of its path, or of what comes below the space."""
    parts = operation.path.strip("/").split("/")
    if not operation.path.startswith("/v1/spaces"):
        return "mem0" if parts[0] == "mem0" else "Server"
    first = (*parts[3:], "spaces")[0]
    return CHAPTERS.get(first, first).capitalize()


def _who(operation: Operation) -> str:
    whose = "of all spaces" if operation.reach is KeyReach.STORE else "that sees the space"
    whose = "of any space" if operation.reach is KeyReach.OWN else whose
    wider = [scope.value for scope in Scope if scope.includes(operation.scope)]
    return f"Needs a key {whose}, of scope {' or '.join(wider)}."


def _given(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a parameter: what is not given is left out, never null."""
    given = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return given[0] if len(given) == 1 else schema


def _headers(operation: Operation) -> list[dict[str, Any]]:
    key = {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_CHARS_MAX}
    named = {} if operation.repeat is Repeat.PLAIN else {"Idempotency-Key": key}
    named |= {"If-Match": TEXT, "If-None-Match": TEXT} if operation.is_conditional else {}
    return [
        {"name": name, "in": "header", "required": False, "schema": schema}
        for name, schema in named.items()
    ]

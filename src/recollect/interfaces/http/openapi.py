"""The OpenAPI description, made from the table of routes: it says what is served, or nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import recollect
from recollect.collection import KEY_BYTES_MAX
from recollect.interfaces.http.binding import Schema
from recollect.interfaces.http.messages import PROBLEM_TYPE
from recollect.interfaces.http.problems import PROBLEM, TITLES
from recollect.interfaces.http.route import Reach, Repeat, Route
from recollect.interfaces.views import components
from recollect.store.key_protocol import Scope

IDEMPOTENCY_CHARS_MAX = 255
GONE = 410
TEXT = {"type": "string"}
# A name as it may stand in a path: without control characters.
SPACE_NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": KEY_BYTES_MAX,
    "pattern": r"^[^\u0000-\u001f\u007f]*$",
}
HEALTH = {
    "get": {
        "operationId": "health",
        "summary": "Whether the server can reach its store.",
        "tags": ["Server"],
        "security": [],
        "responses": {
            str(status): {
                "description": said,
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "properties": {"status": {"type": "string"}},
                            "required": ["status"],
                            "additionalProperties": False,
                        }
                    }
                },
            }
            for status, said in ((200, "It can."), (503, "It cannot."))
        },
    }
}
EVERYWHERE = frozenset({400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503})


def documented(route: Route) -> frozenset[int]:
    """Every status that a route may answer with."""
    return _problems(route) | frozenset(route.answers)


def _problems(route: Route) -> frozenset[int]:
    repeated = frozenset() if route.repeat is Repeat.PLAIN else frozenset({GONE})
    return EVERYWHERE | route.problems | repeated


def description(routes: Sequence[Route]) -> dict[str, Any]:
    paths: dict[str, Any] = {"/healthz": HEALTH}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Recollect",
            "version": recollect.__version__,
            "description": "Durable memory for AI agents.",
        },
        "servers": [{"url": "/", "description": "Where this description is served."}],
        "tags": [{"name": name} for name in dict.fromkeys(map(chapter, routes))],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM, **components(paths)},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [chapter(route)],
        "description": _who(route),
        "parameters": [*_parameters(route), *_headers(route)],
        "responses": {
            **{str(status): _answer(route, schema) for status, schema in route.answers.items()},
            **{str(status): _problem(status) for status in sorted(_problems(route))},
        },
    }
    if route.body is not None:
        content = {"application/json": {"schema": route.body}}
        made["requestBody"] = {"required": bool(route.body.get("required")), "content": content}
    return made


def chapter(route: Route) -> str:
    """What a route is about: the first word of its path, or of what comes below the space."""
    if not route.path.startswith("/v1/") or not route.path.startswith("/v1/spaces"):
        return "mem0" if route.parts[0] == "mem0" else "Server"
    first = (*route.parts[3:], "spaces")[0]
    return CHAPTERS.get(first, first).capitalize()


CHAPTERS = {
    "append": "sessions",
    "document": "documents",
    "cite": "recall",
    "context": "recall",
    "quarantine": "facts",
    **dict.fromkeys(("status", "jobs", "work", "forget", "events", "audit"), "operating"),
}


def _who(route: Route) -> str:
    whose = "of all spaces" if route.reach is Reach.STORE else "that sees the space"
    whose = "of any space" if route.reach is Reach.OWN else whose
    wider = [scope.value for scope in Scope if scope.includes(route.scope)]
    return f"Needs a key {whose}, of scope {' or '.join(wider)}."


def _parameters(route: Route) -> list[dict[str, Any]]:
    described = route.inputs.parameter_schemas()
    required = described.get("required", ())
    places = route.inputs.places
    return [
        {
            "name": name,
            "in": "path" if name in places else "query",
            "required": name in required,
            "schema": SPACE_NAME if name == "space" else schema,
        }
        for name, schema in described.get("properties", {}).items()
    ]


def _headers(route: Route) -> list[dict[str, Any]]:
    named: list[tuple[str, Schema]] = []
    if route.repeat is not Repeat.PLAIN:
        named.append(
            (
                "Idempotency-Key",
                {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_CHARS_MAX},
            )
        )
    if route.is_conditional:
        named += [("If-Match", TEXT), ("If-None-Match", TEXT)]
    return [
        {"name": name, "in": "header", "required": False, "schema": schema}
        for name, schema in named
    ]


def _answer(route: Route, schema: Schema) -> dict[str, Any]:
    content = {route.media_type: {"schema": schema}}
    return {"description": route.summary, "content": content}


def _problem(status: int) -> dict[str, Any]:
    content = {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": TITLES[status], "content": content}

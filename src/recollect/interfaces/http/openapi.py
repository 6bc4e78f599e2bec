"""The OpenAPI description, made from the table of routes: it says what is served, or nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import recollect
from recollect.interfaces.http.problems import PROBLEM, TITLES
from recollect.interfaces.http.reply import PROBLEM_TYPE
from recollect.interfaces.http.route import Reach, Repeat, Route
from recollect.interfaces.http.schemas import Schema, text
from recollect.interfaces.views import components
from recollect.store.key_protocol import Scope

IDEMPOTENCY_CHARS_MAX = 255
GONE = 410
EVERYWHERE = frozenset({400, 401, 403, 404, 408, 413, 415, 422, 429, 500, 503})


def documented(route: Route) -> frozenset[int]:
    """Every status that a route may answer with."""
    return _problems(route) | frozenset(route.answers)


def _problems(route: Route) -> frozenset[int]:
    repeated = frozenset() if route.repeat is Repeat.PLAIN else frozenset({GONE})
    return EVERYWHERE | route.problems | repeated


def description(routes: Sequence[Route]) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Recollect",
            "version": recollect.__version__,
            "description": "Durable memory for AI agents.",
        },
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
        "description": _who(route),
        "parameters": [*_places(route), *_queries(route), *_headers(route)],
        "responses": {
            **{str(status): _answer(route, schema) for status, schema in route.answers.items()},
            **{str(status): _problem(status) for status in sorted(_problems(route))},
        },
    }
    if route.body is not None:
        content = {"application/json": {"schema": route.body}}
        made["requestBody"] = {"required": "required" in route.body, "content": content}
    return made


def _who(route: Route) -> str:
    whose = "of all spaces" if route.reach is Reach.STORE else "that sees the space"
    whose = "of any space" if route.reach is Reach.OWN else whose
    wider = [scope.value for scope in Scope if scope.includes(route.scope)]
    return f"Needs a key {whose}, of scope {' or '.join(wider)}."


def _places(route: Route) -> list[dict[str, Any]]:
    named = [part.strip("{}") for part in route.parts if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": text()} for name in named]


def _queries(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": name in route.needs, "schema": dict(schema)}
        for name, schema in route.query.items()
    ]


def _headers(route: Route) -> list[dict[str, Any]]:
    named = []
    if route.repeat is not Repeat.PLAIN:
        named.append(("Idempotency-Key", text(IDEMPOTENCY_CHARS_MAX)))
    if route.is_conditional:
        named += [("If-Match", text()), ("If-None-Match", text())]
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

"""Makes requests up from the schemas of the route table, right and wrong, and says what came of it.

Used by the tests and by the tool that writes the report. The same seed makes the same requests.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

from recollect.interfaces.http.openapi import description, documented
from recollect.interfaces.http.operations import Operation
from tests.e2e.http_canaries import Seen
from tests.e2e.http_world import EXAMPLES, STREAMS, Call, World

SPACE = "alice"
NASTY = (
    *("", " ", "\0", "\ud800", "a\ud800b", "\u202e", "\ufeff", "é" * 300, "x" * 5000, "\r\n"),
    *("'; DROP TABLE facts; --", '"', "%", "%00", "..", "../..", "/", "~", "~/", "~/memory"),
    *("~/memory/../x", "~/memory/" + "a/" * 40, "*", "null", "true", "-1", "NaN", "1e400"),
    *("2026-01-01", "2026-01-01T00:00:00+00:00", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00Z"),
    *("user", "assistant", "tool", "AND", "[]", "{}", "🧠" * 20, "9" * 50, "W10", "eyJ9"),
)
NUMBERS = (
    0,
    1,
    -1,
    2,
    10,
    999,
    1000,
    1001,
    2**31,
    2**53,
    2**62 - 1,
    2**62,
    2**63,
    10**30,
    1.5,
    -0.0,
)


class Fuzzer:
    """Makes values up: mostly what a schema asks for, sometimes anything."""

    def __init__(self, seed: int, described: Mapping[str, Any]) -> None:
        self.random = random.Random(seed)
        self.described = described

    def text(self) -> str:
        if self.random.random() < 0.3:
            return self.random.choice(NASTY) + self.random.choice(NASTY)
        return self.random.choice(NASTY)

    def anything(self, depth: int = 0) -> Any:
        kind = self.random.randrange(7 if depth < 4 else 5)
        if kind == 0:
            return self.text()
        if kind == 1:
            return self.random.choice(NUMBERS)
        if kind == 2:
            return self.random.choice((True, False, None))
        if kind == 3:
            return {"role": "user", "content": self.text()}
        if kind == 4:
            return {"type": "text", "text": self.text()}
        if kind == 5:
            return [self.anything(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.text(): self.anything(depth + 1) for _ in range(self.random.randrange(4))}

    def like(self, schema: Mapping[str, Any]) -> Any:
        while "$ref" in schema:
            schema = self.described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if "anyOf" in schema:
            schema = self.random.choice(schema["anyOf"])
            return self.like(schema)
        if "enum" in schema and self.random.random() > 0.08:
            return self.random.choice(schema["enum"])
        if self.random.random() < 0.08 or "type" not in schema:
            return self.anything()
        kinds = schema["type"]
        kind = kinds if isinstance(kinds, str) else self.random.choice(kinds)
        match kind:
            case "string":
                return self.text()
            case "integer":
                low, high = schema.get("minimum", 0), schema.get("maximum", 100)
                return self.random.choice((low, high, min(low + 3, high), *NUMBERS))
            case "number":
                return self.random.choice(NUMBERS)
            case "boolean":
                return self.random.random() < 0.5
            case "array":
                items = schema.get("items", {})
                return [self.like(items) for _ in range(self.random.randrange(4))]
            case "object":
                return self._object(schema)
            case _:
                return None

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        made = {}
        for name, each in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or self.random.random() < 0.5:
                made[name] = self.like(each)
        if schema.get("additionalProperties", True) and self.random.random() < 0.7:
            made[self.random.choice(("a", "session", "since", "tags", "AND", self.text()))] = (
                self.anything()
            )
        return made

    def call(self, route: Operation, good: Call) -> Call:
        """A good request of which some parts are made up."""
        places = {
            name: value if self.random.random() < 0.8 else self.text()
            for name, value in good.places.items()
        }
        query = dict(good.query)
        operation = self.described["paths"][route.path][route.method.lower()]
        for each in operation["parameters"]:
            if each["in"] == "query" and self.random.random() < 0.3:
                query[each["name"]] = self.like(each["schema"])
        body = good.body
        if "requestBody" in operation and self.random.random() < 0.8:
            body = self.like(operation["requestBody"]["content"]["application/json"]["schema"])
        headers = {}
        for name in ("Idempotency-Key", "If-Match", "If-None-Match"):
            if self.random.random() < 0.1:
                headers[name] = self.random.choice(("k", '"1"', "*", '"2"', "", '"x"', "a b"))
        return Call(places=places, query=query, body=body, headers=headers)


def target(route: Operation, space: str, call: Call) -> str:
    path = route.path
    for name, value in {**call.places, "space": space}.items():
        path = path.replace(f"{{{name}}}", quote(value.encode(errors="surrogatepass"), safe=""))
    given = {name: str(value).encode(errors="surrogatepass") for name, value in call.query.items()}
    return f"{path}?{urlencode(given)}" if given else path


def fuzz(world: World, seed: int, requests: int, seen: Seen) -> None:
    """So many requests with a key of all spaces: none fails, and none is answered unforeseen."""
    fuzzer = Fuzzer(seed, description(world.api.operations))
    routes = [route for route in world.api.operations if route.name not in STREAMS]

    async def talk(client: httpx2.AsyncClient) -> None:
        for number in range(requests):
            # Each route once before chance decides, so that none is left out of a short run.
            route = routes[number] if number < len(routes) else fuzzer.random.choice(routes)
            call = fuzzer.call(route, EXAMPLES[route.name](world, SPACE))
            space = SPACE if fuzzer.random.random() < 0.95 else fuzzer.text()
            sent = {**call.headers, "Content-Type": "application/json"}
            content = b"" if call.body is None else json.dumps(call.body).encode()
            url = target(route, space, call)
            response = await client.request(route.method, url, content=content, headers=sent)
            seen.note(route.name, response)
            told = f"seed {seed}: {route.name} {url[:300]} {content[:500]!r} {response.text[:300]}"
            allowed = documented(route) | {405}  # a client reads ".." as another path
            is_foreseen = space != SPACE or response.status_code in allowed
            seen.expect(response.status_code < 500, told)
            seen.expect(is_foreseen, f"{response.status_code} is not documented: {told}")
            if response.headers["content-type"].endswith("json"):
                json.loads(response.content.decode())

    world.run(talk, world.key())

"""From a request as it came in to what a route takes: parameters, body and conditions, checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from recollect.errors import InvalidValue
from recollect.interfaces.http.messages import JSON_TYPE
from recollect.interfaces.http.openapi import IDEMPOTENCY_CHARS_MAX
from recollect.interfaces.http.problems import refusal
from recollect.interfaces.http.route import Repeat, Route
from recollect.interfaces.http.table import Match

PARAMETERS_MAX = 50
NESTED_MAX = 64

_ETAG = re.compile(r'"([0-9]{1,18})"', re.ASCII)
_IDEMPOTENCY_KEY = re.compile(rf"[\x21-\x7e]{{1,{IDEMPOTENCY_CHARS_MAX}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A request without its body; header names are small letters."""

    method: str
    target: str  # path and parameters, as they came
    match: Match[Route] | None
    query: bytes
    headers: Mapping[str, str]
    request_id: str


def read_parameters(head: Head, route: Route) -> dict[str, Any]:
    """What path and query give. InvalidValue: one is unknown, missing, there twice or wrong."""
    assert head.match is not None
    try:
        text = head.query.decode("ascii")
        given = parse_qsl(
            text, keep_blank_values=True, max_num_fields=PARAMETERS_MAX, errors="strict"
        )
    except ValueError as error:
        raise InvalidValue("query: cannot be read") from error
    query: dict[str, str] = {}
    for name, value in given:
        if name in query:
            raise InvalidValue("query: a parameter is there twice")
        query[name] = value
    return route.inputs.read_parameters(head.match.places, query)


def read_body(head: Head, route: Route, body: bytes) -> dict[str, Any]:
    """What a body gives; nothing at all is an object without fields."""
    if route.inputs.body is None:
        if body:
            raise InvalidValue("body: this takes none")
        return {}
    return route.inputs.read_body(_json(head, body) if body else {})


def _json(head: Head, body: bytes) -> Any:
    media_type = head.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media_type != JSON_TYPE:
        raise refusal(415, "not-json", f"send the body as {JSON_TYPE}")
    try:
        content = _DECODER.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise refusal(400, "malformed", "the body is not JSON in UTF-8") from error
    if body.count(b"[") + body.count(b"{") > NESTED_MAX:
        _check_depth(content)
    return content


def _refused(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("larger than any number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refused, parse_float=_finite)


def _check_depth(content: Any) -> None:
    layer, depth = [content], 0
    while layer:
        depth += 1
        if depth > NESTED_MAX:
            raise InvalidValue(f"body: nested more than {NESTED_MAX} deep")
        layer = [
            below
            for each in layer
            if isinstance(each, dict | list)
            for below in (each.values() if isinstance(each, dict) else each)
        ]


def read_expected(head: Head, route: Route) -> int | None:
    """The version that is to be changed; 0: there must be none yet."""
    if not route.is_conditional:
        return None
    if "if-none-match" in head.headers:
        if head.headers["if-none-match"].strip() != "*":
            raise InvalidValue("If-None-Match is *: there must be no such document yet")
        return 0
    given = head.headers.get("if-match")
    if given is None:
        return None
    found = _ETAG.fullmatch(given.strip())
    if found is None:
        raise InvalidValue('If-Match is one version, as its ETag says it: "3"')
    return int(found[1])


def read_idempotency_key(head: Head, route: Route) -> str | None:
    given = head.headers.get("idempotency-key")
    if given is None or route.repeat is Repeat.PLAIN:
        return None
    if not _IDEMPOTENCY_KEY.fullmatch(given):
        raise InvalidValue(
            f"Idempotency-Key is 1 to {IDEMPOTENCY_CHARS_MAX} visible ASCII characters"
        )
    return given

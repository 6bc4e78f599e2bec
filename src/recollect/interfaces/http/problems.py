"""Converts errors to answers: problem details (RFC 9457), from the tree of errors.

An error that the caller can correct is answered with its own message. One for the operator may name
files, hosts and users: its answer gives only the kind.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from starlette.responses import Response, StreamingResponse

from recollect import errors

JSON_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"
EVENT_STREAM = "text/event-stream; charset=utf-8"

_log = logging.getLogger(__name__)

UNKNOWN = "urn:recollect:problem:"
RETRY_SECONDS = 1
RETRY_SECONDS_MAX = 3600

# The first that fits counts.
_STATUSES: tuple[tuple[type[errors.RecollectError], int], ...] = (
    (errors.Gone, 410),
    (errors.NotFound, 404),
    (errors.StaleVersion, 412),
    (errors.NotAllowed, 403),
    (errors.TooLarge, 413),
    (errors.AppendKeyReused, 422),
    (errors.InvalidValue, 422),
    (errors.StoreClosed, 503),
    (errors.StoreForked, 500),
    (errors.UsageError, 409),
    (errors.ModelUnavailable, 503),
    (errors.Postponed, 503),
    (errors.AnswerPending, 504),
    (errors.ModelError, 502),
    (errors.StoreFull, 507),
    (errors.StoreBusy, 503),
    (errors.StoreUnavailable, 503),
    (errors.OutcomeUnknown, 503),
    (errors.RecollectError, 500),
)
TITLES = {
    400: "Bad request",
    401: "A key is required",
    403: "Not allowed with this key",
    404: "Not found",
    405: "Method not allowed",
    408: "Request timed out",
    409: "Conflict with the current state",
    410: "No longer there",
    412: "Changed in the meantime",
    413: "Too large",
    415: "Unsupported media type",
    422: "Invalid request",
    429: "Too many requests",
    500: "Internal error",
    502: "The language model failed",
    503: "Temporarily unavailable",
    504: "No answer yet",
    507: "The store is full",
}
_IN_TIME = frozenset({429, 503, 504})
_RETRY_HELPS = _IN_TIME | {408}
_OPERATORS_WORDS = "the server's log says more under this request's id (X-Request-Id)"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An answer: content that becomes JSON, or text as it is."""

    content: Any
    status: int = 200
    media_type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    ids: tuple[str, ...] = ()  # of what was done, where a retry reads it again by them

    def encoded(self) -> bytes:
        if isinstance(self.content, str) and self.media_type != JSON_TYPE:
            return self.content.encode()
        made = _ENCODER.encode(self.content)
        # Half a character, which no UTF-8 has, becomes the very escape that JSON has for it.
        return made.encode(errors="backslashreplace")

    def response(self) -> Response:
        """The same as it goes out; what goes on is sent as it comes."""
        headers = {**self.headers, "content-type": self.media_type}
        if isinstance(self.content, AsyncIterator):
            return StreamingResponse(self.content, self.status, headers)
        return Response(self.encoded(), self.status, headers)


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProblem:
    """What went wrong, as an answer says it: always with who can mend it, and if a retry helps."""

    status: int
    kind: str
    detail: str
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self) -> HttpAnswer:
        content = {
            "type": UNKNOWN + self.kind,
            "title": TITLES[self.status],
            "status": self.status,
            "detail": self.detail,
            "retry_helps": self.status in _RETRY_HELPS,
            "mended_by": _mended_by(self.status).value,
            **self.more,
        }
        return HttpAnswer(
            status=self.status, content=content, media_type=PROBLEM_TYPE, headers=self.headers
        )


class Refusal(Exception):
    """Ends the handling of a request with a problem of HTTP itself; it stays in this package."""

    def __init__(self, problem: HttpProblem) -> None:
        super().__init__(problem.kind)
        self.problem = problem


def refusal(status: int, kind: str, detail: str, **headers: str) -> Refusal:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Refusal(HttpProblem(status=status, kind=kind, detail=detail, headers=named))


# The same for a space that does not exist, one that the key does not open, and an unknown path: a
# client without access learns nothing.
NOTHING_HERE = HttpProblem(
    status=404, kind="not-found", detail="there is nothing here for this key"
)
NO_KEY = HttpProblem(
    status=401,
    kind="unauthorized",
    detail="send a valid key as Authorization: Bearer …",
    headers={"WWW-Authenticate": "Bearer"},
)
FAILED = HttpProblem(status=500, kind="failed", detail=_OPERATORS_WORDS)


def problem_of(error: errors.RecollectError) -> HttpProblem:
    """An error as an answer tells it."""
    status = next(status for kind, status in _STATUSES if isinstance(error, kind))
    more: dict[str, Any] = {
        "retry_helps": error.retry_helps,
        "mended_by": error.mended_by.value,
    }
    if isinstance(error, errors.StaleVersion):
        more["current_version"] = error.current
    is_callers = isinstance(error, errors.UsageError) and status < 500
    return HttpProblem(
        status=status,
        kind=_dashed(type(error).__name__),
        detail=str(error) if is_callers else _OPERATORS_WORDS,
        more=more,
        headers={"Retry-After": str(_retry_seconds(error))} if status == 503 else {},
    )


def problem_for(error: Exception, request_id: str) -> HttpProblem:
    """The problem to answer with. What only the operator can mend is logged, without its words."""
    if isinstance(error, Refusal):
        return error.problem
    problem = problem_of(error) if isinstance(error, errors.RecollectError) else FAILED
    if problem.status >= 500:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
        _log.error("request %s failed: %s%s", request_id, type(error).__name__, place)
    return problem


def _mended_by(status: int) -> errors.Mender:
    """Who can correct what HTTP itself refuses; an error of Recollect says it by its type."""
    if status in _IN_TIME:
        return errors.Mender.TIME
    return errors.Mender.CALLER if status < 500 else errors.Mender.OPERATOR


def _retry_seconds(error: errors.RecollectError) -> int:
    match error:
        case errors.ModelUnavailable(retry_after_seconds=float() | int() as seconds):
            pass
        case errors.Postponed():
            seconds = error.delay_seconds
        case _:
            return RETRY_SECONDS
    return int(min(max(seconds, RETRY_SECONDS), RETRY_SECONDS_MAX))


def _dashed(name: str) -> str:
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in name).lstrip("-")

"""Every error of the tree becomes one answer, and what is the operator's is not told to callers."""

from __future__ import annotations

import json

import msgspec
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from recollect import errors
from recollect.errors import RecollectError
from recollect.interfaces.http.openapi import EVERYWHERE, ProblemDetails
from recollect.interfaces.http.problems import TITLES, problem_of, refusal
from tests.tables import every_row

WORDS = "the words of the error: /var/lib/secret"


def every_class(kind: type[RecollectError] = RecollectError) -> list[type[RecollectError]]:
    return [kind, *(each for below in kind.__subclasses__() for each in every_class(below))]


def made(kind: type[RecollectError]) -> RecollectError:
    more: dict[str, object] = {}
    if issubclass(kind, errors.StaleVersion):
        more = {"current": 3}
    elif issubclass(kind, errors.UnloadedEdits):
        more = {"files": ()}
    elif issubclass(kind, errors.Postponed) and not issubclass(kind, errors.ModelRejected):
        more = {"delay_seconds": 90}
    return kind(WORDS, **more)


ERRORS = [kind for kind in every_class() if kind.__module__ == "recollect.errors"]


@every_row("kind", ERRORS)
def test_an_error_is_told_by_its_type(kind: type[RecollectError]) -> None:
    problem = problem_of(made(kind))
    is_callers = issubclass(kind, errors.UsageError) and problem.status < 500
    assert problem.status in TITLES
    assert (WORDS in problem.answer().encoded().decode()) == is_callers
    assert ("Retry-After" in problem.headers) == (problem.status == 503)
    assert problem.more["retry_helps"] is kind.retry_helps


@every_row(
    ("error", "status"),
    [
        (errors.NotFound("x"), 404),
        (errors.InvalidValue("x"), 422),
        (errors.TooLarge("x"), 413),
        (errors.StaleVersion("x", current=3), 412),
        (errors.DocumentExists("x"), 409),
        (errors.NotAllowed("x"), 403),
        (errors.StoreBusy("x"), 503),
        (errors.StoreFull("x"), 507),
        (errors.StoreCorrupt("x"), 500),
        (errors.ModelUnavailable("x", retry_after_seconds=7), 503),
    ],
)
def test_the_status_says_who_can_mend_it(error: RecollectError, status: int) -> None:
    assert problem_of(error).status == status


def test_a_wait_that_is_known_is_told() -> None:
    known = errors.ModelUnavailable("x", retry_after_seconds=7.5)
    assert problem_of(known).headers["Retry-After"] == "7"
    assert problem_of(errors.Postponed("x", delay_seconds=10**9)).headers["Retry-After"] == "3600"


@every_row("status", sorted(TITLES))
def test_what_http_itself_refuses_says_who_can_mend_it_as_well(status: int) -> None:
    told = json.loads(refusal(status, "some-kind", "why").problem.answer().encoded())
    Draft202012Validator(msgspec.json.schema(ProblemDetails)).validate(told)
    is_temporary = status in (408, 429, 503, 504)
    assert told["retry_helps"] is is_temporary
    assert (told["mended_by"] == "caller") == (status < 500 and status != 429)


def test_what_every_route_may_answer_has_a_title() -> None:
    assert TITLES.keys() >= EVERYWHERE

"""What a provider's error comes to: passing, permanent, our fault, or a pause for everything."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.errors import (
    ModelDenied,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
)
from recollect.models.answers import (
    MESSAGE_CHARS_MAX,
    error_from,
    fault_from_status,
    fault_within,
    shown,
)
from tests.tables import every_row

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def error_of(status: int, body: Any = b"", headers: dict[str, str] | None = None) -> ModelError:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fault = fault_from_status(status, content, headers or {})
    return error_from(fault, host="models.example", now=NOW, pause_seconds=300)


def told(message: str, kind: str = "invalid_request_error", code: str | None = None) -> Any:
    return {"error": {"message": message, "type": kind, "code": code}}


@every_row("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529])
def test_what_passes_is_unavailable(status: int) -> None:
    error = error_of(status, headers={"retry-after": "9"})
    assert type(error) is ModelUnavailable
    assert error.retry_after_seconds == 9.0


@pytest.mark.parametrize("status", [400, 406, 415, 418, 422])
def test_what_does_not_pass_is_rejected(status: int) -> None:
    assert type(error_of(status)) is ModelRejected


@every_row("status", [301, 302, 307, 308, 401, 402, 403, 404, 405, 407, 410])
def test_what_no_call_survives_makes_everything_wait(status: int) -> None:
    error = error_of(status)
    assert type(error) is ModelDenied
    assert error.delay_seconds == 300


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, told("Invalid value for 'messages'", code="invalid_value")),
        (400, told("The response was filtered: content_filter", code="content_filter")),
        (403, told("Your request was flagged by moderation")),
    ],
)
def test_a_request_that_never_works_is_rejected(status: int, body: Any) -> None:
    assert type(error_of(status, body)) is ModelRejected


@pytest.mark.parametrize(
    "body",
    [
        told("The model `gpt-9` does not exist", code="model_not_found"),
        {"type": "error", "error": {"type": "not_found_error", "message": "model: x"}},
        {"error": 'model "x" not found, try pulling it first'},
    ],
)
def test_a_mistyped_model_makes_everything_wait_and_parks_nothing(body: Any) -> None:
    error = error_of(404, body)
    assert type(error) is ModelDenied
    assert "name" in str(error)


@every_row(
    ("status", "body"),
    [
        (413, b"<html>413 Request Entity Too Large</html>"),
        (413, {"type": "error", "error": {"type": "request_too_large", "message": "32 MB"}}),
        (400, told("maximum context length is 8192 tokens", code="context_length_exceeded")),
        (400, told("Please shorten it.", code="context_length_exceeded")),
        (400, told("prompt is too long: 213021 tokens > 200000 maximum")),
        (400, told("the request exceeds the available context size", "exceed_context_size_error")),
        (400, told("The input token count (9) exceeds the maximum number of tokens allowed")),
        (400, told("Invalid 'messages': string too long", code="string_above_max_length")),
        (422, {"detail": "input is too long for the requested model"}),
        (429, told("Request too large on tokens per min (TPM): limit 1, requested 2", "tokens")),
        (500, {"error": "context length exceeded"}),
    ],
)
def test_a_prompt_over_the_window_is_our_fault(status: int, body: Any) -> None:
    assert type(error_of(status, body)) is PromptTooLong


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, told("You exceeded your current quota", "insufficient_quota", "insufficient_quota")),
        (429, told("…", "billing_hard_limit_reached")),
        (402, told("Insufficient Balance")),
        (400, told("Your credit balance is too low to access the API.")),
    ],
)
def test_an_empty_account_makes_everything_wait(status: int, body: Any) -> None:
    error = error_of(status, body)
    assert type(error) is ModelDenied
    assert "no credit left" in str(error)


def test_a_limit_that_passes_is_not_an_empty_account() -> None:
    body = told("You exceeded your current quota per minute", "rate_limit", "RESOURCE_EXHAUSTED")
    assert type(error_of(429, body)) is ModelUnavailable


@every_row(
    ("body", "words"),
    [
        ({"error": {"message": "out of order"}}, "out of order"),
        ({"error": "out of order"}, "out of order"),
        ({"message": "out of order"}, "out of order"),
        ({"detail": "out of order"}, "out of order"),
        ({"detail": [{"loc": ["body", "seed"], "msg": "out of order"}]}, "out of order"),
        ([{"error": {"code": 500, "message": "out of order"}}], "out of order"),
        (b"out of order", "out of order"),
        (b"<html><body>out of order</body></html>", "an HTML page"),
        (b"", "no explanation"),
        ({"error": None}, "no explanation"),
        (b"[" * 100_000, "[[["),
        (b"\xff\xfe\x00", "\ufffd"),
    ],
)
def test_the_providers_words_are_found_in_any_shape(body: Any, words: str) -> None:
    error = error_of(500, body)
    assert str(error).startswith("models.example answered 500: ")
    assert words in str(error)


@every_row(
    ("content", "status"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, 529),
        ({"type": "error", "error": {"type": "authentication_error"}}, 401),
        ({"error": {"code": 429, "message": "x"}}, 429),
        ({"error": {"code": "insufficient_quota", "type": "x"}}, 429),
        ({"error": {"code": 7, "message": "x"}}, 500),
        ({"error": "x"}, 500),
        ({"type": "error"}, 500),
    ],
)
def test_an_error_inside_an_answer_has_the_status_it_should_have_had(
    content: dict[str, Any], status: int
) -> None:
    fault = fault_within(content)
    assert fault is not None
    assert fault.status == status


def test_an_answer_without_an_error_has_no_fault() -> None:
    assert fault_within({"choices": [], "error": None}) is None


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"error": {"message": "no", "param": "response_format.type"}}, True),
        ({"error": {"message": "Unknown field: response_format"}}, True),
        ({"error": {"message": "Response_Format is not supported"}}, True),
        ({"error": {"message": "my_response_format is not supported"}}, False),
        ({"error": {"message": "temperature is not supported"}}, False),
    ],
)
def test_a_fault_names_the_parameter_it_is_about(body: Any, names: bool) -> None:
    fault = fault_from_status(400, json.dumps(body).encode(), {})
    assert fault.names("response_format") is names


def test_only_an_objection_to_the_request_names_a_parameter() -> None:
    body = json.dumps({"error": {"param": "response_format"}}).encode()
    assert not fault_from_status(500, body, {}).names("response_format")


def test_a_message_is_one_short_printable_line_without_a_key() -> None:
    masked = "sk-" + "proj-****abcd"
    line = shown(f"Incorrect key:\n {masked}\x1b[31m\u202e " + "x" * 10_000)
    assert line.startswith("Incorrect key: [key]")
    assert line.isprintable()
    assert len(line) == MESSAGE_CHARS_MAX

"""Chat completions, as sent to a server and as read from many."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recollect.errors import (
    InvalidOutput,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
)
from recollect.models.protocol import Completion
from recollect.models.scripted import KEY, ScriptedServer, Step, answer, raw
from tests.unit.models.asking import SCHEMA, asking


def completed(step: Step, **settings: Any) -> Completion:
    with ScriptedServer([step]) as server:
        return server.model(model_retries=0, **settings).complete(asking())


def document(**choice: Any) -> Step:
    return raw(json.dumps({"model": "m", "choices": [choice]}).encode())


def stream(*events: dict[str, Any] | str) -> Step:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return raw("".join(f"data: {line}\n\n" for line in lines).encode())


def piece(text: str | None, reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


def test_a_request_says_what_is_asked_and_in_which_form() -> None:
    with ScriptedServer([{"facts": []}]) as server:
        request = asking("Hello", schema=SCHEMA, schema_name="memory", output_tokens_max=77)
        server.model("openai", model="openai:gpt-9").complete(request)
        (received,) = server.requests
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.headers["content-type"] == "application/json"
    assert received.body == {
        "model": "gpt-9",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
        "max_tokens": 77,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "memory", "strict": True, "schema": SCHEMA},
        },
    }


def test_without_a_system_prompt_and_a_schema_only_the_question_is_sent() -> None:
    with ScriptedServer(["Hello"]) as server:
        server.model().complete(asking(system=""))
        (received,) = server.requests
    assert [message["role"] for message in received.body["messages"]] == ["user"]
    assert "response_format" not in received.body


@pytest.mark.parametrize("is_streamed", [True, False])
def test_an_answer_reads_the_same_streamed_or_whole(is_streamed: bool) -> None:
    text = "Grüße, " * 50
    completion = completed(answer(text, is_streamed=is_streamed))
    assert completion.text == text
    assert completion.model == "scripted-1"
    assert not completion.usage.is_estimate
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (100, 20)


@pytest.mark.parametrize(
    "step",
    [
        document(message={"content": "Hello"}, finish_reason="stop"),
        document(message={"content": "Hello"}),
        document(message={"content": [{"type": "text", "text": "Hello"}]}, finish_reason="stop"),
        document(message={"content": "Hello", "reasoning_content": "Hm."}, finish_reason="eos"),
        stream(piece("Hel"), piece("lo", "stop"), "[DONE]"),
        stream(piece("Hel"), piece("lo"), "[DONE]"),  # no reason given
        stream(piece("Hel"), piece("lo"), piece(None, "stop")),  # no end marked
        stream({"choices": []}, piece("Hello"), {"choices": None}, piece(None, "stop")),
    ],
)
def test_the_answers_of_many_servers_are_understood(step: Step) -> None:
    assert completed(step).text == "Hello"


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (document(message={"content": '{"a'}, finish_reason="length"), InvalidOutput),
        (document(message={"content": '{"a'}, finish_reason="max_tokens"), InvalidOutput),
        (document(message={"content": '{"a'}, finish_reason="model_length"), PromptTooLong),
        (document(message={"content": ""}, finish_reason="content_filter"), ModelRejected),
        (document(message={"refusal": "No.", "content": None}), ModelRejected),
        (document(message={"content": "a"}, finish_reason="error"), ModelUnavailable),
        (document(message={"content": None}, finish_reason="tool_calls"), InvalidOutput),
        (document(message={"content": None}, finish_reason="stop"), InvalidOutput),
        (document(), ModelUnavailable),
        (raw(b'{"choices": []}'), ModelUnavailable),
        (raw(b'{"choices": "many"}'), ModelUnavailable),
        (raw(b'{"detail": "Not Found"}'), ModelUnavailable),
        (stream(piece("Half of")), ModelUnavailable),
        (stream(piece("Half of", "length"), "[DONE]"), InvalidOutput),
        (stream("[DONE]"), InvalidOutput),
    ],
)
def test_what_is_no_whole_answer_is_an_error(step: Step, error: type[ModelError]) -> None:
    with pytest.raises(error) as caught:
        completed(step)
    assert type(caught.value) is error


def test_where_the_server_counts_nothing_usage_is_an_estimate() -> None:
    usage = completed(answer("Hello there, my friend.", usage=None)).usage
    assert usage.is_estimate
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0


def test_a_count_of_nothing_is_no_count() -> None:
    counted = {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    usage = completed(stream(piece("Hello", "stop"), {"choices": []} | counted, "[DONE]")).usage
    assert usage.is_estimate
    assert usage.input_tokens > 0

"""The messages protocol, as sent and as read."""

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
from recollect.models.anthropic import VERSION
from recollect.models.protocol import Completion
from recollect.models.scripted import KEY, Gate, Reply, ScriptedServer, Step, answer, raw
from tests.unit.models.asking import SCHEMA, asking


def completed(step: Step, **changes: Any) -> Completion:
    with ScriptedServer([step]) as server:
        return server.model("anthropic", model_retries=0).complete(asking(**changes))


def document(*blocks: dict[str, Any], **more: Any) -> Step:
    content = {"type": "message", "model": "m", "content": list(blocks), **more}
    return raw(json.dumps(content).encode())


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_a_request_says_what_is_asked_and_in_which_form() -> None:
    with ScriptedServer([{"facts": []}]) as server:
        request = asking("Hello", schema=SCHEMA, schema_name="memory", output_tokens_max=77)
        completion = server.model("anthropic", model="anthropic:claude-9").complete(request)
        (received,) = server.requests
    assert completion.text == '{"facts": []}'
    assert received.path == "/v1/messages"
    assert received.headers["x-api-key"] == KEY
    assert received.headers["anthropic-version"] == VERSION
    assert "authorization" not in received.headers
    (tool,) = received.body["tools"]
    assert tool["input_schema"] == SCHEMA
    assert received.body["tool_choice"] == {"type": "tool", "name": tool["name"]}
    assert received.body["system"] == "Be brief."
    assert received.body["messages"] == [{"role": "user", "content": "Hello"}]
    assert received.body["max_tokens"] == 77


def test_without_a_schema_words_are_asked_for() -> None:
    with ScriptedServer(["Hello"]) as server:
        assert server.model("anthropic").complete(asking(system="")).text == "Hello"
        (received,) = server.requests
    assert not {"tools", "tool_choice", "system"} & received.body.keys()


@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_an_answer_reads_the_same_streamed_or_whole(
    is_streamed: bool, schema: dict[str, Any] | None
) -> None:
    content = {"facts": ["Grüße " * 20, "two"]}
    completion = completed(answer(content, is_streamed=is_streamed), schema=schema)
    assert json.loads(completion.text) == content
    assert completion.model == "scripted-1"
    assert not completion.usage.is_estimate


def test_the_input_of_the_tool_is_the_answer_whatever_stands_around_it() -> None:
    tool = {"type": "tool_use", "name": "answer", "input": {"facts": ["a"]}}
    thought = {"type": "thinking", "thinking": "Hm."}
    step = document(thought, text("Let me see."), tool, text("Done."), stop_reason="tool_use")
    assert json.loads(completed(step, schema=SCHEMA).text) == {"facts": ["a"]}


def test_tokens_from_a_cache_are_counted_as_sent() -> None:
    counts = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 100,
        "output_tokens": 7,
    }
    usage = completed(document(text("Hello"), stop_reason="end_turn", usage=counts)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.is_estimate) == (135, 7, False)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (document(text('{"a'), stop_reason="max_tokens"), InvalidOutput),
        (document(text('{"a'), stop_reason="model_context_window_exceeded"), PromptTooLong),
        (document(text("I"), stop_reason="refusal"), ModelRejected),
        (document(text("I"), stop_reason="pause_turn"), ModelUnavailable),
        (document(stop_reason="end_turn"), InvalidOutput),
        (document({"type": "tool_use", "input": {}}, stop_reason="tool_use"), InvalidOutput),
        (raw(b'{"type": "message", "content": "words"}'), InvalidOutput),
        (raw(b'{"something": "else"}'), ModelUnavailable),
    ],
)
def test_what_is_no_whole_answer_is_an_error(step: Step, error: type[ModelError]) -> None:
    with pytest.raises(error) as caught:
        completed(step)
    assert type(caught.value) is error


def test_an_answer_is_over_when_it_says_so_though_the_connection_stays() -> None:
    gate = Gate()

    def lingering(reply: Reply) -> None:
        answer("Hello", is_streamed=True)(reply)
        gate.wait(reply.closing)

    with ScriptedServer([lingering]) as server:
        model = server.model("anthropic", model_timeout_seconds=20)
        assert model.complete(asking()).text == "Hello"
        gate.open()

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
    OutputCut,
    PromptTooLong,
)
from recollect.messages import ToolCall
from recollect.models.protocol import Completion
from recollect_conformance.scripted import KEY, ScriptedServer, Step, answer, raw
from tests.tables import every_row
from tests.unit.models.asking import SCHEMA, asking
from tests.unit.models.talking import TOOLS, assistant, call, result, talking, user


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


def test_what_may_be_left_out_may_be_null_where_nothing_may_be_left_out() -> None:
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    inner = {"type": "object", "properties": {"a": text, "b": texts}, "required": ["a"]}
    schema = {
        "type": "object",
        "properties": {"facts": {"type": "array", "items": inner}},
        "required": ["facts"],
    }
    with ScriptedServer([{"facts": []}]) as server:
        server.model("openai", model="openai:gpt-9").complete(asking("Hello", schema=schema))
        (received,) = server.requests
    sent = received.body["response_format"]["json_schema"]["schema"]
    assert sent["properties"]["facts"]["items"] == {
        "type": "object",
        "properties": {"a": text, "b": texts | {"type": ["array", "null"]}},
        "required": ["a", "b"],
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


@every_row(
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


@every_row(
    ("step", "error"),
    [
        (document(message={"content": '{"a'}, finish_reason="length"), OutputCut),
        (document(message={"content": '{"a'}, finish_reason="max_tokens"), OutputCut),
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
        (stream(piece("Half of", "length"), "[DONE]"), OutputCut),
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


def called(step: Step) -> Completion:
    with ScriptedServer([step]) as server:
        return server.model(model_retries=0).complete(talking(user("Go on.")))


def whole(call_id: str | None, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    made = {"type": "function", "function": function, **more}
    return made if call_id is None else made | {"id": call_id}


def calling(*tool_calls: Any, reason: str | None = None, **delta: Any) -> dict[str, Any]:
    said = {"tool_calls": list(tool_calls), **delta}
    return {"choices": [{"index": 0, "delta": said, "finish_reason": reason}]}


def rest(arguments: str, **more: Any) -> dict[str, Any]:
    return {"function": {"arguments": arguments}, **more}


def test_a_conversation_with_tools_is_put_as_the_protocol_has_it() -> None:
    request = talking(
        user("Who?"),
        assistant("", call("a", '{"path":"x"}'), call("b", {"path": "y"})),
        result("a", "Nothing there", is_error=True),
        result("b", "Text"),
        assistant("Nobody."),
        user("Sure?"),
    )
    with ScriptedServer(["Yes"]) as server:
        server.model().complete(request)
        body = server.requests[0].body
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Who?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                whole("a", "document_read", '{"path":"x"}'),
                whole("b", "document_read", '{"path": "y"}'),
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "Error: Nothing there"},
        {"role": "tool", "tool_call_id": "b", "content": "Text"},
        {"role": "assistant", "content": "Nobody."},
        {"role": "user", "content": "Sure?"},
    ]
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in TOOLS
    ]
    assert "tool_choice" not in body


A, B = ToolCall("a", "one", '{"n": 1}'), ToolCall("b", "two", '{"n": 2}')
SERVERS: dict[str, tuple[Step, list[ToolCall]]] = {
    "pieces by index, mixed": (
        stream(
            calling(whole("a", "one", "", index=0)),
            calling(whole("b", "two", '{"n"', index=1), rest('{"n": ', index=0)),
            calling(rest("1}", index=0)),
            calling(rest(": 2}", index=1), reason="tool_calls"),
            "[DONE]",
        ),
        [A, B],
    ),
    "whole calls at once, without index": (
        stream(
            calling(whole("a", "one", '{"n": 1}'), whole("b", "two", '{"n": 2}'), reason="stop")
        ),
        [A, B],
    ),
    "whole calls, each at the first index": (
        stream(
            calling(whole("a", "one", '{"n": 1}', index=0)),
            calling(whole("b", "two", '{"n": 2}', index=0), reason="stop"),
        ),
        [A, B],
    ),
    "whole calls at the first index, without ids": (
        stream(
            calling(whole(None, "one", '{"n": 1}', index=0)),
            calling(whole(None, "two", '{"n": 2}', index=0), reason="stop"),
        ),
        [ToolCall("call_1", "one", '{"n": 1}'), ToolCall("call_2", "two", '{"n": 2}')],
    ),
    "one tool twice, each time at the first index": (
        stream(
            calling(whole("a", "one", '{"n": 1}', index=0)),
            calling(whole("b", "one", '{"n": 2}', index=0), reason="stop"),
        ),
        [A, ToolCall("b", "one", '{"n": 2}')],
    ),
    "one tool twice, without index and ids": (
        stream(
            calling(whole(None, "one", '{"n": 1}')),
            calling(whole(None, "one", '{"n": 2}'), reason="stop"),
        ),
        [ToolCall("call_1", "one", '{"n": 1}'), ToolCall("call_2", "one", '{"n": 2}')],
    ),
    "pieces by id, mixed": (
        stream(
            calling(whole("a", "one", ""), whole("b", "two", "")),
            calling(rest('{"n": 1}', id="a")),
            calling(rest('{"n": 2}', id="b"), reason="stop"),
        ),
        [A, B],
    ),
    "pieces without index go on with the last call": (
        stream(
            calling(whole("a", "one", "")),
            calling(rest('{"n"')),
            calling(rest(": 1}", id="a")),
            calling(whole("b", "two", None)),
            calling(rest('{"n": 2}'), reason="tool_calls"),
        ),
        [A, B],
    ),
    "an id of its own for every piece": (
        stream(
            calling(whole("a", "one", "", index=0)),
            calling(rest('{"n": 1', index=0, id="z")),
            calling(rest("}", index=0, id="y"), reason="tool_calls"),
        ),
        [A],
    ),
    "the name in every piece": (
        stream(
            calling(whole("a", "one", '{"n"', index=0)),
            calling(whole("a", "one", ": 1}", index=0), reason="tool_calls"),
        ),
        [A],
    ),
    "the name in pieces, the id at last": (
        stream(
            calling(whole(None, "o", "", index=0)),
            calling(whole(None, "ne", "", index=0)),
            calling(whole("a", "", '{"n": 1}', index=0), reason="tool_calls"),
        ),
        [A],
    ),
    "no reason given": (stream(calling(whole("a", "one", '{"n": 1}', index=0)), "[DONE]"), [A]),
    "arguments as an object": (
        stream(calling(whole("a", "one", {"n": 1}, index=0), reason="stop")),
        [ToolCall("a", "one", {"n": 1})],
    ),
    "arguments of another type": (
        document(message={"tool_calls": [whole("a", "one", ["n", 1])]}, finish_reason="stop"),
        [ToolCall("a", "one", '["n", 1]')],
    ),
    "no arguments": (
        document(message={"tool_calls": [whole("a", "one", None), whole("b", "two", " ")]}),
        [ToolCall("a", "one", {}), ToolCall("b", "two", {})],
    ),
    "whole": (
        document(
            message={
                "content": None,
                "tool_calls": [whole("a", "one", '{"n": 1}'), whole("b", "two", '{"n": 2}')],
            },
            finish_reason="tool_calls",
        ),
        [A, B],
    ),
    "whole, and every id the same": (
        document(
            message={"tool_calls": [whole("a", "one", "{}"), whole("a", "one", '{"n": 1}')]},
        ),
        [ToolCall("a", "one", "{}"), ToolCall("call_1", "one", '{"n": 1}')],
    ),
    "an id that no other provider takes": (
        document(message={"tool_calls": [whole("fc:1|2", "one", "{}")]}),
        [ToolCall("call_1", "one", "{}")],
    ),
    "flat": (
        document(message={"tool_calls": [{"id": "a", "name": "one", "arguments": '{"n": 1}'}]}),
        [A],
    ),
    "legacy": (
        document(
            message={"content": None, "function_call": {"name": "one", "arguments": '{"n": 1}'}},
            finish_reason="function_call",
        ),
        [ToolCall("call_1", "one", '{"n": 1}')],
    ),
    "legacy in pieces": (
        stream(
            calling(function_call={"name": "one", "arguments": ""}),
            calling(function_call={"arguments": '{"n"'}),
            calling(function_call={"arguments": ": 1}"}, reason="function_call"),
        ),
        [ToolCall("call_1", "one", '{"n": 1}')],
    ),
    "both forms of one call": (
        document(
            message={
                "tool_calls": [whole("a", "one", '{"n": 1}')],
                "function_call": {"name": "one", "arguments": '{"n": 1}'},
            }
        ),
        [A],
    ),
    "halves of a character": (
        stream(
            calling(whole("a", "one", '{"n": "\ud83d', index=0)),
            calling(rest('\ude00 \ud83d"}', index=0), reason="tool_calls"),
        ),
        [ToolCall("a", "one", '{"n": "\U0001f600 \ufffd"}')],
    ),
    "no name": (
        document(message={"tool_calls": [whole("a", "", "{}"), {"id": 7}]}),
        [ToolCall("a", "", "{}"), ToolCall("call_1", "", {})],
    ),
}


@every_row("server", SERVERS)
def test_the_calls_of_many_servers_are_understood(server: str) -> None:
    step, expected = SERVERS[server]
    assert list(called(step).tool_calls) == expected


@every_row(
    ("step", "error"),
    [
        (stream(calling(whole("a", "one", '{"n"', index=0))), ModelUnavailable),
        (stream(calling(whole("a", "one", '{"n"', index=0), reason="length")), OutputCut),
        (document(message={"tool_calls": "many"}, finish_reason="tool_calls"), InvalidOutput),
        (document(message={"tool_calls": [None, "one"]}), InvalidOutput),
        (
            document(message={"tool_calls": [whole("a", "one", "{}")], "refusal": "No."}),
            ModelRejected,
        ),
        (
            document(
                message={
                    "tool_calls": [whole("a", "o", json.loads('{"a":' * 150 + "1" + "}" * 150))]
                }
            ),
            InvalidOutput,
        ),
    ],
)
def test_what_is_no_whole_call_is_an_error(step: Step, error: type[ModelError]) -> None:
    with pytest.raises(error) as caught:
        called(step)
    assert type(caught.value) is error

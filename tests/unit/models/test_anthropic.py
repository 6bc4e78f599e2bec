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
    OutputCut,
    PromptTooLong,
)
from recollect.messages import ToolCall
from recollect.models.anthropic import NOTHING_BEFORE, VERSION
from recollect.models.protocol import ChatMessage, Completion
from recollect_conformance.scripted import KEY, Gate, Reply, ScriptedServer, Step, answer, raw
from tests.tables import every_row
from tests.unit.models.asking import SCHEMA, asking
from tests.unit.models.talking import TOOLS, assistant, call, result, system, talking, user


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


@every_row(
    ("step", "error"),
    [
        (document(text('{"a'), stop_reason="max_tokens"), OutputCut),
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


def sent(*messages: ChatMessage, **changes: Any) -> dict[str, Any]:
    with ScriptedServer(["Hello"]) as server:
        server.model("anthropic").complete(talking(*messages, **changes))
        return dict(server.requests[0].body)


def turn(role: str, *content: Any) -> dict[str, Any]:
    is_words = len(content) == 1 and isinstance(content[0], str)
    return {"role": role, "content": content[0] if is_words else list(content)}


def use(call_id: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "document_read", "input": given}


def answered(call_id: str, words: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": words, **more}


def test_a_conversation_with_tools_is_put_as_the_protocol_has_it() -> None:
    body = sent(
        system("So far: nothing."),
        user("Who?"),
        assistant("Let me see.", call("a", '{"path": "x"}'), call("b", {"path": "y"})),
        result("a", "Nothing there", is_error=True),
        result("b", "Text"),
        assistant("Nobody."),
        user("Sure?"),
    )
    assert body["system"] == "Be brief.\n\nSo far: nothing."
    assert body["messages"] == [
        turn("user", "Who?"),
        turn("assistant", text("Let me see."), use("a", {"path": "x"}), use("b", {"path": "y"})),
        turn("user", answered("a", "Nothing there", is_error=True), answered("b", "Text")),
        turn("assistant", "Nobody."),
        turn("user", "Sure?"),
    ]
    assert body["tools"] == [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
        for tool in TOOLS
    ]
    assert "tool_choice" not in body


def test_those_who_speak_twice_are_taken_together() -> None:
    body = sent(user("One."), user("Two."), assistant("Three."), assistant("Four."), user("Five."))
    assert body["messages"] == [
        turn("user", text("One."), text("Two.")),
        turn("assistant", text("Three."), text("Four.")),
        turn("user", "Five."),
    ]


def test_results_come_before_the_words_of_the_user() -> None:
    body = sent(user("Who?"), assistant("", call("a", {})), user("Hurry!"), result("a", "Text"))
    assert body["messages"][-1] == turn("user", answered("a", "Text"), text("Hurry!"))


def test_a_conversation_begins_with_the_user() -> None:
    body = sent(assistant("Hello?"), user("Hi"))
    assert body["messages"] == [
        turn("user", NOTHING_BEFORE),
        turn("assistant", "Hello?"),
        turn("user", "Hi"),
    ]


def test_blank_texts_are_left_out() -> None:
    body = sent(
        user("Hi"), assistant(" \n"), user(""), user("You there?"), assistant("", call("a", {}))
    )
    assert body["messages"] == [
        turn("user", text("Hi"), text("You there?")),
        turn("assistant", use("a", {})),
    ]


def test_where_no_tool_may_be_called_those_spoken_of_are_named_all_the_same() -> None:
    told = [user("Who?"), assistant("", call("a", {})), result("a", "Text")]
    body = sent(*told, tools=())
    assert [tool["name"] for tool in body["tools"]] == ["document_read"]
    assert body["tool_choice"] == {"type": "none"}
    body = sent(*told, tools=(), schema=SCHEMA)
    assert [tool["name"] for tool in body["tools"]] == ["document_read", "answer"]
    assert body["tool_choice"] == {"type": "tool", "name": "answer"}


def events(*content: dict[str, Any]) -> Step:
    return raw("".join(f"data: {json.dumps(each)}\n\n" for each in content).encode())


def start(index: int | None, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int | None, piece: str) -> dict[str, Any]:
    given = {"type": "input_json_delta", "partial_json": piece}
    return {"type": "content_block_delta", "index": index, "delta": given}


def end(reason: str = "tool_use") -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


CALLED: dict[str, tuple[Step, list[ToolCall]]] = {
    "in pieces, mixed": (
        events(
            start(0, use("a", {})),
            start(2, use("b", {})),
            delta(2, '{"path"'),
            delta(0, '{"path": '),
            delta(2, ': "y"}'),
            delta(0, '"x"}'),
            end(),
        ),
        [call("a", '{"path": "x"}'), call("b", '{"path": "y"}')],
    ),
    "without index": (
        events(start(None, use("a", {})), delta(None, '{"path": '), delta(None, '"x"}'), end()),
        [call("a", '{"path": "x"}')],
    ),
    "whole in its start": (
        events(start(0, use("a", {"path": "x"})), end()),
        [call("a", {"path": "x"})],
    ),
    "without arguments": (events(start(0, use("a", {})), delta(0, ""), end()), [call("a", {})]),
    "whole": (
        document(text("Hm."), use("a", {"path": "x"}), stop_reason="tool_use"),
        [call("a", {"path": "x"})],
    ),
    "without an id and a name": (
        document({"type": "tool_use", "input": {"path": "x"}}, stop_reason="end_turn"),
        [ToolCall("call_1", "", {"path": "x"})],
    ),
}


@every_row("server", CALLED)
def test_the_calls_of_many_servers_are_understood(server: str) -> None:
    step, expected = CALLED[server]
    with ScriptedServer([step]) as scripted:
        model = scripted.model("anthropic", model_retries=0)
        completion = model.complete(talking(user("Go on.")))
    assert list(completion.tool_calls) == expected


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (events(start(0, use("a", {})), delta(0, '{"path"')), ModelUnavailable),
        (events(start(0, use("a", {})), delta(0, '{"path"'), end("max_tokens")), OutputCut),
        (document(use("a", {}), stop_reason="refusal"), ModelRejected),
        (document(use("a", {}), stop_reason="pause_turn"), ModelUnavailable),
    ],
)
def test_what_is_no_whole_call_is_an_error(step: Step, error: type[ModelError]) -> None:
    with ScriptedServer([step]) as server:
        model = server.model("anthropic", model_retries=0)
        with pytest.raises(error) as caught:
            model.complete(talking(user("Go on.")))
    assert type(caught.value) is error

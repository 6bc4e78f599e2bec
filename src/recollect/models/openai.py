"""Chat completions: the protocol of OpenAI and of the many servers that are compatible with it.

Ollama is among them; its own protocol differs little and says what that one cannot: how long the
window is to be. Without it Ollama cuts off the beginning of a long prompt without a word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from recollect.messages import ToolCall
from recollect.models.answers import CallPiece, Fault, Gathering, StopReason
from recollect.models.protocol import ChatMessage, ChatRole, Request, ToolDefinition
from recollect.models.wire import (
    Dialect,
    Structured,
    Wire,
    arguments_text,
    conversation,
    system_text,
)

_STOPS = {
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.WINDOW,
    "content_filter": StopReason.REFUSED,
    "error": StopReason.BROKEN,
    "insufficient_system_resource": StopReason.BROKEN,
}
_STRUCTURED_WORDS = (
    *("response_format", "response format", "json_schema", "json_object"),
    *("structured", "schema", "grammar"),
)
# What is done without when a server objects to a parameter, the first first.
_LEFT_OUT: Mapping[str, Mapping[str, Any]] = {
    "stream_options": {"has_usage_option": False},
    "stream": {"has_stream": False},
    "max_tokens": {"token_limit": "max_completion_tokens"},
    "temperature": {"has_temperature": False},
}
_SIMPLER = {Structured.SCHEMA: Structured.JSON, Structured.JSON: Structured.LINES}


class ChatCompletions(Wire):
    """Speaks `POST …/chat/completions`."""

    __slots__ = ()

    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]:
        system = system_text(request, dialect)
        messages = [{"role": "system", "content": system}] if system else []
        messages += map(_message, conversation(request))
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        body[dialect.token_limit] = request.output_tokens_max
        if dialect.has_temperature:
            body["temperature"] = 0
        if dialect.has_stream:
            body["stream"] = True
            if dialect.has_usage_option:
                body["stream_options"] = {"include_usage": True}
        if request.schema is not None and dialect.structured is not Structured.LINES:
            body["response_format"] = _response_format(request, dialect)
        return body

    def read(self, content: Mapping[str, Any], into: Gathering) -> None:
        if isinstance(content.get("model"), str):
            into.model = content["model"]
        usage = content.get("usage")
        if isinstance(usage, dict):
            into.count(sent=usage.get("prompt_tokens"), answered=usage.get("completion_tokens"))
        choices = content.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            _read_choice(choices[0], into)

    def simpler(self, dialect: Dialect, fault: Fault) -> Dialect | None:
        for parameter, change in _LEFT_OUT.items():
            simpler = replace(dialect, **change)
            if simpler != dialect and fault.names(parameter):
                return simpler
        is_open = not dialect.is_structured_fixed and dialect.structured in _SIMPLER
        if is_open and fault.names(*_STRUCTURED_WORDS):
            return replace(dialect, structured=_SIMPLER[dialect.structured])
        return None


class OllamaChat(ChatCompletions):
    """Speaks `POST …/api/chat`."""

    __slots__ = ()
    sets_window = True

    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]:
        plain = replace(dialect, has_stream=False, token_limit="num_predict")
        body = super().body(request, plain)
        options = {name: body.pop(name) for name in ("num_predict", "temperature") if name in body}
        body["options"] = options | {"num_ctx": self.window_tokens}
        body["messages"] = [_with_objects(message) for message in body["messages"]]
        form = body.pop("response_format", {}).get("type")
        if form is not None:
            body["format"] = request.schema if form == "json_schema" else "json"
        return body | {"stream": False, "think": False}

    def read(self, content: Mapping[str, Any], into: Gathering) -> None:
        usage = {
            "prompt_tokens": content.get("prompt_eval_count"),
            "completion_tokens": content.get("eval_count"),
        }
        choice = {"message": content.get("message"), "finish_reason": content.get("done_reason")}
        super().read({**content, "usage": usage, "choices": [choice]}, into)

    def simpler(self, dialect: Dialect, fault: Fault) -> Dialect | None:
        return super().simpler(
            dialect, replace(fault, parameter="response_format") if fault.names("format") else fault
        )


def _with_objects(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose calls have their arguments as objects, as Ollama wants them."""
    if "tool_calls" not in message:
        return message
    calls = [
        call | {"function": call["function"] | {"arguments": json.loads(text)}}
        for call in message["tool_calls"]
        if (text := call["function"]["arguments"])
    ]
    return message | {"content": message["content"] or "", "tool_calls": calls}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": function}


def _message(message: ChatMessage) -> dict[str, Any]:
    match message.role:
        case ChatRole.TOOL:  # the protocol has no other way to say that a call failed
            is_told = not message.is_error or message.text.startswith("Error: ")
            text = message.text if is_told else f"Error: {message.text}"
            return {"role": "tool", "tool_call_id": message.call_id, "content": text}
        case ChatRole.ASSISTANT if message.tool_calls:
            calls = [_call(call) for call in message.tool_calls]
            return {"role": "assistant", "content": message.text or None, "tool_calls": calls}
        case role:
            return {"role": role.value, "content": message.text}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _response_format(request: Request, dialect: Dialect) -> dict[str, Any]:
    if dialect.structured is Structured.JSON:
        return {"type": "json_object"}
    schema = {"name": request.schema_name, "strict": True, "schema": _strict(request.schema)}
    return {"type": "json_schema", "json_schema": schema}


def _strict(schema: Any) -> Any:
    """A schema in which nothing may be left out, as strict output wants it: it may be null."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    strict = {key: _strict(value) for key, value in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        required, told = schema.get("required", ()), strict["properties"]
        strict["properties"] = {
            name: each if name in required else {**each, "type": [each["type"], "null"]}
            for name, each in told.items()
        }
        strict["required"] = list(told)
    return strict


def _read_choice(choice: Mapping[str, Any], into: Gathering) -> None:
    delta, message = choice.get("delta"), choice.get("message")
    said = delta if isinstance(delta, dict) else message
    if isinstance(said, dict):
        content = said.get("content")
        for part in content if isinstance(content, list) else [content]:
            into.add(part.get("text") if isinstance(part, dict) else part)
        refusal = said.get("refusal")
        if isinstance(refusal, str) and refusal:
            into.refusal = (into.refusal + refusal)[:300]
        _read_calls(said, into.go_on_with_call if said is delta else into.begin_call)
    if reason := choice.get("finish_reason"):
        into.stop = _STOPS.get(str(reason), StopReason.DONE)
    elif isinstance(message, dict):
        into.stop = StopReason.DONE  # no stream: this is all of it, whether or not it says so


def _read_calls(said: Mapping[str, Any], take: Callable[[CallPiece], None]) -> None:
    calls = said.get("tool_calls")
    found = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    legacy = said.get("function_call")  # how one call was put before there could be several
    if isinstance(legacy, dict) and not found:
        found = [{"index": "function_call", "function": legacy}]
    for call in found:
        function = call.get("function")
        inner = function if isinstance(function, dict) else call
        name, arguments = inner.get("name"), inner.get("arguments")
        take(CallPiece(place=call.get("index"), id=call.get("id"), name=name, arguments=arguments))

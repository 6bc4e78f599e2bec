"""The messages protocol of Anthropic. An answer in form is the input of the one tool it has.

The protocol has rules for a conversation that others do not: it begins with the user, who and the
assistant take turns; results of tools are the user's and come before the user's words; no text is
blank; where tools are mentioned there are tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from recollect.models.answers import CallPiece, Fault, Gathering, StopReason
from recollect.models.protocol import ChatMessage, ChatRole, Request, ToolDefinition
from recollect.models.wire import (
    Dialect,
    Structured,
    Wire,
    arguments_object,
    conversation,
    system_text,
)

VERSION = "2023-06-01"
NOTHING_BEFORE = "(What was said before this is left out.)"

_STOPS = {
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.WINDOW,
    "refusal": StopReason.REFUSED,
    "pause_turn": StopReason.BROKEN,
}
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Messages(Wire):
    """Speaks `POST …/v1/messages`."""

    __slots__ = ()

    def headers(self) -> Mapping[str, str]:
        headers = {"anthropic-version": VERSION}
        return headers | {"x-api-key": self.key} if self.key else headers

    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.output_tokens_max,
            "messages": _turns(conversation(request)),
            "stream": True,
        }
        if system := system_text(request, dialect):
            body["system"] = system
        if dialect.has_temperature:
            body["temperature"] = 0
        return body | _tool_fields(request, dialect)

    def read(self, content: Mapping[str, Any], into: Gathering) -> None:
        match content:
            case {"type": "message_start", "message": dict(message)}:
                _read_message(message, into)
            case {"type": "message"}:
                _read_message(content, into)
                into.stop = into.stop or StopReason.DONE
            case {"type": "content_block_start", "content_block": dict(block)}:
                _read_block(block, into, content.get("index"))
            case {"type": "content_block_delta", "delta": dict(delta)}:
                _read_delta(delta, into, content.get("index"))
            case {"type": "message_delta"}:
                _read_end(content, into)
            case {"type": "message_stop"}:
                into.end_stream()
            case _:
                pass  # pings, ends of blocks, and what may be added

    def simpler(self, dialect: Dialect, fault: Fault) -> Dialect | None:
        if dialect.has_temperature and fault.names("temperature"):
            return replace(dialect, has_temperature=False)
        is_strict = dialect.structured is Structured.SCHEMA
        if is_strict and not dialect.is_structured_fixed and fault.names("tool_choice", "tools"):
            return replace(dialect, structured=Structured.LINES)
        return None


def _tool_fields(request: Request, dialect: Dialect) -> dict[str, Any]:
    tools = {tool.name: tool for tool in request.tools or _tools_mentioned(request)}
    choice = None if request.tools else {"type": "none"}
    if request.schema is not None and dialect.structured is Structured.SCHEMA:
        name = request.schema_name
        tools[name] = ToolDefinition(
            name=name, description="Takes the answer.", parameters=request.schema
        )
        choice = {"type": "tool", "name": name}
    if not tools:
        return {}
    fields: dict[str, Any] = {"tools": [_tool(tool) for tool in tools.values()]}
    return fields | {"tool_choice": choice} if choice else fields


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.parameters),
    }


def _tools_mentioned(request: Request) -> list[ToolDefinition]:
    """Tools for a conversation that speaks of some and may call none."""
    calls = (call for message in conversation(request) for call in message.tool_calls)
    return [
        ToolDefinition(name=name, description="", parameters={"type": "object"})
        for name in dict.fromkeys(call.name for call in calls)
    ]


def _turns(messages: Iterable[ChatMessage]) -> list[dict[str, Any]]:
    turns: list[tuple[str, list[dict[str, Any]]]] = [("user", [])]
    for message in messages:
        role = "assistant" if message.role is ChatRole.ASSISTANT else "user"
        blocks = list(_blocks(message))
        if role == turns[-1][0]:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    if not turns[0][1]:
        turns[0][1].append({"type": "text", "text": NOTHING_BEFORE})
    return [{"role": role, "content": _content(blocks)} for role, blocks in turns]


def _blocks(message: ChatMessage) -> Iterator[dict[str, Any]]:
    if message.role is ChatRole.TOOL:
        result = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}
        yield result | {"is_error": True} if message.is_error else result
        return
    if message.text.strip():
        yield {"type": "text", "text": message.text}
    for call in message.tool_calls:
        given = arguments_object(call.arguments)
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _content(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    match blocks:
        case [{"type": "text", "text": str(text)}]:
            return text
        case _:
            return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _read_message(message: Mapping[str, Any], into: Gathering) -> None:
    if isinstance(message.get("model"), str):
        into.model = message["model"]
    blocks = message.get("content")
    for place, block in enumerate(blocks if isinstance(blocks, list) else []):
        if isinstance(block, dict):
            _read_block(block, into, place)
    _read_end({"delta": message, "usage": message.get("usage")}, into)


def _read_block(block: Mapping[str, Any], into: Gathering, place: object) -> None:
    """A block: whole in a document; in a stream its start, which is empty."""
    if block.get("type") == "tool_use" and into.has_tools:
        name, given = block.get("name"), block.get("input")
        into.begin_call(CallPiece(place=place, id=block.get("id"), name=name, arguments=given))
    elif block.get("type") == "tool_use":
        into.begin_tool_input()
        if block.get("input"):
            into.add(json.dumps(block["input"], ensure_ascii=False))
    elif block.get("type") == "text" and not into.is_tool_input:
        into.add(block.get("text"))


def _read_delta(delta: Mapping[str, Any], into: Gathering, place: object) -> None:
    if delta.get("type") == "input_json_delta" and into.has_tools:
        into.go_on_with_call(CallPiece(place=place, arguments=delta.get("partial_json")))
    elif delta.get("type") == "input_json_delta":
        into.add(delta.get("partial_json"))
    elif delta.get("type") == "text_delta" and not into.is_tool_input:
        into.add(delta.get("text"))


def _read_end(content: Mapping[str, Any], into: Gathering) -> None:
    delta, usage = content.get("delta"), content.get("usage")
    if isinstance(delta, dict) and delta.get("stop_reason"):
        into.stop = _STOPS.get(str(delta["stop_reason"]), StopReason.DONE)
    if isinstance(usage, dict):
        counts = [usage.get(name) for name in _INPUT_COUNTS]
        sent = sum(count for count in counts if isinstance(count, int))
        into.count(sent=sent or None, answered=usage.get("output_tokens"))

"""The messages protocol of Anthropic. An answer in form is the input of the one tool it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from recollect.models.answers import Gathering, Stop
from recollect.models.faults import Fault
from recollect.models.protocol import Request
from recollect.models.wire import Dialect, Structured, system_text

VERSION = "2023-06-01"

_STOPS = {
    "max_tokens": Stop.LENGTH,
    "model_context_window_exceeded": Stop.WINDOW,
    "refusal": Stop.REFUSED,
    "pause_turn": Stop.BROKEN,
}
_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Speaks `POST …/v1/messages`."""

    model: str
    url: str
    key: str | None = field(repr=False)
    provider: str = "anthropic"

    def headers(self) -> Mapping[str, str]:
        headers = {"anthropic-version": VERSION}
        return headers | {"x-api-key": self.key} if self.key else headers

    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.output_tokens_max,
            "messages": [{"role": "user", "content": request.prompt}],
            "stream": True,
        }
        if system := system_text(request, dialect):
            body["system"] = system
        if dialect.has_temperature:
            body["temperature"] = 0
        if request.schema is not None and dialect.structured is Structured.SCHEMA:
            name = request.schema_name
            body["tools"] = [
                {"name": name, "description": "Takes the answer.", "input_schema": request.schema}
            ]
            body["tool_choice"] = {"type": "tool", "name": name}
        return body

    def read(self, content: Mapping[str, Any], into: Gathering) -> None:
        match content:
            case {"type": "message_start", "message": dict(message)}:
                _read_message(message, into)
            case {"type": "message"}:
                _read_message(content, into)
                into.stop = into.stop or Stop.DONE
            case {"type": "content_block_start", "content_block": dict(block)}:
                _read_block(block, into)
            case {"type": "content_block_delta", "delta": dict(delta)}:
                _read_delta(delta, into)
            case {"type": "message_delta"}:
                _read_end(content, into)
            case {"type": "message_stop"}:
                into.end_stream()
            case _:
                pass  # pings, ends of blocks, and what may be added

    def simpler(self, dialect: Dialect, fault: Fault) -> Dialect | None:
        if dialect.has_temperature and fault.names("temperature"):
            return dialect.without_temperature()
        is_strict = dialect.structured is Structured.SCHEMA
        if is_strict and not dialect.is_structured_fixed and fault.names("tool_choice", "tools"):
            return dialect.with_structured(Structured.LINES)
        return None


def _read_message(message: Mapping[str, Any], into: Gathering) -> None:
    if isinstance(message.get("model"), str):
        into.model = message["model"]
    blocks = message.get("content")
    for block in blocks if isinstance(blocks, list) else []:
        if isinstance(block, dict):
            _read_block(block, into)
    _read_end({"delta": message, "usage": message.get("usage")}, into)


def _read_block(block: Mapping[str, Any], into: Gathering) -> None:
    """A block: whole in a document; in a stream its start, which is empty."""
    if block.get("type") == "tool_use":
        into.begin_tool_input()
        if block.get("input"):
            into.add(json.dumps(block["input"], ensure_ascii=False))
    elif block.get("type") == "text" and not into.is_tool_input:
        into.add(block.get("text"))


def _read_delta(delta: Mapping[str, Any], into: Gathering) -> None:
    if delta.get("type") == "input_json_delta":
        into.add(delta.get("partial_json"))
    elif delta.get("type") == "text_delta" and not into.is_tool_input:
        into.add(delta.get("text"))


def _read_end(content: Mapping[str, Any], into: Gathering) -> None:
    delta, usage = content.get("delta"), content.get("usage")
    if isinstance(delta, dict) and delta.get("stop_reason"):
        into.stop = _STOPS.get(str(delta["stop_reason"]), Stop.DONE)
    if isinstance(usage, dict):
        counts = [usage.get(name) for name in _INPUT_COUNTS]
        sent = sum(count for count in counts if isinstance(count, int))
        into.count(sent=sent or None, answered=usage.get("output_tokens"))

"""How the scripted server puts an answer in each protocol: as a stream of events, or whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from recollect.models.protocol import Usage

PIECE_CHARS = 40
MODEL = "scripted-1"


class Ending(Enum):
    """How an answer ends."""

    WHOLE = auto()
    LENGTH = auto()
    REFUSED = auto()
    FILTERED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as the server got it."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]

    @property
    def is_anthropic(self) -> bool:
        return self.path.endswith("/messages")

    @property
    def is_streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def system(self) -> str:
        if self.is_anthropic:
            return str(self.body.get("system", ""))
        return "\n".join(_contents(self.body, "system"))

    @property
    def prompt(self) -> str:
        return "\n".join(_contents(self.body, "user"))

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The schema the answer has to follow, if the request has one in its own field."""
        match self.body:
            case {"tools": [{"input_schema": dict(schema)}]}:
                return schema
            case {"response_format": {"json_schema": {"schema": dict(schema)}}}:
                return schema
            case _:
                return None


def _contents(body: Mapping[str, Any], role: str) -> list[str]:
    return [
        message["content"] for message in body.get("messages", ()) if message.get("role") == role
    ]


class Frames(Protocol):
    """One answer, put the way a protocol wants it."""

    def opening(self) -> Iterator[dict[str, Any]]: ...

    def pieces(self, text: str) -> Iterator[dict[str, Any]]: ...

    def closing(self, ending: Ending, usage: Usage | None) -> Iterator[dict[str, Any] | str]: ...

    def document(self, text: str, ending: Ending, usage: Usage | None) -> dict[str, Any]: ...


def frames_for(received: Received) -> Frames:
    return AnthropicFrames(received) if received.is_anthropic else OpenAIFrames(received)


def _cut(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]


class OpenAIFrames:
    """Chunks of a chat completion."""

    def __init__(self, received: Received) -> None:
        options = received.body.get("stream_options") or {}
        self._has_usage = bool(options.get("include_usage"))

    def opening(self) -> Iterator[dict[str, Any]]:
        yield self._chunk({"role": "assistant", "content": ""})

    def pieces(self, text: str) -> Iterator[dict[str, Any]]:
        for piece in _cut(text):
            yield self._chunk({"content": piece})

    def closing(self, ending: Ending, usage: Usage | None) -> Iterator[dict[str, Any] | str]:
        if ending is Ending.REFUSED:
            yield self._chunk({"refusal": "I cannot help with that."})
        yield self._chunk({}, _finish_reason(ending))
        if usage is not None and self._has_usage:
            yield {"model": MODEL, "choices": [], "usage": _openai_usage(usage)}
        yield "[DONE]"

    def document(self, text: str, ending: Ending, usage: Usage | None) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        if ending is Ending.REFUSED:
            message["refusal"] = "I cannot help with that."
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(ending)}
        whole: dict[str, Any] = {"model": MODEL, "choices": [choice]}
        return whole if usage is None else whole | {"usage": _openai_usage(usage)}

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"model": MODEL, "object": "chat.completion.chunk", "choices": [choice]}


def _finish_reason(ending: Ending) -> str:
    return {Ending.LENGTH: "length", Ending.FILTERED: "content_filter"}.get(ending, "stop")


def _openai_usage(usage: Usage) -> dict[str, int]:
    return {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}


class AnthropicFrames:
    """Events of a message; what is asked for by a tool comes as that tool's input."""

    def __init__(self, received: Received) -> None:
        choice = received.body.get("tool_choice") or {}
        self._tool: str | None = choice.get("name")

    def opening(self) -> Iterator[dict[str, Any]]:
        message: dict[str, Any] = {"type": "message", "model": MODEL, "content": []}
        yield {"type": "message_start", "message": message}
        yield {"type": "ping"}
        block: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": self._tool, "input": {}}
        empty = {"type": "text", "text": ""}
        start = block if self._tool else empty
        yield {"type": "content_block_start", "index": 0, "content_block": start}

    def pieces(self, text: str) -> Iterator[dict[str, Any]]:
        for piece in _cut(text):
            delta = (
                {"type": "input_json_delta", "partial_json": piece}
                if self._tool
                else {"type": "text_delta", "text": piece}
            )
            yield {"type": "content_block_delta", "index": 0, "delta": delta}

    def closing(self, ending: Ending, usage: Usage | None) -> Iterator[dict[str, Any] | str]:
        yield {"type": "content_block_stop", "index": 0}
        end: dict[str, Any] = {"type": "message_delta"}
        end["delta"] = {"stop_reason": self._stop_reason(ending)}
        yield end if usage is None else end | {"usage": _anthropic_usage(usage)}
        yield {"type": "message_stop"}

    def document(self, text: str, ending: Ending, usage: Usage | None) -> dict[str, Any]:
        whole = {
            "type": "message",
            "model": MODEL,
            "content": [self._block(text)],
            "stop_reason": self._stop_reason(ending),
        }
        return whole if usage is None else whole | {"usage": _anthropic_usage(usage)}

    def _block(self, text: str) -> dict[str, Any]:
        if self._tool:
            try:
                return {
                    "type": "tool_use",
                    "id": "t1",
                    "name": self._tool,
                    "input": json.loads(text),
                }
            except ValueError:
                pass  # a tool's input is JSON; anything else can only be said
        return {"type": "text", "text": text}

    def _stop_reason(self, ending: Ending) -> str:
        match ending:
            case Ending.WHOLE:
                return "tool_use" if self._tool else "end_turn"
            case Ending.LENGTH:
                return "max_tokens"
            case Ending.REFUSED | Ending.FILTERED:
                return "refusal"


def _anthropic_usage(usage: Usage) -> dict[str, int]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}

"""How the scripted server puts an answer in each protocol: as a stream of events, or whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from recollect.messages import Json, Role, Text, ToolCall, ToolResult, read
from recollect.models.protocol import ChatMessage, ChatRole, ToolDefinition, Usage

PIECE_CHARS = 40
ARGUMENTS_PIECE_CHARS = 7
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
    is_question: bool = False  # about the server: it came by GET

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
        """What the user said."""
        return "\n".join(each.text for each in self.messages if each.role is ChatRole.USER)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The conversation without the system prompt, read the same from both protocols.

        Only one of them says which results are errors; with the other the text does.
        """
        sent = self.body.get("messages", ())
        return tuple(each for message in sent for each in _messages_in(message))

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """The tools that the answer may call."""
        is_free = self.body.get("tool_choice", {"type": "auto"}).get("type") == "auto"
        return tuple(_tool(tool) for tool in self.body.get("tools", ()) if is_free)

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The schema the answer has to follow, if the request has one in its own field."""
        match self.body:
            case {"tools": [*_, {"input_schema": dict(schema)}], "tool_choice": {"type": "tool"}}:
                return schema
            case {"response_format": {"json_schema": {"schema": dict(schema)}}}:
                return schema
            case _:
                return None


def _contents(body: Mapping[str, Any], role: str) -> list[str]:
    return [
        message["content"] for message in body.get("messages", ()) if message.get("role") == role
    ]


def _messages_in(message: Mapping[str, Any]) -> Iterator[ChatMessage]:
    reading = read(message)
    texts = [part.text for part in reading.parts if isinstance(part, Text)]
    for part in reading.parts:
        if isinstance(part, ToolResult):
            yield ChatMessage(
                role=ChatRole.TOOL, text=part.text, call_id=part.call_id, is_error=part.is_error
            )
    if reading.role is Role.ASSISTANT:
        calls = [_parsed(part) for part in reading.parts if isinstance(part, ToolCall)]
        text = "\n".join(texts)
        yield ChatMessage(role=ChatRole.ASSISTANT, text=text, tool_calls=tuple(calls))
    elif reading.role is Role.USER:
        for text in texts:
            yield ChatMessage(role=ChatRole.USER, text=text)


def _parsed(call: ToolCall) -> ToolCall:
    given = call.arguments
    return ToolCall(call.id, call.name, json.loads(given) if isinstance(given, str) else given)


def _tool(tool: Mapping[str, Any]) -> ToolDefinition:
    inner = tool.get("function", tool)
    parameters = inner.get("parameters", inner.get("input_schema"))
    return ToolDefinition(
        name=inner["name"], description=inner["description"], parameters=parameters
    )


class Frames(Protocol):
    """One answer, put the way a protocol wants it."""

    def opening(self, *, has_text: bool = True) -> Iterator[dict[str, Any]]: ...

    def pieces(self, text: str) -> Iterator[dict[str, Any]]: ...

    def calls(self, calls: Sequence[ToolCall]) -> Iterator[dict[str, Any]]:
        """The calls, after the words; text arguments as they are, an object's JSON in pieces."""
        ...

    def closing(self, ending: Ending, usage: Usage | None) -> Iterator[dict[str, Any] | str]: ...

    def document(
        self, text: str, ending: Ending, usage: Usage | None, calls: Sequence[ToolCall] = ()
    ) -> dict[str, Any]: ...


def frames_for(received: Received) -> Frames:
    return AnthropicFrames(received) if received.is_anthropic else OpenAIFrames(received)


def _cut(text: str, size: int = PIECE_CHARS) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _arguments(call: ToolCall) -> str:
    given = call.arguments
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _with_id(call: ToolCall, fields: dict[str, Json]) -> dict[str, Json]:
    return fields if call.id is None else {"id": call.id, **fields}


class OpenAIFrames:
    """Chunks of a chat completion."""

    def __init__(self, received: Received) -> None:
        options = received.body.get("stream_options") or {}
        self._has_usage = bool(options.get("include_usage"))
        self._has_calls = False

    def opening(self, *, has_text: bool = True) -> Iterator[dict[str, Any]]:
        yield self._chunk({"role": "assistant", "content": "" if has_text else None})

    def pieces(self, text: str) -> Iterator[dict[str, Any]]:
        for piece in _cut(text):
            yield self._chunk({"content": piece})

    def calls(self, calls: Sequence[ToolCall]) -> Iterator[dict[str, Any]]:
        for index, call in enumerate(calls):
            self._has_calls = True
            function = {"name": call.name, "arguments": ""}
            start = _with_id(call, {"type": "function", "function": function})
            yield self._chunk({"tool_calls": [{"index": index, **start}]})
            for piece in _cut(_arguments(call), ARGUMENTS_PIECE_CHARS):
                rest = {"index": index, "function": {"arguments": piece}}
                yield self._chunk({"tool_calls": [rest]})

    def closing(self, ending: Ending, usage: Usage | None) -> Iterator[dict[str, Any] | str]:
        if ending is Ending.REFUSED:
            yield self._chunk({"refusal": "I cannot help with that."})
        yield self._chunk({}, _finish_reason(ending, has_calls=self._has_calls))
        if usage is not None and self._has_usage:
            yield {"model": MODEL, "choices": [], "usage": _openai_usage(usage)}
        yield "[DONE]"

    def document(
        self, text: str, ending: Ending, usage: Usage | None, calls: Sequence[ToolCall] = ()
    ) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["content"] = text or None
            message["tool_calls"] = [self._call(call) for call in calls]
        if ending is Ending.REFUSED:
            message["refusal"] = "I cannot help with that."
        reason = _finish_reason(ending, has_calls=bool(calls))
        choice = {"index": 0, "message": message, "finish_reason": reason}
        whole: dict[str, Any] = {"model": MODEL, "choices": [choice]}
        return whole if usage is None else whole | {"usage": _openai_usage(usage)}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": call.name, "arguments": _arguments(call)}
        return _with_id(call, {"type": "function", "function": function})

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"model": MODEL, "object": "chat.completion.chunk", "choices": [choice]}


def _finish_reason(ending: Ending, *, has_calls: bool) -> str:
    whole = "tool_calls" if has_calls else "stop"
    return {Ending.LENGTH: "length", Ending.FILTERED: "content_filter"}.get(ending, whole)


def _openai_usage(usage: Usage) -> dict[str, int]:
    return {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}


class AnthropicFrames:
    """Events of a message; what is asked for by a tool comes as that tool's input."""

    def __init__(self, received: Received) -> None:
        choice = received.body.get("tool_choice") or {}
        self._tool: str | None = choice.get("name")
        self._has_calls = False
        self._open: int | None = None  # the block that is being sent

    def opening(self, *, has_text: bool = True) -> Iterator[dict[str, Any]]:
        message: dict[str, Any] = {"type": "message", "model": MODEL, "content": []}
        yield {"type": "message_start", "message": message}
        yield {"type": "ping"}
        if not has_text:
            return
        block: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": self._tool, "input": {}}
        empty = {"type": "text", "text": ""}
        yield self._start(0, block if self._tool else empty)

    def pieces(self, text: str) -> Iterator[dict[str, Any]]:
        for piece in _cut(text):
            delta = _input_delta(piece) if self._tool else {"type": "text_delta", "text": piece}
            yield {"type": "content_block_delta", "index": 0, "delta": delta}

    def calls(self, calls: Sequence[ToolCall]) -> Iterator[dict[str, Any]]:
        first = 0 if self._open is None else self._open + 1
        yield from self._stop()
        for index, call in enumerate(calls, first):
            self._has_calls = True
            yield self._start(
                index, _with_id(call, {"type": "tool_use", "name": call.name, "input": {}})
            )
            for piece in _cut(_arguments(call), ARGUMENTS_PIECE_CHARS):
                delta = _input_delta(piece)
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield from self._stop()

    def _start(self, index: int, block: dict[str, Any]) -> dict[str, Any]:
        self._open = index
        return {"type": "content_block_start", "index": index, "content_block": block}

    def _stop(self) -> Iterator[dict[str, Any]]:
        if self._open is not None:
            yield {"type": "content_block_stop", "index": self._open}
            self._open = None

    def closing(self, ending: Ending, usage: Usage | None) -> Iterator[dict[str, Any] | str]:
        yield from self._stop()
        end: dict[str, Any] = {"type": "message_delta"}
        end["delta"] = {"stop_reason": self._stop_reason(ending)}
        yield end if usage is None else end | {"usage": _anthropic_usage(usage)}
        yield {"type": "message_stop"}

    def document(
        self, text: str, ending: Ending, usage: Usage | None, calls: Sequence[ToolCall] = ()
    ) -> dict[str, Any]:
        self._has_calls = bool(calls)
        said = [] if calls and not text else [self._block(text)]
        made = [
            _with_id(call, {"type": "tool_use", "name": call.name, "input": call.arguments})
            for call in calls
        ]
        whole = {
            "type": "message",
            "model": MODEL,
            "content": [*said, *made],
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
                return "tool_use" if self._tool or self._has_calls else "end_turn"
            case Ending.LENGTH:
                return "max_tokens"
            case Ending.REFUSED | Ending.FILTERED:
                return "refusal"


def _input_delta(piece: str) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": piece}


def _anthropic_usage(usage: Usage) -> dict[str, int]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}

"""Reads OpenAI- and Anthropic-style messages: pure functions from a message to its parts.

A message is kept verbatim; what is read here is a view of it and can be read again by a newer
version. Nothing in a message is trusted: an odd shape is an InvalidMessage, an unknown part stays
an Opaque one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never

from recollect.errors import InvalidMessage

Json = Any  # what json.loads gives: the one shape mypy cannot say

NESTING_MAX = 100  # far more than any provider nests, far less than Python's stack


class Role(StrEnum):
    """Who said it."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    NOTE = "note"


_ROLES: dict[str, Role] = {
    **{role.value: role for role in Role},
    "human": Role.USER,
    "ai": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "function": Role.TOOL,
}


@dataclass(frozen=True, slots=True)
class Text:
    """Something that was said or written."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought aloud; kept, never remembered."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run a tool; `arguments` as the model gave them, text or an object."""

    id: str | None
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    call_id: str | None
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Attachment:
    """An image, a sound or a file, by reference."""

    kind: str
    uri: str | None
    media_type: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part of a type we do not know; the verbatim message has it."""

    type: str


Part = Text | Reasoning | ToolCall | ToolResult | Attachment | Opaque


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message says: its role, its speaker and its parts in order."""

    role: Role
    name: str | None
    parts: tuple[Part, ...] = field(default=())

    @property
    def text(self) -> str:
        """The speaker's words: no calls, no reasoning, and a tool's answer only in a message of its
        own. Beside somebody's words it would pass for theirs; the message keeps it.
        """
        said = (
            part
            for part in self.parts
            if self.role is Role.TOOL or not isinstance(part, ToolResult)
        )
        return "\n".join(words for part in said if (words := _words(part)) is not None)


def read_role(value: object) -> Role:
    if isinstance(value, str):
        role = _ROLES.get(value) or _ROLES.get(value.strip().lower())
        if role is not None:
            return role
    raise InvalidMessage(f"unknown role {value!r}; use one of {', '.join(Role)}")


def read(message: Mapping[str, Json]) -> Reading:
    """Read one message dict, an item of the Responses API included."""
    match message.get("type"):
        case "function_call" | "custom_tool_call":
            call = ToolCall(
                id=_text_or_none(message.get("call_id")),
                name=_text(message.get("name"), "a tool call needs a name"),
                arguments=message.get("arguments", message.get("input")),
            )
            return Reading(Role.ASSISTANT, None, (call,))
        case "function_call_output" | "custom_tool_call_output":
            call_id = _text_or_none(message.get("call_id"))
            result = ToolResult(call_id, _flat(message.get("output")), _is_error(message))
            return Reading(Role.TOOL, None, (result,))
        case "reasoning" if "role" not in message:
            return Reading(Role.ASSISTANT, None, (Reasoning(_flat(message.get("summary"))),))
    return _read_chat(message)


def as_plain_json(message: object) -> tuple[dict[str, Json], str]:
    """A message as plain JSON values and as the text that is stored, or InvalidMessage.

    Objects of the providers' client libraries are taken through their own `model_dump`.
    """
    try:
        text = json.dumps(message, default=_dump, ensure_ascii=False, allow_nan=False)
        plain = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"not a message that JSON can hold: {error}") from error
    if not isinstance(plain, dict):
        raise InvalidMessage(f"a message is a mapping, not {type(message).__name__}")
    _check_nesting(plain, text)
    return plain, storable_json(text)


def storable_json(text: str) -> str:
    """JSON text that every database can hold: lone surrogates become escapes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), ensure_ascii=True)
    return text


def _check_nesting(plain: Json, text: str) -> None:
    """Refuse deep nesting: a later reader may have less of the stack left than this call."""
    if text.count("{") + text.count("[") <= NESTING_MAX:
        return
    level = [plain]
    for _ in range(NESTING_MAX):
        inner = [value.values() if isinstance(value, dict) else value for value in level]
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
    if level:
        raise InvalidMessage(f"a message is nested at most {NESTING_MAX} levels deep")


def _read_chat(message: Mapping[str, Json]) -> Reading:
    role = read_role(message.get("role"))
    name = message.get("name")
    if name is not None and not isinstance(name, str):
        raise InvalidMessage(f"a speaker's name is text, not {type(name).__name__}")
    parts = (*_parts(message.get("content")), *_refusal(message.get("refusal")))
    if role is Role.TOOL and not any(isinstance(part, ToolResult) for part in parts):
        call_id = _text_or_none(message.get("tool_call_id"))
        result = ToolResult(call_id, Reading(role, name, parts).text, _is_error(message))
        parts = (result, *(part for part in parts if not isinstance(part, Text)))
    elif role is Role.USER and parts and all(isinstance(part, ToolResult) for part in parts):
        role = Role.TOOL  # Anthropic hands tool results back under the user's role
    calls = (*_tool_calls(message.get("tool_calls")), *_legacy_call(message.get("function_call")))
    return Reading(role, name, (*parts, *calls))


def _parts(content: Json) -> Iterator[Part]:
    match content:
        case None:
            return
        case str():
            yield Text(content)
        case list():
            for block in content:
                yield _part(block)
        case dict():
            yield _part(content)
        case _:
            raise InvalidMessage(
                f"content is text or a list of parts, not {type(content).__name__}"
            )


def _refusal(refusal: Json) -> Iterator[Text]:
    """OpenAI puts what a model says instead of content beside it."""
    if refusal is not None:
        yield Text(_text(refusal, "a refusal is text"))


def _part(block: Json) -> Part:
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        raise InvalidMessage(f"a content part is text or a mapping, not {type(block).__name__}")
    kind = str(block.get("type", "text" if "text" in block else "unknown"))
    match kind:
        case "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text":
            return Text(_text(block.get("text"), "a text part needs text"))
        case "refusal":
            return Text(_text(block.get("refusal"), "a refusal needs text"))
        case "thinking" | "redacted_thinking" | "reasoning":
            return Reasoning(_flat(block.get("thinking", block.get("text"))))
        case "tool_use" | "server_tool_use":
            name = _text(block.get("name"), "a tool call needs a name")
            return ToolCall(_text_or_none(block.get("id")), name, block.get("input"))
        case "tool_result" | "web_search_tool_result" | "mcp_tool_result":
            call_id = _text_or_none(block.get("tool_use_id"))
            return ToolResult(call_id, _flat(block.get("content")), _is_error(block))
        case "image" | "image_url" | "input_image":
            return _attachment("image", block)
        case "audio" | "input_audio":
            return _attachment("audio", block)
        case "video" | "video_url" | "input_video":
            return _attachment("video", block)
        case "file" | "input_file" | "document":
            return _attachment("file", block)
        case _:
            return Opaque(kind)


def _tool_calls(calls: Json) -> Iterator[ToolCall]:
    if calls is None:
        return
    if not isinstance(calls, list):
        raise InvalidMessage(f"tool_calls is a list, not {type(calls).__name__}")
    for call in calls:
        if not isinstance(call, dict):
            raise InvalidMessage(f"a tool call is a mapping, not {type(call).__name__}")
        function = call.get("function")
        inner = function if isinstance(function, dict) else call
        name = _text(inner.get("name"), "a tool call needs a name")
        yield ToolCall(_text_or_none(call.get("id")), name, inner.get("arguments"))


def _legacy_call(call: Json) -> Iterator[ToolCall]:
    """OpenAI's form before `tool_calls`: one call, without an id."""
    if call is not None:
        yield from _tool_calls([call])


def _attachment(kind: str, block: Mapping[str, Json]) -> Attachment:
    """Where an attachment lies; inline data is named as such and not repeated."""
    nested = (
        block.get(field) for field in ("source", "image_url", "video_url", "file", "input_audio")
    )
    inner = next((value for value in nested if isinstance(value, dict)), block)
    candidates = (
        *(inner.get(field) for field in ("url", "uri", "file_id")),
        *(block.get(field) for field in ("image_url", "file_url")),
    )
    uri = next((value for value in candidates if isinstance(value, str)), None)
    if uri is not None and uri.startswith("data:"):
        uri = uri.partition(",")[0]
    return Attachment(
        kind=kind,
        uri=uri,
        media_type=_text_or_none(inner.get("media_type")),
        name=_text_or_none(block.get("title") or inner.get("filename") or block.get("name")),
    )


def _words(part: Part) -> str | None:
    match part:
        case Text():
            return part.text
        case ToolResult():
            return part.text
        case Reasoning() | ToolCall() | Attachment() | Opaque():
            return None
        case _:
            assert_never(part)


def _flat(value: Json) -> str:
    """The text of a tool's answer, whatever shape it came in."""
    match value:
        case None:
            return ""
        case str():
            return value
        case list() if all(isinstance(item, str | dict) for item in value):
            return "\n".join(
                words for item in value if (words := _words(_lenient_part(item))) is not None
            )
        case _:
            return json.dumps(value, ensure_ascii=False)


def _lenient_part(block: Json) -> Part:
    try:
        return _part(block)
    except InvalidMessage:
        return Opaque("unreadable")


def _is_error(block: Mapping[str, Json]) -> bool:
    return block.get("is_error") is True


def _text(value: Json, complaint: str) -> str:
    if not isinstance(value, str):
        raise InvalidMessage(f"{complaint}, not {type(value).__name__}")
    return value


def _text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _dump(value: object) -> Json:
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} is not JSON")
    return dump(mode="json", exclude_none=True)

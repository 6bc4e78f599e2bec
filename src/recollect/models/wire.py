"""What a provider's protocol has to say for itself, and what a server was found to understand."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, count
from typing import Any, ClassVar

from recollect.messages import Json, ToolCall, as_plain_json
from recollect.models.answers import NO_REMEDIES, Fault, Gathering, Remedies
from recollect.models.protocol import ChatMessage, ChatRole, Request


class Structured(StrEnum):
    """How an answer is kept in form, the strictest way first."""

    SCHEMA = "schema"
    JSON = "json"
    LINES = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a server understands. It starts out with everything and learns what to leave out."""

    structured: Structured = Structured.SCHEMA
    is_structured_fixed: bool = False  # the settings say how; nothing else is tried
    token_limit: str = "max_tokens"
    has_temperature: bool = True
    has_usage_option: bool = True
    has_stream: bool = True

    @classmethod
    def of(cls, structured: str) -> Dialect:
        if structured == "auto":
            return cls()
        return cls(structured=Structured(structured), is_structured_fixed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire(ABC):
    """One provider's protocol: how a request is put, how its answer is read.

    Without a model's name the server has one model only, and is asked for its name. Where
    `sets_window`, the window has to be told the server with every request.
    """

    sets_window: ClassVar[bool] = False

    model: str
    url: str
    key: str | None = field(repr=False)
    provider: str = "openai"
    window_tokens: int = 0
    remedies: Remedies = NO_REMEDIES

    def headers(self) -> Mapping[str, str]:
        """What the protocol wants, and the key where there is one."""
        return {"authorization": f"Bearer {self.key}"} if self.key else {}

    @abstractmethod
    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]: ...

    @abstractmethod
    def read(self, content: Mapping[str, Any], into: Gathering) -> None:
        """Take one object of the answer: an event, or all of it."""

    def simpler(self, dialect: Dialect, fault: Fault) -> Dialect | None:  # noqa: ARG002
        """The dialect without what the server objects to; None if that is not the matter."""
        return None


def system_text(request: Request, dialect: Dialect) -> str:
    """The system prompt, with the schema in it where the server does not enforce one.

    System messages of the conversation join it: one protocol has no other place for them, and
    with the other many a model takes one only, at the front.
    """
    own = [each.text for each in request.messages if each.role is ChatRole.SYSTEM]
    system = "\n\n".join(text for text in (request.system, *own) if text)
    if request.schema is None or dialect.structured is Structured.SCHEMA:
        return system
    schema = json.dumps(request.schema, ensure_ascii=False, separators=(",", ":"))
    asked = (
        "Answer with one JSON object and nothing else: no words around it, no code fence. "
        f"It has to follow this JSON schema:\n{schema}"
    )
    return f"{system}\n\n{asked}" if system else asked


UNREADABLE = "unreadable_arguments"  # stands for arguments that are no JSON object
UNNAMED = "unnamed"
NAME_CHARS_MAX = 64

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def _unused(wanted: str | None, taken: set[str]) -> str:
    """An id that is used once; a missing or unusable one is made up."""
    is_usable = wanted is not None and _ID.fullmatch(wanted) is not None
    made = (f"call_{number}" for number in count(1))
    tries = chain([wanted] if wanted is not None and is_usable else [], made)
    found = next(each for each in tries if each not in taken)
    taken.add(found)
    return found


def identified(calls: Iterable[ToolCall], request: Request) -> tuple[ToolCall, ...]:
    """The calls of an answer, each with an id that the conversation does not have yet."""
    taken = {call.id for message in request.messages for call in message.tool_calls if call.id}
    return tuple(replace(call, id=_unused(call.id, taken)) for call in calls)


def conversation(request: Request) -> Iterator[ChatMessage]:
    """What is sent besides the system prompt, every result with the id of its call."""
    if not request.messages:
        yield ChatMessage(role=ChatRole.USER, text=request.prompt)
        return
    taken: set[str] = set()
    sent: dict[str, str] = {}  # ids as given → as sent; of one that came twice, the later call's
    waiting: list[str] = []  # calls without a result so far
    for message in request.messages:
        match message.role:
            case ChatRole.SYSTEM:
                continue
            case ChatRole.USER:
                yield message
            case ChatRole.ASSISTANT:
                calls = tuple(_sendable(call, taken) for call in message.tool_calls)
                waiting = [str(call.id) for call in calls]
                given = (call.id for call in message.tool_calls)
                sent |= {old: new for old, new in zip(given, waiting, strict=True) if old}
                yield replace(message, tool_calls=calls)
            case ChatRole.TOOL:
                call_id = _matched(message.call_id, sent, waiting)
                yield replace(message, call_id=call_id)


def _sendable(call: ToolCall, taken: set[str]) -> ToolCall:
    name = _NOT_OF_A_NAME.sub("_", call.name)[:NAME_CHARS_MAX] or UNNAMED
    return replace(call, id=_unused(call.id, taken), name=name)


def _matched(given: str | None, sent: dict[str, str], waiting: list[str]) -> str:
    """The id of the call a result belongs to; without one, it is the first that waits."""
    call_id = sent.get(given, given) if given is not None else next(iter(waiting), UNNAMED)
    if call_id in waiting:
        waiting.remove(call_id)
    return call_id


def arguments_object(arguments: Json) -> dict[str, Any]:
    """The arguments of a call as an object, which is the one form every provider takes."""
    is_text = isinstance(arguments, str)
    if arguments is None or (is_text and not arguments.strip()):
        return {}
    try:
        return as_plain_json(json.loads(arguments) if is_text else arguments)[0]
    except (ValueError, RecursionError):
        return {UNREADABLE: arguments if is_text else type(arguments).__name__}


def arguments_text(arguments: Json) -> str:
    """The same as JSON; what is in form already stays as the model wrote it."""
    given = arguments_object(arguments)
    if isinstance(arguments, str) and given and UNREADABLE not in given:
        return arguments
    return json.dumps(given, ensure_ascii=False)

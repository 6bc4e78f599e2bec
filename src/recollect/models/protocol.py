"""What Recollect asks of a language model: a request in, a whole answer out, or a typed error.

An answer that was cut off, refused or is no answer at all is an error here, so that nobody further
in can mistake it for one. How many tokens a request has is estimated without a tokenizer, from its
bytes, corrected by what models count: linear, with the counting done in C.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import add, sub
from typing import Any, NamedTuple, Protocol

from recollect.config import Settings
from recollect.errors import InvalidValue
from recollect.messages import ToolCall

Pause = Callable[[float], object]  # waits so many seconds


class ChatRole(StrEnum):
    """The role of a message, as models know it."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of a conversation.

    `tool_calls` are an assistant's. `call_id` and `is_error` are a tool's: the call whose result
    the text is, and whether that call failed.
    """

    role: ChatRole
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as a model is told of it; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model.

    `messages`, where there are any, are sent instead of `prompt`; `system` comes first either way.
    `schema` is the JSON schema the answer has to follow; without one the answer is plain text, and
    with `tools` it may be calls of them. Not every provider can do both at once.
    `is_cancelled` is asked while the answer comes in: true means nobody waits for it any more.
    """

    system: str
    prompt: str = ""
    messages: tuple[ChatMessage, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    output_tokens_max: int = 4096
    is_cancelled: Callable[[], bool] = lambda: False

    def __post_init__(self) -> None:
        if self.tools and self.schema is not None:
            raise InvalidValue("a request has tools or a schema for its answer, not both")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an answer took. Counted by the provider, or estimated where it does not say."""

    input_tokens: int
    output_tokens: int
    is_estimate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A complete answer: its text, the tools it calls, and what it took.

    The text may be empty where tools are called. Every call has an id, which no other in the
    conversation has; its name and its arguments are what the model made up, and not checked.
    """

    text: str
    usage: Usage
    model: str  # as the provider names it
    tool_calls: tuple[ToolCall, ...] = ()
    tries_lost: int = 0  # that were taken on before this one and broke off; they may be billed


class Model(Protocol):
    """A language model. Safe to call from any number of threads."""

    @property
    def name(self) -> str:
        """`openai:<model>` or `anthropic:<model>`, stored with everything it made."""
        ...

    @property
    def window_tokens(self) -> int:
        """How many tokens prompt and answer may have together."""
        ...

    def complete(self, request: Request) -> Completion:
        """Answer, or raise a ModelError that says whether trying again helps."""
        ...

    def close(self) -> None: ...


def cost_micros(usage: Usage, settings: Settings) -> int | None:
    """Millionths of the currency that the prices are in; None where no price is known.

    Prices are per million tokens, so a token costs its price in millionths.
    """
    if not settings.model_input_price and not settings.model_output_price:
        return None
    sent = usage.input_tokens * settings.model_input_price
    answered = usage.output_tokens * settings.model_output_price
    return round(sent + answered)


BYTES_PER_TOKEN = 4.0
BYTES_PER_TOKEN_OF_CODE = 3.3  # brackets and operators are tokens of their own
CODE_MARKS = b"{}[]()<>;=_"
CODE_MARKS_SHARE = 0.05  # prose has about one such character in a hundred
MESSAGE_TOKENS = 4  # what a message of a conversation takes besides its text
CALL_TOKENS = 8  # what a call or a tool takes besides what is written in it

RATIO_MIN, RATIO_MAX = 0.5, 2.0
LEARNING_RATE = 0.2
LEARNED_FROM_TOKENS_MIN = 200  # below, what a provider wraps around a prompt outweighs it


def estimate_tokens(text: str) -> int:
    """The tokens of a text, roughly; never 0 for a text that is not empty."""
    return TextSize.of(text).tokens


class TextSize(NamedTuple):
    """What the tokens of a text are estimated by. Sizes of parts add up to that of the whole."""

    chars: int
    length: int  # in bytes
    marks: int  # of code

    @classmethod
    def of(cls, text: str) -> TextSize:
        data = text.encode("utf-8", "surrogatepass")
        return cls(len(text), len(data), len(data) - len(data.translate(None, CODE_MARKS)))

    def plus(self, other: TextSize) -> TextSize:
        return TextSize(*map(add, self, other))

    def minus(self, other: TextSize) -> TextSize:
        return TextSize(*map(sub, self, other))

    @property
    def tokens(self) -> int:
        is_code = self.marks > CODE_MARKS_SHARE * self.chars
        return math.ceil(self.length / (BYTES_PER_TOKEN_OF_CODE if is_code else BYTES_PER_TOKEN))


def estimate_request(request: Request) -> int:
    """The tokens of all that is sent for a request: its messages, its tools and its schema too."""
    total = estimate_tokens(request.system)
    if request.messages:
        total += sum(map(estimate_message, request.messages))
    else:
        total += estimate_tokens(request.prompt)
    if request.schema is not None:
        total += estimate_tokens(json.dumps(request.schema))
    return total + estimate_tools(request.tools)


def estimate_message(message: ChatMessage) -> int:
    words = estimate_tokens(message.text)
    if message.call_id:
        words += estimate_tokens(message.call_id)
    return MESSAGE_TOKENS + words + estimate_calls(message.tool_calls)


def estimate_calls(calls: Iterable[ToolCall]) -> int:
    return sum(CALL_TOKENS + sum(map(estimate_tokens, _texts_of_call(call))) for call in calls)


def estimate_tools(tools: Iterable[ToolDefinition]) -> int:
    return sum(CALL_TOKENS + sum(map(estimate_tokens, _texts_of_tool(tool))) for tool in tools)


def _texts_of_call(call: ToolCall) -> tuple[str, ...]:
    is_text = isinstance(call.arguments, str)
    arguments = call.arguments if is_text else json.dumps(call.arguments, default=str)
    return call.id or "", call.name, arguments


def _texts_of_tool(tool: ToolDefinition) -> tuple[str, ...]:
    return tool.name, tool.description, json.dumps(dict(tool.parameters))


class Calibration:
    """Learns by how much one model's count differs from the estimate. Safe to share."""

    def __init__(self) -> None:
        self._ratio = 1.0
        self._lock = threading.Lock()

    @property
    def ratio(self) -> float:
        return self._ratio

    def estimate(self, text: str) -> int:
        return self.corrected(estimate_tokens(text))

    def corrected(self, estimated: int) -> int:
        """What the model would count where the plain estimate says `estimated`."""
        return math.ceil(estimated * self._ratio)

    def learn(self, *, estimated: int, counted: int) -> None:
        """Move towards what a provider counted where `estimate_tokens` said `estimated`."""
        if estimated < LEARNED_FROM_TOKENS_MIN or counted <= 0:
            return
        seen = min(max(counted / estimated, RATIO_MIN), RATIO_MAX)
        with self._lock:
            self._ratio += LEARNING_RATE * (seen - self._ratio)

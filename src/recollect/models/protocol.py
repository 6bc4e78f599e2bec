"""What Recollect asks of a language model: a request in, a whole answer out, or a typed error.

An answer that was cut off, refused or is no answer at all is an error here, so that nobody further
in can mistake it for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from recollect.config import Settings
from recollect.errors import InvalidValue
from recollect.messages import ToolCall

Pause = Callable[[float], object]  # waits so many seconds

WINDOW_TOKENS = 128_000  # of what is served to everybody
WINDOW_TOKENS_SMALL = 8192  # of a server near by that does not say


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


def window_tokens(model: Model | None, settings: Settings) -> int:
    """What prompt and answer may have together: the model's window, or less if a setting says so.

    Without a model it is what one would have that nobody has named yet.
    """
    own = WINDOW_TOKENS if model is None else model.window_tokens
    return min(own, settings.model_window_tokens or own)


def cost_micros(usage: Usage, settings: Settings) -> int | None:
    """Millionths of the currency that the prices are in; None where no price is known.

    Prices are per million tokens, so a token costs its price in millionths.
    """
    if not settings.model_input_price and not settings.model_output_price:
        return None
    sent = usage.input_tokens * settings.model_input_price
    answered = usage.output_tokens * settings.model_output_price
    return round(sent + answered)

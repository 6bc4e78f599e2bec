"""How many tokens a text or a request has, without a tokenizer: from its bytes, corrected by what
models count.

Linear, with all the counting done in C; a session of megabytes costs milliseconds.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable
from operator import add, sub
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from recollect.messages import ToolCall
    from recollect.models.protocol import ChatMessage, Request, ToolDefinition

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
    total = 0
    for call in calls:
        given = call.arguments
        text = given if isinstance(given, str) else json.dumps(given, default=str)
        total += CALL_TOKENS + sum(map(estimate_tokens, (call.id or "", call.name, text)))
    return total


def estimate_tools(tools: Iterable[ToolDefinition]) -> int:
    total = 0
    for tool in tools:
        texts = (tool.name, tool.description, json.dumps(dict(tool.parameters)))
        total += CALL_TOKENS + sum(map(estimate_tokens, texts))
    return total


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

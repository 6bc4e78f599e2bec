"""What Recollect asks of a language model: one request in, one whole answer out, or a typed error.

An answer that was cut off, refused or is no answer at all is an error here, so that nobody further
in can mistake it for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Pause = Callable[[float], object]  # waits so many seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model.

    `schema` is the JSON schema the answer has to follow; without one the answer is plain text.
    `is_cancelled` is asked while the answer comes in: true means nobody waits for it any more.
    """

    system: str
    prompt: str
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    output_tokens_max: int = 4096
    is_cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an answer took. Counted by the provider, or estimated where it does not say."""

    input_tokens: int
    output_tokens: int
    is_estimate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A complete answer: its text, and what it took."""

    text: str
    usage: Usage
    model: str  # as the provider names it
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

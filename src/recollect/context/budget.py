"""Shares a model's window between system prompt, tools, memory, reply and history.

Owns the arithmetic of T7: the parts of a budget are never negative and add up to the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from recollect.errors import InvalidValue, PromptTooLong

REPLY_TOKENS = 1024
FREE_TOKENS_MIN = 64  # with less beside system prompt and tools, no conversation can be held


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What each part of a window may take.

    `reply_tokens` and `memory_tokens` are wishes: in a small window neither gets more than an equal
    share of what system prompt and tools leave. What nobody takes is the history's.
    """

    window_tokens: int
    reply_tokens: int = REPLY_TOKENS
    tools_tokens: int = 0
    system_tokens: int = 0
    memory_tokens: int = 0

    def __post_init__(self) -> None:
        if min(self.window_tokens, *self._parts()) < 0:
            raise InvalidValue("no part of a budget is less than nothing")
        free = self.window_tokens - self.system_tokens - self.tools_tokens
        if free < FREE_TOKENS_MIN:
            raise PromptTooLong(
                f"system prompt and tools take {self.system_tokens + self.tools_tokens:,} of "
                f"{self.window_tokens:,} tokens: there is no room for a conversation"
            )
        sharers = 1 + (self.reply_tokens > 0) + (self.memory_tokens > 0)
        object.__setattr__(self, "reply_tokens", min(self.reply_tokens, free // sharers))
        object.__setattr__(self, "memory_tokens", min(self.memory_tokens, free // sharers))

    @property
    def history_tokens(self) -> int:
        """What is left for the summary and the messages."""
        return self.window_tokens - sum(self._parts())

    @property
    def parts(self) -> Mapping[str, int]:
        """Who gets what; together it is the window."""
        return MappingProxyType(
            {
                "system": self.system_tokens,
                "tools": self.tools_tokens,
                "memory": self.memory_tokens,
                "reply": self.reply_tokens,
                "history": self.history_tokens,
            }
        )

    def _parts(self) -> tuple[int, ...]:
        return (self.system_tokens, self.tools_tokens, self.memory_tokens, self.reply_tokens)

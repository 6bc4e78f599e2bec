"""The words of hooks: what an agent tells at its turning points, whichever agent it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

PAYLOAD_BYTES_MAX = 10_000_000


class Agent(StrEnum):
    """The agents whose hooks are understood."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI_CLI = "gemini-cli"
    GENERIC = "generic"


class Moment(StrEnum):
    """When an agent calls."""

    START = "start"  # a conversation begins, or has lost what it was told
    RESUME = "resume"  # one goes on that still has what it was told
    PROMPT = "prompt"
    STOP = "stop"  # an answer is complete
    COMPACT = "compact"  # what was said is about to be summarised
    END = "end"


ASKING = frozenset({Moment.START, Moment.PROMPT})  # something may be told
MARKING = frozenset({Moment.COMPACT, Moment.END})  # what was said so far is due to be learned


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message that stands in the payload itself. `key` is the same if it is sent again."""

    message: Mapping[str, Any]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One call of an agent. `name` is what the agent calls the moment."""

    agent: Agent
    moment: Moment
    name: str
    session: str
    directory: str | None = None
    prompt: str = ""
    transcript: str | None = None  # the file that the agent keeps
    said: tuple[Said, ...] = ()

    @property
    def leaves_something(self) -> bool:
        """Whether there may be something to keep, or to mark."""
        if self.moment in (Moment.START, Moment.RESUME):
            return False
        return self.transcript is not None or bool(self.said) or self.moment in MARKING


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A call that nothing can be done about, and why: never a text of the payload."""

    reason: str

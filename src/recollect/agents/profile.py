"""A host's configuration of an agent: prompt, tools, model, and hooks around its turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recollect.agents.reply import Reply
from recollect.agents.toolbox import Tool
from recollect.models.protocol import Model
from recollect.types.agents import Turn
from recollect.types.records import KeyRef


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProfile:
    """One agent as its host wants it.

    `instructions` stand in its system prompt, after what every agent with this memory is told.
    `model` is its own, where it is not the memory's. Without any it answers from memory alone.
    """

    instructions: str = ""
    tools: Sequence[Tool] = ()
    model: Model | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart:
    """A turn that begins: whose it is, and what was said."""

    ref: KeyRef
    turn: Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """A turn that is stored, with its answer."""

    ref: KeyRef
    turn: Turn
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What a host does around every turn; what fails in it is logged, and the turn goes on.

    `before` may give a text that is shown to the model for this turn, as data. `after` is told what
    was answered, when that is stored.
    """

    before: Callable[[TurnStart], str | None] | None = None
    after: Callable[[TurnEnd], None] | None = None

"""Who an agent is: a closed union of types with a stable key, and what differs by type.

Every question that depends on the type is one exhaustive `match` here; a new type that is not
handled is a type error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from recollect.errors import InvalidValue

NAME_CHARS_MAX = 128


@dataclass(frozen=True, slots=True)
class UserAgent:
    """An agent that talks to people; what a plain name stands for."""

    id: str


@dataclass(frozen=True, slots=True)
class CronAgent:
    """An agent that a schedule starts."""

    id: str


@dataclass(frozen=True, slots=True)
class SystemAgent:
    """An agent of the host application itself."""

    id: str


@dataclass(frozen=True, slots=True)
class SubAgent:
    """An agent that another agent started."""

    id: str


@dataclass(frozen=True, slots=True)
class MemoryAgent:
    """Turns the transcripts of one source agent (`id`) into documents."""

    id: str


@dataclass(frozen=True, slots=True)
class ConsolidationAgent:
    """Consolidates what a space has learned."""

    id: str


@dataclass(frozen=True, slots=True)
class SearchAgent:
    """Searches memory on behalf of another agent."""

    id: str


Descriptor = (
    UserAgent | CronAgent | SystemAgent | SubAgent | MemoryAgent | ConsolidationAgent | SearchAgent
)


def type_of(agent: Descriptor) -> str:
    match agent:
        case UserAgent():
            return "user"
        case CronAgent():
            return "cron"
        case SystemAgent():
            return "system"
        case SubAgent():
            return "subagent"
        case MemoryAgent():
            return "memory-agent"
        case ConsolidationAgent():
            return "consolidation-agent"
        case SearchAgent():
            return "search-agent"
        case _:
            assert_never(agent)


_TYPES = {
    type_of(example): type(example)
    for example in (
        UserAgent(""),
        CronAgent(""),
        SystemAgent(""),
        SubAgent(""),
        MemoryAgent(""),
        ConsolidationAgent(""),
        SearchAgent(""),
    )
}


def is_remembered(agent: Descriptor) -> bool:
    """Whether sessions of this agent may become memory.

    Agents that work on memory itself are never remembered, or memory would feed on itself.
    """
    match agent:
        case UserAgent() | CronAgent() | SystemAgent() | SubAgent():
            return True
        case MemoryAgent() | ConsolidationAgent() | SearchAgent():
            return False
        case _:
            assert_never(agent)


def is_background(agent_id: str) -> bool:
    """Whether no person takes part in the sessions of the agent with this id."""
    match from_cache_key(agent_id):
        case UserAgent():
            return False
        case CronAgent() | SystemAgent() | SubAgent():
            return True
        case MemoryAgent() | ConsolidationAgent() | SearchAgent():
            return True
        case agent:
            assert_never(agent)


def cache_key(agent: Descriptor) -> str:
    """The stable key `/<type>/<id>`; it is also the agent's id in the store."""
    return f"/{type_of(agent)}/{agent.id}"


def from_cache_key(key: str) -> Descriptor:
    _, type_name, agent_id = key.split("/", 2)
    return _TYPES[type_name](agent_id)


def read_descriptor(agent: str | Mapping[str, Any] | Descriptor) -> Descriptor:
    """A name, a `{"type": …, "id": …}` mapping or a descriptor, checked."""
    match agent:
        case str():
            descriptor: Descriptor = UserAgent(agent)
        case Mapping():
            kind = _TYPES.get(str(agent.get("type")))
            if kind is None or not isinstance(agent.get("id"), str):
                known = ", ".join(sorted(_TYPES))
                raise InvalidValue(
                    f"not an agent: {dict(agent)!r}; give an id (text) and a type of {known}"
                )
            descriptor = kind(agent["id"])
        case _ if isinstance(agent, tuple(_TYPES.values())):
            descriptor = agent
        case _:
            raise InvalidValue(f"an agent is a name or a descriptor, not {type(agent).__name__}")
    return _checked(descriptor)


def _checked(agent: Descriptor) -> Descriptor:
    name = agent.id
    if not isinstance(name, str) or not name.strip() or len(name) > NAME_CHARS_MAX:
        raise InvalidValue(f"an agent's name has 1 to {NAME_CHARS_MAX} characters: {name!r}")
    if not name.isprintable():
        raise InvalidValue(f"an agent's name has no control characters: {name!r}")
    return agent

"""Agents' descriptors: a closed union of types with a stable key, and what differs by type.

What depends on the type stands in one exhaustive `match`; a new type that is not handled is a type
error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, assert_never, get_args
from urllib.parse import unquote

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


class DeliveryStrategy(StrEnum):
    """The choice of an agent for a message without an address."""

    FOREGROUND = "foreground"  # the agent that a person spoke to last
    SCHEDULED = "scheduled"  # an agent that a schedule starts
    SYSTEM = "system"  # an agent of the host itself


class Owner(StrEnum):
    """The owner of an agent."""

    PERSON = "person"  # the one who talks to it
    SPACE = "space"  # the owner of its space


class _Traits(NamedTuple):
    """What differs by type.

    Agents that work on memory itself are never remembered, or memory would feed on itself.
    """

    type: str
    owner: Owner
    strategy: DeliveryStrategy | None = None  # that messages without an address come by, if any
    works_on_memory: bool = False


def _traits_of(agent: Descriptor) -> _Traits:
    match agent:
        case UserAgent():
            return _Traits("user", Owner.PERSON, DeliveryStrategy.FOREGROUND)
        case CronAgent():
            return _Traits("cron", Owner.SPACE, DeliveryStrategy.SCHEDULED)
        case SystemAgent():
            return _Traits("system", Owner.SPACE, DeliveryStrategy.SYSTEM)
        case SubAgent():
            return _Traits("subagent", Owner.PERSON)
        case MemoryAgent():
            return _Traits("memory-agent", Owner.SPACE, works_on_memory=True)
        case ConsolidationAgent():
            return _Traits("consolidation-agent", Owner.SPACE, works_on_memory=True)
        case SearchAgent():
            return _Traits("search-agent", Owner.SPACE, works_on_memory=True)
        case _:
            assert_never(agent)


_TYPES: Mapping[str, Callable[[str], Descriptor]] = {
    _traits_of(kind("")).type: kind for kind in get_args(Descriptor)
}


def type_of(agent: Descriptor) -> str:
    return _traits_of(agent).type


def is_remembered(agent: Descriptor) -> bool:
    """Whether sessions of this agent may become memory."""
    return not _traits_of(agent).works_on_memory


def matches(agent: Descriptor, strategy: DeliveryStrategy) -> bool:
    """Whether a message that goes by a strategy may be for this agent."""
    return _traits_of(agent).strategy is strategy


def owner_of(agent: Descriptor) -> Owner:
    return _traits_of(agent).owner


def has_own_prompt(agent: Descriptor) -> bool:
    """Whether its prompt is all it is told, in place of what a host tells its agents."""
    return _traits_of(agent).works_on_memory


def is_talking(agent_id: str) -> bool:
    """Whether an agent talks to people or programs, and does not work on memory itself."""
    return is_remembered(from_cache_key(agent_id))


def is_background(agent_id: str) -> bool:
    """Whether no person takes part in the sessions of the agent with this id."""
    return not isinstance(from_cache_key(agent_id), UserAgent)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTarget:
    """Where an agent's words go: a channel, a chat in it, a thread in that."""

    channel: str
    chat: str
    thread: str


def target_of(agent: Descriptor, key: str) -> DeliveryTarget | None:
    """Where what an agent says under a session key is delivered; none: nowhere."""
    parts = [unquote(part) for part in key.split(":")]
    if not isinstance(agent, UserAgent) or len(parts) != len(("channel", "chat", "thread")):
        return None
    return DeliveryTarget(channel=parts[0], chat=parts[1], thread=parts[2])


def memory_agent_of(source: Descriptor) -> MemoryAgent:
    """The one memory-agent of a source agent: `assistant`, or `cron/nightly` for other types."""
    is_plain = isinstance(source, UserAgent) and "/" not in source.id
    return MemoryAgent(source.id if is_plain else f"{type_of(source)}/{source.id}")


def source_of(agent: MemoryAgent) -> Descriptor:
    """Return the agent whose transcripts a memory-agent reads."""
    kind, slash, name = agent.id.partition("/")
    return _TYPES[kind](name) if slash and kind in _TYPES else UserAgent(agent.id)


def cache_key(agent: Descriptor) -> str:
    """The stable key `/<type>/<id>`; it is also the agent's id in the store."""
    return f"/{type_of(agent)}/{agent.id}"


def from_cache_key(key: str) -> Descriptor:
    _, type_name, agent_id = key.split("/", 2)
    return _TYPES[type_name](agent_id)


def agent_label(agent_id: str) -> str:
    """Return an agent as the user may write it: plain names for those that talk to people."""
    agent = from_cache_key(agent_id)
    return agent.id if agent_id == f"/user/{agent.id}" else agent_id


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
        case _ if isinstance(agent, Descriptor):
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

"""Whom a chat is with: one agent in one conversation of a memory, and what can be asked of both."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.agency import AgentState
from recollect.agents.reply import Ticket
from recollect.agents.system import AgentSystem
from recollect.descriptors import Descriptor
from recollect.domain import SessionState
from recollect.memory import Memory
from recollect.recollection import Context
from recollect.session import Session
from recollect.space import Space

QUERY_CHARS_MAX = 4000
PROGRESS_LOOKED_AT = 50  # sessions, the most recently begun first


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A conversation of an agent. Nothing is made in the store before something is said in it."""

    memory: Memory
    agent: Descriptor
    space_name: str
    key: str
    is_remembered: bool

    @property
    def space(self) -> Space:
        return self.memory.space(self.space_name)

    @property
    def session(self) -> Session | None:
        """The conversation; none: nothing was ever said in it."""
        return self.space.find_session(self.key, self.agent)

    @property
    def state(self) -> AgentState | None:
        session = self.session
        return None if session is None else session.store.agents.get(session.ref)

    def recalled(self, text: str) -> Context:
        """What a turn would be reminded of that begins with this text."""
        session = self.session
        return self.memory.space(self.space_name).context(
            text[:QUERY_CHARS_MAX],
            self.memory.settings.agent_memory_tokens,
            beside=None if session is None else session.id,
        )

    def end(self) -> SessionState | None:
        """End the conversation, which marks it; as it stood. None: nothing was said in it."""
        session = self.session
        if session is None or not session.state.last_seq:
            return None
        before = session.state
        session.end()
        return before

    def is_learned(self, session_id: str) -> bool:
        """Whether nothing is left to be learned from a session, its memory-agent included."""
        state = self.space.sessions.get(session_id)
        if state is None or state.invalidated_at is not None:
            return state is None
        progress = self.memory.store.extractions.progress(self.space_name, PROGRESS_LOOKED_AT)
        return not any(each.handed_over for each in progress if each.session_id == session_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    """The agent as somebody talks to it."""

    place: Place
    system: AgentSystem

    def say(self, text: str) -> Ticket:
        place = self.place
        return self.system.post(place.agent, text, space=place.space_name, key=place.key)

    def reset(self) -> Ticket:
        place = self.place
        return self.system.reset(place.agent, space=place.space_name, key=place.key)

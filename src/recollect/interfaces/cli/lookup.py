"""Finds what a command is about: a session by its id or its stable key, a fact by its id."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.domain import SessionState
from recollect.errors import NotFound
from recollect.interfaces.cli.target import read_agent
from recollect.knowledge import Fact
from recollect.space import Space


def find_session(space: Space, key_or_id: str, agent: str | None = None) -> SessionState:
    """The session with this id, else the current one behind this key. NotFound: neither is."""
    state = space.sessions.get(key_or_id)
    if state is not None:
        return state
    session = space.find_session(key_or_id, read_agent(agent)) if key_or_id else None
    if session is None:
        raise NotFound(
            f"no session {key_or_id!r} in space {space.name!r}; recollect sessions lists them"
        )
    return session.state


def find_fact(space: Space, fact_id: str) -> Fact:
    fact = space.facts.get(fact_id)
    if fact is None:
        raise NotFound(f"no fact {fact_id!r} in space {space.name!r}; recollect facts lists them")
    return fact


def session_keys(space: Space, facts: Iterable[Fact]) -> dict[str, str]:
    """The stable keys of the sessions that facts come from, by session id."""
    wanted = {source.session_id for fact in facts for source in fact.sources}
    found = (space.sessions.get(session_id) for session_id in wanted)
    return {state.id: state.key for state in found if state is not None}

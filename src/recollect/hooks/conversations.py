"""Which session a conversation with an agent is: the one that its transcript is imported into."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.hooks.events import Agent, Event
from recollect.session import Session
from recollect.space import Space

# By what name transcripts are imported; Gemini CLI's are not.
SOURCES: Mapping[Agent, str] = {
    Agent.CLAUDE_CODE: "claude-code",
    Agent.CODEX: "codex",
    Agent.GENERIC: "jsonl",
}


def conversation(space: Space, event: Event) -> Session | None:
    """The session of a conversation, if there is one: from its transcript, or from its payloads."""
    keys = [own_key(event)]
    if event.agent in SOURCES:
        keys.insert(0, (SOURCES[event.agent], event.session))
    found = (space.find_session(key) for key in keys)
    return next((session for session in found if session is not None), None)


def own_key(event: Event) -> tuple[str, str]:
    """Where messages of payloads go: what comes from a transcript later is not mixed with them."""
    return (f"{event.agent}-hook", event.session)

"""How the command line and the pages name an agent."""

from __future__ import annotations

from recollect.descriptors import from_cache_key


def agent_label(agent_id: str) -> str:
    """An agent as the user may write it: plain names for those that talk to people."""
    agent = from_cache_key(agent_id)
    return agent.id if agent_id == f"/user/{agent.id}" else agent_id

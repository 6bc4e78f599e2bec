"""What an agent's hook prints, in the form that the agent reads."""

from __future__ import annotations

import json

from recollect.hooks.events import Agent, Event


def answer(event: Event, block: str) -> str:
    """One line of JSON that gives the agent a block to read."""
    if event.agent is Agent.GENERIC:
        return json.dumps({"context": block})
    told = {"hookEventName": event.name, "additionalContext": block}
    return json.dumps({"hookSpecificOutput": told})

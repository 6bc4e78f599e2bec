"""Agents over HTTP: who there are, a word with one of them, and what came of it.

What is said is stored when it is acknowledged, and answered by whichever process runs the agent:
this one, if it was told to, a host application, or `recollect chat`. Few requests wait for answers
at a time; whoever does not wait, or not long enough, asks again by the message's id.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from recollect import collection
from recollect.agency import AgentState
from recollect.agents.outcomes import outcome_of
from recollect.agents.reply import Reply
from recollect.descriptors import cache_key, read_descriptor
from recollect.errors import Gone, NotFound, RecollectError
from recollect.interfaces.http.binding import Json, Limit
from recollect.interfaces.http.messages import Answer, Request
from recollect.interfaces.http.route import SPACE, Routes
from recollect.interfaces.views import view

PAGE = 100
KEY = "main"
WAIT_SECONDS_MAX = 60

MESSAGES = f"{SPACE}/agents/{{agent}}/messages"
OUTCOME = {
    "id": str,
    "state": Literal["pending", "answered", "failed"],
    "reply": Reply | None,
    "error": str | None,
}

ROUTES = Routes()

Key = Annotated[str, Meta(description="The conversation; main unless it is given.")]
Seconds = Annotated[
    int, Meta(ge=0, le=WAIT_SECONDS_MAX, description="How long to wait for the answer.")
]


@ROUTES("GET", f"{SPACE}/agents", answer={"agents": list[AgentState]})
def list_agents(request: Request, limit: Limit = PAGE) -> Json:
    """The agents of this space: their lives, queues and signals."""
    return {"agents": view(request.memory.store.agents.list(request.space.name, limit))}


@ROUTES("POST", MESSAGES, answer=OUTCOME, statuses=(200, 202), takes_append_key=True)
def post_message(
    request: Request, agent: str, text: str, key: Key | None = None, wait_seconds: Seconds = 0
) -> Answer:
    """Say something to an agent; its answer, if it comes while this waits."""
    message_id, outcome = request.hosts.post(
        agent,
        text,
        space=request.space.name,
        key=key or KEY,
        message_id=request.idempotency_key,
        seconds=wait_seconds,
    )
    status = 202 if outcome is None else 200
    return Answer(content=_outcome(message_id, outcome), status=status)


@ROUTES("GET", f"{MESSAGES}/{{message}}", answer=OUTCOME, problems=frozenset({410}))
def get_message(request: Request, agent: str, message: str, key: str | None = None) -> Json:
    """What came of something that was said to an agent."""
    store, message_id = request.memory.store, collection.check_id(message)
    agent_id = cache_key(read_descriptor(agent))
    ref = store.sessions.find_key(request.space.name, collection.encode_key(key or KEY), agent_id)
    item = None if ref is None else store.agents.item(ref, message_id)
    if ref is None or item is None:
        raise NotFound("nothing was posted to this agent by that id, or it is too long ago")
    return _outcome(message_id, outcome_of(store, ref, item))


def _outcome(message_id: str, outcome: Reply | RecollectError | None) -> Json:
    content: Json = {"id": message_id, "state": "pending", "reply": None, "error": None}
    match outcome:
        case None:
            pass
        case Gone():
            raise outcome
        case Reply():
            content |= {"state": "answered", "reply": view(outcome)}
        case _:  # its words may be a provider's
            content |= {"state": "failed", "error": type(outcome).__name__}
    return content

"""Agents over HTTP: who there are, a word with one of them, and what came of it.

What is said is stored when it is acknowledged, and answered by whichever process runs the agent:
this one, if it was told to, a host application, or `recollect chat`. Few requests wait for answers
at a time; whoever does not wait, or not long enough, asks again by the message's id.
"""

from __future__ import annotations

from typing import Any

from recollect import collection
from recollect.agency import AgentState
from recollect.agents.outcomes import outcome_of
from recollect.agents.reply import Reply as AgentReply
from recollect.descriptors import cache_key, read_descriptor
from recollect.errors import Gone, NotFound, RecollectError
from recollect.interfaces.http.reply import Ask, Reply
from recollect.interfaces.http.route import LIMIT, SPACE, Route, look
from recollect.interfaces.http.schemas import TEXT, listed, maybe, obj, one_of, text, whole
from recollect.interfaces.views import schema_of, view
from recollect.store.key_protocol import Scope

PAGE = 100
KEY = "main"
WAIT_SECONDS_MAX = 60

MESSAGES = f"{SPACE}/agents/{{agent}}/messages"
OUTCOME = obj(
    {
        "id": TEXT,
        "state": one_of(("pending", "answered", "failed")),
        "reply": maybe(schema_of(AgentReply)),
        "error": maybe(TEXT),
    }
)


def list_agents(ask: Ask) -> Reply:
    found = ask.memory.store.agents.list(ask.space.name, ask.query.get("limit", PAGE))
    return Reply(content={"agents": view(found)})


def post_message(ask: Ask) -> Reply:
    message_id, outcome = ask.hosts.said(
        ask.path["agent"],
        ask.body["text"],
        space=ask.space.name,
        key=ask.body.get("key") or KEY,
        message_id=ask.idempotency_key,
        seconds=ask.body.get("wait_seconds", 0),
    )
    return _told(message_id, outcome, 202 if outcome is None else 200)


def get_message(ask: Ask) -> Reply:
    store, message_id = ask.memory.store, collection.check_id(ask.path["message"])
    agent_id = cache_key(read_descriptor(ask.path["agent"]))
    key = collection.encode_key(ask.query.get("key") or KEY)
    ref = store.sessions.find_key(ask.space.name, key, agent_id)
    item = None if ref is None else store.agents.item(ref, message_id)
    if ref is None or item is None:
        raise NotFound("nothing was posted to this agent by that id, or it is too long ago")
    return _told(message_id, outcome_of(store, ref, item), 200)


def _told(message_id: str, outcome: AgentReply | RecollectError | None, status: int) -> Reply:
    content: dict[str, Any] = {"id": message_id, "state": "pending", "reply": None, "error": None}
    match outcome:
        case None:
            pass
        case Gone():
            raise outcome
        case AgentReply():
            content |= {"state": "answered", "reply": view(outcome)}
        case _:  # its words may be a provider's
            content |= {"state": "failed", "error": type(outcome).__name__}
    return Reply(content=content, status=status)


ROUTES: tuple[Route, ...] = (
    look(
        f"{SPACE}/agents",
        "list_agents",
        "The agents of this space: their lives, queues and signals.",
        list_agents,
        obj({"agents": listed(schema_of(AgentState))}),
        query={"limit": LIMIT},
    ),
    Route(
        method="POST",
        path=MESSAGES,
        name="post_message",
        summary="Say something to an agent; its answer, if it comes while this waits.",
        handler=post_message,
        scope=Scope.WRITE,
        body=obj(
            {
                "text": text(),
                "key": maybe(text(description="The conversation; main unless it is given.")),
                "wait_seconds": whole(0, WAIT_SECONDS_MAX, "How long to wait for the answer."),
            },
            needs=("text",),
        ),
        answers={200: OUTCOME, 202: OUTCOME},
        takes_append_key=True,
    ),
    look(
        f"{MESSAGES}/{{message}}",
        "get_message",
        "What came of something that was said to an agent.",
        get_message,
        OUTCOME,
        query={"key": text()},
        problems=frozenset({410}),
    ),
)

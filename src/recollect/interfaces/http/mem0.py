"""mem0's REST server, on a memory of ours: its paths below /mem0, its bodies and its answers.

What the verbs mean is the compatible client's affair; here stands how they travel, and that a key
of one space acts in that space alone: it is the user, and every other user is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.compat.mem0_scopes import IDENTITY, WITHOUT_USER, read_memory_id, read_scope
from recollect.errors import NotFound
from recollect.interfaces.http.problems import NOTHING_HERE, Refusal
from recollect.interfaces.http.reply import Ask, Reply
from recollect.interfaces.http.route import LIMIT, Reach, Route, look
from recollect.interfaces.http.schemas import (
    ANY,
    BOOL,
    FREE,
    MOMENT,
    NUMBER,
    TEXT,
    Schema,
    listed,
    maybe,
    obj,
    text,
    whole,
)
from recollect.session import LIST_MAX
from recollect.store.key_protocol import Scope

PREFIX = "/mem0"
MESSAGES_MAX = 1000
PENDING = "pending"  # among the ids of what was added: more is learned later

WHOSE: Mapping[str, Schema] = {name: maybe(text()) for name in IDENTITY}
ASKED_FOR: Mapping[str, Schema] = {name: text() for name in IDENTITY}
# What a fact says about itself may have been put there by anybody, as anything.
MEMORY: Mapping[str, Schema] = {
    "id": TEXT,
    "memory": TEXT,
    "hash": TEXT,
    "metadata": maybe(FREE),
    "created_at": maybe(MOMENT),
    "updated_at": maybe(MOMENT),
    "user_id": TEXT,
    "agent_id": ANY,
    "run_id": ANY,
    "actor_id": ANY,
    "role": ANY,
    "expiration_date": ANY,
    "score": maybe(NUMBER),
    "score_details": FREE,
}
ONE_MEMORY = obj(MEMORY, needs=("id", "memory", "hash", "metadata", "created_at", "updated_at"))
ADDED = obj(
    {"id": TEXT, "memory": TEXT, "event": TEXT, "actor_id": ANY, "role": ANY},
    needs=("id", "memory", "event"),
)
CHANGE = obj(
    {
        "id": TEXT,
        "memory_id": TEXT,
        "old_memory": maybe(TEXT),
        "new_memory": maybe(TEXT),
        "event": TEXT,
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "is_deleted": BOOL,
        "actor_id": ANY,
        "role": ANY,
    }
)
FOUND = obj({"results": listed(ONE_MEMORY)})
DONE = obj({"message": TEXT})


def add(ask: Ask) -> Reply:
    given = {name: each for name, each in ask.body.items() if each is not None}
    messages = given.pop("messages")
    added = ask.mem0.add(messages, **_own(ask, given))
    ids = [each["id"] for each in added["results"]]
    return Reply(content=added, ids=(*ids, *([PENDING] if "pending" in added else [])))


def added_before(ask: Ask, ids: Sequence[str]) -> Reply:
    """The memories that were added, those that are still there."""
    made = [each for each in ids if each != PENDING]
    found = [memory for each in made if (memory := ask.mem0.get(each)) is not None]
    if made and not found:
        raise NotFound("none of the memories that were added is there")
    results = [
        {"id": each["id"], "memory": each["memory"], "event": "ADD"}
        | ({"actor_id": each.get("actor_id"), "role": each["role"]} if each.get("role") else {})
        for each in found
    ]
    return Reply(content={"results": results} | ({"pending": True} if PENDING in ids else {}))


def get_all(ask: Ask) -> Reply:
    return Reply(content=ask.mem0.get_all(**_own(ask, ask.query)))


def search(ask: Ask) -> Reply:
    given = {name: each for name, each in ask.body.items() if each is not None}
    query = given.pop("query")
    return Reply(content=ask.mem0.search(query, **_own(ask, given)))


def delete_all(ask: Ask) -> Reply:
    return Reply(content=ask.mem0.delete_all(**_own(ask, ask.query)))


def get(ask: Ask) -> Reply:
    return Reply(content=_found(ask))


def update(ask: Ask) -> Reply:
    return Reply(content=ask.mem0.update(_found(ask)["id"], **ask.body))


def delete(ask: Ask) -> Reply:
    return Reply(content=ask.mem0.delete(_found(ask)["id"]))


def history(ask: Ask) -> Reply:
    found = ask.mem0.history(_named(ask))
    if not found:
        raise _missing(ask)
    return Reply(content=found)


def reset(ask: Ask) -> Reply:
    if ask.key.space is None:
        ask.mem0.reset()
    else:
        ask.mem0.reset_space(ask.key.space)
    return Reply(content={"message": "All memories reset"})


def _own(ask: Ask, given: Mapping[str, Any]) -> dict[str, Any]:
    """The same, for the user whose key it is. Refusal: it is about another one."""
    scope, _ = read_scope(given, given.get("filters"))
    space = ask.key.space
    if space is None:
        return dict(given)
    if scope.user is None and space != WITHOUT_USER:
        return {**given, "user_id": space}
    if scope.space != space:
        raise Refusal(NOTHING_HERE)
    return dict(given)


def _named(ask: Ask) -> str:
    """The id of the memory that is meant; that of another user is none."""
    given = ask.path["memory"]
    fact_id, space = read_memory_id(given)
    if not fact_id or not ask.key.opens(space):
        raise _missing(ask)
    return given


def _found(ask: Ask) -> dict[str, Any]:
    found = ask.mem0.get(_named(ask))
    if found is None:
        raise _missing(ask)
    return found


def _missing(ask: Ask) -> NotFound:
    return NotFound(f"there is no memory {ask.path['memory']!r}")


ALL = f"{PREFIX}/memories"
ONE = f"{ALL}/{{memory}}"
ADD_BODY = obj(
    {
        "messages": {"type": ["string", "object", "array"], "maxItems": MESSAGES_MAX},
        **WHOSE,
        "metadata": maybe(FREE),
        "infer": maybe(BOOL),
        "memory_type": maybe(text()),
        "expiration_date": maybe(text()),
        "timestamp": ANY,
        "prompt": maybe(text()),
    },
    needs=("messages",),
)
SEARCH_BODY = obj(
    {
        "query": text(),
        **WHOSE,
        "filters": maybe(FREE),
        "top_k": maybe(whole(0, LIST_MAX)),
        "limit": maybe(whole(0, LIST_MAX)),
        "threshold": maybe({"type": "number", "minimum": 0, "maximum": 1}),
        "rerank": maybe(BOOL),
        "explain": maybe(BOOL),
        "show_expired": maybe(BOOL),
        "reference_date": ANY,
    },
    needs=("query",),
)
UPDATE_BODY = obj(
    {
        "text": text(),
        "data": text(),
        "metadata": FREE,
        "expiration_date": maybe(text()),
    },
    needs=(),
)


def _change(method: str, path: str, name: str, summary: str, handler: Any, **more: Any) -> Route:
    return Route(
        method=method,
        path=path,
        name=name,
        summary=summary,
        handler=handler,
        **{"scope": Scope.WRITE, "reach": Reach.OWN, "answers": {200: DONE}, **more},
    )


ROUTES: tuple[Route, ...] = (
    _change(
        "POST",
        ALL,
        "mem0_add",
        "mem0: learn from what was said, or with `infer` false keep it word for word.",
        add,
        body=ADD_BODY,
        answers={200: obj({"results": listed(ADDED), "pending": BOOL}, needs=("results",))},
        again=added_before,
    ),
    look(
        ALL,
        "mem0_get_all",
        "mem0: memories of a user, an agent or a run, newest first.",
        get_all,
        FOUND,
        query={**ASKED_FOR, "top_k": LIMIT, "limit": LIMIT, "show_expired": BOOL},
        reach=Reach.OWN,
    ),
    _change(
        "POST",
        f"{PREFIX}/search",
        "mem0_search",
        "mem0: memories that fit a question, the best first.",
        search,
        scope=Scope.READ,
        body=SEARCH_BODY,
        answers={200: FOUND},
    ),
    look(ONE, "mem0_get", "mem0: one memory.", get, ONE_MEMORY, reach=Reach.OWN),
    _change(
        "PUT",
        ONE,
        "mem0_update",
        "mem0: change what a memory says.",
        update,
        body=UPDATE_BODY,
    ),
    _change("DELETE", ONE, "mem0_delete", "mem0: delete a memory.", delete),
    look(
        f"{ONE}/history",
        "mem0_history",
        "mem0: what has happened to a memory, also to one that was deleted.",
        history,
        listed(CHANGE),
        reach=Reach.OWN,
    ),
    _change(
        "DELETE",
        ALL,
        "mem0_delete_all",
        "mem0: delete the memories of a user, an agent or a run.",
        delete_all,
        query=ASKED_FOR,
    ),
    _change(
        "POST",
        f"{PREFIX}/reset",
        "mem0_reset",
        "mem0: forget what came in here, in the spaces that this key opens.",
        reset,
        body=obj({}, needs=()),
        scope=Scope.ADMIN,
    ),
)

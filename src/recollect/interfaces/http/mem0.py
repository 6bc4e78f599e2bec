"""mem0's REST server, on a memory of ours: its paths below /mem0, its bodies and its answers.

The meaning of the verbs is in the compatible client; this module has their form over HTTP. A key of
one space acts in that space alone: the space is the user, and no other user exists for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.compat.mem0 import IDENTITY, WITHOUT_USER, read_memory_id, read_scope
from recollect.errors import NotFound
from recollect.interfaces.http.operations import (
    REQUIRED,
    AdmittedRequest,
    Json,
    KeyReach,
    Limit,
    Moment,
    Operation,
    Taken,
    operation,
)
from recollect.interfaces.http.problems import NOTHING_HERE, HttpAnswer, Refusal

PREFIX = "/mem0"
ALL, ONE = f"{PREFIX}/memories", f"{PREFIX}/memories/{{memory}}"
PENDING = "pending"  # among the ids of what was added: more is learned later
DONE = {"message": str}


# What a request has: for whom, what is to be learned from, what is looked for, what a memory is to
# say. What is not given is not passed on.
_WHOSE: Taken = dict.fromkeys(IDENTITY, (str | None, None))
_LISTED: Taken = {
    **_WHOSE,
    **dict.fromkeys(("top_k", "limit"), (Limit | None, None)),
    "show_expired": (bool | None, None),
}
_NEW: Taken = {
    "messages": (str | Json | Annotated[list[Any], Meta(max_length=1000)], REQUIRED),
    **_WHOSE,
    **dict.fromkeys(("memory_type", "expiration_date", "prompt"), (str | None, None)),
    "metadata": (Json | None, None),
    "infer": (bool | None, None),
    "timestamp": (Any, None),
}
_SOUGHT: Taken = {
    "query": (str, REQUIRED),
    **_LISTED,
    "filters": (Json | None, None),
    "threshold": (Annotated[float, Meta(ge=0, le=1)] | None, None),
    **dict.fromkeys(("rerank", "explain"), (bool | None, None)),
    "reference_date": (Any, None),
}
_EDIT: Taken = {
    **dict.fromkeys(("text", "data"), (str | UnsetType, UNSET)),
    "metadata": (Json | UnsetType, UNSET),
    "expiration_date": (str | UnsetType | None, UNSET),
}


class OneMemory(Struct, kw_only=True, forbid_unknown_fields=True):
    """A memory as mem0 has it. What it says about itself may have been put there as anything."""

    id: str
    memory: str
    hash: str
    metadata: Json | None
    created_at: Moment | None
    updated_at: Moment | None
    user_id: str | UnsetType = UNSET
    agent_id: Any = None
    run_id: Any = None
    actor_id: Any = None
    role: Any = None
    expiration_date: Any = None
    score: float | UnsetType | None = UNSET
    score_details: Json | UnsetType = UNSET


class AddedMemory(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was learned."""

    id: str
    memory: str
    event: str
    actor_id: Any = None
    role: Any = None


class MemoryChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """An entry of a memory's history."""

    id: str
    memory_id: str
    old_memory: str | None
    new_memory: str | None
    event: str
    created_at: Moment
    updated_at: Moment
    is_deleted: bool
    actor_id: Any
    role: Any


def read_added(request: AdmittedRequest, ids: Sequence[str]) -> Json:
    """The memories that were added, those that are still there."""
    made = [each for each in ids if each != PENDING]
    found = [memory for each in made if (memory := request.mem0.get(each)) is not None]
    if made and not found:
        raise NotFound("none of the memories that were added exists any more")
    results = [
        {"id": each["id"], "memory": each["memory"], "event": "ADD"}
        | ({"actor_id": each.get("actor_id"), "role": each["role"]} if each.get("role") else {})
        for each in found
    ]
    return {"results": results} | ({"pending": True} if PENDING in ids else {})


def _added(added: Json) -> HttpAnswer:
    ids = [each["id"] for each in added["results"]]
    return HttpAnswer(content=added, ids=(*ids, *([PENDING] if "pending" in added else [])))


def _own(request: AdmittedRequest, given: Json) -> Json:
    """The same, for the user whose key it is. Refusal: it is about another one."""
    scope, _ = read_scope(given, given.get("filters"))
    space = request.key.space
    if space is not None and scope.user is None and space != WITHOUT_USER:
        return {**given, "user_id": space}
    if space is not None and scope.space != space:
        raise Refusal(NOTHING_HERE)
    return given


def _missing(memory: str) -> NotFound:
    return NotFound(f"there is no memory {memory!r}")


def _of_somebody(
    place: str,
    method: str,
    answer: Any,
    taken: Taken,
    *,
    first: str = "",
    then: Callable[[Json], Any] = lambda made: made,
    **more: Any,
) -> Operation:
    """A method that is about the memories of a user, an agent or a run; `first` goes before all."""

    def handle(request: AdmittedRequest, **given: Any) -> Any:
        fields = _own(request, {name: each for name, each in given.items() if each is not None})
        leading = [fields.pop(first)] if first else []
        return then(getattr(request.mem0, method)(*leading, **fields))

    return operation(place, answer=answer, taken=taken, reach=KeyReach.OWN, **more)(handle)


def _of_one(place: str, method: str, answer: Any, taken: Taken | None = None) -> Operation:
    """A method that is about one memory; that of another user is not there."""

    def handle(request: AdmittedRequest, memory: str, **given: Any) -> Any:
        fact_id, space = read_memory_id(memory)
        if not fact_id or not request.key.opens(space):
            raise _missing(memory)
        if method in ("update", "delete") and request.mem0.get(memory) is None:
            raise _missing(memory)
        fields = {name: each for name, each in given.items() if each is not UNSET}
        made = getattr(request.mem0, method)(memory, **fields)
        if not made:
            raise _missing(memory)
        return made

    taken = {"memory": (str, REQUIRED), **(taken or {})}
    return operation(place, answer=answer, taken=taken, reach=KeyReach.OWN)(handle)


@operation(f"POST {PREFIX}/reset", answer=DONE, reach=KeyReach.OWN)
def _mem0_reset(request: AdmittedRequest) -> Json:
    """mem0: forget what came in here, in the spaces that this key opens."""
    if request.key.space is None:
        request.mem0.reset()
    else:
        request.mem0.reset_space(request.key.space)
    return {"message": "All memories reset"}


_FOUND = {"results": list[OneMemory]}

OPERATIONS: tuple[Operation, ...] = (
    _of_somebody(
        f"POST {ALL}",
        "add",
        {"results": list[AddedMemory], "pending?": bool},
        _NEW,
        first="messages",
        then=_added,
        again=read_added,
    ),
    _of_somebody(f"GET {ALL}", "get_all", _FOUND, _LISTED),
    _of_somebody(f"POST {PREFIX}/search", "search", _FOUND, _SOUGHT, first="query"),
    _of_one(f"GET {ONE}", "get", OneMemory),
    _of_one(f"PUT {ONE}", "update", DONE, _EDIT),
    _of_one(f"DELETE {ONE}", "delete", DONE),
    _of_one(f"GET {ONE}/history", "history", list[MemoryChange]),
    _of_somebody(f"DELETE {ALL}", "delete_all", DONE, _WHOSE),
    _mem0_reset,
)

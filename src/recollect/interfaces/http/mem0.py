"""mem0's REST server, on a memory of ours: its paths below /mem0, its bodies and its answers.

What the verbs mean is the compatible client's affair; here stands how they travel, and that a key
of one space acts in that space alone: it is the user, and every other user is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.compat.mem0 import WITHOUT_USER, read_memory_id, read_scope
from recollect.errors import NotFound
from recollect.interfaces.http.operations import (
    AdmittedRequest,
    Json,
    KeyReach,
    Limit,
    Moment,
    Operation,
    given_fields,
    operation,
)
from recollect.interfaces.http.problems import NOTHING_HERE, HttpAnswer, Refusal

PREFIX = "/mem0"
ALL, ONE = f"{PREFIX}/memories", f"{PREFIX}/memories/{{memory}}"
PENDING = "pending"  # among the ids of what was added: more is learned later
OWN: dict[str, Any] = {"reach": KeyReach.OWN}
DONE = {"message": str}


class Whose(Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose memories are meant."""

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None


class NewMemories(Whose, kw_only=True, forbid_unknown_fields=True):
    """What is to be learned from."""

    messages: str | Json | Annotated[list[Any], Meta(max_length=1000)]
    metadata: Json | None = None
    infer: bool | None = None
    memory_type: str | None = None
    expiration_date: str | None = None
    timestamp: Any = None
    prompt: str | None = None


class MemorySearch(Whose, kw_only=True, forbid_unknown_fields=True):
    """What is looked for."""

    query: str
    filters: Json | None = None
    top_k: Limit | None = None
    limit: Limit | None = None
    threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    rerank: bool | None = None
    explain: bool | None = None
    show_expired: bool | None = None
    reference_date: Any = None


class MemoryEdit(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a memory is to say."""

    text: str | UnsetType = UNSET
    data: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
    expiration_date: str | UnsetType | None = UNSET


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
        raise NotFound("none of the memories that were added is there")
    results = [
        {"id": each["id"], "memory": each["memory"], "event": "ADD"}
        | ({"actor_id": each.get("actor_id"), "role": each["role"]} if each.get("role") else {})
        for each in found
    ]
    return {"results": results} | ({"pending": True} if PENDING in ids else {})


def _own(request: AdmittedRequest, given: Mapping[str, Any]) -> dict[str, Any]:
    """The same, for the user whose key it is. Refusal: it is about another one."""
    scope, _ = read_scope(given, given.get("filters"))
    space = request.key.space
    if space is None:
        return dict(given)
    if scope.user is None and space != WITHOUT_USER:
        return {**given, "user_id": space}
    if scope.space != space:
        raise Refusal(NOTHING_HERE)
    return dict(given)


def _named(request: AdmittedRequest, memory: str) -> str:
    """The id of the memory that is meant; that of another user is none."""
    fact_id, space = read_memory_id(memory)
    if not fact_id or not request.key.opens(space):
        raise _missing(memory)
    return memory


def _found(request: AdmittedRequest, memory: str) -> dict[str, Any]:
    found = request.mem0.get(_named(request, memory))
    if found is None:
        raise _missing(memory)
    return found


def _missing(memory: str) -> NotFound:
    return NotFound(f"there is no memory {memory!r}")


@operation(
    f"POST {ALL}",
    answer={"results": list[AddedMemory], "pending?": bool},
    again=read_added,
    **OWN,
)
def _mem0_add(request: AdmittedRequest, body: NewMemories) -> HttpAnswer:
    """mem0: learn from what was said, or with `infer` false keep it word for word."""
    given = given_fields(body)
    messages = given.pop("messages")
    added = request.mem0.add(messages, **_own(request, given))
    ids = [each["id"] for each in added["results"]]
    return HttpAnswer(content=added, ids=(*ids, *([PENDING] if "pending" in added else [])))


@operation(f"GET {ALL}", answer={"results": list[OneMemory]}, **OWN)
def _mem0_get_all(
    request: AdmittedRequest,
    user_id: str | UnsetType = UNSET,
    agent_id: str | UnsetType = UNSET,
    run_id: str | UnsetType = UNSET,
    top_k: Limit | UnsetType = UNSET,
    limit: Limit | UnsetType = UNSET,
    show_expired: bool | UnsetType = UNSET,
) -> Json:
    """mem0: memories of a user, an agent or a run, newest first."""
    whose = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    given = {**whose, "top_k": top_k, "limit": limit, "show_expired": show_expired}
    return request.mem0.get_all(**_own(request, _set(given)))


@operation(f"POST {PREFIX}/search", answer={"results": list[OneMemory]}, **OWN)
def _mem0_search(request: AdmittedRequest, body: MemorySearch) -> Json:
    """mem0: memories that fit a question, the best first."""
    given = given_fields(body)
    query = given.pop("query")
    return request.mem0.search(query, **_own(request, given))


@operation(f"GET {ONE}", answer=OneMemory, **OWN)
def _mem0_get(request: AdmittedRequest, memory: str) -> Json:
    """mem0: one memory."""
    return _found(request, memory)


@operation(f"PUT {ONE}", answer=DONE, **OWN)
def _mem0_update(request: AdmittedRequest, memory: str, body: MemoryEdit) -> Json:
    """mem0: change what a memory says."""
    given = _set({name: getattr(body, name) for name in body.__struct_fields__})
    return request.mem0.update(_found(request, memory)["id"], **given)


@operation(f"DELETE {ONE}", answer=DONE, **OWN)
def _mem0_delete(request: AdmittedRequest, memory: str) -> Json:
    """mem0: delete a memory."""
    return request.mem0.delete(_found(request, memory)["id"])


@operation(f"GET {ONE}/history", answer=list[MemoryChange], **OWN)
def _mem0_history(request: AdmittedRequest, memory: str) -> list[Json]:
    """mem0: what has happened to a memory, also to one that was deleted."""
    found = request.mem0.history(_named(request, memory))
    if not found:
        raise _missing(memory)
    return found


@operation(f"DELETE {ALL}", answer=DONE, **OWN)
def _mem0_delete_all(
    request: AdmittedRequest,
    user_id: str | UnsetType = UNSET,
    agent_id: str | UnsetType = UNSET,
    run_id: str | UnsetType = UNSET,
) -> Json:
    """mem0: delete the memories of a user, an agent or a run."""
    whose = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    return request.mem0.delete_all(**_own(request, _set(whose)))


@operation(f"POST {PREFIX}/reset", answer=DONE, **OWN)
def _mem0_reset(request: AdmittedRequest) -> Json:
    """mem0: forget what came in here, in the spaces that this key opens."""
    if request.key.space is None:
        request.mem0.reset()
    else:
        request.mem0.reset_space(request.key.space)
    return {"message": "All memories reset"}


def _set(given: Mapping[str, Any]) -> Json:
    return {name: each for name, each in given.items() if each is not UNSET}


OPERATIONS: tuple[Operation, ...] = (
    _mem0_add,
    _mem0_get_all,
    _mem0_search,
    _mem0_get,
    _mem0_update,
    _mem0_delete,
    _mem0_history,
    _mem0_delete_all,
    _mem0_reset,
)

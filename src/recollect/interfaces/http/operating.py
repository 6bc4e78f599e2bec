"""Spaces and their upkeep over HTTP: status, jobs, work, generations, forgetting, the audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from recollect.domain import Job
from recollect.errors import InvalidValue
from recollect.generation import ConsolidationState, Generation, GenerationChange
from recollect.interfaces.http.binding import (
    Cursor,
    Json,
    Limit,
    Moment,
    Number,
    given_fields,
)
from recollect.interfaces.http.messages import Request, Stream
from recollect.interfaces.http.route import (
    SPACE,
    Reach,
    Routes,
    made_cursor,
    moment_cursor,
    page,
    paged,
    read_moment_cursor,
    read_one,
)
from recollect.interfaces.views import public_receipt, public_status, view
from recollect.knowledge import Receipt
from recollect.observing.actors import ACTOR_CHARS_MAX
from recollect.status import Status
from recollect.store.audit_protocol import AuditEntry
from recollect.sweeps import sweep_idle

PAGE = 100
GENERATIONS_PAGE = 20
GENERATIONS = f"{SPACE}/generations"
ONE = f"{GENERATIONS}/{{number}}"

ROUTES = Routes()

Actor = Annotated[str, Meta(max_length=ACTOR_CHARS_MAX)]


class NamedSpace(Struct, forbid_unknown_fields=True):
    """A space by its name."""

    name: str


class Forgetting(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to be forgotten: one of these."""

    session: str | None = None
    record: Annotated[str | None, Meta(description="As in session_id:seq.")] = None
    fact: str | None = None
    document: Annotated[str | None, Meta(description="A path, with all that is below it.")] = None
    agent: str | Json | None = None
    source: str | None = None
    everything: bool = False
    pages: Annotated[
        Literal["keep", "erase"],
        Meta(description="What becomes of pages that people or other agents wrote on it."),
    ] = "keep"


@ROUTES("GET", "/v1/spaces", answer=paged("spaces", NamedSpace), reach=Reach.OWN)
def list_spaces(request: Request, limit: Limit = PAGE, cursor: Cursor | None = None) -> Json:
    """The spaces that this key may see."""
    if request.key.space is not None:
        return {"spaces": [{"name": request.key.space}], "next": None}
    found = request.memory.spaces(limit, read_one(cursor, str) or "")
    following = made_cursor(found[-1]) if found and len(found) == limit else None
    return {"spaces": [{"name": name} for name in found], "next": following}


@ROUTES(
    "GET",
    SPACE,
    answer={"name": str, "facts": int, "marked_count": int, "waiting_count": int},
)
def get_space(request: Request) -> Json:
    """A space, and how much there is in it."""
    status = request.memory.status(request.space.name, limit=0)
    return {
        "name": request.space.name,
        "facts": request.space.facts.count(),
        "marked_count": status.marked_count,
        "waiting_count": status.waiting_count,
    }


@ROUTES("GET", GENERATIONS, answer=paged("generations", Generation))
def list_generations(
    request: Request, limit: Limit = GENERATIONS_PAGE, cursor: Cursor | None = None
) -> Json:
    """Generations of memory, the newest first."""
    found = request.space.generations.list(limit, read_one(cursor, int))
    return page("generations", found, limit, lambda each: made_cursor(each.number))


def _state(request: Request) -> Json:
    return view(request.space.generations.state(), request.memory.clock.now())


@ROUTES("GET", f"{GENERATIONS}/state", answer=ConsolidationState)
def generations_state(request: Request) -> Json:
    """Which generation is current, and what the next one waits for."""
    return _state(request)


@ROUTES("POST", f"{GENERATIONS}/pause", answer=ConsolidationState)
def pause_generations(request: Request) -> Json:
    """Make no more generations until they are resumed."""
    request.space.generations.pause()
    return _state(request)


@ROUTES("POST", f"{GENERATIONS}/resume", answer=ConsolidationState)
def resume_generations(request: Request) -> Json:
    """Make generations again."""
    request.space.generations.resume()
    return _state(request)


@ROUTES("GET", ONE)
def get_generation(request: Request, number: Number) -> Generation:
    """One generation."""
    return request.space.generations.get(number)


@ROUTES("GET", f"{ONE}/diff", answer={"changes": list[GenerationChange]})
def diff_generation(request: Request, number: Number, to: Number | None = None) -> Json:
    """What changed from a generation to another, or to the current one."""
    return {"changes": view(request.space.generations.diff(number, to))}


def _restored(request: Request, ids: Sequence[str]) -> Generation:
    return request.space.generations.get(int(ids[0]))


@ROUTES("POST", f"{ONE}/rollback", statuses=(201,), again=_restored, problems=frozenset({409}))
def rollback_generation(request: Request, number: Number) -> Generation:
    """Restore what a generation said, as the newest one."""
    return request.space.generations.rollback(number)


@ROUTES("GET", f"{SPACE}/status", answer=Status)
def status(request: Request, limit: Limit = PAGE) -> Json:
    """What is due, what waits and for what, and what it took."""
    return public_status(request.memory.status(request.space.name, limit))


@ROUTES("GET", f"{SPACE}/jobs", answer={"jobs": list[Job]})
def list_jobs(request: Request, limit: Limit = PAGE) -> Json:
    """What is due, claimed or parked, first due first."""
    found = request.memory.store.leases.jobs(request.space.name, limit)
    return {"jobs": view(found, request.memory.clock.now())}


@ROUTES("POST", f"{SPACE}/jobs/retry", answer={"revived": int})
def retry_jobs(request: Request, session: str | None = None) -> Json:
    """Give parked jobs of this space another chance, or that of one session."""
    return {"revived": request.memory.retry(session, request.space.name)}


@ROUTES(
    "POST",
    f"{SPACE}/work",
    answer={"marked": int, "again": int, "consolidations": int},
    statuses=(202,),
)
def work(request: Request, all: bool = False, again: bool = False) -> Json:  # noqa: A002
    """Make what there is to do due now; whoever works on the store begins with it."""
    space, memory = request.space.name, request.memory
    marked = 0
    if all:
        marked = sweep_idle(
            memory.store, memory.clock.now(), memory.settings, space=space, all=True
        )
    return {
        "marked": marked,
        "again": memory.request_again(space) if again else 0,
        "consolidations": memory.store.generations.hurry(space),
    }


@ROUTES("POST", f"{SPACE}/forget", answer=Receipt)
def forget(request: Request, body: Forgetting) -> Json:
    """Erase one of these for good, with all that rests on it alone."""
    given = given_fields(body)
    pages = given.pop("pages")
    wanted = {name: each for name, each in given.items() if each is not False}
    if len(wanted) != 1:
        named = ", ".join(name for name in body.__struct_fields__ if name != "pages")
        raise InvalidValue(f"body: say one of what is to be forgotten: {named}")
    return public_receipt(request.space.forget(**wanted, pages=pages))


@ROUTES("GET", f"{SPACE}/events", answer=str, media_type="text/event-stream")
def events(request: Request) -> Stream:
    """What changes, as it does: server-sent events named `status`."""
    return Stream(space=request.space.name)


@ROUTES("GET", f"{SPACE}/audit", answer=paged("audit", AuditEntry))
def list_audit(
    request: Request,
    limit: Limit = PAGE,
    cursor: Cursor | None = None,
    actor: Actor | None = None,
    verb: Actor | None = None,
    since: Moment | None = None,
) -> Json:
    """Who did what, newest first; without an outcome it was cut short, or is under way."""
    space, before = request.space.name, None
    if cursor is not None:
        at, entry_id = read_moment_cursor(cursor)
        before = AuditEntry(id=entry_id, at=at, space=space, actor="", verb="")
    found = request.memory.audit(space, limit, before, actor=actor, verb=verb, since=since)
    return page("audit", found, limit, lambda entry: moment_cursor(entry.at, entry.id))

"""Spaces, generations, what is going on, and what is done about it, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.domain import Job
from recollect.errors import InvalidValue
from recollect.forgetting import ERASE, KEEP
from recollect.generation import ConsolidationState, Generation, GenerationChange
from recollect.interfaces.http.reply import Ask, Reply, Watch
from recollect.interfaces.http.route import (
    LIMIT,
    PAGED,
    SPACE,
    Reach,
    Route,
    look,
    made_cursor,
    page,
    paged,
    read_cursor,
)
from recollect.interfaces.http.schemas import (
    BOOL,
    COUNT,
    TEXT,
    Schema,
    listed,
    maybe,
    obj,
    one_of,
    text,
    whole,
)
from recollect.interfaces.views import public_receipt, public_status, schema_of, view
from recollect.knowledge import Receipt
from recollect.status import Status
from recollect.store.key_protocol import Scope
from recollect.sweeps import sweep_idle

PAGE = 100
GENERATIONS_PAGE = 20
NUMBER_CHARS_MAX = 18

GENERATIONS = f"{SPACE}/generations"
FORGOTTEN: Mapping[str, Schema] = {
    "session": maybe(text()),
    "record": maybe(text(description="As in session_id:seq.")),
    "fact": maybe(text()),
    "document": maybe(text(description="A path, with all that is below it.")),
    "agent": {"type": ["string", "object", "null"]},
    "source": maybe(text()),
    "everything": BOOL,
}
PAGES = one_of((KEEP, ERASE), "What becomes of pages that people or other agents wrote on it.")


def list_spaces(ask: Ask) -> Reply:
    if ask.key.space is not None:
        return page("spaces", [{"name": ask.key.space}], None)
    after = ""
    if "cursor" in ask.query:
        [after] = read_cursor(ask.query["cursor"], str)
    limit = ask.query.get("limit", PAGE)
    found = ask.memory.spaces(limit, after)
    following = made_cursor(found[-1]) if found and len(found) == limit else None
    return page("spaces", [{"name": name} for name in found], following)


def get_space(ask: Ask) -> Reply:
    status = ask.memory.status(ask.space.name, limit=0)
    content = {
        "name": ask.space.name,
        "facts": ask.space.facts.count(),
        "marked_count": status.marked_count,
        "waiting_count": status.waiting_count,
    }
    return Reply(content=content)


def get_status(ask: Ask) -> Reply:
    status = ask.memory.status(ask.space.name, ask.query.get("limit", PAGE))
    return Reply(content=public_status(status))


def list_jobs(ask: Ask) -> Reply:
    now = ask.memory.clock.now()
    found = ask.memory.store.leases.jobs(ask.space.name, ask.query.get("limit", PAGE))
    return Reply(content={"jobs": view(found, now)})


def retry_jobs(ask: Ask) -> Reply:
    return Reply(content={"revived": ask.memory.retry(ask.body.get("session"), ask.space.name)})


def work(ask: Ask) -> Reply:
    """Makes everything due; whoever works on this store begins at once."""
    space, memory = ask.space.name, ask.memory
    marked = 0
    if ask.body.get("all", False):
        marked = sweep_idle(
            memory.store, memory.clock.now(), memory.settings, space=space, all=True
        )
    again = memory.request_again(space) if ask.body.get("again", False) else 0
    hurried = memory.store.generations.hurry(space)
    content = {"marked": marked, "again": again, "consolidations": hurried}
    return Reply(content=content, status=202)


def forget(ask: Ask) -> Reply:
    given = {name: each for name, each in ask.body.items() if name in FORGOTTEN}
    wanted = {name: each for name, each in given.items() if each is not None and each is not False}
    if len(wanted) != 1:
        raise InvalidValue(f"body says one of what is to be forgotten: {', '.join(FORGOTTEN)}")
    receipt = ask.space.forget(**wanted, pages=ask.body.get("pages", KEEP))
    return Reply(content=public_receipt(receipt))


def events(ask: Ask) -> Watch:
    return Watch(space=ask.space.name)


def list_generations(ask: Ask) -> Reply:
    before = None
    if "cursor" in ask.query:
        [before] = read_cursor(ask.query["cursor"], int)
    limit = ask.query.get("limit", GENERATIONS_PAGE)
    found = ask.space.generations.list(limit, before)
    following = made_cursor(found[-1].number) if found and len(found) == limit else None
    return page("generations", view(found), following)


def generations_state(ask: Ask) -> Reply:
    state = ask.space.generations.state()
    return Reply(content=view(state, ask.memory.clock.now()))


def pause_generations(ask: Ask) -> Reply:
    ask.space.generations.pause()
    return generations_state(ask)


def resume_generations(ask: Ask) -> Reply:
    ask.space.generations.resume()
    return generations_state(ask)


def _number(ask: Ask) -> int:
    given = ask.path["number"]
    if not given.isascii() or not given.isdigit() or len(given) > NUMBER_CHARS_MAX:
        raise InvalidValue("a generation is named by its number")
    return int(given)


def get_generation(ask: Ask) -> Reply:
    return Reply(content=view(ask.space.generations.get(_number(ask))))


def diff_generation(ask: Ask) -> Reply:
    changes = ask.space.generations.diff(_number(ask), ask.query.get("to"))
    return Reply(content={"changes": view(changes)})


def rollback_generation(ask: Ask) -> Reply:
    made = ask.space.generations.rollback(_number(ask))
    return Reply(content=view(made), status=201, ids=(str(made.number),))


def restored_generation(ask: Ask, ids: Sequence[str]) -> Reply:
    return Reply(content=view(ask.space.generations.get(int(ids[0]))))


def _act(path: str, name: str, summary: str, handler: Any, **more: Any) -> Route:
    return Route(
        method="POST",
        path=path,
        name=name,
        summary=summary,
        handler=handler,
        **{"scope": Scope.WRITE, "body": obj({}, needs=()), **more},
    )


SPACE_ROUTES: tuple[Route, ...] = (
    look(
        "/v1/spaces",
        "list_spaces",
        "The spaces that this key may see.",
        list_spaces,
        paged("spaces", obj({"name": TEXT})),
        reach=Reach.OWN,
        query=PAGED,
    ),
    look(
        SPACE,
        "get_space",
        "A space, and how much there is in it.",
        get_space,
        obj({"name": TEXT, "facts": COUNT, "marked_count": COUNT, "waiting_count": COUNT}),
    ),
)
ROUTES: tuple[Route, ...] = (
    look(
        GENERATIONS,
        "list_generations",
        "Generations of memory, the newest first.",
        list_generations,
        paged("generations", schema_of(Generation)),
        query=PAGED,
    ),
    look(
        f"{GENERATIONS}/state",
        "generations_state",
        "Which generation is current, and what the next one waits for.",
        generations_state,
        schema_of(ConsolidationState),
    ),
    _act(
        f"{GENERATIONS}/pause",
        "pause_generations",
        "Make no more generations until they are resumed.",
        pause_generations,
        answers={200: schema_of(ConsolidationState)},
    ),
    _act(
        f"{GENERATIONS}/resume",
        "resume_generations",
        "Make generations again.",
        resume_generations,
        answers={200: schema_of(ConsolidationState)},
    ),
    look(
        f"{GENERATIONS}/{{number}}",
        "get_generation",
        "One generation.",
        get_generation,
        schema_of(Generation),
    ),
    look(
        f"{GENERATIONS}/{{number}}/diff",
        "diff_generation",
        "What changed from a generation to another, or to the current one.",
        diff_generation,
        obj({"changes": listed(schema_of(GenerationChange))}),
        query={"to": whole(1)},
    ),
    _act(
        f"{GENERATIONS}/{{number}}/rollback",
        "rollback_generation",
        "Restore what a generation said, as the newest one.",
        rollback_generation,
        answers={201: schema_of(Generation)},
        again=restored_generation,
        problems=frozenset({409}),
    ),
    look(
        f"{SPACE}/status",
        "status",
        "What is due, what waits and for what, and what it took.",
        get_status,
        schema_of(Status),
        query={"limit": LIMIT},
    ),
    look(
        f"{SPACE}/jobs",
        "list_jobs",
        "What is due, claimed or parked, first due first.",
        list_jobs,
        obj({"jobs": listed(schema_of(Job))}),
        query={"limit": LIMIT},
    ),
    _act(
        f"{SPACE}/jobs/retry",
        "retry_jobs",
        "Give parked jobs of this space another chance, or that of one session.",
        retry_jobs,
        body=obj({"session": maybe(text())}, needs=()),
        answers={200: obj({"revived": COUNT})},
    ),
    _act(
        f"{SPACE}/work",
        "work",
        "Make what there is to do due now; whoever works on the store begins with it.",
        work,
        body=obj({"all": BOOL, "again": BOOL}, needs=()),
        scope=Scope.ADMIN,
        answers={202: obj({"marked": COUNT, "again": COUNT, "consolidations": COUNT})},
    ),
    _act(
        f"{SPACE}/forget",
        "forget",
        "Erase one of these for good, with all that rests on it alone.",
        forget,
        body=obj({**FORGOTTEN, "pages": PAGES}, needs=()),
        scope=Scope.ADMIN,
        answers={200: schema_of(Receipt)},
    ),
    look(
        f"{SPACE}/events",
        "events",
        "What changes, as it does: server-sent events named `status`.",
        events,
        text(),
        media_type="text/event-stream",
    ),
)

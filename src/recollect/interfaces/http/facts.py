"""Facts over HTTP: added, listed, searched, edited, deleted, and what has happened to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.errors import InvalidValue, NotFound
from recollect.interfaces.http.bookmarks import fact_mark
from recollect.interfaces.http.reply import Ask, Reply
from recollect.interfaces.http.route import (
    LIMIT,
    PAGED,
    SPACE,
    Route,
    moment_cursor,
    page,
    paged,
    read_moment_cursor,
)
from recollect.interfaces.http.schemas import (
    BOOL,
    FREE,
    MOMENT,
    listed,
    maybe,
    obj,
    text,
)
from recollect.interfaces.views import schema_of, view
from recollect.knowledge import Fact, FactChange
from recollect.store.key_protocol import Scope

PAGE = 50
QUERY_CHARS_MAX = 10_000

ONE = f"{SPACE}/facts/{{fact}}"
TAGS = listed(text(), 1000)


def add_fact(ask: Ask) -> Reply:
    body = ask.body
    stored = ask.space.facts.add(
        body["content"], tags=body.get("tags") or (), metadata=body.get("metadata")
    )
    return Reply(content=view(stored), status=201, ids=(stored.id,))


def added_fact(ask: Ask, ids: Sequence[str]) -> Reply:
    return _read(ask, ids[0])


def list_facts(ask: Ask) -> Reply:
    before = None
    if "cursor" in ask.query:
        before = fact_mark(*read_moment_cursor(ask.query["cursor"]))
    limit = ask.query.get("limit", PAGE)
    found = ask.space.facts.list(
        limit,
        before,
        tag=ask.query.get("tag"),
        session=ask.query.get("session"),
        as_of=ask.query.get("as_of"),
        every=ask.query.get("every", False),
    )
    last = found[-1] if found and len(found) == limit else None
    following = None
    if last is not None and last.created_at is not None:
        following = moment_cursor(last.created_at, last.id)
    return page("facts", view(found), following)


def search_facts(ask: Ask) -> Reply:
    limit, as_of = ask.query.get("limit", 10), ask.query.get("as_of")
    found = ask.space.facts.search(ask.query["q"], limit, as_of=as_of)
    return Reply(content={"facts": view(found)})


def get_fact(ask: Ask) -> Reply:
    return _read(ask, ask.path["fact"])


def _read(ask: Ask, fact_id: str) -> Reply:
    found = ask.space.facts.get(fact_id)
    if found is None:
        raise NotFound(f"this space has no fact {fact_id!r}")
    return Reply(content=view(found))


def edit_fact(ask: Ask) -> Reply:
    given: dict[str, Any] = dict(ask.body)
    if not given:
        raise InvalidValue("body has nothing to change: content, tags, metadata or valid_to")
    return Reply(content=view(ask.space.facts.update(ask.path["fact"], **given)))


def delete_fact(ask: Ask) -> Reply:
    ask.space.facts.delete(ask.path["fact"])
    return Reply(content={"deleted": ask.path["fact"]})


def fact_history(ask: Ask) -> Reply:
    found = ask.space.facts.history(ask.path["fact"])
    if not found:
        raise NotFound(f"this space has no fact {ask.path['fact']!r}")
    return Reply(content={"changes": view(found)})


ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path=f"{SPACE}/facts",
        name="add_fact",
        summary="Store a statement; the same one again is stored once.",
        handler=add_fact,
        scope=Scope.WRITE,
        body=obj(
            {"content": text(), "tags": maybe(TAGS), "metadata": maybe(FREE)}, needs=["content"]
        ),
        answers={201: schema_of(Fact)},
        again=added_fact,
    ),
    Route(
        method="GET",
        path=f"{SPACE}/facts",
        name="list_facts",
        summary="Facts that hold, newest first; with `every` also those that do not.",
        handler=list_facts,
        query={**PAGED, "tag": text(), "session": text(), "as_of": MOMENT, "every": BOOL},
        answers={200: paged("facts", schema_of(Fact))},
    ),
    Route(
        method="GET",
        path=f"{SPACE}/facts/search",
        name="search_facts",
        summary="Facts with any of a text's words, the best first.",
        handler=search_facts,
        query={"q": text(QUERY_CHARS_MAX), "limit": LIMIT, "as_of": MOMENT},
        needs=frozenset({"q"}),
        answers={200: obj({"facts": listed(schema_of(Fact))})},
    ),
    Route(
        method="GET",
        path=ONE,
        name="get_fact",
        summary="A fact, with its sources.",
        handler=get_fact,
        answers={200: schema_of(Fact)},
    ),
    Route(
        method="PATCH",
        path=ONE,
        name="edit_fact",
        summary="Change what a fact says; no extraction changes it from then on.",
        handler=edit_fact,
        scope=Scope.WRITE,
        body=obj(
            {"content": text(), "tags": TAGS, "metadata": FREE, "valid_to": maybe(MOMENT)},
            needs=(),
        ),
        answers={200: schema_of(Fact)},
    ),
    Route(
        method="DELETE",
        path=ONE,
        name="delete_fact",
        summary="Delete a fact; its session does not bring it back.",
        handler=delete_fact,
        scope=Scope.WRITE,
        answers={200: obj({"deleted": text()})},
    ),
    Route(
        method="GET",
        path=f"{ONE}/history",
        name="fact_history",
        summary="What has happened to a fact, also to one that was deleted.",
        handler=fact_history,
        answers={200: obj({"changes": listed(schema_of(FactChange))})},
    ),
)

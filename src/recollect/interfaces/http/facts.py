"""Facts over HTTP: added, listed, searched, edited, deleted, and what has happened to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from recollect.errors import InvalidValue, NotFound
from recollect.interfaces.http.binding import Cursor, Json, Limit, Moment, Tags
from recollect.interfaces.http.bookmarks import fact_mark
from recollect.interfaces.http.messages import Request
from recollect.interfaces.http.route import (
    SPACE,
    Routes,
    moment_cursor,
    page,
    paged,
    read_moment_cursor,
)
from recollect.interfaces.views import view
from recollect.knowledge import Fact, FactChange

PAGE = 50
ALL, ONE = f"{SPACE}/facts", f"{SPACE}/facts/{{fact}}"
DOUBTED = f"{SPACE}/quarantine"

ROUTES = Routes()

Query = Annotated[str, Meta(max_length=10_000)]


def _before(cursor: str | None) -> Fact | None:
    return None if cursor is None else fact_mark(*read_moment_cursor(cursor))


def _after(fact: Fact) -> str | None:
    return None if fact.created_at is None else moment_cursor(fact.created_at, fact.id)


def read_again(request: Request, ids: Sequence[str]) -> Fact:
    return _found(request, ids[0])


def _found(request: Request, fact_id: str) -> Fact:
    found = request.space.facts.get(fact_id)
    if found is None:
        raise NotFound(f"this space has no fact {fact_id!r}")
    return found


@ROUTES("POST", ALL, statuses=(201,), again=read_again)
def add_fact(
    request: Request, content: str, tags: Tags | None = None, metadata: Json | None = None
) -> Fact:
    """Store a statement; the same one again is stored once."""
    return request.space.facts.add(content, tags=tags or (), metadata=metadata)


@ROUTES("GET", ALL, answer=paged("facts", Fact))
def list_facts(
    request: Request,
    limit: Limit = PAGE,
    cursor: Cursor | None = None,
    tag: str | None = None,
    session: str | None = None,
    as_of: Moment | None = None,
    every: bool = False,
) -> Json:
    """Facts that hold, newest first; with `every` also those that do not."""
    found = request.space.facts.list(
        limit, _before(cursor), tag=tag, session=session, as_of=as_of, every=every
    )
    return page("facts", found, limit, _after)


@ROUTES("GET", f"{ALL}/search", answer={"facts": list[Fact]})
def search_facts(
    request: Request, q: Query, limit: Limit = 10, as_of: Moment | None = None
) -> Json:
    """Facts with any of a text's words, the best first."""
    return {"facts": view(request.space.facts.search(q, limit, as_of=as_of))}


@ROUTES("GET", ONE)
def get_fact(request: Request, fact: str) -> Fact:
    """A fact, with its sources."""
    return _found(request, fact)


@ROUTES("PATCH", ONE)
def edit_fact(
    request: Request,
    fact: str,
    content: str | UnsetType = UNSET,
    tags: Tags | UnsetType = UNSET,
    metadata: Json | UnsetType = UNSET,
    valid_to: Moment | UnsetType | None = UNSET,
) -> Fact:
    """Change what a fact says; no extraction changes it from then on."""
    fields = {"content": content, "tags": tags, "metadata": metadata, "valid_to": valid_to}
    given: dict[str, Any] = {name: each for name, each in fields.items() if each is not UNSET}
    if not given:
        raise InvalidValue("body: has nothing to change; send content, tags, metadata or valid_to")
    return request.space.facts.update(fact, **given)


@ROUTES("DELETE", ONE, answer={"deleted": str})
def delete_fact(request: Request, fact: str) -> Json:
    """Delete a fact; its session does not bring it back."""
    request.space.facts.delete(fact)
    return {"deleted": fact}


@ROUTES("GET", f"{ONE}/history", answer={"changes": list[FactChange]})
def fact_history(request: Request, fact: str) -> Json:
    """What has happened to a fact, also to one that was deleted."""
    found = request.space.facts.history(fact)
    if not found:
        raise NotFound(f"this space has no fact {fact!r}")
    return {"changes": view(found)}


@ROUTES("GET", DOUBTED, answer=paged("facts", Fact))
def list_quarantine(request: Request, limit: Limit = PAGE, cursor: Cursor | None = None) -> Json:
    """Facts that stay out of prompts until a person decides, newest first."""
    return page("facts", request.space.facts.quarantined(limit, _before(cursor)), limit, _after)


@ROUTES("POST", f"{DOUBTED}/{{fact}}/approve", problems=frozenset({409}))
def approve_fact(request: Request, fact: str) -> Fact:
    """Vouch for a fact in quarantine: it is a person's word from then on."""
    return request.space.facts.approve(fact)


@ROUTES("POST", f"{DOUBTED}/{{fact}}/reject", answer={"rejected": str}, problems=frozenset({409}))
def reject_fact(request: Request, fact: str) -> Json:
    """Delete a fact in quarantine; its session does not bring it back."""
    request.space.facts.reject(fact)
    return {"rejected": fact}

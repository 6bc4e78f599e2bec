"""Quarantine over HTTP: what tools said that reads like a command, and a person's word on it."""

from __future__ import annotations

from recollect.interfaces.http.bookmarks import fact_mark
from recollect.interfaces.http.reply import Ask, Reply
from recollect.interfaces.http.route import (
    PAGED,
    SPACE,
    Route,
    moment_cursor,
    page,
    paged,
    read_moment_cursor,
)
from recollect.interfaces.http.schemas import obj, text
from recollect.interfaces.views import schema_of, view
from recollect.knowledge import Fact
from recollect.store.key_protocol import Scope

PAGE = 50
ALL = f"{SPACE}/quarantine"
ONE = f"{ALL}/{{fact}}"


def list_quarantine(ask: Ask) -> Reply:
    before = None
    if "cursor" in ask.query:
        before = fact_mark(*read_moment_cursor(ask.query["cursor"]))
    limit = ask.query.get("limit", PAGE)
    found = ask.space.facts.quarantined(limit, before)
    last = found[-1] if found and len(found) == limit else None
    following = None
    if last is not None and last.created_at is not None:
        following = moment_cursor(last.created_at, last.id)
    return page("facts", view(found), following)


def approve_fact(ask: Ask) -> Reply:
    return Reply(content=view(ask.space.facts.approve(ask.path["fact"])))


def reject_fact(ask: Ask) -> Reply:
    ask.space.facts.reject(ask.path["fact"])
    return Reply(content={"rejected": ask.path["fact"]})


ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path=ALL,
        name="list_quarantine",
        summary="Facts that stay out of prompts until a person decides, newest first.",
        handler=list_quarantine,
        query=PAGED,
        answers={200: paged("facts", schema_of(Fact))},
    ),
    Route(
        method="POST",
        path=f"{ONE}/approve",
        name="approve_fact",
        summary="Vouch for a fact in quarantine: it is a person's word from then on.",
        handler=approve_fact,
        scope=Scope.WRITE,
        answers={200: schema_of(Fact)},
        problems=frozenset({409}),
    ),
    Route(
        method="POST",
        path=f"{ONE}/reject",
        name="reject_fact",
        summary="Delete a fact in quarantine; its session does not bring it back.",
        handler=reject_fact,
        scope=Scope.WRITE,
        answers={200: obj({"rejected": text()})},
        problems=frozenset({409}),
    ),
)

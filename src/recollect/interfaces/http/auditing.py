"""Who did what in a space, over HTTP: for those who may forget it."""

from __future__ import annotations

from recollect.interfaces.http.reply import Ask, Reply
from recollect.interfaces.http.route import (
    PAGED,
    SPACE,
    Route,
    look,
    moment_cursor,
    page,
    paged,
    read_moment_cursor,
)
from recollect.interfaces.http.schemas import MOMENT, text
from recollect.interfaces.views import schema_of, view
from recollect.observing.actors import ACTOR_CHARS_MAX
from recollect.store.audit_protocol import AuditEntry
from recollect.store.key_protocol import Scope

PAGE = 100


def list_audit(ask: Ask) -> Reply:
    before = None
    if "cursor" in ask.query:
        at, entry_id = read_moment_cursor(ask.query["cursor"])
        before = AuditEntry(id=entry_id, at=at, space=ask.space.name, actor="", verb="")
    limit = ask.query.get("limit", PAGE)
    found = ask.memory.audit(
        ask.space.name,
        limit,
        before,
        actor=ask.query.get("actor"),
        verb=ask.query.get("verb"),
        since=ask.query.get("since"),
    )
    last = found[-1] if found and len(found) == limit else None
    following = None if last is None else moment_cursor(last.at, last.id)
    return page("audit", view(found), following)


ROUTES: tuple[Route, ...] = (
    look(
        f"{SPACE}/audit",
        "list_audit",
        "Who did what, newest first; without an outcome it was cut short, or is under way.",
        list_audit,
        paged("audit", schema_of(AuditEntry)),
        scope=Scope.ADMIN,
        query={
            **PAGED,
            "actor": text(ACTOR_CHARS_MAX),
            "verb": text(ACTOR_CHARS_MAX),
            "since": MOMENT,
        },
    ),
)

"""Facts that a tool or a page put there and that want to command: a person lets them in or not."""

from __future__ import annotations

import hashlib

from recollect.interfaces.http.operations import cursor_behind, read_mark
from recollect.interfaces.web.view import PAGE, SPACE, Asked, Moved, Page, View, done, shown
from recollect.knowledge import Fact
from recollect.store.key_protocol import Scope

QUARANTINE = f"{SPACE}/quarantine"


def quarantine(asked: Asked) -> Page:
    before = asked.wanted("cursor")
    mark = read_mark(before, Fact)
    found = asked.space.facts.quarantined(PAGE, mark)
    last = found[-1] if len(found) == PAGE else None
    following = cursor_behind(last) if last else None
    return Page(
        template="quarantine.html",
        fragment="_quarantine.html",
        content={
            "facts": found,
            "marks": {each.id: _mark(each) for each in found},
            "cursor": before or "",
            "following": following,
        },
    )


def _mark(fact: Fact) -> str:
    """What a person has read, in short: only that can be vouched for."""
    return hashlib.sha256(fact.content.encode("utf-8", "surrogatepass")).hexdigest()


def approve(asked: Asked) -> Moved:
    found, seen = asked.space.facts.get(asked.path["fact"]), asked.field("seen")
    if found is not None and _mark(found) != seen:
        return Moved(
            to=asked.at("quarantine"), said="It has changed since it was shown: read it again."
        )
    asked.space.facts.approve(asked.path["fact"])
    return Moved(
        to=asked.at("quarantine"), said="Approved: it is a person's word now, and may be injected."
    )


def reject(asked: Asked) -> Moved:
    asked.space.facts.reject(asked.path["fact"])
    return Moved(to=asked.at("quarantine"), said="Rejected: it is deleted, and does not come back.")


VIEWS: tuple[View, ...] = (
    shown(QUARANTINE, "quarantine", quarantine),
    done(f"{QUARANTINE}/{{fact}}/approve", "approve", approve, Scope.WRITE),
    done(f"{QUARANTINE}/{{fact}}/reject", "reject", reject, Scope.WRITE),
)

"""Pages for facts, the quarantine, and the playground: what a question recalls, and why.

Looking at a page is not counted as a use, and so does not change any ranking.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import Any

from recollect import collection
from recollect.errors import InvalidValue, NotFound
from recollect.interfaces.web.view import (
    PAGE,
    SPACE,
    Asked,
    Moved,
    PageView,
    done,
    read_moment,
    receipt_words,
    shown,
)
from recollect.types.access import Scope
from recollect.types.facts import Fact, Trust
from recollect.types.recall import REASONS, EntryKind, Hit

Json = dict[str, Any]

FACTS = f"{SPACE}/facts"
ONE = f"{FACTS}/{{fact}}"
QUARANTINE = f"{SPACE}/quarantine"

LIMIT, LIMIT_MAX = 10, 100
TOKENS, TOKENS_MAX = 2000, 100_000


def facts(asked: Asked) -> Json:
    held, query, tag = asked.space.facts, asked.wanted("q"), asked.wanted("tag")
    is_every, as_of = asked.wanted("every") is not None, asked.moment("as_of")
    if query is None:
        content = asked.page(
            "facts", partial(held.list, tag=tag, as_of=as_of, every=is_every), Fact
        )
    else:
        found = held.search(query, PAGE, as_of=as_of)
        listed = [each for each in found if tag is None or tag in each.tags]
        content = {"facts": listed, "following": None}
    given = {"query": query or "", "tag": tag or "", "as_of": asked.wanted("as_of") or ""}
    return {**content, **given, "every": is_every}


def fact(asked: Asked) -> Json:
    held = asked.space.facts
    fact_id = collection.check_id(asked.path["fact"])
    found, history = held.get(fact_id), held.history(fact_id)
    if found is None and not history:
        raise NotFound(f"this space has no fact {fact_id!r}")
    return {
        "fact": found,
        "fact_id": fact_id,
        "history": history,
        "after": held.get(found.superseded_by) if found and found.superseded_by else None,
        "holds": found is not None and found.holds(asked.now),
    }


def add_fact(asked: Asked) -> Moved:
    stored = asked.space.facts.add(asked.field("content"), tags=asked.tags())
    said = "Kept. It is yours: no extraction changes it."
    return Moved(to=asked.at("facts", stored.id), said=said)


def edit_fact(asked: Asked) -> Fact:
    return asked.space.facts.update(
        asked.path["fact"],
        asked.field("content"),
        tags=asked.tags(),
        metadata=_metadata(asked.field("metadata")),
        valid_to=read_moment(asked.field("valid_to")),
    )


def _metadata(given: str) -> Json:
    try:
        read = json.loads(given or "{}")
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise InvalidValue("metadata is a JSON object")
    return read


def quarantine(asked: Asked) -> Json:
    content = asked.page("facts", asked.space.facts.quarantined, Fact)
    return {**content, "marks": {each.id: _mark(each) for each in content["facts"]}}


def _mark(fact: Fact) -> str:
    """What a person has read, in short: only that can be vouched for."""
    return hashlib.sha256(fact.content.encode("utf-8", "surrogatepass")).hexdigest()


def approve(asked: Asked) -> str:
    found, seen = asked.space.facts.get(asked.path["fact"]), asked.field("seen")
    if found is not None and _mark(found) != seen:
        return "It has changed since it was shown: read it again."
    asked.space.facts.approve(asked.path["fact"])
    return "Approved: it is a person's word now, and may be injected."


def recall(asked: Asked) -> Json:
    query, trust, as_of = asked.query.get("q", ""), asked.wanted("trust"), asked.moment("as_of")
    kinds = [kind.value for kind in EntryKind if asked.wanted(kind.value) is not None]
    limit = asked.number("limit", LIMIT, least=1, most=LIMIT_MAX)
    tokens = asked.number("tokens", TOKENS, least=1, most=TOKENS_MAX)
    content: Json = {
        "query": query,
        "kinds": kinds,
        "every_kind": [kind.value for kind in EntryKind],
        "trust": trust or "",
        "trusts": [each.value for each in Trust],
        "limit": limit,
        "tokens": tokens,
        "as_of": asked.wanted("as_of") or "",
    }
    if not query.strip():
        return content
    if trust is not None and trust not in set(Trust):
        raise InvalidValue(f"trust is one of {', '.join(Trust)}")
    given: Json = {"kinds": kinds or None, "as_of": as_of}
    given["filters"] = {"trust": trust} if trust else None
    hits = asked.space.recall(query, limit, **given)
    block = asked.space.context(query, tokens, **given)
    placed = {(each.hit.kind, each.hit.id): f"[{each.mark}]" for each in block.citations}
    left_out = {(each.hit.kind, each.hit.id): each.reason for each in block.omitted}
    return {
        **content,
        "hits": [(hit, _link(asked, hit)) for hit in hits],
        "placed": placed,  # in the prompt, by its mark
        "left_out": left_out,
        # Of any hit that is shown, for a meter.
        "largest": max((abs(part) for hit in hits for part in hit.why.values()), default=1) or 1,
        "meanings": REASONS,
        "block": block,
    }


def _link(asked: Asked, hit: Hit) -> str:
    match hit.kind:
        case EntryKind.FACT:
            return asked.at("facts", hit.id)
        case EntryKind.DOCUMENT:
            return asked.at("documents", "at", path=hit.id)
        case EntryKind.SUMMARY:
            return asked.at("sessions", hit.id)
        case EntryKind.RECORD:
            session, _, seq = hit.id.rpartition(":")
            return asked.at("sessions", session, **{"from": seq}) + f"#record-{seq}"


VIEWS: tuple[PageView, ...] = (
    shown(FACTS, "facts", facts),
    done(FACTS, "add_fact", Scope.WRITE, add_fact, back="facts"),
    shown(ONE, "fact", fact),
    done(
        f"{ONE}/edit",
        "edit_fact",
        Scope.WRITE,
        edit_fact,
        to="fact",
        said="Changed. It is yours from now on.",
        back="fact",
    ),
    done(
        f"{ONE}/delete",
        "delete_fact",
        Scope.WRITE,
        lambda asked: asked.space.facts.delete(asked.path["fact"]),
        to="fact",
        said="Deleted: it is no longer recalled. Its history stays until it is forgotten.",
    ),
    done(
        f"{ONE}/forget",
        "forget_fact",
        Scope.ADMIN,
        lambda asked: asked.space.forget(fact=asked.path["fact"]),
        to="facts",
        said=receipt_words,
    ),
    shown(QUARANTINE, "quarantine", quarantine),
    done(
        f"{QUARANTINE}/{{fact}}/approve",
        "approve",
        Scope.WRITE,
        approve,
        to="quarantine",
        said=str,
    ),
    done(
        f"{QUARANTINE}/{{fact}}/reject",
        "reject",
        Scope.WRITE,
        lambda asked: asked.space.facts.reject(asked.path["fact"]),
        to="quarantine",
        said="Rejected: it is deleted, and does not come back.",
    ),
    shown(f"{SPACE}/recall", "recall", recall),
)

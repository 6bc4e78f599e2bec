"""Pages for facts, their review, and the playground: what a question recalls, and why.

Looking at a page is not counted as a use, and so does not change any ranking.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from itertools import groupby
from typing import Any

from recollect import collection
from recollect.errors import InvalidValue, NotFound
from recollect.interfaces.web.sessions import session_names, source_names
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
REVIEW = f"{SPACE}/review"
FILTERS = ("kind", "project", "person")

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
        "named": source_names(asked, found.sources if found else ()),
    }


def about(asked: Asked) -> Json:
    before = asked.wanted("before")
    found = asked.space.about(asked.path["subject"], PAGE, before)
    if not (found.count or found.pages or found.sessions):
        raise NotFound(f"nothing is known of {found.name!r} in this space")
    kinds = groupby(found.current, key=lambda each: each.tags[0] if each.tags else "other")
    return {
        "about": found,
        "kinds": [(kind, list(facts)) for kind, facts in kinds],
        "named": session_names(asked, (each.session_id for each in found.sessions)),
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


def review(asked: Asked) -> Json:
    chosen: Json = {name: asked.wanted(name) for name in FILTERS}
    content = asked.page("waiting", partial(asked.space.facts.waiting, **chosen), Fact)
    marks = {each.id: _mark(each.fact) for each in content["waiting"]}
    setting = asked.memory.settings.review
    shown_by = {name: value or "" for name, value in chosen.items()}
    sources = (source for each in content["waiting"] for source in each.fact.sources)
    named = source_names(asked, sources)
    return {**content, "marks": marks, "setting": setting, "chosen": shown_by, "named": named}


def _mark(fact: Fact) -> str:
    """What a person has read, in short: only that can be vouched for."""
    return hashlib.sha256(fact.content.encode("utf-8", "surrogatepass")).hexdigest()


def accept(asked: Asked) -> str:
    found, seen = asked.space.facts.get(asked.path["fact"]), asked.field("seen")
    if found is not None and _mark(found) != seen:
        return "It has changed since it was shown: read it again."
    asked.space.facts.accept(asked.path["fact"])
    return "Accepted: agents are told of it from now on."


def decide_all(asked: Asked) -> str:
    """Accept or reject what a filter shows, or all of it."""
    given: Json = {name: asked.form.get(name, "").strip() or None for name in FILTERS}
    facts, is_yes = asked.space.facts, asked.field("decision") == "accept"
    decide = facts.accept if is_yes else facts.reject
    done = decide(**given, everything=not any(given.values()))
    return f"{'Accepted' if is_yes else 'Rejected'}: {len(done):,}."


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
        "named": source_names(asked, (each for hit in hits for each in hit.sources)),
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
    shown(f"{SPACE}/about/{{subject}}", "about", about),
    shown(REVIEW, "review", review),
    done(f"{REVIEW}/all", "decide_all", Scope.WRITE, decide_all, to="review", said=str),
    done(f"{REVIEW}/{{fact}}/accept", "accept", Scope.WRITE, accept, to="review", said=str),
    done(
        f"{REVIEW}/{{fact}}/reject",
        "reject",
        Scope.WRITE,
        lambda asked: asked.space.facts.reject(asked.path["fact"]),
        to="review",
        said="Rejected: it is deleted, and does not come back.",
    ),
    shown(f"{SPACE}/recall", "recall", recall),
)

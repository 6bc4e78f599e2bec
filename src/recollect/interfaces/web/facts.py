"""Facts on pages, those in quarantine, and the playground: what a question recalls, and why.

Looking counts as no use: nothing that is shown here rises for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from recollect import collection
from recollect.errors import InvalidValue, NotFound
from recollect.interfaces.http.operations import cursor_behind, read_mark
from recollect.interfaces.http.problems import problem_of
from recollect.interfaces.web.view import (
    PAGE,
    SPACE,
    Answer,
    Asked,
    Moved,
    PageView,
    WebPage,
    done,
    read_moment,
    receipt_words,
    shown,
)
from recollect.recall.reasons import REASONS
from recollect.types.access import Scope
from recollect.types.facts import Fact, Trust
from recollect.types.recall import EntryKind, Hit

FACTS = f"{SPACE}/facts"
ONE = f"{FACTS}/{{fact}}"


def facts(asked: Asked) -> WebPage:
    return _listed(asked)


def _listed(asked: Asked, wrong: InvalidValue | None = None) -> WebPage:
    """The list; with what is wrong about a fact that was to be added, and all that was typed."""
    query, tag = asked.wanted("q"), asked.wanted("tag")
    is_every = asked.wanted("every") is not None
    as_of = asked.moment("as_of")
    found, following = [], None
    if query is not None:
        best = asked.space.facts.search(query, PAGE, as_of=as_of)
        found = [each for each in best if tag is None or tag in each.tags]
    else:
        before = asked.wanted("cursor")
        found = asked.space.facts.list(
            PAGE,
            read_mark(before, Fact),
            tag=tag,
            as_of=as_of,
            every=is_every,
        )
        following = _following(found)
    return WebPage(
        template="facts.html",
        fragment="_facts.html",
        status=200 if wrong is None else problem_of(wrong).status,
        content={
            "facts": found,
            "query": query or "",
            "tag": tag or "",
            "every": is_every,
            "as_of": asked.wanted("as_of") or "",
            "following": following,
            "typed": asked.form,
            "wrong": wrong,
        },
    )


def _following(found: list[Fact]) -> str | None:
    last = found[-1] if len(found) == PAGE else None
    return cursor_behind(last) if last else None


def fact(asked: Asked) -> WebPage:
    return _one(asked)


def _one(asked: Asked, wrong: InvalidValue | None = None) -> WebPage:
    """A fact; with what is wrong about a change to it, and all that was typed."""
    facts = asked.space.facts
    fact_id = collection.check_id(asked.path["fact"])
    found, history = facts.get(fact_id), facts.history(fact_id)
    if found is None and not history:
        raise NotFound(f"this space has no fact {fact_id!r}")
    after = facts.get(found.superseded_by) if found and found.superseded_by else None
    return WebPage(
        template="fact.html",
        status=200 if wrong is None else problem_of(wrong).status,
        content={
            "fact": found,
            "fact_id": fact_id,
            "history": history,
            "after": after,
            "holds": found is not None and found.holds(asked.now),
            "typed": asked.form,
            "wrong": wrong,
        },
    )


def add_fact(asked: Asked) -> Answer:
    try:
        stored = asked.space.facts.add(asked.field("content"), tags=_tags(asked.field("tags")))
    except InvalidValue as error:
        return _listed(asked, error)
    return Moved(
        to=asked.at("facts", stored.id), said="Kept. It is yours: no extraction changes it."
    )


def edit_fact(asked: Asked) -> Answer:
    fact_id = asked.path["fact"]
    try:
        asked.space.facts.update(
            fact_id,
            asked.field("content"),
            tags=_tags(asked.field("tags")),
            metadata=_metadata(asked.field("metadata")),
            valid_to=read_moment(asked.field("valid_to")),
        )
    except InvalidValue as error:
        return _one(asked, error)
    return Moved(to=asked.at("facts", fact_id), said="Changed. It is yours from now on.")


def delete_fact(asked: Asked) -> Moved:
    asked.space.facts.delete(asked.path["fact"])
    return Moved(
        to=asked.at("facts", asked.path["fact"]),
        said="Deleted: it is recalled no more. Its history stays until it is forgotten.",
    )


def forget_fact(asked: Asked) -> Moved:
    receipt = asked.space.forget(fact=asked.path["fact"])
    return Moved(to=asked.at("facts"), said=receipt_words(receipt))


def _tags(given: str) -> list[str]:
    return [tag.strip() for tag in given.split(",") if tag.strip()]


def _metadata(given: str) -> dict[str, object]:
    try:
        read = json.loads(given or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidValue("metadata is a JSON object") from error
    if not isinstance(read, dict):
        raise InvalidValue("metadata is a JSON object")
    return read


QUARANTINE = f"{SPACE}/quarantine"


def quarantine(asked: Asked) -> WebPage:
    before = asked.wanted("cursor")
    mark = read_mark(before, Fact)
    found = asked.space.facts.quarantined(PAGE, mark)
    last = found[-1] if len(found) == PAGE else None
    following = cursor_behind(last) if last else None
    return WebPage(
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


LIMIT, LIMIT_MAX = 10, 100
TOKENS, TOKENS_MAX = 2000, 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePart:
    """One part of a score: its share, and what it means."""

    name: str
    value: float
    share: float  # of the largest part of any hit shown, for a meter
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A hit, where it leads to, and why it stands there; `mark` is its place in the prompt."""

    hit: Hit
    link: str
    reasons: tuple[ScorePart, ...]
    mark: str = ""
    left_out: str = ""


def recall(asked: Asked) -> WebPage:
    query = asked.query.get("q", "")
    kinds = [kind.value for kind in EntryKind if asked.wanted(kind.value) is not None]
    trust = asked.wanted("trust")
    limit = asked.number("limit", LIMIT, least=1, most=LIMIT_MAX)
    tokens = asked.number("tokens", TOKENS, least=1, most=TOKENS_MAX)
    as_of = asked.moment("as_of")
    content = {
        "query": query,
        "kinds": kinds,
        "every_kind": [kind.value for kind in EntryKind],
        "trust": trust or "",
        "trusts": [each.value for each in Trust],
        "limit": limit,
        "tokens": tokens,
        "as_of": asked.wanted("as_of") or "",
        "hits": [],
        "block": None,
    }
    if query.strip():
        if trust is not None and trust not in set(Trust):
            raise InvalidValue(f"trust is one of {', '.join(Trust)}")
        filters = {"trust": trust} if trust else None
        hits = asked.space.recall(query, limit, kinds=kinds or None, filters=filters, as_of=as_of)
        block = asked.space.context(
            query, tokens, kinds=kinds or None, filters=filters, as_of=as_of
        )
        marks = {_name(each.hit): each.mark for each in block.citations}
        left_out = {_name(each.hit): each.reason for each in block.omitted}
        content |= {"hits": _explained(asked, hits, marks, left_out), "block": block}
    return WebPage(template="recall.html", fragment="_recall.html", content=content)


def _name(hit: Hit) -> tuple[str, str]:
    return (hit.kind.value, hit.id)


def _explained(
    asked: Asked,
    hits: list[Hit],
    marks: Mapping[tuple[str, str], str],
    left_out: Mapping[tuple[str, str], str],
) -> list[Explained]:
    largest = max((abs(value) for hit in hits for value in hit.why.values()), default=1.0) or 1.0
    return [
        Explained(
            hit=hit,
            link=_link(asked, hit),
            reasons=tuple(
                ScorePart(
                    name=name,
                    value=value,
                    share=abs(value) / largest,
                    meaning=REASONS.get(name, ""),
                )
                for name, value in sorted(hit.why.items(), key=lambda part: -part[1])
            ),
            mark=marks.get(_name(hit), ""),
            left_out=left_out.get(_name(hit), ""),
        )
        for hit in hits
    ]


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
    done(FACTS, "add_fact", add_fact, Scope.WRITE),
    shown(ONE, "fact", fact),
    done(f"{ONE}/edit", "edit_fact", edit_fact, Scope.WRITE),
    done(f"{ONE}/delete", "delete_fact", delete_fact, Scope.WRITE),
    done(f"{ONE}/forget", "forget_fact", forget_fact, Scope.ADMIN),
    shown(QUARANTINE, "quarantine", quarantine),
    done(f"{QUARANTINE}/{{fact}}/approve", "approve", approve, Scope.WRITE),
    done(f"{QUARANTINE}/{{fact}}/reject", "reject", reject, Scope.WRITE),
    shown(f"{SPACE}/recall", "recall", recall),
)

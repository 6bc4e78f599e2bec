"""Facts on pages: listed, searched, each with validity, sources and history; edited, deleted."""

from __future__ import annotations

import json

from recollect import collection
from recollect.errors import InvalidValue, NotFound
from recollect.interfaces.http.operations import cursor_behind, read_mark
from recollect.interfaces.http.problems import problem_of
from recollect.interfaces.web.receipts import told
from recollect.interfaces.web.view import (
    PAGE,
    SPACE,
    Answer,
    Asked,
    Moved,
    Page,
    View,
    done,
    read_moment,
    shown,
)
from recollect.knowledge import Fact
from recollect.store.key_protocol import Scope

FACTS = f"{SPACE}/facts"
ONE = f"{FACTS}/{{fact}}"


def facts(asked: Asked) -> Page:
    return _listed(asked)


def _listed(asked: Asked, wrong: InvalidValue | None = None) -> Page:
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
    return Page(
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


def fact(asked: Asked) -> Page:
    return _one(asked)


def _one(asked: Asked, wrong: InvalidValue | None = None) -> Page:
    """A fact; with what is wrong about a change to it, and all that was typed."""
    facts = asked.space.facts
    fact_id = collection.check_id(asked.path["fact"])
    found, history = facts.get(fact_id), facts.history(fact_id)
    if found is None and not history:
        raise NotFound(f"this space has no fact {fact_id!r}")
    after = facts.get(found.superseded_by) if found and found.superseded_by else None
    return Page(
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
    return Moved(to=asked.at("facts"), said=told(receipt))


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


VIEWS: tuple[View, ...] = (
    shown(FACTS, "facts", facts),
    done(FACTS, "add_fact", add_fact, Scope.WRITE),
    shown(ONE, "fact", fact),
    done(f"{ONE}/edit", "edit_fact", edit_fact, Scope.WRITE),
    done(f"{ONE}/delete", "delete_fact", delete_fact, Scope.WRITE),
    done(f"{ONE}/forget", "forget_fact", forget_fact, Scope.ADMIN),
)

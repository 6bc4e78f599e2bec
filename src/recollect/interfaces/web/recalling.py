"""The playground: what a question recalls, why each hit stands there, and what a prompt gets.

Looking counts as no use: nothing that is shown here rises for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.errors import InvalidValue
from recollect.interfaces.web.view import SPACE, Asked, Page, View, shown
from recollect.knowledge import Trust
from recollect.recall.reasons import REASONS
from recollect.recollection import EntryKind, Hit

LIMIT, LIMIT_MAX = 10, 100
TOKENS, TOKENS_MAX = 2000, 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
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
    reasons: tuple[Reason, ...]
    mark: str = ""
    left_out: str = ""


def recall(asked: Asked) -> Page:
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
    return Page(template="recall.html", fragment="_recall.html", content=content)


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
                Reason(
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


VIEWS: tuple[View, ...] = (shown(f"{SPACE}/recall", "recall", recall),)

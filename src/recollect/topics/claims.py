"""Claims: statements that are to be rendered, with their sources. Pure.

A claim is a fact without its place in a store, so that facts added by hand and facts that were
learned are rendered in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from recollect.extraction.grounding import rank
from recollect.types.facts import Fact, Source, Trust, content_key

INFERRED = "inferred"  # as a tag, and in the metadata
_PROJECT = "project"
_UNDATED = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicClaim:
    """One statement. `topic` is what a newer one supersedes it by, as in a fact."""

    text: str
    trust: Trust
    at: datetime  # when it was said
    sources: tuple[Source, ...] = ()
    fact_id: str | None = None
    topic: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    project: str | None = None  # of the session it was said in
    is_inferred: bool = False

    @property
    def said(self) -> tuple[datetime, int]:
        """What tells the newer of two claims; within one moment the later record."""
        return self.at, max((source.seq_to for source in self.sources), default=0)


def claim_of(fact: Fact, project: str | None) -> TopicClaim:
    """What a fact claims; `project` is that of the session it was learned in."""
    return TopicClaim(
        text=fact.content,
        trust=fact.trust,
        at=fact.valid_from or fact.created_at or _UNDATED,
        sources=fact.sources,
        fact_id=fact.id or None,
        topic=fact.topic,
        tags=fact.tags,
        metadata=fact.metadata,
        project=_project(fact.metadata) or project,
        is_inferred=INFERRED in fact.tags or fact.metadata.get(INFERRED) is True,
    )


def merged(claims: Iterable[TopicClaim]) -> list[TopicClaim]:
    """Each statement once, in the order they were said, with the sources of all who said it."""
    same: dict[str, list[TopicClaim]] = {}
    for claim in claims:
        if claim.text.strip():
            same.setdefault(content_key(claim.text), []).append(claim)
    return sorted(map(_one, same.values()), key=lambda one: (one.said, content_key(one.text)))


def due_on(told: TopicClaim | Fact) -> date | None:
    """The last day that something to be done is about, where it says one."""
    if "commitment" not in told.tags and "goal" not in told.tags:
        return None
    if isinstance(told, Fact) and told.happened_to is not None:
        return (told.happened_to - timedelta(days=1)).date()
    said = told.metadata.get("date_to") or told.metadata.get("date")
    try:
        return date.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        return None


def _one(claims: list[TopicClaim]) -> TopicClaim:
    ordered = sorted(claims, key=_by_strength)
    best = ordered[0]
    if len(ordered) == 1:
        return best
    sources = {source for claim in ordered for source in claim.sources}
    return replace(
        best,
        at=max(claim.at for claim in ordered),
        sources=tuple(
            sorted(sources, key=lambda each: (each.session_id, each.seq, each.seq_to, each.quote))
        ),
        fact_id=next((claim.fact_id for claim in ordered if claim.fact_id), None),
        topic=next((claim.topic for claim in ordered if claim.topic), None),
        project=next((claim.project for claim in ordered if claim.project), None),
        is_inferred=all(claim.is_inferred for claim in ordered),
    )


def _by_strength(claim: TopicClaim) -> tuple[Any, ...]:
    told = sorted(map(repr, claim.metadata.items()))
    which = (claim.fact_id or "", claim.topic or "", claim.tags, claim.project or "")
    return (-rank(claim.trust), claim.said, claim.text, *which, told)


def _project(metadata: Mapping[str, Any]) -> str | None:
    said = metadata.get(_PROJECT)
    return said if isinstance(said, str) and said.strip() else None

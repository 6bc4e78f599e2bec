"""What a coding agent is told unasked: what holds in its project, and what its prompt is about.

Only what was learned in that project, or in none: the rules of another one are never told. What
tools and web pages said is left to those who ask for it. Nothing to say is said with nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.importers.homes import Homes
from recollect.knowledge import Fact, FactTag, Trust
from recollect.models.tokens import estimate_tokens
from recollect.recall.pack import INTRODUCTION, SUMMARY_ALONE, Standing, pack
from recollect.recollection import Context, EntryKind, Hit
from recollect.space import Space
from recollect.stems import asked_stems, stems

START_TOKENS = 800
PROMPT_TOKENS = 400
TOKENS_MAX = 2000  # an agent cuts what is over some ten thousand characters
START_LINES = 20
CONSIDERED = 3 * START_LINES  # some say the same as others, some are too long
PROMPT_LINES = 6
LISTED = 200  # of the newest facts
OLDER = 100  # of the project, and of each kind that goes with people
PROMPT_CHARS = 20_000  # that are read of a prompt: a log that somebody pastes is longer
ROUND = 3  # facts of one kind before those of the next have their turn
STEMS_MIN = 2  # one word in common is chance
UNKNOWN_PROJECT = "?"  # projects are named by paths: none is called that
TOLD_BY = (Trust.USER, Trust.AGENT)


_SLASH_COMMAND = re.compile(r"\s*/[\w:-]+(?:\s|$)")
_KINDS = (
    FactTag.INSTRUCTION,
    FactTag.CORRECTION,
    FactTag.PREFERENCE,
    FactTag.DECISION,
    FactTag.PROCEDURE,
    FactTag.LESSON,
    FactTag.GOAL,
    FactTag.COMMITMENT,
)
_WORTH: Mapping[str, int] = {kind.value: place for place, kind in enumerate(_KINDS)}

Redact = Callable[[str], str]


def scope(project: str | None) -> dict[str, Any]:
    """The filters of all that an agent in a project is told; where nobody knows it, in none."""
    projects = [UNKNOWN_PROJECT if project is None else project, None]
    return {"project": projects, "trust": [each.value for each in TOLD_BY]}


def at_start(
    space: Space, project: str | None, *, max_tokens: int, now: datetime, redact: Redact
) -> Context:
    """What holds in a project: its rules, choices, commands and lessons, and the user's own."""
    homes = Homes(space, project)
    listed = space.facts.list(LISTED)
    if len(listed) == LISTED:  # there is more than that
        listed += _older(space, homes.place)
    known = {fact.id: fact for fact in listed if fact.trust in TOLD_BY and homes.has(fact)}
    told = _by_worth(known.values())[:CONSIDERED]
    standings = {
        fact.id: Standing(topic=fact.topic, since=fact.valid_from, until=fact.valid_to)
        for fact in told
    }
    block = pack(
        [_hit(fact, redact) for fact in told],
        max_tokens=max_tokens,
        max_facts=START_LINES,
        now=now,
        standings=standings,
    )
    return _without_marks(block)


def _older(space: Space, place: str | None) -> list[Fact]:
    """What holds in a project, and what people want and like, however long ago it was said.

    Listed, not recalled: an agent waits, and recall takes longer to load than to answer.
    """
    own = [] if place is None else space.facts.search_metadata("project", place, OLDER)
    rules = space.facts.list(OLDER, tag=FactTag.INSTRUCTION.value)
    return [*own, *rules, *space.facts.list(OLDER, tag=FactTag.PREFERENCE.value)]


def at_prompt(
    space: Space,
    project: str | None,
    prompt: str,
    *,
    max_tokens: int,
    now: datetime,
    beside: str | None = None,
    shown: Collection[str] = (),
) -> Context:
    """What is known about a prompt, without what this conversation was told or said itself."""
    prompt = prompt[:PROMPT_CHARS]
    asked = asked_stems(prompt)
    if len(asked) < STEMS_MIN or _SLASH_COMMAND.match(prompt):
        return Context(text="")
    block = space.context(
        prompt,
        max_tokens,
        max_facts=PROMPT_LINES,
        filters=scope(project),
        beside=beside,
    )
    found = [citation.hit for citation in block.citations]
    new = [hit for hit in found if hit.id not in shown and _is_about(hit, asked)]
    if len(new) < len(found):
        block = pack(new, max_tokens=max_tokens, max_facts=PROMPT_LINES, now=now)
    return _without_marks(block)


def _without_marks(block: Context) -> Context:
    """The block without the wish to be cited: a person would read the marks, and nobody else.

    It only gets shorter, so that it still fits.
    """
    text = block.text.replace(INTRODUCTION, SUMMARY_ALONE, 1)
    for citation in block.citations:  # no memory has such a mark: those are made harmless
        text = text.replace(f" [{citation.mark}]", "", 1)
    return replace(block, text=text, token_count=estimate_tokens(text) if text else 0)


def _is_about(hit: Hit, asked: Collection[str]) -> bool:
    if hit.why.get("similarity"):
        return True
    return len(set(asked).intersection(stems(f"{hit.title}\n{hit.text}"))) >= STEMS_MIN


def _since(fact: Fact) -> datetime:
    at = fact.valid_from or fact.updated_at or fact.created_at
    assert at is not None  # a stored fact has its times
    return at


def _hit(fact: Fact, redact: Redact) -> Hit:
    return Hit(
        id=fact.id,
        kind=EntryKind.FACT,
        text=redact(fact.content),
        score=0.0,
        why={},
        sources=fact.sources,
        at=_since(fact),
        trust=fact.trust,
        tags=fact.tags,
        usage_count=fact.usage_count,
    )


def _by_worth(facts: Iterable[Fact]) -> Sequence[Fact]:
    """Rules first, then choices, commands and lessons, some of each; used and new ones first."""
    newest = sorted(facts, key=lambda fact: (fact.usage_count, _since(fact)), reverse=True)
    ordered: list[tuple[int, int, Fact]] = []
    counts: dict[int, int] = {}
    for fact in newest:
        worth = min((_WORTH.get(tag, len(_KINDS)) for tag in fact.tags), default=len(_KINDS))
        counts[worth] = counts.get(worth, 0) + 1
        ordered.append(((counts[worth] - 1) // ROUND, worth, fact))
    return [fact for _, _, fact in sorted(ordered, key=lambda each: each[:2])]

"""What a coding agent is given unasked: a recap of its project, and what its prompt is about.

Only what was learned in that project, or in none: the rules of another project are never shown.
What tools and web pages said is left to those who ask for it. Where there is nothing to show,
nothing is printed. What a conversation was shown before is not repeated at every prompt.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.models.tokens import estimate_tokens
from recollect.recall.pack import INTRODUCTION, PLAIN_INTRODUCTION, pack
from recollect.space import Space
from recollect.stemming import asked_stems, stems
from recollect.types.facts import Trust
from recollect.types.recall import Context, Hit

PROMPT_LINES = 6
PROMPT_CHARS = 20_000  # that are read of a prompt: a log that somebody pastes is longer
STEMS_MIN = 2  # one word in common is chance
TOLD_BY = (Trust.USER, Trust.AGENT)


_SLASH_COMMAND = re.compile(r"\s*/[\w:-]+(?:\s|$)")


def scope(project: str | None) -> dict[str, Any]:
    """The filters of all that an agent in a project is told; where nobody knows it, in none."""
    projects = [None] if project is None else [project, None]
    return {"project": projects, "trust": [each.value for each in TOLD_BY]}


def at_start(
    space: Space, project: str | None, *, max_tokens: int | None = None, beside: str | None = None
) -> Context:
    """The recap of a project, without what this conversation said itself."""
    return _without_marks(space.context("", max_tokens, filters=scope(project), beside=beside))


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
    text = block.text.replace(INTRODUCTION, PLAIN_INTRODUCTION, 1)
    for citation in block.citations:  # no memory has such a mark: those are made harmless
        text = text.replace(f" [{citation.mark}]", "", 1)
    return replace(block, text=text, token_count=estimate_tokens(text) if text else 0)


def _is_about(hit: Hit, asked: Collection[str]) -> bool:
    if hit.why.get("similarity"):
        return True
    return len(set(asked).intersection(stems(f"{hit.title}\n{hit.text}"))) >= STEMS_MIN

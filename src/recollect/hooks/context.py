"""What a coding agent is given unasked: a recap of its project, and what its prompt is about.

Only what was learned in that project, or in none: the rules of another project are never shown.
What tools and web pages said is left to those who ask for it. Where there is nothing to show,
nothing is printed. What a conversation was shown before is not repeated at every prompt.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recollect.models.tokens import estimate_tokens
from recollect.recall.pack import INTRODUCTION, PLAIN_INTRODUCTION, pack
from recollect.recall.recap import Recapper
from recollect.stemming import asked_stems, stems
from recollect.types.facts import Trust
from recollect.types.recall import Context, Hit

if TYPE_CHECKING:
    from recollect.memory import Memory

HOOK = "hook"
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
    memory: Memory,
    space: str,
    project: str | None,
    *,
    max_tokens: int | None = None,
    beside: str | None = None,
    reader: str = HOOK,
) -> Context:
    """The recap of a project, without what this conversation said itself."""
    asked: dict[str, Any] = {"max_tokens": max_tokens, "filters": scope(project), "beside": beside}
    recapper = Recapper(runtime=memory.runtime, store=memory.store, space=space)
    block = _without_marks(recapper.context(**asked))
    return memory.runtime.told.keep(space, block, "", asked, reader)


def at_prompt(
    memory: Memory,
    space: str,
    project: str | None,
    prompt: str,
    *,
    max_tokens: int,
    beside: str | None = None,
    shown: Collection[str] = (),
    reader: str = HOOK,
) -> Context:
    """What is known about a prompt, without what this conversation was told or said itself."""
    prompt = prompt[:PROMPT_CHARS]
    asked = asked_stems(prompt)
    if len(asked) < STEMS_MIN or _SLASH_COMMAND.match(prompt):
        return Context(text="")
    from recollect.recall.recaller import Recallers  # not where a session begins

    asked_for: dict[str, Any] = {"max_tokens": max_tokens, "max_facts": PROMPT_LINES}
    asked_for |= {"filters": scope(project), "beside": beside}
    block = Recallers(memory.runtime).of(space).context(prompt, **asked_for)
    found = [citation.hit for citation in block.citations]
    new = [hit for hit in found if hit.id not in shown and _is_about(hit, asked)]
    if len(new) < len(found):
        now = memory.runtime.now()
        left = pack(new, max_tokens=max_tokens, max_facts=PROMPT_LINES, now=now)
        block = replace(left, id=block.id, grounds=block.grounds)
    block = _without_marks(block)
    return memory.runtime.told.keep(space, block, prompt, asked_for, reader)


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

"""Pages of a generation: their names and their limits. Pure.

Everything but the summaries of sessions is bounded by the limits here, so that a run costs what
changed and not what exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recollect.documents.checking import FACTS_MAX, SOURCES_MAX
from recollect.types.facts import Source

MEMORY = "~/memory/MEMORY"
SUMMARY = "~/memory/memory_summary"
RAW = "~/memory/raw_memories"
SUMMARIES = "~/memory/rollout_summaries"
SKILLS = "~/memory/skills"

RAW_BYTES_MAX = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a document will say, and what that rests on."""

    path: str
    title: str
    description: str
    body: str
    sources: tuple[Source, ...] = ()
    facts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderLimits:
    """Limits of the handbook, the summary and the skills."""

    memory_bytes: int = 40_000
    summary_chars: int = 2_500
    lines_per_part: int = 48
    people: int = 40
    projects: int = 20
    conflicts: int = 24
    skills: int = 20
    steps: int = 12  # of one skill, and as many pitfalls
    sessions: int = 24  # that are listed of one project, and of none
    last_sessions: int = 8  # in the summary


LIMITS = RenderLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLimits:
    """Limits of what a model writes, and of what it is shown of one section, or of small ones."""

    section_tokens: int = 6_000
    group_tokens: int = 3_000
    summary_chars: int = 4_000
    memory_bytes: int = 65_536
    skill_bytes: int = 12_288
    skill_lines: int = 200


WRITTEN = WrittenLimits()


def skill_path(name: str) -> str:
    return f"{SKILLS}/{name}/SKILL"


def distinct_sources(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Places each once and in order, without the words, as many as a version may rest on."""
    places = {(each.session_id, each.seq, each.seq_to) for each in sources}
    return tuple(
        Source(session_id=session_id, seq=seq, seq_to=seq_to)
        for session_id, seq, seq_to in sorted(places)[:SOURCES_MAX]
    )


def distinct_facts(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({each for each in ids if each})[:FACTS_MAX])

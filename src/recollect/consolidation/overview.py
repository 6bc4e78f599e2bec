"""Writes memory_summary by rules: who the person is, what they want, what is open, where to look.

It is put before every conversation without being asked for: short, dense, and never a tool's word.
What holds for one project is told with its name. With nothing to tell it is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recollect.consolidation.filing import Filed, Section, believed, project_name, project_place
from recollect.consolidation.lines import label, link
from recollect.consolidation.pages import (
    MEMORY,
    SUMMARY,
    Limits,
    Page,
    Recent,
    distinct_facts,
    distinct_sources,
)
from recollect.consolidation.skills import Skill
from recollect.consolidation.telling import scope_of, words
from recollect.knowledge import FactTag, Source
from recollect.orders import commands
from recollect.topics.directory import Entity, TopicKind
from recollect.topics.subjects import place_parts

LINE_CHARS_MAX = 240
NAMES_MAX = 8  # of one line of the index
RULES_PER_PROJECT = 2
TITLE_CHARS_MAX = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    text: str
    told: tuple[Filed, ...] = ()
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """A section, and the part of the summary that is filled once it is told."""

    heading: str
    lines: tuple[_Line, ...]
    filled: float


def overview(
    filed: Sequence[Filed], skills: Sequence[Skill], recent: Sequence[Recent], limits: Limits
) -> Page:
    """The summary of all that is known."""
    told = believed(filed)
    shares = (
        _Share(heading="About the person", lines=_lines(told, (Section.ABOUT,)), filled=0.2),
        _Share(heading="Preferences and instructions", lines=_wishes(told), filled=0.45),
        _Share(heading="Projects", lines=_projects(told, skills), filled=0.58),
        _Share(heading="Open threads", lines=_lines(told, (Section.OPEN,)), filled=0.68),
        _Share(heading="What is in memory", lines=_index(told, skills, recent, limits), filled=1),
    )
    body, used = _fill(shares, limits.summary_chars)
    return Page(
        path=SUMMARY,
        title="Memory summary",
        description="Who this is about, what they want, what is open, and where to look.",
        body=body,
        sources=distinct_sources(
            source
            for each in used
            for source in (*each.sources, *(s for filed in each.told for s in filed.claim.sources))
        ),
        facts=distinct_facts(
            fact for each in used for filed in each.told for fact in filed.statement.facts
        ),
    )


def _fill(shares: Iterable[_Share], chars_max: int) -> tuple[str, list[_Line]]:
    """The sections with as many lines as their share allows; what one leaves the next may use."""
    body, used = "", []
    for share in shares:
        heading = f"{body}\n\n## {share.heading}\n" if body else f"## {share.heading}\n"
        text = heading
        for each in share.lines:
            if len(text) + 1 + len(each.text) <= share.filled * chars_max:
                text += f"\n{each.text}"
                used.append(each)
        body = text if text != heading else body
    return body, used


def _lines(filed: Iterable[Filed], sections: Sequence[Section]) -> tuple[_Line, ...]:
    return tuple(
        _Line(text=f"- {said}", told=(each,))
        for each in filed
        if each.section in sections and each.topic is None and (said := _said(each))
    )


def _wishes(filed: Sequence[Filed]) -> tuple[_Line, ...]:
    """What a person wants wherever they are; a preference of one project says so."""
    wanted = [
        each
        for each in filed
        if each.section is Section.PREFERENCES
        or (each.topic is None and each.tag in (FactTag.INSTRUCTION, FactTag.CORRECTION))
    ]
    return tuple(_Line(text=f"- {_said(each)}", told=(each,)) for each in wanted if _said(each))


def _said(filed: Filed) -> str:
    """A statement in full, or not at all: half a rule is another one."""
    scope = scope_of(filed)
    text = f"{words(filed)} ({scope})" if scope else words(filed)
    return text if len(text) <= LINE_CHARS_MAX else ""


def _projects(filed: Sequence[Filed], skills: Sequence[Skill]) -> tuple[_Line, ...]:
    found: dict[str, tuple[Entity, list[Filed]]] = {}
    for each in filed:
        if each.project is not None:
            found.setdefault(each.project.slug, (each.project, []))[1].append(each)
    return tuple(_project(project, told, skills) for project, told in found.values())


def _project(project: Entity, told: Sequence[Filed], skills: Sequence[Skill]) -> _Line:
    rules = [each for each in told if each.topic is not None and _is_rule(each)]
    kept = [each for each in rules if len(words(each)) <= LINE_CHARS_MAX][:RULES_PER_PROJECT]
    known = [link(each.page.path, each.page.title) for each in skills if each.of == project.slug]
    place, name = project_place(project), project_name(project)
    rest = " ".join([*map(words, kept), *(f"What worked: {each}." for each in known)])
    text = f"- {name} ({place})" if place else f"- {name}"
    return _Line(text=f"{text}: {rest}" if rest else text, told=tuple(kept))


def _is_rule(filed: Filed) -> bool:
    return filed.tag in (FactTag.INSTRUCTION, FactTag.CORRECTION)


def _index(
    filed: Sequence[Filed], skills: Sequence[Skill], recent: Sequence[Recent], limits: Limits
) -> tuple[_Line, ...]:
    lines: list[_Line] = []
    if filed:
        lines.append(_Line(text=f"- {link(MEMORY, 'The handbook')}: {_topics(filed)}"))
    tools = [each for each in skills if each.of is None][:NAMES_MAX]
    if tools:
        names = ", ".join(link(each.page.path, each.page.title) for each in tools)
        lines.append(_Line(text=f"- Skills: {names}"))
    latest = sorted(recent, key=lambda each: (each.day, each.path, each.title), reverse=True)
    return (*lines, *map(_session, latest[: limits.recent]))


def _topics(filed: Sequence[Filed]) -> str:
    """What the handbook tells of, by section; of people by name."""
    counted = {
        section: sum(each.section is section and each.topic is None for each in filed)
        for section in Section
    }
    told = [f"{section.value.lower()} ({count})" for section, count in counted.items() if count]
    people = dict.fromkeys(
        label(each.topic.name)
        for each in filed
        if each.topic is not None and each.topic.kind is TopicKind.PEOPLE
    )
    if people:
        more = f" and {len(people) - NAMES_MAX} more" if len(people) > NAMES_MAX else ""
        told.append(f"people: {', '.join(list(people)[:NAMES_MAX])}{more}")
    projects = {each.project.slug for each in filed if each.project}
    if projects:
        told.append("1 project" if len(projects) == 1 else f"{len(projects)} projects")
    return "; ".join(told)


def _session(recent: Recent) -> _Line:
    """A session of late. A title that reads like an order is not repeated here."""
    title = "a session" if commands(recent.title) else label(recent.title, TITLE_CHARS_MAX)
    where = f" in {label(place_parts(recent.project)[-1])}" if recent.project else ""
    return _Line(
        text=f"- {link(recent.path, f'{recent.day} {title}')}{where}",
        sources=(Source(session_id=recent.session_id, seq=0, seq_to=0),),
    )

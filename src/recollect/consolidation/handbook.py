"""Writes the handbook by rules, and with it the summary and the skills: what MEMORY says. Pure.

One statement per line, each once, the best first; what holds for one project stands below it; what
does not agree stands side by side. What does not fit is counted. Same input, same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from recollect.consolidation.artifacts import raw_memories
from recollect.consolidation.filing import (
    Filed,
    Section,
    file_away,
    newest_first,
    project_name,
    project_place,
)
from recollect.consolidation.lines import label, link, shown
from recollect.consolidation.overview import overview
from recollect.consolidation.pages import (
    LIMITS,
    MEMORY,
    Limits,
    Page,
    Recent,
    distinct_facts,
    distinct_sources,
)
from recollect.consolidation.skills import Skill, skills_of
from recollect.consolidation.telling import line
from recollect.generation import Standing
from recollect.topics.directory import Entity, TopicKind
from recollect.topics.grouping import Topic

INTRODUCTION = (
    "What is known here, one statement per line, with the sessions that bear it out: the most "
    "used first, then the newest."
)
NOTHING_KNOWN = "Nothing is known yet."
CONFLICTS = "Conflicts"
TOPIC_CHARS_MAX = 100

_BEFORE_PEOPLE = (Section.ABOUT, Section.PREFERENCES, Section.DONE, Section.DECISIONS)
_BEHIND_PROJECTS = (Section.FAILED, Section.OPEN)
_OF_A_PROJECT = (Section.DONE, Section.FAILED, Section.OTHER)
_CLOSING_BYTES = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """Lines that stand together or not at all, and what they say."""

    text: str
    told: tuple[Filed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Entries below a heading, and how many did not fit. `lead` stands above them."""

    heading: str
    entries: tuple[_Entry, ...]
    under: str = ""  # a heading of its own
    lead: str = ""
    left: int = 0

    @property
    def frame_bytes(self) -> int:
        """What it takes beside its entries, at most."""
        return len(f"{self.heading}{self.under}{self.lead}".encode()) + 80


def handbook(
    standings: Sequence[Standing],
    places: Mapping[str, str],
    recent: Sequence[Recent],
    *,
    today: date | None = None,
    limits: Limits = LIMITS,
) -> tuple[Page, ...]:
    """MEMORY, memory_summary and a page per skill.

    `places` are the pages of the selected sessions, and `recent` those to be named in the index.
    """
    filed = file_away(standings, places, today)
    skills = skills_of(filed, places, limits)
    summary = overview(filed, skills, recent, limits)
    return (_memory(filed, skills, places, limits), summary, *(each.page for each in skills))


def emptied() -> tuple[Page, ...]:
    """What the pages say when there is nothing: the summary is empty, so that none is injected."""
    return (*handbook((), {}, ()), raw_memories((), places={}))


def _memory(
    filed: Sequence[Filed], skills: Sequence[Skill], places: Mapping[str, str], limits: Limits
) -> Page:
    parts = _fitting(list(_parts(filed, skills, places, limits)), limits)
    told = [each for part in parts for entry in part.entries for each in entry.told]
    blocks = [INTRODUCTION, *_blocks(parts)] if filed else [NOTHING_KNOWN]
    return Page(
        path=MEMORY,
        title="Memory",
        description="The handbook: what is known, how things are done here, what failed and why.",
        body="\n\n".join(blocks),
        sources=distinct_sources(source for each in told for source in each.claim.sources),
        facts=distinct_facts(fact for each in told for fact in each.statement.facts),
    )


def _parts(
    filed: Sequence[Filed], skills: Sequence[Skill], places: Mapping[str, str], limits: Limits
) -> Iterable[_Part]:
    agreed = [each for each in filed if each.dispute is None]
    general = [each for each in agreed if each.topic is None]
    by_section = {
        section: _part(
            [each for each in general if each.section is section], places, heading=section.value
        )
        for section in Section
    }
    yield from (by_section[section] for section in _BEFORE_PEOPLE)
    yield from _people(agreed, places, limits)
    yield from _projects(agreed, skills, places, limits)
    yield from (by_section[section] for section in _BEHIND_PROJECTS)
    yield _conflicts(filed, places, limits)
    yield by_section[Section.OTHER]


def _part(filed: Iterable[Filed], places: Mapping[str, str], *, heading: str) -> _Part:
    entries = (_Entry(text=line(each, places), told=(each,)) for each in filed)
    return _Part(heading=heading, entries=tuple(entries))


def _people(filed: Sequence[Filed], places: Mapping[str, str], limits: Limits) -> Iterable[_Part]:
    people = list(_by_topic(filed, TopicKind.PEOPLE))
    for topic, told in people[: limits.people]:
        about = f" – {label(topic.about[:1].lower() + topic.about[1:])}" if topic.about else ""
        part = _part(told, places, heading=Section.PEOPLE.value)
        yield replace(part, under=f"{label(topic.name)}{about}")
    yield _untold(people[limits.people :])


def _projects(
    filed: Sequence[Filed], skills: Sequence[Skill], places: Mapping[str, str], limits: Limits
) -> Iterable[_Part]:
    projects = list(_by_topic(filed, TopicKind.PROJECTS))
    for topic, told in projects[: limits.projects]:
        lead = _lead(topic, skills)
        for section in _OF_A_PROJECT:
            within = [each for each in told if each.section is section]
            if within:
                part = _part(within, places, heading=f"Project {project_name(_entity(topic))}")
                yield replace(part, under=section.value, lead=lead)
                lead = ""
    yield _untold(projects[limits.projects :])


def _entity(topic: Topic) -> Entity:
    return Entity(kind=topic.kind, slug=topic.slug, name=topic.name, place=topic.about)


def _lead(topic: Topic, skills: Sequence[Skill]) -> str:
    """Where a project is, and the skill that was made of what worked there."""
    where = project_place(_entity(topic))
    known = [link(each.page.path, each.page.title) for each in skills if each.of == topic.slug]
    told = [f"It is in {where}."] if where else []
    return " ".join([*told, *(f"What worked there: {each}." for each in known)])


def _by_topic(filed: Sequence[Filed], kind: TopicKind) -> Iterable[tuple[Topic, list[Filed]]]:
    """Topics in the order of the best that is told of them."""
    found: dict[str, tuple[Topic, list[Filed]]] = {}
    for each in filed:
        if each.topic is not None and each.topic.kind is kind:
            found.setdefault(each.topic.slug, (each.topic, []))[1].append(each)
    return found.values()


def _untold(topics: Sequence[tuple[Topic, list[Filed]]]) -> _Part:
    """What is known of those that there is no room for."""
    return _Part(heading="", entries=(), left=sum(len(told) for _, told in topics))


def _conflicts(filed: Sequence[Filed], places: Mapping[str, str], limits: Limits) -> _Part:
    on: dict[tuple[str, str], list[Filed]] = {}
    for each in filed:
        if each.dispute is not None:
            project = each.project.slug if each.project else ""
            on.setdefault((each.dispute, project), []).append(each)
    entries = []
    for (topic, _), told in on.items():
        newest = sorted(told, key=lambda each: newest_first(each.statement))
        newest = newest[: limits.lines_per_part]
        lines = [f"  {line(each, places, is_at_home=False)}" for each in newest]
        about = shown(topic.replace(":", " "), TOPIC_CHARS_MAX) or "one thing"
        entries.append(_Entry(text="\n".join([f"- On {about}:", *lines]), told=tuple(newest)))
    kept = entries[: limits.conflicts]
    return _Part(
        heading=CONFLICTS,
        lead="These do not agree, and nothing says which is right; the newer stands first.",
        entries=tuple(kept),
        left=sum(len(entry.told) for entry in entries[limits.conflicts :]),
    )


def _fitting(parts: Sequence[_Part], limits: Limits) -> list[_Part]:
    """The parts with as many entries as there is room for: of each its first, then its second …"""
    rounds = sorted(
        (turn, number)
        for number, part in enumerate(parts)
        for turn in range(min(len(part.entries), limits.lines_per_part))
    )
    room = limits.memory_bytes - len(INTRODUCTION.encode()) - _CLOSING_BYTES
    kept = dict.fromkeys(range(len(parts)), 0)
    for turn, number in rounds:
        part = parts[number]
        size = len(part.entries[turn].text.encode()) + 1 + (part.frame_bytes if turn == 0 else 0)
        if size <= room and kept[number] == turn:
            room -= size
            kept[number] += 1
    return [_shortened(part, kept[number]) for number, part in enumerate(parts)]


def _shortened(part: _Part, count: int) -> _Part:
    left = sum(len(entry.told) for entry in part.entries[count:])
    return replace(part, entries=part.entries[:count], left=part.left + left)


def _blocks(parts: Sequence[_Part]) -> Iterable[str]:
    heading = ""
    for part in parts:
        if not part.entries:
            continue
        if part.heading != heading:
            heading = part.heading
            yield f"## {heading}"
        if part.lead:
            yield part.lead
        if part.under:
            yield f"### {part.under}"
        yield "\n".join(entry.text for entry in part.entries)
        if part.left:
            yield f"{part.left:,} more {'is' if part.left == 1 else 'are'} left out here."
    left = sum(part.left for part in parts if not part.entries)
    if left:
        yield f"{left:,} {'statement is' if left == 1 else 'statements are'} left out altogether."

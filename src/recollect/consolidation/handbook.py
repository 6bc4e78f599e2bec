"""Renders MEMORY, memory_summary and the skills from what is known. Pure: same input, same bytes.

One statement per line, each once, the most used first, then the newest; the statements of a project
are below its heading, those that disagree side by side. A page names the facts and sessions it
rests on; the lines of MEMORY give the day, its lists of sessions where to read more. What does not
fit is counted. The summary is put before conversations unasked: short, without links, and never
from a tool.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from types import MappingProxyType

from recollect.consolidation.evidence import SummarizedSession
from recollect.consolidation.pages import (
    LIMITS,
    MEMORY,
    SUMMARY,
    Page,
    RenderLimits,
    distinct_facts,
    distinct_sources,
    skill_path,
)
from recollect.consolidation.statements import (
    Section,
    Statement,
    believed,
    file_away,
    project_name,
    project_place,
    without_place,
)
from recollect.extraction.rules.wording import ascii_slug
from recollect.pages.markdown import label, link, shown
from recollect.quarantine import commands
from recollect.stemming import search_terms
from recollect.topics.directory import Entity, TopicKind
from recollect.topics.english import RULE_TAGS
from recollect.topics.subjects import place_parts
from recollect.types.facts import FactTag, Source, Trust
from recollect.types.generations import Standing

INTRODUCTION = (
    "What is known here, one statement per line, with the day it was said: the most used first, "
    "then the newest."
)
NOTHING_KNOWN = "Nothing is known yet."
CONFLICTS, SESSIONS, INDEX = "Conflicts", "Sessions", "In the handbook"
DISAGREE = "These do not agree, and nothing says which is right; the newer stands first."
PROJECT = "Project "  # before its name, as a heading
TOPIC_CHARS_MAX = 100
SUMMARY_LINE_CHARS_MAX = 240  # whatever is longer is left out: half a rule is another one
SUMMARY_TITLE_CHARS_MAX = 80
NAMES_MAX = 8  # of one line of the summary

_BEFORE_PEOPLE = (Section.ABOUT, Section.PREFERENCES, Section.DONE, Section.DECISIONS)
_BEHIND_PROJECTS = (Section.FAILED, Section.OPEN)
_OF_A_PROJECT = (Section.DONE, Section.FAILED, Section.OTHER)
_CLOSING_BYTES = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """Lines that stand together or not at all, and what they rest on."""

    text: str
    statements: tuple[Statement, ...] = ()
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _PagePart:
    """Entries below a heading, and how many statements did not fit. `lead` stands above them.

    `sessions` are all that belong there, also those that are not listed.
    """

    heading: str
    entries: tuple[_Entry, ...]
    under: str = ""  # a heading of its own
    lead: str = ""
    left: int = 0
    sessions: tuple[SummarizedSession, ...] = ()

    @property
    def frame_bytes(self) -> int:
        """What it takes beside its entries, at most."""
        return len(f"{self.heading}{self.under}{self.lead}".encode()) + 80

    def shortened(self, count: int) -> _PagePart:
        left = sum(len(entry.statements) for entry in self.entries[count:])
        return replace(self, entries=self.entries[:count], left=self.left + left)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandbookSection:
    """A part of the handbook: what rules say there, and all that could be said.

    `name` is a heading of MEMORY, or the path of a page that is one part. `entries` are what the
    text rests on; `statements` and `sessions` are all that belong there, the best and newest first.
    """

    name: str
    title: str
    text: str
    description: str = ""
    entries: tuple[_Entry, ...] = ()
    statements: tuple[Statement, ...] = ()
    sessions: tuple[SummarizedSession, ...] = ()
    tags: tuple[str, ...] = ()

    def page(self, written: WrittenText | None) -> Page:
        """The page that it is; what was written for it rests on all that belongs there."""
        if written is None:
            text, entries, description = self.text, self.entries, self.description
        else:
            text, entries = written.text, _entries_of(self.statements, self.sessions)
            description = written.description or self.description
        return _page(self.name, self.title, description, text, entries, *self.tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenText:
    """What a model wrote for a section, in place of what rules say there."""

    text: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handbook:
    """MEMORY by sections, memory_summary and the skills, as rules have them.

    `drafts` are skills that rules see too little for.
    """

    sections: tuple[HandbookSection, ...]
    summary: HandbookSection
    skills: tuple[HandbookSection, ...] = ()
    drafts: tuple[HandbookSection, ...] = ()
    left: int = 0  # statements of sections for which there is no room

    def pages(self, written: Mapping[str, WrittenText] = MappingProxyType({})) -> tuple[Page, ...]:
        """Every page, with what was written for some of the sections."""
        skills = (*self.skills, *(each for each in self.drafts if each.name in written))
        kept = (each for each in skills if each.name not in written or written[each.name].text)
        whole = (each.page(written.get(each.name)) for each in (self.summary, *kept))
        return (self._memory(written), *whole)

    def _memory(self, written: Mapping[str, WrittenText]) -> Page:
        blocks, entries = list[str](), list[_Entry]()
        is_written = False
        for each in self.sections:
            given = written.get(each.name)
            is_written = is_written or given is not None
            text = each.text if given is None else given.text
            blocks += [f"## {each.name}", text] if text else []
            entries += each.entries
        if self.left:
            noun = "statement is" if self.left == 1 else "statements are"
            blocks.append(f"{self.left:,} {noun} left out altogether.")
        return _page(
            MEMORY,
            "Memory",
            "The handbook: what is known, how things are done here, what failed and why.",
            "\n\n".join([INTRODUCTION, *blocks]) if blocks else NOTHING_KNOWN,
            () if is_written else entries,  # none: it rests on all that was read
        )


def _entries_of(
    statements: Iterable[Statement], sessions: Iterable[SummarizedSession]
) -> tuple[_Entry, ...]:
    known = (_Entry(text="", statements=(each,)) for each in statements)
    return (*known, *(_Entry(text="", sources=(each.source,)) for each in sessions))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the pages are made of."""

    statements: Sequence[Statement]
    skills: Sequence[_Skill]
    sessions: Sequence[SummarizedSession]  # the newest first
    limits: RenderLimits
    by_subject: bool = False

    def by_topic(self, kind: TopicKind) -> list[tuple[Entity, list[Statement]]]:
        """Topics with what is known of them, in the order of the best of that."""
        found: dict[str, tuple[Entity, list[Statement]]] = {}
        for each in self.statements:
            if each.dispute is None and each.topic is not None and each.topic.kind is kind:
                found.setdefault(each.topic.slug, (each.topic, []))[1].append(each)
        return list(found.values())

    def skills_of(self, topic: Entity) -> list[HandbookSection]:
        return [each.section for each in self.skills if each.of == topic.slug]


def handbook(
    standings: Iterable[Standing],
    selected: Collection[str],
    sessions: Iterable[SummarizedSession] = (),
    *,
    today: date | None = None,
    limits: RenderLimits = LIMITS,
    by_subject: bool = False,
) -> Handbook:
    """What the pages of memory say by rules, section by section.

    `selected` are the sessions that statements may rest on, `sessions` those that may be listed;
    `by_subject` those of no project have sections by what they are about.
    """
    statements = file_away(standings, selected, today)
    newest = sorted(sessions, key=lambda each: (each.day, each.path, each.title), reverse=True)
    skills, drafts = _skills(statements, limits)
    known = _Known(
        statements=statements,
        skills=skills,
        sessions=newest,
        limits=limits,
        by_subject=by_subject,
    )
    trusted = replace(known, statements=believed(statements))
    sections, left = _sections(known)
    return Handbook(
        sections=sections,
        summary=_summary(trusted),
        skills=tuple(each.section for each in skills),
        drafts=tuple(each.section for each in drafts),
        left=left,
    )


def _page(
    path: str, title: str, description: str, body: str, entries: Sequence[_Entry], *tags: str
) -> Page:
    """A page that rests on what its entries rest on."""
    statements = [each for entry in entries for each in entry.statements]
    own = (source for entry in entries for source in entry.sources)
    return Page(
        path=path,
        title=title,
        description=description,
        body=body,
        sources=distinct_sources([*own, *(s for each in statements for s in each.sources)]),
        facts=distinct_facts(fact for each in statements for fact in each.facts),
        tags=tags,
    )


# MEMORY


def _sections(known: _Known) -> tuple[tuple[HandbookSection, ...], int]:
    """What stands below each heading, and how many statements have no room at all."""
    parts = list(_parts(known))
    fitting = _fitting(parts, known.limits)
    by_heading: dict[str, list[tuple[_PagePart, _PagePart]]] = {}
    for whole, fitted in zip(parts, fitting, strict=True):
        if whole.heading and (whole.entries or whole.sessions):
            by_heading.setdefault(whole.heading, []).append((whole, fitted))
    left = sum(part.left for part in fitting if not part.entries)
    return tuple(_section(heading, each) for heading, each in by_heading.items()), left


def _section(heading: str, parts: Sequence[tuple[_PagePart, _PagePart]]) -> HandbookSection:
    fitted = [part for _, part in parts if part.entries]
    return HandbookSection(
        name=heading,
        title=heading,
        text="\n\n".join(block for part in fitted for block in _blocks(part)),
        entries=tuple(entry for part in fitted for entry in part.entries),
        statements=tuple(
            each for part, _ in parts for entry in part.entries for each in entry.statements
        ),
        sessions=tuple(each for part, _ in parts for each in part.sessions),
    )


def _parts(known: _Known) -> Iterable[_PagePart]:
    general = [each for each in known.statements if each.dispute is None and each.topic is None]

    def of(section: Section) -> _PagePart:
        return _part([each for each in general if each.section is section], heading=section.value)

    yield from map(of, _BEFORE_PEOPLE)
    yield from _people(known)
    projects = known.by_topic(TopicKind.PROJECTS)
    rest = list(known.sessions)
    for topic, statements in projects[: known.limits.projects]:
        own = [each for each in rest if _is_of(each, topic)]
        rest = [each for each in rest if each not in own]
        yield from _project(topic, statements, own, known)
    yield _left_out(projects[known.limits.projects :])
    yield from map(of, _BEHIND_PROJECTS)
    yield _conflicts(known)
    yield of(Section.OTHER)
    yield from _other_sessions(rest, known)


def _part(statements: Iterable[Statement], *, heading: str, under: str = "") -> _PagePart:
    entries = (_Entry(text=each.line(), statements=(each,)) for each in statements)
    return _PagePart(heading=heading, under=under, entries=tuple(entries))


def _people(known: _Known) -> Iterable[_PagePart]:
    people, limit = known.by_topic(TopicKind.PEOPLE), known.limits.people
    for topic, statements in people[:limit]:
        yield _part(statements, heading=Section.PEOPLE.value, under=_who(topic))
    yield _left_out(people[limit:])


def _who(topic: Entity) -> str:
    about = label(re.sub(r"^The (?=user\b)", "the ", topic.about))  # "Ana's brother" stays
    return f"{label(topic.name)} – {about}" if about else label(topic.name)


def _project(
    topic: Entity,
    statements: Sequence[Statement],
    sessions: Sequence[SummarizedSession],
    known: _Known,
) -> Iterable[_PagePart]:
    """What is done in a project, what failed there, what else is known, and its sessions."""
    heading, where = f"{PROJECT}{project_name(topic)}", project_place(topic)
    skills = [link(each.name, each.title) for each in known.skills_of(topic)]
    place = [f"It is in {where}."] if where else []
    lead = " ".join([*place, *(f"What worked there: {each}." for each in skills)])
    for section in _OF_A_PROJECT:
        within = [each for each in statements if each.section is section]
        if within:
            yield replace(_part(within, heading=heading, under=section.value), lead=lead)
            lead = ""
    yield _sessions(sessions, known.limits, heading=heading, under=SESSIONS)


def _is_of(session: SummarizedSession, topic: Entity) -> bool:
    project = session.project or ""
    return bool(project) and place_parts(project) == place_parts(topic.about or topic.name)


def _sessions(
    sessions: Sequence[SummarizedSession], limits: RenderLimits, *, heading: str, under: str = ""
) -> _PagePart:
    entries = (
        _Entry(
            text=f"- {link(each.path, _named(each))}{'' if under else _where(each)}",
            sources=(each.source,),
        )
        for each in sessions[: limits.sessions]
    )
    return _PagePart(heading=heading, under=under, entries=tuple(entries), sessions=tuple(sessions))


def _other_sessions(rest: Sequence[SummarizedSession], known: _Known) -> Iterable[_PagePart]:
    """The sessions of no project; for a model, which writes by part, by what they are about."""
    on: dict[str, list[SummarizedSession]] = {}
    for each in rest if known.by_subject else ():
        if each.subject:
            on.setdefault(each.subject, []).append(each)
    several = {subject: each for subject, each in on.items() if len(each) > 1}
    for subject, sessions in sorted(several.items()):
        yield _sessions(sessions, known.limits, heading=f"{SESSIONS} on {subject}")
    left = [each for each in rest if each.subject not in several]
    yield _sessions(left, known.limits, heading=SESSIONS)


def _named(session: SummarizedSession, chars_max: int = TOPIC_CHARS_MAX) -> str:
    """A session by its day and title. One that reads like an order is not repeated."""
    title = "a session" if commands(session.title) else label(session.title, chars_max)
    return f"{session.day} {title}"


def _where(session: SummarizedSession) -> str:
    return f" in {label(place_parts(session.project)[-1])}" if session.project else ""


def _left_out(topics: Sequence[tuple[Entity, list[Statement]]]) -> _PagePart:
    """What is known of those that there is no room for."""
    return _PagePart(heading="", entries=(), left=sum(len(known) for _, known in topics))


def _conflicts(known: _Known) -> _PagePart:
    on: dict[tuple[str, str], list[Statement]] = {}
    for each in known.statements:
        if each.dispute is not None:
            project = each.project.slug if each.project else ""
            on.setdefault((each.dispute, project), []).append(each)
    entries = []
    for (topic, _), statements in on.items():
        newest = sorted(statements, key=lambda each: each.newest_first)
        newest = newest[: known.limits.lines_per_part]
        lines = [f"  {each.line(is_at_home=False)}" for each in newest]
        about = shown(topic.replace(":", " "), TOPIC_CHARS_MAX) or "one thing"
        text = "\n".join([f"- On {about}:", *lines])
        entries.append(_Entry(text=text, statements=tuple(newest)))
    part = _PagePart(heading=CONFLICTS, lead=DISAGREE, entries=tuple(entries))
    return part.shortened(known.limits.conflicts)


def _fitting(parts: Sequence[_PagePart], limits: RenderLimits) -> list[_PagePart]:
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
    return [part.shortened(kept[number]) for number, part in enumerate(parts)]


def _blocks(part: _PagePart) -> Iterable[str]:
    if part.lead:
        yield part.lead
    if part.under:
        yield f"### {part.under}"
    yield "\n".join(entry.text for entry in part.entries)
    if part.left:
        yield f"{part.left:,} more {'is' if part.left == 1 else 'are'} left out here."


# memory_summary


def _summary(known: _Known) -> HandbookSection:
    """The short of it: sections that are filled one after the other, each up to its share."""
    general = [each for each in known.statements if each.topic is None]
    shares = (
        ("About the person", _facts(general, Section.ABOUT), 0.2),
        ("People", _named_topics(known, TopicKind.PEOPLE), 0.35),
        ("Projects", _named_topics(known, TopicKind.PROJECTS), 0.5),
        ("Preferences and instructions", _wishes(known.statements), 0.7),
        ("Open threads", _facts(general, Section.OPEN), 0.8),
        ("Last sessions", _last_sessions(known), 0.92),
        (INDEX, _index(known), 1.0),
    )
    body, used = "", list[_Entry]()
    for heading, entries, share in shares:
        if heading == INDEX and sum(len(each.statements) for each in used) == len(known.statements):
            break  # all of it stands here
        text = opening = f"{body}\n\n## {heading}\n" if body else f"## {heading}\n"
        for each in entries:
            if len(text) + 1 + len(each.text) <= share * known.limits.summary_chars:
                text += f"\n{each.text}"
                used.append(each)
        body = body if text == opening else text
    description = "Who this is about, what they want, what is open, and what happened last."
    return HandbookSection(
        name=SUMMARY,
        title="Memory summary",
        text=body,
        description=description,
        entries=tuple(used),
        statements=tuple(known.statements),
        sessions=tuple(known.sessions[: known.limits.sessions]),
    )


def _facts(statements: Iterable[Statement], section: Section) -> Iterable[_Entry]:
    return _entries(each for each in statements if each.section is section)


def _wishes(statements: Iterable[Statement]) -> Iterable[_Entry]:
    """What a person wants wherever they are; a preference of one project says so."""
    return _entries(
        each
        for each in statements
        if each.section is Section.PREFERENCES or (each.topic is None and each.tag in RULE_TAGS)
    )


def _entries(statements: Iterable[Statement]) -> Iterable[_Entry]:
    for each in statements:
        text = f"{each.words()} ({each.scope})" if each.scope else each.words()
        if len(text) <= SUMMARY_LINE_CHARS_MAX:
            yield _Entry(text=f"- {text}", statements=(each,))


def _named_topics(known: _Known, kind: TopicKind) -> Iterable[_Entry]:
    """A line for each person with the best of what is known; of a project its rules and skill."""
    is_person = kind is TopicKind.PEOPLE
    for topic, statements in known.by_topic(kind):
        place = "" if is_person else project_place(topic)
        name = _who(topic) if is_person else project_name(topic)
        name = f"{name} ({place})" if place else name
        wanted = [each for each in statements if is_person or each.tag in RULE_TAGS]
        kept, text = list[Statement](), ""
        # What is said of somebody reads better here than what they said.
        for each in sorted(wanted, key=lambda one: '"' in one.claim.text):
            if len(text) + len(each.words()) <= SUMMARY_LINE_CHARS_MAX:
                kept, text = [*kept, each], f"{text} {each.words()}"
        text += "".join(f" What worked: {each.title}." for each in known.skills_of(topic))
        if text or not is_person:
            yield _Entry(text=f"- {name}:{text}" if text else f"- {name}", statements=tuple(kept))


def _last_sessions(known: _Known) -> Iterable[_Entry]:
    for each in known.sessions[: known.limits.last_sessions]:
        text = f"- {_named(each, SUMMARY_TITLE_CHARS_MAX)}{_where(each)}"
        yield _Entry(text=text, sources=(each.source,))


def _index(known: _Known) -> Iterable[_Entry]:
    """What the handbook is about, by section; of people and skills the names."""
    counted = {
        section: sum(each.section is section and each.topic is None for each in known.statements)
        for section in Section
    }
    parts = [f"{section.value.lower()} ({count})" for section, count in counted.items() if count]
    people = [label(topic.name) for topic, _ in known.by_topic(TopicKind.PEOPLE)]
    parts += [f"people: {_names(people)}"] if people else []
    projects = len({each.project.slug for each in known.statements if each.project})
    parts += [f"{projects:,} project{'' if projects == 1 else 's'}"] if projects else []
    skills = [each.section.title for each in known.skills]
    parts += [f"skills: {_names(skills)}"] if skills else []
    if parts:
        text = "; ".join(parts)
        yield _Entry(text=f"- {text[:1].upper()}{text[1:]}.")


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_MAX:,} more" if len(names) > NAMES_MAX else ""
    return f"{', '.join(names[:NAMES_MAX])}{more}"


# skills

SKILL_NAME_CHARS_MAX = 64
STEP_SESSIONS_MIN = 2  # that a procedure worked in
STEPS_MIN = 2  # of a skill, or
SKILL_SESSIONS_MIN = 3
KINDS_MAX = 6

_CODE = re.compile(r"`([^`\n]+)`")
_TOOL = re.compile(r"[a-z0-9][a-z0-9._+-]{0,30}")
_NOT_TOOLS = frozenset({"sudo", "env", "time", "nohup", "cd"})
# What procedures do, in the order in which one does them.
_KINDS = ("install", "build", "types", "lint", "test", "migrate", "run", "deploy")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Skill:
    """A skill and what it is of: a project by its slug; none: a tool."""

    section: HandbookSection
    of: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Craft:
    """Procedures of one project, or with one tool where no project is named."""

    project: Entity | None
    tool: str
    steps: tuple[Statement, ...]

    @property
    def key(self) -> tuple[str, str]:
        return (self.project.slug, "") if self.project else ("", self.tool)

    @property
    def sessions(self) -> frozenset[str]:
        return frozenset(each for step in self.steps for each in step.sessions)

    @property
    def place(self) -> str:
        return self.project.about if self.project else ""

    @property
    def by_use(self) -> tuple[int, int, str, str]:
        usage = sum(step.usage for step in self.steps)
        return -usage, -len(self.sessions), self.place, self.tool

    @property
    def name(self) -> str:
        if self.project is None:
            return f"using-{_slug(self.tool)}"
        return f"working-in-{_slug(project_name(self.project)) or self.digits}"

    @property
    def digits(self) -> str:
        text = self.place or (self.project.slug if self.project else self.tool)
        return sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]

    @property
    def where(self) -> str:
        if self.project is None:
            return f"working with {label(self.tool)}"
        name, place = project_name(self.project), project_place(self.project)
        return f"working in {name} ({place})" if place else f"working in {name}"

    def is_pitfall(self, lesson: Statement) -> bool:
        """Whether a lesson is about the same project or tool, and about the same commands."""
        known = {word for step in self.steps for word in _command_words(step, self.place)}
        return (
            (lesson.project.slug if lesson.project else "")
            == (self.project.slug if self.project else "")
            and bool(known.intersection(_command_words(lesson, self.place)))
            and (self.project is not None or tool_of(lesson.claim.text) == self.tool)
        )


def _skills(
    statements: Sequence[Statement], limits: RenderLimits
) -> tuple[list[_Skill], list[_Skill]]:
    """The skills that procedures come to; of too many those that were of most use. And drafts.

    A draft is one of which no procedure is known to have worked twice: a model may see more.
    """
    lessons = [each for each in statements if each.tag is FactTag.LESSON and each.dispute is None]
    worked = [each for each in statements if _is_done(each)]
    repeated = (each for each in worked if len(each.sessions) >= STEP_SESSIONS_MIN)
    ready = [
        each
        for each in _crafts(repeated)
        if len(each.steps) >= STEPS_MIN or len(each.sessions) >= SKILL_SESSIONS_MIN
    ]
    own = {each.key for each in ready}
    done = {each.key: each for each in _crafts(worked) if len(each.sessions) > 1}
    drafts = (each for each in done.values() if each.key not in own)

    def made(crafts: Iterable[_Craft]) -> list[_Skill]:
        best = sorted(crafts, key=lambda craft: craft.by_use)[: limits.skills]
        count = Counter(craft.name for craft in best)
        named = {
            craft.name if count[craft.name] == 1 else f"{craft.name}-{craft.digits}": craft
            for craft in best
        }
        return [
            _Skill(
                section=_skill_section(
                    name, craft, done.get(craft.key, craft).steps, lessons, limits
                ),
                of=craft.project.slug if craft.project else None,
            )
            for name, craft in sorted(named.items())
        ]

    return made(ready), made(each for each in drafts if len(each.steps) >= STEPS_MIN)


def _crafts(statements: Iterable[Statement]) -> list[_Craft]:
    found: dict[tuple[str, str], list[Statement]] = {}
    projects: dict[str, Entity] = {}
    for each in statements:
        if each.project is not None:
            projects[each.project.slug] = each.project
            found.setdefault((each.project.slug, ""), []).append(each)
        elif tool := tool_of(each.claim.text):
            found.setdefault(("", tool), []).append(each)
    return [
        _Craft(project=projects.get(slug), tool=tool, steps=tuple(sorted(steps, key=_by_kind)))
        for (slug, tool), steps in found.items()
    ]


def _is_done(statement: Statement) -> bool:
    is_done = statement.tag is FactTag.PROCEDURE and statement.dispute is None
    return is_done and (
        statement.claim.trust is Trust.USER
        or (statement.claim.trust is Trust.AGENT and not commands(statement.claim.text))
    )


def tool_of(text: str) -> str:
    """The program of the first command that a text quotes; empty if it quotes none."""
    code = _CODE.search(text)
    for word in code[1].split() if code else ():
        name = word.replace("\\", "/").rpartition("/")[2].casefold()
        if "=" in word or name in _NOT_TOOLS:
            continue
        return name if _TOOL.fullmatch(name) else ""
    return ""


def _kind(statement: Statement) -> str:
    return next((tag for tag in statement.claim.tags if tag in _KINDS), "")


def _by_kind(statement: Statement) -> tuple[int, tuple[int, float, int, str]]:
    kind = _kind(statement)
    return _KINDS.index(kind) if kind else len(_KINDS), statement.best_first


def _slug(text: str) -> str:
    longest = SKILL_NAME_CHARS_MAX - len("working-in-") - 9
    return ascii_slug(text)[:longest].strip("-")


def _command_words(statement: Statement, place: str) -> list[str]:
    """The words of the commands that a statement quotes, else all its words."""
    text = without_place(statement.claim.text, place)
    return search_terms(" ".join(_CODE.findall(text)) or text)


def _skill_section(
    name: str,
    craft: _Craft,
    done: Sequence[Statement],
    lessons: Sequence[Statement],
    limits: RenderLimits,
) -> HandbookSection:
    pitfalls = [each for each in lessons if craft.is_pitfall(each)]
    parts = [craft.steps[: limits.steps], pitfalls[: limits.steps]]
    steps, failed = ("\n".join(each.line() for each in lines) for lines in parts)
    blocks = [f"## When\n\nUse it when {craft.where}.", f"## Steps\n\n{steps}"]
    blocks += [f"## Pitfalls\n\n{failed}"] if failed else []
    kinds = list(dict.fromkeys(kind for kind in map(_kind, craft.steps) if kind))[:KINDS_MAX]
    what = f"{', '.join(kinds).capitalize()}: " if kinds else ""
    count = "1 procedure" if len(craft.steps) == 1 else f"{len(craft.steps)} procedures"
    return HandbookSection(
        name=skill_path(name),
        title=name,
        text="\n\n".join(blocks),
        description=(
            f"Use when {craft.where}. {what}{count} that worked in {len(craft.sessions)} sessions."
        ),
        entries=_entries_of((each for lines in parts for each in lines), ()),
        statements=(*done, *(each for each in pitfalls if each not in done)),
        tags=("skill",),
    )

"""Files what is known where the handbook has it: each statement once, by topic and by scope. Pure.

The topics are those that the pages of agents have. What holds for one project stays with it; what
a tool wants done is left out; live statements on one thing that do not agree are told as disputed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date
from enum import StrEnum

from recollect.consolidation.lines import label, shown
from recollect.extraction.grounding import rank
from recollect.generation import Standing
from recollect.knowledge import Fact, FactTag, Trust, content_key
from recollect.orders import commands, is_quarantined
from recollect.topics.claims import Claim, claims_of, due_on, merged
from recollect.topics.directory import Directory, Entity, TopicKind, directory_of
from recollect.topics.grouping import Topic, group
from recollect.topics.subjects import page_slug, tag_of

NAME_WORDS_MAX = 10
PLACE_CHARS_MAX = 200


class Section(StrEnum):
    """The parts of a handbook, as they are headed."""

    ABOUT = "About the person"
    PREFERENCES = "Preferences"
    DONE = "How things are done"
    DECISIONS = "Decisions"
    PEOPLE = "People"
    FAILED = "What failed, and what fixed it"
    OPEN = "Open threads"
    OTHER = "Other"


_SECTIONS = {
    TopicKind.PROFILE: Section.ABOUT,
    TopicKind.PREFERENCES: Section.PREFERENCES,
    TopicKind.DECISIONS: Section.DECISIONS,
    TopicKind.PEOPLE: Section.PEOPLE,
    TopicKind.OPEN_THREADS: Section.OPEN,
}
_BY_TAG = {
    FactTag.INSTRUCTION: Section.DONE,
    FactTag.PROCEDURE: Section.DONE,
    FactTag.LESSON: Section.FAILED,
    FactTag.CORRECTION: Section.FAILED,
}
_TAGGED = frozenset({TopicKind.PREFERENCES, TopicKind.PROJECTS, TopicKind.OTHER})
# What is said of the user holds wherever it was said.
_EVERYWHERE = frozenset({TopicKind.PROFILE, TopicKind.PEOPLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A claim with the facts that make it, and how often they were of use."""

    claim: Claim
    key: str  # what makes it the same as another
    usage: int
    facts: tuple[str, ...]

    @property
    def sessions(self) -> tuple[str, ...]:
        return tuple(sorted({source.session_id for source in self.claim.sources}))

    @property
    def day(self) -> date:
        return self.claim.at.astimezone(UTC).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """A statement and where it stands.

    `topic` is that of a person or a project with a section of its own. `project` is what it holds
    for, none: everywhere. `dispute` is what it is about where another says otherwise.
    """

    statement: Statement
    section: Section
    tag: FactTag | None
    topic: Topic | None = None
    project: Entity | None = None
    dispute: str | None = None

    @property
    def claim(self) -> Claim:
        return self.statement.claim


def file_away(
    standings: Iterable[Standing], places: Mapping[str, str], today: date | None = None
) -> list[Filed]:
    """All that may be told, the best first: what was of use most often, then what is newest.

    `places` are the pages of the sessions that are selected. What only others bore out is gone.
    What was to be done before `today` is open no more.
    """
    statements = {each.key: each for each in _statements(standings, places)}
    names = directory_of(each.claim for each in statements.values())
    filed = [
        _filed(statements[content_key(claim.text)], topic, names, today)
        for topic in group((each.claim for each in statements.values()), names)
        for claim in topic.claims
    ]
    return sorted(_disputed(filed), key=lambda each: best_first(each.statement))


def best_first(statement: Statement) -> tuple[int, float, int, str]:
    return -statement.usage, *newest_first(statement)


def newest_first(statement: Statement) -> tuple[float, int, str]:
    at, seq = statement.claim.said
    return -at.timestamp(), -seq, statement.claim.text


def project_name(project: Entity) -> str:
    """What a project is called; where two are called the same, what tells it from the other."""
    is_clear = page_slug(project.name) == project.slug
    return label(_few_words(project.name if is_clear else project.slug)) or project.slug


def project_place(project: Entity) -> str:
    """Where a project is, if anywhere but in its name."""
    is_told = project.place != project.name
    return label(_few_words(project.place), PLACE_CHARS_MAX) if is_told else ""


def believed(filed: Sequence[Filed]) -> list[Filed]:
    """Of what is disputed only what the most trusted said last; no tool's word, and no orders.

    Whatever is put before a model without being asked for is made of this.
    """
    best: dict[tuple[str, str], Filed] = {}
    for each in sorted(filed, key=lambda one: newest_first(one.statement)):
        if each.dispute is not None:
            known = best.setdefault(_dispute(each), each)
            if rank(each.claim.trust) > rank(known.claim.trust):
                best[_dispute(each)] = each
    return [
        each
        for each in filed
        if (each.dispute is None or best[_dispute(each)] is each)
        and each.claim.trust is not Trust.TOOL
        and (each.claim.trust is Trust.USER or not commands(each.claim.text))
    ]


def _few_words(name: str) -> str:
    """A name is not a sentence: what would make one of it is left out."""
    return " ".join(name.split()[:NAME_WORDS_MAX])


def _statements(standings: Iterable[Standing], places: Mapping[str, str]) -> list[Statement]:
    claims: list[Claim] = []
    facts: dict[str, dict[str, Fact]] = {}
    for standing in standings:
        fact = standing.fact
        for claim in claims_of([fact], project=standing.project):
            borne = tuple(each for each in claim.sources if each.session_id in places)
            if borne or not fact.sources:  # none from the start: a person added it
                claims.append(replace(claim, sources=borne))
                facts.setdefault(content_key(claim.text), {})[fact.id] = fact
    told = [claim for claim in merged(claims) if not _is_an_order(claim) and shown(claim.text)]
    return [_statement(claim, facts[content_key(claim.text)]) for claim in told]


def _statement(claim: Claim, facts: Mapping[str, Fact]) -> Statement:
    return Statement(
        claim=claim,
        key=content_key(claim.text),
        usage=sum(fact.usage_count for fact in facts.values()),
        facts=tuple(sorted(id_ for id_ in facts if id_)),
    )


def _is_an_order(claim: Claim) -> bool:
    return is_quarantined(claim.text, claim.trust)


def _filed(statement: Statement, topic: Topic, names: Directory, today: date | None) -> Filed:
    claim = statement.claim
    tag = tag_of(claim)
    section = _SECTIONS.get(topic.kind, Section.OTHER)
    due = due_on(claim) if section is Section.OPEN else None
    if due is not None and today is not None and due < today:
        section = Section.OTHER
    # What a tool says is done is something it said; what it reported to fail did fail.
    if topic.kind in _TAGGED and (claim.trust is not Trust.TOOL or tag is FactTag.LESSON):
        section = _BY_TAG.get(tag, section) if tag else section
    return Filed(
        statement=statement,
        section=section,
        tag=tag,
        topic=topic if topic.kind in (TopicKind.PEOPLE, TopicKind.PROJECTS) else None,
        project=None if topic.kind in _EVERYWHERE else names.project_of(claim),
    )


def _disputed(filed: Sequence[Filed]) -> list[Filed]:
    on: dict[tuple[str, str], list[Filed]] = {}
    for each in filed:
        if each.claim.topic:
            on.setdefault(_dispute(each), []).append(each)
    return [
        replace(each, dispute=each.claim.topic)
        if each.claim.topic and len(on[_dispute(each)]) > 1
        else each
        for each in filed
    ]


def _dispute(filed: Filed) -> tuple[str, str]:
    """What two statements have to share to be on one thing: the topic, and where they hold."""
    return filed.claim.topic or "", filed.project.slug if filed.project else ""

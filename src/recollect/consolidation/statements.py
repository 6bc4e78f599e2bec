"""Files what is known as statements: each once, with its section and what it holds for. Pure.

Topics are those of the pages of agents. What holds for one project stays with it; an order that
only a tool gave is left out; live statements on one thing that do not agree are disputed. A
statement names the facts and sessions it rests on, and its line the day it was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date
from enum import StrEnum
from hashlib import sha256

from recollect.extraction.grounding import rank
from recollect.pages.markdown import label, shown
from recollect.quarantine import commands
from recollect.topics.claims import TopicClaim, claim_of, due_on, merged
from recollect.topics.directory import Directory, Entity, TopicKind, directory_of
from recollect.topics.english import RULE_TAGS
from recollect.topics.grouping import home_of, relation_of
from recollect.topics.subjects import page_slug, tag_of
from recollect.types.facts import Fact, FactTag, Source, Trust, content_key
from recollect.types.generations import BY_RULES, Standing

NAME_WORDS_MAX = 10
PLACE_CHARS_MAX = 200
DIGEST_DIGITS = 12

_MARKED = re.compile(r"\s*\((?:inferred|from a tool)\)[\s.]*$", re.IGNORECASE)


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
_BY_TAG_KINDS = frozenset({TopicKind.PREFERENCES, TopicKind.PROJECTS, TopicKind.OTHER})
# What is said of the user holds wherever it was said.
_EVERYWHERE = frozenset({TopicKind.PROFILE, TopicKind.PEOPLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A claim, the facts that make it, how often they were used, and where it stands.

    `topic` is a person or a project with a section of its own. `project` is what it holds
    for, none: everywhere. `dispute` is what it is about where another says otherwise. `is_stated`:
    a person said it in these words, or laid it down. `is_single`: its topic has one value at a
    time, as those of rules do; a model's may have many. `inputs` are what a text that says it
    rests on, without its words.
    """

    claim: TopicClaim
    usage: int
    facts: tuple[str, ...]
    section: Section
    tag: FactTag | None
    topic: Entity | None = None
    project: Entity | None = None
    dispute: str | None = None
    is_stated: bool = False
    is_single: bool = True
    inputs: frozenset[str] = frozenset()

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.claim.sources

    @property
    def sessions(self) -> frozenset[str]:
        return frozenset(source.session_id for source in self.sources)

    @property
    def day(self) -> date:
        return self.claim.at.astimezone(UTC).date()

    @property
    def newest_first(self) -> tuple[float, int, str]:
        at, seq = self.claim.said
        return -at.timestamp(), -seq, self.claim.text

    @property
    def best_first(self) -> tuple[int, float, int, str]:
        return -self.usage, *self.newest_first

    @property
    def scope(self) -> str:
        """What it holds for; empty: it holds everywhere."""
        return f"in {project_name(self.project)}" if self.project else ""

    def words(self, *, is_at_home: bool = True) -> str:
        """What it says and how far to trust it; at home it does not name its project."""
        text, mark = self.claim.text, ""
        if self.claim.trust is Trust.TOOL:
            mark = " (from a tool)"
        elif self.claim.is_inferred:
            mark = " (inferred)"
        if mark:  # instead of one of its own
            text = _MARKED.sub("", text) or text
        if is_at_home and self.topic is not None and self.topic.kind is TopicKind.PROJECTS:
            text = without_place(text, self.topic.about)
        return f"{shown(text)}{mark}"

    def line(self, *, is_at_home: bool = True) -> str:
        """An item of a list, with the day it was said last; not at home it says where it holds."""
        count = len(self.sessions)
        remarks = (
            "" if is_at_home and self.topic else self.scope,
            str(self.day),
            f"{count:,} sessions" if count > 1 else "",
        )
        return f"- {self.words(is_at_home=is_at_home)} ({', '.join(filter(None, remarks))})"


def file_away(
    standings: Iterable[Standing], selected: Iterable[str], today: date | None = None
) -> list[Statement]:
    """All statements, the best first: what was used most often, then what is newest.

    What no session that is `selected` bears out any more is left out, and so is what was to be done
    before `today` from the open threads.
    """
    selected = frozenset(selected)
    claims, facts = _claims(standings, selected)
    names = directory_of(claims)
    filed = [
        _filed(claim, facts[content_key(claim.text)], home, names, selected, today)
        for claim, home in zip(claims, _homes(claims, names), strict=True)
    ]
    return sorted(_disputed(filed), key=lambda each: each.best_first)


def believed(statements: Sequence[Statement]) -> list[Statement]:
    """Of what is disputed only what the most trusted said last; no tool's word, and no orders.

    Whatever is put before a model without being asked for is made of this.
    """
    best: dict[tuple[str, str], Statement] = {}
    for each in sorted(statements, key=lambda one: one.newest_first):
        if each.dispute is not None:
            known = best.setdefault(_dispute(each), each)
            if rank(each.claim.trust) > rank(known.claim.trust):
                best[_dispute(each)] = each
    return [
        each
        for each in statements
        if (each.dispute is None or best[_dispute(each)] is each)
        and each.claim.trust is not Trust.TOOL
        and (each.claim.trust is Trust.USER or not commands(each.claim.text))
    ]


def project_name(project: Entity) -> str:
    """What a project is called; where two are called the same, what tells it from the other."""
    is_clear = page_slug(project.name) == project.slug
    return label(_few_words(project.name if is_clear else project.slug)) or project.slug


def project_place(project: Entity) -> str:
    """Where a project is, if anywhere but in its name."""
    is_said = project.about != project.name
    return label(_few_words(project.about), PLACE_CHARS_MAX) if is_said else ""


def without_place(text: str, place: str) -> str:
    """What is done in a project, where it is clear which one is meant."""
    if not place:
        return text
    opening = f"In {' '.join(place.split())}"
    text = text.removeprefix(f"{opening}: ")  # what follows begins as it was written
    bare = text.removeprefix(f"{opening}, ")
    return bare[:1].upper() + bare[1:] if bare != text else text


def _few_words(name: str) -> str:
    """A name is not a sentence: what would make one of it is left out."""
    return " ".join(name.split()[:NAME_WORDS_MAX])


def _claims(
    standings: Iterable[Standing], selected: frozenset[str]
) -> tuple[list[TopicClaim], Mapping[str, Mapping[str, Fact]]]:
    """What facts claim, each once, and the facts of each by its key."""
    claims: list[TopicClaim] = []
    facts: dict[str, dict[str, Fact]] = {}
    for standing in standings:
        fact = standing.fact
        claim = claim_of(fact, standing.project)
        borne = tuple(each for each in claim.sources if each.session_id in selected)
        if fact.superseded_by is None and (borne or not fact.sources):  # none: a person added it
            claims.append(replace(claim, sources=borne))
            facts.setdefault(content_key(claim.text), {})[fact.id] = fact
    return [claim for claim in merged(claims) if shown(claim.text)], facts


def _homes(claims: Sequence[TopicClaim], names: Directory) -> list[Entity]:
    """Where each claim is at home; people with who they are."""
    found = [home_of(claim, names) for claim in claims]
    told: dict[tuple[TopicKind, str], tuple[Entity, list[TopicClaim]]] = {}
    for claim, home in zip(claims, found, strict=True):
        told.setdefault((home.kind, home.slug), (home, []))[1].append(claim)
    homes = {
        key: replace(home, about=relation_of(home, own, names))
        if home.kind is TopicKind.PEOPLE
        else home
        for key, (home, own) in told.items()
    }
    return [homes[home.kind, home.slug] for home in found]


def _filed(
    claim: TopicClaim,
    facts: Mapping[str, Fact],
    home: Entity,
    names: Directory,
    selected: frozenset[str],
    today: date | None,
) -> Statement:
    tag = tag_of(claim)
    section = _SECTIONS.get(home.kind, Section.OTHER)
    due = due_on(claim) if section is Section.OPEN else None
    if due is not None and today is not None and due < today:
        section = Section.OTHER
    # What a tool says is done is something it said; what it reported to fail did fail.
    if home.kind in _BY_TAG_KINDS and (claim.trust is not Trust.TOOL or tag is FactTag.LESSON):
        section = _BY_TAG.get(tag, section) if tag else section
    return Statement(
        claim=claim,
        usage=sum(fact.usage_count for fact in facts.values()),
        facts=tuple(sorted(filter(None, facts))),
        section=section,
        tag=tag,
        topic=home if home.kind in (TopicKind.PEOPLE, TopicKind.PROJECTS) else None,
        project=None if home.kind in _EVERYWHERE else names.project_of(claim),
        is_stated=any(map(_is_stated, facts.values())),
        is_single=not any(map(_is_by_model, facts.values())),
        inputs=frozenset(each for fact in facts.values() for each in inputs_of(fact, selected)),
    )


def _is_stated(fact: Fact) -> bool:
    is_laid_down = fact.trust is Trust.USER and bool(RULE_TAGS.intersection(fact.tags[:1]))
    return fact.extractor is None or not fact.sources or is_laid_down


def _is_by_model(fact: Fact) -> bool:
    return fact.extractor is not None and not fact.extractor.startswith(f"{BY_RULES}/")


def inputs_of(fact: Fact, selected: frozenset[str]) -> Iterator[str]:
    """What a text that says a fact rests on: the fact as it stands, and each of its sessions."""
    yield digest_of(fact.id, fact.content, str(fact.trust))
    for session_id in {each.session_id for each in fact.sources} & selected:
        yield digest_of(fact.id, session_id)


def digest_of(*parts: str) -> str:
    """What stands for an input where a text is kept, without a word of it."""
    return sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest()[:DIGEST_DIGITS]


def _disputed(statements: Sequence[Statement]) -> list[Statement]:
    on: dict[tuple[str, str], int] = {}
    for each in statements:
        if each.claim.topic and each.is_single:
            on[_dispute(each)] = on.get(_dispute(each), 0) + 1
    return [
        replace(each, dispute=each.claim.topic)
        if each.is_single and on.get(_dispute(each), 0) > 1
        else each
        for each in statements
    ]


def _dispute(statement: Statement) -> tuple[str, str]:
    """What two statements have to share to be on one thing: the topic, and where they hold."""
    return statement.claim.topic or "", statement.project.slug if statement.project else ""

"""Renders topic pages from facts: people, projects, preferences, decisions and so on. Pure.

A page is a function of the facts that are filed on it: the same facts give the same bytes. A fact
is filed by whom or what it is about, on one page; one that is full goes on in others by topic. What
no longer holds stands under "Earlier", or nowhere. Where a line comes from is not in the text, but
in the page's inputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import chain, count

from recollect.documents.paths import KEY_SEPARATOR, DocumentPath, memory_root
from recollect.extraction.grounding import rank
from recollect.pages import markdown
from recollect.topics.claims import TopicClaim, claim_of, due_on
from recollect.topics.directory import Directory, Entity, TopicKind, directory_of
from recollect.topics.english import RULE_TAGS
from recollect.topics.grouping import TITLES, home_of, relation_of
from recollect.topics.subjects import (
    KnownPages,
    is_of_the_user,
    leading,
    place_parts,
    speaker_of,
    tag_of,
)
from recollect.types.facts import FactTag, Source, Trust, content_key
from recollect.types.pages import (
    BY_RENDERING,
    Because,
    Content,
    FiledFact,
    PagesOfFacts,
    PageState,
    Write,
)

PAGE_FACTS_MAX = 60
PAGE_CHARS_MAX = 16_000
LINE_CHARS_MAX = 1000
EARLIER_MAX = 10
SECTIONED_MIN = 8  # lines; shorter pages have no headings
BESIDE = "facts"  # the page below one that somebody else wrote on the same subject

_FOLDERS = {
    TopicKind.PEOPLE: Content(
        title="People", description="The people who are known, one page each."
    ),
    TopicKind.PROJECTS: Content(title="Projects", description="The projects, one page each."),
}
_DESCRIPTIONS = {
    TopicKind.PREFERENCES: "What the user likes, wants and has laid down.",
    TopicKind.DECISIONS: "What was decided, and when.",
    TopicKind.OPEN_THREADS: "Commitments, goals and questions that are still open.",
    TopicKind.PROFILE: "What is known of the user.",
    TopicKind.OTHER: "What belongs to no other page.",
}
_OF_THE_USER = frozenset({TopicKind.PROFILE, TopicKind.PREFERENCES})
_OTHER = Entity(kind=TopicKind.OTHER, slug=TopicKind.OTHER.value, name=TITLES[TopicKind.OTHER])
_BY_PROJECT = frozenset({TopicKind.DECISIONS, TopicKind.OPEN_THREADS, TopicKind.PREFERENCES})
_SECTIONS = {
    "Instructions": RULE_TAGS,
    "Who is who": {FactTag.RELATION},
    "Details": {FactTag.DETAIL, FactTag.OBSERVATION, None},
    "Preferences": {FactTag.PREFERENCE},
    "Decisions": {FactTag.DECISION},
    "Plans": {FactTag.GOAL, FactTag.COMMITMENT},
    "How it is done": {FactTag.PROCEDURE},
    "Problems and solutions": {FactTag.LESSON},
    "Events": {FactTag.EVENT},
}
_HEADING = {tag: heading for heading, tags in _SECTIONS.items() for tag in tags}


def _slug(heading: str) -> str:
    return heading.lower().replace(" ", "-")


_TOPIC = re.compile(rf"(?:{'|'.join(map(_slug, _SECTIONS))})(?:-\d+)?")
_PLACE = re.compile(r"Project at (?P<place>.+)\.")
_REMARK = re.compile(r"(?:\s*\((?:inferred|from a tool)\))+[\s.]*$", re.IGNORECASE)


def render(pages: PagesOfFacts, now: datetime) -> list[Write]:
    """Write every page, whole, that one of the given facts belongs on."""
    claims = {filed.fact.id: _claim(filed) for filed in pages.facts}
    arranged = _Arranged(pages, directory_of(claims.values(), _known(pages)))
    for filed in sorted(pages.facts, key=lambda each: (claims[each.fact.id].said, each.fact.id)):
        claim = claims[filed.fact.id]
        if shown(claim.text):
            arranged.add(filed, claim)
    return list(arranged.writes(now))


def body_of(kind: TopicKind, facts: Iterable[FiledFact], now: datetime) -> str:
    """What a page says of the facts on it."""
    holding, over = _lines(facts, now)
    sections = [*_sections(kind, holding), ("Earlier", over[-EARLIER_MAX:])]
    return "\n\n".join(_block(heading, lines) for heading, lines in sections if lines)


def subject_of(claim: TopicClaim, names: Directory) -> Entity:
    """The page that a statement belongs on: that of the person it is about, if it is about one."""
    home = home_of(claim, names)
    if home.kind in _FOLDERS or tag_of(claim) in RULE_TAGS or claim.trust is Trust.TOOL:
        return home
    speaker = names.person(speaker_of(claim))
    if speaker is None:
        is_others = bool(leading(claim.text)) and not is_of_the_user(claim)
        return _OTHER if is_others and home.kind in _OF_THE_USER else home
    # What several people decided is nobody's.
    is_joint = home.kind is TopicKind.DECISIONS and not names.names(speaker, claim.text)
    return home if is_joint else speaker


def shown(text: str) -> str:
    """A statement as one line that is nothing but text; empty if it says nothing."""
    return markdown.shown(_REMARK.sub("", text), LINE_CHARS_MAX)


# which fact goes on which page


@dataclass(slots=True, kw_only=True, eq=False)
class _Page:
    """A page in the making: what is there, and the facts that come to it."""

    path: DocumentPath
    state: PageState
    subject: Entity
    suffix: str  # of its title, where it is one of several
    names: Directory
    new: dict[str, FiledFact] = field(default_factory=dict)
    new_size: int = 0

    def add(self, filed: FiledFact) -> None:
        self.new[filed.fact.id] = filed
        self.new_size += _size(filed)

    def has_room(self, filed: FiledFact) -> bool:
        count = self.state.facts + len(self.new)
        size = self.state.size + self.new_size + _size(filed)
        return not count or (count < PAGE_FACTS_MAX and size <= PAGE_CHARS_MAX)

    def write(self, known: Iterable[FiledFact], now: datetime) -> Write:
        """The whole page, with the facts that it has already."""
        found = {each.fact.id: each for each in known} | self.new
        facts = [found[each] for each in sorted(found)]
        content = Content(
            title=shown(self.subject.name) + self.suffix,
            description=self._description(facts),
            body=body_of(self.subject.kind, facts, now),
        )
        because = replace(
            BY_RENDERING, facts=tuple(each.fact.id for each in facts), sources=_sources(facts)
        )
        return _write(self.path, content, because)

    def _description(self, facts: Sequence[FiledFact]) -> str:
        kind, about = self.subject.kind, self.subject.about
        if kind is TopicKind.PROJECTS:
            has_place = about not in ("", self.subject.name)
            return f"Project at {about}." if has_place else f"The project {self.subject.name}."
        if kind is not TopicKind.PEOPLE:
            return _DESCRIPTIONS[kind]
        relation = relation_of(self.subject, map(_claim, facts), self.names)
        return f"{shown(relation)}." if relation else f"What is known of {self.subject.name}."


class _Arranged:
    """Facts on their pages, each opened once."""

    def __init__(self, pages: PagesOfFacts, names: Directory) -> None:
        self._given = pages
        self._names = names
        self._pages: dict[str, _Page] = {}  # by the key of their paths

    def add(self, filed: FiledFact, claim: TopicClaim) -> None:
        self._page_for(filed, claim).add(filed)

    def pages(self) -> list[_Page]:
        """Those that something comes to, what stands above others first."""
        return [page for _, page in sorted(self._pages.items()) if page.new]

    def writes(self, now: datetime) -> Iterator[Write]:
        yield from self.folders()
        for page in self.pages():
            yield page.write(self._given.facts_on(page.path.place), now)

    def folders(self) -> Iterator[Write]:
        """The pages above people and projects, where they are missing."""
        for kind, content in _FOLDERS.items():
            folder = memory_root().child(kind.value)
            is_needed = any(page.path.is_within(folder) for page in self.pages())
            if is_needed and not self._given.page(folder.place).is_there:
                yield _write(folder, content, BY_RENDERING)

    def _page_for(self, filed: FiledFact, claim: TopicClaim) -> _Page:
        subject = subject_of(claim, self._names)
        own = _path_of(subject)
        base = own.child(BESIDE) if self._given.page(own.place).is_authored else own
        for path in chain(_where_it_stood(filed, base), [base], self._further(base, claim)):
            page = self._opened(path, subject, "" if path == base else f": {path.slug}")
            if page is not None and page.has_room(filed):
                return page
        raise AssertionError("there is always another page")

    def _opened(self, path: DocumentPath, subject: Entity, suffix: str) -> _Page | None:
        """The page at a path; none: it is somebody else's."""
        if path.key not in self._pages:
            state = self._given.page(path.place)
            if state.is_authored:
                return None
            self._pages[path.key] = _Page(
                path=path, state=state, subject=subject, suffix=suffix, names=self._names
            )
        return self._pages[path.key]

    def _further(self, base: DocumentPath, claim: TopicClaim) -> Iterator[DocumentPath]:
        """The pages on which one that is full goes on, by what they say; from the last there is."""
        slug = _slug(_HEADING[tag_of(claim)])
        known = [path.rpartition("/")[2] for path, _, _ in self._given.below(base.place)]
        known += [page.path.slug for page in self._pages.values() if page.path.parent == base]
        numbers = [_number(each, slug) for each in known]
        last = max((number for number in numbers if number), default=1)
        yield from (base.child(_numbered(slug, number)) for number in count(last))


def _known(pages: PagesOfFacts) -> KnownPages:
    """Return the people and projects that have a page already."""
    people, projects = {}, {}
    for path, title, _ in pages.below(memory_root().child(TopicKind.PEOPLE.value).place):
        slug = path.rpartition("/")[2]
        if title != slug:
            people[slug] = title
    for path, _, description in pages.below(memory_root().child(TopicKind.PROJECTS.value).place):
        slug = path.rpartition("/")[2]
        told = _PLACE.fullmatch(description)
        projects[slug] = told["place"] if told else slug
    return KnownPages(people=people, projects=projects)


def _path_of(subject: Entity) -> DocumentPath:
    root = memory_root()
    return (root.child(subject.kind.value) if subject.kind in _FOLDERS else root).child(
        subject.slug
    )


def _where_it_stood(filed: FiledFact, base: DocumentPath) -> Iterator[DocumentPath]:
    """The page that a fact was on, if it is one of its subject still."""
    above, _, slug = filed.path_key.rpartition(KEY_SEPARATOR)
    if above == base.key and _TOPIC.fullmatch(slug):
        yield base.child(slug)


def _numbered(slug: str, number: int) -> str:
    return slug if number == 1 else f"{slug}-{number}"


def _number(name: str, slug: str) -> int:
    """Which of the pages of a topic has a name; 0: it is none of them."""
    digits = name.removeprefix(f"{slug}-")
    if name == slug:
        return 1
    return int(digits) if digits != name and digits.isdecimal() and len(digits) < 6 else 0


def _write(path: DocumentPath, content: Content, because: Because) -> Write:
    parents = tuple(above.place for above in path.parents)
    return Write(place=path.place, content=content, parents=parents, because=because)


# what a page says


@dataclass(frozen=True, slots=True, kw_only=True)
class _FactLine:
    """A fact's line on a page; `until` is when it stopped being true."""

    claim: TopicClaim
    until: date | None = None

    @property
    def order(self) -> tuple[date, datetime, int, str]:
        return (self.until or date.max, *self.claim.said, self.claim.text)

    def __str__(self) -> str:
        claim = self.claim
        is_tools = claim.trust is Trust.TOOL
        inferred = " (inferred)" if claim.is_inferred else ""
        until = f", until {self.until}" if self.until else ""
        remark = " (from a tool)" if is_tools else inferred
        return f"- {shown(claim.text)}{remark} ({_day(claim.at)}{until})"


def _lines(facts: Iterable[FiledFact], now: datetime) -> tuple[list[_FactLine], list[_FactLine]]:
    """What holds and what is over, each statement once, in the order they were said."""
    best: dict[str, _FactLine] = {}
    lines = [_FactLine(claim=_claim(filed), until=_over_since(filed, now)) for filed in facts]
    for line in sorted(lines, key=lambda line: (rank(line.claim.trust), line.order)):
        key = content_key(line.claim.text)
        known = best.get(key)
        if known is None or known.until or not line.until:
            best[key] = line
    ordered = sorted(best.values(), key=lambda line: line.order)
    return [line for line in ordered if not line.until], [line for line in ordered if line.until]


def _over_since(filed: FiledFact, now: datetime) -> date | None:
    """The day on which something ended, if it has; what was to be done ends with its date."""
    end, due = filed.fact.valid_to, due_on(filed.fact)
    if end is not None and (end <= now or filed.fact.superseded_by is not None):
        return _day(end)
    return due if due is not None and due < _day(now) else None


def _sections(
    kind: TopicKind, lines: Sequence[_FactLine]
) -> Iterator[tuple[str, Sequence[_FactLine]]]:
    """Lines under headings: by project what holds in one, and by what they say where it is long."""
    if kind in _BY_PROJECT:
        projects = sorted({line.claim.project or "" for line in lines})
        for project in projects:
            found = [line for line in lines if (line.claim.project or "") == project]
            yield f"In {shown(place_parts(project)[-1])}" if project else "", found
        return
    headings = {_HEADING[tag_of(line.claim)] for line in lines}
    if len(lines) <= SECTIONED_MIN or len(headings) == 1:
        yield "", lines
        return
    for heading in _SECTIONS:
        yield heading, [line for line in lines if _HEADING[tag_of(line.claim)] == heading]


def _block(heading: str, lines: Sequence[_FactLine]) -> str:
    body = "\n".join(map(str, lines))
    return f"## {heading}\n\n{body}" if heading else body


def _claim(filed: FiledFact) -> TopicClaim:
    return claim_of(filed.fact, filed.project)


def _sources(facts: Iterable[FiledFact]) -> tuple[Source, ...]:
    found = {
        (source.session_id, source.seq, source.seq_to)
        for filed in facts
        for source in filed.fact.sources
    }
    return tuple(Source(session_id=each[0], seq=each[1], seq_to=each[2]) for each in sorted(found))


def _size(filed: FiledFact) -> int:
    return min(len(filed.fact.content), LINE_CHARS_MAX) + 20


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()

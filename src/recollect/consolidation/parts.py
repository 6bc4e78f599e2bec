"""The parts in which a model writes memory: what each rests on, is asked for, and came to. Pure.

A part is a section of MEMORY, or several small ones; a skill; or the summary. It is written from
what it was shown and from nothing else, and stands while all of that stands. What rests on
something that was taken back is not shown again: it is written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from recollect.clock import to_micros
from recollect.consolidation.evidence import SummarizedSession
from recollect.consolidation.handbook import (
    PROJECT,
    SESSIONS,
    Handbook,
    HandbookSection,
    WrittenText,
)
from recollect.consolidation.pages import MEMORY, SUMMARY, WrittenLimits
from recollect.consolidation.statements import Statement, digest_of, inputs_of
from recollect.models.tokens import estimate_tokens
from recollect.pages.markdown import EVIDENCE_LINE_CHARS_MAX, evidence, link, shown
from recollect.stemming import words
from recollect.types.generations import Pick, Standing

STATED_MAX = 48  # lines of one section that a person said
SOURCES_NAMED = 3  # of one fact or line
SKILL_SOURCES = 5
STATEMENTS_SHARE = 2 / 3  # of the room of a section, where there are sessions too
LINK_BYTES = 90  # of one that is put in for a name, beside what a section may have
OWN_SHARE = 0.75  # of what a section is written from, that it may say
BYTES_MIN = 800  # that a section may have, however little it is written from
WRITTEN_SHARE = 0.9  # of MEMORY for the sections together
NOTHING = "(nothing)"
NO_SKILL = "NONE"

_NAMES = re.compile(r"[ \t]*\[((?:[sf]\d+)(?:[,;]?[ \t]*[sf]\d+)*)\]")
_NAME = re.compile(r"[sf]\d+")
_LINK = re.compile(r"\[\[([^\]|\n]+)\|(\d{4}-\d\d-\d\d)\]\]")
_REFERENCES = re.compile(r" \(((?:\[\[[^\]|\n]+\|[\d-]{10}\]\]|\d{4}-\d\d-\d\d)(?:, )?)+\)$")
_HEADING = re.compile(r"[ \t]{0,3}(#{1,6})[ \t]+(.*\S)")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?=\S)")
_FENCED = re.compile(r"```[a-z]*\n(.*)\n```", re.DOTALL)
_DESCRIPTION = re.compile(r"\A\W*description\W*:[ \t]*(.*)", re.IGNORECASE)


_T = TypeVar("_T")


class PartKind(StrEnum):
    """What is written."""

    HANDBOOK = "handbook"
    SKILL = "skill"
    SUMMARY = "summary"


# what a text rests on


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentInputs:
    """Everything that a text may rest on now: facts with their sessions, and states of sessions."""

    facts: frozenset[str]
    sessions: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, standings: Iterable[Standing], picks: Sequence[Pick]) -> CurrentInputs:
        selected = frozenset(each.session_id for each in picks)
        facts = (each for one in standings for each in inputs_of(one.fact, selected))
        states = {
            digest_of(each.session_id): (to_micros(each.source_updated_at), each.revision)
            for each in picks
        }
        return cls(facts=frozenset(facts), sessions=states)

    def has(self, each: str) -> bool:
        """Whether an input stands: also a session that went on since, but none told anew."""
        name, _, state = each.partition(":")
        if not state:
            return name in self.facts
        heard, revision = map(int, state.split("."))
        now = self.sessions.get(name)
        return now is not None and (now[0] > heard or now == (heard, revision))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPart:
    """Sections that a model wrote at once, and what it was shown for them."""

    names: tuple[str, ...]
    inputs: frozenset[str]

    @classmethod
    def read(cls, stored: str) -> tuple[WrittenPart, ...]:
        """The parts of a generation, as it has them; none of one that was made by rules."""
        return tuple(
            cls(names=tuple(each["names"]), inputs=frozenset(each["inputs"]))
            for each in (json.loads(stored) if stored else ())
        )

    @staticmethod
    def store(parts: Iterable[WrittenPart]) -> str:
        listed = [{"names": each.names, "inputs": sorted(each.inputs)} for each in parts]
        return json.dumps(listed, separators=(",", ":")) if listed else ""


def session_input(session: SummarizedSession) -> str:
    heard, revision = session.state
    return f"{digest_of(session.session_id)}:{heard}.{revision}"


def texts_of(memory: str, pages: Mapping[str, WrittenText]) -> dict[str, WrittenText]:
    """What each section says: those of MEMORY by their headings, and other pages by their paths."""
    told = re.split(r"^## (.+)$", memory, flags=re.MULTILINE)[1:]
    sections = {
        name.strip(): WrittenText(text=text.strip("\n"))
        for name, text in zip(told[::2], told[1::2], strict=True)
    }
    return {**sections, **pages}


def standing(
    parts: Iterable[WrittenPart], current: CurrentInputs, texts: Mapping[str, WrittenText]
) -> dict[str, tuple[WrittenText, frozenset[str]]]:
    """The sections whose text stands, with what it rests on. Nothing was found worth a text: ''."""
    return {
        name: (texts.get(name, WrittenText(text="")), part.inputs)
        for part in parts
        if all(map(current.has, part.inputs))
        for name in part.names
    }


# what is to be written


@dataclass(frozen=True, kw_only=True)
class MemoryPart:
    """What one request asks for.

    `before` is what stands of it, `known` what the model was shown before: the rest is new.
    """

    kind: PartKind
    sections: tuple[HandbookSection, ...]
    before: Mapping[str, WrittenText]
    known: frozenset[str]
    links: Mapping[str, SummarizedSession]
    bytes_max: Mapping[str, int]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.sections)

    @cached_property
    def inputs(self) -> frozenset[str]:
        return frozenset().union(*map(section_inputs, self.sections))

    @cached_property
    def statements(self) -> dict[str, Statement]:
        """What is shown, by its name."""
        listed = (each for section in self.sections for each in section.statements)
        return {f"f{number}": each for number, each in enumerate(listed, start=1)}

    @cached_property
    def sessions(self) -> dict[str, SummarizedSession]:
        """The sessions that are shown or named, by their names."""
        own = {each.session_id: each for one in self.sections for each in one.sessions}
        for each in self.statements.values():
            own |= {session.session_id: session for session in self._sources(each)}
        return {f"s{number}": each for number, each in enumerate(own.values(), start=1)}

    def _sources(self, statement: Statement) -> list[SummarizedSession]:
        found = (self.links[each] for each in statement.sessions if each in self.links)
        newest = sorted(found, key=lambda each: (each.day, each.session_id), reverse=True)
        return newest[:SOURCES_NAMED]

    @cached_property
    def _names(self) -> dict[str, str]:
        return {each.session_id: name for name, each in self.sessions.items()}

    # how it is asked for

    def material(self) -> str:
        """What is known for each section, and what stands there."""
        return "\n\n".join(map(self._material, self.sections))

    def _material(self, section: HandbookSection) -> str:
        blocks = [f"# For the section “{section.title}”"]
        before = self.before.get(section.name)
        if before is not None:
            blocks.append(f"What stands now:\n\n{self.short(before.text) or NOTHING}")
        named = {id(each): name for name, each in self.statements.items()}
        facts = [self._fact(named[id(each)], each) for each in section.statements]
        blocks += ["Facts:\n\n" + "\n".join(facts)] if facts else []
        sessions = list(map(self._session, section.sessions))
        blocks += ["Sessions:\n\n" + "\n".join(sessions)] if sessions else []
        return "\n\n".join(blocks)

    def _fact(self, name: str, fact: Statement) -> str:
        marks = [str(fact.day), *(self._names[each.session_id] for each in self._sources(fact))]
        marks += ["new"] if self.known and not fact.inputs <= self.known else []
        marks += ["stated"] if fact.is_stated and self.kind is PartKind.HANDBOOK else []
        scope = f" ({fact.scope})" if fact.scope and fact.topic is None else ""
        is_at_home = self.sections[0].name.startswith(PROJECT)
        return f"- {name} ({', '.join(marks)}) {fact.words(is_at_home=is_at_home)}{scope}"

    def _session(self, session: SummarizedSession) -> str:
        is_new = self.known and session_input(session) not in self.known
        marks = f"{session.day}{', new' if is_new else ''}"
        told = f": {session.short}" if session.short else ""
        return f"- {self._names[session.session_id]} ({marks}) {session.title}{told}"

    def short(self, text: str) -> str:
        """A text with names instead of links to what is shown."""
        by_path = {each.path: name for name, each in self.sessions.items()}

        def named(found: re.Match[str]) -> str:
            names = [by_path[path] for path, _ in _LINK.findall(found[0]) if path in by_path]
            return f" [{', '.join(names)}]" if names else found[0]

        lines = (_REFERENCES.sub(named, line) for line in text.split("\n"))
        return "\n".join(_LINK.sub(r"\2", line) for line in lines)

    def task(self, limits: WrittenLimits) -> str:
        """What is wanted, and how long it may be."""
        if self.kind is PartKind.SUMMARY:
            return f"Write the summary: at most {limits.summary_chars:,} characters."
        if self.kind is PartKind.SKILL:
            (one,) = self.sections
            return (
                f"Write the skill `{one.title}`, or {NO_SKILL}: at most {limits.skill_lines:,} "
                f"lines and {self.bytes_max[one.name]:,} bytes."
            )
        wanted = "\n".join(f"## {each.name}" for each in self.sections)
        size = "; ".join(
            f"“{each.name}” at most {self.bytes_max[each.name]:,} bytes" for each in self.sections
        )
        return f"Write what stands below:\n\n{wanted}\n\n{size}."

    # what came of it

    def read(self, answer: str, limits: WrittenLimits) -> dict[str, WrittenText]:
        """The texts of an answer, as they may be shown; none of a section it does not have."""
        fenced = _FENCED.fullmatch(answer.strip())
        answer = fenced[1] if fenced else answer.strip()
        if self.kind is PartKind.SUMMARY:
            text = _cut(evidence(_NAMES.sub("", answer), below=1), limits.summary_chars, len)
            return {SUMMARY: WrittenText(text=text)} if text else {}
        if self.kind is PartKind.SKILL:
            return self._skill(answer, limits)
        lines = self._split(answer)
        found = {
            each.name: self._section(each, lines[each.name])
            for each in self.sections
            if each.name in lines
        }
        return {name: WrittenText(text=text) for name, text in found.items() if text is not None}

    def _split(self, answer: str) -> dict[str, list[str]]:
        """The lines of each section; headings that are none of these are within one."""
        wanted = {_plain(each.name): each.name for each in self.sections}
        only = self.sections[0].name if len(self.sections) == 1 else ""
        found: dict[str, list[str]] = {only: []} if only else {}
        lines = found[only] if only else []
        for line in answer.split("\n"):
            heading = _HEADING.fullmatch(line)
            name = wanted.get(_plain(heading[2])) if heading else None
            if name is not None:
                lines = found.setdefault(name, [])
            elif heading is not None:
                lines.append(f"### {heading[2]}")
            elif line.strip():
                lines.append(line)
        return found

    def _section(self, section: HandbookSection, lines: Sequence[str]) -> str | None:
        """The text of a section; none: nothing it says has a source."""
        before = self.before.get(section.name)
        known = set() if before is None else set(self.short(before.text).split("\n"))
        seen: set[str] = set()
        kept: list[str] = []
        for line in _joined(lines):
            if line.startswith("### "):
                kept.append(f"\n### {shown(line.removeprefix('### '))}\n")
                continue
            names = [each for each in _named(line) if each in self.statements | self.sessions]
            text = shown(_BULLET.sub("", _NAMES.sub("", line), count=1), EVIDENCE_LINE_CHARS_MAX)
            stated = any(_says(text, each) for each in section.statements if each.is_stated)
            if text and (names or stated or line in known):
                kept.append(f"- {text}{self._references(names, seen)}")
        is_empty = not kept and any(NOTHING in line for line in lines)
        if not kept and not is_empty:
            return None
        body = "\n".join(kept)
        told = [each for each in section.statements if each.is_stated][:STATED_MAX]
        missing = [each.line() for each in told if not _says(body, each)]
        room = self.bytes_max[section.name] - sum(len(each.encode()) + 1 for each in missing)
        body = _cut(body, max(0, room), _own_bytes)
        return re.sub(r"\n{3,}", "\n\n", "\n".join([*missing, body])).strip("\n")

    def _references(self, names: Sequence[str], seen: set[str]) -> str:
        """Where a line comes from: a link for the first that rests on a session, then the day."""
        found: dict[str, str] = {}  # by day
        for name in names:
            fact = self.statements.get(name)
            session = next(iter(self._sessions_of(name)), None)
            if session is not None and session.path not in seen:
                seen.add(session.path)
                found[str(session.day)] = link(session.path, str(session.day))
            elif session is not None or fact is not None:
                day = str(session.day if session else fact.day if fact else "")
                found.setdefault(day, day)
        listed = list(found.values())[:SOURCES_NAMED]
        return f" ({', '.join(listed)})" if listed else ""

    def _skill(self, answer: str, limits: WrittenLimits) -> dict[str, WrittenText]:
        (one,) = self.sections
        if _plain(answer) == _plain(NO_SKILL):
            return {one.name: WrittenText(text="")}
        found = _DESCRIPTION.match(answer)
        rest = answer[found.end() :] if found else answer
        cited = [each for name in _named(rest) for each in self._sessions_of(name)]
        cited = list(dict.fromkeys(cited or self.sessions.values()))[:SKILL_SOURCES]
        text = evidence(_NAMES.sub("", rest).replace("[[", "[").strip(), below=1)
        text = "\n".join(text.split("\n")[: limits.skill_lines - 2])
        text = _cut(text, self.bytes_max[one.name], lambda each: len(each.encode()))
        if not text:
            return {}
        sources = ", ".join(link(each.path, str(each.day)) for each in cited)
        body = f"{text}\n\nIt worked in {sources}." if sources else text
        description = shown(found[1]) if found else one.description
        return {one.name: WrittenText(text=body, description=description)}

    def _sessions_of(self, name: str) -> list[SummarizedSession]:
        if name in self.sessions:
            return [self.sessions[name]]
        fact = self.statements.get(name)
        return [] if fact is None else self._sources(fact)


def section_inputs(section: HandbookSection) -> frozenset[str]:
    facts = (each.inputs for each in section.statements)
    return frozenset(map(session_input, section.sessions)).union(*facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPlan:
    """What stands and is left alone, and what is to be written, in this order."""

    kept: Mapping[str, tuple[WrittenText, frozenset[str]]]
    parts: tuple[MemoryPart, ...]

    @classmethod
    def of(
        cls,
        book: Handbook,
        stands: Mapping[str, tuple[WrittenText, frozenset[str]]],
        links: Mapping[str, SummarizedSession],
        known: frozenset[str],
        limits: WrittenLimits,
    ) -> PartPlan:
        """Only what is shown something it was not shown before is written again.

        `known` is what any part was shown before, also one that does not stand.
        """
        shown_for = {
            each.name: _bounded(each, tokens)
            for each in (*book.sections, *book.skills, *book.drafts, book.summary)
            if each.statements or each.sessions
            for tokens in [limits.group_tokens if each is book.summary else limits.section_tokens]
        }
        kept = {
            name: stands[name]
            for name, each in shown_for.items()
            if name in stands and section_inputs(each) <= stands[name][1]
        }
        room = _room(book, shown_for, limits)

        def part(kind: PartKind, *sections: HandbookSection) -> MemoryPart:
            before = {each.name: stands[each.name][0] for each in sections if each.name in stands}
            return MemoryPart(
                kind=kind,
                sections=sections,
                before=before,
                known=known,
                links=links,
                bytes_max=room,
            )

        def wanted(sections: Iterable[HandbookSection]) -> list[HandbookSection]:
            return [
                shown_for[each.name]
                for each in sections
                if each.name in shown_for and each.name not in kept
            ]

        groups = _grouped(wanted(book.sections), limits.group_tokens)
        parts = [part(PartKind.HANDBOOK, *each) for each in groups]
        parts += [part(PartKind.SKILL, each) for each in wanted((*book.skills, *book.drafts))]
        parts += [part(PartKind.SUMMARY, each) for each in wanted([book.summary])]
        return cls(kept=kept, parts=tuple(parts))


def _room(
    book: Handbook, shown_for: Mapping[str, HandbookSection], limits: WrittenLimits
) -> dict[str, int]:
    """What each section may have: less than it is written from, and its share of MEMORY."""
    own = [shown_for[each.name] for each in book.sections if each.name in shown_for]
    sizes = {
        each.name: max(BYTES_MIN, round(OWN_SHARE * len(_lines_of(each).encode()))) for each in own
    }
    links = LINK_BYTES * sum(len(each.sessions) for each in own)
    bytes_max = WRITTEN_SHARE * limits.memory_bytes - min(links, limits.memory_bytes / 2)
    share = min(1.0, bytes_max / max(1, sum(sizes.values())))
    room = {name: int(size * share) for name, size in sizes.items()}
    return room | {each.name: limits.skill_bytes for each in (*book.skills, *book.drafts)}


def _bounded(section: HandbookSection, tokens: int) -> HandbookSection:
    """A section with as much as is shown of it: the most used facts and the newest sessions."""
    share = STATEMENTS_SHARE if section.sessions else 1.0
    statements = tuple(_first(section.statements, lambda each: each.line(), share * tokens))
    taken = sum(estimate_tokens(each.line()) for each in statements)
    sessions = _first(section.sessions, lambda each: each.title + each.short, tokens - taken)
    return replace(section, statements=statements, sessions=tuple(sessions))


def _first(items: Iterable[_T], text: Callable[[_T], str], tokens: float) -> Iterator[_T]:
    for each in items:
        tokens -= estimate_tokens(text(each)) + 12
        if tokens < 0:
            return
        yield each


def _lines_of(section: HandbookSection) -> str:
    lines = [each.line() for each in section.statements]
    return "\n".join([*lines, *(f"{each.title} {each.short}" for each in section.sessions)])


def _grouped(
    sections: Iterable[HandbookSection], tokens_max: int
) -> Iterator[list[HandbookSection]]:
    """Small sections together: those of people and preferences, and lists of sessions.

    Those of projects are alone: what is forgotten in one takes nothing from another.
    """
    groups: dict[str, list[list[HandbookSection]]] = {}
    sizes: dict[str, int] = {}
    for each in sections:
        kind = SESSIONS if each.name.partition(" on ")[0] == SESSIONS else ""
        kind = each.name if each.name.startswith(PROJECT) else kind
        tokens = estimate_tokens(_lines_of(each))
        known = groups.setdefault(kind, [])
        sizes[kind] = sizes.get(kind, 0) + tokens
        if not known or sizes[kind] > tokens_max:
            known.append([])
            sizes[kind] = tokens
        known[-1].append(each)
    for listed in groups.values():
        yield from listed


def fitting(
    book: Handbook, written: Mapping[str, WrittenText], limits: WrittenLimits
) -> dict[str, WrittenText]:
    """Texts with which MEMORY keeps to its size: the longest are cut at the end of a line."""
    fitted = dict(written)
    own = [each.name for each in book.sections if written.get(each.name, WrittenText(text="")).text]
    while own:
        (memory,) = (each for each in book.pages(fitted) if each.path == MEMORY)
        over = len(memory.body.encode()) - limits.memory_bytes
        longest = max(own, key=lambda name: len(fitted[name].text))
        size = len(fitted[longest].text.encode())
        if over <= 0 or size < BYTES_MIN:
            break
        text = _cut(fitted[longest].text, max(size - over, size // 2), lambda t: len(t.encode()))
        fitted[longest] = WrittenText(text=text)
    return fitted


def _named(line: str) -> list[str]:
    return [name for names in _NAMES.findall(line) for name in _NAME.findall(names)]


def _joined(lines: Iterable[str]) -> list[str]:
    """Each claim on one line: what is indented below a line goes on with it."""
    found: list[str] = []
    for line in lines:
        is_new = not found or line.startswith("### ") or found[-1].startswith("### ")
        goes_on = line[:1] in (" ", "\t") and _BULLET.match(line) is None
        if goes_on and not is_new:
            found[-1] = f"{found[-1]} {line.strip()}"
        elif line.strip() != NOTHING:
            found.append(line.strip())
    return found


def _says(text: str, statement: Statement) -> bool:
    """Whether a text has a statement word for word."""
    said = " ".join(words(text).split())
    return f" {' '.join(words(statement.words()).split())} " in f" {said} "


def _plain(heading: str) -> str:
    return " ".join(words(heading).split())


def _own_bytes(text: str) -> int:
    """The size of what a model wrote, without the links that were put in for it."""
    return len("\n".join(_REFERENCES.sub("", line) for line in text.split("\n")).encode())


def _cut(text: str, most: int, size: Callable[[str], int]) -> str:
    """As many whole lines as fit; no heading with nothing below it."""
    if size(text) > most:
        lines = text.split("\n")
        while lines and (size("\n".join(lines)) > most or lines[-1].startswith("#")):
            lines.pop()
        text = "\n".join(lines)
    return text.strip("\n")

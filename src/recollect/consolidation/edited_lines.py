"""Reads a page that people edited as the statements it makes, and how two such pages differ. Pure.

A statement is an item of a list, or a line that stands by itself; headings, code, tables and the
index are the frame around it. What consolidation writes behind one, its day and its sources, is not
part of what it says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from recollect.consolidation.filing import Section
from recollect.consolidation.lines import shown
from recollect.knowledge import Fact, FactTag, content_key

STATEMENT_CHARS_MAX = 4_000  # whatever is longer is no statement
PROJECT, SPEAKER = "project", "speaker"  # in the metadata of a fact
LIKENESS_MIN = 0.5  # of two lines of which one was made of the other
PLACES_TRIED = 4  # where the name of a place may end that a statement opens with

_INDEX_SECTIONS = frozenset({"what is in memory"})
_LOOSE_SECTIONS = frozenset({"projects"})  # one line tells several statements there
_TAGS: Mapping[str, FactTag] = {
    Section.ABOUT.value.casefold(): FactTag.DETAIL,
    Section.PREFERENCES.value.casefold(): FactTag.PREFERENCE,
    "preferences and instructions": FactTag.PREFERENCE,
    Section.DONE.value.casefold(): FactTag.INSTRUCTION,
    Section.DECISIONS.value.casefold(): FactTag.DECISION,
    Section.FAILED.value.casefold(): FactTag.LESSON,
    Section.OPEN.value.casefold(): FactTag.COMMITMENT,
}
_PROJECT_HEADING = "Project "

_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?P<words>\S.*)")
_HEADING = re.compile(r"[ ]{0,3}(?P<marks>#{1,6})[ \t]+(?P<words>.*?)[ \t#]*")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_FRAME = re.compile(r"[|<>]|[-=_*][-=_* \t]*$")
_LEAD = re.compile(r"It is in (?P<place>.{1,400}?)\.(?: What worked there: .*)?")
_INDEX = re.compile(r"(?:[^\[\]]{1,40}: )?\[\[")
_STRUCK = re.compile(r"~~.*~~[ .]*")
_HOLDS_A_PLACE = re.compile(r"_.*_|\(.*\)|(?:and )?\d[\d,]* more")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SOURCE = r"(?:\d{4}-\d\d-\d\d|\[\[[^\[\]]{1,2000}\]\]|\d[\d,]* more)"
_SINCE = re.compile(rf" ?\((?:in .{{1,120}}?, )?{_SOURCE}(?:, {_SOURCE})*\)$")
_MARK = re.compile(r" ?\((?:inferred|from a tool)\)[ .]*$", re.IGNORECASE)
_SCOPE = re.compile(r" \(in [^()]{1,120}\)$")
_CUT = "…"


class LineKind(StrEnum):
    """How a statement stands on a page."""

    ITEM = "item"
    LOOSE = "loose"  # text around items, or several statements at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A statement of a page, without what stands behind it; `start` and `end` count its lines.

    Two with one key say the same. `place` is where the project is that it stands below.
    """

    words: str
    key: str
    kind: LineKind
    start: int
    end: int
    section: str = ""
    under: str = ""
    place: str = ""

    @property
    def number(self) -> int:
        return self.start + 1

    @property
    def part(self) -> tuple[str, str]:
        return self.section, self.under

    @property
    def is_cut(self) -> bool:
        """Whether it was too long for the page, so that nobody could see all of it."""
        return self.words.endswith(_CUT)

    @property
    def project(self) -> str:
        is_of_one = self.section.startswith(_PROJECT_HEADING)
        return self.section.removeprefix(_PROJECT_HEADING).strip() if is_of_one else ""

    @property
    def statement(self) -> str:
        """What it says where it stands alone: below somebody's name it is about them."""
        name = self.under.partition(" – ")[0].strip()
        is_of_somebody = self.section.casefold() == Section.PEOPLE.value.casefold() and name
        if not is_of_somebody or name.casefold() in self.words.casefold():
            return self.words
        return f"{name}: {self.words}"

    @property
    def tags(self) -> tuple[str, ...]:
        found = _TAGS.get(self.under.casefold()) or _TAGS.get(self.section.casefold())
        return () if found is None else (found.value,)

    @property
    def metadata(self) -> dict[str, str]:
        return {PROJECT: self.place or self.project} if self.project else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What people made of a page: what it says now and did not, and the other way round."""

    before: str
    after: str
    added: tuple[Line, ...]
    removed: tuple[Line, ...]
    stated: int  # items that it had before

    def was(self, line: Line) -> Line | None:
        """What a new line was made of: one that left the same part with most of its words."""
        gone = [each for each in self.removed if each.part == line.part]
        best = max(gone, key=lambda each: _likeness(each, line), default=None)
        return best if best is not None and _likeness(best, line) >= LIKENESS_MIN else None

    def rest_is_same(self, taken: Iterable[Line]) -> bool:
        """Whether nothing but these lines was changed, in whatever order they stand."""
        taken = tuple(taken)
        before = _outside(self.before, [each for each in taken if each in self.removed])
        after = _outside(self.after, [each for each in taken if each in self.added])
        return _counted(before) == _counted(after)

    def taken_up(self, taken: Iterable[Line]) -> str:
        """What the page said before with these changes, and without any others."""
        taken = tuple(taken)
        kept = _outside(self.before, [each for each in taken if each in self.removed])
        lines = self.after.split("\n")
        new = ["\n".join(lines[each.start : each.end]) for each in taken if each in self.added]
        # Before all headings and apart, so that they are read as what they were.
        return "\n\n".join([*new, "\n".join(kept)])


def difference(before: str, after: str) -> Difference:
    """How two texts of one page differ in what they state."""
    old, new = list(lines_of(before)), list(lines_of(after))
    known, now = {each.key for each in old}, {each.key for each in new}
    added = [each for each in new if each.key not in known]
    gone = [each for each in old if each.key not in now]
    if any(each.kind is LineKind.LOOSE for each in gone):
        # Ours was rewritten: what stands there now is no statement of anybody's.
        added = [each for each in added if each.kind is LineKind.ITEM]
    return Difference(
        before=before,
        after=after,
        added=tuple(added),
        removed=tuple(each for each in gone if each.kind is LineKind.ITEM),
        stated=len({each.key for each in old if each.kind is LineKind.ITEM}),
    )


def is_said(line: Line, content: str) -> bool:
    """Whether a line of a page tells this very fact."""
    words = (line.words, line.statement, _SCOPE.sub("", line.words))
    told = {content_key(each) for each in words}
    return any(content_key(_stated(shown(each))) in told for each in _wordings(content))


def is_of_project(line: Line, fact: Fact) -> bool:
    """Whether a fact is of the project that a line stands below."""
    said = fact.metadata.get(PROJECT)
    opening = fact.content.removeprefix("In ").partition(", ")[0]
    places = [each.rstrip("/").casefold() for each in (said, opening) if isinstance(each, str)]
    wanted = {each.rstrip("/").casefold() for each in (line.place, line.project) if each}
    return any(each in wanted or each.rpartition("/")[2] in wanted for each in places)


def lines_of(body: str) -> Iterator[Line]:
    """The statements of a page, in order."""
    reading = _Reading()
    for number, raw in enumerate(body.split("\n")):
        yield from reading.read(raw, number)
    yield from reading.end()


@dataclass(slots=True)
class _Reading:
    """Where a reader of a page is."""

    section: str = ""
    under: str = ""
    place: str = ""
    fence: str = ""
    begun: Line | None = None
    parts: list[str] = field(default_factory=list)

    def read(self, raw: str, number: int) -> Iterator[Line]:
        fence = _FENCE.match(raw)
        if fence is not None or self.fence:
            yield from self.end()
            if fence is not None and fence[1].startswith(self.fence):
                self.fence = "" if self.fence else fence[1]
            return
        item, heading = _ITEM.fullmatch(raw), _HEADING.fullmatch(raw)
        is_frame = not raw.strip() or heading is not None or _FRAME.match(raw.lstrip()) is not None
        if item is None and not is_frame and self._goes_on(raw):
            assert self.begun is not None
            self.parts.append(raw)
            self.begun = replace(self.begun, end=number + 1)
            return
        yield from self.end()
        if heading is not None:
            self._head(heading)
        elif item is not None or not is_frame:
            is_item = item is not None and self.section.casefold() not in _LOOSE_SECTIONS
            self.parts = [raw if item is None else item["words"]]
            self.begun = Line(
                words="",
                key="",
                kind=LineKind.ITEM if is_item else LineKind.LOOSE,
                start=number,
                end=number + 1,
                section=self.section,
                under=self.under,
            )

    def end(self) -> Iterator[Line]:
        """What has been begun, if it states anything."""
        begun, self.begun = self.begun, None
        if begun is None:
            return
        text = " ".join(" ".join(self.parts).split())
        if begun.kind is LineKind.LOOSE and (lead := _LEAD.fullmatch(text)) is not None:
            self.place = lead["place"]
        words = _stated(text) if len(text) <= STATEMENT_CHARS_MAX else ""
        if not _is_framing(words) and begun.section.casefold() not in _INDEX_SECTIONS:
            yield replace(begun, words=words, key=content_key(words), place=self.place)

    def _goes_on(self, raw: str) -> bool:
        """Whether a line only continues what was begun: indented, or text behind text."""
        if self.begun is None:
            return False
        return raw[:1] in (" ", "\t") or self.begun.kind is LineKind.LOOSE

    def _head(self, heading: re.Match[str]) -> None:
        words = " ".join(heading["words"].split())
        if len(heading["marks"]) > 2:
            self.under = words
        else:
            self.section, self.under, self.place = words, "", ""


def _is_framing(words: str) -> bool:
    return (
        not any(map(str.isalnum, words))
        or words.endswith(":")
        or _INDEX.match(words) is not None
        or _STRUCK.fullmatch(words) is not None
        or _HOLDS_A_PLACE.fullmatch(words) is not None
    )


def _stated(text: str) -> str:
    """What a line says, without its day, its sources and how far to trust it."""
    words = _MARK.sub("", _SINCE.sub("", text)) or text
    pieces, at = [], 0
    for code in _CODE.finditer(words):
        pieces += [_ESCAPE.sub(r"\1", words[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*pieces, _ESCAPE.sub(r"\1", words[at:])]).strip()


def _wordings(content: str) -> Iterator[str]:
    """A fact as it may be told: below its project, without the place that it opens with."""
    yield content
    if content.startswith("In "):
        rest = content
        for _ in range(PLACES_TRIED):
            _, comma, rest = rest.partition(", ")
            if not comma:
                break
            yield rest


def _likeness(a: Line, b: Line) -> float:
    """The share of its words that a line has in common with another one."""
    words = set(a.words.casefold().split())
    return len(words & set(b.words.casefold().split())) / max(1, len(words))


def _outside(body: str, lines: Sequence[Line]) -> list[str]:
    taken = {number for each in lines for number in range(each.start, each.end)}
    return [line for number, line in enumerate(body.split("\n")) if number not in taken]


def _counted(lines: Iterable[str]) -> Counter[str]:
    return Counter(line.strip() for line in lines if line.strip())

"""A page of memory that claims are merged into, line by line, beside what people wrote there. Pure.

A page is its lines. Those that a claim was written as are known by their label and their note; all
others are somebody's own and stay as they are, where they are, to the character. A page to which
nothing was done says exactly what it said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from recollect.agents.organiser_lines import (
    SOURCES_MAX,
    Line,
    Note,
    is_claims_own,
    plain,
    read_line,
    read_note,
)
from recollect.knowledge import content_key

EARLIER = "## Earlier"
SEE_ALSO = "## See also"
SOURCES = "## Sources"
OWN_SECTIONS = (EARLIER, SEE_ALSO, SOURCES)  # in the order they stand in on a new page

_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}(?=[^`]*$)|~{3,})(?P<rest>.*)")
_ITEM = re.compile(r"\s{0,3}(?:[-*+]|\d{1,9}[.)])\s+")


@dataclass(slots=True, kw_only=True, eq=False)
class _Row:
    """One line of the page; `is_code` if it stands in a fence, where nothing is ours."""

    text: str
    is_code: bool = False

    def line(self) -> Line | None:
        return None if self.is_code or not self.text.startswith("- ") else read_line(self.text)

    def note(self) -> Note | None:
        return None if self.is_code or not self.text.startswith("[^") else read_note(self.text)


@dataclass(slots=True, kw_only=True, eq=False)
class _Section:
    """A heading, or none, with the rows below it up to the next."""

    heading: _Row | None = None
    rows: list[_Row] = field(default_factory=list)
    is_bare: bool = False  # somebody's heading, with nothing below it

    @property
    def name(self) -> str:
        return "" if self.heading is None else self.heading.text

    @property
    def is_blank(self) -> bool:
        return not any(row.text.strip() for row in self.rows)

    def append(self, text: str) -> None:
        """Below the last row that says something, with a blank line where a list begins."""
        place = len(self.rows)
        while place and not self.rows[place - 1].text.strip():
            place -= 1
        above = self.rows[place - 1].text if place else ""
        is_first = not place and self.heading is not None
        new = [_Row(text=text)]
        if is_first or (above.strip() and _kind(above) != _kind(text)):
            new.insert(0, _Row(text=""))
        self.rows[place:place] = new

    def take(self, row: _Row) -> None:
        """Take a row out, and one of two blank lines that then stand together."""
        place = self.rows.index(row)
        del self.rows[place]
        around = [each.text.strip() for each in self.rows[max(place - 1, 0) : place + 1]]
        if place and not any(around):
            del self.rows[place - 1]


_Place = tuple[_Section, _Row, Line]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The notes of a page, and where the lines stand that they are of, both by label."""

    notes: Mapping[str, Note]
    places: Mapping[str, list[_Place]]

    @property
    def all(self) -> list[_Place]:
        return [place for places in self.places.values() for place in places]

    @property
    def lines(self) -> dict[str, Line]:
        return {label: places[-1][2] for label, places in self.places.items()}


class Page:
    """The lines of a body."""

    def __init__(self, body: str) -> None:
        self._read: _Reading | None = None
        self._sections = list(_sections(body))
        rows = list(self._rows())
        # Code that nothing closes would take in whatever is written behind it.
        self.is_open_ended = bool(rows) and rows[-1].is_code and not _is_closed(rows)

    def body(self) -> str:
        rows = []
        for section in self._sections:
            rows += ([section.heading] if section.heading else []) + section.rows
        return "\n".join(row.text for row in rows)

    @property
    def is_blank(self) -> bool:
        return not self.body().strip()

    # reading

    def lines(self) -> Mapping[str, Line]:
        """What was written here as a claim, by label; also what somebody has changed since."""
        return self._reading.lines

    def notes(self) -> Mapping[str, Note]:
        return self._reading.notes

    def is_earlier(self, label: str) -> bool:
        return any(section.name == EARLIER for section, _, _ in self._reading.places.get(label, ()))

    @property
    def has_own(self) -> bool:
        """Whether a claim stands here as it was written."""
        return any(map(self.is_own, self._reading.places))

    def is_own(self, label: str) -> bool:
        """Whether a line is as it was written, so that it may be moved and removed."""
        return any(is_claims_own(line) for _, _, line in self._reading.places.get(label, ()))

    def hand_written(self) -> set[str]:
        """What people say here line by line, as statements are compared."""
        return {
            content_key(plain(_ITEM.sub("", row.text, count=1)))
            for row in self._rows()
            if row.text.strip() and not (row.is_code or row.line() or row.note())
        }

    def _rows(self) -> Iterator[_Row]:
        for section in self._sections:
            yield from section.rows

    @property
    def _reading(self) -> _Reading:
        """What is told of the rows as they are, read once until they change."""
        if self._read is None:
            notes = {note.label: note for note in map(_Row.note, self._rows()) if note is not None}
            places: dict[str, list[_Place]] = {}
            for section in self._sections:
                for row in section.rows:
                    line = row.line()
                    if line is not None and line.label in notes:
                        places.setdefault(line.label, []).append((section, row, line))
            self._read = _Reading(notes=notes, places=places)
        return self._read

    # changing

    def add(self, line: Line, note: Note) -> None:
        """Write a claim down: with the others, or with what was so earlier."""
        where = self._main() if line.until is None else self._own(EARLIER)
        where.append(str(line))
        self._own(SOURCES).append(str(note))
        self._tidy()

    def replace(self, label: str, line: Line, note: Note) -> None:
        """Another line where one stood, and another note."""
        for _, row, _ in self._reading.places.get(label, ()):
            row.text = str(line)
        self._note(label, str(note))

    def move(self, label: str, until: date | None) -> None:
        """To what was so earlier, or back."""
        where = self._main() if until is None else self._own(EARLIER)
        for section, row, line in self._reading.places.get(label, ()):
            if is_claims_own(line):
                section.take(row)
                where.append(str(replace(line, until=until)))
        self._tidy()

    def remove(self, label: str) -> None:
        """A line with its note; of one that somebody changed, only the note."""
        for section, row, line in self._reading.places.get(label, ()):
            if is_claims_own(line):
                section.take(row)
        self._note(label, None)
        self._tidy()

    def withdraw(self, gone: Collection[str], standing: Collection[str] = ()) -> list[Note]:
        """Remove claims of facts that are gone, and those that rest on sessions that are.

        `standing` are facts that need no session. What comes back are the notes of the removed.
        """
        removed = []
        for label, note in self.notes().items():
            kept = tuple(each for each in note.sources if each.session_id not in gone)
            is_left_alone = bool(note.sources) and not kept and note.fact_id not in standing
            if note.fact_id in gone or is_left_alone:
                removed.append(note)
                self.remove(label)
            elif kept and kept != note.sources:
                self.annotate(replace(note, sources=kept))
        return removed

    def annotate(self, note: Note) -> None:
        """Say more of a claim that stands here."""
        self._note(note.label, str(note))

    def drop_unused_notes(self) -> None:
        """Remove notes of lines that somebody took out."""
        used = "\n".join(row.text for row in self._rows() if row.note() is None)
        unused = [label for label in self.notes() if f"[^{label}]" not in used]
        for label in unused:
            self._note(label, None)
        if unused:
            self._tidy()

    def refer(self, link: str) -> None:
        """Add a link to the pages that have to do with this one."""
        self._own(SEE_ALSO).append(f"- {link}")
        self._tidy()

    def listed(self, text: str) -> None:
        """Add a line of an index."""
        self._main().append(text)
        self._tidy()

    def edit_rows(self, change: Callable[[str], str | None], texts: Collection[str]) -> None:
        """Change some lines of ours, or take them out."""
        for section in self._sections:
            for row in [row for row in section.rows if not row.is_code and row.text in texts]:
                made = change(row.text)
                if made is None:
                    section.take(row)
                else:
                    row.text = made
        self._tidy()

    def own_rows(self) -> list[str]:
        """The lines that nobody but us has written, claims and links alike."""
        claims = [row.text for _, row, line in self._reading.all if is_claims_own(line)]
        others = [
            row.text
            for section in self._sections
            if section.name == SEE_ALSO
            for row in section.rows
        ]
        return claims + others

    def _note(self, label: str, text: str | None) -> None:
        for section in self._sections:
            for row in list(section.rows):
                note = row.note()
                if note is None or note.label != label:
                    continue
                if text is None:
                    section.take(row)
                else:
                    row.text = text
        self._read = None

    def _main(self) -> _Section:
        """Where claims that hold stand: with the last of them, else behind all that is said."""
        holding = {id(at): at for at, _, _ in self._reading.all if at.name != EARLIER}
        for section in reversed(self._sections):
            if id(section) in holding:
                return section
        others = [section for section in self._sections if section.name not in OWN_SECTIONS]
        if not others or others[-1] is not self._before_own():
            others = [self._before_own()]
        return others[-1]

    def _before_own(self) -> _Section:
        """The last section before ours; a new one if ours are the first."""
        place = next(
            (at for at, section in enumerate(self._sections) if section.name in OWN_SECTIONS),
            len(self._sections),
        )
        if not place:
            self._sections.insert(0, _Section())
            place = 1
        return self._sections[place - 1]

    def _own(self, name: str) -> _Section:
        for section in self._sections:
            if section.name == name:
                return section
        later = OWN_SECTIONS[OWN_SECTIONS.index(name) + 1 :]
        place = next(
            (at for at, section in enumerate(self._sections) if section.name in later),
            len(self._sections),
        )
        made = _Section(heading=_Row(text=name))
        self._sections.insert(place, made)
        return made

    def _tidy(self) -> None:
        """No section of ours without anything in it, and a blank line before each."""
        self._sections = [
            section
            for section in self._sections
            if section.name not in OWN_SECTIONS or section.is_bare or not section.is_blank
        ]
        self._read = None
        for above, section in zip(self._sections, self._sections[1:], strict=False):
            if section.name in OWN_SECTIONS or above.name in OWN_SECTIONS:
                last = above.rows[-1] if above.rows else above.heading
                if last is not None and last.text.strip():
                    above.rows.append(_Row(text=""))
        last_section = self._sections[-1] if self._sections else None
        while last_section and last_section.name in OWN_SECTIONS and last_section.rows:
            if last_section.rows[-1].text.strip():
                break
            last_section.rows.pop()


def gained(note: Note, other: Note) -> Note:
    """A note that knows what another does of the same claim."""
    sources = tuple(dict.fromkeys(note.sources + other.sources))[:SOURCES_MAX]
    return replace(
        note,
        at=max(note.at, other.at),
        sources=sources,
        fact_id=note.fact_id or other.fact_id,
        topic=note.topic or other.topic,
        due=note.due or other.due,
    )


def _sections(body: str) -> Iterator[_Section]:
    section = _Section()
    fence = ""
    for text in body.split("\n") if body else ():
        before, fence = fence, _after(text, fence)
        is_code = bool(before or fence)
        if not is_code and _HEADING.match(text):
            yield section
            section = _Section(heading=_Row(text=text), is_bare=True)
        else:
            section.rows.append(_Row(text=text, is_code=is_code))
            section.is_bare = section.is_bare and not text.strip()
    yield section


def _is_closed(rows: list[_Row]) -> bool:
    fence = ""
    for row in rows:
        fence = _after(row.text, fence) if row.is_code else ""
    return not fence


def _after(text: str, fence: str) -> str:
    """The fence that is open behind a line, if any."""
    mark = _FENCE.fullmatch(text)
    if mark is None:
        return fence
    if not fence:
        return mark["mark"]
    closes = mark["mark"].startswith(fence) and not mark["rest"].strip()
    return "" if closes else fence


def _kind(text: str) -> str:
    """What stands together without a blank line between: items, and notes."""
    return "note" if text.startswith("[^") else "item" if _ITEM.match(text) else "text"

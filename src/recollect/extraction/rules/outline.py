"""A small Markdown document that can be read again and grown: a head, sections, lists in them.

Reading never fails: what is not of this shape is kept as it is, so that a text that something else
wrote survives being grown here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

LINE_CHARS_MAX = 400


@dataclass(slots=True, kw_only=True)
class Section:
    """A heading, the lines right below it, and named lists of entries."""

    title: str
    lines: list[str] = field(default_factory=list)
    lists: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, entries: Iterable[str], limit: int) -> None:
        """Grow a list, each entry once; of more than `limit` entries the oldest go."""
        listed = self.lists.setdefault(name, [])
        known = set(listed)
        for entry in entries:
            line = one_line(f"- {entry}", LINE_CHARS_MAX)
            if line not in known:
                known.add(line)
                listed.append(line)
        del listed[:-limit]
        if not listed:
            del self.lists[name]

    def grow(self, entries: Iterable[str], limit: int) -> None:
        """Grow the lines below the heading in the same way."""
        known = set(self.lines)
        for entry in entries:
            line = one_line(f"- {entry}", LINE_CHARS_MAX)
            if line not in known:
                known.add(line)
                self.lines.append(line)
        del self.lines[:-limit]

    def put(self, name: str, value: str) -> None:
        """Set a line `name: value`."""
        line = f"{name}: {one_line(value, LINE_CHARS_MAX)}"
        for place, known in enumerate(self.lines):
            if known.startswith(f"{name}: "):
                self.lines[place] = line
                return
        self.lines.append(line)

    def get(self, name: str) -> str:
        return next(
            (line[len(name) + 2 :] for line in self.lines if line.startswith(f"{name}: ")), ""
        )

    def text(self) -> str:
        lists = [
            "\n".join([f"### {name}", *entries]) for name, entries in self.lists.items() if entries
        ]
        head = "\n".join([f"## {self.title}", *self.lines])
        return "\n".join([head, *lists])


@dataclass(slots=True, kw_only=True)
class Outline:
    """The whole document."""

    front: dict[str, str] = field(default_factory=dict)
    lead: list[str] = field(default_factory=list)  # before the first section
    sections: list[Section] = field(default_factory=list)

    def section(self, title: str) -> Section:
        """The section of that name, made if there is none."""
        for section in self.sections:
            if section.title == title:
                return section
        self.sections.append(Section(title=title))
        return self.sections[-1]

    def text(self) -> str:
        front = []
        if self.front:
            lines = [f"{name}: {value}" for name, value in self.front.items() if value]
            front = ["\n".join(["---", *lines, "---"])]
        lead = ["\n".join(self.lead)] if self.lead else []
        body = [section.text() for section in self.sections if section.lines or section.lists]
        return "\n\n".join([*front, *lead, *body])

    def bounded(self, chars_max: int) -> str:
        """The text, without the lists of the oldest sections and then the oldest sections."""
        text = self.text()
        for section in self.sections[:-1]:
            if len(text) <= chars_max:
                return text
            section.lists.clear()
            text = self.text()
        while len(text) > chars_max and len(self.sections) > 1:
            del self.sections[0]
            text = self.text()
        return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def read_outline(text: str) -> Outline:
    """A document from its text."""
    outline = Outline()
    lines = text.strip().split("\n")
    if lines[0] == "---" and "---" in lines[1:]:
        end = lines.index("---", 1)
        for line in lines[1:end]:
            name, colon, value = line.partition(": ")
            if colon:
                outline.front[name] = value
        lines = lines[end + 1 :]
    target = outline.lead
    for line in lines:
        if line.startswith("## "):
            outline.sections.append(Section(title=line[3:]))
            target = outline.sections[-1].lines
        elif line.startswith("### ") and outline.sections:
            target = outline.sections[-1].lists.setdefault(line[4:], [])
        elif line.strip():
            target.append(line)
    return outline


def one_line(text: str, chars_max: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"

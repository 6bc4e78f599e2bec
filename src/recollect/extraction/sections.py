"""How the texts about a session grow: what an answer adds to them and what it may change.

Owns X9 for what a model writes. A text is made of sections. An answer is shown some of them, each
whole and under a name; it gives back what is new, and what it changes under its name. A section
that was not shown, or that the answer says nothing about, stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from recollect.extraction.digest import Redact, shortened
from recollect.extraction.transcript import fenced
from recollect.knowledge import Draft, Extraction

# What the sections of each text are named by, with a number; "m" is for what a block cites.
MEMORY, SUMMARY = "r", "s"
KEPT_SHARE_MIN = 0.5  # of a section's words, in one that takes its place
_HEADING = re.compile(r"#{1,2}[ \t]+\S")
_NAME = re.compile(r"\[(?P<letter>[rs])(?P<number>[0-9]{1,6})\][ \t]*")
_NAMED = re.compile(rf"^(#*[ \t]*){_NAME.pattern}", re.MULTILINE)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_OUTCOME = "outcome:"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierText:
    """A text as it was before an answer, as sections, and which of them the answer was shown."""

    text: str
    sections: tuple[str, ...]
    shown: frozenset[int]
    letter: str

    def rendered(self, redact: Redact, chars_max: int) -> str:
        """The sections that are shown, by name; of a last one too long for that, a part."""
        lines = [
            redact(_named(section, f"[{self.letter}{place + 1}]"))
            for place, section in enumerate(self.sections)
            if place in self.shown
        ]
        if self.sections and len(self.sections) - 1 not in self.shown:
            lines.append(shortened(redact(self.sections[-1]), chars_max))
        return "\n\n".join(lines)

    def grown(self, answer: str) -> str:
        """The text with what an answer adds and changes."""
        if not self.sections:  # there was nothing to name
            return _NAMED.sub(r"\1", answer)
        sections, changed = list(self.sections), set[int]()
        for given in _sections(answer, self.letter):
            section, named = self._unnamed(given)
            place = self._meant(section, named, sections)
            if place is None:
                if not any(_says(other, section) for other in sections):
                    changed.add(len(sections))
                    sections.append(section)
                continue
            share = KEPT_SHARE_MIN if place == named else 1.0
            is_open = place in self.shown and place not in changed
            is_new = is_open and _kept_share(sections[place], section) >= share
            sections[place] = section if is_new else _joined(sections[place], section)
            changed.add(place)
        if tuple(sections) == self.sections:
            return self.text
        if self.letter == MEMORY:  # what has no heading stands before the first that has one
            sections.sort(key=lambda section: bool(_title(section)))
        return "\n\n".join(sections)

    def _unnamed(self, section: str) -> tuple[str, int | None]:
        """A section without its name, and the place of the one that has it, if it was shown."""
        name = _NAME.search(section.partition("\n")[0])
        if name is None:
            return section, None
        place = int(name["number"]) - 1
        is_known = name["letter"] == self.letter and place in self.shown
        return section.replace(name[0], "", 1), place if is_known else None

    def _meant(self, section: str, named: int | None, sections: Sequence[str]) -> int | None:
        """Where the section stands that is given again; a name alone does not make it the same."""
        if named is not None and _is_about(self.sections[named], section):
            return named
        if title := _title(section):
            same = (place for place, other in enumerate(sections) if _title(other) == title)
        else:  # one that says all that another does
            same = (each for each in self.shown if _kept_share(self.sections[each], section) == 1.0)
        return next(same, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What a session came to before, as an answer is shown it."""

    memory: EarlierText
    summary: EarlierText
    slug: str | None

    @classmethod
    def of(cls, previous: Extraction | None, said: str, chars_max: int) -> Earlier:
        """The sections to show of each text: as many as fit, the nearest to what was said now."""
        words = frozenset(_words(said))
        memory = "" if previous is None else previous.raw_memory
        summary = "" if previous is None else previous.rollout_summary
        return cls(
            memory=_earlier(memory, MEMORY, words, chars_max),
            summary=_earlier(summary, SUMMARY, words, chars_max),
            slug=None if previous is None else previous.rollout_slug,
        )

    def rendered(self, redact: Redact, chars_max: int) -> str:
        """What is shown of it, none of it on a line by itself."""
        parts = []
        for name, each in (("raw_memory", self.memory), ("rollout_summary", self.summary)):
            if text := each.rendered(redact, chars_max):
                count = len(each.sections) - len(each.shown)
                rest = f" ({count:,} more parts of it are not shown)" if count else ""
                parts.append(f"{name}{rest}:\n{fenced(text)}")
        if self.slug:
            parts.append(f"rollout_slug:\n{fenced(shortened(redact(self.slug), chars_max))}")
        return "\n\n".join(parts)

    def grown(self, draft: Draft) -> Draft:
        """A draft that stands for the whole session, made of one that says what is new."""
        return replace(
            draft,
            raw_memory=self.memory.grown(draft.raw_memory),
            rollout_summary=self.summary.grown(draft.rollout_summary),
            rollout_slug=draft.rollout_slug or self.slug,
        )


def _earlier(text: str, letter: str, said: frozenset[str], chars_max: int) -> EarlierText:
    sections = tuple(_sections(text, letter))
    words = [frozenset(_words(section)) for section in sections]
    counts = Counter(word for each in words for word in each)
    last = len(sections) - 1

    def nearness(place: int) -> tuple[bool, float, int]:
        shared = sum(1 / counts[word] for word in words[place] & said)
        return place == last, shared, place

    shown, room = set[int](), chars_max
    for place in sorted(range(len(sections)), key=nearness, reverse=True):
        if len(sections[place]) <= room and not sections[place].startswith("---"):
            shown.add(place)
            room -= len(sections[place])
    return EarlierText(text=text, sections=sections, shown=frozenset(shown), letter=letter)


def _sections(text: str, letter: str) -> Iterator[str]:
    """A memory by its headings, a summary by its paragraphs; before any heading, paragraphs."""
    lines: list[str] = []
    is_code = is_headed = False
    for line in [*text.splitlines(), ""]:
        is_heading = not is_code and _HEADING.match(line) is not None
        is_break = not line.strip() and not is_code and not (is_headed and letter == MEMORY)
        if (is_heading or is_break) and any(map(str.strip, lines)):
            yield "\n".join(lines).strip()
            lines = []
        is_code ^= line.lstrip().startswith("```")
        is_headed = is_headed or is_heading
        lines.append(line)
    if rest := "\n".join(lines).strip():
        yield rest


def _named(section: str, name: str) -> str:
    """A section with its name in front of its first words."""
    heading = re.match(r"#+[ \t]+", section)
    start = 0 if heading is None else heading.end()
    return f"{section[:start]}{name} {section[start:]}"


def _title(section: str) -> str:
    """The words of its heading; none where it has none."""
    first = section.partition("\n")[0]
    return " ".join(_words(first)) if first.startswith("#") else ""


def _is_about(known: str, section: str) -> bool:
    """Whether one section may be another in new words: a small model mixes names up."""
    titles = set(_title(known).split()), set(_title(section).split())
    if all(titles):
        return titles[0] <= titles[1] or titles[1] <= titles[0]
    return not any(titles) and _kept_share(known, section) >= KEPT_SHARE_MIN


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _says(text: str, part: str) -> bool:
    """Whether a text has these words in this order."""
    return f" {' '.join(_words(part))} " in f" {' '.join(_words(text))} "


def _kept_share(old: str, new: str) -> float:
    """How many of the words of one text another has."""
    words = set(_words(old))
    return len(words & set(_words(new))) / len(words) if words else 1.0


def _joined(old: str, new: str) -> str:
    """A section with the lines of another that it does not have; how it ended is told anew."""
    lines = old.split("\n")
    at = len(lines)
    for line in filter(str.strip, new.split("\n")):
        is_outcome = line.startswith(_OUTCOME)
        known = next(
            (
                place
                for place, other in enumerate(lines)
                if _words(other) == _words(line) or (is_outcome and other.startswith(_OUTCOME))
            ),
            None,
        )
        if known is not None:
            lines[known] = line if is_outcome else lines[known]
            at = known + 1 if known else at
        elif not _says(old, line):
            lines.insert(at, line)
            at += 1
    return "\n".join(lines)

"""The texts of a session in parts with names, which an answer replaces or adds to one by one.

Facts are the truth, and the texts are derived; still nothing that was learned may get lost because
a model was shown a part of it. So what an answer does not name stays, and a part gives way only to
one that keeps half of its words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recollect.extraction.transcript import Redact, fenced, shortened
from recollect.types.facts import Extraction

KEPT_SHARE_MIN = 0.5  # of a part's words, in one that takes its place
_HEADING = re.compile(r"#{1,2}[ \t]+\S")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_OUTCOME = "outcome:"
_FRONT = "---"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPart:
    """A part as an answer gives it, and the name of the one it takes the place of."""

    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartedText:
    """A text as it was before an answer, in parts, and which of them the answer was shown."""

    text: str = ""
    parts: tuple[str, ...] = ()
    shown: frozenset[int] = frozenset()
    letter: str

    @classmethod
    def of(cls, text: str, letter: str, said: frozenset[str], chars_max: int) -> PartedText:
        """With as many parts shown as fit: the last, and those nearest to what was said now."""
        parts = tuple(parts_of(text))
        words = [frozenset(_words(part)) for part in parts]
        counts = Counter(word for each in words for word in each)

        def nearness(place: int) -> tuple[bool, float, int]:
            shared = sum(1 / counts[word] for word in words[place] & said)
            return place == len(parts) - 1, shared, place

        shown, room = set[int](), chars_max
        for place in sorted(range(len(parts)), key=nearness, reverse=True):
            if len(parts[place]) <= room and not parts[place].startswith(_FRONT):
                shown.add(place)
                room -= len(parts[place])
        return cls(text=text, parts=parts, shown=frozenset(shown), letter=letter)

    def rendered(self, redact: Redact, chars_max: int) -> str:
        """The parts that are shown, by name; of a last one too long for that, a piece."""
        lines = [
            f"[{self.letter}{place + 1}] {redact(part)}"
            for place, part in enumerate(self.parts)
            if place in self.shown
        ]
        if self.parts and len(self.parts) - 1 not in self.shown:
            lines.append(shortened(redact(self.parts[-1]), chars_max))
        return "\n\n".join(lines)

    def grown(self, answer: Sequence[GivenPart]) -> str:
        """The text with what an answer changes and adds."""
        names = {f"{self.letter}{place + 1}": place for place in self.shown}
        parts = list(self.parts)
        for given in answer:
            place = names.get(given.name)
            for part in parts_of(given.text):
                _put(parts, part, place)
                place = None
        if tuple(parts) == self.parts:
            return self.text
        parts.sort(key=lambda part: bool(_title(part)))  # else it would belong to what has a title
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What a session came to before, as an answer is shown it."""

    memory: PartedText
    summary: PartedText
    slug: str | None = None

    @classmethod
    def of(cls, previous: Extraction | None, said: str, chars_max: int) -> Earlier:
        words = frozenset(_words(said))
        memory = "" if previous is None else previous.raw_memory
        summary = "" if previous is None else previous.rollout_summary
        return cls(
            memory=PartedText.of(memory, "r", words, chars_max),
            summary=PartedText.of(summary, "s", words, chars_max),
            slug=None if previous is None else previous.rollout_slug,
        )

    def rendered(self, redact: Redact, chars_max: int) -> str:
        """What is shown of it, none of it on a line by itself."""
        shown = []
        for name, each in (("raw_memory", self.memory), ("rollout_summary", self.summary)):
            if text := each.rendered(redact, chars_max):
                count = len(each.parts) - len(each.shown)
                rest = f" ({count:,} more parts of it are not shown)" if count else ""
                shown.append(f"{name}{rest}:\n{fenced(text)}")
        if self.slug:
            shown.append(f"rollout_slug:\n{fenced(shortened(redact(self.slug), chars_max))}")
        return "\n\n".join(shown)


def parts_of(text: str) -> Iterator[str]:
    """A text by its headings; what stands before any heading, by paragraphs."""
    lines: list[str] = []
    is_code = is_headed = False
    for line in [*text.splitlines(), ""]:
        is_heading = not is_code and _HEADING.match(line) is not None
        is_break = not line.strip() and not is_code and not is_headed
        if (is_heading or is_break) and any(map(str.strip, lines)):
            yield "\n".join(lines).strip()
            lines = []
        is_code ^= line.lstrip().startswith("```")
        is_headed = is_headed or is_heading
        lines.append(line)
    if rest := "\n".join(lines).strip():
        yield rest


def _put(parts: list[str], part: str, place: int | None) -> None:
    """Put one where it is meant to stand; models mix names up, so a name alone replaces nothing."""
    if place is not None and _is_same_matter(parts[place], part):
        parts[place] = part
        return
    title = _title(part)
    same = (at for at, other in enumerate(parts) if title and _title(other) == title)
    place = next(same, None)
    if place is not None:
        parts[place] = _joined(parts[place], part)
    elif not any(_says(other, part) for other in parts):
        parts.append(part)


def _is_same_matter(old: str, new: str) -> bool:
    """Whether one may be the other in new words: its title goes on, and half of what it says."""
    titles = set(_title(old).split()), set(_title(new).split())
    is_same = titles[0] <= titles[1] or titles[1] <= titles[0]
    return is_same and _kept_share(old, new) >= KEPT_SHARE_MIN


def _joined(old: str, new: str) -> str:
    """A part with the lines of another that it does not have; how it ended is told anew."""
    lines = old.split("\n")
    known = {tuple(_words(line)): at for at, line in enumerate(lines)}
    outcome = next((at for at, line in enumerate(lines) if line.startswith(_OUTCOME)), None)
    at = len(lines)
    for line in filter(str.strip, new.split("\n")):
        if line.startswith(_OUTCOME) and outcome is not None:
            lines[outcome] = line
        elif tuple(_words(line)) not in known and not _says(old, line):
            lines.insert(at, line)
            at += 1
    return "\n".join(lines)


def _title(part: str) -> str:
    """The words of its heading; none where it has none."""
    first = part.partition("\n")[0]
    return " ".join(_words(first)) if first.startswith("#") else ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _says(text: str, part: str) -> bool:
    """Whether a text has these words in this order."""
    return f" {' '.join(_words(part))} " in f" {' '.join(_words(text))} "


def _kept_share(old: str, new: str) -> float:
    """How many of the words of one text another has."""
    words = set(_words(old))
    return len(words & set(_words(new))) / len(words) if words else 1.0

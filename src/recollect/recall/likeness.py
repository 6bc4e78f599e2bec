"""Tells when two texts say the same, so that a block says it once.

Careful on one side only: what is shown twice costs a line, what is taken for the same and is not
would be lost. A number, a negation or another word in the place of one makes another statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from recollect.terms import words

OVERLAP_MIN = 0.9  # of all words of both, how many they share
CONTAINED_MIN = 0.5  # of a longer text's words: below, it is about more than the shorter one
LONGEST = 2  # words of a text, of which one that says the same has at least one
STEM_CHARS = 4  # words with the same beginning are forms of one

# With what makes it another one: 5, -5, 5:30, 5.50, $5 and 5% are six.
_NUMBER = re.compile(r"(?:(?<!\w)[-−+])?[$€£¥]?\d(?:[.,:/'’-]?\d)*+[%‰°]?")
_NEGATIONS = frozenset(
    """
    no not never none neither nor without cannot nobody nothing hardly t didn doesn don isn wasn
    won nicht kein keine nie ne pas jamais non sin нет не
    """.split()  # noqa: SIM905
)


def denies(text: str) -> bool:
    """Whether something is said not to be so."""
    return not _NEGATIONS.isdisjoint(words(text).split())


class Likeness(Enum):
    """How what comes later relates to what is there already."""

    OTHER = "other"
    SAME = "same"  # nothing in it is new
    FULLER = "fuller"  # it says that, and a little more


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a text, to be compared."""

    line: str  # with a blank at either end, so that words are found whole
    words: frozenset[str]
    numbers: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Wording:
        line = words(text)
        return cls(f" {line} ", frozenset(line.split()), frozenset(_NUMBER.findall(text)))

    @property
    def longest(self) -> Sequence[str]:
        """The words that tell most about a text, if any do."""
        return sorted(self.words, key=len)[-LONGEST:]

    def compared(self, earlier: Wording) -> Likeness:
        """What this is to one that came earlier. A text without words is like no other."""
        if not self.words or not earlier.words:
            return Likeness.OTHER
        if self.line == earlier.line:
            return Likeness.SAME if self.numbers == earlier.numbers else Likeness.OTHER
        is_within = self.line in earlier.line and self.numbers <= earlier.numbers
        is_around = earlier.line in self.line and self.numbers >= earlier.numbers
        sizes = sorted((len(self.words), len(earlier.words)))
        if not is_within and not is_around and sizes[0] < OVERLAP_MIN * sizes[1]:
            return Likeness.OTHER
        added, missing = self.words - earlier.words, earlier.words - self.words
        if not _NEGATIONS.isdisjoint(added | missing):
            return Likeness.OTHER
        if is_around:
            share = len(earlier.line) / len(self.line)
            return Likeness.FULLER if share >= CONTAINED_MIN else Likeness.OTHER
        shared = len(self.words) - len(added)
        is_close = shared >= OVERLAP_MIN * (shared + len(added) + len(missing))
        is_reworded = is_close and self.numbers == earlier.numbers
        is_same = is_within or (is_reworded and _is_rewording(added, missing))
        return Likeness.SAME if is_same else Likeness.OTHER


def _is_rewording(added: frozenset[str], missing: frozenset[str]) -> bool:
    """Whether what differs is a word more or less, or the form of one, and no number."""
    if any(character.isdigit() for word in added | missing for character in word):
        return False
    if not added or not missing:
        return True
    return {word[:STEM_CHARS] for word in added} == {word[:STEM_CHARS] for word in missing}

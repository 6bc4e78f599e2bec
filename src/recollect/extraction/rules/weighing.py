"""Weighs a sentence by its words: which cues it carries, and how likely it is worth keeping.

Every cue, from the rule file or of the sentence's build, is one bit; a sentence is a number, its
weight a sum over the bits. So the many sentences that say nothing cost one pass over their words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

_WORD = re.compile(r"[$€£]?\d[\w.,:/%-]*|[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NAME = re.compile(r"(?<=[\w,;:&\"“'(] )[\"“(']?([^\W\d_a-z][\w’'&-]*[^\W_])")
_TITLE = re.compile(r"[\"“][^\"”]{3,60}[\"”]")
_MEMO_MAX = 50_000


class Setting(StrEnum):
    """Who talks to whom: people with each other, or a person with an agent."""

    PEOPLE = "people"
    AGENT = "agent"


BUILD = (
    "exclaims", "digits", "money", "name", "names", "title", "short", "medium", "long", "answers",
    "attached", "opens", "my", "verb_ed", "lead_me",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Weighed:
    """A sentence with its cues."""

    text: str
    words: tuple[str, ...]
    bits: int
    names: tuple[str, ...]


class Cues:
    """The vocabulary of one language as bits, with their weights per setting."""

    def __init__(
        self, words: Mapping[str, str], weights: Mapping[str, Mapping[str, float]]
    ) -> None:
        self.bits = {name: 1 << place for place, name in enumerate((*words, *BUILD))}
        self._words: dict[str, int] = {}
        self._phrases: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for name, listed in words.items():
            self._learn(self.bits[name], listed.split())
        self._weights = {setting: dict(weights.get(setting, {})) for setting in Setting}
        self._memo: dict[tuple[Setting, int], float] = {}

    def _learn(self, bit: int, entries: Iterable[str]) -> None:
        for entry in entries:
            first, *rest = entry.split("_")
            if rest:
                self._phrases.setdefault(first, []).append((tuple(rest), bit))
            else:
                self._words[first] = self._words.get(first, 0) | bit

    def weigh(self, text: str, speakers: frozenset[str] = frozenset()) -> Weighed:
        """Read a sentence once. `speakers` are names that only address somebody."""
        words = tuple(_WORD.findall(text.lower().replace("’", "'")))
        bits = 0
        known, phrases = self._words, self._phrases
        for place, word in enumerate(words):
            bits |= known.get(word, 0)
            if word in phrases:
                for rest, bit in phrases[word]:
                    if words[place + 1 : place + 1 + len(rest)] == rest:
                        bits |= bit
        names = self._names(text, speakers)
        return Weighed(text, words, bits | self._build(text, words, names), names)

    def _names(self, text: str, speakers: frozenset[str]) -> tuple[str, ...]:
        return tuple(
            name
            for name in _NAME.findall(text)
            if name[0].isupper()
            and name.lower() not in speakers
            and not self._words.get(name.lower().partition("'")[0])
        )

    def _build(self, text: str, words: tuple[str, ...], names: tuple[str, ...]) -> int:
        bit, bits = self.bits, 0
        if "!" in text:
            bits |= bit["exclaims"]
        if names:
            bits |= bit["name"] if len(names) == 1 else bit["name"] | bit["names"]
        for word in words:
            if word[0] in "$€£":
                bits |= bit["money"]
            elif word[0].isdigit():
                bits |= bit["digits"]
            elif word == "my":
                bits |= bit["my"]
            elif word.endswith("ed") and len(word) > 4:
                bits |= bit["verb_ed"]
        if words and words[0] in ("i", "my", "i've", "i'm", "we", "i'd", "i'll"):
            bits |= bit["lead_me"]
        count = len(words)
        if count < 5:
            return bits | bit["short"]
        return bits | bit["long"] if count > 18 else bits | bit["medium"] if count > 10 else bits

    def carry(self, words: Iterable[str], name: str) -> bool:
        """Whether one of some words carries a cue."""
        bit = self.bits[name]
        return any(self._words.get(word, 0) & bit for word in words)

    def title(self, text: str) -> int:
        """The bit of something named in quotation marks: a book, a song, a shop."""
        return self.bits["title"] if _TITLE.search(text) else 0

    def confidence(self, bits: int, setting: Setting) -> float:
        """How likely a sentence with these cues is worth keeping, from 0 to 1."""
        key = (setting, bits)
        found = self._memo.get(key)
        if found is None:
            weights = self._weights[setting]
            total = weights.get("bias", 0.0) + sum(
                weights.get(name, 0.0) for name, bit in self.bits.items() if bits & bit
            )
            found = 1 / (1 + math.exp(-total))
            if len(self._memo) < _MEMO_MAX:
                self._memo[key] = found
        return found

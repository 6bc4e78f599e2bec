"""Tells when facts say what a record or a line of a page says: a block need not show both.

Careful on one side only, as likeness is: a fact rarely says everything, and what it leaves out
would be lost.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from recollect.recall.likeness import denies
from recollect.recollection import EntryKind, Hit
from recollect.stems import stem
from recollect.terms import search_terms

TOLD_MAX = 3  # records that a fact's source may name to stand for each of them
COVERED_MIN = 0.8  # of a record's words: those that its facts have
WORDS_MAX = 2000

# What a page writes around a statement: its records, its days, where a link leads.
_AROUND = re.compile(r"\[#[^\]\n]*\]|\(\d{4}-\d\d-\d\d[^)\n]*\)|\[\[[^\]|\n]*\|?|\]\]")
_HEADING = re.compile(r"(#{1,6}) ")
_NOTHING = re.compile(r"^outcome: uncertain$", re.MULTILINE)  # of a session, and nobody asks for it
_LABEL_LEVEL = 7  # of a line that ends in a colon, below all headings
_PERSON = frozenset({"user"})  # "I" in a record, "the user" in what was made of it

Place = tuple[str, int]


class Told:
    """What the facts among some hits were learned from."""

    def __init__(self, hits: Iterable[Hit]) -> None:
        self._facts: dict[Place, list[Hit]] = defaultdict(list)
        for hit in hits:
            if hit.kind is EntryKind.FACT:
                for place in _places(hit):
                    self._facts[place].append(hit)

    def has(self, record: Hit, shown: Collection[str] | None = None) -> bool:
        """Whether these facts, by their ids, say what a record says; none: all there are."""
        if record.kind is not EntryKind.RECORD:
            return False
        facts = [
            fact
            for source in record.sources
            for fact in self._facts.get((source.session_id, source.seq), ())
            if shown is None or fact.id in shown
        ]
        return bool(facts) and _covers(facts, record)


def _places(fact: Hit) -> set[Place]:
    return {
        (source.session_id, seq)
        for source in fact.sources
        for seq in range(source.seq, min(source.seq_to, source.seq + TOLD_MAX) + 1)
    }


def _covers(facts: Sequence[Hit], record: Hit) -> bool:
    said = _stems(record.text)
    missing = said.difference(*(_stems(fact.text) for fact in facts))
    if any(not word.isalpha() for word in missing):
        return False  # a number makes another statement
    return len(said) - len(missing) >= COVERED_MIN * len(said)


def _stems(text: str) -> set[str]:
    """Those of the words that say something."""
    return {stem(word) for word in search_terms(text, WORDS_MAX)}


def untold(text: str, facts: Sequence[str]) -> str:
    """A text of many lines without those that one of these facts says, or that say nothing."""
    told = [(_said(fact), denies(fact)) for fact in facts]
    if not told and _NOTHING.search(text) is None:
        return text
    kept: list[str] = []
    above: list[tuple[int, str]] = []  # headings that nothing has followed yet
    for line in text.splitlines():
        level = _level(line)
        if level is not None:
            above = [each for each in above if each[0] < level]
        if _is_told(line, told) or _NOTHING.match(line):
            continue
        if level is not None:
            above.append((level, line))
            continue
        if line.strip():
            kept += (heading for _, heading in above)
            above = []
        kept.append(line)
    return "\n".join(kept).strip()


def _level(line: str) -> int | None:
    heading = _HEADING.match(line)
    if heading is not None:
        return len(heading[1])
    return _LABEL_LEVEL if line.rstrip().endswith(":") else None


def _is_told(line: str, told: Sequence[tuple[frozenset[str], bool]]) -> bool:
    said = _said(line)
    if not said:
        return False
    is_denied = denies(line)
    for fact, fact_denies in told:
        missing = said - fact
        if fact_denies is is_denied and len(missing) <= (1 - COVERED_MIN) * len(said):
            return all(word.isalpha() for word in missing)
    return False


@lru_cache(maxsize=8192)  # the same few pages are looked at in every turn
def _said(line: str) -> frozenset[str]:
    return frozenset(_stems(_AROUND.sub(" ", line)) - _PERSON)

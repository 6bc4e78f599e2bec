"""Tells when facts say all that a record says they were learned from: a block need not show both.

Careful on one side only, as likeness is: a fact rarely says everything, and what it leaves out
would be lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from recollect.recollection import EntryKind, Hit
from recollect.stems import stem
from recollect.terms import search_terms

TOLD_MAX = 3  # records that a fact's source may name to stand for each of them
COVERED_MIN = 0.8  # of a record's words: those that its facts have
WORDS_MAX = 2000

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

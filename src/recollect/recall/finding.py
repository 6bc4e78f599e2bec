"""From a question to what may answer it: one search, by words and by meaning together.

A question is embedded without the names of those it asks about, which mislead an embedder. Whose
names these are only what is found tells, so that those of earlier questions are taken at first, and
it is looked again where they were not right.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.recall.candidates import Question, Similarities
from recollect.recall.question import corpus, sought, without_names
from recollect.recall.rank import speakers_asked
from recollect.recollection import Entry, EntryKind, Filters, Found, Reach
from recollect.store.protocol import Store
from recollect.terms import words

if TYPE_CHECKING:
    from recollect.recall.meaning import Likeness, Meaning


SPACES_MAX = 1000
NAMES_MAX = 100  # of a space: those seen last


class KnownSpeakers:
    """Who was seen speaking in the spaces asked last. Safe to share between threads."""

    def __init__(self, spaces_max: int = SPACES_MAX, names_max: int = NAMES_MAX) -> None:
        self._spaces_max = spaces_max
        self._names_max = names_max
        self._names: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, space: str) -> Collection[str]:
        return self._names.get(space, ())

    def saw(self, space: str, names: Collection[str]) -> None:
        with self._lock:
            known = self._names.pop(space, ())
            older = [name for name in known if name not in names]
            self._names[space] = (*older, *names)[-self._names_max :]
            while len(self._names) > self._spaces_max:
                self._names.popitem(last=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found, and how alike it is, where there are vectors."""

    found: Found
    likeness: Likeness | None

    def similarities(self, entries: Sequence[Entry]) -> Similarities | None:
        if self.likeness is None:
            return None
        usual, spread = self.likeness.usual
        cosines = self.likeness.cosines([(entry.kind, entry.key) for entry in entries])
        return Similarities(cosines=cosines, usual=usual, spread=spread)


class Finder:
    """Looks in one space."""

    def __init__(
        self,
        store: Store,
        space: str,
        meaning: Callable[[], Meaning | None],
        speakers: KnownSpeakers,
    ) -> None:
        self._store = store
        self._space = space
        self._meaning = meaning
        self._speakers = speakers

    def look(
        self, question: Question, query: str, allowed: Filters, now: datetime, reach: Reach
    ) -> Looked:
        def found(likeness: Likeness | None) -> Looked:
            wanted = sought(question)
            if likeness is not None:
                wanted = replace(wanted, alike=likeness.nearest(allowed.kinds))
            entries = self._store.search.candidates(self._space, wanted, allowed, now, reach)
            return Looked(found=entries, likeness=likeness)

        meaning = self._meaning()
        if meaning is None:
            return found(None)
        expected = self._expected(question, allowed)
        likeness = meaning.of(self._space, without_names(query, expected))
        looked = found(likeness)
        if likeness is None:
            return looked
        told = self._told(question, looked.found)
        if told == expected or without_names(query, told) == without_names(query, expected):
            return looked
        likeness = meaning.of(self._space, without_names(query, told))
        return looked if likeness is None else found(likeness)

    def _expected(self, question: Question, allowed: Filters) -> frozenset[str]:
        """Whom the question names, if those are found who were before: only records have any."""
        if EntryKind.RECORD not in allowed.kinds:
            return frozenset()
        return speakers_asked(question.terms, self._speakers.of(self._space))

    def _told(self, question: Question, found: Found) -> frozenset[str]:
        """Whom it names of those that were found."""
        named = {entry.speaker for entry in found.entries if entry.speaker}
        speakers = {words(name) for name in named}
        if speakers:
            self._speakers.saw(self._space, sorted(speakers))
        return speakers_asked(question.terms, speakers, corpus(found).holders)

"""The entries that may answer a question: found by words and by meaning together, side by side.

A question is embedded without the names of those it asks about, which mislead an embedder. Whose
names these are only what is found tells, so that those of earlier questions are taken at first, and
it is looked again where they were not right.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.recall.question import (
    SUBJECT_CHARS,
    Question,
    owned_stems,
    sought,
    speakers_asked,
    without_names,
)
from recollect.stemming import words
from recollect.store.protocol import Store
from recollect.types.facts import Trust
from recollect.types.recall import Entry, EntryKind, Filters, Found, Reach

if TYPE_CHECKING:
    from recollect.recall.meaning import Meaning, VectorQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """What the store knows of the whole space."""

    entries: int
    holders: Mapping[str, int]  # for each stem of the question how many entries have it, or about


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The entries that may answer, side by side: one list for each thing that ranking asks of them.

    Hundreds are looked at for a question and few are chosen: an object for each would cost as much
    as ranking them.

    `stems` are those of a text in their order, with one blank before and after each, so that
    counting one is a search for " stem ". Session and number are those of a record; what has none
    has no neighbours. Of equals the one with the lower turn goes first; no two have the same.
    """

    stems: Sequence[str]
    said_at: Sequence[datetime]
    trusts: Sequence[Trust]
    speakers: Sequence[str]  # without case and accents; of a fact who said it, if that is known
    subjects: Sequence[str]  # of a fact its subject and its first words, likewise
    happened: Sequence[tuple[datetime, datetime] | None]  # when what a fact tells of was
    owned: Sequence[str]  # of each the stems behind "my", or of a fact behind the first "'s"
    have_changed: Sequence[bool]  # facts that were replaced, and those that took their place
    sessions: Sequence[str | None]
    seqs: Sequence[int]
    uses: Sequence[int]
    turns: Sequence[int]

    def __len__(self) -> int:
        return len(self.stems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarities:
    """Cosines of entries with the question, and what is usual between any two texts of the model.

    Models differ in both: without them no weight would fit two of them.
    """

    cosines: Sequence[float | None]  # one for each candidate; none counts as too unlike
    usual: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate by its place, with its score, and the parts the score is the sum of."""

    at: int
    turn: int
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)


SUBJECT_WORDS = 3  # of a fact, that say who it is about
PERSON_SHARE = 2 / 3  # of what people say in what was found: who says so much of it is the person
_NO_NAMES = frozenset({"agent", "ai", "assistant", "bot", "model", "system"})
SPACES_MAX = 1000
NAMES_MAX = 100  # of a space: those seen last

# Of equals what says most by itself goes first, and of those the newest.
_KEYS = 2**62
_TURN_OF_KIND = {kind: at * _KEYS for at, kind in enumerate(EntryKind)}
_ID_OF_KIND = {kind: f"{kind}:" for kind in EntryKind}


class KnownSpeakers:
    """The speakers seen in the spaces that were searched last. Safe to share between threads."""

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
    likeness: VectorQuery | None

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
        def found(likeness: VectorQuery | None) -> Looked:
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
        named = self._named(question, looked.found)
        if named == expected or without_names(query, named) == without_names(query, expected):
            return looked
        likeness = meaning.of(self._space, without_names(query, named))
        return looked if likeness is None else found(likeness)

    def _expected(self, question: Question, allowed: Filters) -> frozenset[str]:
        """The known speakers whom the question names; only records have speakers."""
        if EntryKind.RECORD not in allowed.kinds:
            return frozenset()
        return speakers_asked(question.terms, self._speakers.of(self._space))

    def _named(self, question: Question, found: Found) -> frozenset[str]:
        """The speakers of the found entries whom the question names."""
        named = {entry.speaker for entry in found.entries if entry.speaker}
        speakers = {words(name) for name in named}
        if speakers:
            self._speakers.saw(self._space, sorted(speakers))
        return speakers_asked(question.terms, speakers, corpus(found).holders)


def person(entries: Iterable[Entry]) -> str | None:
    """The name of a space's person, as far as entries show: the one who speaks most."""
    said = Counter(
        entry.speaker
        for entry in entries
        if entry.kind is EntryKind.RECORD and entry.trust is Trust.USER
    )
    [(name, count)] = said.most_common(1) or [("", 0)]
    return name if count and count >= PERSON_SHARE * said.total() else None


def corpus(found: Found) -> Corpus:
    """How much there is, of all kinds together."""
    holders: Counter[str] = Counter()
    for extent in found.extents.values():
        holders.update(extent.holders)
    entries = sum(extent.entries for extent in found.extents.values())
    return Corpus(entries=entries, holders=holders)


def candidates(question: Question, entries: Sequence[Entry]) -> Candidates:
    """`entries` as ranking looks at them, in the same order."""
    record, fact = EntryKind.RECORD, EntryKind.FACT
    speakers = [_teller(entry) if entry.kind is fact else entry.speaker for entry in entries]
    names = {name: words(name) for name in set(speakers)}
    replacing = {entry.replaced_by for entry in entries if entry.replaced_by}
    return Candidates(
        stems=[f" {entry.stems} " for entry in entries],
        said_at=[entry.at for entry in entries],
        trusts=[_voice(entry) for entry in entries],
        speakers=[names[speaker] for speaker in speakers],
        subjects=[_subject(entry) if entry.kind is fact else "" for entry in entries],
        happened=[entry.happened for entry in entries],
        owned=[" ".join(("", *owned_stems(entry.text, entry.kind), "")) for entry in entries]
        if question.owned
        else [""] * len(entries),
        have_changed=[
            entry.kind is fact and (bool(entry.replaced_by) or entry.text in replacing)
            for entry in entries
        ],
        sessions=[entry.session_id if entry.kind is record else None for entry in entries],
        seqs=[entry.seq for entry in entries],
        uses=[entry.usage_count for entry in entries],
        turns=[_TURN_OF_KIND[entry.kind] - entry.key for entry in entries],
    )


def _voice(entry: Entry) -> Trust:
    """Whose word it is, to be weighed: somebody with a name is a person, whatever their seat."""
    if entry.trust is Trust.AGENT and entry.kind is EntryKind.RECORD and entry.speaker:
        return Trust.AGENT if words(entry.speaker) in _NO_NAMES else Trust.USER
    return entry.trust


def _teller(entry: Entry) -> str:
    speaker = entry.metadata.get("speaker")
    return speaker if isinstance(speaker, str) else ""


def _subject(entry: Entry) -> str:
    first = " ".join(words(entry.text[:SUBJECT_CHARS]).split()[:SUBJECT_WORDS])
    return f"{words(entry.about[0])} {first}" if entry.about else first


def candidate_id(entry: Entry) -> str:
    return f"{_ID_OF_KIND[entry.kind]}{entry.key}"

"""From a text to a question, and from what a store found to what ranking works on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice, pairwise

from recollect.knowledge import Trust
from recollect.recall.addressing import (
    asks_agent,
    asks_change,
    asks_past,
    is_personal,
    matter,
)
from recollect.recall.candidates import Candidates, Corpus, Phrase, Question, Term
from recollect.recall.related import related_stems
from recollect.recollection import Entry, EntryKind, Found, Sought
from recollect.stems import asked_stems, stem, stems
from recollect.terms import words
from recollect.times import time_ranges

PHRASES_MAX = 48
PAIRED_CHARS_MAX = 2000  # of a question, in which words stand together
SUBJECT_CHARS, SUBJECT_WORDS = 60, 3  # of a fact, that say who it is about
REPLACED_MAX = 20  # facts replaced last, for who asks what has changed
PERSON_SHARE = 2 / 3  # of what people say in what was found: who says so much of it is the person

_NAME = stem("name")
_NO_NAMES = frozenset({"agent", "ai", "assistant", "bot", "model", "system"})

_WORD = re.compile(r"[^\W_]+")
_QUOTED = re.compile(
    r'"([^"\n]{3,200})"|“([^”\n]{3,200})”|«([^»\n]{3,200})»'
    r"|(?<!\w)['‘]([^\s'‘’](?:[^'‘’\n]|(?<=\w)['’](?=\w)){1,198}[^\s'‘’])['’](?!\w)"
)

_MY = re.compile(r"\bmy\s+(\w+)", re.IGNORECASE)
_I_AM = re.compile(r"\b(?:I['’]m|I am|[Cc]all me|[Tt]his is)\s+[A-Z][a-z]+\b")
_ITS = re.compile(r"['’]s?\s+(\w+)")

# Of equals what says most by itself goes first, and of those the newest.
_KEYS = 2**62
_TURN_OF_KIND = {kind: at * _KEYS for at, kind in enumerate(EntryKind)}
_ID_OF_KIND = {kind: f"{kind}:" for kind in EntryKind}


def ask(text: str, now: datetime) -> Question:
    """What a text asks for: its stems, those that stand together, and the times it names."""
    every = asked_stems(text)
    about = asked_stems(matter(text))
    asked = {stem: word for stem, word in every.items() if stem in about} or every
    capitals = {words(each) for each in _WORD.findall(text) if each[0].isupper()}
    return Question(
        terms=tuple(
            Term(
                stem=stem,
                word=word,
                is_capital=word in capitals,
                related=tuple(other for other in related_stems(stem) if other not in asked),
            )
            for stem, word in asked.items()
        ),
        asked_at=now,
        times=tuple(time_ranges(text, now)),
        phrases=tuple(islice(_phrases(text, asked), PHRASES_MAX)),
        asks_agent=asks_agent(text),
        asks_past=asks_past(text),
        asks_change=asks_change(text),
        is_personal=is_personal(_QUOTED.sub(" ", text)) and not asks_agent(text),
        owned=tuple(dict.fromkeys(_owned(text, EntryKind.RECORD))),
    )


def asked_by(question: Question, name: str) -> Question:
    """The same, by somebody of this name; "" if they have none."""
    return replace(question, asker=words(name))


def person(entries: Iterable[Entry]) -> str | None:
    """Who the person of a space is, as far as entries show: who says most of what people say."""
    said = Counter(
        entry.speaker
        for entry in entries
        if entry.kind is EntryKind.RECORD and entry.trust is Trust.USER
    )
    [(name, count)] = said.most_common(1) or [("", 0)]
    return name if count and count >= PERSON_SHARE * said.total() else None


def _owned(text: str, kind: EntryKind) -> list[str]:
    """The stems behind "my"; of a fact the one behind the first "'s"."""
    if kind is EntryKind.FACT:
        return [stem(words(each[1])) for each in islice(_ITS.finditer(text[:SUBJECT_CHARS]), 1)]
    name = (_NAME,) if _I_AM.search(text) else ()
    return [*name, *(stem(words(each[1])) for each in _MY.finditer(text))]


def _phrases(text: str, asked: Collection[str]) -> Iterator[Phrase]:
    """What stands in quotation marks, and every two words worth a search with nothing between."""
    for found in _QUOTED.finditer(text):
        said = tuple(stems(found[found.lastindex or 0]))
        if len(said) > 1:
            yield Phrase(said, is_quoted=True)
    pairs = dict.fromkeys(pairwise(stems(text[:PAIRED_CHARS_MAX])))
    yield from (Phrase(pair) for pair in pairs if pair[0] in asked and pair[1] in asked)


def sought(question: Question) -> Sought:
    """What a store is asked for."""
    asker = stems(question.asker) if question.asker else ()  # as if they had named themselves
    return Sought(
        stems=tuple(dict.fromkeys((*(term.stem for term in question.terms), *asker))),
        related={term.stem: term.related for term in question.terms if term.related},
        times=tuple((time.start, time.end) for time in question.times),
        replaced=REPLACED_MAX if question.asks_change else 0,
    )


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
        owned=[" ".join(("", *_owned(entry.text, entry.kind), "")) for entry in entries]
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
    told = entry.metadata.get("speaker")
    return told if isinstance(told, str) else ""


def _subject(entry: Entry) -> str:
    return " ".join(words(entry.text[:SUBJECT_CHARS]).split()[:SUBJECT_WORDS])


def candidate_id(entry: Entry) -> str:
    return f"{_ID_OF_KIND[entry.kind]}{entry.key}"


def without_names(text: str, names: Iterable[str]) -> str:
    """A question for an embedder without the names in it, which mislead it."""
    known = {part for name in names for part in name.split()}
    kept = [word for word in text.split() if words(word).split(" ")[0] not in known]
    return " ".join(kept) or text

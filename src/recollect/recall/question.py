"""From a text to a question, and from what a store found to what ranking works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from recollect.recall.candidates import Candidate, Corpus, Question, Term
from recollect.recall.times import time_ranges
from recollect.recollection import Entry, EntryKind, Found, Sought
from recollect.stems import asked_stems
from recollect.terms import words


def ask(text: str, now: datetime) -> Question:
    """What a text asks for: its stems, and the times it names."""
    return Question(
        terms=tuple(Term(stem=stem, word=word) for stem, word in asked_stems(text).items()),
        asked_at=now,
        times=tuple(time_ranges(text, now)),
    )


def sought(question: Question) -> Sought:
    """What a store is asked for."""
    return Sought(
        stems=tuple(term.stem for term in question.terms),
        times=tuple((time.start, time.end) for time in question.times),
    )


def corpus(found: Found) -> Corpus:
    """How much there is, of all kinds together."""
    holders: Counter[str] = Counter()
    for extent in found.extents.values():
        holders.update(extent.holders)
    entries = sum(extent.entries for extent in found.extents.values())
    return Corpus(entries=entries, holders=holders)


def candidates(entries: Iterable[Entry]) -> list[Candidate]:
    return [_candidate(entry) for entry in entries]


def candidate_id(entry: Entry) -> str:
    return f"{entry.kind}:{entry.key}"


def _candidate(entry: Entry) -> Candidate:
    is_record = entry.kind is EntryKind.RECORD
    return Candidate(
        id=candidate_id(entry),
        stems=f" {entry.stems} ",
        length=entry.stems.count(" ") + 1,
        said_at=entry.at,
        trust=entry.trust,
        speaker=words(entry.speaker) if entry.speaker else "",
        session=entry.session_id if is_record else None,
        seq=entry.seq,
        uses=entry.usage_count,
    )


def without_names(text: str, names: Iterable[str]) -> str:
    """A question for an embedder without the names in it, which mislead it."""
    known = {part for name in names for part in name.split()}
    kept = [word for word in text.split() if words(word).split(" ")[0] not in known]
    return " ".join(kept) or text

"""Recall: from a question to the few things worth knowing, in rank order, each with its reasons.

Reads only, and asks no model. What is found by words (and by meaning, where there are vectors) is
ranked, redacted and shown with where it comes from; a context is made of what was recalled.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.documents.paths import read_path
from recollect.errors import InvalidValue
from recollect.fences import without_recalled
from recollect.knowledge import Source, Trust
from recollect.recall import usage
from recollect.recall.candidates import Corpus, Question, Ranked, Similarities
from recollect.recall.filters import read_filters
from recollect.recall.inject import FACTS_MAX, Standing, pack
from recollect.recall.lexical import rarity
from recollect.recall.passages import best_passage
from recollect.recall.question import (
    ask,
    candidate_id,
    candidates,
    corpus,
    sought,
    without_names,
)
from recollect.recall.rank import rank, speakers_asked
from recollect.recollection import (
    Context,
    Entry,
    EntryKind,
    Filters,
    Hit,
    Omission,
    Reach,
    Sought,
)
from recollect.session import Surroundings, page_size
from recollect.store.protocol import Store
from recollect.terms import words

if TYPE_CHECKING:
    from recollect.recall.meaning import Likeness, Meaning

QUERY_CHARS_MAX = 20_000  # of a question; what follows is not read
CONTEXT_TOKENS = 2000
CONTEXT_HITS = 40  # from which a context is packed
TOLD = "a fact was learned from it"
TOLD_MAX = 3  # records that a fact's source may name to stand for each of them
SUMMARY_PATH = "~/memory/memory_summary"
REACH = Reach()


def _no_meaning() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Hits, best first, and the entries they show."""

    hits: Sequence[Hit]
    entries: Sequence[Entry]


class Recaller:
    """What a space remembers, asked in plain words."""

    def __init__(
        self,
        around: Surroundings,
        store: Store,
        space: str,
        meaning: Callable[[], Meaning | None] = _no_meaning,
    ) -> None:
        self._around = around
        self._store = store
        self._space = space
        self._meaning = meaning

    def recall(
        self,
        query: str,
        limit: int = 10,
        *,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
    ) -> builtins.list[Hit]:
        """The best hits for any text, best first; none where nothing fits."""
        allowed = read_filters(filters, kinds=kinds, as_of=as_of)
        return list(self._recalled(query, page_size(limit), allowed).hits)

    def context(
        self,
        query: str,
        max_tokens: int = CONTEXT_TOKENS,
        *,
        max_facts: int = FACTS_MAX,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        summary: str | None = None,
    ) -> Context:
        """A block for a prompt that fits its budget exactly; false when there is nothing to say."""
        if type(max_tokens) is not int or type(max_facts) is not int:
            raise InvalidValue("max_tokens and max_facts are whole numbers")
        allowed = read_filters(filters, kinds=kinds, as_of=as_of)
        found = self._recalled(query, CONTEXT_HITS, allowed)
        shown, told = _without_told(found.hits, max_facts)
        block = pack(
            shown,
            summary=self._summary() if summary is None else summary,
            max_tokens=max_tokens,
            max_facts=max_facts,
            now=self._around.now(),
            standings=_standings(found.entries),
        )
        block = replace(block, omitted=(*block.omitted, *told))
        return replace(block, id=self._around.ids.new()) if block else block

    def cite(
        self,
        block: Context,
        used: usage.Used | Iterable[usage.Used] = (),
        *,
        turn: str | None = None,
    ) -> int:
        """Count a block as injected, and what a model used of it as cited, each once in a turn.

        `used` are marks, hits, ids, or the text a model wrote. How many uses were new.
        """
        if not isinstance(block, Context):
            raise InvalidValue(f"a block is what context() gives, not {type(block).__name__}")
        now, turn_id = self._around.now(), turn or block.id
        told = (
            usage.injected(block, turn_id=turn_id, at=now),
            usage.cited(block, used, turn_id=turn_id, at=now),
        )
        return sum(self._store.search.use(self._space, each) for each in told)

    def _recalled(self, query: str, limit: int, allowed: Filters) -> Recalled:
        if not isinstance(query, str):
            raise InvalidValue(f"a query is text, not {type(query).__name__}")
        now = self._around.now()
        question = ask(query[:QUERY_CHARS_MAX], allowed.as_of or now)
        if not question.terms and not question.times:
            return Recalled(hits=(), entries=())
        reach = _reach(limit)
        found = self._store.search.candidates(self._space, sought(question), allowed, now, reach)
        space = corpus(found)
        entries: Sequence[Entry] = found.entries
        likeness = self._likeness(question, query, entries)
        alike = None
        if likeness is not None:
            entries = self._with_alike(entries, likeness, allowed, now)
            alike = _similarities(likeness, entries)
        entries = [entry for entry in entries if _says_something(entry)]
        scored = candidates(entries)
        by_id = {each.id: entry for each, entry in zip(scored, entries, strict=True)}
        ranked = rank(question, space, scored, alike, limit=limit)
        shown = self._whole([by_id[each.candidate.id] for each in ranked], allowed, now)
        worth = _worth(question, space)
        hits = [
            self._hit(shown[each.candidate.id], each, worth)
            for each in ranked
            if each.candidate.id in shown
        ]
        return Recalled(hits=hits, entries=list(shown.values()))

    def _likeness(
        self, question: Question, query: str, entries: Sequence[Entry]
    ) -> Likeness | None:
        """The question among the vectors, by what it says: whom it names is scored apart."""
        meaning = self._meaning()
        if meaning is None:
            return None
        speakers = {words(entry.speaker) for entry in entries if entry.speaker}
        return meaning.of(
            self._space, without_names(query, speakers_asked(question.terms, speakers))
        )

    def _with_alike(
        self, entries: Sequence[Entry], likeness: Likeness, allowed: Filters, now: datetime
    ) -> builtins.list[Entry]:
        """What was found by words, and what is nearest by meaning."""
        nearest = Sought(stems=(), alike=likeness.nearest(allowed.kinds))
        more = self._store.search.candidates(self._space, nearest, allowed, now, REACH)
        known = {candidate_id(entry): entry for entry in (*entries, *more.entries)}
        return list(known.values())

    def _whole(self, chosen: Sequence[Entry], allowed: Filters, now: datetime) -> dict[str, Entry]:
        """The chosen ones with their whole texts; one that is gone by now is left out."""
        keys: dict[EntryKind, builtins.list[int]] = defaultdict(list)
        for entry in chosen:
            if len(entry.text) >= REACH.chars:
                keys[entry.kind].append(entry.key)
        whole = self._store.search.load(self._space, keys, allowed, now) if keys else []
        loaded = {candidate_id(entry): entry for entry in whole}
        return {
            candidate_id(entry): loaded.get(candidate_id(entry), entry)
            for entry in chosen
            if entry.key not in keys.get(entry.kind, ()) or candidate_id(entry) in loaded
        }

    def _hit(self, entry: Entry, ranked: Ranked, worth: Mapping[str, float]) -> Hit:
        redact = self._around.redactor().keyed(self._space).redact
        text = entry.text
        if entry.kind is EntryKind.RECORD and entry.trust is not Trust.TOOL:
            text = without_recalled(text)  # a tool that writes our fence is up to something
        if entry.kind in (EntryKind.DOCUMENT, EntryKind.SUMMARY):
            text = best_passage(text, worth)
        return Hit(
            id=entry.id,
            kind=entry.kind,
            text=redact(text),
            score=ranked.score,
            why=ranked.parts,
            sources=_sources(entry),
            at=entry.at,
            trust=entry.trust,
            title=entry.title,
            speaker=redact(entry.speaker or entry.role),
            tags=entry.tags,
            usage_count=entry.usage_count,
        )

    def _summary(self) -> str:
        """What the space's memory comes to, once consolidation has written it."""
        found = self._store.documents.find(self._space, read_path(SUMMARY_PATH).place)
        return "" if found is None else found.body


def _reach(limit: int) -> Reach:
    """How far to look: further when more is wanted."""
    if limit <= min(REACH.loaded.values()):
        return REACH
    loaded = {kind: max(count, limit) for kind, count in REACH.loaded.items()}
    return replace(REACH, loaded=loaded, postings=max(REACH.postings, 8 * limit))


def _says_something(entry: Entry) -> bool:
    """Not an empty record, and not the space's summary, which has a place of its own."""
    return bool(entry.text.strip()) and (
        entry.kind is not EntryKind.DOCUMENT or entry.id.casefold() != SUMMARY_PATH
    )


def _without_told(hits: Sequence[Hit], max_facts: int) -> tuple[list[Hit], list[Omission]]:
    """The hits without records that one of the better facts was learned from: it says the same."""
    facts = [hit for hit in hits if hit.kind is EntryKind.FACT][: max(max_facts, 0)]
    told = {
        (source.session_id, seq)
        for fact in facts
        for source in fact.sources
        for seq in range(source.seq, min(source.seq_to, source.seq + TOLD_MAX) + 1)
    }
    shown, left_out = [], []
    for hit in hits:
        is_told = hit.kind is EntryKind.RECORD and any(
            (source.session_id, source.seq) in told for source in hit.sources
        )
        if is_told:
            left_out.append(Omission(hit=hit, reason=TOLD))
        else:
            shown.append(hit)
    return shown, left_out


def _similarities(likeness: Likeness, entries: Sequence[Entry]) -> Similarities:
    usual, spread = likeness.usual
    cosines = likeness.cosines([(entry.kind, entry.key) for entry in entries])
    return Similarities(cosines=cosines, usual=usual, spread=spread)


def _sources(entry: Entry) -> tuple[Source, ...]:
    if entry.kind in (EntryKind.RECORD, EntryKind.SUMMARY):
        first = max(entry.seq, 1)
        last = max(entry.seq_to, first)
        return (Source(session_id=entry.session_id, seq=first, seq_to=last),)
    return entry.sources


def _worth(question: Question, space: Corpus) -> dict[str, float]:
    return {
        term.stem: rarity(space.holders.get(term.stem, 0), space.entries) for term in question.terms
    }


def _standings(entries: Iterable[Entry]) -> dict[str, Standing]:
    return {
        entry.id: Standing(topic=entry.topic, since=entry.at)
        for entry in entries
        if entry.kind is EntryKind.FACT
    }

"""Recall: from a question to the few things worth knowing, in rank order, each with its reasons.

Reads only, and asks no model. What is found by words (and by meaning, where there are vectors) is
ranked, redacted and shown with where it comes from; a context is made of what was recalled.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from recollect.collection import check_id
from recollect.documents.paths import read_path
from recollect.errors import InvalidValue
from recollect.fences import without_recalled
from recollect.knowledge import Source
from recollect.messages import Role
from recollect.recall import usage
from recollect.recall.candidates import Corpus, Question, Ranked
from recollect.recall.filters import read_filters
from recollect.recall.finding import Finder
from recollect.recall.inject import (
    CHARS_PER_TOKEN_MAX,
    FACTS_LIMIT,
    FACTS_MAX,
    SUMMARY_SHARE,
    Standing,
    pack,
    pack_summary,
)
from recollect.recall.lexical import rarity
from recollect.recall.passages import best_passage, without_notes
from recollect.recall.question import ask, candidate_id, candidates, corpus
from recollect.recall.rank import rank
from recollect.recall.related import in_other_words
from recollect.recall.speakers import KnownSpeakers
from recollect.recall.variety import LOOKED_AT_SHARE, varied
from recollect.recollection import (
    Context,
    Entry,
    EntryKind,
    Filters,
    Hit,
    Reach,
)
from recollect.session import Surroundings, page_size
from recollect.store.protocol import Store

if TYPE_CHECKING:
    from recollect.recall.meaning import Meaning

QUERY_CHARS_MAX = 20_000  # of a question; what follows is not read
CONTEXT_TOKENS = 2000
CONTEXT_HITS = 24  # from which a context is packed, or twice as many as it may have lines
CONTEXT_CHARS = 3000  # of a record that a context may show a beginning of
MARGIN_CHARS = 1500  # read further than is shown, so that no secret is cut in two and missed
SUMMARY_PATH = "~/memory/memory_summary"
REACH = Reach()
_HAVE_SOURCES = (EntryKind.FACT, EntryKind.DOCUMENT)


def _no_meaning() -> None:
    return None


class _Purpose(Enum):
    """What hits are for."""

    LIST = "list"  # each whole, and none twice
    CONTEXT = "context"  # as much of each as a block may show


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
        speakers: KnownSpeakers | None = None,
    ) -> None:
        self._around = around
        self._store = store
        self._space = space
        self._finder = Finder(store, space, meaning, speakers or KnownSpeakers())
        self._redact: Callable[[str], str] | None = None

    def redacting_by(self, redact: Callable[[str], str]) -> Recaller:
        """The same with a redaction of this space that remembers: who asks at every turn is shown
        much of the same again."""
        same = copy(self)
        same._redact = redact
        return same

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
        beside: str | None = None,
    ) -> Context:
        """A block for a prompt that fits its budget exactly; false when there is nothing to say.

        To no question at all the answer is what the space's memory comes to, its summary alone.
        `beside` is the session that the prompt shows anyway: its records are not repeated.
        """
        if type(max_tokens) is not int or type(max_facts) is not int:
            raise InvalidValue("max_tokens and max_facts are whole numbers")
        allowed = read_filters(filters, kinds=kinds, as_of=as_of)
        if isinstance(query, str) and not query.strip():
            whole = self._summary(allowed, SUMMARY_SHARE * max_tokens)
            told = whole if summary is None else summary
            return self._named(pack_summary(told, max_tokens=max_tokens))
        limit = max(CONTEXT_HITS, min(2 * max_facts, FACTS_LIMIT))
        found = self._recalled(query, limit, allowed, _Purpose.CONTEXT, beside)
        block = pack(
            found.hits,
            summary=self._summary(allowed, max_tokens) if summary is None else summary,
            max_tokens=max_tokens,
            max_facts=max_facts,
            now=self._around.now(),
            standings=_standings(found.entries),
        )
        return self._named(block)

    def _named(self, block: Context) -> Context:
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
        now, turn_id = self._around.now(), _turn(turn) or block.id
        told = (
            usage.injected(block, turn_id=turn_id, at=now),
            usage.cited(block, used, turn_id=turn_id, at=now),
        )
        return sum(self._store.search.use(self._space, each) for each in told)

    def opened(
        self, shown: usage.Opened | Iterable[usage.Opened], *, turn: str | None = None
    ) -> int:
        """Count hits that somebody asked to read, each once in a turn. How many were new."""
        turn_id = _turn(turn) or self._around.ids.new()
        told = usage.opened(shown, turn_id=turn_id, at=self._around.now())
        return self._store.search.use(self._space, told)

    def _recalled(
        self,
        query: str,
        limit: int,
        allowed: Filters,
        purpose: _Purpose = _Purpose.LIST,
        beside: str | None = None,
    ) -> Recalled:
        """The best; the records of the session `beside` take nobody's place."""
        if not isinstance(query, str):
            raise InvalidValue(f"a query is text, not {type(query).__name__}")
        now = self._around.now()
        query = query[:QUERY_CHARS_MAX]
        question = ask(query, allowed.as_of or now)
        if not question.terms and not question.times:
            return Recalled(hits=(), entries=())
        reach = _reach(limit)
        looked = self._finder.look(question, query, allowed, now, reach)
        if not looked.found.entries and (other := in_other_words(question)) is not None:
            question = other
            looked = self._finder.look(question, query, allowed, now, reach)
        space = corpus(looked.found)
        entries = [entry for entry in looked.found.entries if _says_something(entry)]
        if beside is not None:
            entries = [entry for entry in entries if not _is_record_of(entry, beside)]
        looked_at = limit * LOOKED_AT_SHARE if purpose is _Purpose.LIST else limit
        ranked = rank(
            question, space, candidates(entries), looked.similarities(entries), limit=looked_at
        )
        if purpose is _Purpose.LIST:  # a context says by itself what it leaves out for another line
            ranked = varied(ranked, entries, limit)
        chosen = [entries[each.at] for each in ranked]
        shown = self._whole(chosen, allowed, now, purpose)
        worth = _worth(question, space)
        # Who speaks and what a thing is called comes again and again: each text is redacted once.
        redact = self._redact or cache(self._around.redactor().keyed(self._space).redact)
        hits = [
            _hit(shown[name], each, worth, purpose, redact)
            for name, each in zip(map(candidate_id, chosen), ranked, strict=True)
            if name in shown
        ]
        return Recalled(hits=[hit for hit in hits if hit.text], entries=list(shown.values()))

    def _whole(
        self, chosen: Sequence[Entry], allowed: Filters, now: datetime, purpose: _Purpose
    ) -> dict[str, Entry]:
        """The chosen ones, whole and with their sources; one that is gone by now is left out.

        Of a record a context shows the beginning, which is there.
        """
        keys: dict[EntryKind, builtins.list[int]] = defaultdict(list)
        for entry in chosen:
            is_begun = entry.kind is EntryKind.RECORD and purpose is _Purpose.CONTEXT
            is_cut = len(entry.text) >= REACH.chars and not is_begun
            if entry.kind in _HAVE_SOURCES or is_cut:
                keys[entry.kind].append(entry.key)
        whole = self._store.search.load(self._space, keys, allowed, now) if keys else []
        loaded = {candidate_id(entry): entry for entry in whole}
        return {
            candidate_id(entry): loaded.get(candidate_id(entry), entry)
            for entry in chosen
            if entry.key not in keys.get(entry.kind, ()) or candidate_id(entry) in loaded
        }

    def _summary(self, allowed: Filters, max_tokens: int) -> str:
        """What the space's memory comes to, once consolidation has written it.

        It is about everything: who asks for less, or for another time, is not told.
        """
        everything = Filters(kinds=allowed.kinds, as_of=allowed.as_of)
        if allowed != everything or EntryKind.DOCUMENT not in allowed.kinds or max_tokens <= 0:
            return ""
        found = self._store.documents.find(self._space, read_path(SUMMARY_PATH).place)
        if found is None or (allowed.as_of is not None and found.updated_at > allowed.as_of):
            return ""
        redact = self._around.redactor().keyed(self._space).redact
        chars_max = CHARS_PER_TOKEN_MAX * max_tokens // SUMMARY_SHARE + 1
        return _beginning(without_notes(found.body), chars_max, redact)


def _hit(
    entry: Entry,
    ranked: Ranked,
    worth: Mapping[str, float],
    purpose: _Purpose,
    redact: Callable[[str], str],
) -> Hit:
    if entry.kind in (EntryKind.DOCUMENT, EntryKind.SUMMARY):
        text = redact(best_passage(without_notes(entry.text), worth))
    elif entry.kind is EntryKind.RECORD and purpose is _Purpose.CONTEXT:
        text = _beginning(_said(entry), CONTEXT_CHARS, redact)
    else:
        text = redact(_said(entry))
    return Hit(
        id=entry.id,
        kind=entry.kind,
        text=text,
        score=ranked.score,
        why=ranked.parts,
        sources=tuple(
            replace(source, quote=redact(source.quote)) if source.quote else source
            for source in _sources(entry)
        ),
        at=entry.at,
        trust=entry.trust,
        title=redact(entry.title),
        speaker=redact(entry.speaker or entry.role),
        tags=tuple(map(redact, entry.tags)),
        usage_count=entry.usage_count,
    )


def _reach(limit: int) -> Reach:
    """How far to look: further when more is wanted."""
    if limit <= min(REACH.loaded.values()):
        return REACH
    loaded = {kind: max(count, limit) for kind, count in REACH.loaded.items()}
    return replace(REACH, loaded=loaded, postings=max(REACH.postings, 8 * limit))


def _says_something(entry: Entry) -> bool:
    """Not an empty record.

    A record of nothing but what was recalled is empty: it has no words either.
    """
    return bool((entry.text if entry.stems else _said(entry)).strip())


def _said(entry: Entry) -> str:
    """What it says itself. A tool that writes our fence is up to something, and is shown."""
    is_recalled = entry.kind is EntryKind.RECORD and entry.role != Role.TOOL
    return without_recalled(entry.text) if is_recalled else entry.text


def _beginning(text: str, chars_max: int, redact: Callable[[str], str]) -> str:
    """A text's beginning, redacted over a longer one."""
    if len(text) <= chars_max:
        return redact(text)
    redacted = redact(text[: chars_max + MARGIN_CHARS])
    return redacted[: min(chars_max, max(len(redacted) - MARGIN_CHARS, 0))]


def _turn(turn: str | None) -> str | None:
    return None if turn is None else check_id(turn)


def _is_record_of(entry: Entry, session_id: str) -> bool:
    return entry.kind is EntryKind.RECORD and entry.session_id == session_id


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
        entry.id: Standing(topic=entry.topic, since=entry.at, until=entry.until)
        for entry in entries
        if entry.kind is EntryKind.FACT
    }

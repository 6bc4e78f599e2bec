"""Recall: from a question to the few things worth knowing, in rank order, each with its reasons.

Reads only, and asks no model. What is found by words (and by meaning, where there are vectors) is
ranked, redacted and shown with where it comes from; a context is made of what was recalled.
"""

from __future__ import annotations

import builtins
import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.collection import check_id
from recollect.errors import InvalidValue
from recollect.messages import Role
from recollect.quarantine import safe_for_models
from recollect.quoting import without_recalled
from recollect.recall import usage
from recollect.recall.filters import read_filters
from recollect.recall.pack import (
    FACTS_MAX,
    Validity,
    pack,
)
from recollect.recall.question import (
    Question,
    ask,
    asked_by,
    sought,
    speakers_asked,
    voucher,
    without_names,
)
from recollect.recall.rank import (
    Corpus,
    Ranked,
    Similarities,
    above,
    asking,
    candidate_id,
    candidates,
    corpus,
    outdated,
    person,
    rank,
    rarity,
    relevance,
    repeated,
    worth_tokens,
)
from recollect.recall.recap import Recapper
from recollect.recall.statements import (
    CUT,
    Likeness,
    Place,
    Revisions,
    Statements,
    Wording,
    bearing,
    best_passage,
    excerpt,
    hit_of,
    lines_beyond,
    only_asks,
    place_of,
    says_all,
    without_notes,
    without_small_talk,
)
from recollect.runtime import Runtime
from recollect.session import page_size
from recollect.stemming import words
from recollect.store.protocol import Store
from recollect.types.facts import Trust
from recollect.types.recall import (
    CONTEXT_TOKENS,
    Context,
    Entry,
    EntryKind,
    Filters,
    Found,
    Ground,
    Hit,
    Reach,
    ground_of,
)

if TYPE_CHECKING:
    from recollect.recall.meaning import Meaning, VectorQuery

REACH = Reach()
QUERY_CHARS_MAX = 20_000  # of a question; what follows is not read
CONTEXT_HITS = 24  # from which a context is packed at least
CONTEXT_HITS_MAX = 400
REACH_TOKENS = 12  # of a budget, for each hit it may be packed from
LINE_TOKENS_MIN = 8  # that a line of a context takes, at least nearly always
CONTEXT_CHARS = 2500  # of a record, in which a context looks for what to show
ANSWER_CHARS = 12_000  # of what the agent said, where that is asked for
EXCERPT_CHARS = 280  # of a record that a context shows a part of
EARNED_SHARE = 0.3  # of a budget for the best record, if its word counts in full
EARNING_SCORE = 0.5  # of the best; below, a record earns no more than others
RELEVANCE_MIN = 0.2  # below, a line of a context has nothing to do with the question
RELEVANCE_SHARE = 0.5  # of what the best has, which is enough where even that has less
LOOKED_AT_SHARE = 5  # so many times as many as a list has are looked at, for those that repeat
SPARE_HITS = 10  # and so many more are made, for those that say nothing of their own
COMPARED_CHARS = 1000  # longer texts are never quite the same; those that begin alike are compared
PIECES_CHARS = 400  # of what a machine wrote: the lines that bear on a question
SAID_LAST = 50  # records of a session, of which one has the name of who asks
CHARS_PER_TOKEN = 4
SPARE = 1.4  # so much more than fits is looked at: some of it says the same, or is cut
MARGIN_CHARS = 1500  # read further than is shown, so that no secret is cut in two and missed
_LAST_WORD = re.compile(r"\w{1,40}\Z")  # which a cut may have left a part of
_HAVE_SOURCES = (EntryKind.FACT, EntryKind.DOCUMENT)
_WRITTEN = (EntryKind.SUMMARY, EntryKind.DOCUMENT)


SPACES_MAX = 1000
NAMES_MAX = 100  # of a space: those seen last


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


def _no_meaning() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """What may answer a question: entries, and the best of them in their order."""

    question: Question
    corpus: Corpus
    entries: Sequence[Entry] = ()
    ranked: Sequence[Ranked] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Hits, best first, and the entries they show."""

    hits: Sequence[Hit]
    entries: Sequence[Entry]
    texts: Mapping[str, str]  # of the entries, as the store has them

    def grounds(self, block: Context) -> tuple[Ground, ...]:
        """What a block is made from."""
        cited = {(each.hit.kind, each.hit.id) for each in block.citations}
        return tuple(
            ground_of(entry, self.texts[candidate_id(entry)])
            for entry in self.entries
            if (entry.kind, entry.id) in cited
        )


class Recaller:
    """What a space remembers, asked in plain words."""

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        space: str,
        meaning: Callable[[], Meaning | None] = _no_meaning,
        speakers: KnownSpeakers | None = None,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._space = space
        self._finder = Finder(store, space, meaning, speakers or KnownSpeakers())

    def recall(
        self,
        query: str,
        limit: int = 10,
        *,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        speaker: str | None = None,
    ) -> builtins.list[Hit]:
        """The best hits for any text, best first; none where nothing fits.

        `speaker` is who asks; else the person of the space is taken for that.
        """
        allowed = read_filters(filters, kinds=kinds, as_of=as_of)
        wanted = page_size(limit)
        answers = self._ranked(query, wanted * LOOKED_AT_SHARE, allowed, speaker=speaker)
        best = _varied(answers, wanted + SPARE_HITS)
        found = self._shown(answers, best, allowed).hits
        return _once(found, wanted)[:wanted]

    def context(
        self,
        query: str,
        max_tokens: int | None = None,
        *,
        max_facts: int = FACTS_MAX,
        kinds: Iterable[EntryKind | str] | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        beside: str | None = None,
        speaker: str | None = None,
    ) -> Context:
        """A block for a prompt that fits its budget exactly; false when there is nothing to say.

        `beside` is the session that the prompt shows anyway: its records are not repeated.
        `speaker` is who asks; else who spoke last beside, or the person of the space.
        """
        max_tokens = CONTEXT_TOKENS if max_tokens is None else max_tokens
        if type(max_tokens) is not int or type(max_facts) is not int:
            raise InvalidValue("max_tokens and max_facts are whole numbers")
        allowed = read_filters(filters, kinds=kinds, as_of=as_of)
        answers = self._ranked(query, _reach_of(max_tokens), allowed, beside, speaker)
        budget = worth_tokens(answers.ranked, answers.corpus, max_tokens)
        answers = _telling_first(answers)
        found = self._shown(answers, _within(answers, budget), allowed, max_tokens)
        block = pack(
            found.hits,
            max_tokens=budget,
            max_facts=max_facts,
            now=self._runtime.now(),
            standings=_standings(found.entries),
        )
        if not block:
            return block
        return replace(block, id=self._runtime.ids.new(), grounds=found.grounds(block))

    @property
    def recapper(self) -> Recapper:
        """What tells where nothing is asked."""
        return Recapper(runtime=self._runtime, store=self._store, space=self._space)

    def cite(
        self,
        block: Context,
        used: usage.Used | Iterable[usage.Used] = (),
        *,
        turn: str | None = None,
    ) -> int:
        """Count a block as shown, and what a model used of it as cited, each once in a turn.

        `used` are marks, hits, ids, or the text a model wrote. How many citations were new: to be
        shown is not to be used.
        """
        if not isinstance(block, Context):
            raise InvalidValue(f"a block is what context() gives, not {type(block).__name__}")
        now, turn_id = self._runtime.now(), _turn(turn) or block.id
        cited = usage.cited(block, used, turn_id=turn_id, at=now)
        self._store.search.use(self._space, usage.shown(block, turn_id=turn_id, at=now))
        return self._store.search.use(self._space, cited)

    def opened(
        self, shown: usage.Opened | Iterable[usage.Opened], *, turn: str | None = None
    ) -> int:
        """Count hits that somebody asked to read, each once in a turn. How many were new."""
        turn_id = _turn(turn) or self._runtime.ids.new()
        reported = usage.opened(shown, turn_id=turn_id, at=self._runtime.now())
        return self._store.search.use(self._space, reported)

    def _ranked(
        self,
        query: str,
        limit: int,
        allowed: Filters,
        beside: str | None = None,
        speaker: str | None = None,
    ) -> _Answers:
        """What may answer, best first; the records of the session `beside` take nobody's place."""
        if not isinstance(query, str):
            raise InvalidValue(f"a query is text, not {type(query).__name__}")
        now = self._runtime.now()
        query = query[:QUERY_CHARS_MAX]
        question = ask(query, allowed.as_of or now)
        if not question.terms and not question.times:
            return _Answers(question=question, corpus=Corpus(entries=0, holders={}))
        asker = self._asker(speaker, beside) if question.is_personal else None
        if asker is not None:
            question = asked_by(question, asker)
        allowed = _with_past(allowed, question)
        looked = self._finder.look(question, query, allowed, now, _reach(limit))
        if question.is_personal and asker is None:
            named = person(looked.found.entries)
            question = question if named is None else asked_by(question, named)
        space = corpus(looked.found)
        entries = [entry for entry in looked.found.entries if _says_something(entry)]
        if beside is not None:
            entries = [entry for entry in entries if not _is_record_of(entry, beside)]
        alike = looked.similarities(entries)
        ranked = rank(question, space, candidates(question, entries), alike, limit=limit)
        ranked = _above_replaced(ranked, entries)
        return _Answers(question=question, corpus=space, entries=entries, ranked=ranked)

    def _asker(self, speaker: str | None, beside: str | None) -> str | None:
        """The name of who asks, as far as it is said, or as they were named where they spoke."""
        if speaker is not None:
            if not isinstance(speaker, str):
                raise InvalidValue(f"a speaker is named by a text, not {type(speaker).__name__}")
            return speaker
        if beside is None:
            return None
        last = self._store.marks.max_seq(self._space, beside) or 0
        said = self._store.records.after(self._space, beside, max(last - SAID_LAST, 0), SAID_LAST)
        named = [each.name for each in said if each.role == Role.USER and each.name]
        return named[-1] if named else None

    def _shown(
        self, answers: _Answers, ranked: Sequence[Ranked], allowed: Filters, max_tokens: int = 0
    ) -> Recalled:
        """The chosen ones as hits: as much of each as a block of so many tokens shows, or whole."""
        now = self._runtime.now()
        allowed = _with_past(allowed, answers.question)
        chosen = [answers.entries[each.at] for each in ranked]
        has_beginnings = max_tokens > 0 and not answers.question.asks_agent
        shown = self._whole(chosen, allowed, now, has_beginnings=has_beginnings)
        texts = {name: entry.text for name, entry in shown.items()}
        held = self._revised(answers, ranked, shown, allowed)
        redact = self._runtime.redacting(self._space)
        view = _View(
            worth=_worth(answers),
            max_tokens=max_tokens,
            best=max((each.score for each in ranked), default=0.0),
            asks_agent=answers.question.asks_agent,
            names=_names_of({entry.speaker for entry in answers.entries}),
            redact=redact,
            at=answers.question.asked_at,
            facts=[entry.text for _, entry in held if entry.kind is EntryKind.FACT],
        )
        made = (
            hit_of(
                entry, view.redact, view.at, _text(entry, each.score, view), each.score, each.parts
            )
            for each, entry in held
        )
        hits = [self._without_orders(hit, now) for hit in made]
        return Recalled(
            hits=[hit for hit in hits if hit.text],
            entries=[entry for _, entry in held],
            texts=texts,
        )

    def _revised(
        self,
        answers: _Answers,
        ranked: Sequence[Ranked],
        shown: Mapping[str, Entry],
        allowed: Filters,
    ) -> Sequence[tuple[Ranked, Entry]]:
        """The same without what people have taken back, and what is outdated in its place.

        Entries are changed where a part of them does not hold any more. At another time than now
        everything is as it was said.
        """
        named = [(each, candidate_id(answers.entries[each.at])) for each in ranked]
        pairs = [(each, shown[name]) for each, name in named if name in shown]
        if allowed.as_of is not None:
            return pairs
        question = answers.question
        revisions = self._revisions(entry for _, entry in pairs)
        kept: list[tuple[Ranked, Entry]] = []
        for each, entry in pairs:
            if not revisions.apply(entry) or _is_said_anew(entry):
                continue
            is_past = _is_record(entry) and entry.until is not None and not question.asks_past
            kept.append((outdated(each) if is_past else each, entry))
        return sorted(kept, key=lambda pair: (-pair[0].score, pair[0].turn))

    def _revisions(self, entries: Iterable[Entry]) -> Revisions:
        """What became of what these say; of pages since they were written."""
        sessions: set[str] = set()
        written: builtins.list[datetime] = []
        for entry in entries:
            if entry.kind in (EntryKind.RECORD, EntryKind.SUMMARY):
                sessions.add(entry.session_id)
            elif entry.kind is EntryKind.DOCUMENT and entry.trust is not Trust.USER:
                written.append(entry.at)
        since = min(written, default=None)
        return Revisions(
            self._store.search.revisions(self._space, sorted(sessions), self._runtime.now(), since)
        )

    def _whole(
        self, chosen: Sequence[Entry], allowed: Filters, now: datetime, *, has_beginnings: bool
    ) -> dict[str, Entry]:
        """The chosen ones, whole and with their sources; one that is gone by now is left out.

        The beginnings of records are there, and enough for most blocks.
        """
        keys: dict[EntryKind, builtins.list[int]] = defaultdict(list)
        for entry in chosen:
            is_begun = entry.kind is EntryKind.RECORD and has_beginnings
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

    def _without_orders(self, hit: Hit, now: datetime) -> Hit:
        """A hit without orders that a machine wrote and no person gave; people's pages as they are.

        Of a session's summary only what was said in it counts.
        """
        if hit.kind not in _WRITTEN or hit.trust is Trust.USER:
            return hit
        session_id = hit.id if hit.kind is EntryKind.SUMMARY else None
        is_persons = voucher(self._store, self._space, now, session_id)
        return replace(
            hit,
            text=safe_for_models(hit.text, is_persons),
            title=safe_for_models(hit.title, is_persons),
        )


class Recallers:
    """Makes recallers for the spaces of a memory; what they know of them is shared."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._speakers = KnownSpeakers()
        self._meaning: Meaning | None = None
        self._lock = threading.Lock()

    def of(self, space: str) -> Recaller:
        runtime = self._runtime
        return Recaller(runtime, runtime.store, space, self.meaning, self._speakers)

    def meaning(self) -> Meaning | None:
        """The vectors in memory; none where there is no embedder."""
        embedder = self._runtime.embedder()
        if embedder is None:
            return None
        with self._lock:
            if self._meaning is None:
                from recollect.embedding.protocol import QuestionEmbedder
                from recollect.recall.meaning import Meaning

                settings = self._runtime.settings
                asked = QuestionEmbedder(
                    embedder, self._runtime.clock, settings.embedder_question_seconds
                )
                self._meaning = Meaning(
                    lambda: self._runtime.store, asked, settings.vectors_bytes_max
                )
            return self._meaning


def _reach_of(max_tokens: int) -> int:
    """How many hits a context may be packed from."""
    return max(CONTEXT_HITS, min(max_tokens // REACH_TOKENS, CONTEXT_HITS_MAX))


def _telling_first(answers: _Answers) -> _Answers:
    """The same, with records further down in which a person only asks another something.

    What somebody asks an agent tells what they are after.
    """
    entries = answers.entries
    ranked = [asking(each) if _is_question(entries[each.at]) else each for each in answers.ranked]
    return replace(answers, ranked=sorted(ranked, key=lambda each: (-each.score, each.turn)))


def _within(answers: _Answers, max_tokens: int) -> Sequence[Ranked]:
    """Those of the best that are about the matter and may find room, and some to spare."""
    room = SPARE * max_tokens
    best = max(map(relevance, answers.ranked), default=0.0)
    least = min(RELEVANCE_MIN, RELEVANCE_SHARE * best)  # where there is little, little tells
    chosen: list[Ranked] = []
    for each in answers.ranked:
        if room <= 0 and len(chosen) >= CONTEXT_HITS:
            break
        if relevance(each) >= least:
            chosen.append(each)
            room -= (
                LINE_TOKENS_MIN
                + min(len(answers.entries[each.at].text), EXCERPT_CHARS) / CHARS_PER_TOKEN
            )
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """How entries are shown: for which question, and beside which facts."""

    worth: Mapping[str, float]
    max_tokens: int  # of the block; 0: in a list
    best: float  # score
    asks_agent: bool
    names: Collection[str]  # of those who speak
    redact: Callable[[str], str]
    at: datetime
    facts: Sequence[str]

    def chars_of(self, entry: Entry, score: float) -> int:
        """How much of a record a block shows: the more, the better it answers."""
        if not (entry.trust is Trust.USER or self.asks_agent) or self.best <= 0:
            return EXCERPT_CHARS
        share = (score / self.best - EARNING_SCORE) / (1 - EARNING_SCORE)
        return max(EXCERPT_CHARS, int(share * EARNED_SHARE * self.max_tokens * CHARS_PER_TOKEN))


def _text(entry: Entry, score: float, view: _View) -> str:
    """What is shown of an entry. Of what a machine wrote the lines that bear on the question, and
    that no fact says which was found."""
    worth, redact = view.worth, view.redact
    is_block = view.max_tokens > 0
    if entry.kind in _WRITTEN:
        text = without_notes(entry.text)
        is_whole = entry.trust is Trust.USER or (entry.kind is EntryKind.SUMMARY and not is_block)
        if is_whole:
            return redact(best_passage(text, worth))
        pieces = lines_beyond(bearing(text, worth, 2 * PIECES_CHARS), view.facts)
        return redact(bearing(pieces, worth, PIECES_CHARS))
    if entry.kind is EntryKind.RECORD and is_block:
        chars = ANSWER_CHARS if view.asks_agent else CONTEXT_CHARS
        said = _said(entry)
        text = _beginning(said, chars, redact)
        if entry.role == Role.USER:
            text = without_small_talk(text, worth, view.names)
        shown = excerpt(text, worth, view.chars_of(entry, score))
        is_marked = not shown or len(said) <= chars or shown.endswith(CUT)
        return shown if is_marked else f"{shown.rstrip()} {CUT}"
    return redact(_said(entry))


def _with_past(allowed: Filters, question: Question) -> Filters:
    """Also what does not hold any more, where that is asked for."""
    is_asked = question.asks_past and allowed.as_of is None
    return replace(allowed, or_past=True) if is_asked else allowed


def _is_said_anew(entry: Entry) -> bool:
    """Whether a fact was replaced by one that says the same."""
    if entry.kind is not EntryKind.FACT or not entry.replaced_by:
        return False
    now = Wording.of(entry.replaced_by)
    return now.compared(Wording.of(entry.text)) is not Likeness.OTHER


def _above_replaced(ranked: Sequence[Ranked], entries: Sequence[Entry]) -> list[Ranked]:
    """The same, with facts above those whose place they have taken."""
    replaced: dict[str, Ranked] = {}
    for each in ranked:  # best first
        if entries[each.at].replaced_by:
            replaced.setdefault(entries[each.at].replaced_by, each)
    if not replaced:
        return list(ranked)
    lifted = [
        above(each, replaced[entries[each.at].text])
        if entries[each.at].kind is EntryKind.FACT and entries[each.at].text in replaced
        else each
        for each in ranked
    ]
    return sorted(lifted, key=lambda each: (-each.score, each.turn))


def _varied(answers: _Answers, limit: int) -> list[Ranked]:
    """The best, after each that repeats a better one of its kind and speaker.

    What somebody else says, or what was made of it, is no repetition.
    """
    first: dict[tuple[EntryKind, str], list[Wording]] = defaultdict(list)
    chosen: list[Ranked] = []
    kept = 0
    for each in answers.ranked:
        if kept >= limit:
            break
        entry = answers.entries[each.at]
        wording = Wording.of(entry.text[:COMPARED_CHARS])
        known = first[entry.kind, entry.speaker or entry.role]
        if any(wording.compared(better) is Likeness.SAME for better in known):
            chosen.append(repeated(each))
            continue
        known.append(wording)
        chosen.append(each)
        kept += 1
    chosen.sort(key=lambda each: (-each.score, each.turn))
    return chosen[:limit]


def _reach(limit: int) -> Reach:
    """How far to look: further when more is wanted. Of what was written, few lines are shown."""
    if limit <= min(REACH.loaded.values()):
        return REACH
    loaded = {
        kind: count if kind in _WRITTEN else max(count, limit)
        for kind, count in REACH.loaded.items()
    }
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
    """A text's beginning, up to a whole word, redacted over a longer one."""
    if len(text) <= chars_max:
        return redact(text)
    redacted = redact(text[: chars_max + MARGIN_CHARS])
    begun = redacted[: min(chars_max, max(len(redacted) - MARGIN_CHARS, 0))]
    return _LAST_WORD.sub("", begun)


def _turn(turn: str | None) -> str | None:
    return None if turn is None else check_id(turn)


def _once(found: Sequence[Hit], wanted: int) -> builtins.list[Hit]:
    """Every statement once, in its best form: a fact stands where a record stood that it says."""
    said = Statements((hit, hit.text) for hit in found[:wanted])
    kept: list[Hit] = []
    stood: dict[Place, Hit] = {}
    for hit in found:
        if _is_persons_page(hit) or said.rest_of(hit, hit.text):
            kept.append(hit)
        elif place := place_of(hit):
            stood[place] = hit
    return sorted((_lifted(hit, stood) for hit in kept), key=lambda hit: -hit.score)


def _lifted(hit: Hit, stood: Mapping[Place, Hit]) -> Hit:
    """A fact as good as a record by itself that it says all of."""
    if hit.kind is not EntryKind.FACT:
        return hit
    places = {(source.session_id, source.seq) for source in hit.sources}
    records = [stood[place] for place in places & stood.keys()]
    own = [
        each.score - each.why.get("neighbours", 0.0) - each.why.get("session", 0.0)
        for each in records
        if says_all(hit.text, each.text)
    ]
    missing = max(own, default=hit.score) - hit.score
    if missing <= 0:
        return hit
    why = {**hit.why, "source": missing}
    return replace(hit, score=sum(why.values()), why=why)


def _is_persons_page(hit: Hit) -> bool:
    return hit.kind is EntryKind.DOCUMENT and hit.trust is Trust.USER


def _is_question(entry: Entry) -> bool:
    return _is_record(entry) and bool(entry.speaker) and only_asks(entry.text)


def _is_record(entry: Entry) -> bool:
    return entry.kind is EntryKind.RECORD


def _is_record_of(entry: Entry, session_id: str) -> bool:
    return entry.kind is EntryKind.RECORD and entry.session_id == session_id


def _names_of(speakers: Iterable[str]) -> frozenset[str]:
    return frozenset(word for speaker in speakers for word in words(speaker).split())


def _worth(answers: _Answers) -> dict[str, float]:
    """What each word of a question tells of a part of a text; whose names it has tells nothing."""
    terms, space = answers.question.terms, answers.corpus
    speakers = {words(name) for name in {entry.speaker for entry in answers.entries} if name}
    named = {term.stem for term in terms if speakers_asked((term,), speakers, space.holders)}
    return {
        term.stem: rarity(space.holders.get(term.stem, 0), space.entries)
        for term in terms
        if term.stem not in named or len(named) == len(terms)
    }


def _standings(entries: Iterable[Entry]) -> dict[str, Validity]:
    return {
        entry.id: Validity(
            topic=entry.topic, since=entry.at, until=entry.until, happened=entry.happened
        )
        for entry in entries
        if entry.kind is EntryKind.FACT
    }

"""The order of what was found: candidates scored against a question, each with its reasons.

Pure: no database, no clock, no model. A score is a sum of named parts, so that it explains itself.
Structure counts as much as words: who speaks, what stands beside, in which session, and when.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import add, mul, or_

from recollect.recall.question import (
    SUBJECT_CHARS,
    Phrase,
    Question,
    Term,
    is_named,
    owned_stems,
    speakers_asked,
)
from recollect.stemming import words
from recollect.times import TimeRange
from recollect.types.facts import Trust
from recollect.types.recall import Entry, EntryKind, Found

SUBJECT_WORDS = 3  # of a fact, that say who it is about
PERSON_SHARE = 2 / 3  # of what people say in what was found: who says so much of it is the person
_NO_NAMES = frozenset({"agent", "ai", "assistant", "bot", "model", "system"})

# Of equals what says most by itself goes first, and of those the newest.
_KEYS = 2**62
_TURN_OF_KIND = {kind: at * _KEYS for at, kind in enumerate(EntryKind)}
_ID_OF_KIND = {kind: f"{kind}:" for kind in EntryKind}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each reason adds to a score in which 1 is about: it has every word of the question."""

    # A word said twice is not worth two: the smaller, the sooner it stops to count.
    saturation: float = 0.9
    # How much an entry pays for being longer than `length_plain` words, where words come by chance.
    length_share: float = 0.4
    length_plain: float = 40.0
    # "Volunteer" and "voluntary" begin alike: worth a part of the word itself.
    kin: float = 0.3
    # What an answer uses instead of a word of the question: a part of the word itself, too.
    related: float = 0.5
    # Two words that stand together in the question and in an entry are worth a little more. What
    # stands in quotation marks was meant word for word (by judgement: few questions of the files
    # have any).
    phrase: float = 0.1
    quoted: float = 0.5
    # Cosine above what unrelated texts have, for each spread of the question's candidates.
    similarity: float = 0.1
    # An answer often stands beside the turn that has the question's words, or one further.
    beside: float = 0.4
    near: float = 0.15
    # What somebody said is the best source on that person.
    speaker: float = 0.5
    # What others say of themselves is no answer to who asks about their own: "Where do I live?"
    other: float = 0.6
    # "My name" is asked for: not the name of "my husband".
    owned: float = 0.5
    # What took the place of something, where that is what is asked for.
    change: float = 0.5
    # Said, or happened, in the time that the question names, the more the fewer were.
    time: float = 0.7
    # A session about the matter: the question's words that its entries have together.
    session: float = 0.35
    # People tell; what an agent or a tool says mostly restates and advises. What the agent said
    # counts in full where a question asks for it.
    agent: float = 0.6
    tool: float = 0.7
    # What was replaced or has ended stands below what holds, unless the past is asked for.
    outdated: float = 0.5
    # Between equals the newer and the more often used goes first; never more than that.
    recency: float = 0.02
    usage: float = 0.02
    # Who only asks tells little about themselves: in a block, what is told goes first.
    asks: float = 0.3
    # What says the same as a better hit of the same speaker loses so much of its score in a list.
    # More would be better for readers; the development files hold some sessions twice, of which one
    # counts as evidence, and punish it.
    repeated: float = 0.1


WEIGHTS = Weights()


KIN_CHARS = 5  # that two words begin with, to be taken for kin

Group = str | int  # a session, or the turn of what belongs to none


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical:
    """One score for each candidate, and for each group what its candidates have together.

    1 is every term, once, in an entry of plain length; so scores of different questions compare.
    """

    scores: Sequence[float]
    groups: Sequence[Group]  # of each candidate
    gathered: Mapping[Group, float]
    worths: Mapping[str, float]  # of each stem; they make 1 together
    places: Mapping[str, Sequence[int]]  # of the candidates that have each stem, or its kin


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sought:
    """A term of the question as it is looked for in an entry's stems."""

    stem: str
    exact: str
    beginning: str  # the same, where a word is too short to have kin
    related: Sequence[str]
    worth: float


def score_words(terms: Sequence[Term], corpus: Corpus, candidates: Candidates) -> Lexical:
    texts, groups = candidates.stems, groups_of(candidates)
    flat, slope = _length_terms()
    boost = WEIGHTS.saturation + 1
    scores = [0.0] * len(texts)
    gathered = dict.fromkeys(groups, 0.0)
    sought = _sought(terms, corpus)
    places: dict[str, Sequence[int]] = {}
    for term in sought:
        together: dict[Group, float] = {}
        # Most entries lack most terms: they are passed over before anything is computed.
        beginning, worth = term.beginning, term.worth
        have = places[term.stem] = [at for at, text in enumerate(texts) if beginning in text]
        counts = dict.fromkeys(have, 0) | _related_counts(term, texts)
        for at, related in counts.items():
            text = texts[at]
            damping = flat + slope * (text.count(" ") - 1)
            fit = _fit(term, text, damping, WEIGHTS.kin)
            if related:
                fit = max(fit, WEIGHTS.related * related / (related + damping))
            fit *= boost
            scores[at] += worth * fit
            group = groups[at]
            together[group] = together.get(group, 0.0) + fit
        for group, fits in together.items():
            gathered[group] += worth * 2 * fits / (fits + 1)
    worths = {term.stem: term.worth for term in sought}
    return Lexical(scores=scores, groups=groups, gathered=gathered, worths=worths, places=places)


def score_phrases(
    phrases: Sequence[Phrase], lexical: Lexical, candidates: Candidates
) -> list[float]:
    """What candidates get for words that stand in them as they do in the question."""
    scores = [0.0] * len(candidates)
    worths = lexical.worths
    for phrase in phrases:
        weight = WEIGHTS.quoted if phrase.is_quoted else WEIGHTS.phrase
        worth = weight * sum(worths.get(stem, 0.0) for stem in dict.fromkeys(phrase.stems))
        if phrase.is_quoted or all(stem in worths for stem in phrase.stems):
            # An entry with the phrase has each of its words, so those with the rarest are looked
            # at. A phrase of words that are worth nothing is worth nothing.
            known = [lexical.places[stem] for stem in phrase.stems if stem in worths]
            sought = f" {' '.join(phrase.stems)} "
            for at in min(known, key=len, default=()):
                if sought in candidates.stems[at]:
                    scores[at] += worth
    return scores


def groups_of(candidates: Candidates) -> list[Group]:
    """The session of a record; what belongs to none is a group of its own."""
    return [
        turn if session is None else session
        for session, turn in zip(candidates.sessions, candidates.turns, strict=True)
    ]


def rarity(holders: int, entries: int) -> float:
    """What a term tells: much when few entries have it, next to nothing when all do."""
    without = max(entries - holders, 0)
    return math.log1p((without + 0.5) / (holders + 0.5))


def _related_counts(term: _Sought, texts: Sequence[str]) -> dict[int, int]:
    """How many different words related to a term an entry has, where it lacks the term itself."""
    counts: dict[int, int] = {}
    for other in term.related:
        for at, text in enumerate(texts):
            if other in text and term.exact not in text:
                counts[at] = counts.get(at, 0) + 1
    return counts


def _sought(terms: Sequence[Term], corpus: Corpus) -> list[_Sought]:
    rarities = [rarity(corpus.holders.get(term.stem, 0), corpus.entries) for term in terms]
    whole = sum(rarities) or 1.0
    return [
        _Sought(
            stem=term.stem,
            exact=f" {term.stem} ",
            beginning=_beginning(term.stem),
            related=[f" {other} " for other in term.related],
            worth=rare / whole,
        )
        for term, rare in zip(terms, rarities, strict=True)
    ]


def _beginning(stem: str) -> str:
    return f" {stem[:KIN_CHARS]}" if len(stem) >= KIN_CHARS else f" {stem} "


def _length_terms() -> tuple[float, float]:
    flat = WEIGHTS.saturation * (1 - WEIGHTS.length_share)
    return flat, WEIGHTS.saturation * WEIGHTS.length_share / WEIGHTS.length_plain


def _fit(term: _Sought, stems: str, damping: float, kin_worth: float) -> float:
    """Between 0 and 1: how often the term is there, sooner or later enough; else its kin."""
    count = stems.count(term.exact)
    fit = count / (count + damping)
    if fit >= kin_worth or term.beginning == term.exact:
        return fit  # however much kin there is, it is worth less
    kin = stems.count(term.beginning) - count
    return max(fit, kin_worth * kin / (kin + damping)) if kin else fit


NAMELESS = "user"  # what facts call somebody without a name
DAY = timedelta(days=1)
LATER = timedelta(days=7)  # people tell a little after it happened
TIME_SHARE_TELLING = 0.05  # a time with so few of the candidates says all it can
TIME_SAMPLE_MIN = 20  # candidates that tell how many a time holds
RECENCY_HALF_DAYS = 30.0
USES_HALF = 5.0
STEP = 0.001  # by which what took the place of something stands above it
USUAL_WORTH = 32  # candidates, that what is usual between two texts counts for as a spread
FLOOR_SHARE = 4  # one in so many candidates is too unlike the question to count

# What the best entry scores for a question without an answer: in a space of so many entries, and
# how much more in a larger one. Measured by asking one development file's questions of the other.
CHANCE_SCORE = 0.5
CHANCE_ENTRIES = 600
CHANCE_GROWTH = 0.12
CHANCE_SHARE = 0.9  # from here up to that score a budget opens
CHANCE_TOKENS = 0.2  # of the budget for what is found by chance
CHANCE_TOKENS_MIN = 120  # a few lines, whatever the budget


Column = Sequence[float]  # one value for each candidate


def rank(
    question: Question,
    corpus: Corpus,
    candidates: Candidates,
    similarities: Similarities | None = None,
    *,
    limit: int | None = None,
) -> list[Ranked]:
    """The best candidates, best first. A neighbour counts when it is a candidate too."""
    names = speakers_asked(question.terms, {*candidates.speakers}, corpus.holders)
    if names:
        question = replace(question, asker=None)  # it is about them: "What did Ben tell me?"
    matter = [term for term in question.terms if not is_named(term, names, corpus.holders)]
    lexical = score_words(matter or question.terms, corpus, candidates)
    about = _about(names, candidates)
    mine = _mine(question, candidates)
    voices = _voices(question, candidates, [*map(or_, about, mine)], names)
    # What an entry says weighs by whose word it is; the sum does once more, with all around it.
    said = list(map(mul, voices, lexical.scores))
    columns: dict[str, Column] = {"words": list(map(mul, voices, said))}
    if question.phrases:
        phrases = score_phrases(question.phrases, lexical, candidates)
        together = list(map(mul, voices, phrases))
        said = list(map(add, said, together))
        columns["phrase"] = list(map(mul, voices, together))
    if question.owned:
        own = _owned(question, candidates, mine, lexical.worths)
        columns["phrase"] = list(map(add, columns.get("phrase", own), own))
    if similarities is not None:
        alike = list(map(mul, voices, _alike(similarities)))
        said = list(map(add, said, alike))
        columns["similarity"] = list(map(mul, voices, alike))
    for name, column in _neighbours(said, candidates).items():
        columns[name] = list(map(mul, voices, column))
    if names:
        columns["speaker"] = [
            voice * WEIGHTS.speaker if is_about or speaker in names else 0.0
            for voice, speaker, is_about in zip(voices, candidates.speakers, about, strict=True)
        ]
    if any(mine):
        columns["asker"] = [WEIGHTS.speaker * is_mine for is_mine in mine]
    if question.asks_change:
        columns["change"] = [
            WEIGHTS.change * has_changed for has_changed in candidates.have_changed
        ]
    if question.times:
        columns["time"] = list(map(mul, voices, _times(question, candidates, lexical.scores)))
    session = {group: WEIGHTS.session * fits for group, fits in lexical.gathered.items()}
    columns["session"] = list(map(mul, voices, map(session.__getitem__, lexical.groups)))
    columns["recency"] = _recent(question, candidates)
    if any(candidates.uses):
        columns["usage"] = [WEIGHTS.usage * uses / (uses + USES_HALF) for uses in candidates.uses]
    return _ordered(columns, candidates, limit)


def worth_tokens(ranked: Sequence[Ranked], corpus: Corpus, max_tokens: int) -> int:
    """How much of a budget the best of these are worth: all of it, if one of them may be an answer.

    Among many entries some have a few of a question's words by chance: the more there are, the
    better the best has to be. What is found for a question that has no answer gets a small part.
    """
    if not ranked:
        return max_tokens
    usual = CHANCE_SCORE + CHANCE_GROWTH * math.log(max(corpus.entries, 1) / CHANCE_ENTRIES)
    best = max(each.score - each.parts.get("asker", 0.0) for each in ranked)
    share = best / max(usual, CHANCE_SCORE / 2)
    if share >= 1:
        return max_tokens
    rising = (share - CHANCE_SHARE) / (1 - CHANCE_SHARE)
    part = CHANCE_TOKENS + (1 - CHANCE_TOKENS) * max(rising, 0.0)
    return min(max_tokens, max(round(part * max_tokens), CHANCE_TOKENS_MIN))


def relevance(ranked: Ranked) -> float:
    """What of a score is about the matter, and not about who said it, or when, or how often."""
    return ranked.score - sum(
        ranked.parts.get(name, 0.0) for name in ("speaker", "asker", "recency", "usage")
    )


def outdated(ranked: Ranked) -> Ranked:
    """The same, below what holds now."""
    return _with(ranked, "outdated", -WEIGHTS.outdated * max(ranked.score, 0.0))


def repeated(ranked: Ranked) -> Ranked:
    """The same, a step down: a better one says it."""
    return _with(ranked, "repeated", -WEIGHTS.repeated * ranked.score)


def asking(ranked: Ranked) -> Ranked:
    """The same, below those who tell something."""
    return _with(ranked, "asks", -WEIGHTS.asks * max(ranked.score, 0.0))


def above(ranked: Ranked, other: Ranked) -> Ranked:
    """The same, above what it has taken the place of, if that is found."""
    missing = other.score + STEP - ranked.score
    return _with(ranked, "replaces", missing) if missing > 0 else ranked


def _with(ranked: Ranked, name: str, part: float) -> Ranked:
    parts = {**ranked.parts, name: part}
    return replace(ranked, score=sum(parts.values()), parts=parts)


def _about(names: frozenset[str], candidates: Candidates) -> Sequence[bool]:
    """Which facts are about somebody the question names; they count as that person's own word."""
    parts = {part for name in names for part in name.split()}
    if not parts:
        return [False] * len(candidates)
    return [
        bool(subject) and not parts.isdisjoint(subject.split()) for subject in candidates.subjects
    ]


def _mine(question: Question, candidates: Candidates) -> Sequence[bool]:
    """What the one who asks about themselves has said, and the facts about them."""
    asker = question.asker
    if asker is None:
        return [False] * len(candidates)
    parts = {*asker.split()} or {NAMELESS}
    return [
        not parts.isdisjoint(subject.split())
        if subject
        else session is not None and trust is Trust.USER and speaker == asker
        for subject, session, trust, speaker in zip(
            candidates.subjects,
            candidates.sessions,
            candidates.trusts,
            candidates.speakers,
            strict=True,
        )
    ]


def _owned(
    question: Question,
    candidates: Candidates,
    mine: Sequence[bool],
    worths: Mapping[str, float],
) -> Column:
    """What candidates get for being about the same thing of the same person's: "my name"."""
    sought = [(f" {stem} ", WEIGHTS.owned * worths.get(stem, 0.0)) for stem in question.owned]
    may_be = [True] * len(candidates) if question.asker is None else mine
    return [
        sum([worth for stem, worth in sought if stem in owned]) if is_meant else 0.0
        for owned, is_meant in zip(candidates.owned, may_be, strict=True)
    ]


def _voices(
    question: Question,
    candidates: Candidates,
    are_meant: Sequence[bool],
    names: frozenset[str],
) -> Column:
    """What the word of each weighs: of who is asked about in full, of others by what they are."""
    agent = 1.0 if question.asks_agent else WEIGHTS.agent
    voice_of = {Trust.USER: 1.0, Trust.AGENT: agent, Trust.TOOL: WEIGHTS.tool}
    voices = [
        1.0 if is_meant else voice_of[trust]
        for trust, is_meant in zip(candidates.trusts, are_meant, strict=True)
    ]
    if question.asker is None:
        return voices
    known = {"", question.asker, *names}
    return [
        voice if is_meant or speaker in known else voice * WEIGHTS.other
        for voice, speaker, is_meant in zip(voices, candidates.speakers, are_meant, strict=True)
    ]


def _alike(similarities: Similarities) -> Column:
    cosines = similarities.cosines
    known = sorted(cosine for cosine in cosines if cosine is not None)
    # A question is less like a text than texts are like each other; by how much, each model says.
    floor = similarities.usual - similarities.spread
    if known:
        floor = min(floor, known[(len(known) - 1) // FLOOR_SHARE])
    scale = WEIGHTS.similarity / (_spread(known, similarities.spread) or 1.0)
    return [
        scale * (cosine - floor) if cosine is not None and cosine > floor else 0.0
        for cosine in cosines
    ]


def _spread(known: Column, usual: float) -> float:
    """How far apart the candidates of a question are; where they are few, what is usual counts.

    Between any two texts of a space that is about many things there is little: measured by that
    alone, whatever is near to a question there would be far too much so.
    """
    count = len(known)
    if not count:
        return usual
    mean = sum(known) / count
    around = sum([(cosine - mean) ** 2 for cosine in known])
    return math.sqrt((around + USUAL_WORTH * usual**2) / (count + USUAL_WORTH))


def _neighbours(spoken: Column, candidates: Candidates) -> dict[str, Column]:
    """What the turns around an entry bring; a fact or a passage says by itself what those would."""
    sessions: dict[str, dict[int, float]] = {}
    for session, seq, said in zip(candidates.sessions, candidates.seqs, spoken, strict=True):
        if session is not None:
            sessions.setdefault(session, {})[seq] = said
    around, alone = [0.0] * len(candidates), [0.0] * len(candidates)
    for place, session in enumerate(candidates.sessions):
        if session is None:
            alone[place] = WEIGHTS.beside * spoken[place]
            continue
        at = sessions[session]
        if len(at) == 1:
            continue
        seq, said_at = candidates.seqs[place], at.get
        before, after = said_at(seq - 1, 0.0), said_at(seq + 1, 0.0)
        earlier, later = said_at(seq - 2, 0.0), said_at(seq + 2, 0.0)
        # Written out: calling max hundreds of times is half of what this costs.
        beside = before if before > after else after  # noqa: FURB136
        near = earlier if earlier > later else later  # noqa: FURB136
        around[place] = WEIGHTS.beside * beside + WEIGHTS.near * near
    return {"neighbours": around, "alone": alone}


def _times(question: Question, candidates: Candidates, scores: Column) -> Column:
    # Some were found by their time alone: among those any time would hold many.
    by_words = [at for at, score in enumerate(scores) if score]
    asked = by_words if len(by_words) >= TIME_SAMPLE_MIN else range(len(candidates))
    best = [0.0] * len(candidates)
    for time in question.times:
        fits = [
            _fits(time, said_at) if happened is None else _fits_span(time, said_at, happened)
            for said_at, happened in zip(candidates.said_at, candidates.happened, strict=True)
        ]
        inside = sum(1 for at in asked if fits[at])
        telling = WEIGHTS.time * _telling(inside, len(asked))
        best = [max(before, telling * fit) for before, fit in zip(best, fits, strict=True)]
    return best


def _fits(time: TimeRange, said_at: datetime) -> float:
    """1 within the time; half for what was said shortly after it."""
    if said_at < time.start:
        return 0.0
    if said_at < time.end:
        return 1.0
    later = min(max(time.end - time.start, DAY), LATER)
    return 0.5 if said_at - time.end < later else 0.0


def _fits_span(time: TimeRange, said_at: datetime, happened: tuple[datetime, datetime]) -> float:
    """What happened then fits as well as what was said then."""
    is_then = happened[0] < time.end and time.start < happened[1]
    return 1.0 if is_then else _fits(time, said_at)


def _telling(inside: int, total: int) -> float:
    """Like the rarity of a word: a time that holds everything says nothing."""
    share = max(inside / total, TIME_SHARE_TELLING) if total else 1.0
    return math.log(share) / math.log(TIME_SHARE_TELLING)


def _recent(question: Question, candidates: Candidates) -> Column:
    asked_at, most = question.asked_at, WEIGHTS.recency * RECENCY_HALF_DAYS
    days = [(asked_at - said_at).days for said_at in candidates.said_at]
    return [most / (RECENCY_HALF_DAYS + each) if each > 0 else WEIGHTS.recency for each in days]


def _ordered(
    columns: Mapping[str, Column], candidates: Candidates, limit: int | None
) -> list[Ranked]:
    """Reasons are put together only for what is returned: most candidates are not."""
    scores: Column = [0.0] * len(candidates)
    for column in columns.values():
        scores = list(map(add, scores, column))
    order: Iterable[int] = range(len(scores))
    if limit is not None and 0 < limit < len(scores):
        # Numbers alone are sorted much quicker, and tell who has no need to be.
        least = sorted(scores, reverse=True)[limit - 1]
        order = [at for at, score in enumerate(scores) if score >= least]
    turns = candidates.turns
    order = sorted(order, key=lambda at: (-scores[at], turns[at]))
    return [
        Ranked(
            at=at,
            turn=turns[at],
            score=scores[at],
            parts={name: column[at] for name, column in columns.items() if column[at]},
        )
        for at in order[:limit]
    ]

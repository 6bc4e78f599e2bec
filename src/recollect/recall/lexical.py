"""How well an entry's words fit a question's: BM25, as a share of what could be reached."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.recall.candidates import Candidates, Corpus, Phrase, Term
from recollect.recall.weights import Weights

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


def score_words(
    terms: Sequence[Term], corpus: Corpus, candidates: Candidates, weights: Weights
) -> Lexical:
    texts, groups = candidates.stems, groups_of(candidates)
    flat, slope = _length_terms(weights)
    boost = weights.saturation + 1
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
            fit = _fit(term, text, damping, weights.kin)
            if related:
                fit = max(fit, weights.related * related / (related + damping))
            fit *= boost
            scores[at] += worth * fit
            group = groups[at]
            together[group] = together.get(group, 0.0) + fit
        for group, fits in together.items():
            gathered[group] += worth * 2 * fits / (fits + 1)
    worths = {term.stem: term.worth for term in sought}
    return Lexical(scores=scores, groups=groups, gathered=gathered, worths=worths, places=places)


def score_phrases(
    phrases: Sequence[Phrase], lexical: Lexical, candidates: Candidates, weights: Weights
) -> list[float]:
    """What candidates get for words that stand in them as they do in the question."""
    scores = [0.0] * len(candidates)
    worths = lexical.worths
    for phrase in phrases:
        weight = weights.quoted if phrase.is_quoted else weights.phrase
        worth = weight * sum(worths.get(stem, 0.0) for stem in dict.fromkeys(phrase.stems))
        if phrase.is_quoted or all(stem in worths for stem in phrase.stems):
            # Whoever has it has each of its words: those with the rarest are looked at. Of words
            # that are worth nothing it is worth nothing.
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


def _length_terms(weights: Weights) -> tuple[float, float]:
    flat = weights.saturation * (1 - weights.length_share)
    return flat, weights.saturation * weights.length_share / weights.length_plain


def _fit(term: _Sought, stems: str, damping: float, kin_worth: float) -> float:
    """Between 0 and 1: how often the term is there, sooner or later enough; else its kin."""
    count = stems.count(term.exact)
    fit = count / (count + damping)
    if fit >= kin_worth or term.beginning == term.exact:
        return fit  # however much kin there is, it is worth less
    kin = stems.count(term.beginning) - count
    return max(fit, kin_worth * kin / (kin + damping)) if kin else fit

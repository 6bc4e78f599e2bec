"""The order of what was found: candidates scored against a question, each with its reasons.

Pure: no database, no clock, no model. A score is a sum of named parts, so that it explains itself.
Structure counts as much as words: who speaks, what stands beside, in which session, and when.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from operator import add, mul

from recollect.knowledge import Trust
from recollect.recall.candidates import Candidate, Corpus, Question, Ranked, Similarities, Term
from recollect.recall.lexical import group_of, score_words
from recollect.recall.times import TimeRange
from recollect.recall.weights import WEIGHTS, Weights

NAME_CHARS_MIN = 3  # from here on the beginning of a name stands for it: Mel, Melanie
DAY = timedelta(days=1)
LATER = timedelta(days=7)  # people tell a little after it happened
TIME_SHARE_TELLING = 0.05  # a time with so few of the candidates says all it can
RECENCY_HALF_DAYS = 30.0
USES_HALF = 5.0

Column = Sequence[float]  # one value for each candidate


def rank(
    question: Question,
    corpus: Corpus,
    candidates: Sequence[Candidate],
    similarities: Similarities | None = None,
    weights: Weights = WEIGHTS,
    *,
    limit: int | None = None,
) -> list[Ranked]:
    """The best candidates, best first. A neighbour counts when it is a candidate too."""
    names = speakers_asked(question.terms, {each.speaker for each in candidates})
    told = [term for term in question.terms if not _is_named(term, names)]
    stems = [term.stem for term in told or question.terms]
    lexical = score_words(stems, corpus, candidates, weights)
    voices = [_voice(each.trust, weights) for each in candidates]
    alike = _alike(candidates, similarities, weights)
    spoken = list(map(mul, voices, map(add, lexical.scores, alike)))
    # What an entry says weighs by whose word it is; the sum does once more, with all around it.
    twice = list(map(mul, voices, voices))
    columns: dict[str, Column] = {
        "words": list(map(mul, twice, lexical.scores)),
        "similarity": list(map(mul, twice, alike)),
        **_scaled(voices, _neighbours(spoken, candidates, weights)),
        "speaker": [
            voice * weights.speaker if each.speaker in names else 0.0
            for voice, each in zip(voices, candidates, strict=True)
        ],
        "time": list(map(mul, voices, _times(question, candidates, weights))),
        "session": [
            voice * weights.session * lexical.gathered[group_of(each)]
            for voice, each in zip(voices, candidates, strict=True)
        ],
        "recency": [weights.recency * _recent(question, each) for each in candidates],
        "usage": [weights.usage * each.uses / (each.uses + USES_HALF) for each in candidates],
    }
    return _ordered(columns, candidates, limit)


def speakers_asked(terms: Iterable[Term], speakers: Iterable[str]) -> frozenset[str]:
    """The speakers a question names, by a part of their name or the beginning of one."""
    words = {term.word for term in terms}
    return frozenset(
        speaker for speaker in speakers if speaker and any(_names(word, speaker) for word in words)
    )


def _names(word: str, speaker: str) -> bool:
    return word == speaker or (
        len(word) >= NAME_CHARS_MIN and any(part.startswith(word) for part in speaker.split())
    )


def _is_named(term: Term, speakers: frozenset[str]) -> bool:
    return any(_names(term.word, speaker) for speaker in speakers)


def _voice(trust: Trust, weights: Weights) -> float:
    match trust:
        case Trust.USER:
            return 1.0
        case Trust.AGENT:
            return weights.agent
        case Trust.TOOL:
            return weights.tool


def _alike(
    candidates: Sequence[Candidate], similarities: Similarities | None, weights: Weights
) -> Column:
    if similarities is None:
        return [0.0] * len(candidates)
    scale = weights.similarity / (similarities.spread or 1.0)
    floor = similarities.usual - similarities.spread
    cosines = similarities.cosines
    return [scale * max(cosines.get(each.id, floor) - floor, 0.0) for each in candidates]


def _neighbours(
    spoken: Column, candidates: Sequence[Candidate], weights: Weights
) -> dict[str, Column]:
    """What the turns around an entry bring; a fact or a passage says by itself what those would."""
    sessions: dict[str, dict[int, float]] = {}
    for each, said in zip(candidates, spoken, strict=True):
        if each.session is not None:
            sessions.setdefault(each.session, {})[each.seq] = said
    around, alone = [0.0] * len(candidates), [0.0] * len(candidates)
    for place, each in enumerate(candidates):
        if each.session is None:
            alone[place] = weights.beside * spoken[place]
            continue
        at, seq = sessions[each.session], each.seq
        if len(at) == 1:
            continue
        beside = max(at.get(seq - 1, 0.0), at.get(seq + 1, 0.0))
        near = max(at.get(seq - 2, 0.0), at.get(seq + 2, 0.0))
        around[place] = weights.beside * beside + weights.near * near
    return {"neighbours": around, "alone": alone}


def _scaled(voices: Column, columns: Mapping[str, Column]) -> dict[str, Column]:
    return {name: list(map(mul, voices, column)) for name, column in columns.items()}


def _times(question: Question, candidates: Sequence[Candidate], weights: Weights) -> Column:
    best = [0.0] * len(candidates)
    for time in question.times:
        fits = [_fits(time, each) for each in candidates]
        telling = weights.time * _telling(sum(1 for fit in fits if fit), len(candidates))
        best = [max(before, telling * fit) for before, fit in zip(best, fits, strict=True)]
    return best


def _fits(time: TimeRange, candidate: Candidate) -> float:
    """1 within the time; half for what was said shortly after it."""
    if candidate.said_at < time.start:
        return 0.0
    if candidate.said_at < time.end:
        return 1.0
    later = min(max(time.end - time.start, DAY), LATER)
    return 0.5 if candidate.said_at - time.end < later else 0.0


def _telling(inside: int, total: int) -> float:
    """Like the rarity of a word: a time that holds everything says nothing."""
    share = max(inside / total, TIME_SHARE_TELLING) if inside else 1.0
    return math.log(share) / math.log(TIME_SHARE_TELLING)


def _recent(question: Question, candidate: Candidate) -> float:
    days = max((question.asked_at - candidate.said_at) // DAY, 0)
    return RECENCY_HALF_DAYS / (RECENCY_HALF_DAYS + days)


def _ordered(
    columns: Mapping[str, Column], candidates: Sequence[Candidate], limit: int | None
) -> list[Ranked]:
    """Reasons are put together only for what is returned: most candidates are not."""
    scores = [sum(values) for values in zip(*columns.values(), strict=True)]
    order = sorted(range(len(candidates)), key=lambda at: (-scores[at], candidates[at].id))
    return [
        Ranked(
            candidate=candidates[at],
            score=scores[at],
            parts={name: column[at] for name, column in columns.items() if column[at]},
        )
        for at in order[:limit]
    ]

"""What ranking works on: a question, the space it is asked of, and entries that may answer it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from recollect.knowledge import Trust
from recollect.recall.times import TimeRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word of the question: as it is indexed, and as it stands there without case and accents."""

    stem: str
    word: str
    is_capital: bool = False  # as names are written


@dataclass(frozen=True, slots=True)
class Phrase:
    """Stems that stand next to each other in the question, and whether that is asked for."""

    stems: tuple[str, ...]
    is_quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, as far as its own text says."""

    terms: tuple[Term, ...]  # each stem once, without stop words
    asked_at: datetime
    times: tuple[TimeRange, ...] = ()
    phrases: tuple[Phrase, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """What the store knows of the whole space."""

    entries: int
    holders: Mapping[str, int]  # for each stem of the question how many entries have it, or about


@dataclass(slots=True, kw_only=True)
class Candidate:
    """One entry that may answer.

    Not frozen: hundreds are made for a question, and freezing them is a third of what they cost.

    `stems` are those of its text in their order, with one blank before and after each, so that
    counting one is a search for " stem ". Session and number are those of a record; what has none
    has no neighbours. Of equals the one with the lower `turn` goes first.
    """

    id: str
    stems: str
    length: int  # how many stems
    said_at: datetime
    trust: Trust = Trust.USER
    speaker: str = ""  # without case and accents
    session: str | None = None
    seq: int = 0
    uses: int = 0
    turn: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarities:
    """Cosines of entries with the question, and what is usual between any two texts of the model.

    Models differ in both: without them no weight would fit two of them.
    """

    cosines: Mapping[str, float]  # by the candidate's id; what is not there counts as usual
    usual: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate with its score, and the parts the score is the sum of."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)

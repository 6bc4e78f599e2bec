"""What ranking works on: a question, the space it is asked of, and entries that may answer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from recollect.knowledge import Trust
from recollect.times import TimeRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word of the question: as it is indexed, and as it stands there without case and accents.

    `related` are stems of words that an answer may use instead: "hiking" for "hobbies".
    """

    stem: str
    word: str
    is_capital: bool = False  # as names are written
    related: tuple[str, ...] = ()


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
    asks_agent: bool = False  # what the agent said is asked for
    asks_past: bool = False  # what held before is asked for as well
    asks_change: bool = False  # what took the place of what
    is_personal: bool = False  # it is about the one who asks
    asker: str | None = None  # who that is, without case and accents; "" has no name, None: unknown
    owned: tuple[str, ...] = ()  # the stems behind "my" in it


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
    speakers: Sequence[str]  # without case and accents; of a fact who told it, if that is known
    subjects: Sequence[str]  # the first words of a fact, likewise: who it is about
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

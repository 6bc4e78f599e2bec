"""The types of recall: what can be found, what is asked, and what comes back.

Frozen values without behaviour beyond reading themselves. An entry is what a store found and what
ranking works on; a hit is what a caller gets, with its sources and the reasons for its rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from recollect.types.facts import Fact, Source, Trust

CONTEXT_TOKENS = 2000  # of a block, where no budget is given
# The parts of a score, in words. What is kept of a block names them by their order.
REASONS: Mapping[str, str] = {
    "words": "has the words of the query, the rare ones above all",
    "phrase": "has them next to each other, as the query does",
    "similarity": "means something like it",
    "neighbours": "what was said just before or after it fits too",
    "speaker": "the query names who said it",
    "asker": "is about who asks, or their own word",
    "change": "was replaced, or took the place of something",
    "time": "was said in a time that the query names, or soon after",
    "alone": "says by itself what a turn says with those around it",
    "session": "what belongs together with it is about this",
    "recency": "is recent",
    "usage": "was of use before",
    "source": "says what a record says that fits better",
    "replaces": "comes before what it replaced",
    "outdated": "does not hold any more",
    "asks": "only asks something, and tells nothing",
    "repeated": "says the same as one further up",
}


class EntryKind(StrEnum):
    """What can be found."""

    FACT = "fact"
    DOCUMENT = "document"
    SUMMARY = "summary"  # what a session came to
    RECORD = "record"  # one record of the raw history


_LETTERS = {kind: kind.value[0].upper() for kind in EntryKind}


class Operator(StrEnum):
    """How a metadata value is compared."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NIN = "nin"
    CONTAINS = "contains"
    ICONTAINS = "icontains"
    EXISTS = "exists"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a metadata field has to be."""

    field: str
    operator: Operator
    value: Any


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every one of them has to hold."""

    parts: tuple[Where, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of them has to hold."""

    parts: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class NoneOf:
    """None of them may hold."""

    parts: tuple[Where, ...]


Where = Condition | AllOf | AnyOf | NoneOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What may be found at all. None: anything.

    `since` and `until` (not included) are about when it was said or last changed; `as_of` shows
    what was known and held at that time. With `or_no_project`, what belongs to no project at all
    may be found beside a project's own; without a project, only that. With `or_past`, facts that do
    not hold any more may be as well.
    """

    kinds: frozenset[EntryKind] = frozenset(EntryKind)
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    agent: str | None = None
    project: str | None = None
    or_no_project: bool = False
    or_past: bool = False
    session_id: str | None = None
    tags: tuple[str, ...] = ()  # all of them
    trust: frozenset[Trust] | None = None
    where: Where = AllOf()


@dataclass(slots=True)
class Entry:
    """One thing that can be found, as a store has it.

    Neither frozen nor by name alone: hundreds are made for a question, and each of both is a third
    of what they cost.

    `stems` are what it is found by; `key` is the store's own, and names it with the kind.
    `session_id` and `seq` are where it was said, or first said; `sources` are all of a fact's or a
    document's, once it is loaded whole. `until` is the end of a fact, or of what a record says, and
    `replaced_by` what holds since then; `facts` are those that a document names.
    """

    kind: EntryKind
    key: int
    id: str
    text: str
    stems: str
    at: datetime  # when it was said, or last changed
    trust: Trust
    session_id: str = ""
    seq: int = 0
    seq_to: int = 0  # up to where; 0: one record
    role: str = ""
    speaker: str = ""
    title: str = ""
    topic: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    usage_count: int = 0
    is_superseded: bool = False
    until: datetime | None = None
    sources: tuple[Source, ...] = ()
    facts: tuple[str, ...] = ()
    replaced_by: str = ""
    about: tuple[str, ...] = ()
    happened: tuple[datetime, datetime] | None = None  # of a fact: from then up to, not including

    def has_ended(self, at: datetime) -> bool:
        """Whether it, or a part of it, does not hold any more."""
        return self.until is not None and self.until <= at


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How many entries of a kind a space has, and how many of them have each stem. Estimates."""

    entries: int
    holders: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What a store is asked to look for: stems, times that were named, and what is alike by vector.

    `related` has, for some of the stems, others that an answer may use instead. A time is from its
    start up to, not including, its end. What is alike is named by its key. `replaced` is how many
    of the facts that were replaced last are wanted as well, with what took their place.
    """

    stems: tuple[str, ...]
    related: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    times: tuple[tuple[datetime, datetime], ...] = ()
    alike: Mapping[EntryKind, Sequence[int]] = field(default_factory=dict)
    replaced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a store has for it, each entry once."""

    entries: tuple[Entry, ...]
    extents: Mapping[EntryKind, Extent]


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSession:
    """What a session came to: its summary as an entry, and the memory by tasks behind it."""

    entry: Entry
    raw_memory: str
    slug: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """What a recap is made of, the newest first: what people want, what is known and planned, what
    was added without saying what it is, and what the last sessions came to."""

    instructions: tuple[Entry, ...] = ()
    known: tuple[Entry, ...] = ()
    added: tuple[Entry, ...] = ()
    sessions: tuple[PastSession, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementRevision:
    """What became of a statement that was learned from records: it does not hold as it was said.

    `statement` is what the fact said, `quote` the words of the records. With `is_withdrawn` a
    person has corrected or deleted it; else it was replaced or has ended at that time. `now` is
    what holds instead, if anything does.
    """

    session_id: str
    seq: int
    seq_to: int
    statement: str
    quote: str
    at: datetime
    is_withdrawn: bool
    now: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a search goes: entries of words, entries loaded, and records with neighbours."""

    postings: int = 6000  # over all stems of a question, for each kind
    postings_of_one: int = 1000
    loaded: Mapping[EntryKind, int] = field(
        default_factory=lambda: {
            EntryKind.RECORD: 160,
            EntryKind.FACT: 100,
            EntryKind.SUMMARY: 50,
            EntryKind.DOCUMENT: 50,
        }
    )
    beside: int = 50  # of the best, which bring the records next to them along
    timed: int = 200  # records and facts in the times that are named
    chars: int = 4000  # of each text


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One recalled thing: what it says, how well it fits, why, and where it comes from.

    `why` names each part of the score. `id` is that of the fact, the path of the document, the id
    of the session, or `session:seq` of a record.
    """

    id: str
    kind: EntryKind
    text: str
    score: float
    why: Mapping[str, float]
    sources: tuple[Source, ...]
    at: datetime
    trust: Trust
    title: str = ""
    speaker: str = ""
    tags: tuple[str, ...] = ()
    usage_count: int = 0
    outdated_at: datetime | None = None  # since when it, or a part of it, does not hold any more
    replaced_by: str = ""  # what holds instead, if anything does


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """One moment of something that is known: it was `said`, or what it tells of `happened`, or it
    `ended`."""

    at: datetime
    event: str
    text: str
    fact_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMention:
    """A session in which something came up: when, and in how many records and facts."""

    session_id: str
    key: str
    project: str | None
    first_at: datetime
    last_at: datetime
    records: int
    facts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Everything known of a person, a project or a thing.

    `count` is of all facts that name it; `current` by kind, `earlier` and the timeline are those of
    one page, and `next` is the id after which the next one begins.
    """

    name: str
    spellings: tuple[str, ...] = ()  # other ones
    count: int = 0
    current: tuple[Fact, ...] = ()
    earlier: tuple[Fact, ...] = ()
    timeline: tuple[TimelineEvent, ...] = ()
    pages: tuple[Hit, ...] = ()
    sessions: tuple[SessionMention, ...] = ()
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One thing that stands in a context block: by which mark, and where it comes from.

    `sources` are the hit's and those of what says the same and was left out for it.
    """

    mark: str
    hit: Hit
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Something that was found and not injected, and why; `instead`: the mark of its likeness."""

    hit: Hit
    reason: str
    instead: str = ""


def ref_of(kind: EntryKind, key: int) -> str:
    """A reference to an entry: the letter of its kind, and its key."""
    return f"{_LETTERS[kind]}{key:x}"


class Ground(NamedTuple):
    """An entry as it was found: what a line of a block was made from."""

    kind: EntryKind
    id: str
    key: int
    text: str
    speaker: str
    replaced_by: str

    @property
    def ref(self) -> str:
        return ref_of(self.kind, self.key)


def ground_of(entry: Entry, text: str | None = None) -> Ground:
    """What a line is made from: with a `text`, that instead of the entry's."""
    speaker = entry.speaker or entry.role if entry.kind is EntryKind.RECORD else ""
    said = entry.text if text is None else text
    return Ground(entry.kind, entry.id, entry.key, said, speaker, entry.replaced_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A block for a prompt, made of what was recalled; false when there is nothing to say.

    `grounds` are the entries as they were found: what is kept of a block refers to them.
    """

    id: str = ""  # by which its use is counted once
    text: str
    token_count: int = 0
    citations: tuple[Citation, ...] = ()
    omitted: tuple[Omission, ...] = ()
    grounds: tuple[Ground, ...] = field(default=(), repr=False, compare=False)

    def __bool__(self) -> bool:
        return bool(self.text)

    def to_openai(self) -> Sequence[Mapping[str, Any]]:
        """As messages to put before a conversation with an OpenAI-style model."""
        return [{"role": "system", "content": self.text}] if self.text else []

    def to_anthropic(self) -> Sequence[Mapping[str, Any]]:
        """As blocks for the `system` parameter of an Anthropic-style model."""
        return [{"type": "text", "text": self.text}] if self.text else []


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptContext:
    """What is kept of a block that was told: see `recollect.references`."""

    space: str
    id: str
    at: datetime
    reader: str
    session_id: str | None
    query: str
    refs: str
    told: bytes


class LineState(StrEnum):
    """What became of a line of a block since it was told."""

    SAME = "same"
    CORRECTED = "corrected"  # somebody edited what it says
    REPLACED = "replaced"  # something else holds since
    DELETED = "deleted"
    REWRITTEN = "rewritten"  # the page or the summary says something else by now
    ERASED = "erased"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryVersions:
    """What an entry says and said, the newest first, and what became of it."""

    id: str
    texts: tuple[str, ...]
    speaker: str = ""
    state: LineState = LineState.SAME
    now: str = ""  # what holds instead, where it is replaced
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldLine:
    """A line of a block: as it was told, what it is from, why it ranked there, and what became of
    it. Without a text: what it said is kept nowhere any more."""

    mark: str
    kind: EntryKind
    id: str
    text: str | None
    state: LineState
    now: str = ""  # what it says instead, or what holds instead
    reasons: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A block that was told, as far as it can be shown again.

    `is_identical`: `text` has the same bytes. Else it names, in the place of a line, what became of
    it. The query is gone with anything that the block told of and that was erased.
    """

    id: str
    at: datetime
    reader: str
    session_id: str | None
    query: str
    settings: Mapping[str, Any]
    is_identical: bool
    text: str
    lines: tuple[ToldLine, ...]


class UsageKind(StrEnum):
    """What became of something, each counted apart. What is only shown was not used."""

    SHOWN = "shown"  # it stood in a prompt
    OPENED = "opened"  # somebody asked to read it
    CITED = "cited"  # a model said that it used it


@dataclass(frozen=True, slots=True, kw_only=True)
class HitUsage:
    """Hits of which one thing became in one turn. Each is counted once."""

    kind: UsageKind
    turn_id: str
    hits: tuple[Hit, ...]
    at: datetime

    def __bool__(self) -> bool:
        return bool(self.hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unembedded:
    """An entry without a vector; its text tells whether it is still the same then."""

    space: str
    kind: EntryKind
    key: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVector:
    """An entry and the vector of what it said: float32, little-endian, of length one."""

    entry: Unembedded
    vector: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorChanges:
    """What came and what went: rows of (key, kind, entry key, vector) and of (kind, entry key)."""

    added: Sequence[tuple[int, str, int, bytes]]
    dropped: Sequence[tuple[str, int]]
    upto: int
    dropped_upto: int
    is_all: bool

"""The types of learning: extractions of sessions, facts, their sources, and their cost.

Frozen values without behaviour beyond reading themselves. A draft is what an extractor proposes;
nothing in it is trusted until it has been checked and stored.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

MetadataValue = str | int | float | bool | None


class Trust(StrEnum):
    """Whose word a fact is. Decided by the records it comes from, never by a model."""

    USER = "user"  # a person said so
    AGENT = "agent"  # an agent said or observed it
    TOOL = "tool"  # a tool or a web page put it into the conversation


class FactTag(StrEnum):
    """What kind of statement a fact is: its first tag."""

    PREFERENCE = "preference"
    DETAIL = "detail"  # a personal detail
    RELATION = "relation"  # who is who
    DECISION = "decision"
    GOAL = "goal"
    INSTRUCTION = "instruction"  # a standing one: "always", "never", "remember that"
    COMMITMENT = "commitment"  # something to happen, with its date where one was given
    CORRECTION = "correction"
    EVENT = "event"  # something that happened
    PROCEDURE = "procedure"  # a command that worked, a file touched
    LESSON = "lesson"  # an error and what mended it
    OBSERVATION = "observation"  # anything else


def kind_of(tags: Iterable[str]) -> FactTag | None:
    """The first tag that names a kind of statement."""
    return next((FactTag(tag) for tag in tags if tag in _KINDS), None)


_KINDS = frozenset(FactTag)


class Review(StrEnum):
    """Whether a person has to say yes before a fact is told to anybody, or has done so."""

    WAITING = "waiting"  # the setting `review` asks for it
    QUARANTINED = "quarantined"  # a tool said it and it reads like a command, whatever is set
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where something comes from: records of a session, and the words. 0: nobody said which."""

    session_id: str
    seq: int
    seq_to: int
    quote: str = ""


ENDS: Final = "ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A statement an extractor proposes, with the records of the session that bear it out.

    `topic` names what it is about: a newer statement on the same topic supersedes an older one, if
    only one can hold at a time (`is_single`). One with `ENDS` in its metadata says what no longer
    holds, and supersedes only what names that. `valid_from` is when it was said; `valid_to` is when
    it will be over, if it says so itself. What it tells of happened from `happened_from` up to, not
    including, `happened_to`. `about` has names, the subject first.
    """

    content: str
    seq: int
    seq_to: int
    valid_from: datetime
    trust: Trust
    quote: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    topic: str | None = None
    is_single: bool = True
    supersedes: tuple[str, ...] = ()
    valid_to: datetime | None = None
    about: tuple[str, ...] = ()
    happened_from: datetime | None = None
    happened_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFaults:
    """How many facts of a model's answers were not right: put right, or left out."""

    dropped: int = 0
    mended: int = 0

    @property
    def words(self) -> str:
        """Both counts as people read them; empty where there is neither."""
        counts = (("dropped", self.dropped), ("mended", self.mended))
        return ", ".join(
            f"{count:,} {'fact' if count == 1 else 'facts'} {what}"
            for what, count in counts
            if count
        )

    def plus(self, other: FactFaults) -> FactFaults:
        return FactFaults(dropped=self.dropped + other.dropped, mended=self.mended + other.mended)


NO_FAULTS = FactFaults()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What an extractor makes of a piece of a session, up to the record `upto`.

    The three texts stand for the whole session so far: the previous ones went in, and these replace
    them. All empty and no facts: there is nothing worth remembering.
    """

    upto: int
    raw_memory: str = ""
    rollout_summary: str = ""
    rollout_slug: str | None = None
    facts: tuple[NewFact, ...] = ()
    faults: FactFaults = NO_FAULTS

    @property
    def is_empty(self) -> bool:
        return not (self.raw_memory.strip() or self.rollout_summary.strip() or self.facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Phase 1's result for a session, one row: read so far up to `upto`, in pass `pass_number`."""

    session_id: str
    space: str
    rollout_slug: str | None
    rollout_summary: str
    raw_memory: str
    extractor: str
    pass_number: int
    upto: int
    source_updated_at: datetime
    generated_at: datetime
    usage_count: int
    last_usage: datetime | None
    selected_for_phase2: bool
    selected_for_phase2_source_updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who was told something: an agent, or a way in; in which session, when, and how often."""

    name: str
    session_id: str | None
    times: int
    first_at: datetime
    last_at: datetime

    @property
    def words(self) -> str:
        where = f" in session {self.session_id}" if self.session_id else ""
        often = "once" if self.times == 1 else f"{self.times:,} times"
        return f"{self.name}{where} ({often}, last on {self.last_at:%Y-%m-%d})"


@dataclass(frozen=True, slots=True)
class Fact:
    """One searchable statement, as it is given and as it is stored.

    `source` is the session it was first learned from; `sources` are the earliest, of which `get`
    gives more than a list does, and `source_count` says how many there are. What is not given is
    filled in when it is stored; `extractor` stays none for what somebody added or edited.

    `about` has the names of whom or what it says something of, the subject first; `kind` is the
    first tag that names one. What it tells of happened from `happened_from` up to, not including,
    `happened_to`. They are empty where nobody knows.
    """

    id: str = field(default="", kw_only=True)
    space: str = field(default="", kw_only=True)
    content: str
    _: KW_ONLY
    source: str | None = None
    sources: tuple[Source, ...] = ()
    source_count: int = 0
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    trust: Trust = Trust.USER
    topic: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    superseded_by: str | None = None
    usage_count: int = 0
    last_usage: datetime | None = None
    shown_count: int = 0
    extractor: str | None = None
    about: tuple[str, ...] = ()
    kind: FactTag | None = None
    happened_from: datetime | None = None
    happened_to: datetime | None = None
    review: Review | None = None

    @property
    def waits(self) -> bool:
        """Whether nobody is told of it before a person has accepted it."""
        return self.review is not None and self.review is not Review.ACCEPTED

    def is_valid(self, at: datetime) -> bool:
        """Whether it held at a time: said by then, and neither over nor superseded."""
        said = self.valid_from is None or self.valid_from <= at
        return said and (self.valid_to is None or at < self.valid_to)

    def holds(self, now: datetime) -> bool:
        """Whether it is true now, also if it was stored by a clock that is ahead of this one."""
        if self.waits:
            return False
        latest = max(moment for moment in (now, self.created_at, self.updated_at) if moment)
        said = self.valid_from is None or self.valid_from <= latest
        until = now if self.superseded_by is None else latest
        return said and (self.valid_to is None or until < self.valid_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a person had remembered: as which fact, whether it was known, and what it replaced."""

    fact: Fact
    is_known: bool = False
    replaced: tuple[Fact, ...] = ()


class When(StrEnum):
    """How the time is meant at which facts are asked for."""

    THEN = "then"  # they come as they were believed at that time
    NOW = "now"  # they come as they stand; what a clock that goes ahead has stored is so already


class Unchanged:
    """What an edit leaves as it is."""


UNCHANGED: Final = Unchanged()


@dataclass(frozen=True, slots=True)
class ChangedFact(Fact):
    """A fact that somebody has edited; `told` are those who were told it before, lately."""

    _: KW_ONLY
    told: tuple[Reader, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEdit:
    """What somebody changes about a fact; the rest stays as it is when the edit is made."""

    content: str | Unchanged = UNCHANGED
    tags: tuple[str, ...] | Unchanged = UNCHANGED
    metadata: Mapping[str, Any] | Unchanged = UNCHANGED
    valid_to: datetime | Unchanged | None = UNCHANGED
    trust: Trust | Unchanged = UNCHANGED


class FactEvent(StrEnum):
    """What can happen to a fact."""

    ADDED = "added"
    EDITED = "edited"
    APPROVED = "approved"  # a person has accepted it
    REJECTED = "rejected"  # a person has; no session brings it back
    SUPERSEDED = "superseded"
    RESTORED = "restored"  # what had superseded it is gone
    WITHDRAWN = "withdrawn"  # a new pass over its sessions does not say it any more
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """One entry of a fact's history: what it said from then on, and who said so."""

    fact_id: str
    event: FactEvent
    content: str
    at: datetime
    by: str  # an extractor, or `user`
    other_id: str | None  # the fact that superseded it


@dataclass(frozen=True, slots=True, kw_only=True)
class FactQuery:
    """Which facts to list: those that hold at `at`, unless `every` asks for all there are."""

    at: datetime
    when: When = When.THEN
    every: bool = False
    tag: str | None = None
    session_id: str | None = None
    topic: str | None = None
    before: Fact | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQuery:
    """Which facts that wait for a person: by kind (a tag), project, session, or whom they name."""

    kind: str | None = None
    project: str | None = None
    session_id: str | None = None
    person: str | None = None
    before: Fact | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A fact that waits for a person, and what it would end; `is_end`: it says only that."""

    fact: Fact
    replaces: tuple[Fact, ...] = ()
    is_end: bool = False

    @property
    def id(self) -> str:
        return self.fact.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What model calls took. `cost_micros` is in millionths of the currency; none: unknown."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, other: Spent) -> Spent:
        costs = [cost for cost in (self.cost_micros, other.cost_micros) if cost is not None]
        return Spent(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_micros=sum(costs) if costs else None,
        )


NOTHING_SPENT = Spent()


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A checked draft on its way into the store, with what is known about its making.

    `is_whole`: the run read the session from its first record, so it replaces what was learned
    before. `pass_number` is the pass it was read in; the store refuses it in any other. `review` is
    the setting: what of it waits for a person.
    """

    draft: Draft
    extractor: str
    pass_number: int
    is_whole: bool
    spent: Spent = NOTHING_SPENT
    attempt: int = 1
    review: str = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """How far a run through a whole session has got; nobody sees it before it is through."""

    pass_number: int
    upto: int
    extractor: str
    draft: Draft
    spent: Spent = NOTHING_SPENT


class CallOutcome(StrEnum):
    """What became of a model call."""

    RESERVED = "reserved"  # under way, or its process died
    ANSWERED = "answered"
    INVALID = "invalid"  # answered, and could not be used
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call to a model as the ledger has it; until it is settled the tokens are an estimate."""

    id: int
    space: str
    session_id: str | None
    purpose: str
    model: str
    attempt: int
    input_tokens: int
    output_tokens: int
    cost_micros: int | None
    outcome: CallOutcome
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    """A call about to be made, with what it may take at most."""

    space: str
    session_id: str | None
    purpose: str
    model: str
    attempt: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """What a space may use in a day."""

    tokens_per_day: int
    calls_per_day: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """The call may be made; settle it afterwards."""

    call_id: int


@dataclass(frozen=True, slots=True)
class OverCap:
    """The call would exceed what the space may use today."""

    spent: Spent
    cap: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """How often a space's memory has changed, and how much of it consolidation has seen."""

    changed: int
    consolidated: int
    changed_at: datetime | None

    @property
    def is_due(self) -> bool:
        return self.changed > self.consolidated


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was forgotten, in numbers.

    One of `session_id`, `record`, `fact_id`, `path`, `agent_id` and `source` says what was meant;
    none of them: everything. Not complete: somebody reads the store at this moment, and what was
    erased is in the log of changes until they are done; or something is `left`: pages that rest on
    it and that a person or another agent wrote on, and files that could not be removed or written
    anew.

    `may_remain` was found by words: paths of pages, `session_id:seq` of records and ids of facts
    that say most of what a forgotten statement said, whatever they rest on. They do not make it
    incomplete: they are somebody else's word. `told` are those who were told of it lately.
    `name_in` is where the name of a space stays that was forgotten as a whole: the `ledger` of
    model calls, the `audit` log, `keys` that open it.
    """

    space: str
    session_id: str | None = None
    record: str | None = None
    fact_id: str | None = None
    path: str | None = None
    agent_id: str | None = None
    source: str | None = None
    sessions: int = 0
    records: int = 0
    facts: int = 0
    sources: int = 0
    extractions: int = 0
    summaries: int = 0
    documents: int = 0
    versions: int = 0
    items: int = 0  # of inboxes
    left: tuple[str, ...] = ()  # paths
    may_remain: tuple[str, ...] = ()
    name_in: tuple[str, ...] = ()
    told: tuple[Reader, ...] = ()
    is_complete: bool = True
    at: datetime

    def leaving(self, left: Iterable[str]) -> Receipt:
        """The same, with more files and pages that may still say what was forgotten."""
        both = tuple(dict.fromkeys((*self.left, *left)))
        return replace(self, left=both, is_complete=self.is_complete and not both)

    def plus(self, more: Receipt) -> Receipt:
        """The numbers of both; as complete as what was done last, if that left nothing."""
        left = tuple(dict.fromkeys((*self.left, *more.left)))
        return replace(
            self,
            sessions=self.sessions + more.sessions,
            records=self.records + more.records,
            facts=self.facts + more.facts,
            sources=self.sources + more.sources,
            extractions=self.extractions + more.extractions,
            summaries=self.summaries + more.summaries,
            documents=self.documents + more.documents,
            versions=self.versions + more.versions,
            items=self.items + more.items,
            left=left,
            name_in=tuple(dict.fromkeys((*self.name_in, *more.name_in))),
            is_complete=more.is_complete and not left,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsMeant:
    """Which sessions of a space are to be forgotten: of an agent, from a source, or all."""

    agent_id: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettableSession:
    """One of them, and whether it is forgotten already."""

    id: str
    created_at: datetime
    is_forgotten: bool


_SPACE = re.compile(r"\s+")
_EDGES = " \t\r\n.!?;:,'\"`*_-–—…“”‘’()[]"


def names_what_ends(fact: NewFact, content: str) -> bool:
    """Whether a statement may make another untrue: one that says what is over, only what names it.

    "No longer lives in Rome" is nothing against "lives in Lisbon".
    """
    ended = fact.metadata.get(ENDS)
    if not isinstance(ended, str):
        return True
    return re.search(rf"\b{re.escape(ended)}\b", content, re.IGNORECASE) is not None


def content_key(content: str) -> str:
    """What makes two statements the same one: their words, whatever the case and punctuation."""
    text = unicodedata.normalize("NFKC", content).casefold()
    text = _SPACE.sub(" ", text).strip(_EDGES)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()

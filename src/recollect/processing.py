"""The protocol for processing a claim: a piece of a session goes in, a verdict comes out.

The worker knows only this protocol; its implementations know nothing of leases.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from recollect.types.facts import NOTHING_SPENT, Draft, Extraction, Spent
from recollect.types.records import Claim, Outcome, Record, SessionState

MEMORY_AGENT = "memory-agent"  # what hands a session over without an extractor

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A piece of a session, to be processed: the next records, and what it came to so far."""

    claim: Claim
    session: SessionState
    records: tuple[Record, ...]
    is_lost: Callable[[], bool]  # the claim has gone to somebody else; results would be discarded
    previous: Extraction | None = None
    before: tuple[Record, ...] = ()  # the last ones that were read already, as context

    @property
    def upto(self) -> int:
        """The last record of the piece."""
        return self.records[-1].seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a piece: of all of it, or up to a record from which it goes on next.

    A draft is stored together with the cursor; `extractor` says what made it.
    """

    outcome: Outcome
    reason: str | None = None
    upto: int | None = None
    draft: Draft | None = None
    extractor: str = "unnamed"
    spent: Spent = NOTHING_SPENT


class Processor(Protocol):
    """What a claim is processed by.

    Raise PermanentFailure if trying again would not help, Postponed if it is not the time yet. One
    with a `name` is known again: what it staged of a long run is not asked for twice. One that has
    `hands_over` says by it whether the memory-agent is to read the records of a verdict too. One
    that `is_paid` costs something: sessions that are going on wait for a pause, and those that
    were imported are taken one after the other.
    """

    def process(self, work: Work) -> Verdict: ...


def is_paid(processor: Processor | None) -> bool:
    """Whether a model is asked."""
    return bool(getattr(processor, "is_paid", False))


class LoggingProcessor:
    """Reads every record and learns nothing."""

    def process(self, work: Work) -> Verdict:
        _log.debug("session %s: %d records read", work.session.id, len(work.records))
        return Verdict(outcome=Outcome.NO_OUTPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandingProcessor:
    """Has sessions extracted by another processor, or by none, and handed over.

    `reads_all`: the memory-agent reads what was said; else it files the facts that were found, and
    what had none is not handed over. `ensure_root` sees to it that a space has a memory root.
    """

    extraction: Processor | None
    reads_all: bool
    ensure_root: Callable[[str], None]
    has_model: bool = False  # that reads what is handed over

    @property
    def name(self) -> str:
        return str(getattr(self.extraction, "name", MEMORY_AGENT))

    @property
    def is_paid(self) -> bool:
        return self.has_model or is_paid(self.extraction)

    def process(self, work: Work) -> Verdict:
        self.ensure_root(work.session.space)
        if self.extraction is None:
            return Verdict(outcome=Outcome.HANDED_OVER, extractor=MEMORY_AGENT)
        return self.extraction.process(work)

    def hands_over(self, verdict: Verdict) -> bool:
        """Whether the memory-agent is to have what a verdict is about."""
        match verdict.outcome:
            case Outcome.HANDED_OVER:
                return True
            case Outcome.EXTRACTED | Outcome.NO_OUTPUT:
                has_facts = verdict.draft is not None and bool(verdict.draft.facts)
                return self.reads_all or has_facts
            case Outcome.SKIPPED | Outcome.EXTERNAL:
                return False


@dataclass(slots=True)
class WorkReport:
    """The results of the jobs that were claimed."""

    processed: int = 0
    records: int = 0
    failed: int = 0
    postponed: int = 0
    stale: int = 0
    released: int = 0
    generations: int = 0  # of memory that were published
    upkeep: int = 0  # sweeps and scans of the store itself
    turns: int = 0  # of agents, those of memory-agents included

    def add(self, other: WorkReport, sign: int = 1) -> WorkReport:
        for each in dataclasses.fields(self):
            total = getattr(self, each.name) + sign * getattr(other, each.name)
            setattr(self, each.name, total)
        return self

    def __bool__(self) -> bool:
        return any(dataclasses.astuple(self))

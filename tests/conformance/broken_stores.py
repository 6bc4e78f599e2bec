"""Stores that break one promise each, to show that the conformance suite has teeth."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recollect.ids import NewId
from recollect.store.protocol import Store
from recollect.store.relational import Database, RelationalStore
from recollect.store.relational.access import ApiKeys, Audit
from recollect.store.relational.agents import Agents
from recollect.store.relational.documents import DocumentStore
from recollect.store.relational.extractions import Ledger
from recollect.store.relational.facts import FactStore
from recollect.store.relational.generations import GenerationStore
from recollect.store.relational.imports import Imports
from recollect.store.relational.leases import Leases
from recollect.store.relational.marks import Marks
from recollect.store.relational.records import Records
from recollect.store.relational.search import Search
from recollect.store.relational.session_keys import SessionStore
from recollect.types.records import (
    KeyRef,
    MarkCause,
    MarkPolicy,
    Mode,
    NewRecord,
    Range,
    Record,
    SessionBirth,
    SessionState,
    Unattended,
)
from tests.conformance import broken_learning
from tests.conformance.broken_agents import BROKEN_AGENTS
from tests.conformance.broken_audit import BROKEN_AUDIT
from tests.conformance.broken_documents import BROKEN_DOCUMENTS
from tests.conformance.broken_generations import BROKEN_GENERATIONS
from tests.conformance.broken_imports import BROKEN_IMPORTS
from tests.conformance.broken_keys import BROKEN_KEYS
from tests.conformance.broken_search import BROKEN_SEARCH

Aggregate = (
    SessionStore
    | Records
    | Marks
    | Leases
    | FactStore
    | Ledger
    | DocumentStore
    | Search
    | Agents
    | GenerationStore
    | Imports
    | ApiKeys
    | Audit
)

ATTRIBUTES: dict[str, type[Aggregate]] = {
    "sessions": SessionStore,
    "records": Records,
    "marks": Marks,
    "leases": Leases,
    "facts": FactStore,
    "ledger": Ledger,
    "documents": DocumentStore,
    "search": Search,
    "agents": Agents,
    "generations": GenerationStore,
    "imports": Imports,
    "api_keys": ApiKeys,
    "audit": Audit,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """An aggregate that is wrong, and the case that has to notice."""

    aggregate: Callable[[Database], Aggregate]
    caught_by: str


def broken_store(store: Store, broken: Break) -> Store:
    """A store as good as the one given but for one aggregate."""
    assert isinstance(store, RelationalStore)
    aggregate = broken.aggregate(store._database)
    [name] = [name for name, kind in ATTRIBUTES.items() if isinstance(aggregate, kind)]
    setattr(store, name, aggregate)
    return store


class LoweringMarks(Marks):
    def invalidate(
        self, space: str, session_id: str, seq: int, cause: MarkCause, now: datetime
    ) -> None:
        for session in self.find_invalidated(space, 100):
            if session.id == session_id and seq < (session.invalidated_at or 0):
                self.mark_processed(space, session_id, 0, session.invalidated_at or 0, now)
        super().invalidate(space, session_id, seq, cause, now)


class CarelessMarks(Marks):
    def mark_processed(
        self, space: str, session_id: str, processed_until: int, expected: int, now: datetime
    ) -> bool:
        for session in self.find_invalidated(space, 100):
            if session.id == session_id:
                expected = session.invalidated_at or expected
        return super().mark_processed(space, session_id, processed_until, expected, now)


class OverrunningMarks(Marks):
    """Processes up to the last record, whatever was asked for."""

    def mark_processed(
        self, space: str, session_id: str, processed_until: int, expected: int, now: datetime
    ) -> bool:
        return super().mark_processed(space, session_id, 2**40, expected, now)


class ForgetfulMarks(Marks):
    def ranges(self, space: str, session_id: str) -> list[Range]:
        return super().ranges(space, session_id)[1:]


class HastyMarks(Marks):
    def mark_idle(
        self, space: str | None, which: Unattended | None, now: datetime, limit: int
    ) -> list[tuple[str, str]]:
        if which is not None:
            which = replace(which, newest=which.newest + timedelta(microseconds=1))
        return super().mark_idle(space, which, now, limit)


class UnboundMarks(Marks):
    def bound_activity(self, space: str | None, now: datetime) -> None:
        pass


class IndiscriminateMarks(Marks):
    def mark_idle(
        self, space: str | None, which: Unattended | None, now: datetime, limit: int
    ) -> list[tuple[str, str]]:
        return super().mark_idle(space, which and replace(which, sources=()), now, limit)


class UnorderedMarks(Marks):
    def find_invalidated(self, space: str, limit: int) -> list[SessionState]:
        return super().find_invalidated(space, limit)[::-1]


class LeakyMarks(Marks):
    def find_invalidated(self, space: str, limit: int) -> list[SessionState]:
        return self.marked(None, limit)


class KeylessRecords(Records):
    def append(
        self,
        ref: KeyRef,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
        batch: str | None = None,
    ) -> list[Record]:
        keyless = [replace(record, append_key=None) for record in records]
        return super().append(ref, keyless, policy, now, new_id, batch)


class HoleyRecords(Records):
    """Loses the third record of every batch of more, though its number is taken."""

    def recent(self, ref: KeyRef, limit: int | None) -> list[Record]:
        return [record for record in super().recent(ref, limit) if record.seq != 3]


class PiecemealRecords(Records):
    """A batch is a row of single appends: what goes wrong in the middle leaves the beginning."""

    def append(
        self,
        ref: KeyRef,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
        batch: str | None = None,
    ) -> list[Record]:
        del batch
        single = super().append
        return [stored for r in records for stored in single(ref, [r], policy, now, new_id)]


class BackwardRecords(Records):
    def recent(self, ref: KeyRef, limit: int | None) -> list[Record]:
        return super().recent(ref, limit)[::-1]


class RoundingRecords(Records):
    def append(
        self,
        ref: KeyRef,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
        batch: str | None = None,
    ) -> list[Record]:
        rounded = [
            r if r.said_at is None else replace(r, said_at=r.said_at.replace(microsecond=0))
            for r in records
        ]
        return super().append(ref, rounded, policy, now, new_id, batch)


class LeakySessions(SessionStore):
    def get(self, space: str, session_id: str) -> SessionState | None:
        found = (super(LeakySessions, self).get(name, session_id) for name in self.spaces("", 100))
        return next((session for session in found if session is not None), None)


class EternalSessions(SessionStore):
    """Takes an ephemeral session for a lasting one."""

    def open_key(
        self, space: str, key: str, agent_id: str, birth: SessionBirth, now: datetime, new_id: NewId
    ) -> KeyRef:
        lasting = replace(birth, ephemeral=False)
        return super().open_key(space, key, agent_id, lasting, now, new_id)


class StubbornSessions(SessionStore):
    def set_mode(self, ref: KeyRef, mode: Mode, now: datetime) -> SessionState:
        return self.current(ref)


class RepeatingSessions(SessionStore):
    """Pages by time alone, so that sessions of one moment are missed."""

    def list(
        self, space: str, limit: int, before: SessionState | None
    ) -> builtins.list[SessionState]:
        return super().list(space, limit, None if before is None else replace(before, id=""))


class SummarisingSessions(SessionStore):
    """A reset that keeps records as if it were a compaction."""

    def rotate(
        self,
        ref: KeyRef,
        cause: MarkCause,
        now: datetime,
        new_id: NewId,
        *,
        reason: str | None = None,
        summary: str | None = None,
        retain: int = 0,
    ) -> SessionState:
        kept = retain or 20
        return super().rotate(ref, cause, now, new_id, reason=reason, summary=summary, retain=kept)


BROKEN: dict[str, Break] = {
    "a mark that can be lowered": Break(aggregate=LoweringMarks, caught_by="a_mark_only_rises"),
    "a swap without a comparison": Break(
        aggregate=CarelessMarks, caught_by="a_moved_mark_is_not_cleared"
    ),
    "a cursor past what was read": Break(
        aggregate=OverrunningMarks, caught_by="a_record_that_arrives_meanwhile_is_next"
    ),
    "a range that is not written": Break(
        aggregate=ForgetfulMarks, caught_by="each_move_leaves_one_range"
    ),
    "a sweep of any source": Break(
        aggregate=IndiscriminateMarks, caught_by="one_rule_says_who_is_learned_from"
    ),
    "activity that lies ahead": Break(aggregate=UnboundMarks, caught_by="activity_lies_not_ahead"),
    "a sweep too early": Break(
        aggregate=HastyMarks, caught_by="a_session_is_swept_exactly_at_the_limit"
    ),
    "marks in the wrong order": Break(
        aggregate=UnorderedMarks, caught_by="marked_sessions_come_by_ascending_mark"
    ),
    "marks of other spaces": Break(
        aggregate=LeakyMarks, caught_by="no_mark_of_another_space_is_found"
    ),
    "append keys that are lost": Break(
        aggregate=KeylessRecords, caught_by="a_retry_stores_nothing"
    ),
    "a hole in the numbers": Break(
        aggregate=HoleyRecords, caught_by="records_are_numbered_without_a_hole"
    ),
    "a batch in pieces": Break(
        aggregate=PiecemealRecords, caught_by="a_refused_batch_takes_no_number"
    ),
    "recent in the wrong order": Break(
        aggregate=BackwardRecords, caught_by="recent_gives_the_newest"
    ),
    "times without microseconds": Break(
        aggregate=RoundingRecords, caught_by="times_keep_their_microseconds"
    ),
    "sessions of other spaces": Break(
        aggregate=LeakySessions, caught_by="no_session_of_another_space_is_found"
    ),
    "an ephemeral session that is kept": Break(
        aggregate=EternalSessions, caught_by="an_ephemeral_session_is_never_marked"
    ),
    "a mode that is not set": Break(
        aggregate=StubbornSessions, caught_by="a_forbidden_session_is_never_marked"
    ),
    "pages that miss sessions": Break(
        aggregate=RepeatingSessions, caught_by="pages_repeat_nothing_under_a_standing_clock"
    ),
    "a reset that keeps records": Break(
        aggregate=SummarisingSessions, caught_by="a_reset_keeps_nothing"
    ),
    "a run that forgets its facts": Break(
        aggregate=broken_learning.ForgetfulLeases, caught_by="a_run_stores_everything_together"
    ),
    "a run of another pass": Break(
        aggregate=broken_learning.CarelessLeases, caught_by="another_pass_is_refused"
    ),
    "a run that always replaces": Break(
        aggregate=broken_learning.ReplacingLeases, caught_by="an_incremental_run_keeps"
    ),
    "a run that never replaces": Break(
        aggregate=broken_learning.AddingLeases, caught_by="a_whole_run_replaces"
    ),
    "supersession whatever the trust": Break(
        aggregate=broken_learning.TrustingLeases, caught_by="a_better_word_is_not_superseded"
    ),
    "statements without a topic": Break(
        aggregate=broken_learning.TopiclessLeases, caught_by="a_newer_statement_supersedes"
    ),
    "supersession by arrival": Break(
        aggregate=broken_learning.ArrivingLeases,
        caught_by="the_order_of_arrival_does_not_matter",
    ),
    "an extraction of more than was read": Break(
        aggregate=broken_learning.HastyLeases,
        caught_by="an_extraction_knows_its_newest_record",
    ),
    "facts outside of the fence": Break(
        aggregate=broken_learning.UnfencedLeases, caught_by="a_stale_claim_learns_nothing"
    ),
    "a deferral that is a failure": Break(
        aggregate=broken_learning.BlamingLeases, caught_by="a_deferred_job_waits"
    ),
    "a pass that does not look back": Break(
        aggregate=broken_learning.OverlookingLeases, caught_by="a_pass_that_was_overtaken_goes_on"
    ),
    "a pass that only adds": Break(
        aggregate=broken_learning.GentleLeases, caught_by="a_pass_replaces_everything"
    ),
    "a named fact that is merged": Break(
        aggregate=broken_learning.MergingFacts, caught_by="a_named_fact_is_never_merged"
    ),
    "a search without a past": Break(
        aggregate=broken_learning.PresentFacts, caught_by="the_past_is_read_as_it_was_believed"
    ),
    "sources that nobody asked for": Break(
        aggregate=broken_learning.TalkativeFacts,
        caught_by="a_search_gives_the_sources_it_is_asked_for",
    ),
    "a key that is a path": Break(
        aggregate=broken_learning.PathFacts, caught_by="metadata_is_searched_by_any_key"
    ),
    "a search that only has a first page": Break(
        aggregate=broken_learning.FirstPageFacts, caught_by="a_search_by_metadata_comes_in_pages"
    ),
    "a true that is one": Break(aggregate=broken_learning.LooseFacts, caught_by="one_is_one"),
    "a call settled for its estimate": Break(
        aggregate=broken_learning.EstimatingLedger, caught_by="settling_replaces_the_estimate"
    ),
    "a cap exceeded by one": Break(
        aggregate=broken_learning.GenerousLedger, caught_by="a_cap_on_tokens_is_exact"
    ),
    "a day that begins early": Break(
        aggregate=broken_learning.LocalLedger, caught_by="a_day_is_a_day_in_utc"
    ),
}
BROKEN |= {
    name: Break(aggregate=aggregate, caught_by=caught_by)
    for name, (aggregate, caught_by) in BROKEN_DOCUMENTS.items()
}
BROKEN |= {
    name: Break(aggregate=search, caught_by=caught_by)
    for name, (search, caught_by) in BROKEN_SEARCH.items()
}
BROKEN |= {
    name: Break(aggregate=agents, caught_by=caught_by)
    for name, (agents, caught_by) in BROKEN_AGENTS.items()
}
BROKEN |= {
    name: Break(aggregate=aggregate, caught_by=caught_by)
    for name, (aggregate, caught_by) in BROKEN_GENERATIONS.items()
}
BROKEN |= {
    name: Break(aggregate=aggregate, caught_by=caught_by)
    for name, (aggregate, caught_by) in BROKEN_IMPORTS.items()
}
BROKEN |= {
    name: Break(aggregate=aggregate, caught_by=caught_by)
    for name, (aggregate, caught_by) in BROKEN_KEYS.items()
}
BROKEN |= {
    name: Break(aggregate=aggregate, caught_by=caught_by)
    for name, (aggregate, caught_by) in BROKEN_AUDIT.items()
}

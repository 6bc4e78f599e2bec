"""Stores that learn, pay or forget wrongly, to show that the conformance suite has teeth.

Some are wrong by a method; the others leave out one of their statements without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from recollect.ids import NewId
from recollect.store.relational.database import (
    Asked,
    Connection,
    Database,
    Params,
    Row,
    VectorIndex,
)
from recollect.store.relational.extractions import Ledger
from recollect.store.relational.facts import FactStore
from recollect.store.relational.leases import Leases
from recollect.store.whole import Access, Whole
from recollect.types.agents import HandOver
from recollect.types.facts import (
    CallOutcome,
    Caps,
    Fact,
    Learned,
    MetadataValue,
    NewCall,
    OverCap,
    Reserved,
    Spent,
    Trust,
    When,
)
from recollect.types.records import (
    BackedOff,
    Behind,
    Claim,
    Deferred,
    LeasePolicy,
    Outcome,
    Overtaken,
    Recorded,
    StaleClaim,
    StoreDescription,
)

T = TypeVar("T")


def _with_facts(learned: Learned, **changes: Any) -> Learned:
    facts = tuple(replace(fact, **changes) for fact in learned.draft.facts)
    return replace(learned, draft=replace(learned.draft, facts=facts))


class LearningLeases(Leases):
    """Records something else than it was given."""

    def record(
        self,
        claim: Claim,
        upto: int,
        outcome: Outcome,
        reason: str | None,
        now: datetime,
        learned: Learned | None = None,
        new_id: NewId | None = None,
        handed: HandOver | None = None,
    ) -> Recorded | Overtaken | StaleClaim:
        other = None if learned is None else self.twist(claim, learned)
        return super().record(claim, upto, outcome, reason, now, other, new_id, handed)

    def twist(self, claim: Claim, learned: Learned) -> Learned:
        return learned


class ForgetfulLeases(LearningLeases):
    def twist(self, claim: Claim, learned: Learned) -> Learned:
        return replace(learned, draft=replace(learned.draft, facts=()))


class CarelessLeases(LearningLeases):
    """Takes what was learned in any pass."""

    def twist(self, claim: Claim, learned: Learned) -> Learned:
        loaded = self.load(claim, None, 1)
        assert loaded is not None
        return replace(learned, pass_number=loaded.session.pass_number)


class ReplacingLeases(LearningLeases):
    def twist(self, claim: Claim, learned: Learned) -> Learned:
        return replace(learned, is_whole=True)


class AddingLeases(LearningLeases):
    def twist(self, claim: Claim, learned: Learned) -> Learned:
        return replace(learned, is_whole=False)


class TrustingLeases(LearningLeases):
    """Believes a tool as it would a person, so that anything supersedes anything."""

    def twist(self, claim: Claim, learned: Learned) -> Learned:
        return _with_facts(learned, trust=Trust.USER)


class TopiclessLeases(LearningLeases):
    def twist(self, claim: Claim, learned: Learned) -> Learned:
        return _with_facts(learned, topic=None)


class ArrivingLeases(LearningLeases):
    """Takes what arrives last for the newest."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._seconds = 0

    def twist(self, claim: Claim, learned: Learned) -> Learned:
        self._seconds += 1
        moment = datetime.fromisoformat("2026-01-01T00:00:00Z") + timedelta(seconds=self._seconds)
        return _with_facts(learned, valid_from=moment)


class HastyLeases(Leases):
    """Takes the end of a claim for the end of what was read."""

    def record(
        self,
        claim: Claim,
        upto: int,
        outcome: Outcome,
        reason: str | None,
        now: datetime,
        learned: Learned | None = None,
        new_id: NewId | None = None,
        handed: HandOver | None = None,
    ) -> Recorded | Overtaken | StaleClaim:
        return super().record(claim, claim.read_upto, outcome, reason, now, learned, new_id, handed)


class UnfencedLeases(Leases):
    """Stores the facts first and looks at the token afterwards."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._facts = FactStore(database)

    def record(
        self,
        claim: Claim,
        upto: int,
        outcome: Outcome,
        reason: str | None,
        now: datetime,
        learned: Learned | None = None,
        new_id: NewId | None = None,
        handed: HandOver | None = None,
    ) -> Recorded | Overtaken | StaleClaim:
        if learned is not None and new_id is not None:
            for fact in learned.draft.facts:
                self._facts.add(claim.space, Fact(fact.content), now, new_id)
        return super().record(claim, upto, outcome, reason, now, learned, new_id, handed)


class BlamingLeases(Leases):
    """A deferral that counts as a failure."""

    def defer(
        self, claim: Claim, reason: str, delay_seconds: float, now: datetime | None
    ) -> Deferred | StaleClaim:
        patient = LeasePolicy(failures_max=99)
        failed = self.fail(claim, reason, delay_seconds, patient, now)
        return Deferred(failed.until) if isinstance(failed, BackedOff) else StaleClaim()


class OverlookingLeases(Leases):
    """A pass that does not notice how far the session has come."""

    def record_pass(
        self,
        claim: Claim,
        upto: int,
        learned: Learned | None,
        now: datetime,
        new_id: NewId,
        handed: HandOver | None = None,
    ) -> Recorded | Behind | StaleClaim:
        return super().record_pass(claim, 2**31, learned, now, new_id, handed)


class GentleLeases(Leases):
    """A pass that adds to what there is."""

    def record_pass(
        self,
        claim: Claim,
        upto: int,
        learned: Learned | None,
        now: datetime,
        new_id: NewId,
        handed: HandOver | None = None,
    ) -> Recorded | Behind | StaleClaim:
        added = None if learned is None else replace(learned, is_whole=False)
        return super().record_pass(claim, upto, added, now, new_id, handed)


class MergingFacts(FactStore):
    """Takes a fact's own id for a suggestion."""

    def add(self, space: str, fact: Fact, now: datetime, new_id: NewId) -> Fact:
        return super().add(space, replace(fact, id=""), now, new_id)


class PresentFacts(FactStore):
    """Knows no other time than the newest."""

    def search(
        self,
        space: str,
        terms: Sequence[str],
        at: datetime,
        limit: int,
        sources_max: int = 20,
        when: When = When.THEN,
    ) -> list[Fact]:
        return super().search(space, terms, at + timedelta(days=9999), limit, sources_max, when)


class TalkativeFacts(FactStore):
    """Gives its sources unasked."""

    def search(
        self,
        space: str,
        terms: Sequence[str],
        at: datetime,
        limit: int,
        sources_max: int = 20,
        when: When = When.THEN,
    ) -> list[Fact]:
        return super().search(space, terms, at, limit, max(sources_max, 20), when)


class PathFacts(FactStore):
    """Takes a key for a path."""

    def search_metadata(
        self,
        space: str,
        key: str,
        value: MetadataValue,
        at: datetime,
        limit: int,
        when: When = When.THEN,
        before: Fact | None = None,
    ) -> list[Fact]:
        return super().search_metadata(space, key.split(".")[0], value, at, limit, when, before)


class LooseFacts(FactStore):
    """True is one."""

    def search_metadata(
        self,
        space: str,
        key: str,
        value: MetadataValue,
        at: datetime,
        limit: int,
        when: When = When.THEN,
        before: Fact | None = None,
    ) -> list[Fact]:
        number = int(value) if isinstance(value, bool) else value
        return super().search_metadata(space, key, number, at, limit, when, before)


class FirstPageFacts(FactStore):
    """Begins every search by metadata at its beginning."""

    def search_metadata(
        self,
        space: str,
        key: str,
        value: MetadataValue,
        at: datetime,
        limit: int,
        when: When = When.THEN,
        before: Fact | None = None,
    ) -> list[Fact]:
        del before
        return super().search_metadata(space, key, value, at, limit, when)


class EstimatingLedger(Ledger):
    """Settles a call for what was reserved."""

    def settle(self, space: str, call_id: int, spent: Spent, outcome: CallOutcome) -> bool:
        for call in self.calls(space, None, 1000, None):
            if call.id == call_id:
                spent = replace(
                    spent, input_tokens=call.input_tokens, output_tokens=call.output_tokens
                )
        return super().settle(space, call_id, spent, outcome)


class GenerousLedger(Ledger):
    def reserve(self, call: NewCall, caps: Caps, now: datetime) -> Reserved | OverCap:
        wider = replace(caps, tokens_per_day=caps.tokens_per_day + 1)
        return super().reserve(call, wider, now)


class LocalLedger(Ledger):
    """Begins its day an hour early."""

    def reserve(self, call: NewCall, caps: Caps, now: datetime) -> Reserved | OverCap:
        return super().reserve(call, caps, now + timedelta(hours=1))


class MutedConnection:
    """A connection on which one query does nothing and finds nothing."""

    def __init__(self, connection: Connection, muted: str) -> None:
        self._connection = connection
        self._muted = muted

    def rows(self, name: str, params: Params) -> list[Row]:
        return [] if name == self._muted else self._connection.rows(name, params)

    def row(self, name: str, params: Params) -> Row | None:
        return None if name == self._muted else self._connection.row(name, params)

    def rows_each(self, asked: Sequence[Asked]) -> list[list[Row]]:
        return [self.rows(name, params) for name, params in asked]

    def last_rows(self, asked: Sequence[Asked]) -> list[list[Row]]:
        return self.rows_each(asked)

    def run(self, name: str, params: Params) -> None:
        if name != self._muted:
            self._connection.run(name, params)

    def run_many(self, name: str, params: Sequence[Params]) -> None:
        if name != self._muted:
            self._connection.run_many(name, params)

    def wake(self) -> None:
        if self._muted != "wake":
            self._connection.wake()


class MutedDatabase:
    """Implements `Database` on another one, but for one query."""

    def __init__(self, database: Database, muted: str) -> None:
        self._database = database
        self._muted = muted

    def write(self, space: str | None, job: Callable[[Connection], T]) -> T:
        return self._database.write(space, lambda c: job(MutedConnection(c, self._muted)))

    def erase(self, space: str | None, job: Callable[[Connection], T]) -> T:
        return self._database.erase(space, lambda c: job(MutedConnection(c, self._muted)))

    def read(self, space: str | None, job: Callable[[Connection], T]) -> T:
        return self._database.read(space, lambda c: job(MutedConnection(c, self._muted)))

    def ask(self, space: str | None, asked: Sequence[Asked]) -> list[list[Row]]:
        return self.read(space, lambda c: c.rows_each(asked))

    def listen(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self._database.listen(wake)

    def scrub(self) -> bool:
        return self._database.scrub()

    def vector_index(self) -> VectorIndex | None:
        return self._database.vector_index()

    def whole(self, access: Access) -> AbstractContextManager[Whole]:
        return self._database.whole(access)

    def describe(self) -> StoreDescription:
        return self._database.describe()

    def close(self) -> None:
        self._database.close()


# What a store may leave out, and the case that has to notice.
MUTED: dict[str, str] = {
    "said_earlier": "a_statement_holds_from_the_first_time",
    "revive_fact": "the_id_of_a_deleted_fact_can_be_used_again",
    "adopt_fact": "an_extracted_fact_can_be_adopted",
    "vouch_for_fact": "peoples_own_word_stays",
    "settle_trust": "the_best_trust_wins",
    "edit_fact": "an_edited_fact_is_somebodys_own",
    "reword_sources": "an_edits_word_outlives_a_source",
    "reword_extraction": "a_correction_is_in_the_texts",
    "taken_back": "a_run_brings_no_text_back",
    "said_anew": "what_is_said_again_is_believed",
    "unsay": "a_deleted_statement_stays_away",
    "session_statements": "other_texts_stay",
    "supersede_fact": "a_newer_statement_supersedes",
    "set_review": "an_accepted_fact_takes_its_place",
    "insert_source": "the_same_statement_is_one_fact",
    "delete_sources": "adding_under_an_id_replaces",
    "insert_change": "an_edited_fact_is_somebodys_own",
    "delete_fact": "a_deleted_fact_is_not_there",
    "delete_source": "a_shared_fact_survives_a_whole_run",
    "withdraw_sources": "a_shared_fact_stays",
    "inherit_superseded": "deleting_brings_back",
    "erase_fact": "forgetting_removes_everything",
    "erase_changes": "nothing_is_left_in_a_history",
    "find_same_fact": "the_same_statement_is_one_fact",
    "find_topic_facts": "a_newer_statement_supersedes",
    "find_supersedable": "a_named_fact_is_superseded",
    "find_live_same": "the_same_statement_is_not_brought_back_twice",
    "is_suppressed": "a_deleted_statement_stays_away",
    "disputed_statements": "a_deleted_statement_stays_away",
    "session_sources": "a_whole_run_replaces",
    "session_facts": "forgetting_removes_everything",
    "sourceless": "forgetting_removes_everything",
    "superseded_by": "forgetting_brings_back",
    "put_extraction": "an_extraction_is_updated",
    "extend_extraction": "the_same_again_is_no_news",
    "delete_extraction": "an_empty_whole_draft_removes",
    "note_change": "consolidation_hears_of_changes_only",
    "make_consolidation_due": "facts_make_a_space_due",
    "wake": "marks_wake",
    "next_pass": "a_session_can_have_many_passes",
    "request_passes": "a_requested_pass_is_due",
    "finish_pass": "a_pass_over_nothing_changes_nothing",
    "reserve_spending": "a_cap_on_calls_is_exact",
    "add_spending": "settling_replaces_the_estimate",
    "settle_call": "settling_replaces_the_estimate",
    "delete_summary": "a_purge_removes_history_and_summary",
    "forget_summaries": "forgetting_removes_everything",
    "void_pass": "forbidding_voids_a_pass",
    "pass_over": "enabling_skips_what_was_said_meanwhile",
    "ranges_ahead": "what_was_said_meanwhile_is_never_learned",
    "has_lost_records": "what_purged_records_came_to_stays",
    "delete_records": "forgetting_removes_everything",
    "forget_calls": "the_books_do_not_name_the_forgotten",
    "forget_job": "a_pass_over_a_forgotten_session_is_stale",
    "stage_draft": "a_staged_draft_comes_back",
    "drop_staged": "a_staged_draft_is_gone_when_the_run_is_through",
    "close_forgotten": "a_forgotten_session_is_over",
    "lock_claim": "a_stale_claim_learns_nothing",
    "defer_claim": "a_deferred_job_waits",
}
# Without these nothing works at all, only many threads on PostgreSQL would notice, or what is left
# leads nowhere.
NOT_MUTED = frozenset(
    {"insert_fact", "replace_fact", "insert_call", "put_property", "lock_memory"}
    | {"delete_retained_from"}
)

"""Stores that keep inboxes, lives or signals wrongly, to show that the suite has teeth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from recollect.ids import SYSTEM_RANDOMNESS, NewId, Randomness
from recollect.store.relational.agents import Agents
from recollect.store.relational.documents import DocumentStore
from recollect.store.relational.leases import Leases
from recollect.types.agents import (
    Delivery,
    DocumentChanges,
    DueSignal,
    Item,
    LifePolicy,
    MoreWork,
    NewItem,
    NoTurn,
    Signal,
    Turn,
)
from recollect.types.pages import Filing
from recollect.types.records import (
    BackedOff,
    CapReached,
    Claim,
    JobKind,
    KeyRef,
    LeasePolicy,
    MarkPolicy,
    NewRecord,
    NothingDue,
    Parked,
    Record,
    Released,
    StaleClaim,
)


class SplittingAgents(Agents):
    """Stores the answer of a turn and its documents one after the other."""

    def finish(
        self,
        claim: Claim,
        turn: Turn,
        records: Sequence[NewRecord],
        policy: MarkPolicy,
        now: datetime,
        new_id: NewId,
        documents: DocumentChanges | Filing | None = None,
    ) -> list[Record] | StaleClaim:
        stored = super().finish(claim, turn, records, policy, now, new_id)
        if isinstance(documents, DocumentChanges):
            space, given = claim.space, documents
            DocumentStore(self._database).apply(
                space, given.edits, given.because, given.limits, now, new_id
            )
        return stored


class NumberingAgents(Agents):
    """Gives an interrupted turn another name."""

    def take(
        self, claim: Claim, policy: MarkPolicy, now: datetime, new_id: NewId
    ) -> Turn | NoTurn | StaleClaim:
        turn = super().take(claim, policy, now, new_id)
        if not isinstance(turn, Turn):
            return turn
        return Turn(id=new_id(), items=turn.items, session=turn.session, records=turn.records)


class LateAgents(Agents):
    """Takes a message for said when it is read."""

    def post(self, ref: KeyRef, item: NewItem, job: JobKind, now: datetime) -> Item:
        return super().post(ref, item, job, now + timedelta(seconds=5))


class EagerAgents(Agents):
    """Delivers what is nearly due."""

    def due_signals(self, now: datetime, limit: int, space: str | None = None) -> list[DueSignal]:
        return super().due_signals(now + timedelta(seconds=1), limit, space)

    def deliver(self, due: DueSignal, policy: LifePolicy, now: datetime, new_id: NewId) -> Delivery:
        return super().deliver(due, policy, now + timedelta(seconds=1), new_id)


class ImmortalAgents(Agents):
    """Nobody dies."""

    def deliver(self, due: DueSignal, policy: LifePolicy, now: datetime, new_id: NewId) -> Delivery:
        every = frozenset({"user", "cron", "system", "subagent", "memory-agent"})
        return super().deliver(due, LifePolicy(immortal_types=every), now, new_id)


class MortalAgents(Agents):
    """Everybody dies."""

    def deliver(self, due: DueSignal, policy: LifePolicy, now: datetime, new_id: NewId) -> Delivery:
        return super().deliver(due, LifePolicy(immortal_types=frozenset()), now, new_id)


class RestlessAgents(Agents):
    """Forgets what is to happen later when an agent rests."""

    def release(
        self, claim: Claim, signals: Sequence[Signal], now: datetime
    ) -> Released | MoreWork | StaleClaim:
        return super().release(claim, (), now)


class HeavyAgents(Agents):
    """Takes every failure for the last."""

    def fail(
        self,
        claim: Claim,
        turn_id: str | None,
        error: str,
        delay_seconds: float,
        policy: LeasePolicy,
        now: datetime | None,
        *,
        is_final: bool = False,
    ) -> BackedOff | Parked | Released | StaleClaim:
        return super().fail(claim, turn_id, error, delay_seconds, policy, now, is_final=True)


class LanelessLeases(Leases):
    """Gives anybody what somebody has to host."""

    def claim(
        self,
        owner: str,
        policy: LeasePolicy,
        now: datetime | None,
        lane: str | None = "",
        randomness: Randomness = SYSTEM_RANDOMNESS,
    ) -> Claim | NothingDue | CapReached:
        found = super().claim(owner, policy, now, lane, randomness)
        return (
            found
            if isinstance(found, Claim)
            else super().claim(owner, policy, now, None, randomness)
        )


BROKEN_AGENTS: dict[str, tuple[type[Agents | Leases], str]] = {
    "a turn in two pieces": (SplittingAgents, "a_stale_document_stores_nothing"),
    "a turn with another name": (NumberingAgents, "an_interrupted_turn_comes_back"),
    "a message at another time": (LateAgents, "a_turn_is_in_the_history"),
    "a signal before its time": (EagerAgents, "a_signal_comes_once"),
    "an agent that cannot die": (ImmortalAgents, "a_long_sleep_is_the_end"),
    "an agent that should not die": (MortalAgents, "a_long_sleep_is_the_end"),
    "an agent that never sleeps": (RestlessAgents, "an_idle_agent_falls_asleep"),
    "a first failure that is the last": (HeavyAgents, "a_failed_turn_backs_off"),
    "a worker that takes everything": (LanelessLeases, "workers_and_hosts_keep_apart"),
}

# What a store may leave out, and the case that has to notice.
MUTED_AGENTS: dict[str, str] = {
    "forget_own_items": "a_parked_message_is_forgotten",
    "wake_agent": "a_message_wakes_a_sleeping_agent",
    "set_life": "an_idle_agent_falls_asleep",
    "insert_item": "what_is_posted_waits",
    "make_agent_due": "what_is_posted_waits",
    "take_item": "an_interrupted_turn_comes_back",
    "finish_items": "a_done_item_has_no_words",
    "drop_items": "a_killed_agent_loses_everything",
    "void_agent_job": "a_killed_agent_loses_everything",
    "drop_done_items": "done_items_are_dropped",
    "fail_items": "what_fails_too_often_is_parked",
    "revive_items": "a_parked_item_is_revived",
    "revive_agent": "a_parked_item_of_a_resting_agent_is_revived",
    "rest_agent": "a_turn_from_message_to_answer",
    "put_signal": "signals_are_listed",
    "cancel_signal": "a_signal_can_be_cancelled",
    "cancel_own_signals": "a_post_cancels_its_own_signals",
    "cancel_signals": "a_death_takes_its_signals",
    "take_signal": "a_signal_comes_once",
    "put_told": "what_was_said_of_a_session_is_forgotten",
    "end_told": "what_was_said_of_a_session_is_forgotten",
    "delete_told_records": "what_was_said_of_a_session_is_forgotten",
    "forget_items": "a_forgotten_session_is_not_told",
    "lock_turn": "a_turn_from_message_to_answer",
    "lock_life": "a_known_item_wakes_nobody",
    "has_items": "an_agent_with_work_does_not_rest",
    "give_back": "a_final_failure_lets_the_next_one_run",
    "note_progress": "a_success_clears_the_count",
}
# What is left of these leads nowhere; test_agent_rows.py looks for it.
NOT_MUTED_AGENTS = frozenset({"forget_told", "delete_told_retained"})

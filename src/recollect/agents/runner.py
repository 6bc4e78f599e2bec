"""Runs the turns of a claimed agent: takes them from its inbox one by one, until it rests.

Owns P3 and P5 for agents. The message is stored before anything that can fail, the answer with the
end of the turn, and both only while the claim is held. What a failing turn leaves is a turn that is
tried again, or is parked and makes room for the next.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from recollect.agents.reply import Reply, stored_reply
from recollect.errors import (
    CallCancelled,
    DocumentExists,
    DocumentReferenced,
    Gone,
    ModelUnavailable,
    NotFound,
    PermanentFailure,
    Postponed,
    RecollectError,
    StaleVersion,
    StoreError,
    TurnFailed,
)
from recollect.leases import Leaseholder
from recollect.observing import log_text
from recollect.processing import WorkReport
from recollect.runtime import Runtime
from recollect.store.protocol import Store
from recollect.types import agents as agency
from recollect.types.agents import (
    DocumentChanges,
    Item,
    ItemKind,
    ItemState,
    MoreWork,
    NoTurn,
    Signal,
    Turn,
)
from recollect.types.pages import Filing
from recollect.types.records import (
    Claim,
    JobKind,
    KeyRef,
    MarkCause,
    NewRecord,
    Parked,
    Record,
    StaleClaim,
)

ANSWER_KEY = "answer:"  # and the id of the turn: the append key of its answer

_log = logging.getLogger(__name__)


class LostClaimError(Exception):
    """Another process runs the agent by now; the turn in progress here is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One turn of one agent, and how what happens in it is kept."""

    ref: KeyRef
    claim: Claim
    turn: Turn
    keep: Callable[[Sequence[NewRecord]], Sequence[Record]]
    is_lost: Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The result of a turn: the records that end it, and what changes with them."""

    records: tuple[NewRecord, ...] = ()
    documents: DocumentChanges | Filing | None = None
    told: object = None  # what the callers that wait for the turn are given


class Doer(Protocol):
    """Runs the turns of one kind of agent."""

    def prepare(self, ref: KeyRef, claim: Claim, is_lost: Callable[[], bool]) -> None:
        """What is to be done after a turn and before the next, as compaction is."""
        ...

    def do(self, errand: Errand) -> Done: ...

    def stored(self, errand: Errand, done: Done) -> None:
        """Told when the turn is stored, with everything that came of it."""
        ...

    def failed(self, errand: Errand, error: Exception, *, is_parked: bool) -> None: ...

    def unstored(self, errand: Errand, done: Done, error: StoreError) -> None:
        """Told when what came of a turn could not be stored; who waits is given it anyway."""
        ...


# What a turn leaves behind in a conversation, as it may be stored.
Admit = Callable[[KeyRef, Sequence[NewRecord]], Sequence[NewRecord]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs claimed agents with one doer."""

    runtime: Runtime
    store: Store
    doer: Doer
    admit: Admit = lambda _ref, records: records
    redo_max: int = 0  # times a turn is done again because others have changed its documents

    def run(self, claim: Claim, holder: Leaseholder, lost: threading.Event) -> WorkReport:
        """All that waits in the inbox of a claimed agent."""
        ref = self.store.agents.ref(claim)
        if ref is None:
            raise PermanentFailure(f"there is no agent {claim.key}")
        report = WorkReport()
        try:
            while True:
                taken = self._take(claim, lost)
                if isinstance(taken, NoTurn):
                    if self._rest(claim):
                        return report
                    continue
                if not self._through(
                    Errand(
                        ref=ref,
                        claim=claim,
                        turn=taken,
                        keep=lambda records: self._kept(claim, self.admit(ref, records), lost),
                        is_lost=lost.is_set,
                    ),
                    holder,
                ):
                    report.failed += 1
                    return report
                report.turns += 1
                self.doer.prepare(ref, claim, lost.is_set)
        except LostClaimError:
            _log.info("agent %s: somebody else runs it now", ref.agent_id)
            return report.add(WorkReport(stale=1))

    def _take(self, claim: Claim, lost: threading.Event) -> Turn | NoTurn:
        policy = self.runtime.settings.mark_policy
        taken = self.store.agents.take(claim, policy, self.runtime.now(), self.runtime.ids.new)
        if isinstance(taken, StaleClaim) or lost.is_set():
            raise LostClaimError
        return taken

    def _through(self, errand: Errand, holder: Leaseholder) -> bool:
        """One turn, from its message to its end; whether it got there."""
        turn = errand.turn
        if turn.kind is ItemKind.RESET:
            self._reset(errand)
            return True
        try:
            self._do(errand)
        except (StoreError, Postponed, ModelUnavailable) as error:
            # Not the turn's fault: the job waits, and the turn goes on from here.
            self.doer.failed(errand, error, is_parked=False)
            raise
        except CallCancelled as error:
            raise LostClaimError from error
        except LostClaimError:
            raise
        except Exception as error:  # a turn's own failure is kept from the turns after it
            self._failed(errand, error, holder)
            return False
        return True

    def _do(self, errand: Errand) -> None:
        """Run a turn and store its result; repeat it where documents have changed meanwhile."""
        for tries_left in range(self.redo_max, -1, -1):
            try:
                done = Done() if _is_answered(errand.turn) else self.doer.do(errand)
                self._store(errand, done)
            except (StaleVersion, DocumentExists, DocumentReferenced, NotFound):
                if not tries_left:
                    raise
                continue
            self.doer.stored(errand, done)
            return

    def _reset(self, errand: Errand) -> None:
        rotated = self.store.agents.rotate(
            errand.claim,
            MarkCause.RESET,
            self.runtime.now(),
            self.runtime.ids.new,
            turn=errand.turn,
        )
        if isinstance(rotated, StaleClaim):
            raise LostClaimError
        self.doer.stored(errand, Done())

    def _store(self, errand: Errand, done: Done) -> None:
        try:
            stored = self.store.agents.finish(
                errand.claim,
                errand.turn,
                self.admit(errand.ref, done.records),
                self.runtime.settings.mark_policy,
                self.runtime.now(),
                self.runtime.ids.new,
                done.documents,
            )
        except StoreError as error:
            if done.records:
                self.doer.unstored(errand, done, error)
            raise
        if isinstance(stored, StaleClaim):
            raise LostClaimError

    def _kept(
        self, claim: Claim, records: Sequence[NewRecord], lost: threading.Event
    ) -> Sequence[Record]:
        now, policy = self.runtime.now(), self.runtime.settings.mark_policy
        kept = self.store.agents.step(claim, records, policy, now, self.runtime.ids.new)
        if isinstance(kept, StaleClaim) or lost.is_set():
            raise LostClaimError
        return kept

    def _failed(self, errand: Errand, error: Exception, holder: Leaseholder) -> None:
        told = self.runtime.redacted(f"{type(error).__name__}: {error}")
        shown = (log_text.loggable if isinstance(error, RecollectError) else log_text.trail)(error)
        _log.warning("agent %s: a turn failed: %s", errand.ref.agent_id, shown)
        is_final = isinstance(error, PermanentFailure)
        outcome = self.store.agents.fail(
            errand.claim,
            errand.turn.id,
            told,
            holder.backoff_seconds(errand.turn.items[0].attempts + 1),
            holder.policy,
            holder.lease_time(),
            is_final=is_final,
        )
        attempts = errand.turn.items[0].attempts + 1
        is_parked = is_final or attempts >= holder.policy.failures_max
        if isinstance(outcome, Parked):  # nothing else waits: it may fall asleep
            now = self.runtime.now()
            self.store.agents.set_signal(errand.ref, self._idle(now), errand.claim.kind, now)
        if not isinstance(outcome, StaleClaim):
            self.doer.failed(errand, error, is_parked=is_parked)

    def _rest(self, claim: Claim) -> bool:
        """Let the agent rest until somebody speaks to it; false: somebody has."""
        now = self.runtime.now()
        rested = self.store.agents.release(claim, [self._idle(now)], now)
        if isinstance(rested, StaleClaim):
            raise LostClaimError
        if self.runtime.settings.agent_idle_seconds < self.runtime.settings.signals_every_seconds:
            self.store.leases.make_due(JobKind.SIGNALS)  # it is to be looked at before that
        return not isinstance(rested, MoreWork)

    def _idle(self, now: datetime) -> Signal:
        asleep_at = now + timedelta(seconds=self.runtime.settings.agent_idle_seconds)
        return Signal(name=agency.IDLE, due_at=asleep_at)


def _is_answered(turn: Turn) -> bool:
    """Whether the answer is stored already, and only the end of the turn is missing."""
    return any(record.key == ANSWER_KEY + turn.id for record in turn.records)


def outcome_of(store: Store, ref: KeyRef, item: Item | None) -> Reply | RecollectError | None:
    """The answer, or why there will be none; none: nothing yet."""
    if item is None:
        return TurnFailed("the agent was ended, or its answer is too long ago")
    match item.state:
        case ItemState.QUEUED | ItemState.TAKEN:
            return None
        case ItemState.PARKED:
            return TurnFailed(item.last_error or "parked")
        case ItemState.DONE:
            turn_id = item.turn_id or item.id
            answer = store.agents.find_record(ref, ANSWER_KEY + turn_id)
            if answer is None and item.kind is ItemKind.USER_MESSAGE:  # which is always answered
                return Gone("the message was answered, and the answer was deleted or forgotten")
            return stored_reply(answer, turn_id)

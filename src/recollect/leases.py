"""Claims for workers: the policy from the settings, backoff with full jitter, one owner.

Knows nothing of models, nor of what a job is about.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime

from recollect.clock import Clock, SystemClock
from recollect.ids import SYSTEM_RANDOMNESS, Ids, Randomness
from recollect.store.protocol import Store
from recollect.types.agents import HandOver
from recollect.types.facts import Learned, Staged
from recollect.types.records import (
    BackedOff,
    Behind,
    CapReached,
    Claim,
    Deferred,
    LeasePolicy,
    LoadedWork,
    NothingDue,
    Outcome,
    Overtaken,
    Parked,
    Pause,
    Recorded,
    Released,
    Renewed,
    StaleClaim,
)


class Leaseholder:
    """One worker's view of the jobs: claim, renew, record, fail, release."""

    def __init__(
        self,
        store: Store,
        policy: LeasePolicy,
        clock: Clock,
        *,
        owner: str | None = None,
        randomness: Randomness = SYSTEM_RANDOMNESS,
        lane: str | None = "",
        role: str = "",
    ) -> None:
        self._leases = store.leases
        self._lane = lane  # empty: what any worker can run; none: what somebody has to host
        self._clock = clock
        self._randomness = randomness
        self._ids = Ids(clock)
        self.policy = policy
        self.owner = owner or f"{role}{os.uname().nodename}:{os.getpid()}:{self._ids.new()[-6:]}"

    def claim(self) -> Claim | NothingDue | CapReached:
        return self._leases.claim(
            self.owner, self.policy, self.lease_time(), self._lane, self._randomness
        )

    def claim_consolidation(
        self, space: str, *, takes_over: bool = False, spared: str = ""
    ) -> Claim | None:
        """The job of a space, whatever it waits for; none: somebody is at it, or it is paused.

        Who takes over minds neither, but for those whose role is `spared`.
        """
        claim = self._leases.claim_consolidation(
            self.owner, space, self.policy, self.lease_time(), takes_over=takes_over, spared=spared
        )
        return None if claim is None else replace(claim, is_by_hand=not takes_over)

    def renew(self, claim: Claim) -> Renewed | StaleClaim:
        return self._leases.renew(claim, self.policy, self.lease_time())

    def load(self, claim: Claim, after: int | None, limit: int) -> LoadedWork | None:
        return self._leases.load(claim, after, limit)

    def record(
        self,
        claim: Claim,
        upto: int,
        outcome: Outcome,
        reason: str | None = None,
        learned: Learned | None = None,
        handed: HandOver | None = None,
    ) -> Recorded | Overtaken | StaleClaim:
        now, new_id = self._clock.now(), self._ids.new
        return self._leases.record(claim, upto, outcome, reason, now, learned, new_id, handed)

    def record_pass(
        self, claim: Claim, upto: int, learned: Learned | None, handed: HandOver | None = None
    ) -> Recorded | Behind | StaleClaim:
        now, new_id = self._clock.now(), self._ids.new
        return self._leases.record_pass(claim, upto, learned, now, new_id, handed)

    def stage(self, claim: Claim, staged: Staged) -> Recorded | StaleClaim:
        return self._leases.stage(claim, staged)

    def defer(self, claim: Claim, reason: str, delay_seconds: float) -> Deferred | StaleClaim:
        return self._leases.defer(claim, reason, delay_seconds, self.lease_time())

    def fail(
        self, claim: Claim, error: str, *, is_final: bool = False
    ) -> BackedOff | Parked | StaleClaim:
        delay = self.backoff_seconds(claim.attempt)
        return self._leases.fail(
            claim, error, delay, self.policy, self.lease_time(), is_final=is_final
        )

    def await_pause(self, claim: Claim, pause: Pause) -> Deferred | StaleClaim | None:
        """Give a session that is going on back until it pauses; None: it is its time.

        What was tried before has waited already.
        """
        if claim.attempt > 1 or claim.pauses or not pause.seconds:
            return None
        return self._leases.await_pause(claim, pause, self.lease_time())

    def release(self, claim: Claim) -> Released | StaleClaim:
        return self._leases.release(claim)

    def finish_recurring(self, claim: Claim, delay_seconds: float) -> Released | StaleClaim:
        return self._leases.finish_recurring(claim, delay_seconds, self.lease_time())

    def backoff_seconds(self, attempt: int) -> float:
        """Somewhere between nothing and a bound that doubles: full jitter keeps a crowd apart."""
        doublings = min(attempt - 1, 32)
        bound = min(self.policy.backoff_seconds * 2**doublings, self.policy.backoff_seconds_max)
        return self._randomness.uniform(0, bound)

    def pause_seconds(self, claim: Claim, first_seconds: float) -> float:
        """How long to put off what is not the job's fault: longer each time, never without end."""
        doublings = min(claim.pauses, 32)
        bound = min(first_seconds * 2**doublings, self.policy.backoff_seconds_max)
        return self._randomness.uniform(bound / 2, bound)

    def lease_time(self) -> datetime | None:
        """None: the database's clock, which all workers share; an injected clock goes before it."""
        return None if isinstance(self._clock, SystemClock) else self._clock.now()

"""What a store does for those who work: jobs under leases; one aggregate of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from recollect.ids import SYSTEM_RANDOMNESS, Randomness

if TYPE_CHECKING:
    from recollect.types.agents import HandOver
    from recollect.types.facts import Learned, Staged
    from recollect.types.records import (
        BackedOff,
        Behind,
        CapReached,
        Claim,
        Deferred,
        Job,
        JobKind,
        JobState,
        LeasePolicy,
        LoadedWork,
        NothingDue,
        Outcome,
        Overtaken,
        Parked,
        Recorded,
        Released,
        Renewed,
        StaleClaim,
    )

NewId = Callable[[], str]


class Leases(Protocol):
    """Jobs, claimed under leases with fencing tokens.

    `now=None` is the database's own clock, the one that all workers share.
    """

    def claim(
        self,
        owner: str,
        policy: LeasePolicy,
        now: datetime | None,
        lane: str | None = "",
        randomness: Randomness = SYSTEM_RANDOMNESS,
    ) -> Claim | NothingDue | CapReached:
        """Take over the job whose lease ran out first, else the next one that is due.

        Of those any worker can run; or of one agent that somebody hosts, or of all such (None).
        Spaces take turns, in any order; within a space it is the one that has been due longest of
        those that nobody else is taking.
        """
        ...

    def claim_consolidation(
        self,
        owner: str,
        space: str,
        policy: LeasePolicy,
        now: datetime | None,
        *,
        takes_over: bool = False,
        spared: str = "",
    ) -> Claim | None:
        """Take the job that consolidates a space, whatever it waits for.

        None: somebody holds it, or the space is paused. Who takes over minds neither: whoever was
        at it is stale, but for owners whose names begin with what is `spared`.
        """
        ...

    def renew(
        self, claim: Claim, policy: LeasePolicy, now: datetime | None
    ) -> Renewed | StaleClaim: ...

    def load(self, claim: Claim, after: int | None, limit: int) -> LoadedWork | None:
        """A piece of the claimed session, with what it came to so far; none: it is gone.

        The records above the cursor that the claim covers, `limit` at most; or, of a run that goes
        through all of it, those above `after`, without the ones that were skipped before. With them
        come a few of those before, how far such a run has got, and whether records are gone that
        something was learned from: what they came to stays.
        """
        ...

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
        """Store what became of the records up to `upto`, with the cursor, fenced by the token.

        Extraction, facts, cursor, the news for consolidation and what is handed over to the
        memory-agent go together. Below `read_upto` it
        is a piece of a longer job, which stays claimed; at `read_upto` it is the last one: the mark
        is cleared, or the job is due again if the mark has moved on. Overtaken: it was learned in
        another pass than the session's.
        """
        ...

    def record_pass(
        self,
        claim: Claim,
        upto: int,
        learned: Learned | None,
        now: datetime,
        new_id: NewId,
        handed: HandOver | None = None,
    ) -> Recorded | Behind | StaleClaim:
        """Replace what was learned from a session by a new pass over all of it, fenced.

        None: there is nothing left to go through, and what was learned stays. Behind: the session
        has been processed beyond `upto` meanwhile, and nothing was stored. From one that may not be
        remembered any more, or was forgotten, nothing is stored either, and the pass is done.
        """
        ...

    def stage(self, claim: Claim, staged: Staged) -> Recorded | StaleClaim:
        """Keep how far a run through a whole session has got, fenced; nobody else sees it."""
        ...

    def defer(
        self, claim: Claim, reason: str, delay_seconds: float, now: datetime | None
    ) -> Deferred | StaleClaim:
        """Let a job wait without counting anything against it."""
        ...

    def fail(
        self,
        claim: Claim,
        error: str,
        delay_seconds: float,
        policy: LeasePolicy,
        now: datetime | None,
        *,
        is_final: bool = False,
    ) -> BackedOff | Parked | StaleClaim:
        """Count a failure. `is_final`: trying again would not help, park it at once."""
        ...

    def release(self, claim: Claim) -> Released | StaleClaim:
        """Give a job back unharmed."""
        ...

    def ensure_recurring(self, kind: JobKind, now: datetime | None) -> None:
        """Make sure the store has its one job of a kind that comes round again."""
        ...

    def make_due(self, kind: JobKind) -> None:
        """Let a recurring job come round at once, unless it is being worked on."""
        ...

    def finish_recurring(
        self, claim: Claim, delay_seconds: float, now: datetime | None
    ) -> Released | StaleClaim:
        """Done for this time; due again after the delay."""
        ...

    def revive(self, space: str | None, key: str | None) -> int:
        """Give parked jobs another chance: one, those of a space, or all. How many it were."""
        ...

    def jobs(self, space: str | None, limit: int) -> list[Job]:
        """What is due, claimed or parked, first due first."""
        ...

    def get(self, space: str | None, kind: JobKind, key: str) -> Job | None: ...

    def counts(self, space: str | None) -> dict[JobState, int]: ...

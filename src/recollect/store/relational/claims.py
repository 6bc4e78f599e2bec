"""Whose job is claimed next: spaces looked for without locks, then a compare-and-swap in one.

Owns that spaces take turns, that within a space what was marked first is claimed first (M4), and
the caps: that of a space is exact, that of the store may be passed by as many as claim at the same
moment. Nothing here locks more than one job, and the row of its space where that has a cap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain

from recollect.clock import from_micros, to_micros
from recollect.crashpoints import reach
from recollect.errors import SchemaTooNew
from recollect.ids import Randomness
from recollect.store.relational.database import Asked, Connection, Database, Params, Row
from recollect.types.records import CapReached, Claim, JobKind, LeasePolicy, NothingDue

SPACES_MAX = 16  # whose turn may be next, looked for at once; without turns: jobs
EXPIRED_MAX = 16  # leases that ran out, looked at in one claim
_EXHAUSTED = "its workers died {} times without recording anything"


class _SpaceIsFullError(Exception):
    """As many jobs of a space run as may: what was claimed is undone."""


@dataclass(frozen=True, slots=True)
class _Expired:
    """A job whose lease had run out when it was looked at."""

    space: str
    id: int
    takeovers: int


class Turns:
    """Claims for the workers of a process, and knows from which space on it is whose turn."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._since = ""  # a name, or what comes right after one

    def claim(
        self,
        owner: str,
        policy: LeasePolicy,
        now: datetime | None,
        lane: str | None,
        randomness: Randomness,
    ) -> Claim | NothingDue | CapReached:
        which = _which(policy, now, lane)
        since = self._since  # read once: another thread of this process may move it meanwhile
        counted, expired, due = self._database.ask(
            None,
            [
                ("count_running", which),
                ("expired_claims", {**which, "limit": EXPIRED_MAX}),
                self._next(which, policy, since),
            ],
        )
        [(at, running)] = counted
        lease = {**which, "now": at, "owner": owner, "lease_micros": micros(policy.lease_seconds)}
        over = self._without_exhausted([_Expired(*row) for row in expired], lease)
        if running >= policy.running_max:
            return CapReached(running)
        is_full = False
        spaces = self._turns(which, since, due, policy, randomness)
        asked: Iterator[Asked] = chain(
            (("hold_expired", {**lease, "space": each.space, "id": each.id}) for each in over),
            (("hold_first_due", {**lease, "space": space}) for space in spaces),
        )
        for name, names in asked:
            try:
                claim = self._take(name, names, policy)
            except _SpaceIsFullError:
                is_full = True
                continue
            if claim is not None:
                return claim
        if is_full:
            return CapReached(running)
        [[(moment,)]] = self._database.ask(None, [("next_due", which)])
        return NothingDue(None if moment is None else max(moment, 0) / 1_000_000)

    def _next(self, which: Params, policy: LeasePolicy, since: str) -> Asked:
        if not policy.takes_turns:
            return "space_of_first_due", {**which, "limit": SPACES_MAX}
        return "spaces_with_due", {**which, "since": since, "limit": SPACES_MAX}

    def _turns(
        self,
        which: Params,
        since: str,
        page: Sequence[Row],
        policy: LeasePolicy,
        randomness: Randomness,
    ) -> Iterator[str]:
        """One space after the other in which something is due, of some at a time in any order.

        In any order, so that those who claim at the same moment do not all come to the same.
        """
        if not policy.takes_turns:
            yield from (row[0] for row in page)
            return
        is_whole = not since
        while True:
            is_end = len(page) < SPACES_MAX
            for row in randomness.sample(page, len(page)) if len(page) > 1 else page:
                self._since = "" if is_end else _right_after(row[0])
                yield row[0]
            if is_end and is_whole:
                return
            since = "" if is_end else _right_after(page[-1][0])
            is_whole = is_whole or is_end
            [page] = self._database.ask(None, [self._next(which, policy, since)])

    def _without_exhausted(self, over: Sequence[_Expired], lease: Params) -> Sequence[_Expired]:
        """Park the jobs whose owners keep dying; the others may be taken over."""
        takeovers_max = lease["takeovers_max"]
        exhausted = [each for each in over if each.space and each.takeovers >= takeovers_max]
        error = _EXHAUSTED.format(takeovers_max)
        for each in exhausted:
            parked = partial(
                _park, names={**lease, "space": each.space, "id": each.id, "error": error}
            )
            self._database.write(each.space, parked)
        return [each for each in over if each not in exhausted]

    def _take(self, name: str, names: Params, policy: LeasePolicy) -> Claim | None:
        """Claim a job of a space, unless others hold all there are."""

        def job(c: Connection) -> Claim | None:
            if policy.space_running_max is not None:
                c.run("lock_claims_of_space", names)
            row = c.row(name, names)
            if row is None:
                return None
            claim = _swap(c, {**names, "id": row[0], "kind": row[1], "key": row[2]}, policy)
            reach("claim.claimed")
            return claim

        return self._database.write(names["space"], job)


def _right_after(space: str) -> str:
    """The least name that is greater: names are compared byte by byte, and no byte is zero."""
    return space + "\x01"


def _park(c: Connection, *, names: Params) -> None:
    c.run("park_exhausted", names)


def _swap(c: Connection, names: Params, policy: LeasePolicy) -> Claim | None:
    asked = [("claim_job", names), ("reach_of_claim", names)]
    cap = policy.space_running_max if names["space"] else None
    if cap is None:
        claimed, reached = c.rows_each(asked)
    else:
        counted = ("count_running_in_space", names)
        claimed, reached, [(running,)] = c.rows_each([*asked, counted])
        if claimed and running > cap:
            raise _SpaceIsFullError
    return claim_of(claimed[0], reached, names["owner"]) if claimed else None


def claim_of(row: Row, reached: Sequence[Row], owner: str) -> Claim:
    """What was claimed, and how far it reads: what there was when it was."""
    read_upto, claimed_mark = reached[0] if reached else (None, None)
    return Claim(
        job_id=row[0],
        kind=_kind(row[1]),
        space=row[2],
        key=row[3],
        owner=owner,
        token=row[4],
        attempt=row[5],
        expires_at=from_micros(row[6]),
        read_upto=read_upto or 0,
        claimed_mark=claimed_mark or 0,
        pauses=row[7],
    )


def _kind(name: str) -> JobKind:
    try:
        return JobKind(name)
    except ValueError:  # a schema that was migrated while we were at work
        raise SchemaTooNew(
            f"a job is of the kind {name!r}: a newer Recollect works on this store, and this one "
            "has to be upgraded. Nothing was changed, and newer workers go on"
        ) from None


def _which(policy: LeasePolicy, now: datetime | None, lane: str | None) -> dict[str, object]:
    """What may be claimed."""
    return {
        "now": None if now is None else to_micros(now),
        "any_lane": lane is None,
        "lane": lane or "",
        "any_space": policy.space is None,
        "only_space": policy.space or "",
        "consolidates": policy.consolidates,
        "patience_micros": micros(policy.patience_seconds),
        "takeovers_max": policy.takeovers_max,
    }


def micros(seconds: float) -> int:
    return round(seconds * 1_000_000)

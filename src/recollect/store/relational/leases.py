"""Leases on jobs: claims, renewals and outcomes, and the progress of runs through a session."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import chain

import msgspec

from recollect.clock import from_micros, to_micros
from recollect.crashpoints import reach
from recollect.errors import SchemaTooNew
from recollect.ids import SYSTEM_RANDOMNESS, NewId, Randomness
from recollect.store.relational import rows
from recollect.store.relational.agents import hand_over
from recollect.store.relational.database import (
    EVERY_SPACE,
    Aggregate,
    Asked,
    Connection,
    Database,
    Params,
    Row,
    in_each_space,
    moment,
    scope,
)
from recollect.store.relational.jobs import (
    begin_pass,
    has_lost_records,
    make_due,
    mark,
    mark_cleared,
    pass_over,
    record_range,
)
from recollect.store.relational.learning import Lesson, learn
from recollect.store.relational.rows import storable
from recollect.types.agents import HandOver
from recollect.types.facts import Draft, Learned, Staged
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
    MarkCause,
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

SPACES_MAX = 16  # whose turn may be next, looked for at once; without turns: jobs
START_MAX = 1024  # spaces among which a process begins anywhere
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
        "in_order": policy.in_order,
        "patience_micros": micros(policy.patience_seconds),
        "takeovers_max": policy.takeovers_max,
    }


def micros(seconds: float) -> int:
    return round(seconds * 1_000_000)


def put_staged(c: Connection, session: Params, staged: Staged) -> None:
    c.run(
        "stage_draft",
        {
            **session,
            "pass": staged.pass_number,
            "upto": staged.upto,
            "extractor": staged.extractor,
            # ASCII: what no database holds is escaped.
            "draft": json.dumps(msgspec.to_builtins(staged.draft)),
            "calls": staged.spent.calls,
            "input_tokens": staged.spent.input_tokens,
            "output_tokens": staged.spent.output_tokens,
            "cost_micros": staged.spent.cost_micros,
        },
    )


def get_staged(c: Connection, session: Params) -> Staged | None:
    row = c.row("get_staged", session)
    if row is None:
        return None
    return Staged(
        pass_number=row[0],
        upto=row[1],
        extractor=row[2],
        draft=msgspec.convert(json.loads(row[3]), Draft),
        spent=rows.spent(row[4:]),
    )


ERROR_CHARS_MAX = 2000
STORE = ""  # the space of the store's own work
BEFORE_RECORDS = 20  # of those already read, in which a call may stand whose result is to come


class Leases(Aggregate):
    """Jobs, claimed under leases with fencing tokens.

    `now=None` is the database's own clock, the one that all workers share.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._since: str | None = None  # a name, or what comes right after one; none: not begun

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

    def _next(self, which: Params, policy: LeasePolicy, since: str | None) -> Asked:
        if not policy.takes_turns:
            return "space_of_first_due", {**which, "limit": SPACES_MAX}
        limit = START_MAX if since is None else SPACES_MAX
        return "spaces_with_due", {**which, "since": since or "", "limit": limit}

    def _turns(
        self,
        which: Params,
        since: str | None,
        page: Sequence[Row],
        policy: LeasePolicy,
        randomness: Randomness,
    ) -> Iterator[str]:
        """One space after the other in which something is due, of some at a time in any order.

        In any order, so that those who claim at the same moment do not all come to the same; and
        from anywhere on, so that processes that were started together do not go on together.
        """
        if not policy.takes_turns:
            yield from (row[0] for row in page)
            return
        if since is None and len(page) > SPACES_MAX:
            start = randomness.randrange(len(page) - SPACES_MAX + 1)
            page = page[start : start + SPACES_MAX]
            since = page[0][0]
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
            if policy.space_running_max is not None or policy.in_order:
                c.run("lock_claims_of_space", names)
            row = c.row(name, names)
            if row is None:
                return None
            claim = _swap(c, {**names, "id": row[0], "kind": row[1], "key": row[2]}, policy)
            reach("claim.claimed")
            return claim

        return self._database.write(names["space"], job)

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
        """Claim the job that consolidates a space, whatever it waits for.

        None: another owner holds it, or the space is paused. With `takes_over` neither matters, and
        the holder becomes stale, unless its name begins with `spared`.
        """
        own = {"space": space, "kind": JobKind.CONSOLIDATE.value, "key": space}

        def job(c: Connection) -> Claim | None:
            c.run("lock_memory", own)
            if not takes_over and c.row("is_paused", own) is not None:
                return None
            at = moment(c, now)
            make_due(c, "request_consolidation", {**own, "now": at})
            lease = {"owner": owner, "lease_micros": micros(policy.lease_seconds), "now": at}
            sparing = {"takes_over": takes_over, "spared": f"{spared}%" if spared else ""}
            row = c.row("claim_consolidation", {**own, **lease, **sparing})
            return None if row is None else claim_of(row, c.rows("reach_of_claim", own), owner)

        return self._database.write(space, job)

    def renew(
        self, claim: Claim, policy: LeasePolicy, now: datetime | None
    ) -> Renewed | StaleClaim:
        def job(c: Connection) -> Row | None:
            span = {"lease_micros": micros(policy.lease_seconds), "now": moment(c, now)}
            return c.row("renew_claim", {**_token(claim), **span})

        row = self._database.write(claim.space, job)
        return StaleClaim() if row is None else Renewed(from_micros(row[0]))

    def load(self, claim: Claim, after: int | None, limit: int) -> LoadedWork | None:
        """A piece of the claimed session, with its extraction so far; None: it is gone.

        The records above the cursor that the claim covers, `limit` at most; or, of a run that goes
        through all of it, those above `after`, without the ones that were skipped before. With them
        come a few of those before, how far such a run has got, and whether records are gone that
        something was learned from: what they came to stays.
        """
        names = {"space": claim.space, "id": claim.key}

        def job(c: Connection) -> LoadedWork | None:
            row = c.row("load_session", names)
            if row is None:
                return None
            session, extraction = rows.loaded_session(row)
            if after is None:
                page = {**names, "after": session.processed_until or 0, "limit": limit}
                found = [rows.record(each) for each in c.rows("records_after", page)]
            else:
                page = {**names, "after": after, "limit": limit}
                found = [rows.record(each) for each in c.rows("learnable_after", page)]
            before = {**names, "before": page["after"], "limit": BEFORE_RECORDS}
            return LoadedWork(
                session=session,
                records=tuple(record for record in found if record.seq <= claim.read_upto),
                extraction=extraction,
                before=tuple(rows.record(each) for each in c.rows("records_before", before)[::-1])
                if page["after"]
                else (),
                staged=None if after is None else get_staged(c, names),
                has_lost_records=after is not None and has_lost_records(c, claim.space, claim.key),
            )

        return self._database.read(claim.space, job)

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
        """Store the outcome of the records up to `upto`, with the cursor, fenced by the token.

        Extraction, facts, cursor, the news for consolidation and what is handed over to the
        memory-agent go together. Below `read_upto` it
        is a piece of a longer job, which stays claimed; at `read_upto` it is the last one: the mark
        is cleared, or the job is due again if the mark has moved on. Overtaken: it was learned in
        another pass than the session's.
        """
        assert upto <= claim.read_upto, "a claim covers nothing beyond what it froze"
        is_last = upto == claim.read_upto
        at = to_micros(now)
        session = {"space": claim.space, "id": claim.key}

        def job(c: Connection) -> Recorded | Overtaken | StaleClaim:
            before = _lock(c, claim)
            is_nothing = learned is None and handed is None
            if before is None or (before[4] and not is_nothing):
                return StaleClaim()
            if learned is not None and learned.pass_number != before[2]:
                return Overtaken()
            assert upto >= (before[1] or 0), "a cursor never goes back"
            moved = c.row(
                "advance_cursor",
                {
                    "space": claim.space,
                    "session_id": claim.key,
                    "upto": upto,
                    "is_last": is_last,
                    "read_upto": claim.read_upto,
                    "claimed_mark": claim.claimed_mark,
                },
            )
            assert moved is not None
            if moved[0] is None:
                mark_cleared(c, session)
            reach("record.advanced")
            record_range(c, session, before[1], upto, outcome, reason, now, learned)
            marked = _go_on(c, session, moved[0], before, now) if is_last else moved[0]
            _hand(c, claim, handed, now, new_id)
            if learned is not None:
                assert new_id is not None
                learn(c, _lesson(claim, learned, now, new_id), learned, upto)
                if learned.is_whole:
                    c.run("drop_staged", session)
                reach("record.learned")
            c.run("note_progress", {**_token(claim), "is_last": is_last, "now": at})
            if is_last and marked is not None:  # more was said: to the back of the queue
                back = {**_token(claim), "due_at": None, "first_due_at": at}
                make_due(c, "give_back", back)
            reach("record.ranged")
            return Recorded(is_done=is_last and marked is None)

        return self._database.write(claim.space, job)

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
        session = {"space": claim.space, "id": claim.key}

        def job(c: Connection) -> Recorded | Behind | StaleClaim:
            before = _lock(c, claim)
            if before is None:
                return StaleClaim()
            if learned is not None and before[3] and not before[4]:
                if learned.pass_number != before[2] + 1:
                    return StaleClaim()
                if (before[1] or 0) > upto:
                    return Behind(before[1])
                begin_pass(c, claim.space, claim.key, upto, learned, now)
                _hand(c, claim, handed, now, new_id)
                learn(c, _lesson(claim, learned, now, new_id), learned, upto)
                reach("record.learned")
            c.run("drop_staged", session)
            c.row("finish_pass", {**_token(claim), "now": to_micros(now)})
            return Recorded(is_done=True)

        return self._database.write(claim.space, job)

    def stage(self, claim: Claim, staged: Staged) -> Recorded | StaleClaim:
        """Stage the progress of a run through a whole session, fenced; nothing else reads it."""
        session = {"space": claim.space, "id": claim.key}

        def job(c: Connection) -> Recorded | StaleClaim:
            before = _lock(c, claim)
            if before is None or before[4]:
                return StaleClaim()
            put_staged(c, session, staged)
            c.run("note_progress", {**_token(claim), "is_last": False, "now": None})
            return Recorded(is_done=False)

        return self._database.write(claim.space, job)

    def defer(
        self, claim: Claim, reason: str, delay_seconds: float, now: datetime | None
    ) -> Deferred | StaleClaim:
        """Defer a job without counting a failure."""
        wait = {
            **_token(claim),
            "error": storable(reason[:ERROR_CHARS_MAX]),
            "delay_micros": micros(delay_seconds),
        }
        row = self._changed(claim, "defer_claim", wait, now)
        return StaleClaim() if row is None else Deferred(from_micros(row[1]))

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
        """Count a failure. `is_final`: a retry would not help, so park the job at once."""
        failure = {
            **_token(claim),
            "is_final": is_final,
            "failures_max": policy.failures_max,
            "error": storable(error[:ERROR_CHARS_MAX]),
            "delay_micros": micros(delay_seconds),
        }
        row = self._changed(claim, "fail_claim", failure, now)
        if row is None:
            return StaleClaim()
        return Parked() if row[0] == JobState.PARKED else BackedOff(from_micros(row[1]))

    def await_pause(
        self, claim: Claim, pause: Pause, now: datetime | None
    ) -> Deferred | StaleClaim | None:
        """Give a session back that is going on and that nobody asked for; None: it is its time."""

        def job(c: Connection) -> Deferred | StaleClaim | None:
            if _lock(c, claim) is None:
                return StaleClaim()
            at = {"now": moment(c, now), "pause_micros": micros(pause.seconds)}
            session = {"space": claim.space, "id": claim.key}
            row = c.row("pause_ends", {**session, **at, "records": pause.records})
            if row is None:
                return None
            back = {**_token(claim), "due_at": row[0], "first_due_at": None}
            make_due(c, "give_back", back)
            return Deferred(from_micros(row[0]))

        return self._database.write(claim.space, job)

    def release(self, claim: Claim) -> Released | StaleClaim:
        """Give a job back without counting a failure."""
        back = {**_token(claim), "due_at": None, "first_due_at": None}
        row = self._changed(claim, "give_back", back, None)
        return StaleClaim() if row is None else Released()

    def ensure_recurring(self, kind: JobKind, now: datetime | None) -> None:
        """Create the store's one job of a recurring kind, if it is missing."""
        names = {"space": STORE, "kind": kind.value, "key": kind.value}

        def job(c: Connection) -> None:
            make_due(c, "ensure_recurring", {**names, "now": moment(c, now)})

        self._database.write(STORE, job)

    def make_due(self, kind: JobKind) -> None:
        """Make a recurring job due now, unless it is being worked on."""
        names = {"space": STORE, "kind": kind.value, "key": kind.value}
        self._database.write(STORE, lambda c: make_due(c, "make_due", names))

    def finish_recurring(
        self, claim: Claim, delay_seconds: float, now: datetime | None
    ) -> Released | StaleClaim:
        """Finish a run of a recurring job; it is due again after the delay."""
        again = {**_token(claim), "delay_micros": micros(delay_seconds)}
        row = self._changed(claim, "finish_recurring", again, now)
        return StaleClaim() if row is None else Released()

    def _changed(self, claim: Claim, name: str, params: Params, now: datetime | None) -> Row | None:
        """Let go of a claim by a statement; none if it is no longer one."""

        def job(c: Connection) -> list[Row]:
            return make_due(c, name, {**params, "now": moment(c, now)})

        found = self._database.write(claim.space, job)
        return found[0] if found else None

    def revive(self, space: str | None, key: str | None) -> int:
        """Make parked jobs due again: one, those of a space, or all; return their number."""
        which = {"any_key": key is None, "key": key or ""}

        def job(c: Connection, each: str) -> int:
            # Items that agents failed at wait in their inboxes while the agents went on with
            # others. All jobs are locked first: forgetting locks an agent's job before its items.
            own = {**which, "space": each}
            c.run("lock_stuck", own)
            revived = {row[1] for row in make_due(c, "revive_jobs", own)}
            again = sorted({row[0] for row in c.rows("revive_items", own)})
            agents = [{"key": str(key_id), "space": each} for key_id in again]
            revived |= {row[1] for row in make_due(c, "revive_agent", *agents)}
            return len(revived)

        return sum(in_each_space(self._database, space, EVERY_SPACE, job).values())

    def jobs(self, space: str | None, limit: int) -> list[Job]:
        """Jobs that are due, claimed or parked, first due first."""
        page = {**scope(space), "limit": limit}
        return self._page(rows.job, space, "list_jobs", page)

    def get(self, space: str | None, kind: JobKind, key: str) -> Job | None:
        names = {**scope(space), "kind": kind.value, "key": key}
        return self._one(rows.job, space, "get_job", names)

    def counts(self, space: str | None) -> dict[JobState, int]:
        found = self._rows(space, "count_jobs", scope(space))
        return {JobState(row[0]): int(row[1]) for row in found}

    def count_due(self, now: datetime | None = None) -> tuple[int, timedelta]:
        names = {"now": None if now is None else to_micros(now)}
        row = self._row(None, "count_due", names)
        assert row is not None, "it counts"
        return int(row[0]), timedelta(microseconds=int(row[1]))


def _hand(
    c: Connection, claim: Claim, handed: HandOver | None, now: datetime, new_id: NewId | None
) -> None:
    """Before the space's memory is locked: that comes after the agents in the order of locks."""
    if handed is not None:
        assert new_id is not None
        hand_over(c, claim.space, handed, now, new_id)
        reach("record.handed")


def _go_on(
    c: Connection, session: Params, marked: int | None, before: Row, now: datetime
) -> int | None:
    """Let what lies behind what is passed over be read next, as if it were all one; the mark."""
    passed = pass_over(c, session)
    if passed is None:
        return marked
    last_seq, _, _, is_remembered, _ = before
    if passed[1] is None and is_remembered and last_seq > passed[0]:
        mark(c, session, last_seq, MarkCause.REQUEST, now)
        return int(last_seq)
    return None if passed[1] is None else int(passed[1])


def _lock(c: Connection, claim: Claim) -> Row | None:
    """Hold the session of a claim and then its job; none if the claim is no longer one.

    Its last record, cursor and pass, whether it may be remembered, and whether it is forgotten.
    """
    session = {"space": claim.space, "id": claim.key}
    job = {**_token(claim), "key": claim.key}
    sessions, jobs = c.rows_each([("lock_session", session), ("lock_claim", job)])
    return sessions[0] if sessions and jobs else None


def _lesson(claim: Claim, learned: Learned, now: datetime, new_id: NewId) -> Lesson:
    return Lesson(
        space=claim.space,
        session_id=claim.key,
        extractor=learned.extractor,
        now=now,
        new_id=new_id,
        review=learned.review,
    )


def _token(claim: Claim) -> dict[str, object]:
    return {"space": claim.space, "id": claim.job_id, "token": claim.token}

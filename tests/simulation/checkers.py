"""The invariants, each checked after every call of the store, and the ledger they are checked by.

The ledger is a plain-Python account of what was committed: the records that were appended, and how
often each one took effect. Nothing here asks the code under test what it thinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import apsw

from recollect.clock import to_micros
from recollect.config import Settings
from recollect.messages import Role
from recollect.types.records import CapReached, Claim, NothingDue, Record, Recorded, StaleClaim
from tests.simulation import snapshot
from tests.simulation.snapshot import JobRow, SessionRow, Snapshot

FENCED: Final = frozenset({"renew", "record", "fail", "defer", "release", "finish_recurring"})
MARKING: Final = frozenset(
    {"append", "invalidate", "invalidate_current", "rotate", "end", "mark_idle"}
)
CLEARING: Final = frozenset({"record", "mark_processed", "purge", "set_mode"})

# Which call may take a job from one state to another.
MOVES: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    # What waited before a session was left out is due again when it is back.
    ("idle", "due"): MARKING | {"set_mode"},
    ("due", "claimed"): frozenset({"claim"}),
    ("claimed", "due"): FENCED - {"renew"},
    ("claimed", "parked"): frozenset({"fail", "claim"}),
    ("claimed", "idle"): CLEARING,
    ("due", "idle"): CLEARING - {"record"},
    ("parked", "idle"): CLEARING - {"record"},
    ("parked", "due"): MARKING | {"revive"},
}


class Violation(BaseException):
    """Something happened that must not. No supervisor under test catches it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the store that committed, and what it answered."""

    name: str
    args: tuple[Any, ...]
    result: Any
    is_current: bool  # of a fenced call: the claim was the current one


@dataclass(slots=True)
class Ledger:
    """What was committed, told from outside."""

    records: dict[str, dict[int, tuple[Role, str, str | None]]] = field(default_factory=dict)
    effects: dict[tuple[str, int], int] = field(default_factory=dict)
    read: dict[str, list[int]] = field(default_factory=dict)  # by owner: what its result is about
    claims: int = 0
    frozen: dict[tuple[int, int], int] = field(default_factory=dict)  # by job and token
    seen: Counter[str] = field(default_factory=Counter)  # what became of calls, by kind

    def append(self, stored: list[Record]) -> None:
        for record in stored:
            known = self.records.setdefault(record.session_id, {})
            entry = (record.role, record.content, record.key)
            if known.setdefault(record.seq, entry) != entry:
                raise Violation(f"seq {record.seq} of {record.session_id} is used twice")

    def turns_above(self, session_id: str, seq: int) -> int:
        known = self.records.get(session_id, {})
        return sum(role is Role.USER for number, (role, _, _) in known.items() if number > seq)

    def within(self, session_id: str, first: int, last: int) -> list[int]:
        known = self.records.get(session_id, {})
        return [number for number in range(first, last + 1) if number in known]


class Checker:
    """Holds the last snapshot, and every call against the next one."""

    def __init__(self, connection: apsw.Connection, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings
        self._changes = -1
        self.ledger = Ledger()
        self.last = snapshot.EMPTY

    def is_current(self, claim: Claim) -> bool:
        job = self.last.jobs.get(claim.job_id)
        return job is not None and job.state == "claimed" and job.token == claim.token

    def image(self) -> bytes:
        """The whole database, as a file would hold it."""
        return self._connection.serialize("main")

    def dump(self) -> dict[str, list[tuple[object, ...]]]:
        return snapshot.dump(self._connection)

    def look(self) -> Snapshot:
        """Take the next snapshot; the same one if no row was written since."""
        changes = self._connection.total_changes()
        if changes != self._changes:
            self._changes = changes
            self.last = snapshot.read(self._connection)
        return self.last

    def after(self, call: Call) -> None:
        before, after = self.last, self.look()
        if call.name == "append":
            self.ledger.append(call.result)
        if call.name == "purge":
            self._forget(call, before)
        self._check_answer(call, before, after)
        if before is not after:
            self._check_rows(call, before, after)

    def _check_rows(self, call: Call, before: Snapshot, after: Snapshot) -> None:
        for session in after.sessions.values():
            old = before.sessions.get(session.id)
            if session != old:
                self._check_session(call, old, session)
                _check_mark_and_job(session, after)
                if old is not None and call.name in MARKING and old.mark != session.mark:
                    state = after.job_of[session.id].state
                    _expect(state != "parked", "new activity gave a parked job no other chance")
        for job in after.jobs.values():
            old_job = before.jobs.get(job.id)
            if job != old_job:
                _check_job(call, old_job, job)
                if old_job is not None and old_job.state != job.state:
                    self.ledger.seen[f"{old_job.state} to {job.state} by {call.name}"] += 1
                if job.kind == "extract":
                    _check_mark_and_job(after.sessions[job.key], after)
        _expect(before.sessions.keys() <= after.sessions.keys(), "a session vanished")
        _expect(before.jobs.keys() <= after.jobs.keys(), "a job vanished: its row is permanent")
        claimed = sum(job.state == "claimed" for job in after.jobs.values())
        _expect(claimed <= self._settings.worker_running_max, "more jobs are claimed than may run")

    # what the store answered

    def _check_answer(self, call: Call, before: Snapshot, after: Snapshot) -> None:
        if call.name in FENCED:
            is_stale = isinstance(call.result, StaleClaim)
            _expect(
                is_stale or call.is_current, "invariant 4, P5: a claim that was lost did something"
            )
            _expect(not (is_stale and call.is_current), "the current claim was called stale")
            if is_stale:
                self.ledger.seen[f"a stale {call.name}"] += 1
        if call.name == "mark_processed":
            _, session_id, _, expected, _ = call.args
            is_equal = before.sessions[session_id].mark == expected
            _expect(call.result == is_equal, "M7: swapped without comparing, or the other way")
        match call.result:
            case Claim():
                self._check_claim(call.result, to_micros(call.args[2]), before, after)
            case NothingDue():
                left = _claimable(after, to_micros(call.args[2]))
                _expect(not left, f"P4, P8: nothing due, it says, but there is {left}")
            case CapReached():
                self.ledger.seen["the cap"] += 1
                now = to_micros(call.args[2])
                _expect(
                    _live(after, now) >= self._settings.worker_running_max, "the cap is not reached"
                )
            case Recorded():
                self._check_effects(call, before, after)
            case _:
                pass

    def _check_claim(self, claim: Claim, now: int, before: Snapshot, after: Snapshot) -> None:
        self.ledger.claims += 1
        old, job = before.jobs[claim.job_id], after.jobs[claim.job_id]
        self.ledger.seen["a takeover"] += old.state == "claimed"
        is_live = old.state == "claimed" and (old.expires_at or 0) > now
        _expect(not is_live, "invariant 4: a live claim was taken away")
        _expect(claim.token == job.token > old.token, "the token of a new claim is not higher")
        chosen = _claimable(before, now, self._settings.job_takeovers_max)
        of_space = [each for each in chosen if each.space == old.space]
        firsts = chosen if old.state == "claimed" else of_space
        is_its_turn = bool(firsts) and _turn(firsts[0]) == _turn(old)
        _expect(is_its_turn, "M4, M11: not the one whose turn it is", firsts[:2], old)
        is_left = old.state == "due" and chosen[0].state == "claimed"
        _expect(not is_left, "M11: a lease that ran out waits", chosen[:2], old)
        self.ledger.frozen[claim.job_id, claim.token] = claim.read_upto
        _expect(
            _live(before, now) < self._settings.worker_running_max, "claimed although the cap is on"
        )
        _expect(claim.attempt == job.failures + job.takeovers + 1, "the attempts are miscounted")
        lease = round(self._settings.lease_seconds * 1_000_000)
        _expect(to_micros(claim.expires_at) == now + lease, "the lease has another length")
        if claim.kind == "extract":
            session = after.sessions[claim.key]
            frozen = (claim.read_upto, claim.claimed_mark)
            end = self._learnable_end(session)
            meant = (end, None if session.mark is None else min(session.mark, end))
            _expect(frozen == meant, "the claim froze something else", frozen, meant)

    def _check_effects(self, call: Call, before: Snapshot, after: Snapshot) -> None:
        """P3: a result covers the records that were read for it, and no record has two."""
        claim, upto = call.args[0], call.args[1]
        old, session = before.sessions[claim.key], after.sessions[claim.key]
        frozen = self.ledger.frozen[claim.job_id, claim.token]
        ranges = snapshot.ranges_of(self._connection, session.id)
        passed = {outcome for first, last, outcome in ranges if upto < last <= session.done}
        is_there = session.done == upto or (session.done > upto and passed == {"skipped"})
        _expect(is_there, "the cursor is not where the result ends")
        _expect(upto <= frozen, "M10: the cursor went past what was frozen", upto, frozen)
        covered = self.ledger.within(claim.key, old.done + 1, upto)
        read = self.ledger.read.get(claim.owner)
        _expect(covered == read, "P3: the range is not what was read", covered, read)
        for seq in covered:
            effect = (claim.key, seq)
            self.ledger.effects[effect] = self.ledger.effects.get(effect, 0) + 1
            _expect(self.ledger.effects[effect] == 1, "P3: an effect was stored twice", effect)
        if upto != frozen:
            self.ledger.seen["a piece"] += 1
        elif not call.result.is_done:
            self.ledger.seen["more was said meanwhile"] += 1

    # what the rows say

    def _check_session(self, call: Call, old: SessionRow | None, new: SessionRow) -> None:
        _expect(new.done <= new.last_seq, "invariant 2: the cursor is beyond the last record")
        if new.mark is not None:
            _expect(new.done < new.mark, "invariant 2: the mark is not above the cursor")
            _expect(bool(new.remembered), "a session that may not be remembered is marked")
            _expect(new.mark <= new.last_seq, "P2: there is work, and its records do not exist")
        turns = self.ledger.turns_above(new.id, new.done)
        _expect(new.turns == turns, "the turns are miscounted", new.turns, turns)
        if old is None:
            _expect((new.done == 0 and new.mark is None) or call.name == "append", "not born empty")
            old = new._replace(cursor=None, mark=None, marked_at=None, marked_by=None, last_seq=0)
        _expect(old.last_seq <= new.last_seq, "invariant 2: last_seq went back")
        _expect(old.done <= new.done, "invariant 2: the cursor went back")
        self._check_mark(call, old, new)
        if old.done != new.done:
            _expect(call.name in CLEARING, f"{call.name} moved the cursor")
            self._check_ranges(call, old, new)

    def _check_mark(self, call: Call, old: SessionRow, new: SessionRow) -> None:
        if old.mark is not None and new.mark is not None:
            _expect(old.mark <= new.mark, "invariant 2: a mark was lowered")
            first = (old.marked_at, old.marked_by)
            is_kept = first == (new.marked_at, new.marked_by)
            # What lies behind what was passed over is asked for anew.
            goes_on = call.name == "record" and new.done > call.args[1]
            _expect(is_kept or goes_on, "the first cause was not kept")
        if old.mark is None and new.mark is not None:
            _expect(call.name in MARKING | {"set_mode"}, f"{call.name} set a mark")
        if old.mark is not None and new.mark is None:
            _expect(call.name in CLEARING, f"{call.name} cleared a mark")
            if call.name == "record":
                _expect(
                    call.args[1] == call.args[0].read_upto, "a piece cleared the mark, not the end"
                )
                _expect(
                    old.mark == call.args[0].claimed_mark or old.mark <= new.done,
                    "M10: a mark that had moved on was cleared",
                )
        if call.name == "append" and old.last_seq != new.last_seq:
            policy = self._settings.mark_policy
            waiting = new.turns - 1 if policy.unit == "turns" else new.last_seq - new.done
            is_over = bool(new.remembered) and waiting > policy.threshold
            wanted = new.last_seq if is_over else old.mark
            _expect(new.mark == wanted, "P2: the records came without their mark", wanted, new)
        if old.ended_at is None and new.ended_at is not None and new.remembered:
            unprocessed = new.last_seq > new.done
            _expect(not unprocessed or new.mark == new.last_seq, "ended, and not marked to the end")

    def _check_ranges(self, call: Call, old: SessionRow, new: SessionRow) -> None:
        found = snapshot.ranges_of(self._connection, new.id)
        below = [each for each in found if each[0] <= new.done]
        at = 0
        for first, last, _ in below:
            _expect(first == at + 1 <= last, "invariant 3: a gap or an overlap in", found)
            at = last
        _expect(at == new.done, "invariant 3: the ranges end elsewhere than the cursor", found)
        for first, last, outcome in found[len(below) :]:
            is_ahead = at + 1 < first <= last and outcome == "skipped"
            _expect(is_ahead, "invariant 3: only what was skipped lies ahead", found)
            at = last
        self._check_written(call, [each for each in below if each[0] > old.done])

    def _check_written(self, call: Call, written: list[tuple[int, int, str]]) -> None:
        """What became of the records that the cursor went over; some had been skipped before."""
        if call.name == "record":
            first, *others = written
            is_right = first[1:] == (call.args[1], call.args[2].value)
            is_right = is_right and {outcome for *_, outcome in others} <= {"skipped"}
        else:
            outcome = "external" if call.name == "mark_processed" else "skipped"
            is_right = outcome in {each[2] for each in written} <= {outcome, "skipped"}
        _expect(is_right, "invariant 3: another range was written", written)

    def _learnable_end(self, session: SessionRow) -> int:
        """The last record before the next that nothing is to be learned from."""
        ranges = snapshot.ranges_of(self._connection, session.id)
        return min(
            (first - 1 for first, *_ in ranges if first > session.done), default=session.last_seq
        )

    def _forget(self, call: Call, before: Snapshot) -> None:
        current = self._connection.execute(
            "SELECT session_id FROM session_keys WHERE id = ?", (call.args[0].key_id,)
        ).get
        self.ledger.records.get(current, {}).clear()

    # the end

    def check_history(self) -> None:
        """P1 without crashes: what was committed is there, once, and nothing else."""
        rows = self._connection.execute(
            "SELECT session_id, seq, role, content, append_key FROM session_history ORDER BY id",
            can_cache=False,
        )
        found: dict[str, dict[int, tuple[Role, str, str | None]]] = {}
        for session_id, seq, role, content, key in rows:
            found.setdefault(session_id, {})[seq] = (Role(role), content, key)
        wanted = {session: records for session, records in self.ledger.records.items() if records}
        _expect(found == wanted, "the history is not what was appended")

    def check_drained(self, *, are_parked_excused: bool) -> None:
        """P3, P8: every record is in exactly one range, unless its job is parked."""
        for session in self.last.sessions.values():
            if not session.remembered:
                continue
            job = self.last.job_of.get(session.id)
            if job is not None and job.state == "parked" and are_parked_excused:
                continue
            _expect(session.done == session.last_seq, "stuck: records nobody processed", session)
            _expect(session.mark is None, "stuck: processed, and marked still", session)
            covered = sum(
                last - first + 1
                for first, last, _ in snapshot.ranges_of(self._connection, session.id)
            )
            _expect(covered == session.last_seq, "invariant 3: not every record is in a range")


def _check_mark_and_job(session: SessionRow, after: Snapshot) -> None:
    job = after.job_of.get(session.id)
    is_open = job is not None and job.state != "idle"
    _expect(
        (session.mark is not None) == is_open,
        "marked if and only if due, claimed or parked",
        session,
        job,
    )


def _check_job(call: Call, old: JobRow | None, new: JobRow) -> None:
    _expect((new.state == "claimed") == (new.owner is not None), "claimed, and by nobody")
    if old is None:
        _expect(new.state == "due" and new.token == 0, "a job is born due")
        return
    _expect(old.token <= new.token, "a token went back")
    if old.state != new.state:
        allowed = MOVES.get((old.state, new.state), frozenset())
        _expect(call.name in allowed, f"{call.name} made a {old.state} job {new.state}")
    is_stores_own = new.kind != "extract"
    _expect(not (is_stores_own and new.state == "parked"), "M8: the sweep itself is parked", new)
    if old.state == "claimed":
        _check_held(call, old, new)
    if old.state == "due":
        _expect(call.name not in MARKING, "a mark changed a job that was due already")
    counts = (new.failures - old.failures, new.takeovers - old.takeovers)
    match call.name:
        case "fail":
            _expect(counts == (1, 0), "a failure is one failure", counts)
        case "claim":
            is_takeover = old.state == new.state == "claimed"
            _expect(counts == (0, int(is_takeover)), "a takeover is one takeover", counts)
        case "release" | "defer" | "renew":
            _expect(counts == (0, 0), "P7: an attempt was burned", counts)
        case "record" | "finish_recurring":
            _expect((new.failures, new.takeovers) == (0, 0), "progress was not noted")
        case _:
            _expect(counts == (0, 0) or (new.failures, new.takeovers) == (0, 0), "miscounted")


def _check_held(call: Call, old: JobRow, new: JobRow) -> None:
    """Invariant 4: a claimed job moves for its holder, for a successor, or when its mark goes."""
    is_holders = call.name in FENCED and call.args[0].job_id == old.id
    if is_holders:
        _expect(call.args[0].token == old.token, "invariant 4: moved by another token")
    elif call.name == "claim":
        now = to_micros(call.args[2])
        _expect((old.expires_at or 0) <= now, "invariant 4: taken before its lease ran out")
    else:
        _expect(
            call.name in CLEARING and new.state == "idle",
            f"invariant 4: {call.name} changed a claimed job",
        )
    if (new.state, new.owner) != (old.state, old.owner):
        _expect(new.token > old.token, "invariant 4: the claim ended, its token lives on")


def _claimable(found: Snapshot, now: int, takeovers_max: int | None = None) -> list[JobRow]:
    """The jobs that can be claimed, in the order of claims."""
    chosen = []
    for job in found.jobs.values():
        if job.state == "claimed" and (job.expires_at or 0) <= now:
            is_exhausted = takeovers_max is not None and job.takeovers >= takeovers_max
            if not (is_exhausted and job.kind == "extract"):
                chosen.append(job)
        elif job.state == "due" and (
            job.due_at is None or job.due_at <= now or (job.tended_at or 0) > now
        ):
            chosen.append(job)
    return sorted(chosen, key=_turn)


def _turn(job: JobRow) -> tuple[int, int, int]:
    """Leases that ran out come first, then what has been due longest."""
    if job.state == "claimed":
        return (0, job.expires_at or 0, 0)
    return (1, job.first_due_at, job.id)


def _live(found: Snapshot, now: int) -> int:
    return sum(
        job.state == "claimed" and (job.expires_at or 0) > now for job in found.jobs.values()
    )


def _expect(truth: bool, violation: str, *details: object) -> None:
    if not truth:
        raise Violation(" | ".join((violation, *map(str, details))))

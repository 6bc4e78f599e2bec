"""Any sequence of claims, results, failures and marks leaves the jobs as a plain model says.

Hypothesis makes up the sequences, on both databases. Claims are kept when they are lost, so that
most of what is tried with them is what a worker that woke too late would try.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import hypothesis
import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.messages import Role
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.types.records import (
    BackedOff,
    CapReached,
    Claim,
    Job,
    JobKind,
    JobState,
    KeyRef,
    LeasePolicy,
    MarkCause,
    MarkPolicy,
    Mode,
    NewRecord,
    NothingDue,
    Outcome,
    Parked,
    Recorded,
    Released,
    Renewed,
    SessionBirth,
    StaleClaim,
)
from tests.stateful.model import Range, before, moved

LEASE = timedelta(seconds=60)
POLICY = LeasePolicy(
    lease_seconds=LEASE.total_seconds(), failures_max=2, takeovers_max=2, running_max=2
)
THRESHOLD = 3
SPACES = ("alice", "alice", "bob")
EXHAUSTED = f"its workers died {POLICY.takeovers_max} times without recording anything"
RECURRING = (JobKind.IDLE_SWEEP, JobKind.STARTUP_SCAN)
TABLES = (
    "jobs, session_ranges, retained_records, summaries, session_history, sessions, session_keys,"
    " agents, spaces, extractions, facts, fact_sources, fact_history, consolidations,"
    " staged_drafts"
)


@dataclass(slots=True)
class ModelJob:
    """A job, as plainly as it can be put."""

    space: str
    kind: JobKind
    key: str
    first_due_at: datetime
    state: JobState = JobState.DUE
    due_at: datetime | None = None
    owner: str | None = None
    lease_expires_at: datetime | None = None
    token: int = 0
    failures: int = 0
    takeovers: int = 0
    last_error: str | None = None
    finished_at: datetime | None = None

    def leave(self, state: JobState) -> None:
        """Whoever holds it holds it no more."""
        self.state = state
        self.token += 1
        self.owner = self.lease_expires_at = None

    def is_expired(self, now: datetime) -> bool:
        return self.lease_expires_at is not None and self.lease_expires_at <= now

    def is_due(self, now: datetime) -> bool:
        return self.state is JobState.DUE and (self.due_at is None or self.due_at <= now)


@dataclass(slots=True)
class ModelSession:
    """A session: how far it goes, how far it is marked, how far it is processed."""

    ref: KeyRef
    id: str
    last_seq: int = 0
    mark: int | None = None
    marked_at: datetime | None = None
    cursor: int = 0
    left: int | None = None  # the last record before its mode forbade to learn; none: it allows it
    ranges: list[Range] = field(default_factory=list)
    ranges_seen: list[Range] = field(default_factory=list)  # in the store

    @property
    def is_enabled(self) -> bool:
        return self.left is None

    @property
    def learnable_end(self) -> int:
        return min((first - 1 for first, *_ in self.ranges if first > self.cursor), default=2**31)

    def move_cursor(self, upto: int, outcome: Outcome) -> None:
        if upto > self.cursor:
            self.cursor = moved(self.ranges, self.cursor, upto, outcome)


class JobsMachine(RuleBasedStateMachine):
    """Does everything to the store and to the model, and compares."""

    steps = 0

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.leases = store.leases
        self.clock = ManualClock()
        self.ids = iter(range(10**6))
        self.jobs: list[ModelJob] = []  # in the order in which they were made
        self.claims: list[Claim] = []
        self.sessions = [self._new_session(n, space) for n, space in enumerate(SPACES)]

    def _new_session(self, number: int, space: str) -> ModelSession:
        birth, now = SessionBirth(), self.clock.now()
        ref = self.store.sessions.open_key(space, f"k{number}", "/user/a", birth, now, self._id)
        return ModelSession(ref=ref, id=self.store.sessions.current(ref).id)

    def _id(self) -> str:
        return f"session-{next(self.ids):04}"

    @property
    def now(self) -> datetime:
        return self.clock.now()

    # talking and marking

    @rule(which=st.integers(0, 2), count=st.integers(1, 5))
    def append(self, which: int, count: int) -> None:
        session = self.sessions[which]
        records = [NewRecord(role=Role.USER, content="x") for _ in range(count)]
        policy = MarkPolicy(threshold=THRESHOLD)
        self.store.records.append(session.ref, records, policy, self.now, self._id)
        session.last_seq += count
        if session.last_seq - session.cursor > THRESHOLD:
            self._mark(session, session.last_seq)

    @rule(which=st.integers(0, 2), beyond=st.integers(-4, 3))
    def invalidate(self, which: int, beyond: int) -> None:
        """Also beyond the last record: nothing forbids it."""
        session = self.sessions[which]
        seq = max(session.last_seq + beyond, 0)
        cause = MarkCause.REQUEST
        self.store.marks.invalidate(session.ref.space, session.id, seq, cause, self.now)
        if session.last_seq:
            self._mark(session, seq)

    def _mark(self, session: ModelSession, seq: int) -> None:
        if not session.is_enabled or seq <= max(session.mark or 0, session.cursor):
            return
        session.mark = seq
        session.marked_at = session.marked_at or self.now
        job = self._job(session.id)
        if job is None:
            space = session.ref.space
            self.jobs.append(ModelJob(space, JobKind.EXTRACT, session.id, session.marked_at))
        elif job.state in (JobState.IDLE, JobState.PARKED):
            job.state, job.due_at, job.first_due_at = JobState.DUE, None, session.marked_at
            job.failures = job.takeovers = 0

    @rule(which=st.integers(0, 2), upto=st.integers(0, 12), is_right=st.booleans())
    def mark_processed(self, which: int, upto: int, is_right: bool) -> None:
        session = self.sessions[which]
        expected = (session.mark or 0) + (0 if is_right else 1)
        swapped = self.store.marks.mark_processed(
            session.ref.space, session.id, upto, expected, self.now
        )
        assert swapped == (session.mark == expected)
        if swapped:
            self._clear(session)
            session.move_cursor(min(upto, session.last_seq), Outcome.EXTERNAL)

    @rule(which=st.integers(0, 2))
    def toggle_mode(self, which: int) -> None:
        session, left = self.sessions[which], self.sessions[which].left
        mode = Mode.ENABLED if left is not None else Mode.DISABLED
        self.store.sessions.set_mode(session.ref, mode, self.now)
        self._clear(session)
        session.left = session.last_seq if left is None else None
        if left is None:
            return
        pending = before(session.ranges, left)
        if pending <= session.cursor:
            session.move_cursor(session.last_seq, Outcome.SKIPPED)
        else:
            moved(session.ranges, left, session.last_seq, Outcome.SKIPPED)
            self._mark(session, pending)

    def _clear(self, session: ModelSession) -> None:
        if session.mark is None:
            return
        session.mark = session.marked_at = None
        job = self._job(session.id)
        assert job is not None
        job.leave(JobState.IDLE)
        job.due_at = None

    # claims

    @rule(owner=st.sampled_from(["w1", "w2", "w3"]))
    def claim(self, owner: str) -> None:
        outcome = self.leases.claim(owner, POLICY, self.now)
        self._park_exhausted()
        running = sum(
            job.state is JobState.CLAIMED and not job.is_expired(self.now) for job in self.jobs
        )
        candidates = self._candidates()
        if running >= POLICY.running_max:
            assert outcome == CapReached(running)
        elif not candidates:
            assert outcome == NothingDue(self._next_in_seconds())
        else:
            assert isinstance(outcome, Claim)
            job = self._job(outcome.key)
            assert job in candidates
            self._take(job, outcome)

    def _take(self, job: ModelJob | None, claim: Claim) -> None:
        assert job is not None
        job.takeovers += job.state is JobState.CLAIMED
        job.state, job.due_at, job.owner = JobState.CLAIMED, None, claim.owner
        job.token += 1
        job.lease_expires_at = self.now + LEASE
        session = self._session(job.key)
        assert claim.token == job.token
        assert claim.attempt == job.failures + job.takeovers + 1
        assert claim.expires_at == job.lease_expires_at
        frozen: tuple[int, int | None] = (0, 0)
        if session is not None and session.mark is not None:
            end = session.learnable_end
            frozen = (min(session.last_seq, end), min(session.mark, end))
        assert (claim.read_upto, claim.claimed_mark) == frozen
        self.claims.append(claim)

    def _park_exhausted(self) -> None:
        for job in self.jobs:
            if job.is_expired(self.now) and job.takeovers >= POLICY.takeovers_max and job.space:
                job.leave(JobState.PARKED)
                job.last_error = EXHAUSTED

    def _candidates(self) -> list[ModelJob]:
        """Whose turn it is: the first of each space; or where leases ran out at one moment."""
        expired = [job for job in self.jobs if job.is_expired(self.now)]
        if expired:
            first = min(job.lease_expires_at for job in expired if job.lease_expires_at)
            return [job for job in expired if job.lease_expires_at == first]
        due = [job for job in self.jobs if job.is_due(self.now)]
        firsts: dict[str, ModelJob] = {}
        for job in sorted(due, key=lambda job: job.first_due_at):
            firsts.setdefault(job.space, job)
        return list(firsts.values())

    def _next_in_seconds(self) -> float | None:
        moments = [job.lease_expires_at or job.due_at for job in self.jobs if self._waits(job)]
        return min(((m - self.now).total_seconds() for m in moments if m), default=None)

    @staticmethod
    def _waits(job: ModelJob) -> bool:
        return job.state in (JobState.CLAIMED, JobState.DUE)

    @precondition(lambda self: self.claims)
    @rule(back=st.integers(0, 3))
    def renew(self, back: int) -> None:
        claim, job = self._pick(back)
        outcome = self.leases.renew(claim, POLICY, self.now)
        if job is None:
            assert outcome == StaleClaim()
        else:
            job.lease_expires_at = self.now + LEASE
            assert outcome == Renewed(job.lease_expires_at)

    @precondition(lambda self: self.claims)
    @rule(back=st.integers(0, 3), part=st.integers(0, 4))
    def record(self, back: int, part: int) -> None:
        """Four times of five a piece, and now and then the rest."""
        claim, job = self._pick(back)
        session = self._session(claim.key)
        if session is None:
            return
        upto = max(claim.read_upto - part, session.cursor if job else 0, 1)
        if upto > claim.read_upto:
            return
        outcome = self.leases.record(claim, upto, Outcome.EXTRACTED, None, self.now)
        if job is None:
            assert outcome == StaleClaim()
            return
        is_last = upto == claim.read_upto
        session.move_cursor(upto, Outcome.EXTRACTED)
        job.failures = job.takeovers = 0
        job.last_error = None
        assert session.mark is not None
        is_covered = session.mark <= session.cursor or session.mark == claim.claimed_mark
        if is_last:
            job.finished_at = self.now
            if is_covered:
                self._clear(session)
                if session.cursor > upto and session.last_seq > session.cursor:
                    self._mark(session, session.last_seq)
            else:
                job.leave(JobState.DUE)
                job.first_due_at = self.now
        elif session.mark <= upto:
            session.mark = claim.read_upto
        assert outcome == Recorded(is_done=session.mark is None)

    @precondition(lambda self: self.claims)
    @rule(back=st.integers(0, 3), delay=st.sampled_from([0.0, 30.0]), is_final=st.booleans())
    def fail(self, back: int, delay: float, is_final: bool) -> None:
        claim, job = self._pick(back)
        outcome = self.leases.fail(claim, "no", delay, POLICY, self.now, is_final=is_final)
        if job is None:
            assert outcome == StaleClaim()
            return
        job.failures += 1
        job.last_error = "no"
        job.due_at = self.now + timedelta(seconds=delay)
        is_parked = bool(job.space) and (is_final or job.failures >= POLICY.failures_max)
        job.leave(JobState.PARKED if is_parked else JobState.DUE)
        assert outcome == (Parked() if is_parked else BackedOff(job.due_at))

    @precondition(lambda self: self.claims)
    @rule(back=st.integers(0, 3))
    def release(self, back: int) -> None:
        claim, job = self._pick(back)
        outcome = self.leases.release(claim)
        assert outcome == (StaleClaim() if job is None else Released())
        if job is not None:
            job.leave(JobState.DUE)

    # the store's own jobs

    @rule(kind=st.sampled_from(RECURRING))
    def ensure_recurring(self, kind: JobKind) -> None:
        self.leases.ensure_recurring(kind, self.now)
        if self._job(kind.value) is None:
            self.jobs.append(ModelJob("", kind, kind.value, self.now))

    @rule(kind=st.sampled_from(RECURRING))
    def make_due(self, kind: JobKind) -> None:
        self.leases.make_due(kind)
        job = self._job(kind.value)
        if job is not None and job.state is JobState.DUE:
            job.due_at = None

    @precondition(lambda self: self.claims)
    @rule(back=st.integers(0, 3))
    def finish_recurring(self, back: int) -> None:
        claim, job = self._pick(back)
        if claim.kind is JobKind.EXTRACT:
            return
        outcome = self.leases.finish_recurring(claim, 300.0, self.now)
        assert outcome == (StaleClaim() if job is None else Released())
        if job is not None:
            job.leave(JobState.DUE)
            job.due_at = job.first_due_at = self.now + timedelta(seconds=300)
            job.failures = job.takeovers = 0
            job.last_error, job.finished_at = None, self.now

    # what workers do not do

    @rule(space=st.sampled_from([None, "alice", "bob"]), which=st.sampled_from([None, 0, 1, 2]))
    def revive(self, space: str | None, which: int | None) -> None:
        key = None if which is None else self.sessions[which].id
        parked = [
            job
            for job in self.jobs
            if job.state is JobState.PARKED
            and space in (None, job.space)
            and key in (None, job.key)
        ]
        assert self.leases.revive(space, key) == len(parked)
        for job in parked:
            job.state, job.due_at = JobState.DUE, None
            job.failures = job.takeovers = 0

    @rule(seconds=st.sampled_from([0.5, 30.0, 59.999999, 60.0, 61.0, 301.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    # comparing

    @invariant()
    def the_jobs_are_as_the_model_says(self) -> None:
        type(self).steps += 1
        open_jobs = [job for job in self.jobs if job.state is not JobState.IDLE]
        listed = self.leases.jobs(None, 100)
        assert [told(job) for job in listed] == [
            told(job) for job in sorted(open_jobs, key=lambda job: job.first_due_at)
        ]
        for idle in (job for job in self.jobs if job.state is JobState.IDLE):
            stored = self.leases.get(idle.space, idle.kind, idle.key)
            assert stored is not None
            assert told(stored) == told(idle)
        counts = {state: sum(job.state is state for job in open_jobs) for state in JobState}
        assert self.leases.counts(None) == {s: count for s, count in counts.items() if count}

    @invariant()
    def the_sessions_are_as_the_model_says(self) -> None:
        for session in self.sessions:
            state = self.store.sessions.get(session.ref.space, session.id)
            assert state is not None
            stored = (state.last_seq, state.invalidated_at, state.marked_at, state.processed_until)
            cursor = session.cursor or None
            assert stored == (session.last_seq, session.mark, session.marked_at, cursor)
            if session.ranges != session.ranges_seen:
                ranges = self.store.marks.ranges(session.ref.space, session.id)
                assert [(r.first_seq, r.last_seq, r.outcome) for r in ranges] == session.ranges
                session.ranges_seen = list(session.ranges)
            job = self._job(session.id)
            is_open = job is not None and job.state is not JobState.IDLE
            assert (session.mark is not None) == is_open

    # finding

    def _job(self, key: str) -> ModelJob | None:
        return next((job for job in self.jobs if job.key == key), None)

    def _session(self, key: str) -> ModelSession | None:
        return next((session for session in self.sessions if session.id == key), None)

    def _pick(self, back: int) -> tuple[Claim, ModelJob | None]:
        """A claim, mostly a late one, and its job if it is still the current claim."""
        claim = self.claims[-1 - min(back, len(self.claims) - 1)]
        job = self._job(claim.key)
        assert job is not None
        is_current = job.state is JobState.CLAIMED and job.token == claim.token
        return claim, job if is_current else None


def told(job: Job | ModelJob) -> tuple[object, ...]:
    """What the store and the model must agree on."""
    whose = (job.space, job.kind, job.key, job.owner, job.token, job.last_error)
    times = (job.due_at, job.first_due_at, job.lease_expires_at, job.finished_at)
    return (whose, job.state, job.failures, job.takeovers, times)


def run_machine(fresh_store: Callable[[], Store], settings: hypothesis.settings) -> int:
    """Run it and give the number of steps that were taken."""

    class Machine(JobsMachine):
        def __init__(self) -> None:
            super().__init__(fresh_store())

    run_state_machine_as_test(Machine, settings=settings)
    return Machine.steps


def short(examples: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=examples,
        stateful_step_count=50,
        deadline=None,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=list(hypothesis.HealthCheck),
    )


TORTURE = hypothesis.settings(short(2_500), stateful_step_count=200)


@pytest.fixture
def fresh_in_memory() -> Iterator[Callable[[], Store]]:
    """A new store each time; the one before is closed."""
    opened: list[Store] = []

    def fresh() -> Store:
        while opened:
            opened.pop().close()
        opened.append(open_store(":memory:", Settings(), ManualClock()))
        return opened[-1]

    yield fresh
    for store in opened:
        store.close()


@pytest.fixture
def fresh_on_postgres(postgres_url: str, postgres_store_url: str) -> Iterator[Callable[[], Store]]:
    """One store, emptied each time."""
    store = open_store(postgres_store_url, Settings(), ManualClock())
    schema = postgres_store_url.rpartition("schema=")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'SET search_path TO "{schema}"'.encode())

        def fresh() -> Store:
            connection.execute(f"TRUNCATE {TABLES} RESTART IDENTITY CASCADE".encode())
            return store

        yield fresh
    store.close()


def test_jobs_do_as_the_model_says_in_memory(fresh_in_memory: Callable[[], Store]) -> None:
    assert run_machine(fresh_in_memory, short(50)) > 1_200


def test_jobs_do_as_the_model_says_on_postgres(fresh_on_postgres: Callable[[], Store]) -> None:
    assert run_machine(fresh_on_postgres, short(15)) > 300


@pytest.mark.torture
def test_jobs_do_as_the_model_says_for_long(fresh_in_memory: Callable[[], Store]) -> None:
    print(f"{run_machine(fresh_in_memory, TORTURE):,} steps")


@pytest.mark.torture
def test_jobs_do_as_the_model_says_for_long_on_postgres(
    fresh_on_postgres: Callable[[], Store],
) -> None:
    settings = hypothesis.settings(TORTURE, max_examples=250)
    print(f"{run_machine(fresh_on_postgres, settings):,} steps")

"""Leases: one live claim per job, fenced by its token, and a job for exactly what is marked."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, cast

import psycopg
import pytest

import recollect
from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.leases import Leaseholder
from recollect.store.relational.leases import Leases
from recollect.store.sql import queries
from recollect.store.sqlite import SqliteDatabase
from recollect.types.records import (
    BackedOff,
    CapReached,
    Claim,
    Job,
    JobKind,
    JobState,
    LeasePolicy,
    NothingDue,
    Outcome,
    Parked,
    Recorded,
    Released,
    Renewed,
    StaleClaim,
)

POLICY = LeasePolicy()
SPACE = "alice"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(store_url: str, clock: ManualClock) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings={}, clock=clock) as opened:
        yield opened


@pytest.fixture
def space(memory: recollect.Memory) -> recollect.Space:
    return memory.space(SPACE)


@pytest.fixture
def leases(memory: recollect.Memory) -> Leases:
    return memory.store.leases


def raw(memory: recollect.Memory, statement: str) -> list[tuple[Any, ...]]:
    """Run SQL behind the store's back, in sight of every space."""
    database = cast("Any", memory.store)._database
    if isinstance(database, SqliteDatabase):
        with database._alone():
            return database._writer.execute(statement).fetchall()
    with psycopg.connect(database._conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {database._schema}".encode())
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def dump(memory: recollect.Memory) -> dict[str, list[str]]:
    """Every row of every table."""
    if memory.status().store.kind == "sqlite":
        # What is behind an index of words are tables of its own; it cannot be read as one itself.
        real = "type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        names = raw(memory, f"SELECT name FROM sqlite_schema WHERE {real}")
    else:
        names = raw(memory, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    return {name: sorted(map(repr, raw(memory, f"SELECT * FROM {name}"))) for (name,) in names}


def filled(space: recollect.Space, key: str, records: int = 3) -> recollect.Session:
    session = space.session(key, agent="assistant")
    for number in range(1, records + 1):
        session.append("user", f"message {number}")
    return session


def marked(space: recollect.Space, key: str, records: int = 3) -> recollect.Session:
    session = filled(space, key, records)
    session.sleep()
    return session


def job_of(memory: recollect.Memory, session: recollect.Session) -> Job:
    job = memory.store.leases.get(SPACE, JobKind.EXTRACT, session.id)
    assert job is not None
    return job


def claim(
    leases: Leases, clock: ManualClock, owner: str = "w1", policy: LeasePolicy = POLICY
) -> Claim:
    claimed = leases.claim(owner, policy, clock.now())
    assert isinstance(claimed, Claim), claimed
    return claimed


def spans(space: recollect.Space, session_id: str) -> list[tuple[int, int]]:
    return [(span.first_seq, span.last_seq) for span in space.sessions.ranges(session_id)]


# claiming


def test_nothing_is_due_in_an_empty_store(leases: Leases, clock: ManualClock) -> None:
    assert leases.claim("w1", POLICY, clock.now()) == NothingDue(None)


def test_claims_go_by_the_time_of_the_first_marking(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    sessions = {
        key: filled(space, key, records) for key, records in zip("abc", (4, 1, 9), strict=True)
    }
    sessions["c"].append("user", "marked by the threshold before")
    for key in "ba":
        clock.advance(1)
        sessions[key].sleep()
    sessions["c"].append("user", "raises the mark, and does not lose its place")
    order = [claim(leases, clock).key for _ in range(3)]
    assert order == [sessions[key].id for key in "cba"]


def test_a_claim_says_who_has_what_until_when(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 3)
    claimed = claim(leases, clock, "somebody")
    assert (claimed.kind, claimed.space, claimed.key) == (JobKind.EXTRACT, SPACE, session.id)
    assert (claimed.owner, claimed.attempt) == ("somebody", 1)
    assert claimed.expires_at == clock.now() + timedelta(seconds=60)
    assert (claimed.read_upto, claimed.claimed_mark) == (3, 3)


def test_a_claim_freezes_what_it_reads(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 3)
    claimed = claim(leases, clock)
    session.append("user", "too late")
    session.sleep()
    assert claimed.read_upto == 3
    with pytest.raises(AssertionError, match="nothing beyond"):
        leases.record(claimed, 4, Outcome.NO_OUTPUT, None, clock.now())
    assert leases.record(claimed, 3, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(False)
    assert spans(space, session.id) == [(1, 3)]


def test_a_claim_reads_the_records_beyond_the_mark_too(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 2)
    session.append("user", "not marked, but said")
    claimed = claim(leases, clock)
    assert (claimed.read_upto, claimed.claimed_mark) == (3, 2)


def test_a_live_lease_cannot_be_claimed(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    marked(space, "k")
    claim(leases, clock)
    clock.advance(59)
    assert leases.claim("w2", POLICY, clock.now()) == NothingDue(1.0)


def test_an_expired_lease_is_taken_over_with_a_higher_token_and_counted(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    first = claim(leases, clock, "w1")
    clock.advance(60)
    second = claim(leases, clock, "w2")
    assert second.token > first.token
    assert (second.owner, second.attempt) == ("w2", 2)
    job = job_of(memory, session)
    assert (job.owner, job.takeovers, job.failures) == ("w2", 1, 0)


def test_a_takeover_reads_what_was_said_since_the_first_claim(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 3)
    claim(leases, clock)
    session.append("user", "after the claim")
    clock.advance(61)
    assert claim(leases, clock, "w2").read_upto == 4


def test_an_expired_lease_goes_before_what_is_due(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    early, late = marked(space, "a"), filled(space, "b")
    claim(leases, clock)
    late.sleep()
    clock.advance(61)
    assert [claim(leases, clock).key for _ in range(2)] == [early.id, late.id]


def test_renewal_keeps_a_lease_alive(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    marked(space, "k")
    held = claim(leases, clock)
    for _ in range(5):
        now = clock.advance(50)
        assert leases.renew(held, POLICY, now) == Renewed(now + timedelta(seconds=60))
        assert isinstance(leases.claim("w2", POLICY, now), NothingDue)


def test_a_lease_that_ran_out_unnoticed_can_still_be_renewed_and_recorded(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    marked(space, "k", 3)
    held = claim(leases, clock)
    clock.advance(600)
    assert isinstance(leases.renew(held, POLICY, clock.now()), Renewed)
    clock.advance(600)
    assert leases.record(held, 3, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(True)


def test_without_a_clock_of_its_own_a_claim_lives_by_the_clock_of_the_database(
    space: recollect.Space, leases: Leases
) -> None:
    marked(space, "k")
    short = LeasePolicy(lease_seconds=0.1)
    assert isinstance(leases.claim("w1", short, None), Claim)
    taken: Claim | NothingDue | CapReached = NothingDue(None)
    for _ in range(1_000_000):  # it runs out by itself
        taken = leases.claim("w2", short, None)
        if isinstance(taken, Claim):
            break
        assert isinstance(taken, NothingDue)
        assert taken.next_in_seconds is not None
        assert taken.next_in_seconds <= 0.1
    assert isinstance(taken, Claim)
    assert taken.attempt == 2


def test_nobody_gets_a_job_twice_however_many_ask_at_once(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    for number in range(12):
        marked(space, f"k{number}", 1)
    barrier = threading.Barrier(4)

    def take(owner: str) -> list[int]:
        barrier.wait()
        mine = []
        while isinstance(claimed := leases.claim(owner, POLICY, clock.now()), Claim):
            mine.append(claimed.job_id)
        return mine

    with ThreadPoolExecutor(4) as pool:
        taken = [job for jobs in pool.map(take, ["w1", "w2", "w3", "w4"]) for job in jobs]
    assert len(taken) == len(set(taken)) == 12


def test_the_cap_on_the_jobs_of_a_space_is_exact_under_threads(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    for number in range(10):
        marked(space, f"k{number}", 1)
    policy = LeasePolicy(space_running_max=3)
    barrier = threading.Barrier(8)

    def take(owner: int) -> Claim | NothingDue | CapReached:
        barrier.wait()
        return leases.claim(f"w{owner}", policy, clock.now())

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(take, range(8)))
    claims = [outcome for outcome in outcomes if isinstance(outcome, Claim)]
    assert len(claims) == 3
    assert sum(isinstance(outcome, CapReached) for outcome in outcomes) == 5
    leases.release(claims[0])
    assert isinstance(leases.claim("w9", policy, clock.now()), Claim)
    assert leases.claim("w9", policy, clock.now()) == CapReached(3)


def test_a_space_at_its_cap_keeps_no_other_waiting(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    policy = LeasePolicy(space_running_max=2)
    for number in range(40):
        marked(space, f"k{number}", 1)
    other = marked(memory.space("other"), "k", 1)
    claimed = [claim(leases, clock, policy=policy).space for _ in range(3)]
    assert sorted(claimed) == sorted([space.name, space.name, other.state.space])
    assert leases.claim("w", policy, clock.now()) == CapReached(3)


def test_the_cap_on_running_jobs_is_passed_by_no_more_than_claim_at_the_same_moment(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    for number in range(20):
        marked(space, f"k{number}", 1)
    policy = LeasePolicy(running_max=3)
    for _ in range(2):
        claim(leases, clock, policy=policy)
    barrier = threading.Barrier(4)

    def take(owner: int) -> Claim | NothingDue | CapReached:
        barrier.wait()
        return leases.claim(f"w{owner}", policy, clock.now())

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(take, range(4)))
    running = 2 + sum(isinstance(outcome, Claim) for outcome in outcomes)
    assert 3 <= running <= 3 + 4 - 1
    assert leases.claim("w9", policy, clock.now()) == CapReached(running)


def test_six_sessions_are_not_held_up_by_thousands_of_another_space(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    for number in range(300):
        marked(space, f"k{number}", 1)
    clock.advance(60)
    for number in range(6):
        marked(memory.space("small"), f"k{number}", 1)
    holder = Leaseholder(memory.store, POLICY, clock, randomness=random.Random(5))
    served: list[str] = []
    while served.count("small") < 6:
        held = holder.claim()
        assert isinstance(held, Claim)
        served.append(held.space)
    assert len(served) < 50


def test_what_is_due_longest_goes_first_where_spaces_take_no_turns(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    policy = LeasePolicy(takes_turns=False)
    expected = []
    for number in range(30):
        name = ("a", "b", space.name)[number % 3]
        expected.append(marked(memory.space(name), f"k{number}", 1).id)
        clock.advance(1)
    assert [claim(leases, clock, policy=policy).key for _ in expected] == expected


def test_an_expired_lease_does_not_count_as_running(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    marked(space, "a", 1)
    marked(space, "b", 1)
    policy = LeasePolicy(running_max=1)
    first = claim(leases, clock, policy=policy)
    assert leases.claim("w2", policy, clock.now()) == CapReached(1)
    clock.advance(61)
    assert claim(leases, clock, "w2", policy).key == first.key


# recording


def test_recording_writes_range_and_cursor_and_clears_the_mark_together(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 3)
    held = claim(leases, clock)
    assert leases.record(held, 3, Outcome.EXTRACTED, "why", clock.now()) == Recorded(True)
    state, job = session.state, job_of(memory, session)
    assert (state.invalidated_at, state.processed_until) == (None, 3)
    (span,) = space.sessions.ranges(session.id)
    assert (span.first_seq, span.last_seq) == (1, 3)
    assert (span.outcome, span.reason, span.at) == (Outcome.EXTRACTED, "why", clock.now())
    assert (job.state, job.owner, job.lease_expires_at) == (JobState.IDLE, None, None)
    assert job.finished_at == clock.now()


def test_recording_twice_changes_nothing_the_second_time(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    marked(space, "k", 3)
    held = claim(leases, clock)
    leases.record(held, 3, Outcome.NO_OUTPUT, None, clock.now())
    before = dump(memory)
    assert leases.record(held, 3, Outcome.NO_OUTPUT, None, clock.now()) == StaleClaim()
    assert dump(memory) == before


def test_a_piece_moves_the_cursor_and_keeps_claim_and_mark(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 5)
    held = claim(leases, clock)
    assert leases.record(held, 2, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(False)
    state, job = session.state, job_of(memory, session)
    assert (state.invalidated_at, state.processed_until) == (5, 2)
    assert (job.state, job.token, job.finished_at) == (JobState.CLAIMED, held.token, None)
    assert leases.record(held, 4, Outcome.EXTRACTED, None, clock.now()) == Recorded(False)
    assert leases.record(held, 5, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(True)
    assert spans(space, session.id) == [(1, 2), (3, 4), (5, 5)]
    assert session.state.invalidated_at is None


def test_the_same_piece_recorded_again_makes_no_second_range(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 5)
    held = claim(leases, clock)
    for _ in range(2):
        assert leases.record(held, 2, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(False)
    assert spans(space, session.id) == [(1, 2)]


def test_a_takeover_goes_on_after_the_pieces_that_were_recorded(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 5)
    first = claim(leases, clock)
    leases.record(first, 2, Outcome.NO_OUTPUT, None, clock.now())
    clock.advance(61)
    second = claim(leases, clock, "w2")
    assert leases.record(first, 5, Outcome.NO_OUTPUT, None, clock.now()) == StaleClaim()
    assert leases.record(second, 5, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(True)
    assert spans(space, session.id) == [(1, 2), (3, 5)]


def test_a_mark_that_moved_beyond_what_was_read_keeps_the_job_due_at_the_back(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 3)
    held = claim(leases, clock)
    session.append("user", "meanwhile")
    session.sleep()
    clock.advance(1)
    other = marked(space, "other", 1)
    clock.advance(1)
    assert leases.record(held, 3, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(False)
    state, job = session.state, job_of(memory, session)
    assert (state.invalidated_at, state.processed_until) == (4, 3)
    assert (job.state, job.due_at, job.first_due_at) == (JobState.DUE, None, clock.now())
    assert [claim(leases, clock).key for _ in range(2)] == [other.id, session.id]


def test_the_claimed_mark_is_cleared_even_if_it_lies_beyond_the_last_record(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = filled(space, "k", 3)
    space.sessions.invalidate(session.id, 100)
    held = claim(leases, clock)
    assert (held.read_upto, held.claimed_mark) == (3, 100)
    assert leases.record(held, 3, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(True)
    assert (session.state.invalidated_at, session.state.processed_until) == (None, 3)


def test_a_mark_that_moved_within_what_was_read_is_cleared(
    space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = filled(space, "k", 5)
    space.sessions.invalidate(session.id, 2)
    held = claim(leases, clock)
    space.sessions.invalidate(session.id, 4)
    assert leases.record(held, 5, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(True)
    assert (session.state.invalidated_at, session.state.processed_until) == (None, 5)


def test_a_piece_that_passes_the_mark_keeps_the_session_marked(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = filled(space, "k", 5)
    space.sessions.invalidate(session.id, 2)
    held = claim(leases, clock)
    assert leases.record(held, 3, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(False)
    assert (session.state.invalidated_at, session.state.processed_until) == (5, 3)
    assert job_of(memory, session).state is JobState.CLAIMED
    assert leases.record(held, 5, Outcome.NO_OUTPUT, None, clock.now()) == Recorded(True)
    assert (session.state.invalidated_at, session.state.processed_until) == (None, 5)
    assert spans(space, session.id) == [(1, 3), (4, 5)]


def test_recording_counts_the_turns_that_are_left(store_url: str, clock: ManualClock) -> None:
    with recollect.open(
        store_url, settings={"mark_unit": "turns", "mark_threshold": 2}, clock=clock
    ) as memory:
        space = memory.space(SPACE)
        session = filled(space, "k", 4)
        held = claim(memory.store.leases, clock)
        session.append("user", "a fifth turn begins")
        memory.store.leases.record(held, 4, Outcome.NO_OUTPUT, None, clock.now())
        assert raw(memory, "SELECT unprocessed_turns FROM sessions") == [(1,)]


def test_recording_forgives_earlier_failures_and_takeovers(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 5)
    leases.fail(claim(leases, clock), "no luck", 0, POLICY, clock.now())
    claim(leases, clock)
    clock.advance(61)
    held = claim(leases, clock)
    assert held.attempt == 3
    leases.record(held, 2, Outcome.NO_OUTPUT, None, clock.now())
    job = job_of(memory, session)
    assert (job.failures, job.takeovers, job.last_error) == (0, 0, None)


# stale tokens

STALE_DEEDS: dict[str, Callable[[Leases, Claim, datetime], object]] = {
    "record a piece": lambda s, c, now: s.record(c, 1, Outcome.EXTRACTED, None, now),
    "record all": lambda s, c, now: s.record(c, c.read_upto, Outcome.EXTRACTED, None, now),
    "renew": lambda s, c, now: s.renew(c, POLICY, now),
    "fail": lambda s, c, now: s.fail(c, "late", 1, POLICY, now),
    "park": lambda s, c, now: s.fail(c, "late", 1, POLICY, now, is_final=True),
    "release": lambda s, c, now: s.release(c),
    "finish": lambda s, c, now: s.finish_recurring(c, 1, now),
}


def lose_by_takeover(memory: recollect.Memory, claimed: Claim, clock: ManualClock) -> None:
    clock.advance(61)
    claim(memory.store.leases, clock, "w2")


def lose_by_release(memory: recollect.Memory, claimed: Claim, clock: ManualClock) -> None:
    assert memory.store.leases.release(claimed) == Released()


def lose_by_failure(memory: recollect.Memory, claimed: Claim, clock: ManualClock) -> None:
    assert isinstance(memory.store.leases.fail(claimed, "no", 5, POLICY, clock.now()), BackedOff)


def lose_to_mark_processed(memory: recollect.Memory, claimed: Claim, clock: ManualClock) -> None:
    assert memory.space(SPACE).sessions.mark_processed(claimed.key, 2, 3)


def lose_to_purge(memory: recollect.Memory, claimed: Claim, clock: ManualClock) -> None:
    memory.space(SPACE).session("k").purge()


def lose_to_mode(memory: recollect.Memory, claimed: Claim, clock: ManualClock) -> None:
    memory.space(SPACE).session("k").set_mode("disabled")


def lose_to_exhaustion(memory: recollect.Memory, claimed: Claim, clock: ManualClock) -> None:
    clock.advance(61)
    nothing = memory.store.leases.claim("w2", LeasePolicy(takeovers_max=0), clock.now())
    assert isinstance(nothing, NothingDue)


@pytest.mark.parametrize(
    "lose",
    [
        lose_by_takeover,
        lose_by_release,
        lose_by_failure,
        lose_to_mark_processed,
        lose_to_purge,
        lose_to_mode,
        lose_to_exhaustion,
    ],
)
def test_a_stale_token_changes_nothing(
    memory: recollect.Memory,
    space: recollect.Space,
    clock: ManualClock,
    lose: Callable[[recollect.Memory, Claim, ManualClock], None],
) -> None:
    marked(space, "k", 3)
    held = claim(memory.store.leases, clock)
    lose(memory, held, clock)
    before = dump(memory)
    for name, deed in STALE_DEEDS.items():
        assert deed(memory.store.leases, held, clock.now()) == StaleClaim(), name
        assert dump(memory) == before, name


def test_a_token_is_never_used_again(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 1)
    tokens = []
    for number in range(4):
        held = claim(leases, clock)
        tokens.append(held.token)
        leases.record(held, held.read_upto, Outcome.NO_OUTPUT, None, clock.now())
        session.append("user", f"more {number}")
        session.sleep()
    assert tokens == sorted(set(tokens))


# failing


def test_a_failure_backs_off_and_is_not_claimed_before_its_time(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    until = clock.now() + timedelta(seconds=30)
    failed = leases.fail(claim(leases, clock), "no luck", 30, POLICY, clock.now())
    assert failed == BackedOff(until)
    job = job_of(memory, session)
    assert (job.state, job.due_at, job.failures, job.takeovers) == (JobState.DUE, until, 1, 0)
    assert (job.last_error, job.last_error_at) == ("no luck", clock.now())
    assert leases.claim("w1", POLICY, clock.advance(29.5)) == NothingDue(0.5)
    clock.advance(0.5)
    assert claim(leases, clock).attempt == 2


def test_backoff_has_full_jitter_inside_a_bound_that_doubles(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    policy = LeasePolicy(backoff_seconds=60, backoff_seconds_max=600)
    holder = Leaseholder(memory.store, policy, clock, randomness=random.Random(7))
    for attempt, bound in enumerate((60, 120, 240, 480, 600, 600), start=1):
        delays = [holder.backoff_seconds(attempt) for _ in range(400)]
        assert 0 <= min(delays) < bound * 0.05
        assert bound * 0.95 < max(delays) <= bound
        assert abs(sum(delays) / 400 - bound / 2) < bound * 0.1
    assert holder.backoff_seconds(10_000) <= 600


def test_the_same_randomness_backs_off_by_the_same_delays(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock
) -> None:
    marked(space, "k")
    delays = []
    for _ in range(2):
        holder = Leaseholder(memory.store, POLICY, clock, randomness=random.Random(11))
        held = holder.claim()
        assert isinstance(held, Claim)
        failed = holder.fail(held, "no luck")
        assert isinstance(failed, BackedOff)
        delays.append((failed.until - clock.now()).total_seconds())
        clock.advance(3600)
    expected = random.Random(11)
    assert delays[0] == pytest.approx(expected.uniform(0, 60), abs=1e-5)
    assert delays[1] == pytest.approx(
        2 * delays[0], abs=1e-4
    )  # the second attempt: twice the bound


def test_a_job_is_parked_after_its_last_failure(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    outcomes = [
        type(leases.fail(claim(leases, clock), "no luck", 0, POLICY, clock.now())) for _ in range(5)
    ]
    assert outcomes == [BackedOff] * 4 + [Parked]
    job = job_of(memory, session)
    assert (job.state, job.failures, job.last_error) == (JobState.PARKED, 5, "no luck")
    assert leases.claim("w1", POLICY, clock.advance(10**6)) == NothingDue(None)
    assert session.state.invalidated_at == 3


def test_a_final_failure_parks_at_once(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    held = claim(leases, clock)
    assert leases.fail(held, "never", 30, POLICY, clock.now(), is_final=True) == Parked()
    assert (job_of(memory, session).state, job_of(memory, session).failures) == (JobState.PARKED, 1)


def test_takeovers_without_progress_park_a_job(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    policy = LeasePolicy(takeovers_max=2)
    for _ in range(3):
        claim(leases, clock, policy=policy)
        clock.advance(61)
    assert leases.claim("w1", policy, clock.now()) == NothingDue(None)
    job = job_of(memory, session)
    assert (job.state, job.takeovers, job.failures) == (JobState.PARKED, 2, 0)
    assert job.last_error == "its workers died 2 times without recording anything"


def test_failures_and_takeovers_are_counted_apart(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    for _ in range(3):
        claim(leases, clock)
        clock.advance(61)
        leases.fail(claim(leases, clock), "no luck", 0, POLICY, clock.now())
    job = job_of(memory, session)
    assert (job.state, job.takeovers, job.failures) == (JobState.DUE, 3, 3)


def test_whatever_an_error_says_its_failure_is_counted(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    for count, text in enumerate(
        ("", "x" * 10_000, "nul \0 inside", "half a \ud83d pair"), start=1
    ):
        failed = leases.fail(claim(leases, clock), text, 0, POLICY, clock.now())
        assert isinstance(failed, BackedOff)
        job = job_of(memory, session)
        assert job.failures == count
        assert job.last_error is not None
        assert job.last_error[:4] == text[:4]
        assert len(job.last_error) <= 2000


# another chance


def park(leases: Leases, clock: ManualClock) -> Claim:
    held = claim(leases, clock)
    assert leases.fail(held, "never", 0, POLICY, clock.now(), is_final=True) == Parked()
    return held


def test_new_activity_revives_a_parked_job(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    park(leases, clock)
    session.append("user", "news")
    session.sleep()
    job = job_of(memory, session)
    assert (job.state, job.due_at, job.failures, job.takeovers) == (JobState.DUE, None, 0, 0)
    assert claim(leases, clock).read_upto == 4


def test_the_threshold_revives_a_parked_job_too(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = filled(space, "k", 6)
    park(leases, clock)
    session.append("user", "the seventh")
    assert job_of(memory, session).state is JobState.DUE


def test_new_activity_does_not_cut_a_backoff_short(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    leases.fail(claim(leases, clock), "no luck", 30, POLICY, clock.now())
    before = job_of(memory, session)
    session.append("user", "news")
    session.sleep()
    assert session.state.invalidated_at == 4
    assert job_of(memory, session) == before
    assert leases.claim("w1", POLICY, clock.now()) == NothingDue(30.0)


@pytest.mark.parametrize(
    ("which", "revived"), [("one", ["alice-1"]), ("space", ["alice-1", "alice-2"]), ("all", None)]
)
def test_parked_jobs_are_revived_by_hand(
    memory: recollect.Memory, clock: ManualClock, which: str, revived: list[str] | None
) -> None:
    sessions = {
        f"{name}-{number}": marked(memory.space(name), f"{name}-{number}")
        for name in ("alice", "bob")
        for number in (1, 2)
    }
    for _ in sessions:
        park(memory.store.leases, clock)
    expected = list(sessions) if revived is None else revived
    match which:
        case "one":
            count = memory.retry(sessions["alice-1"].id)
        case "space":
            count = memory.retry(space="alice")
        case _:
            count = memory.retry()
    assert count == len(expected)
    due = {job.key for job in memory.store.leases.jobs(None, 10) if job.state is JobState.DUE}
    assert due == {sessions[name].id for name in expected}
    held = claim(memory.store.leases, clock)
    assert held.attempt == 1


def test_only_parked_jobs_are_revived(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    claimed, backing_off = marked(space, "a"), filled(space, "b")
    claim(leases, clock)
    backing_off.sleep()
    leases.fail(claim(leases, clock), "no luck", 30, POLICY, clock.now())
    before = dump(memory)
    assert memory.retry() == 0
    assert memory.retry(claimed.id) == 0
    assert dump(memory) == before


def test_a_job_of_another_space_is_not_revived(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    park(leases, clock)
    assert memory.retry(session.id, space="bob") == 0
    assert job_of(memory, session).state is JobState.PARKED


def test_a_release_burns_no_attempt_and_keeps_the_place_in_the_queue(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k")
    before = job_of(memory, session)
    held = claim(leases, clock)
    clock.advance(1)
    marked(space, "later")
    assert leases.release(held) == Released()
    job = job_of(memory, session)
    assert (job.state, job.failures, job.takeovers) == (JobState.DUE, 0, 0)
    assert job.first_due_at == before.first_due_at
    again = claim(leases, clock, "w2")
    assert (again.key, again.attempt) == (session.id, 1)
    assert again.token > held.token


# a session is marked if and only if its job is due, claimed, backing off or parked


def assert_marks_and_jobs_agree(memory: recollect.Memory) -> None:
    found = raw(
        memory,
        "SELECT s.id, s.invalidated_at, j.state FROM sessions s"
        " LEFT JOIN jobs j ON j.kind = 'extract' AND j.key = s.id",
    )
    assert found
    for session_id, mark, state in found:
        assert (mark is not None) == (state in ("due", "claimed", "parked")), (session_id, state)
    strays = raw(
        memory,
        "SELECT key FROM jobs WHERE kind = 'extract' AND key NOT IN (SELECT id FROM sessions)",
    )
    assert strays == []


MARKING_POINTS: dict[str, Callable[[recollect.Memory, recollect.Session, ManualClock], object]] = {
    "threshold": lambda m, s, c: s.append_many([{"role": "user", "content": "x"}] * 6),
    "reset": lambda m, s, c: s.reset(),
    "compaction": lambda m, s, c: s.compact("short", retain=1),
    "sleep": lambda m, s, c: s.sleep(),
    "end": lambda m, s, c: s.end(),
    "request": lambda m, s, c: m.space(SPACE).sessions.invalidate(s.id, 2),
    "idle": lambda m, s, c: (c.advance(601), m.sweep_idle()),
}

WAYS_TO_CLEAR: dict[str, Callable[[recollect.Memory, str, int, ManualClock], object]] = {
    "mark_processed": lambda m, i, mark, c: m.space(SPACE).sessions.mark_processed(i, mark, mark),
    "record": lambda m, i, mark, c: m.work(),
}

WAYS_TO_CLEAR_THE_CURRENT: dict[str, Callable[[recollect.Session], object]] = {
    "purge": lambda session: session.purge(),
    "disabled": lambda session: session.set_mode("disabled"),
    "polluted": lambda session: session.set_mode("polluted"),
}


@pytest.mark.parametrize("clear", WAYS_TO_CLEAR)
def test_every_marking_point_makes_a_job_due_and_clearing_the_mark_ends_it(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock, clear: str
) -> None:
    for point, mark in MARKING_POINTS.items():
        session = filled(space, point, 2)
        session_id = session.id
        assert_marks_and_jobs_agree(memory)
        assert memory.store.leases.get(SPACE, JobKind.EXTRACT, session_id) is None
        mark(memory, session, clock)
        state = space.sessions.get(session_id)
        assert state is not None
        assert state.invalidated_at is not None, point
        job = memory.store.leases.get(SPACE, JobKind.EXTRACT, session_id)
        assert job is not None
        assert (job.state, job.space, job.first_due_at) == (JobState.DUE, SPACE, state.marked_at)
        assert_marks_and_jobs_agree(memory)
        WAYS_TO_CLEAR[clear](memory, session_id, state.invalidated_at, clock)
        cleared = memory.store.leases.get(SPACE, JobKind.EXTRACT, session_id)
        assert cleared is not None
        assert cleared.state is JobState.IDLE
        assert_marks_and_jobs_agree(memory)


@pytest.mark.parametrize("clear", WAYS_TO_CLEAR_THE_CURRENT)
def test_a_mark_that_goes_takes_the_job_along_wherever_it_stands(
    memory: recollect.Memory,
    space: recollect.Space,
    leases: Leases,
    clock: ManualClock,
    clear: str,
) -> None:
    for state in ("due", "claimed", "backing off", "parked"):
        session = marked(space, state, 2)
        match state:
            case "claimed":
                claim(leases, clock)
            case "backing off":
                leases.fail(claim(leases, clock), "no luck", 30, POLICY, clock.now())
            case "parked":
                park(leases, clock)
            case "due":
                pass
        assert_marks_and_jobs_agree(memory)
        WAYS_TO_CLEAR_THE_CURRENT[clear](session)
        assert session.state.invalidated_at is None
        job = job_of(memory, session)
        assert (job.state, job.owner, job.due_at) == (JobState.IDLE, None, None)
        assert_marks_and_jobs_agree(memory)
        assert isinstance(leases.claim("w1", POLICY, clock.advance(3600)), NothingDue), state


def test_a_mark_after_a_mark_makes_the_same_job_due_again(
    memory: recollect.Memory, space: recollect.Space, clock: ManualClock
) -> None:
    session = marked(space, "k", 2)
    before = job_of(memory, session)
    memory.work()
    session.append("user", "again")
    clock.advance(5)
    session.sleep()
    job = job_of(memory, session)
    assert (job.id, job.state, job.first_due_at) == (before.id, JobState.DUE, clock.now())
    assert len(raw(memory, "SELECT id FROM jobs")) == 1


def test_an_external_mark_processed_makes_a_worker_in_flight_stale(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 3)
    held = claim(leases, clock)
    assert space.sessions.mark_processed(session.id, 2, 3)
    assert job_of(memory, session).token > held.token
    assert leases.record(held, 3, Outcome.EXTRACTED, None, clock.now()) == StaleClaim()
    (span,) = space.sessions.ranges(session.id)
    assert (span.first_seq, span.last_seq, span.outcome) == (1, 2, Outcome.EXTERNAL)
    session.sleep()
    again = claim(leases, clock)
    assert again.token > held.token
    assert leases.record(held, 3, Outcome.EXTRACTED, None, clock.now()) == StaleClaim()
    assert leases.record(again, 3, Outcome.EXTRACTED, None, clock.now()) == Recorded(True)
    assert spans(space, session.id) == [(1, 2), (3, 3)]


def test_a_mark_processed_that_comes_too_late_leaves_the_claim_alone(
    memory: recollect.Memory, space: recollect.Space, leases: Leases, clock: ManualClock
) -> None:
    session = marked(space, "k", 3)
    held = claim(leases, clock)
    session.append("user", "more")
    session.sleep()
    before = dump(memory)
    assert space.sessions.mark_processed(session.id, 3, 3) is False
    assert dump(memory) == before
    assert isinstance(leases.renew(held, POLICY, clock.now()), Renewed)


# jobs that come round again


def test_a_recurring_job_exists_once_and_comes_round_again(
    memory: recollect.Memory, leases: Leases, clock: ManualClock
) -> None:
    for _ in range(2):
        leases.ensure_recurring(JobKind.IDLE_SWEEP, clock.now())
    held = claim(leases, clock)
    assert (held.kind, held.space, held.read_upto) == (JobKind.IDLE_SWEEP, "", 0)
    assert leases.claim("w2", POLICY, clock.now()) == NothingDue(60.0)
    assert leases.finish_recurring(held, 90, clock.now()) == Released()
    assert leases.claim("w1", POLICY, clock.now()) == NothingDue(90.0)
    clock.advance(90)
    again = claim(leases, clock)
    assert (again.job_id, again.attempt) == (held.job_id, 1)


def test_making_a_recurring_job_due_does_not_disturb_who_works_on_it(
    memory: recollect.Memory, leases: Leases, clock: ManualClock
) -> None:
    leases.ensure_recurring(JobKind.STARTUP_SCAN, clock.now())
    held = claim(leases, clock)
    leases.make_due(JobKind.STARTUP_SCAN)
    assert isinstance(leases.claim("w2", POLICY, clock.now()), NothingDue)
    leases.finish_recurring(held, 86_400, clock.now())
    leases.make_due(JobKind.STARTUP_SCAN)
    assert claim(leases, clock).kind is JobKind.STARTUP_SCAN


def test_a_recurring_job_belongs_to_no_space(
    memory: recollect.Memory, leases: Leases, clock: ManualClock
) -> None:
    leases.ensure_recurring(JobKind.IDLE_SWEEP, clock.now())
    assert leases.jobs(SPACE, 10) == []
    assert [job.kind for job in leases.jobs(None, 10)] == [JobKind.IDLE_SWEEP]
    assert leases.counts(None) == {JobState.DUE: 1}


@pytest.mark.postgres
def test_a_due_job_that_somebody_holds_for_a_moment_is_looked_at_again_soon(
    postgres_store_url: str, clock: ManualClock
) -> None:
    """An append to a marked session holds its job until it commits, and tells nobody after."""
    with recollect.open(postgres_store_url, settings={}, clock=clock) as memory:
        marked(memory.space(SPACE), "k")
        database = cast("Any", memory.store)._database
        with psycopg.connect(database._conninfo) as holder:
            holder.execute(f"SELECT 1 FROM {database._schema}.jobs FOR UPDATE".encode())
            nothing = memory.store.leases.claim("w1", POLICY, clock.now())
            holder.rollback()
        assert nothing == NothingDue(0.0)
        claim(memory.store.leases, clock)


def test_no_setting_allows_a_lease_that_counts_as_given_before_a_clock_was_set_back() -> None:
    [setting] = [each for each in fields(Settings) if each.name == "lease_seconds"]
    assert f"+ {setting.metadata['maximum']}000000" in queries("sqlite")["claim_job"]

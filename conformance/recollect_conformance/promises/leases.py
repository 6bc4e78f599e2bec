"""Jobs and claims: one live claim per job, fenced by its token, finished with its result."""

from __future__ import annotations

from dataclasses import replace

from recollect.types.records import (
    BackedOff,
    CapReached,
    Claim,
    Job,
    JobKind,
    JobState,
    LeasePolicy,
    MarkCause,
    Mode,
    NothingDue,
    Outcome,
    Overtaken,
    Parked,
    Recorded,
    Released,
    Renewed,
    StaleClaim,
)
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness

POLICY = LeasePolicy(lease_seconds=60, failures_max=3, takeovers_max=2, running_max=64)


def _try_claim(store: Harness, owner: str = "a") -> Claim | NothingDue | CapReached:
    return store.handle.leases.claim(owner, POLICY, store.now())


def _claim(store: Harness, owner: str = "a") -> Claim:
    claim = _try_claim(store, owner)
    assert isinstance(claim, Claim), f"nothing could be claimed: {claim}"
    return claim


def _record(
    store: Harness, claim: Claim, upto: int | None = None
) -> Recorded | Overtaken | StaleClaim:
    reached = claim.read_upto if upto is None else upto
    return store.handle.leases.record(claim, reached, Outcome.EXTRACTED, None, store.now())


def _fail(store: Harness, claim: Claim, delay: float = 10) -> BackedOff | Parked | StaleClaim:
    return store.handle.leases.fail(claim, "it broke", delay, POLICY, store.now())


def _job(store: Harness, session_id: str) -> Job:
    job = store.handle.leases.get(SPACE, JobKind.EXTRACT, session_id)
    assert job is not None, "a marked session has a job"
    return job


@case("M9 M13", "what is marked is due, what is recorded is not")
def what_is_marked_is_due(store: Harness) -> None:
    assert _try_claim(store) == NothingDue(None)
    session = store.marked(seq=3)
    assert _job(store, session.id).state is JobState.DUE
    claim = _claim(store)
    assert (claim.space, claim.key, claim.read_upto) == (SPACE, session.id, 3)
    assert _record(store, claim) == Recorded(is_done=True)
    after = store.session(session.id)
    assert (after.invalidated_at, after.processed_until) == (None, 3)
    assert _job(store, session.id).state is JobState.IDLE
    assert _try_claim(store) == NothingDue(None)


@case("M4", "claims go by the time of the first marking, not by the mark")
def claims_go_by_the_first_marking(store: Harness) -> None:
    marked = []
    for key, seq in (("long", 9), ("short", 1), ("middle", 4)):
        marked.append(store.marked(key, seq).id)
        store.clock.advance(1)
    assert [_claim(store).key for _ in marked] == marked


@case("M12", "a live lease is nobody else's")
def a_live_lease_is_nobody_elses(store: Harness) -> None:
    store.marked()
    _claim(store)
    store.clock.advance(59)
    assert isinstance(_try_claim(store, "b"), NothingDue)


@case("M12", "a lease that ran out is taken over, with a higher token and one more attempt")
def a_lease_that_ran_out_is_taken_over(store: Harness) -> None:
    session = store.marked()
    first = _claim(store)
    store.clock.advance(60)
    second = _claim(store, "b")
    assert second.key == first.key
    assert second.token > first.token
    assert (first.attempt, second.attempt) == (1, 2)
    assert (_job(store, session.id).takeovers, _job(store, session.id).failures) == (1, 0)


@case("M12", "a renewed lease lives on")
def a_renewed_lease_lives_on(store: Harness) -> None:
    store.marked()
    claim = _claim(store)
    store.clock.advance(50)
    assert isinstance(store.handle.leases.renew(claim, POLICY, store.now()), Renewed)
    store.clock.advance(50)
    assert isinstance(_try_claim(store, "b"), NothingDue)


@case("M12 M13", "a stale token changes nothing, whatever it tries")
def a_stale_token_changes_nothing(store: Harness) -> None:
    session = store.marked(seq=3)
    stale = _claim(store)
    store.clock.advance(60)
    current = _claim(store, "b")
    before = store.session(session.id), _job(store, session.id)
    leases = store.handle.leases
    assert _record(store, stale) == StaleClaim()
    assert _fail(store, stale) == StaleClaim()
    assert leases.renew(stale, POLICY, store.now()) == StaleClaim()
    assert leases.release(stale) == StaleClaim()
    assert (store.session(session.id), _job(store, session.id)) == before
    assert store.marks.ranges(SPACE, session.id) == []
    assert _record(store, current) == Recorded(is_done=True)


@case("M10", "a claim reads what was there when it was made, and nothing beyond is processed")
def a_claim_freezes_what_it_reads(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    claim = _claim(store)
    store.append(ref, 2)
    assert _record(store, claim) == Recorded(is_done=False)
    session = store.current(ref)
    assert (session.processed_until, session.invalidated_at) == (6, 8)
    again = _claim(store)
    assert (again.read_upto, again.attempt) == (8, 1)
    assert _record(store, again) == Recorded(is_done=True)
    spans = [(r.first_seq, r.last_seq) for r in store.marks.ranges(SPACE, session.id)]
    assert spans == [(1, 6), (7, 8)]


@case("M13", "pieces move the cursor one by one under the same token; the mark stays to the last")
def pieces_move_the_cursor(store: Harness) -> None:
    session = store.marked(seq=9)
    claim = _claim(store)
    for upto in (2, 5):
        assert _record(store, claim, upto) == Recorded(is_done=False)
        state = store.session(session.id)
        assert (state.processed_until, state.invalidated_at) == (upto, 9)
        assert _job(store, session.id).token == claim.token
    assert _record(store, claim) == Recorded(is_done=True)


@case("M13", "a piece that passes the mark keeps the session marked until the last")
def a_piece_that_passes_the_mark(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(store.text() for _ in range(5)), policy=NEVER)
    session = store.invalidate(ref, 2)
    claim = _claim(store)
    assert _record(store, claim, 3) == Recorded(is_done=False)
    mark = store.session(session.id).invalidated_at
    assert mark is not None
    assert mark > 3
    assert _record(store, claim) == Recorded(is_done=True)
    assert store.session(session.id).invalidated_at is None


@case("M11", "a failure backs off; the job is not claimed before its time, others are")
def a_failure_backs_off(store: Harness) -> None:
    failing = store.marked("failing")
    store.clock.advance(1)
    healthy = store.marked("healthy")
    outcome = _fail(store, _claim(store), delay=30)
    assert isinstance(outcome, BackedOff)
    assert _record(store, _claim(store)) == Recorded(is_done=True)
    assert store.session(healthy.id).processed_until == 1
    assert _try_claim(store) == NothingDue(30)
    store.clock.advance(30)
    assert _claim(store).key == failing.id


@case("M11 P8", "a job is parked after its last failure, with its error, and revived by hand")
def a_job_is_parked_and_revived(store: Harness) -> None:
    session = store.marked()
    for _ in range(2):
        assert isinstance(_fail(store, _claim(store), delay=0), BackedOff)
    assert _fail(store, _claim(store), delay=0) == Parked()
    job = _job(store, session.id)
    assert (job.state, job.failures, job.last_error) == (JobState.PARKED, 3, "it broke")
    assert isinstance(_try_claim(store), NothingDue)
    assert store.handle.leases.revive("space-b", None) == 0
    assert store.handle.leases.revive(SPACE, session.id) == 1
    assert _claim(store).attempt == 1


@case("M11 P8", "a job whose workers keep dying is parked as well")
def a_job_whose_workers_die_is_parked(store: Harness) -> None:
    session = store.marked()
    for _ in range(3):
        _claim(store)
        store.clock.advance(60)
    assert isinstance(_try_claim(store), NothingDue)
    job = _job(store, session.id)
    assert (job.state, job.takeovers, job.failures) == (JobState.PARKED, 2, 0)


@case("M11", "new activity gives a parked job another chance")
def new_activity_revives_a_parked_job(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    claim = _claim(store)
    parked = store.handle.leases.fail(claim, "no", 0, POLICY, store.now(), is_final=True)
    assert parked == Parked()
    store.append(ref)
    assert _claim(store).attempt == 1


@case("P7", "a released job is due at once, and nothing is counted")
def a_released_job_is_due_at_once(store: Harness) -> None:
    session = store.marked()
    claim = _claim(store)
    assert store.handle.leases.release(claim) == Released()
    assert _record(store, claim) == StaleClaim()
    job = _job(store, session.id)
    assert (job.state, job.failures, job.takeovers) == (JobState.DUE, 0, 0)
    assert _claim(store, "b").attempt == 1


@case("M5 M12", "whatever clears the mark makes the worker in flight stale")
def clearing_the_mark_makes_a_claim_stale(store: Harness) -> None:
    for name in ("processed", "purged", "disabled"):
        ref = store.key(name)
        store.append(ref, 6)
        claim = _claim(store)
        if name == "processed":
            assert store.process(ref, 6, 6)
        elif name == "purged":
            store.records.purge(ref, store.now())
        else:
            store.set_mode(ref, Mode.DISABLED)
        assert _job(store, claim.key).state is JobState.IDLE
        assert _record(store, claim) == StaleClaim()


@case("P8", "no more jobs run in the whole store than may")
def no_more_jobs_run_than_may(store: Harness) -> None:
    for key in "abc":
        store.marked(key)
    narrow = LeasePolicy(running_max=2)
    leases = store.handle.leases
    outcomes = [leases.claim("a", narrow, store.now()) for _ in range(3)]
    assert isinstance(outcomes[0], Claim)
    assert isinstance(outcomes[1], Claim)
    assert outcomes[2] == CapReached(2)


@case("P8", "who works for one space alone takes nothing of another, due or left behind")
def a_claim_may_be_for_one_space(store: Harness) -> None:
    others = store.marked("elsewhere", space="space-b")
    narrow = replace(POLICY, space=SPACE)
    leases = store.handle.leases
    assert leases.claim("a", narrow, store.now()) == NothingDue(None)
    store.clock.advance(1)
    own = store.marked("here")
    claim = leases.claim("a", narrow, store.now())
    assert isinstance(claim, Claim)
    assert (claim.space, claim.key) == (SPACE, own.id)
    assert _claim(store, "b").key == others.id
    store.clock.advance(POLICY.lease_seconds + 1)
    again = leases.claim("a", narrow, store.now())
    assert isinstance(again, Claim)
    assert again.key == own.id
    assert leases.claim("a", narrow, store.now()) == NothingDue(POLICY.lease_seconds)


@case("M12", "however many ask at once, each job has one owner")
def each_job_has_one_owner(store: Harness) -> None:
    for number in range(4):
        store.marked(f"key {number}")
    claims = store.at_once(*(lambda owner=f"w{n}": _try_claim(store, owner) for n in range(8)))
    keys = [claim.key for claim in claims if isinstance(claim, Claim)]
    assert len(keys) == len(set(keys)) == 4


@case("M8", "a job of the store itself exists once, belongs to no space and comes round again")
def a_recurring_job_comes_round_again(store: Harness) -> None:
    leases = store.handle.leases
    for _ in range(2):
        leases.ensure_recurring(JobKind.IDLE_SWEEP, store.now())
    assert leases.jobs(SPACE, 10) == []
    claim = _claim(store)
    assert claim.kind is JobKind.IDLE_SWEEP
    assert leases.finish_recurring(claim, 60, store.now()) == Released()
    assert _try_claim(store) == NothingDue(60)
    store.clock.advance(60)
    assert _claim(store).kind is JobKind.IDLE_SWEEP


@case("M8 M13", "a clock that was ahead and is set right holds nobody up for as long as it was")
def a_clock_is_set_back(store: Harness) -> None:
    leases = store.handle.leases
    leases.ensure_recurring(JobKind.IDLE_SWEEP, store.now())
    swept = _claim(store)
    assert leases.finish_recurring(swept, 60, store.now()) == Released()
    ref = store.key()
    store.append(ref)
    store.sleep(ref)
    dead = _claim(store, "dead")
    store.clock.advance(-86_400)
    found = {claim.kind: claim for claim in (_claim(store, "b"), _claim(store, "b"))}
    assert found.keys() == {JobKind.EXTRACT, JobKind.IDLE_SWEEP}
    assert _record(store, dead) == StaleClaim()
    assert _record(store, found[JobKind.EXTRACT]) == Recorded(is_done=True)
    assert leases.finish_recurring(found[JobKind.IDLE_SWEEP], 60, store.now()) == Released()
    assert _try_claim(store) == NothingDue(60)


@case("M2 M8", "every marking point makes the session's job due")
def every_marking_point_makes_a_job_due(store: Harness) -> None:
    for cause in (MarkCause.SLEEP, MarkCause.RESET, MarkCause.COMPACTION, MarkCause.END):
        ref = store.key(cause.value)
        store.append(ref, 2)
        session = store.current(ref)
        match cause:
            case MarkCause.SLEEP:
                store.sleep(ref)
            case MarkCause.RESET:
                store.reset(ref)
            case MarkCause.COMPACTION:
                store.compact(ref, retain=1)
            case _:
                store.end(ref)
        assert _job(store, session.id).state is JobState.DUE

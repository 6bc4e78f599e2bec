"""Jobs that wait for better times, and the few words a store keeps about itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

from recollect.types.records import (
    Claim,
    Deferred,
    Job,
    JobKind,
    JobState,
    KeyRef,
    MarkCause,
    NothingDue,
    Pause,
    Recorded,
    StaleClaim,
)
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness
from recollect_conformance.lessons import POLICY, claim, draft, due, lesson, record

THREADS = 8


def _job(store: Harness, session_id: str) -> Job:
    job = store.handle.leases.get(SPACE, JobKind.EXTRACT, session_id)
    assert job is not None
    return job


@case("X11 P8", "a deferred job waits for its time, with its reason in view and nothing counted")
def a_deferred_job_waits(store: Harness) -> None:
    _, claimed = due(store)
    leases = store.handle.leases
    until = store.now() + timedelta(seconds=90)
    assert leases.defer(claimed, "5,000 tokens a day", 90, store.now()) == Deferred(until)
    [job] = leases.jobs(SPACE, 10)
    assert job == _job(store, claimed.key)
    assert (job.state, job.due_at, job.owner) == (JobState.DUE, until, None)
    assert (job.failures, job.takeovers, job.pauses, job.is_paused) == (0, 0, 1, True)
    assert (job.last_error, job.last_error_at) == ("5,000 tokens a day", store.now())
    assert leases.claim("b", POLICY, store.now()) == NothingDue(90)
    store.clock.advance(90)
    again = claim(store, "b")
    assert (again.key, again.attempt, again.pauses) == (claimed.key, 1, 1)


PAUSE = Pause(seconds=300, records=10)


def _going_on(store: Harness) -> tuple[KeyRef, Claim]:
    """A session that the threshold has just marked, and the claim on its job."""
    ref = store.key("going on")
    store.say(ref, *(store.text() for _ in range(6)))
    claimed = claim(store)
    assert claimed.read_upto == 6
    return ref, claimed


@case("M6 M9", "a session that is going on waits for a pause, with its time in view")
def a_session_waits_for_a_pause(store: Harness) -> None:
    ref, claimed = _going_on(store)
    leases = store.handle.leases
    until = store.now() + timedelta(seconds=300)
    assert leases.await_pause(claimed, PAUSE, store.now()) == Deferred(until)
    assert leases.await_pause(claimed, PAUSE, store.now()) == StaleClaim()
    job = _job(store, claimed.key)
    assert (job.state, job.due_at, job.failures, job.pauses) == (JobState.DUE, until, 0, 0)
    assert leases.claim("b", POLICY, store.now()) == NothingDue(300)
    store.clock.advance(200)
    store.say(ref, store.text())
    assert store.current(ref).invalidated_at == 7, "the mark rises as ever"
    store.clock.advance(100)
    again = claim(store, "b")
    assert leases.await_pause(again, PAUSE, store.now()) == Deferred(until + timedelta(seconds=200))
    store.clock.advance(200)
    last = claim(store, "b")
    assert (last.read_upto, last.attempt) == (7, 1)
    assert leases.await_pause(last, PAUSE, store.now()) is None
    assert record(store, last, lesson(draft())) == Recorded(is_done=True)


@case("M6 M9", "as many records as are enough wait for no pause")
def enough_records_do_not_wait(store: Harness) -> None:
    ref, claimed = _going_on(store)
    leases = store.handle.leases
    assert isinstance(leases.await_pause(claimed, PAUSE, store.now()), Deferred)
    store.say(ref, *(store.text() for _ in range(4)))
    store.clock.advance(300)
    assert leases.await_pause(claim(store), PAUSE, store.now()) is None


@case("M3 M8", "who asks for a session has it at once, also where its mark rises no further")
def what_is_asked_for_does_not_wait(store: Harness) -> None:
    for number, ask in enumerate((store.sleep, lambda ref: store.invalidate(ref, 3), store.end)):
        ref = store.key(f"key {number}")
        store.say(ref, *(store.text() for _ in range(6)))
        leases = store.handle.leases
        assert isinstance(leases.await_pause(claim(store), PAUSE, store.now()), Deferred)
        ask(ref)
        claimed = claim(store)
        assert leases.await_pause(claimed, PAUSE, store.now()) is None
        assert record(store, claimed, lesson(draft())) == Recorded(is_done=True)


@case("M8 M9", "all that is marked is asked for at once, in one space or in all")
def all_that_is_marked_is_asked_for(store: Harness) -> None:
    _, claimed = _going_on(store)
    leases = store.handle.leases
    assert isinstance(leases.await_pause(claimed, PAUSE, store.now()), Deferred)
    store.marks.request_marked("another space")
    assert leases.claim("b", POLICY, store.now()) == NothingDue(300)
    store.marks.request_marked(None)
    assert leases.await_pause(claim(store), PAUSE, store.now()) is None


@case("M4 M11", "what was imported is worked on in its order, a session of a space after the other")
def imported_sessions_have_an_order(store: Harness) -> None:
    in_order = replace(POLICY, in_order=True)
    leases, spaces = store.handle.leases, (SPACE, "other")
    given = {
        space: [store.key(f"key {number}", space=space) for number in range(3)] for space in spaces
    }
    for ref in (each for refs in given.values() for each in refs):
        store.say(ref, store.text(), policy=NEVER)
        store.invalidate(ref, 1, MarkCause.IMPORT)
    for number in range(3):
        claims = [leases.claim("a", in_order, store.now()) for _ in range(3)]
        held = [each for each in claims if isinstance(each, Claim)]
        assert {each.space for each in held} == set(spaces), "spaces do not wait for each other"
        assert isinstance(claims[2], NothingDue)
        for each in held:
            assert each.key == store.current(given[each.space][number]).id
            if number:
                assert record(store, each, lesson(draft())) == Recorded(is_done=True)
            else:  # one that fails holds up nobody
                leases.fail(each, "it broke", 3600, in_order, store.now())


@case("X11 P5", "a job is deferred by who holds it; afterwards its claim is stale")
def only_the_holder_defers(store: Harness) -> None:
    _, stale = due(store)
    leases = store.handle.leases
    store.clock.advance(60)
    current = claim(store, "b")
    before = _job(store, stale.key)
    assert leases.defer(stale, "x", 1, store.now()) == StaleClaim()
    assert _job(store, stale.key) == before
    assert isinstance(leases.defer(current, "x", 1, store.now()), Deferred)
    assert record(store, current, lesson(draft())) == StaleClaim()
    assert leases.defer(current, "x", 1, store.now()) == StaleClaim()


@case("X11 P8", "a deferred job is released by hand, and finishes without its reason")
def a_deferred_job_is_released_by_hand(store: Harness) -> None:
    _, claimed = due(store)
    leases = store.handle.leases
    leases.defer(claimed, "paused", 3600, store.now())
    assert leases.revive("theirs", None) == 0
    assert leases.revive(SPACE, claimed.key) == 1
    assert leases.revive(None, None) == 0
    again = claim(store)
    assert record(store, again, lesson(draft())) == Recorded(is_done=True)
    job = _job(store, claimed.key)
    assert (job.state, job.last_error, job.due_at) == (JobState.IDLE, None, None)
    assert (job.pauses, job.is_paused) == (0, False)


@case("X11 P8", "a deferred job that had failed before is released by hand as well")
def a_deferred_failure_is_released_by_hand(store: Harness) -> None:
    _, claimed = due(store)
    leases = store.handle.leases
    leases.fail(claimed, "it broke", 0, POLICY, store.now())
    leases.defer(claim(store), "paused", 3600, store.now())
    assert leases.revive(SPACE, None) == 1
    again = claim(store)
    assert (again.attempt, again.pauses) == (1, 0)


@case("M11 P8", "a job that backs off after a failure is not released by hand")
def a_job_that_backs_off_is_not_released(store: Harness) -> None:
    _, claimed = due(store)
    store.handle.leases.fail(claimed, "it broke", 60, POLICY, store.now())
    assert store.handle.leases.revive(None, None) == 0
    assert not _job(store, claimed.key).is_paused


@case("X11 X7", "what failed before still counts after a deferral")
def deferral_does_not_wipe_failures(store: Harness) -> None:
    _, claimed = due(store)
    leases = store.handle.leases
    leases.fail(claimed, "it broke", 0, POLICY, store.now())
    leases.defer(claim(store), "paused", 0, store.now())
    assert _job(store, claimed.key).failures == 1
    assert claim(store).attempt == 2


@case("X11", "new records do not wake a deferred job before its time, and are read with it")
def new_records_wait_with_the_job(store: Harness) -> None:
    ref, claimed = due(store)
    store.handle.leases.defer(claimed, "paused", 90, store.now())
    store.say(ref, store.text(), policy=NEVER)
    store.sleep(ref)
    assert isinstance(store.handle.leases.claim("b", POLICY, store.now()), NothingDue)
    store.clock.advance(90)
    assert claim(store).read_upto == 2


@case("X11 P8", "a deferred job keeps nobody else waiting")
def a_deferred_job_keeps_nobody_waiting(store: Harness) -> None:
    _, claimed = due(store, "one")
    store.handle.leases.defer(claimed, "paused", 90, store.now())
    _, other = due(store, "two")
    assert other.key != claimed.key


@case("P12", "any text can be the reason, cut to a decent length")
def any_text_can_be_the_reason(store: Harness) -> None:
    _, claimed = due(store)
    store.handle.leases.defer(claimed, "a\0b\ud800" + "x" * 100_000, 0, store.now())
    error = _job(store, claimed.key).last_error
    assert error is not None
    assert error.startswith("a\ufffdb")
    assert len(error) < 10_000


@case("P10", "the first value that is kept under a name is the one that stays")
def the_first_value_is_kept(store: Harness) -> None:
    keep = store.handle.keep
    assert keep("salt", "one") == "one"
    assert keep("salt", "two") == "one"
    assert keep("Salt", "two") == "two"
    assert keep("", "") == ""
    assert keep("", "x") == ""


@case("P10", "however many keep a value at once, all get the same one")
def all_get_the_same_value(store: Harness) -> None:
    for name in ("a", "b", "c"):
        kept = store.at_once(*(partial(store.handle.keep, name, f"{n}") for n in range(THREADS)))
        assert len(set(kept)) == 1
        assert store.handle.keep(name, "late") == kept[0]


@case("P10 T9", "what is kept is there for other handles and when the store is opened again")
def what_is_kept_lasts(store: Harness) -> None:
    store.handle.keep("salt", "one")
    if store.is_volatile:
        store.reopen()
        assert store.handle.keep("salt", "two") == "two"
        return
    assert store.second_handle().keep("salt", "two") == "one"
    store.reopen()
    assert store.handle.keep("salt", "two") == "one"

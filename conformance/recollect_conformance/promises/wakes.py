"""Who listens is woken by whatever makes a job due, once that is committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from recollect.store.relational.leases import Leases
from recollect.types.records import Claim, JobKind, JobState, LeasePolicy, Mode, Outcome, Parked
from recollect_conformance import handbooks, inboxes, lessons
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, SPACE, Harness

POLICY = LeasePolicy(consolidates=True)
SECONDS = 10.0  # that a notification may take
Woken = Callable[[Callable[[], object]], bool]


@contextmanager
def _listening(store: Harness) -> Iterator[Woken]:
    """What tells whether something that is done wakes those who listen."""
    event = threading.Event()

    def woken(deed: Callable[[], object]) -> bool:
        event.clear()
        deed()
        return event.wait(SECONDS)

    stop = store.handle.listen(event.set)
    try:
        # A listener of a server is called once when it begins.
        for key in ("first", "second"):
            assert woken(partial(store.marked, key)), "a mark wakes nobody"
        while isinstance(store.handle.leases.claim("before", POLICY, store.now()), Claim):
            continue
        yield woken
    finally:
        stop()


def _claim(store: Harness) -> Claim:
    claim = store.handle.leases.claim("a", POLICY, store.now())
    assert isinstance(claim, Claim), "nothing is due"
    return claim


def _leases(store: Harness) -> Leases:
    return store.handle.leases


@case("M8 M13", "marks wake those who listen: of an append, a request, an end, a sweep, a mode")
def marks_wake(store: Harness) -> None:
    with _listening(store) as woken:
        assert woken(lambda: store.append(store.key("over"), 6)), "threshold"
        ended = store.key("ended")
        store.say(ended, store.text(), policy=NEVER)
        assert woken(lambda: store.end(ended)), "end"
        asleep = store.key("asleep")
        store.say(asleep, store.text(), policy=NEVER)
        assert woken(lambda: store.sleep(asleep)), "sleep"
        idle = store.key("idle")
        store.say(idle, store.text(), policy=NEVER)
        assert woken(lambda: store.marks.mark_idle(SPACE, None, store.now(), 10)), "sweep"
        left = store.key("left")
        store.say(left, store.text(), policy=NEVER)
        store.set_mode(left, Mode.DISABLED)
        assert woken(lambda: store.set_mode(left, Mode.ENABLED)), "mode"


@case("M10 M13", "a claim that is given back, fails or waits wakes those who listen")
def what_is_let_go_wakes(store: Harness) -> None:
    leases = _leases(store)
    with _listening(store) as woken:
        ref = store.key("k")
        store.say(ref, store.text(), store.text(), policy=NEVER)
        assert woken(lambda: store.invalidate(ref, 1))
        claim = _claim(store)
        assert woken(lambda: leases.release(claim)), "release"
        claim = _claim(store)
        assert woken(lambda: leases.fail(claim, "x", 5, POLICY, store.now())), "fail"
        store.clock.advance(5)
        claim = _claim(store)
        assert woken(lambda: leases.defer(claim, "x", 5, store.now())), "defer"
        store.clock.advance(5)
        claim = _claim(store)
        store.say(ref, store.text(), policy=NEVER)
        store.invalidate(ref, 3)
        done = (claim, claim.read_upto, Outcome.EXTRACTED, None, store.now())
        assert woken(lambda: leases.record(*done)), "more was said"
        claim = _claim(store)
        assert leases.fail(claim, "x", 0, POLICY, store.now(), is_final=True) == Parked()
        assert woken(lambda: leases.revive(SPACE, None)), "revive"
        claim = _claim(store)
        session = store.current(ref)
        erasure = store.handle.erasure
        assert woken(lambda: erasure.forget_record(SPACE, session.id, 3, store.now())), "revoke"
        job = leases.get(SPACE, JobKind.EXTRACT, session.id)
        assert job is not None
        assert job.state is JobState.DUE


@case("M13", "the work of the store itself wakes those who listen when it comes round")
def recurring_work_wakes(store: Harness) -> None:
    leases, kind = _leases(store), JobKind.STARTUP_SCAN
    with _listening(store) as woken:
        assert woken(lambda: leases.ensure_recurring(kind, store.now())), "ensure"
        claim = _claim(store)
        assert woken(lambda: leases.finish_recurring(claim, 60, store.now())), "finish"
        assert woken(lambda: leases.make_due(kind)), "make due"


@case("G1 G5 M13", "what changes a space's memory wakes those who listen, and so does a request")
def changes_wake(store: Harness) -> None:
    generations = store.handle.generations
    with _listening(store) as woken:
        handbooks.rested(store)
        # Within the cooldown: due later, and at once when it is hurried.
        assert woken(lambda: lessons.add(store, "by hand")), "fact"
        assert woken(lambda: generations.hurry(SPACE)), "hurry"
        generations.pause(SPACE, store.now())
        assert woken(lambda: generations.resume(SPACE, store.now())), "resume"
        assert woken(lambda: generations.request(SPACE, store.now())), "request"


@case("M13 A7", "what is posted to an agent wakes those who listen")
def posting_wakes(store: Harness) -> None:
    with _listening(store) as woken:
        ref = store.key("chat")
        assert woken(lambda: inboxes.post(store, ref, inboxes.message())), "post"
        claim = inboxes.host(store)
        turn = inboxes.take(store, claim)
        assert woken(lambda: inboxes.fail(store, claim, turn)), "fail"

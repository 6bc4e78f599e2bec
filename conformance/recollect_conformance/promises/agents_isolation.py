"""Spaces and agents: no space sees, wakes, hears or ends an agent of another."""

from __future__ import annotations

from dataclasses import replace

from recollect.types.agents import Life
from recollect.types.records import JobKind, KeyRef, StaleClaim
from recollect_conformance.case import case
from recollect_conformance.harness import NEVER, Harness
from recollect_conformance.inboxes import (
    LIFE,
    agent,
    deliver,
    fail,
    finish,
    handed_over,
    host,
    later,
    memory_agent,
    message,
    post,
    release,
    step,
    take,
    thinking,
)

OURS, THEIRS = "ours", "theirs"


def _theirs(store: Harness) -> KeyRef:
    """An agent of another space at work, with something to do later."""
    ref = store.key(space=THEIRS)
    post(store, ref, message("hello"), message("more"))
    store.handle.agents.set_signal(ref, later(store, "alarm", 10), JobKind.AGENT, store.now())
    return ref


@case("P9", "no agent, item, record or signal of another space is found by its name")
def no_agent_of_another_space_is_found(store: Harness) -> None:
    theirs = _theirs(store)
    claim = host(store)
    finish(store, claim, take(store, claim))
    post(store, theirs, message("again"))
    disguised = replace(theirs, space=OURS)
    agents = store.handle.agents
    assert agents.get(disguised) is None
    assert agents.item(disguised, "again") is None
    assert agents.find_record(disguised, "answer:hello") is None
    assert agents.list(OURS, 10) == []
    assert agents.counts(OURS) == {}
    assert agents.ref(replace(claim, space=OURS)) is None
    assert agents.counts(THEIRS) == {Life.ACTIVE: 1}


@case("P9", "nothing is done to an agent of another space by its name")
def no_agent_of_another_space_is_changed(store: Harness) -> None:
    theirs = _theirs(store)
    claim = host(store)
    turn = take(store, claim)
    before = agent(store, theirs)
    disguised, forged = replace(theirs, space=OURS), replace(claim, space=OURS)
    agents = store.handle.agents
    assert not agents.kill(disguised, store.now())
    assert not agents.cancel_signal(disguised, "alarm")
    assert agents.take(forged, NEVER, store.now(), store.new_id) == StaleClaim()
    assert step(store, forged, thinking("hm")) == StaleClaim()
    assert finish(store, forged, turn) == StaleClaim()
    assert fail(store, forged, turn, is_final=True) == StaleClaim()
    assert release(store, forged) == StaleClaim()
    store.clock.advance(10)
    assert agents.due_signals(store.now(), 10, OURS) == []
    [due] = agents.due_signals(store.now(), 10, THEIRS)
    assert agents.due_signals(store.now(), 10) == [due]
    agents.deliver(replace(due, ref=disguised), LIFE, store.now(), store.new_id)
    assert agent(store, theirs) == before
    assert store.words(theirs) == ["hello", "more"]


@case("P9 A2", "each space has a memory-agent of its own, for agents of the same name")
def memory_agents_are_of_one_space(store: Harness) -> None:
    ours, session_id = handed_over(store, space=OURS)
    theirs, _ = handed_over(store, space=THEIRS)
    assert ours.key_id != theirs.key_id
    assert (memory_agent(store, OURS), memory_agent(store, THEIRS)) == (ours, theirs)
    assert store.handle.erasure.forget_session(THEIRS, session_id, store.now()) is None
    assert (agent(store, ours).queued, agent(store, theirs).queued) == (1, 1)


@case("P9", "reviving and counting stay inside a space, and an operator sees them all")
def operators_see_every_agent(store: Harness) -> None:
    for space in (OURS, THEIRS):
        post(store, store.key(space=space), message("hello"))
        claim = host(store)
        fail(store, claim, take(store, claim), is_final=True)
    agents = store.handle.agents
    assert store.handle.leases.revive(OURS, None) == 1
    parked = {each.ref.space: each.parked for each in agents.list(None, 10)}
    assert parked == {OURS: 0, THEIRS: 1}
    assert agents.counts(None) == {Life.ACTIVE: 2}


@case("P9 M14", "signals of every space are delivered, each in its own")
def signals_stay_in_their_space(store: Harness) -> None:
    refs = [store.key(space=space) for space in (OURS, THEIRS)]
    for ref in refs:
        alarm = later(store, "alarm", 10, f"of {ref.space}")
        store.handle.agents.set_signal(ref, alarm, JobKind.AGENT, store.now())
    store.clock.advance(10)
    assert len(deliver(store)) == len(refs)
    for _ in refs:
        claim = host(store)
        assert take(store, claim).text == f"of {claim.space}"

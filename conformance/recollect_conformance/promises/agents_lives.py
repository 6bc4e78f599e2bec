"""Lives of agents: asleep when nobody speaks to them, dead after long, made anew when spoken to."""

from __future__ import annotations

from functools import partial

from recollect.types.agents import (
    IDLE,
    POISON_PILL,
    Delivery,
    DueSignal,
    ItemKind,
    ItemState,
    Life,
    Signal,
)
from recollect.types.records import JobKind, JobState, KeyRef, NothingDue, Released, StaleClaim
from recollect_conformance.case import case
from recollect_conformance.harness import AGENT, SPACE, Harness
from recollect_conformance.inboxes import (
    CRON,
    LIFE,
    MEMORY_AGENT,
    agent,
    answered,
    begun,
    deliver,
    fail,
    finish,
    host,
    later,
    message,
    note,
    pass_time,
    post,
    release,
    spoken_to,
    state_of,
    step,
    take,
    thinking,
    work,
)
from recollect_conformance.lessons import POLICY


def _set(store: Harness, ref: KeyRef, signal: Signal) -> None:
    store.handle.agents.set_signal(ref, signal, JobKind.AGENT, store.now())


def _deliver(store: Harness, due: DueSignal) -> Delivery:
    return store.handle.agents.deliver(due, LIFE, store.now(), store.new_id)


# signals


@case("M14", "a signal comes into the inbox when its time has come, never before, and once")
def a_signal_comes_once(store: Harness) -> None:
    ref = store.key()
    _set(store, ref, later(store, "alarm", 10, "wake up"))
    assert store.handle.agents.next_signal_at() == later(store, "", 10).due_at
    assert pass_time(store, 9.999999) == []
    [due] = store.handle.agents.due_signals(later(store, "", 1).due_at, 9)
    assert _deliver(store, due) == Delivery.VOID, "not yet"
    assert pass_time(store, 0.000001) == [Delivery.POSTED]
    assert deliver(store) == []
    assert store.handle.agents.next_signal_at() is None
    turn = take(store, host(store))
    assert [(item.kind, item.text, item.origin) for item in turn.items] == [
        (ItemKind.SIGNAL, "wake up", "alarm")
    ]


@case("M14", "a signal takes the place of the one of the same name, and of no other")
def a_signal_is_replaced_by_name(store: Harness) -> None:
    ref, other = store.key(), store.key("another")
    _set(store, ref, later(store, "alarm", 10, "old"))
    _set(store, ref, later(store, "timer", 10, "timer"))
    _set(store, other, later(store, "alarm", 10, "theirs"))
    [early, *_] = [
        each
        for each in store.handle.agents.due_signals(later(store, "", 10).due_at, 9)
        if each.signal.body == "old"
    ]
    _set(store, ref, later(store, "alarm", 20, "new"))
    assert pass_time(store, 10) == [Delivery.POSTED, Delivery.POSTED]
    assert _deliver(store, early) == Delivery.VOID, "it was replaced by a later one"
    assert [each.body for each in agent(store, ref).signals] == ["new"]
    assert pass_time(store, 10) == [Delivery.POSTED]


@case("M14", "a signal that was cancelled does not come")
def a_signal_can_be_cancelled(store: Harness) -> None:
    ref = store.key()
    _set(store, ref, later(store, "alarm", 10))
    [due] = store.handle.agents.due_signals(later(store, "", 10).due_at, 9)
    assert store.handle.agents.cancel_signal(ref, "alarm")
    assert not store.handle.agents.cancel_signal(ref, "alarm")
    assert pass_time(store, 10) == []
    assert _deliver(store, due) == Delivery.VOID
    assert agent(store, ref).queued == 0


@case("M14 P5", "a signal that two deliver at once comes once")
def a_signal_at_once_comes_once(store: Harness) -> None:
    ref = store.key()
    _set(store, ref, later(store, "alarm", 10))
    store.clock.advance(10)
    [due] = store.handle.agents.due_signals(store.now(), 9)
    outcomes = store.at_once(*[partial(_deliver, store, due)] * 4)
    assert sorted(outcomes) == [Delivery.POSTED, *[Delivery.VOID] * 3]
    assert agent(store, ref).queued == 1


@case("M14", "deadlines that passed while nobody looked are honoured, the earliest first")
def late_signals_are_delivered(store: Harness) -> None:
    ref = answered(store, "hello", agent=CRON)
    second = answered(store, "hello", agent="/cron/second")
    _set(store, second, later(store, "alarm", 5))
    if not store.is_volatile:
        store.reopen()
    store.clock.advance(10 * LIFE.poison_pill_seconds)
    due = store.handle.agents.due_signals(store.now(), 2)
    assert [(each.ref, each.signal.name) for each in due] == [(second, "alarm"), (ref, IDLE)]
    assert [_deliver(store, each) for each in due] == [Delivery.POSTED, Delivery.SLEPT]
    assert agent(store, ref).life is Life.SLEEPING


@case("M14", "signals are listed with their agent, the next one first")
def signals_are_listed(store: Harness) -> None:
    ref = store.key()
    soon, late = later(store, "b", 5, "soon"), later(store, "a", 50, "late")
    for signal in (late, soon):
        _set(store, ref, signal)
    shown = agent(store, ref)
    assert shown.signals == (soon, late)
    assert shown.next_signal == soon
    assert (shown.life, shown.job_state) == (Life.ACTIVE, None)


# sleeping


@case("M14 M8", "an agent to whom nobody speaks falls asleep, and its session is marked")
def an_idle_agent_falls_asleep(store: Harness) -> None:
    ref = answered(store, "hello")
    assert store.current(ref).invalidated_at is None
    assert pass_time(store, LIFE.idle_seconds - 1) == []
    assert pass_time(store, 1) == [Delivery.SLEPT]
    shown = agent(store, ref)
    assert (shown.life, shown.since, shown.incarnation) == (Life.SLEEPING, store.now(), 1)
    session = store.current(ref)
    assert (session.invalidated_at, session.marked_at) == (2, store.now())
    assert work(store).key == session.id


@case("A4", "an agent that works on memory sleeps without being marked")
def a_memory_agent_sleeps_unmarked(store: Harness) -> None:
    ref = store.key("memory", agent=MEMORY_AGENT)
    post(store, ref, note("remember"))
    claim = work(store)
    finish(store, claim, take(store, claim))
    release(store, claim, later(store, IDLE, LIFE.idle_seconds))
    assert pass_time(store, LIFE.idle_seconds) == [Delivery.SLEPT]
    assert store.current(ref).invalidated_at is None
    assert store.handle.leases.claim("w", POLICY, store.now()) == NothingDue(None)


@case("M14", "an agent does not fall asleep while something waits for it or it is at work")
def an_agent_at_work_stays_awake(store: Harness) -> None:
    ref, _, _ = begun(store, "hello")
    _set(store, ref, later(store, IDLE, 1))
    assert pass_time(store, 1) == [Delivery.VOID]
    assert agent(store, ref).life is Life.ACTIVE
    assert agent(store, ref).signals == ()


@case("M14", "a message wakes an agent that sleeps, which is then the same one")
def a_message_wakes_a_sleeping_agent(store: Harness) -> None:
    ref = answered(store, "hello", agent=CRON)
    pass_time(store, LIFE.idle_seconds)
    store.clock.advance(5)
    post(store, ref, message("again"))
    shown = agent(store, ref)
    assert (shown.life, shown.since, shown.incarnation) == (Life.ACTIVE, store.now(), 1)
    assert shown.signals == (), "what would have ended it is cancelled"
    since = store.now()
    store.clock.advance(5)
    post(store, ref, message("and again"))
    assert agent(store, ref).since == since


# dying


@case("M14", "one that slept too long is dead, unless it is of a type that does not die")
def a_long_sleep_is_the_end(store: Harness) -> None:
    mortal, immortal = answered(store, "hello", agent=CRON), answered(store, "hello", agent=AGENT)
    assert pass_time(store, LIFE.idle_seconds) == [Delivery.SLEPT, Delivery.SLEPT]
    assert [each.name for each in agent(store, mortal).signals] == [POISON_PILL]
    assert agent(store, immortal).signals == ()
    assert pass_time(store, LIFE.poison_pill_seconds - 1) == []
    assert pass_time(store, 1) == [Delivery.DIED]
    assert pass_time(store, 10 * LIFE.poison_pill_seconds) == []
    assert agent(store, mortal).life is Life.DEAD
    assert agent(store, immortal).life is Life.SLEEPING


@case("M14", "an agent that is dead is made anew by the next message, with its history")
def a_dead_agent_is_made_anew(store: Harness) -> None:
    ref = answered(store, "hello", agent=CRON)
    pass_time(store, LIFE.idle_seconds)
    pass_time(store, LIFE.poison_pill_seconds)
    post(store, ref, message("again"))
    shown = agent(store, ref)
    assert (shown.life, shown.incarnation, shown.since) == (Life.ACTIVE, 2, store.now())
    take(store, host(store, lane=CRON))
    assert store.words(ref) == ["hello", "an answer", "again"]


@case("M14", "a death takes what was to happen later with it")
def a_death_takes_its_signals(store: Harness) -> None:
    ref = answered(store, "hello", agent=CRON)
    _set(store, ref, later(store, "alarm", 10 * LIFE.poison_pill_seconds))
    pass_time(store, LIFE.idle_seconds)
    assert pass_time(store, LIFE.poison_pill_seconds) == [Delivery.DIED]
    assert agent(store, ref).signals == ()
    assert store.handle.agents.next_signal_at() is None


def _asleep_with_a_parked_item(store: Harness) -> KeyRef:
    ref, claim, turn = begun(store, "hello", agent=CRON)
    post(store, ref, note("next"))
    assert fail(store, claim, turn, is_final=True) == Released()
    claim = host(store, lane=CRON)
    finish(store, claim, take(store, claim))
    release(store, claim, later(store, IDLE, LIFE.idle_seconds))
    assert pass_time(store, LIFE.idle_seconds) == [Delivery.SLEPT]
    return ref


@case("M14 M11", "an agent that takes up what was revived is awake, and does not die of its sleep")
def a_revived_turn_wakes_the_agent(store: Harness) -> None:
    ref = _asleep_with_a_parked_item(store)
    store.handle.leases.revive(SPACE, None)
    claim = host(store, lane=CRON)
    take(store, claim)
    shown = agent(store, ref)
    assert (shown.life, shown.signals, shown.incarnation) == (Life.ACTIVE, (), 1)
    assert pass_time(store, LIFE.poison_pill_seconds) == []


@case("M14 M11", "an agent for which something was revived does not die of its long sleep")
def nobody_dies_with_something_to_do(store: Harness) -> None:
    ref = _asleep_with_a_parked_item(store)
    store.handle.leases.revive(SPACE, None)
    assert pass_time(store, LIFE.poison_pill_seconds) == [Delivery.VOID]
    assert agent(store, ref).life is Life.SLEEPING
    take(store, host(store, lane=CRON))
    assert agent(store, ref).life is Life.ACTIVE


@case("M14 P5", "an agent that is killed loses its claim, its inbox and its signals")
def a_killed_agent_loses_everything(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    post(store, ref, message("next"))
    _set(store, ref, later(store, "alarm", 10))
    assert store.handle.agents.kill(ref, store.now())
    assert not store.handle.agents.kill(ref, store.now())
    shown = agent(store, ref)
    assert (shown.life, shown.since) == (Life.DEAD, store.now())
    assert (shown.queued, shown.signals, shown.job_state) == (0, (), JobState.IDLE)
    assert (state_of(store, ref, "hello"), state_of(store, ref, "next")) == (None, None)
    assert step(store, claim, thinking("hm")) == StaleClaim()
    assert finish(store, claim, turn) == StaleClaim()
    assert store.current(ref).invalidated_at == 1, "what it was told is remembered"
    assert store.handle.leases.claim("b", POLICY, store.now(), AGENT) == NothingDue(None)
    post(store, ref, message("again"))
    assert (agent(store, ref).incarnation, take(store, host(store)).text) == (2, "again")


@case("M14", "nobody can kill an agent that never was")
def no_agent_no_killing(store: Harness) -> None:
    ref = store.key()
    assert not store.handle.agents.kill(ref, store.now())
    assert store.handle.agents.get(ref) is None


@case("P5", "killing drops what is left to do, and what is done stays known")
def killing_keeps_what_is_done(store: Harness) -> None:
    ref = answered(store, "hello")
    store.handle.agents.kill(ref, store.now())
    assert state_of(store, ref, "hello") is ItemState.DONE
    post(store, ref, message("hello"))
    assert agent(store, ref).life is Life.DEAD, "it was done once"


# looking at them


@case("M14", "agents are listed, those that are awake first, and counted by how they live")
def agents_are_listed_and_counted(store: Harness) -> None:
    dead = answered(store, "hello", agent="/cron/dead")
    store.handle.agents.kill(dead, store.now())
    asleep = answered(store, "hello", agent="/cron/asleep")
    pass_time(store, LIFE.idle_seconds)
    first = spoken_to(store, "hello", agent="/cron/first")
    store.clock.advance(1)
    last = spoken_to(store, "hello", "more", agent="/cron/last")
    agents = store.handle.agents
    assert [each.ref for each in agents.list(SPACE, 10)] == [last, first, asleep, dead]
    assert [each.queued for each in agents.list(None, 10)] == [2, 1, 0, 0]
    assert [each.ref for each in agents.list(SPACE, 1)] == [last]
    assert agents.counts(SPACE) == {Life.ACTIVE: 2, Life.SLEEPING: 1, Life.DEAD: 1}
    assert agents.counts(None) == agents.counts(SPACE)


@case("M14", "an agent is shown with its session, what it works on and what it cannot do")
def an_agent_is_shown_as_it_is(store: Harness) -> None:
    ref, claim, turn = begun(store, "hello")
    post(store, ref, note("next"), note("last"))
    shown = agent(store, ref)
    assert (shown.session_id, shown.queued) == (store.current(ref).id, 3)
    assert (shown.job_state, shown.parked) == (JobState.CLAIMED, 0)
    fail(store, claim, turn, is_final=True)
    shown = agent(store, ref)
    assert (shown.job_state, shown.parked, shown.queued) == (JobState.DUE, 1, 2)

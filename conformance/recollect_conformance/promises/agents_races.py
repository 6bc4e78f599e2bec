"""Agents that many speak to, run and forget at once: one turn each, nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from recollect.types.agents import IDLE, Delivery, ItemState, Life, MoreWork, NoTurn, Turn
from recollect.types.records import Claim, JobKind, JobState, KeyRef, Released, StaleClaim
from recollect_conformance.case import case
from recollect_conformance.harness import AGENT, NEVER, SPACE, Harness
from recollect_conformance.inboxes import (
    LIFE,
    agent,
    answered,
    begun,
    fail,
    finish,
    host,
    idle,
    later,
    message,
    note,
    post,
    release,
    spoken_to,
    state_of,
    step,
    take,
    thinking,
)
from recollect_conformance.lessons import POLICY

THREADS = 8
ROUNDS = 12


def _run(store: Harness, owner: str) -> None:
    """Claim agents and do what waits for them until nothing is due; a claim may be lost."""
    while isinstance(claim := store.handle.leases.claim(owner, POLICY, store.now(), AGENT), Claim):
        while True:
            turn = store.handle.agents.take(claim, NEVER, store.now(), store.new_id)
            if isinstance(turn, Turn):
                finish(store, claim, turn, f"answer to {turn.text}")
                continue
            if isinstance(turn, StaleClaim) or release(store, claim) != MoreWork():
                break


@case("P3 P5", "one message that is posted at once is there once")
def a_message_at_once_is_there_once(store: Harness) -> None:
    ref = store.key()
    items = store.at_once(*[partial(post, store, ref, message("hello"))] * THREADS)
    assert {each[0].id for each in items} == {"hello"}
    assert (agent(store, ref).queued, agent(store, ref).incarnation) == (1, 1)
    assert take(store, host(store)).text == "hello"


@case("P3 P5", "messages that are posted at once are all answered, and each once")
def messages_at_once_are_all_answered(store: Harness) -> None:
    ref = store.key()

    def talk(number: int) -> None:
        for turn in range(ROUNDS):
            post(store, ref, note(f"{number}/{turn}"))

    talking = [partial(talk, number) for number in range(THREADS - 2)]
    store.at_once(*talking, partial(_run, store, "a"), partial(_run, store, "b"))
    _run(store, "c")
    said = store.words(ref)
    asked = [text for text in said if not text.startswith("answer")]
    assert sorted(asked) == sorted(f"{n}/{t}" for n in range(THREADS - 2) for t in range(ROUNDS))
    assert said[1::2] == [f"answer to {text}" for text in said[::2]]
    assert agent(store, ref).job_state is JobState.IDLE


@case("M14 P3", "an agent that is spoken to as it falls asleep answers, and never sleeps on it")
def speaking_meets_falling_asleep(store: Harness) -> None:
    for number in range(ROUNDS):
        ref = answered(store, "hello", key=f"key {number}")
        store.clock.advance(LIFE.idle_seconds)
        [due] = store.handle.agents.due_signals(store.now(), 9)
        jobs: list[Callable[[], object]] = [
            partial(store.handle.agents.deliver, due, LIFE, store.now(), store.new_id),
            partial(post, store, ref, message("again")),
        ]
        delivered, _ = store.at_once(*jobs)
        assert delivered in (Delivery.SLEPT, Delivery.VOID)
        assert (agent(store, ref).life, agent(store, ref).queued) == (Life.ACTIVE, 1)
        assert agent(store, ref).signals == ()
        assert store.handle.agents.kill(ref, store.now())


@case("P3", "an agent that is spoken to as it comes to rest is due, or told so")
def speaking_meets_resting(store: Harness) -> None:
    for number in range(ROUNDS):
        ref = spoken_to(store, "hello", key=f"key {number}")
        claim = host(store)
        finish(store, claim, take(store, claim))
        jobs: list[Callable[[], object]] = [
            partial(release, store, claim, idle(store)),
            partial(post, store, ref, message("again")),
        ]
        rested, _ = store.at_once(*jobs)
        assert rested in (Released(), MoreWork())
        claim = claim if rested == MoreWork() else host(store)
        assert take(store, claim).text == "again"
        assert agent(store, ref).signals == (), "what is to come puts it to sleep"


@case("M11 P3", "what is revived as the agent comes to rest is due, or told so")
def reviving_meets_resting(store: Harness) -> None:
    for number in range(ROUNDS):
        ref = spoken_to(store, "hello", key=f"key {number}")
        claim = host(store)
        turn = take(store, claim)
        post(store, ref, note("next"))
        fail(store, claim, turn, is_final=True)
        claim = host(store)
        finish(store, claim, take(store, claim))
        jobs: list[Callable[[], object]] = [
            partial(release, store, claim),
            partial(store.handle.leases.revive, SPACE, None),
        ]
        rested, _ = store.at_once(*jobs)
        claim = claim if rested == MoreWork() else host(store)
        assert take(store, claim).text == "hello"


@case("P5 M12", "an answer that is given at once by who lost the claim is stored once")
def an_answer_at_once_is_stored_once(store: Harness) -> None:
    ref, stale, turn = begun(store, "hello")
    store.clock.advance(POLICY.lease_seconds)
    current = host(store, "another")
    again = take(store, current)
    outcomes = store.at_once(
        *[partial(finish, store, stale, turn, "stale")] * 3,
        partial(finish, store, current, again, "fresh"),
    )
    assert outcomes[:3] == [StaleClaim()] * 3
    assert store.words(ref) == ["hello", "fresh"]


@case("P5 M14", "killing an agent at work leaves it dead, and its turn stored whole or not at all")
def killing_meets_finishing(store: Harness) -> None:
    for number in range(ROUNDS):
        ref = spoken_to(store, "hello", key=f"key {number}")
        claim = host(store)
        turn = take(store, claim)
        jobs: list[Callable[[], object]] = [
            partial(store.handle.agents.kill, ref, store.now()),
            partial(finish, store, claim, turn),
        ]
        killed, stored = store.at_once(*jobs)
        assert killed
        is_stored = stored != StaleClaim()
        assert (len(store.words(ref)) == 2) == is_stored
        assert state_of(store, ref, "hello") == (ItemState.DONE if is_stored else None)
        assert (agent(store, ref).life, agent(store, ref).queued) == (Life.DEAD, 0)


@case("P3 M14", "whatever meets in one agent, it is left in order")
def everything_meets_in_one_agent(store: Harness) -> None:
    ref = store.key()
    post(store, ref, message("first"))

    def play(number: int) -> None:
        for turn in range(ROUNDS):
            moves = _moves(store, ref, f"{number}/{turn}")
            moves[(number + turn * (number + 1)) % len(moves)]()

    store.at_once(*(partial(play, number) for number in range(THREADS)))
    store.handle.leases.revive(SPACE, None)
    _run(store, "at last")
    shown = agent(store, ref)
    assert (shown.queued, shown.parked, shown.job_state) == (0, 0, JobState.IDLE)
    claim = store.handle.leases.claim("nobody", POLICY, store.now(), AGENT)
    assert not isinstance(claim, Claim)
    numbers = [record.seq for record in store.everything(ref)]
    assert numbers == list(range(1, len(numbers) + 1))


def _moves(store: Harness, ref: KeyRef, name: str) -> list[Callable[[], object]]:
    agents = store.handle.agents
    return [
        partial(post, store, ref, message(name)),
        partial(_run, store, name),
        partial(_some_of_a_turn, store, name),
        partial(agents.set_signal, ref, later(store, IDLE, 0), JobKind.AGENT, store.now()),
        partial(_deliver_all, store),
        partial(store.handle.leases.revive, SPACE, None),
    ]


def _some_of_a_turn(store: Harness, owner: str) -> None:
    """Begin a turn, and let it fail."""
    claim = store.handle.leases.claim(owner, POLICY, store.now(), AGENT)
    if not isinstance(claim, Claim):
        return
    turn = store.handle.agents.take(claim, NEVER, store.now(), store.new_id)
    match turn:
        case Turn():
            step(store, claim, thinking("begun"))
            fail(store, claim, turn, delay=0)
        case NoTurn():
            release(store, claim)
        case StaleClaim():
            pass


def _deliver_all(store: Harness) -> None:
    for due in store.handle.agents.due_signals(store.now(), 9):
        store.handle.agents.deliver(due, LIFE, store.now(), store.new_id)

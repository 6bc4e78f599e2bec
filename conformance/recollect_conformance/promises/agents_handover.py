"""The hand-over to a memory-agent: with the cursor or not at all, a reference and never a copy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from recollect.types.agents import ItemKind, ItemState, Life, Turn
from recollect.types.records import JobKind, Outcome, Recorded, Released, StaleClaim
from recollect_conformance.case import case, refused
from recollect_conformance.harness import NEVER, SPACE, Harness
from recollect_conformance.inboxes import (
    MEMORY_AGENT,
    MEMORY_KEY,
    agent,
    claim_of,
    fail,
    finish,
    handed_over,
    handing,
    memory_agent,
    record_handing,
    release,
    state_of,
    take,
    work,
)
from recollect_conformance.lessons import POLICY, draft, due, lesson, statement

THREADS = 8


class _NoId(Exception):
    """The source of ids failed."""


def _no_id() -> str:
    raise _NoId


@case("A2 A5 M13", "a hand-over makes the memory-agent, and waits in its inbox with the cursor")
def a_hand_over_waits_with_the_cursor(store: Harness) -> None:
    source, claim = due(store)
    assert memory_agent(store) is None
    handed = handing(claim)
    assert record_handing(store, claim, handed) == Recorded(is_done=True)
    assert store.current(source).processed_until == 1
    ref = memory_agent(store)
    assert ref is not None
    item = store.handle.agents.item(ref, handed.item.id)
    assert item is not None
    assert (item.kind, item.origin) == (ItemKind.SYSTEM_MESSAGE, f"memory-worker:{claim.key}")
    assert (item.about, item.state) == (handed.item.about, ItemState.QUEUED)
    shown = agent(store, ref)
    assert (shown.life, shown.job, shown.queued) == (Life.ACTIVE, JobKind.MEMORY_AGENT, 1)
    assert work(store).kind is JobKind.MEMORY_AGENT


@case("A5 P11", "a hand-over holds no word of what was said")
def a_hand_over_holds_no_text(store: Harness) -> None:
    source, claim = due(store)
    [said] = store.words(source)
    record_handing(store, claim, handing(claim))
    ref = memory_agent(store)
    assert ref is not None
    taken = take(store, work(store))
    assert said not in taken.text
    assert taken.items[0].about == handing(claim).item.about
    assert all(said not in record.content for record in store.everything(ref))


@case("A2", "later stretches and other sessions go to the same memory-agent, in order")
def a_memory_agent_is_made_once(store: Harness) -> None:
    first, one = handed_over(store, key="one")
    second, two = handed_over(store, key="two")
    third, again = handed_over(store, key="one")
    assert first == second == third
    assert (one, agent(store, first).queued) == (again, 3)
    assert [each.ref for each in store.handle.agents.list(SPACE, 10)] == [first]
    claim = work(store)
    turn = take(store, claim)
    assert _sessions(turn) == [one, two, one]
    finish(store, claim, turn)
    assert release(store, claim) == Released()


def _sessions(turn: Turn) -> list[str | None]:
    return [None if item.about is None else item.about.session_id for item in turn.items]


@case("A7 A9", "stretches that wait are read in one turn, as many of them as one turn may have")
def stretches_are_read_together(store: Harness) -> None:
    given = [handed_over(store, key=f"key {number}")[1] for number in range(10)]
    claim = work(store)
    first = take(store, claim)
    assert _sessions(first) == given[:8]
    assert _sessions(take(store, claim)) == given[:8], "an interrupted turn goes on as it was"
    finish(store, claim, first)
    rest = take(store, claim)
    assert _sessions(rest) == given[8:]
    finish(store, claim, rest)
    assert release(store, claim) == Released()


@case("M11 A7", "stretches that were read together and failed are tried apart")
def what_failed_together_is_tried_apart(store: Harness) -> None:
    ref, bad = handed_over(store, key="bad")
    _, good = handed_over(store, key="good")
    claim = work(store)
    turn = take(store, claim)
    assert _sessions(turn) == [bad, good]
    assert fail(store, claim, turn, is_final=True) == Released(), "which of them, nobody knows"
    assert agent(store, ref).queued == 2
    claim = work(store)
    turn = take(store, claim)
    assert (_sessions(turn), turn.items[0].attempts) == ([bad], 1)
    assert fail(store, claim, turn, is_final=True) == Released()
    assert (agent(store, ref).queued, agent(store, ref).parked) == (1, 1)
    claim = work(store)
    turn = take(store, claim)
    assert _sessions(turn) == [good]
    finish(store, claim, turn)
    assert (agent(store, ref).queued, agent(store, ref).parked) == (0, 1)


@case("A2 M13", "a memory-agent that many sessions need at once is made once, and loses nothing")
def a_memory_agent_at_once_is_made_once(store: Harness) -> None:
    claims = [due(store, f"key {number}")[1] for number in range(THREADS)]
    jobs = [partial(record_handing, store, claim, handing(claim)) for claim in claims]
    assert store.at_once(*jobs) == [Recorded(is_done=True)] * THREADS
    [found] = store.handle.agents.list(SPACE, 10)
    assert found.queued == THREADS
    assert store.sessions.key_agents(SPACE, MEMORY_KEY) == [MEMORY_AGENT]
    assert len(store.sessions.rotations(found.ref)) == 1


@case("M13 P5", "a stale claim hands nothing over")
def a_stale_claim_hands_nothing_over(store: Harness) -> None:
    _, stale = due(store)
    store.clock.advance(POLICY.lease_seconds)
    assert work(store).key == stale.key
    assert record_handing(store, stale, handing(stale)) == StaleClaim()
    passed = store.handle.leases.record_pass(
        stale, 1, None, store.now(), store.new_id, handing(stale)
    )
    assert passed == StaleClaim()
    assert memory_agent(store) is None


@case("M13 P1", "a hand-over that fails half-way moves no cursor, and a cursor never moves alone")
def a_failed_hand_over_moves_nothing(store: Harness) -> None:
    source, claim = due(store)
    before = store.current(source)
    with refused(_NoId):
        store.handle.leases.record(
            *(claim, 1, Outcome.HANDED_OVER, None, store.now(), None, _no_id, handing(claim))
        )
    assert store.current(source) == before
    assert memory_agent(store) is None
    assert record_handing(store, claim, handing(claim)) == Recorded(is_done=True)


@case("M13", "what is learned and what is handed over are stored together")
def a_lesson_and_a_hand_over_together(store: Harness) -> None:
    _, claim = due(store)
    learned = lesson(draft(statement("likes tea")))
    stored = store.handle.leases.record(
        *(claim, 1, Outcome.EXTRACTED, None, store.now(), learned, store.new_id, handing(claim))
    )
    assert stored == Recorded(is_done=True)
    assert store.handle.extractions.get(SPACE, claim.key) is not None
    ref = memory_agent(store)
    assert ref is not None
    assert agent(store, ref).queued == 1


@case("M13", "a new pass over a session hands it over as well")
def a_pass_hands_over(store: Harness) -> None:
    memory, session_id = handed_over(store)
    first = work(store)
    finish(store, first, take(store, first))
    release(store, first)
    assert store.handle.extractions.request_passes(SPACE, session_id, store.now()) == 1
    claim = work(store)
    assert claim.kind is JobKind.EXTRACT_AGAIN
    again = lesson(draft(statement("likes tea")), is_whole=True, pass_number=2)
    store.handle.leases.record_pass(
        *(claim, 1, again, store.now(), store.new_id, handing(claim, named="again"))
    )
    assert state_of(store, memory, "again") is ItemState.QUEUED


@case("A7 M13", "what was handed over is not done before the memory-agent has ended its turn")
def a_hand_over_is_done_with_its_turn(store: Harness) -> None:
    ref, _ = handed_over(store)
    claim = work(store)
    turn = take(store, claim)
    [item] = turn.items
    store.clock.advance(POLICY.lease_seconds)
    again = work(store, "another")
    assert take(store, again).items == (replace(item, state=ItemState.TAKEN, turn_id=turn.id),)
    assert state_of(store, ref, item.id) is ItemState.TAKEN
    finish(store, again, take(store, again))
    assert state_of(store, ref, item.id) is ItemState.DONE


@case("M13 P3", "a stretch that is handed over again under the same name is there once")
def a_hand_over_is_taken_in_once(store: Harness) -> None:
    source, claim = due(store)
    handed = handing(claim)
    record_handing(store, claim, handed)
    store.say(source, store.text(), policy=NEVER)
    store.sleep(source)
    again = claim_of(store, claim.key)
    record_handing(store, again, handed)
    ref = memory_agent(store)
    assert ref is not None
    assert agent(store, ref).queued == 1
    assert store.current(source).processed_until == 2

"""The agent system's own duties: tickets, lists, life, and what it refuses."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

import recollect
from recollect.agents.profile import AgentProfile
from recollect.agents.reply import Reply, Ticket
from recollect.agents.system import AgentSystem
from recollect.clock import ManualClock
from recollect.errors import AnswerPending, InvalidValue, TooLarge, TurnFailed
from recollect.types.agents import Life

REPLY = Reply(text="hello", turn_id="t")


# tickets


def test_a_ticket_gives_what_it_was_settled_with_each_time() -> None:
    ticket = Ticket("i", lambda: None)
    ticket.settle(REPLY)
    ticket.settle(TurnFailed("too late"))
    assert ticket.is_settled
    assert (ticket.result(0), ticket.result()) == (REPLY, REPLY)


def test_a_ticket_raises_what_it_was_settled_with() -> None:
    ticket = Ticket("i", lambda: None)
    ticket.settle(TurnFailed("parked"))
    with pytest.raises(TurnFailed, match="parked"):
        ticket.result()


def test_a_ticket_that_nobody_settles_says_what_went_wrong_last() -> None:
    ticket = Ticket("i", lambda: None)
    with pytest.raises(AnswerPending):
        ticket.result(0)
    ticket.last_error = "the model is away"
    with pytest.raises(AnswerPending, match="the model is away"):
        ticket.result(0)


def test_a_ticket_looks_for_what_another_process_may_have_done() -> None:
    assert Ticket("i", lambda: REPLY).result(20) == REPLY


def test_a_ticket_wakes_whoever_waits() -> None:
    ticket = Ticket("i", lambda: None)
    thread = threading.Timer(0.01, lambda: ticket.settle(REPLY))
    thread.start()
    assert ticket.result() == REPLY
    thread.join()


def test_a_ticket_that_nobody_holds_is_not_kept_for_them(memory: recollect.Memory) -> None:
    """Those who answer may run elsewhere: nobody here learns that they have."""
    system = memory.agents(only=True)
    held = system.post("assistant", "hello", id="m-1")
    assert system.post("assistant", "hello", id="m-1") is held
    dropped = weakref.ref(system.post("assistant", "hello", id="m-2"))
    assert dropped() is None
    memory.agents().tick()
    again = system.post("assistant", "hello", id="m-2")
    assert again.result(0) == held.result(20)


# the system


@pytest.fixture
def system(memory: recollect.Memory) -> AgentSystem:
    return memory.agents()


def test_it_can_be_started_and_stopped_any_number_of_times(system: AgentSystem) -> None:
    for _ in range(3):
        system.start()
        system.start()
        assert system.ask("assistant", "hello", timeout=20).is_offline
        system.stop()
        system.stop()


def test_it_is_a_context_manager(memory: recollect.Memory) -> None:
    with memory.agents() as system:
        assert system.ask("assistant", "hello", timeout=20).is_offline


def test_closing_the_memory_stops_it_first(clock: ManualClock) -> None:
    before = set(threading.enumerate())
    memory = recollect.open(":memory:", settings={}, clock=clock)
    system = memory.agents()
    system.start()
    system.ask("assistant", "hello", timeout=20)
    memory.close()
    names = {thread.name for thread in set(threading.enumerate()) - before}
    assert not {name for name in names if name.startswith("recollect-")}


def test_several_are_independent_and_share_the_store(memory: recollect.Memory) -> None:
    one, other = memory.agents(), memory.agents()
    ticket = one.post("assistant", "hello")
    other.tick()
    assert ticket.result(20).is_offline
    assert other.state("assistant") == one.state("assistant")


@pytest.mark.parametrize("agent", ["", "a\nb", {"type": "wizard", "id": "x"}, None, 5])
def test_what_is_no_agent_is_refused(system: AgentSystem, agent: Any) -> None:
    with pytest.raises(InvalidValue):
        system.post(agent, "hello")


@pytest.mark.parametrize("id_", ["a\nb", "x" * 5000, 5])
def test_an_id_is_a_label(system: AgentSystem, id_: Any) -> None:
    with pytest.raises(InvalidValue):
        system.post("assistant", "hello", id=id_)


def test_a_message_that_is_too_large_is_refused(clock: ManualClock) -> None:
    with recollect.open(":memory:", settings={"record_bytes_max": 1024}, clock=clock) as memory:
        system = memory.agents()
        with pytest.raises(TooLarge):
            system.post("assistant", "x" * 2000)
        assert system.agents() == []


def test_text_that_a_database_cannot_hold_is_answered_all_the_same(system: AgentSystem) -> None:
    ticket = system.post("assistant", "a\0b \ud800 c")
    system.tick()
    assert ticket.result(0).is_offline


@pytest.mark.parametrize("name", ["idle", "poison-pill", "", "a\nb", None])
def test_a_signal_has_a_name_of_its_own(system: AgentSystem, name: Any) -> None:
    with pytest.raises(InvalidValue):
        system.signal("assistant", name, 1)


def test_who_never_lived_cannot_be_killed(system: AgentSystem) -> None:
    assert not system.kill("assistant")
    system.post("assistant", "hello")
    assert system.kill("assistant")
    assert not system.kill("assistant")


def test_the_awake_are_listed_first(
    memory: recollect.Memory, system: AgentSystem, clock: ManualClock
) -> None:
    for name in ("one", "two"):
        system.post(name, "hello", space="alice")
    system.tick()
    clock.advance(60)
    system.tick()
    system.post("two", "again", space="alice")
    found = system.agents("alice")
    assert [(each.ref.agent_id, each.life) for each in found] == [
        ("/user/two", Life.ACTIVE),
        ("/user/one", Life.SLEEPING),
    ]
    assert system.agents("bob") == []
    assert len(memory.status().agents) == 2


def test_profiles_are_by_name_and_by_descriptor(memory: recollect.Memory) -> None:
    system = memory.agents(
        {
            "critic": AgentProfile(instructions="criticise"),
            recollect.descriptors.CronAgent("nightly"): AgentProfile(instructions="clean"),
        }
    )
    profiles = system._profiles
    assert set(profiles) == {"/user/critic", "/cron/nightly"}


def test_nothing_waits_for_a_store_that_is_there(system: AgentSystem) -> None:
    assert system.unstored == 0
    system.post("assistant", "hello")
    system.tick()
    assert system.unstored == 0

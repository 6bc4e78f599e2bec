"""P3, P5 and A7 under kill -9: an agent dies at every point between a message and its rest.

The message is there, the answer is there once in the end, no tool runs twice, the mark is right,
and the inbox is empty.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.profile import AgentProfile
from recollect.agents.system import AgentSystem
from recollect.clock import ManualClock
from recollect.messages import Role
from recollect.models.protocol import ChatRole
from recollect.types.agents import Life
from recollect.types.records import JobState
from recollect_conformance.scripted import ScriptedServer, calls
from recollect_conformance.scripted_frames import Received
from tests.crash.agent_child import SAID, AgentChildren
from tests.crash.worker_child import EPOCH, SETTINGS, Child, wait_for
from tests.hosted_agents import AGENT, MEMORY_AGENT, MEMORY_KEY, SPACE, tool
from tests.scripted_answers import OTHERS_BY_RULES

KILLED = -signal.SIGKILL
REACHED_MAX = 400  # far above how many points one life passes
OF_A_TURN = {
    *("agent.taken", "agent.answered", "agent.finished", "claim.claimed"),
    *("append.sequenced", "append.inserted", "write.committing", "write.committed"),
}
OF_FILING = {
    *("signal.taken", "record.handed", "record.advanced", "record.learned"),
    *("agent.taken", "agent.answered", "agent.finished", "documents.applied"),
}
QUIET: dict[str, Any] = SETTINGS | {
    "lease_seconds": 30,
    "extractor": "rules",
    **OTHERS_BY_RULES,
    "consolidation": "off",  # whose pages are not the agents'
}


def ringing(received: Received) -> Any:
    """Rings first, then says what came of it."""
    last = received.messages[-1]
    return calls(("ring", {})) if last.role is ChatRole.USER else f"answer: {last.text}"


# Every one of the points a life passes has its turn in the long run, some of them in every run.
IS_LONG_RUN = bool(os.environ.get("RECOLLECT_TORTURE"))
STEP = 1 if IS_LONG_RUN else 8
pytestmark = [pytest.mark.torture] if IS_LONG_RUN else []  # the long run takes what is marked


class Lives:
    """What ends each life: its n-th point, until one gets through; then each named one by itself.

    Lives differ in how many points they pass, so that counting alone may miss one.
    """

    def __init__(self, children: AgentChildren, names: set[str]) -> None:
        self._children = children
        self._names = names
        self.died_at: list[str] = []

    def orders(self) -> Iterator[dict[str, Any]]:
        nth, deaths = 1, -1
        while len(self.died_at) > deaths:
            assert nth < REACHED_MAX, "no life ever passed"
            deaths = len(self.died_at)
            yield {"nth": nth, "point": ""}
            nth += STEP
        for name in sorted(self._names - set(self.died_at)):
            yield {"nth": 1, "point": name}
        print(f"died {len(self.died_at)} times: {sorted(set(self.died_at))}")
        assert self._names <= set(self.died_at)

    def live(self, life: str, **order: Any) -> Child:
        child = self._children.start(life, **order)
        code = self._children.wait(child.pid)
        assert code in (0, KILLED), child.said("trace")
        self.died_at += child.said("died")
        return child


def assert_one_turn(memory: recollect.Memory, key: str) -> None:
    """One message, at most one call with its result, one answer, and nothing that waits."""
    session = memory.space(SPACE).session(key, AGENT)
    records = session.all(rotations=True)
    said = [record.content for record in records if record.role is Role.USER]
    answers = [r for r in records if r.role is Role.ASSISTANT and not r.tool_calls]
    assert said == ["hello"], key
    assert len(answers) == 1, [record.content for record in records]
    assert records[-1] == answers[0]
    assert sum(bool(record.tool_calls) for record in records) == 1
    state = session.store.agents.get(session.ref)
    assert state is not None
    assert (state.queued, state.parked, state.job_state) == (0, 0, JobState.IDLE)
    assert session.state.invalidated_at is None, "four records mark nothing"


def test_no_moment_of_a_turn_is_a_bad_one_to_die_at(durable_store_url: str, tmp_path: Path) -> None:
    clock = ManualClock(EPOCH)
    rung: list[object] = []
    with ScriptedServer(ringing) as server:
        settings = QUIET | {"model": "openai:scripted", "model_base_url": server.url}
        with (
            AgentChildren(tmp_path, durable_store_url, settings) as children,
            recollect.open(durable_store_url, settings=settings, clock=clock) as memory,
        ):
            survivor = memory.agents(default=AgentProfile(tools=[tool("ring", rung.append)]))
            survivor.tick()
            lives = Lives(children, OF_A_TURN)
            for number, order in enumerate(lives.orders()):
                key = f"k{number}"
                clock.advance(3600)
                child = lives.live("talk", now=clock.now().isoformat(), key=key, **order)
                rung.clear()
                clock.advance(40)  # the lease of the dead has run out, no agent is asleep yet
                answer = recovered(survivor, key)
                told = child.said("answered")
                assert told in ([], [answer]), "who was told has been told what is stored"
                assert len(child.said("rang")) + len(rung) <= 1, "a tool ran twice"
                assert_one_turn(memory, key)
                clock.advance(60)
                survivor.tick()
                session = memory.space(SPACE).session(key, AGENT)
                state = session.store.agents.get(session.ref)
                assert state is not None
                assert state.life is Life.SLEEPING
                memory.work()
                assert session.state.processed_until == session.state.last_seq


def recovered(survivor: AgentSystem, key: str) -> str:
    """What the next process makes of it, once the message is said again under its id."""
    ticket = survivor.post(AGENT, "hello", space=SPACE, key=key, id="m1")

    def is_answered() -> bool:
        survivor.tick()
        return ticket.is_settled

    wait_for(is_answered)
    return ticket.result(0).text


def test_no_moment_of_falling_asleep_and_filing_is_a_bad_one_to_die_at(
    durable_store_url: str, tmp_path: Path
) -> None:
    """M13, A7: the mark, the hand-over and the documents, each all or nothing, and once."""
    clock = ManualClock(EPOCH)
    with (
        AgentChildren(tmp_path, durable_store_url, QUIET) as children,
        recollect.open(durable_store_url, settings=QUIET, clock=clock) as memory,
    ):
        survivor = memory.agents()
        lives = Lives(children, OF_FILING)
        for number, order in enumerate(lives.orders()):
            space = f"space-{number}"
            clock.advance(3600)
            ticket = survivor.post(AGENT, SAID, space=space, key="k")
            survivor.tick()
            assert ticket.result(0).is_offline
            clock.advance(60)
            lives.live("doze", now=clock.now().isoformat(), **order)
            wait_for(partial(is_filed, memory, survivor, clock, space))
            assert_filed_once(memory, space)


def is_filed(
    memory: recollect.Memory, survivor: AgentSystem, clock: ManualClock, space_name: str
) -> bool:
    """Whether the survivor has come to the end of it. A server lets go of the dead in its time."""
    clock.advance(40)
    survivor.tick()
    memory.work()
    agent = memory.space(space_name).find_session(MEMORY_KEY, MEMORY_AGENT)
    state = None if agent is None else agent.store.agents.get(agent.ref)
    return state is not None and not state.queued


def assert_filed_once(memory: recollect.Memory, space_name: str) -> None:
    space = memory.space(space_name)
    session = space.session("k", AGENT)
    state = session.state
    assert (state.invalidated_at, state.processed_until) == (None, state.last_seq)
    (fact,) = [each for each in space.facts.list() if "teal" in each.content]
    assert len(fact.sources) == 1
    agent = space.find_session(MEMORY_KEY, MEMORY_AGENT)
    assert agent is not None
    assert [each.role for each in agent.all(rotations=True)] == [Role.NOTE, Role.ASSISTANT]
    assert agent.state.invalidated_at is None
    held = agent.store.agents.get(agent.ref)
    assert held is not None
    assert (held.queued, held.parked) == (0, 0)
    pages = [space.documents.read(node.path).body for node in space.documents.tree("~/memory")]
    lines = [line for body in pages for line in body.splitlines() if "teal" in line.lower()]
    assert len(lines) == 1, pages


def test_a_seconds_difference_in_clocks_breaks_nothing(durable_store_url: str) -> None:
    """Two hosts whose clocks differ: the later one waits for the lease, the turn is made once."""
    ahead, behind = ManualClock(EPOCH + timedelta(seconds=5)), ManualClock(EPOCH)
    with ScriptedServer(lambda _: "done") as server:
        settings = QUIET | {"model": "openai:scripted", "model_base_url": server.url}
        with (
            recollect.open(durable_store_url, settings=settings, clock=ahead) as one,
            recollect.open(durable_store_url, settings=settings, clock=behind) as two,
        ):
            first, second = one.agents(), two.agents()
            ticket = first.post(AGENT, "hello", space=SPACE)
            second.tick()
            first.tick()
            assert ticket.result(5).text == "done"
            assert len(server.requests) == 1
            assert len(one.space(SPACE).session("main", AGENT).all()) == 2

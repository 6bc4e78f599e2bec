"""Processes that host an agent, for a test to kill at any point; they have their own nursery.

Each life does one thing and dies at the n-th point it reaches: any, or the one it is told.
"""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import recollect
from recollect import crashpoints
from recollect.agents.profile import AgentProfile
from recollect.clock import ManualClock
from tests.crash.worker_child import LIVES, Children, Journal, Order, main
from tests.hosted_agents import AGENT, SPACE, tool

SAID = "My favourite colour is teal."


class AgentChildren(Children):
    """Children that know the lives of this module."""

    module = "tests.crash.agent_child"


def opened(order: Order) -> recollect.Memory:
    clock = ManualClock(datetime.fromisoformat(order["now"]))
    return recollect.open(order["url"], settings=order["settings"], clock=clock)


def arm(order: Order, journal: Journal) -> None:
    left = itertools.count(order["nth"], -1)

    def die(name: str) -> None:
        if order["point"] in ("", name) and next(left) == 1:
            journal.write(died=name)
            os.kill(os.getpid(), signal.SIGKILL)

    crashpoints.arm(die)


def talk(order: Order, journal: Journal) -> None:
    """Say something to an agent with a tool, and run it."""

    def ring(_: Mapping[str, Any]) -> str:
        journal.write(rang=True)
        return "it rang"

    with opened(order) as memory:
        system = memory.agents(default=AgentProfile(tools=[tool("ring", ring)]))
        arm(order, journal)
        ticket = system.post(AGENT, "hello", space=SPACE, key=order["key"], id="m1")
        journal.write(acknowledged=True)
        system.tick()
        journal.write(answered=ticket.result(0).text)
        crashpoints.arm(None)


def doze(order: Order, journal: Journal) -> None:
    """Run what is due by now: agents fall asleep, and what they said is learned and filed."""
    with opened(order) as memory:
        system = memory.agents()
        arm(order, journal)
        system.tick()
        crashpoints.arm(None)


def warm_up() -> None:
    """Load what is loaded when it is first used, up to the files of a generation."""
    with tempfile.TemporaryDirectory() as directory:
        settings = {"extractor": "rules", "memories_root": directory, "agent_idle_seconds": 30}
        clock = ManualClock()
        with recollect.open(":memory:", settings=settings, clock=clock) as memory:
            system = memory.agents()
            system.post(AGENT, SAID, space=SPACE)
            for _ in range(3):
                system.tick()
                memory.work()
                clock.advance(24 * 3600)


LIVES |= {"talk": talk, "doze": doze}

if __name__ == "__main__":
    main(warm_up)

"""Processes that consolidate or forget, for a test to kill at any point, with their own nursery.

Each life does one thing and dies at the n-th point it reaches, or at its n-th step on files.
"""

from __future__ import annotations

from recollect import crashpoints
from tests.crash.agent_child import arm, opened, warm_up
from tests.crash.test_publish import Death
from tests.crash.worker_child import LIVES, Children, Journal, Order, main
from tests.hosted_agents import SPACE


class GenerationChildren(Children):
    """Children that know the lives of this module."""

    module = "tests.crash.generation_child"


def consolidate(order: Order, journal: Journal) -> None:
    """Make the generation that is due, and its files."""
    with opened(order) as memory:
        worker = memory.worker()
        if order.get("step"):
            Death(order["step"]).arm()
        else:
            arm(order, journal)
        journal.write(generations=worker.tick().generations)
        crashpoints.arm(None)


def forget(order: Order, journal: Journal) -> None:
    """Forget a session, and publish what is left."""
    with opened(order) as memory:
        arm(order, journal)
        memory.space(SPACE).forget(session=order["session"])
        crashpoints.arm(None)


LIVES |= {"consolidate": consolidate, "forget": forget}

if __name__ == "__main__":
    main(warm_up)

"""Processes that import a log, for a test to kill at any point, with their own nursery."""

from __future__ import annotations

from pathlib import Path

from recollect import crashpoints
from recollect.importers import running
from recollect.importers.generic import GenericJsonl
from recollect.importers.running import Importing
from tests.crash.agent_child import arm, opened
from tests.crash.worker_child import LIVES, Children, Journal, Order, main
from tests.hosted_agents import SPACE


class ImportChildren(Children):
    """Children that know the life of this module."""

    module = "tests.crash.import_child"


def take_in(order: Order, journal: Journal) -> None:
    """Import a log in small batches."""
    with opened(order) as memory:
        running.BATCH_ITEMS = 3
        arm(order, journal)
        Importing(memory, SPACE, GenericJsonl()).run([Path(order["log"])])
        crashpoints.arm(None)


LIVES |= {"import": take_in}

if __name__ == "__main__":
    main()

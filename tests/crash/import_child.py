"""Processes that import a log, for a test to kill at any point, with their own nursery."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
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

    def __init__(self, directory: Path, url: str, settings: Mapping[str, object]) -> None:
        super().__init__(directory, url, settings)
        self._nursery.communicate()
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.import_child"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


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

"""P1, P5 and D5 under kill -9 inside edits to documents: each is made or not, the tree is sound."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect_conformance import Harness
from recollect_conformance.pages import assert_sound, find, page
from tests.crash.appender import SPACE
from tests.crash.writers import Nursery, Writers

KILLED = -signal.SIGKILL
REACHED_MAX = 200  # far above how often one life passes a point
POINTS = ("documents.applied", "write.committing", "write.committed")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as warm:
        warm.open_gate()
        yield warm


def assert_tree_is_sound(url: str, writers: Writers, point: str) -> None:
    """The whole tree, and in it every line that was acknowledged, and none that was not made."""
    acknowledged = set(writers.acknowledged())
    pending = {text for writer in writers.started for text in writer.pending()} - acknowledged
    made = acknowledged | pending if point == "write.committed" else acknowledged
    with closing(Harness(lambda: open_store(url, Settings(), ManualClock()))) as store:
        lines = page(store, "memory/hub", SPACE).body.split("\n\n")[1:]
        assert len(lines) == len(set(lines)), "made twice"
        assert set(lines) == made
        for writer in writers.started:
            one, two = (find(store, f"memory/{writer.name}/{n}", SPACE) for n in ("one", "two"))
            assert (one is None) == (two is None), "half of a set of edits"
        assert_sound(store, "memory", space=SPACE)


@pytest.mark.parametrize("point", POINTS)
def test_no_moment_of_an_edit_is_a_bad_one_to_die_at(
    nursery: Nursery, durable_store_url: str, tmp_path: Path, point: str
) -> None:
    """One store, killed each time it reaches the point, until a life passes without."""
    with Writers(nursery, tmp_path, durable_store_url) as writers:
        for nth in range(1, REACHED_MAX):
            writer = writers.start("documents", point=point, nth=nth)
            code = writers.wait(writer.pid)
            assert code in (0, KILLED), writer.failures()
            assert_tree_is_sound(durable_store_url, writers, point)
            if code == 0:
                break
        print(f"{point}: died {nth - 1} times")
        assert nth > len(POINTS), f"hardly a writer ever reached {point}"
        assert code == 0, "no life ever passed"

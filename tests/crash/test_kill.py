"""P1 and P2 under kill -9: at random instants, and each time at every named crash point."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect import crashpoints
from tests.crash.appender import SPACE
from tests.crash.soundness import assert_store_is_sound
from tests.crash.writers import Nursery, Writer, Writers

SEED = 20261115
WRITERS = 4
KILLED = -signal.SIGKILL
REACHED_MAX = 500  # far above how often one life passes a point
# Those of a worker are in test_worker_kill.py, of documents in test_document_kill.py, of agents in
# test_agents.py, of a generation in test_consolidation.py.
ELSEWHERE = ("claim.", "record.", "documents.", "agent.", "signal.", "generation.", "import.")
POINTS = [name for name in crashpoints.POINTS if not name.startswith(ELSEWHERE)]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as warm:
        warm.open_gate()
        yield warm


def kill_at_random(nursery: Nursery, url: str, directory: Path, kills: int, seed: int) -> None:
    print(f"seed {seed}, {kills} kills")
    choice = random.Random(seed)
    with Writers(nursery, directory, url) as writers:
        alive = [start(writers, choice) for _ in range(WRITERS)]
        for _ in range(kills):
            victim = alive.pop(choice.randrange(WRITERS))
            # Some die young, while they open the store; most after they have done something.
            if choice.random() < 0.8:
                wait_for_work(victim)
            time.sleep(choice.random() * 0.02)  # not to wait for anything: the random instant
            assert writers.kill(victim.pid) == KILLED, victim.failures()
            alive.append(start(writers, choice, victim.retries()))
        for victim in alive:
            wait_for_work(victim)
            writers.kill(victim.pid)
        last = writers.start("open")
        assert writers.wait(last.pid) == 0, last.failures()
        assert not writers.failures()
        check(url, writers, kills)


def start(writers: Writers, choice: random.Random, retries: object = ()) -> Writer:
    return writers.start("random", seed=choice.getrandbits(32), retries=retries)


def wait_for_work(writer: Writer) -> None:
    deadline = time.monotonic() + 60
    while not writer.acknowledged() and not writer.failures():
        assert time.monotonic() < deadline, writer.entries()
        time.sleep(0.001)


def check(url: str, writers: Writers, kills: int) -> None:
    acknowledged = writers.acknowledged()
    assert len(acknowledged) > kills
    with recollect.open(url) as memory:
        records = assert_store_is_sound(memory, SPACE, stored=acknowledged)
    unsure = {text for writer in writers.started for text in writer.pending()}
    assert len(acknowledged) <= records <= len(set(acknowledged) | unsure)
    print(f"{records} records, {len(acknowledged)} acknowledged")


def test_no_acknowledged_append_is_lost_to_kill_9_at_random_instants(
    nursery: Nursery, new_store_url: str, tmp_path: Path
) -> None:
    kill_at_random(nursery, new_store_url, tmp_path, 100, SEED)


@pytest.mark.torture
def test_no_acknowledged_append_is_lost_to_2_000_kills(
    nursery: Nursery, new_store_url: str, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    kill_at_random(nursery, new_store_url, tmp_path, 2_000, seed)


def expected(writers: Writers, point: str) -> tuple[set[str], set[str]]:
    """What must be there and what must not: only the commit makes the difference."""
    acknowledged = set(writers.acknowledged())
    pending = {text for writer in writers.started for text in writer.pending()}
    if point == "write.committed":
        return acknowledged | pending, set()
    return acknowledged, pending - acknowledged


@pytest.mark.parametrize("point", POINTS)
def test_no_moment_is_a_bad_one_to_die_at(
    nursery: Nursery, new_store_url: str, tmp_path: Path, point: str
) -> None:
    """One store, killed each time it reaches the point, until a life passes without."""
    with Writers(nursery, tmp_path, new_store_url) as writers:
        for nth in range(1, REACHED_MAX):
            writer = writers.start("points", point=point, nth=nth)
            code = writers.wait(writer.pid)
            assert code in (0, KILLED), writer.failures()
            with recollect.open(new_store_url) as memory:
                stored, absent = expected(writers, point)
                assert_store_is_sound(memory, SPACE, stored=stored, absent=absent, purged=True)
            if code == 0:
                break
        print(f"{point}: died {nth - 1} times")
        assert nth > 1, f"no writer ever reached {point}"
        assert code == 0, "no life ever passed"

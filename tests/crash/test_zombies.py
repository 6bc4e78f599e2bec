"""P5: a worker that was stopped past its lease and goes on later changes nothing."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

import recollect
from recollect.types.records import JobKind
from tests.crash.worker_child import (
    SETTINGS,
    Child,
    Children,
    Telling,
    assert_all_is_processed_exactly_once,
    dump,
    wait_for,
)

ROUNDS = 20
ROUNDS_TORTURE = 500
SHORT = {"lease_seconds": 0.2, "worker_batch": 1}


def freeze(children: Children, *, notices: bool) -> Child:
    zombie = children.start("freeze", notices=notices)
    zombie.wait_until_it_says("freezing")
    wait_for(lambda: psutil.Process(zombie.pid).status() == psutil.STATUS_STOPPED)
    return zombie


def raise_zombies(url: str, directory: Path, rounds: int) -> None:
    settings = SETTINGS | SHORT
    takeovers = 0
    with (
        Children(directory, url, SHORT) as children,
        recollect.open(url, settings=settings) as memory,
    ):
        session = memory.space("alice").session("k")
        for number in range(rounds):
            session.append_many([{"role": "user", "content": f"{number}-{n}"} for n in range(3)])
            session.sleep()
            # Every other one records at once, before it can notice that it is one.
            zombie = freeze(children, notices=number % 2 == 0)
            wait_for(lambda: memory.work(Telling()) and session.state.invalidated_at is None)
            takeovers += 1
            before = dump(memory)
            zombie.send(signal.SIGCONT)
            assert children.wait(zombie.pid) == 0, zombie.said("trace")
            assert (zombie.said("processed"), zombie.said("stale")) == ([0], [1])
            assert dump(memory) == before
        job = memory.store.leases.get("alice", JobKind.EXTRACT, session.id)
        assert job is not None
        assert job.token >= 3 * rounds  # the zombie's claim, the takeover, and its end
        assert assert_all_is_processed_exactly_once(memory) == 3 * rounds
        ranges = memory.space("alice").sessions.ranges(session.id)
        assert "zombie" not in {span.reason for span in ranges}
        assert len(ranges) == rounds
    print(f"{rounds} zombies, {takeovers} takeovers")


def test_a_zombie_changes_nothing(durable_store_url: str, tmp_path: Path) -> None:
    raise_zombies(durable_store_url, tmp_path, ROUNDS)


@pytest.mark.torture
def test_500_zombies_change_nothing(durable_store_url: str, tmp_path: Path) -> None:
    raise_zombies(durable_store_url, tmp_path, ROUNDS_TORTURE)

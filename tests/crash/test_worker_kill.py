"""P3 and P4 under kill -9: four workers and an appender, at random instants and at every point."""

from __future__ import annotations

import os
import random
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest

import recollect
from recollect.clock import ManualClock
from tests.crash.worker_child import (
    EPOCH,
    SETTINGS,
    Child,
    Children,
    assert_all_is_processed_exactly_once,
    assert_marks_and_jobs_agree,
    assert_ranges_are_sound,
    drain,
    sessions_of,
)

SEED = 20261115
KILLS = int(os.environ.get("RECOLLECT_KILLS", "100"))
KILLED = -signal.SIGKILL
WORKERS = 4
APPENDER_PAUSE = 0.01
REACHED_MAX = 500  # far above how often one life passes a point
POINTS = (
    "claim.claimed",
    "record.advanced",
    "record.learned",
    "record.ranged",
    "write.committing",
    "write.committed",
)


def start_worker(children: Children, choice: random.Random) -> Child:
    return children.start("work", seed=choice.getrandbits(32))


def start_appender(children: Children, choice: random.Random) -> Child:
    return children.start("append", seed=choice.getrandbits(32), pause=APPENDER_PAUSE)


def kill_at_random(url: str, directory: Path, kills: int, seed: int) -> None:
    print(f"seed {seed}, {kills} kills")
    choice = random.Random(seed)
    with Children(directory, url) as children:
        recollect.open(url, settings=SETTINGS).close()
        appender = start_appender(children, choice)
        workers = [start_worker(children, choice) for _ in range(WORKERS)]
        for number in range(kills):
            if number % 10 == 9:
                appender.wait_until_it_says("acknowledged")
                assert children.kill(appender.pid) == KILLED
                appender = start_appender(children, choice)
                continue
            victim = workers.pop(choice.randrange(WORKERS))
            # Some die young, while they open the store; most in the middle of their work.
            if choice.random() < 0.8:
                victim.wait_until_it_says("processing")
            time.sleep(choice.random() * 0.02)  # not to wait for anything: the random instant
            assert children.kill(victim.pid) == KILLED, victim.said("trace")
            workers.append(start_worker(children, choice))
        appender.wait_until_it_says("acknowledged")
        for child in (appender, *workers):
            assert children.kill(child.pid) == KILLED, child.said("trace")
        check(url, children)


def check(url: str, children: Children) -> None:
    assert not children.failures()
    with recollect.open(url, settings=SETTINGS) as memory:
        assert_marks_and_jobs_agree(memory)
        drain(memory)
        records = assert_all_is_processed_exactly_once(memory, children.acknowledged())
    takeovers = children.takeovers()
    print(f"{records} records, {takeovers} takeovers")
    assert takeovers > 0, "nobody ever took over"


def test_nothing_is_lost_doubled_or_stuck_when_workers_are_killed(
    new_store_url: str, tmp_path: Path
) -> None:
    kill_at_random(new_store_url, tmp_path, KILLS, SEED)


@pytest.mark.torture
def test_nothing_is_lost_doubled_or_stuck_after_2_000_kills(
    new_store_url: str, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    kill_at_random(new_store_url, tmp_path, max(KILLS, 2_000), seed)


@pytest.mark.parametrize("point", POINTS)
def test_no_moment_is_a_bad_one_for_a_worker_to_die_at(
    durable_store_url: str, tmp_path: Path, point: str
) -> None:
    """One store, whose worker is killed each time it reaches the point, until one gets through."""
    clock = ManualClock(EPOCH)
    with (
        Children(tmp_path, durable_store_url) as children,
        recollect.open(durable_store_url, settings=SETTINGS, clock=clock) as memory,
    ):
        code, nth = KILLED, 0
        while code == KILLED:
            nth += 1
            assert nth < REACHED_MAX, "no life ever passed"
            clock.advance((EPOCH + timedelta(hours=nth) - clock.now()).total_seconds())
            session = memory.space("alice").session(f"k{nth % 3}")
            session.append_many([{"role": "user", "content": f"{nth}-{n}"} for n in range(3)])
            session.sleep()
            child = children.start("point", point=point, nth=nth, seed=SEED + nth)
            code = children.wait(child.pid)
            assert code in (0, KILLED), child.said("trace")
            assert_marks_and_jobs_agree(memory)
            for state in sessions_of(memory, "alice"):
                assert_ranges_are_sound(memory, state)
        print(f"{point}: died {nth - 1} times, {children.takeovers()} takeovers")
        assert nth > 1, f"no worker ever reached {point}"
        expected = [f"{life}-{n}" for life in range(1, nth + 1) for n in range(3)]
        assert assert_all_is_processed_exactly_once(memory, expected) == len(expected)

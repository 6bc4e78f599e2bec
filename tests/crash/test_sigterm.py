"""P7: SIGTERM at any instant ends a worker in time, and counts nothing against what it held."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

import recollect
from recollect.types.records import JobState
from tests.crash.worker_child import (
    SETTINGS,
    Children,
    Telling,
    assert_all_is_processed_exactly_once,
    assert_marks_and_jobs_agree,
)

SEED = 20261115
ROUNDS = 25
ROUNDS_TORTURE = 500
STOP_SECONDS_MAX = 5.0  # the grace of 0.1 s, and what a busy machine adds
# Leases that nobody outlives: what was not given back would still be claimed at the end.
LONG = {"lease_seconds": 3600, "worker_concurrency": 3}


def terminate_at_random(url: str, directory: Path, rounds: int, seed: int) -> None:
    print(f"seed {seed}, {rounds} rounds")
    choice = random.Random(seed)
    slowest, given_back = 0.0, 0
    with (
        Children(directory, url, LONG) as children,
        recollect.open(url, settings=SETTINGS | LONG) as memory,
    ):
        sessions = [memory.space("alice").session(f"k{number}") for number in range(6)]
        for number in range(rounds):
            for session in sessions:
                session.append("user", f"{number} {session.key}")
                session.sleep()
            worker = children.start("work", seed=choice.getrandbits(32), stubborn=0.3)
            worker.wait_until_it_says(choice.choice(("ready", "working", "processing")))
            time.sleep(choice.random() * 0.03)  # not to wait for anything: the random instant
            started = time.monotonic()
            worker.send(signal.SIGTERM)
            assert children.wait(worker.pid) == 0, worker.said("trace")
            slowest = max(slowest, time.monotonic() - started)
            given_back += assert_no_attempt_was_burned(memory)
        while memory.work(Telling()):
            pass
        assert_no_attempt_was_burned(memory)
        texts = [f"{number} {session.key}" for number in range(rounds) for session in sessions]
        assert assert_all_is_processed_exactly_once(memory, texts) == len(texts)
        assert children.takeovers() == 0
    assert slowest < STOP_SECONDS_MAX
    print(f"slowest stop {slowest:.2f} s, {given_back} jobs left to others")


def assert_no_attempt_was_burned(memory: recollect.Memory) -> int:
    assert_marks_and_jobs_agree(memory)
    jobs = memory.store.leases.jobs(None, 500)
    for job in jobs:
        assert job.state is JobState.DUE, job
        assert (job.failures, job.takeovers, job.last_error) == (0, 0, None), job
    return sum(job.kind == "extract" for job in jobs)


def test_a_worker_that_is_told_to_stop_ends_in_time_and_burns_no_attempt(
    durable_store_url: str, tmp_path: Path
) -> None:
    terminate_at_random(durable_store_url, tmp_path, ROUNDS, SEED)


@pytest.mark.torture
def test_500_workers_that_are_told_to_stop_burn_no_attempt(
    durable_store_url: str, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    terminate_at_random(durable_store_url, tmp_path, ROUNDS_TORTURE, seed)

"""Seeds of the simulation: no schedule, crash, pause, skew or lost answer breaks an invariant.

A failure names its seed. To play that one again, or others than these: RECOLLECT_SIMULATION_FIRST
and RECOLLECT_SIMULATION_SEEDS say which the long run takes (`make torture ARGS="-k simulation"`).
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from recollect.store.protocol import Store
from tests.simulation.play import SeedFailed, play, stage
from tests.simulation.world import new_store

SEEDS = 1_000
CHUNK = 125  # seeds of one test, so that processes can share them
SEEDS_TORTURE = 1_000_000
CHUNK_TORTURE = 1_000


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    store = new_store()
    yield store
    store.close()


@pytest.fixture(autouse=True)
def on_stage() -> Iterator[None]:
    with stage():
        yield


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_breaks_an_invariant(store: Store, first: int) -> None:
    for seed in range(first, first + CHUNK):
        play(store, seed)


def test_a_seed_replays_identically(store: Store) -> None:
    for seed in range(10):
        first = play(store, seed)
        dump = first.checker.dump()
        another_store = new_store()
        again = play(another_store, seed)
        assert again.trace() == first.trace()
        assert again.checker.dump() == dump
        another_store.close()


def test_seeds_differ(store: Store) -> None:
    assert play(store, 1).trace() != play(store, 2).trace()


# What the seeds have to go through for their silence to mean something.
REACHED = (
    "a piece",
    "a stale fail",
    "a stale finish_recurring",
    "a stale record",
    "a stale release",
    "a stale renew",
    "a takeover",
    "an answer lost",
    "claimed to due by defer",
    "claimed to due by fail",
    "claimed to due by record",
    "claimed to due by release",
    "claimed to idle by mark_processed",
    "claimed to idle by purge",
    "claimed to idle by record",
    "claimed to idle by set_mode",
    "claimed to parked by claim",
    "claimed to parked by fail",
    "idle to due by append",
    "idle to due by mark_idle",
    "more was said meanwhile",
    "parked to due by append",
    "parked to due by revive",
    "the cap",
)


def test_the_seeds_go_through_everything_that_can_go_wrong(store: Store) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        seen.update(play(store, seed).checker.ledger.seen)
        if all(seen[each] for each in REACHED):
            return
    raise AssertionError(f"never reached: {[each for each in REACHED if not seen[each]]}")


@pytest.mark.torture
def test_no_seed_of_a_million_breaks_an_invariant() -> None:
    first = int(os.environ.get("RECOLLECT_SIMULATION_FIRST", SEEDS))
    count = int(os.environ.get("RECOLLECT_SIMULATION_SEEDS", SEEDS_TORTURE))
    chunks = [
        range(start, min(start + CHUNK_TORTURE, first + count))
        for start in range(first, first + count, CHUNK_TORTURE)
    ]
    failures: list[str] = []
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as processes:
        for failed in processes.map(failures_of, chunks):
            failures += failed
    print(f"{count:,} seeds from {first:,} on, {len(failures)} failed")
    assert not failures, "\n\n".join(failures[:5])


def failures_of(seeds: range) -> list[str]:
    store, failures = new_store(), []
    with stage():
        for seed in seeds:
            try:
                play(store, seed)
            except SeedFailed as failure:
                failures.append(str(failure))
    store.close()
    return failures

"""Seeds of consolidation: no schedule, crash, skew or lost answer breaks G2 to G5, G9 or G11.

A failure names its seed. RECOLLECT_SIMULATION_FIRST and RECOLLECT_SIMULATION_SEEDS say which seeds
the long run takes (`make torture ARGS="-k generations"`).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import pytest

from recollect import phase1
from recollect.ids import Ids
from recollect.memory import Memory
from recollect.store.sql import queries
from recollect.types.records import JobKind
from tests.simulation.checkers import Violation
from tests.simulation.generations_actors import Person, Working
from tests.simulation.generations_world import SPACES, Stage, World
from tests.simulation.play import SeedFailed

STEPS = 60
SEEDS = 60
# A mistake shows in the first few, nearly always; which ones changes with every statement we add.
SEEDS_FOR_A_MISTAKE = 20 * SEEDS
CHUNK = 10  # seeds of one test, so that processes can share them
SEEDS_TORTURE = 5_000
CHUNK_TORTURE = 100
ROUNDS_MAX = 200
CLAIMS_MAX = 500  # of one round


@contextmanager
def quiet() -> Iterator[None]:
    """No word about failures, no real pauses, and ids from the seed only while it lasts."""
    disabled, pauses = logging.root.manager.disable, phase1.STORE_PAUSES
    drawn = Ids.__init__.__defaults__
    phase1.STORE_PAUSES = ()
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        phase1.STORE_PAUSES = pauses
        Ids.__init__.__defaults__ = drawn
        logging.disable(disabled)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def on_stage() -> Iterator[None]:
    with quiet():
        yield


def play(stage: Stage, seed: int) -> World:
    """Run a seed; what it breaks is told with the end of its trace."""
    world = World(stage, seed)
    try:
        _play(world)
    except (Exception, Violation) as error:
        trace = world.trace()
        last = "\n".join(f"  {event}" for event in trace[-20:])
        raise SeedFailed(f"seed {seed}, after {len(trace)} events: {error}\n{last}") from error
    return world


def _play(world: World) -> None:
    people = [Person(world, name) for name in ("ann", "ben")]
    workers = [Working(world, f"worker-{number}") for number in (1, 2, 3)]
    world.actors += [*people, *workers]
    world.run(STEPS)
    world.heal()
    memory = world.memory()
    for space in SPACES:
        memory.space(space).generations.resume()
    _come_to_rest(world, workers, memory)
    world.checker.check_rest(world.clock.now())
    for space in SPACES:
        # What was used meanwhile ranks the next generation, and makes none due by itself.
        memory.store.generations.request(space, world.clock.now())
    _come_to_rest(world, workers, memory)
    world.checker.check_end(world.clock.now())


def _come_to_rest(world: World, workers: list[Working], memory: Memory) -> None:
    """Let everybody go on, with time passing, until nothing is due; the sweep has just been."""
    store = memory.store
    for _ in range(ROUNDS_MAX):
        world.clock.advance(130)
        world.heal()
        store.leases.revive(None, None)
        store.generations.hurry(None)
        for upkeep in (JobKind.IDLE_SWEEP, JobKind.STARTUP_SCAN):
            store.leases.ensure_recurring(upkeep, world.clock.now())
            store.leases.make_due(upkeep)
        _drain(world, workers)
        if world.checker.is_at_rest():
            return
    raise Violation("stuck: something is due for ever")


def _drain(world: World, workers: list[Working]) -> None:
    for _ in range(CLAIMS_MAX):
        for each in workers:
            world.act(each)
        if all(each.has_nothing for each in workers):
            return
    raise Violation("more claims than all the jobs could need")


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_seed_breaks_an_invariant_of_generations(stage: Stage, first: int) -> None:
    for seed in range(first, first + CHUNK):
        play(stage, seed)


def test_a_seed_of_generations_replays_identically(stage: Stage) -> None:
    for seed in range(3):
        first = play(stage, seed)
        image = first.checker.image()
        again = play(stage, seed)
        assert again.trace() == first.trace()
        assert again.checker.image() == image


# What the seeds have to go through for their silence to mean something.
REACHED = (
    "a generation",
    "a stale run",
    "an answer lost",
    "an outdated run",
    "died after it: forget_session",
    "died after it: publish",
    "died before it: publish",
    "due again",
    "forgotten",
    "nothing changed",
    "restored",
    "something removed",
)


def test_the_seeds_go_through_everything_that_can_go_wrong(stage: Stage) -> None:
    seen: Counter[str] = Counter()
    for seed in range(6 * SEEDS):
        seen.update(play(stage, seed).checker.ledger.seen)
        if all(seen[each] for each in REACHED):
            return
    raise AssertionError(f"never reached: {[each for each in REACHED if not seen[each]]}")


# A query, what is taken out of it, and what is put in its place.
MISTAKES = {
    "publish without the token": ("lock_consolidation", "AND token = :token", ""),
    "what was lost meanwhile is published": ("lost_memories", "LIMIT 1", "LIMIT 0"),
    "the watermark goes back": (
        "complete_consolidation",
        "max(consolidated, :revision)",
        ":revision",
    ),
    "another state than was read is consumed": (
        "consume_memory",
        "selected_revision = :revision",
        "selected_revision = revision",
    ),
    "what is removed stays consumed": (
        "deselect_memory",
        "selected_for_phase2 = FALSE",
        "upto = upto",
    ),
    "what was forgotten leaves no tombstone": (
        "bury_memory",
        "SELECT :space",
        "SELECT '-' || :space",
    ),
    "a change does not make it due": ("note_urgent", "changed = changed + 1,", ""),
    "time changes nothing": ("expire_selection", "changed = changed + 1,", ""),
    "earlier versions are kept": ("forgettable_documents", "g.last_generation IS NOT NULL", "0"),
    "the least used goes first": ("select_memories", "e.usage_count DESC", "e.usage_count"),
}


# Seeds that notice what few do, tried before all others. One that no longer does costs time only.
LIKELY = {
    "the watermark goes back": 65,
    "a change does not make it due": 1091,
    "time changes nothing": 98,
    "the least used goes first": 41,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_statement_of_generations_is_caught(
    monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    query, old, new = MISTAKES[mistake]
    right = queries("sqlite")[query]
    assert old in right, right
    monkeypatch.setitem(queries("sqlite"), query, right.replace(old, new))
    stage = Stage()
    try:
        assert caught(stage, LIKELY.get(mistake, 0))
    finally:
        stage.close()


def caught(stage: Stage, likely: int) -> str:
    for seed in (likely, *range(SEEDS_FOR_A_MISTAKE)):
        try:
            play(stage, seed)
        except SeedFailed as failure:
            return str(failure).partition("\n")[0]
    return ""


@pytest.mark.torture
def test_no_seed_of_thousands_breaks_an_invariant_of_generations() -> None:
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
    stage, failures = Stage(), []
    with quiet():
        for seed in seeds:
            try:
                play(stage, seed)
            except SeedFailed as failure:
                failures.append(str(failure))
    stage.close()
    return failures

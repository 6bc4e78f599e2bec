"""One seed from beginning to end: trouble first, then healing, then nothing may be left over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from recollect import phase1
from recollect.store.protocol import Store
from tests.simulation.actors import Appender, OriginalWorker, PlainWorker, SomeWorker
from tests.simulation.checkers import Violation
from tests.simulation.snapshot import SessionRow
from tests.simulation.world import SKEW_SECONDS_MAX, SharedTimeHolder, World

STEPS = 64
PIECE_RECORDS = 4  # so small that sessions have several
ROUNDS_MAX = 400  # more than any schedule of backoffs, leases and sweeps takes


class SeedFailed(AssertionError):
    """A seed that breaks something: which, what, and the events before it."""


@contextmanager
def stage() -> Iterator[None]:
    """Small pieces, and no word about failures: here they are the point, not news."""
    piece_records, disabled = phase1.PIECE_RECORDS, logging.root.manager.disable
    phase1.PIECE_RECORDS = PIECE_RECORDS
    pauses, phase1.STORE_PAUSES = phase1.STORE_PAUSES, ()  # real ones, in a world of its own time
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        phase1.PIECE_RECORDS = piece_records
        phase1.STORE_PAUSES = pauses
        logging.disable(disabled)


def play(store: Store, seed: int, holder: type[SharedTimeHolder] = SharedTimeHolder) -> World:
    """Run a seed; what it breaks is told with the end of its trace."""
    world = World(store, seed, holder)
    try:
        _play(world)
    except (Exception, Violation) as error:
        trace = world.trace()
        last = "\n".join(f"  {event}" for event in trace[-12:])
        raise SeedFailed(f"seed {seed}, after {len(trace)} events: {error}\n{last}") from error
    return world


def _play(world: World) -> None:
    appenders = [Appender(world, f"appender-{n}") for n in (1, 2)]
    workers: list[SomeWorker] = [
        PlainWorker(world, "plain-1"),
        PlainWorker(world, "plain-2"),
        OriginalWorker(world, "original"),
    ]
    world.actors += [*appenders, *workers]
    world.run(STEPS)
    world.is_healthy = True
    for appender in appenders:
        appender.deliver_all()
    world.checker.check_history()
    _drain(world, workers)
    world.checker.check_drained(are_parked_excused=True)
    world.broken.clear()
    world.store.leases.revive(None, None)
    _drain(world, workers)
    world.checker.check_drained(are_parked_excused=False)
    world.checker.check_history()


def _drain(world: World, workers: list[SomeWorker]) -> None:
    """Let the workers go on until all is done, with time passing whenever nothing is due."""
    world.let_time_pass(world.settings.idle_sweep_seconds + 2 * SKEW_SECONDS_MAX)
    claims_before = world.checker.ledger.claims
    attempts_max = world.settings.job_failures_max + world.settings.job_takeovers_max + 1
    for _ in range(ROUNDS_MAX):
        for each in workers:
            world.act(each)
        if world.is_nothing_due and all(each.has_nothing for each in workers):
            if not any(_is_left(world, each) for each in world.checker.last.sessions.values()):
                return
            world.let_time_pass(130.0)
        claims = world.checker.ledger.claims - claims_before
        if claims > 2 * len(world.checker.last.jobs) * attempts_max:
            raise Violation("M11: more claims than all the jobs could need")
    raise Violation("stuck: something is due for ever")


def _is_left(world: World, session: SessionRow) -> bool:
    job = world.checker.last.job_of.get(session.id)
    is_parked = job is not None and job.state == "parked"
    return bool(session.remembered) and not is_parked and session.done < session.last_seq

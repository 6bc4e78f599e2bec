"""A world of several spaces that several workers distil and consolidate, from one seed.

As in `world.py`, inside a call of the store others may go first, and calls fail before or after
their commit; here whoever calls may also die on the spot. The workers and the calls of people are
the real ones, through the public interface.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, cast

from recollect.clock import ManualClock, SystemClock
from recollect.config import Settings
from recollect.errors import OutcomeUnknown, StoreUnavailable
from recollect.ids import Ids
from recollect.memory import Memory
from recollect.redaction import Redactor
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from tests.simulation.actors import Crash
from tests.simulation.generations_checker import Checker
from tests.simulation.snapshot import connection_of
from tests.simulation.world import Actor, SharedTimeHolder, SkewedClock

SPACES: Final = ("alice", "bob", "carol")
AGGREGATES: Final = (
    *("sessions", "records", "marks", "leases", "extractions", "facts", "ledger", "documents"),
    *("search", "vectors", "agents", "generations", "erasure"),
)
NESTING_MAX: Final = 3
SKEW_SECONDS_MAX: Final = 20.0
STEPS_OF_TIME: Final = (0.0, 1.0, 20.0, 61.0, 61.0, 200.0, 2000.0, 40_000.0, 90_000.0)

SETTINGS: Final = tuple(
    Settings(
        pipeline="extraction",
        consolidation_top_n=top_n,
        max_unused_days=1,
        consolidation_cooldown_seconds=cooldown,
        consolidation_patience_seconds=patience,
        generations_kept=kept,
        backoff_seconds=20.0,
        backoff_seconds_max=60.0,
        job_takeovers_max=5,
        extract_on_session_start="off",
    )
    for top_n, cooldown, patience, kept in (
        (100, 0.0, 3600.0, 20),
        (3, 120.0, 60.0, 2),
        (2, 600.0, 3600.0, 3),
    )
)


class Stage:
    """One store in memory for many worlds; each begins with nothing in it."""

    def __init__(self) -> None:
        self.store = open_store(":memory:", Settings(), SystemClock())
        self.connection = connection_of(self.store)
        memory = Memory(self.store, SETTINGS[0], ManualClock())
        self.redactor: Redactor = memory.runtime.redactor()  # takes longer than a world
        self._image = self.connection.serialize("main")

    def clear(self) -> None:
        self.connection.deserialize("main", self._image)

    def close(self) -> None:
        self.store.close()


class World:
    """Everything there is, from one seed."""

    def __init__(self, stage: Stage, seed: int) -> None:
        stage.clear()
        self.random = random.Random(seed)
        self.clock = ManualClock()
        self.settings = self.random.choice(SETTINGS)
        self.checker = Checker(stage.connection, self.settings)
        self.is_healthy = False
        self.actors: list[Actor] = []
        self.skews: list[SkewedClock] = []
        self._acting: list[Actor] = []
        self._trace: list[tuple[str, ...]] = []
        self._redactor = stage.redactor
        self.store = cast(Store, WatchedStore(self, stage.store))
        # Ids are drawn from the seed as well, wherever they are made.
        Ids.__init__.__defaults__ = (random.Random(seed),)

    def memory(self) -> Memory:
        """A process of its own, with a clock that is a little off."""
        spread = SKEW_SECONDS_MAX
        clock = SkewedClock(self.clock, round(self.random.uniform(-spread, spread), 3))
        self.skews.append(clock)
        memory = Memory(self.store, self.settings, clock)
        memory.runtime._redactor = self._redactor
        return memory

    def holder(self, owner: str, clock: SkewedClock, policy: Any) -> SharedTimeHolder:
        """Leases run on the clock of the database."""
        holder = SharedTimeHolder(self.store, policy, clock, owner=owner, randomness=self.random)
        holder.store, holder.true = self.store, self.clock
        return holder

    # what happens

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        if self.random.random() < 0.1:
            seconds = self.random.choice(STEPS_OF_TIME)
            self.clock.advance(seconds)
            self.note("time", str(seconds))
            return
        free = [actor for actor in self.actors if actor not in self._acting]
        if free:
            self.act(self.random.choice(free))

    def act(self, actor: Actor) -> None:
        self._acting.append(actor)
        try:
            actor.step()
        finally:
            self._acting.pop()

    def interleave(self, chance: float) -> None:
        if self.is_healthy or not self._acting or len(self._acting) >= NESTING_MAX:
            return
        if self.random.random() < chance:
            self.run(self.random.randint(1, 3))

    def happens(self, chance: float) -> bool:
        return not self.is_healthy and bool(self._acting) and self.random.random() < chance

    def heal(self) -> None:
        self.is_healthy = True
        for skew in self.skews:
            skew.offset = 0.0

    def note(self, *what: str) -> None:
        self._trace.append((self._acting[-1].name if self._acting else "world", *what))

    def trace(self) -> list[tuple[str, ...]]:
        return self._trace


class WatchedStore:
    """The store as everybody here sees it."""

    def __init__(self, world: World, store: Store) -> None:
        for name in AGGREGATES:
            setattr(self, name, _Watched(world, getattr(store, name)))
        # Nothing happens there that this is about.
        self.audit, self.contexts, self.serving = store.audit, store.contexts, store.serving
        self.describe, self.keep, self.listen = store.describe, store.keep, store.listen


class _Watched:
    def __init__(self, world: World, target: object) -> None:
        self._world = world
        self._target = target

    def __getattr__(self, name: str) -> Callable[..., Any]:
        world, method = self._world, getattr(self._target, name)

        def call(*args: Any, **named: Any) -> Any:
            return _watched_call(world, name, lambda: method(*args, **named), args)

        setattr(self, name, call)
        return call


def _watched_call(world: World, name: str, method: Callable[[], Any], args: tuple[Any, ...]) -> Any:
    world.interleave(0.3 if name == "publish" else 0.04)
    if world.happens(0.004):
        world.note(name, "unavailable")
        raise StoreUnavailable("nobody answers")
    _die_by_chance(world, name, "before it")
    checker = world.checker
    was_current = name != "publish" or checker.is_current(args[0])
    image = b"" if was_current else checker.image()
    result = method()
    world.note(name, type(result).__name__)
    if image and image != checker.image():
        raise AssertionError("P5: a claim that was lost changed something")
    checker.after(name, args, result, was_current)
    if world.happens(0.006):
        world.note(name, "answer lost")
        checker.ledger.seen["an answer lost"] += 1
        raise OutcomeUnknown("the answer was lost")
    _die_by_chance(world, name, "after it")
    return result


def _die_by_chance(world: World, name: str, when: str) -> None:
    if world.happens(0.02 if name in ("publish", "forget_session") else 0.002):
        world.note(name, f"died {when}")
        world.checker.ledger.seen[f"died {when}: {name}"] += 1
        raise Crash

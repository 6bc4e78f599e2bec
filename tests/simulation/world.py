"""A world in which time, chance and the order of events come from one seed.

Actors take turns: the scheduler picks who goes next, and inside a call of the store it may let the
others go first. Faults are drawn here as well: calls that fail before or after their commit, time
that jumps. The same seed gives the same trace.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, cast

from recollect.clock import Clock, ManualClock, SystemClock
from recollect.config import Settings
from recollect.errors import OutcomeUnknown, RecollectError, StoreUnavailable
from recollect.ids import Ids
from recollect.leases import Leaseholder
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.types.records import Claim, KeyRef, LeasePolicy, MarkPolicy, SessionBirth
from tests.simulation import snapshot
from tests.simulation.checkers import FENCED, Call, Checker, Violation
from tests.simulation.snapshot import SessionRow

READS: Final = frozenset({"get", "after", "current", "waiting_newest", "max_seq", "counts"})
NESTING_MAX: Final = 3
SKEW_SECONDS_MAX: Final = 90.0
STEPS_OF_TIME: Final = (0.0, 0.5, 5.0, 20.0, 61.0, 61.0, 200.0, 700.0, 7300.0)

# Several, because what one hides another shows; made once, because checking them takes time.
SETTINGS: Final = tuple(
    Settings(
        mark_threshold=threshold,
        mark_unit=unit,
        worker_running_max=cap,
        job_failures_max=3,
        job_takeovers_max=takeovers,
        backoff_seconds=20.0,
        backoff_seconds_max=100.0,
        idle_sweep_every_seconds=900.0,
        scan_idle_seconds=120.0,
        scan_sessions_max=2,
    )
    for threshold, unit, cap, takeovers in (
        (3, "records", 3, 4),
        (0, "records", 1, 20),
        (1, "turns", 2, 3),
        (5, "records", 64, 2),
    )
)


class Actor(Protocol):
    """Somebody who does one thing at a time."""

    name: str

    def step(self) -> None: ...


class SkewedClock:
    """A clock that is off by so many seconds, and may be set."""

    def __init__(self, true: ManualClock, offset: float) -> None:
        self._true = true
        self.offset = offset

    def now(self) -> datetime:
        return self._true.now() + timedelta(seconds=self.offset)


class SharedTimeHolder(Leaseholder):
    """Leases run on the database's clock, whatever the worker's own clock says."""

    store: Store
    true: ManualClock

    def lease_time(self) -> datetime:
        return self.true.now()


class World:
    """Everything there is, from one seed."""

    def __init__(
        self, store: Store, seed: int, holder: type[SharedTimeHolder] = SharedTimeHolder
    ) -> None:
        self.random = random.Random(seed)
        self.clock = ManualClock()
        self.settings = self.random.choice(SETTINGS)
        connection = snapshot.connection_of(store)
        snapshot.empty(connection)
        self.checker = Checker(connection, self.settings)
        self._trace: list[tuple[object, ...]] = []
        self.is_healthy = False
        self.is_nothing_due = False  # until time passes or a job changes
        self._real = store
        self._holder = holder
        self.actors: list[Actor] = []
        self._acting: list[Actor] = []
        self.store = cast(Store, WatchedStore(self, store))
        self.keys = self._open_keys()
        self.broken = [ref.key_id for ref in self.keys if self.random.random() < 0.2]

    def _open_keys(self) -> list[KeyRef]:
        ids = Ids(self.clock, self.random)
        names = (
            ("alice", "one", "/user/a"),
            ("alice", "two", "/user/a"),
            ("bob", "one", "/user/b"),
        )
        refs = [
            self._real.sessions.open_key(
                space, key, agent, SessionBirth(), self.clock.now(), ids.new
            )
            for space, key, agent in names[: self.random.randint(1, 3)]
        ]
        self.checker.look()
        return refs

    # who is there

    def holder(self, owner: str, clock: Clock) -> SharedTimeHolder:
        holder = self._holder(
            self.store,
            self.settings.lease_policy,
            clock,
            owner=owner,
            randomness=self.random,
        )
        holder.store, holder.true = self.store, self.clock
        return holder

    def skewed_clock(self) -> SkewedClock:
        spread = SKEW_SECONDS_MAX
        return SkewedClock(self.clock, round(self.random.uniform(-spread, spread), 3))

    # what happens

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        if self.random.random() < 0.08:
            self.let_time_pass(self.random.choice(STEPS_OF_TIME))
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

    def let_time_pass(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.is_nothing_due = False
        self.note("time", seconds)

    def interleave(self, chance: float, steps: int = 1) -> None:
        """Let others act in the middle of what somebody does."""
        if self.is_healthy or len(self._acting) >= NESTING_MAX:
            return
        if self.random.random() < chance:
            self.run(steps)

    def happens(self, chance: float) -> bool:
        """Whether something bad happens now."""
        return not self.is_healthy and self.random.random() < chance

    def note(self, *what: object) -> None:
        self._trace.append((self._acting[-1].name if self._acting else "world", *what))

    def trace(self) -> list[object]:
        """What happened, in order."""
        return [_told(event) for event in self._trace]

    def is_broken(self, session: SessionRow) -> bool:
        return session.key_id in self.broken


class WatchedStore:
    """The store as actors see it: every call may fail, is noted, and is checked after it."""

    def __init__(self, world: World, store: Store) -> None:
        self.sessions = _Watched(world, store.sessions)
        self.records = _Watched(world, store.records)
        self.marks = _Watched(world, store.marks)
        self.leases = _Watched(world, store.leases)
        self.search, self.generations = store.search, store.generations  # for the upkeep


class _Watched:
    def __init__(self, world: World, target: object) -> None:
        self._world = world
        self._target = target

    def __getattr__(self, name: str) -> Callable[..., Any]:
        world, method = self._world, getattr(self._target, name)

        def call(*args: Any, **named: Any) -> Any:
            return _watched_call(world, name, method, args, named)

        setattr(self, name, call)
        return call


def _watched_call(
    world: World,
    name: str,
    method: Callable[..., Any],
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    world.interleave(0.1)
    if world.happens(0.02):
        world.note(name, "unavailable")
        raise StoreUnavailable("nobody answers")
    if name in READS:
        return method(*args, **named)
    is_current, dump = False, None
    if name in FENCED:
        is_current = world.checker.is_current(args[0])
        dump = None if is_current else world.checker.image()
    try:
        result = method(*args, **named)
    except RecollectError as error:
        raise Violation(f"{name} failed, and nobody made it: {error}") from error
    world.note(name, args, named, result)
    if dump is not None and dump != world.checker.image():
        raise Violation(f"P5: a stale claim changed something by {name}")
    jobs = world.checker.last.jobs
    world.checker.after(Call(name, args, result, is_current))
    if jobs != world.checker.last.jobs:
        world.is_nothing_due = False
    if world.happens(0.03):
        world.note(name, "answer lost")
        world.checker.ledger.seen["an answer lost"] += 1
        raise OutcomeUnknown("the answer was lost")
    return result


def _told(value: Any) -> object:
    """What a trace says of a value; a function is told by its kind alone, for it has an address."""
    match value:
        case Claim():
            return f"claim {value.token} of job {value.job_id}"
        case tuple() | list():
            return [_told(each) for each in value]
        case dict():
            return {name: _told(each) for name, each in value.items()}
        case LeasePolicy() | MarkPolicy():
            return "policy"
        case _ if callable(value) or isinstance(value, random.Random):
            return "function"
        case datetime():
            return value.isoformat()
        case _:
            return str(value)


def new_store() -> Store:
    """A store in memory for many worlds, one after the other."""
    return open_store(":memory:", Settings(), SystemClock())

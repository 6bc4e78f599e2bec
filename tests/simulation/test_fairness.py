"""Whose turn it is: sessions that fail and sessions that never rest keep nobody else waiting."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.ids import Ids
from recollect.leases import Leaseholder
from recollect.messages import Role
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.types.records import Claim, KeyRef, NewRecord, Outcome, SessionBirth

BROKEN = 10
SETTINGS = Settings(mark_threshold=0)


class Scene:
    """A store on a clock of its own, and someone to talk and work in it."""

    def __init__(self, store: Store, seed: int) -> None:
        self.clock = ManualClock()
        self.store = store
        self.random = random.Random(seed)
        self._ids = Ids(self.clock, self.random)
        self._space = f"space {seed}"
        self.holder = Leaseholder(
            store, SETTINGS.lease_policy, self.clock, owner="w", randomness=self.random
        )

    def key(self, name: str) -> KeyRef:
        return self.store.sessions.open_key(
            self._space, name, "/user/a", SessionBirth(), self.clock.now(), self._ids.new
        )

    def say(self, ref: KeyRef) -> str:
        record = NewRecord(role=Role.USER, content="something")
        policy, now = SETTINGS.mark_policy, self.clock.now()
        stored = self.store.records.append(ref, [record], policy, now, self._ids.new)
        return stored[0].session_id

    def claim(self) -> Claim | None:
        claim = self.holder.claim()
        return claim if isinstance(claim, Claim) else None


@pytest.fixture
def store() -> Iterator[Store]:
    store = open_store(":memory:", SETTINGS, ManualClock())
    yield store
    store.close()


@pytest.mark.parametrize("seed", range(20))
def test_ten_broken_sessions_do_not_delay_an_eleventh(store: Store, seed: int) -> None:
    scene = Scene(store, seed)
    for number in range(BROKEN):
        scene.say(scene.key(f"broken {number}"))
        scene.clock.advance(1)
    healthy = scene.say(scene.key("healthy"))
    claimed: list[str] = []
    while (claim := scene.claim()) is not None and len(claimed) <= BROKEN:
        claimed.append(claim.key)
        if claim.key == healthy:
            break
        scene.holder.fail(claim, "broken")
    assert claimed.index(healthy) == BROKEN


@pytest.mark.parametrize("seed", range(20))
def test_what_keeps_failing_is_claimed_a_bounded_number_of_times(store: Store, seed: int) -> None:
    scene = Scene(store, seed)
    for number in range(BROKEN):
        scene.say(scene.key(f"broken {number}"))
    claims = 0
    for _ in range(1000):
        claim = scene.claim()
        if claim is not None:
            scene.holder.fail(claim, "broken")
            claims += 1
        scene.clock.advance(scene.random.uniform(0, 120))
    assert claims == BROKEN * SETTINGS.job_failures_max


@pytest.mark.parametrize("seed", range(20))
def test_a_session_that_never_rests_progresses_and_starves_nobody(store: Store, seed: int) -> None:
    scene = Scene(store, seed)
    busy, calm = scene.key("busy"), scene.key("calm")
    busy_id = scene.say(busy)
    for _ in range(10):
        scene.clock.advance(scene.random.uniform(0.001, 5))
        calm_id = scene.say(calm)
        claimed = []
        for _ in range(2):
            claim = scene.claim()
            assert claim is not None
            claimed.append(claim.key)
            scene.clock.advance(scene.random.uniform(0.001, 5))
            scene.say(busy)
            scene.holder.record(claim, claim.read_upto, Outcome.NO_OUTPUT)
        assert sorted(claimed) == sorted([busy_id, calm_id])
    state = store.sessions.current(busy)
    assert state.unprocessed <= 2

"""The model of many workers claims as the store does, and every space gets its turn."""

from __future__ import annotations

import random
from contextlib import ExitStack, closing
from pathlib import Path

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.ids import Ids
from recollect.leases import Leaseholder
from recollect.messages import Role
from recollect.store.opening import open_store
from recollect.types.records import Claim, NewRecord, Outcome, SessionBirth
from tests.simulation.claims import in_turn, loads_of, play

SEEDS = [11, 12, 13]
SETTINGS = Settings(mark_threshold=0)


def claimed_from_a_store(loads: dict[str, int], path: Path) -> list[str]:
    """The spaces in the order in which three processes claim from a real store."""
    clock = ManualClock()
    with ExitStack() as stack:
        stores = [
            stack.enter_context(closing(open_store(f"sqlite:///{path}", SETTINGS, clock)))
            for _ in SEEDS
        ]
        ids, record = Ids(clock, random.Random(1)), NewRecord(role=Role.USER, content="hello")
        for space, count in loads.items():
            for number in range(count):
                ref = stores[0].sessions.open_key(
                    space, f"k{number}", "/user/a", SessionBirth(), clock.now(), ids.new
                )
                policy = SETTINGS.mark_policy
                stores[0].records.append(ref, [record], policy, clock.now(), ids.new)
        holders = [
            Leaseholder(
                store,
                SETTINGS.lease_policy,
                clock,
                owner=f"w{seed}",
                randomness=random.Random(seed),
            )
            for store, seed in zip(stores, SEEDS, strict=True)
        ]
        claimed: list[str] = []
        while len(claimed) < sum(loads.values()):
            for holder in holders:
                claim = holder.claim()
                if isinstance(claim, Claim):
                    claimed.append(claim.space)
                    holder.record(claim, claim.read_upto, Outcome.NO_OUTPUT)
        return claimed


def test_the_model_claims_in_the_order_in_which_the_store_does(tmp_path: Path) -> None:
    loads = loads_of(spaces=40, jobs=1, largest=30)
    real = claimed_from_a_store(loads, tmp_path / "m.db")
    assert in_turn(loads, SEEDS) == real
    assert len(set(real[:42])) > 30, "the large space does not come before the others"


def test_however_many_claim_a_large_space_keeps_nobody_waiting() -> None:
    """All others have had their first turn long before what is left is the large one alone."""
    loads = loads_of(spaces=300, jobs=2, largest=5_000)
    for workers in (1, 30, 300):
        played = play(loads, workers=workers, cores=8, work_seconds=1.0, seed=workers)
        assert len(played.claimed) == sum(loads.values()), "each job is claimed once"
        assert played.tries <= 1.5 * len(played.claimed), "they hardly meet"
        last = max(claim for claim, _ in played.first.values())
        assert last <= 3 * sum(loads.values()) // 8

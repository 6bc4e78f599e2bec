"""PostgreSQL: whoever needs several locks takes them in one order; no ring of waits forms."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest
from psycopg import errors as pg

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store import postgres
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.types.records import KeyRef
from recollect_conformance import Harness
from recollect_conformance.harness import SPACE

THREADS, STEPS = 8, 40
pytestmark = pytest.mark.postgres


def forget(store: Harness, ref: KeyRef) -> None:
    store.handle.erasure.forget_session(SPACE, store.current(ref).id, store.now())


def play(store: Harness, ref: KeyRef, seed: int) -> None:
    """Appends for the most part, with ends, rotations and erasures between them."""
    dice = random.Random(seed)
    moves: list[Callable[[Harness, KeyRef], object]] = [
        *[Harness.append] * 6,
        *[Harness.reset] * 2,
        Harness.end,
        forget,
    ]
    for _ in range(STEPS):
        dice.choice(moves)(store, ref)


def test_appending_ending_rotating_and_forgetting_one_key_at_once_never_deadlock(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlocks are tried again without a word; here they are errors."""
    monkeypatch.setattr(postgres, "_CONFLICTS", (pg.SerializationFailure,))

    def open_it() -> Store:
        return open_store(postgres_store_url, Settings(), ManualClock())

    with closing(Harness(open_it)) as store:
        ref = store.key()
        store.at_once(*(partial(play, store, ref, seed) for seed in range(THREADS)))
        assert store.append(ref)[0].session_id == store.current(ref).id

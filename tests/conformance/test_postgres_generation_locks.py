"""PostgreSQL: those who learn, use, forget and consolidate at once never wait in a ring."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from psycopg import errors as pg

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store import postgres
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.types.facts import Source, Trust
from recollect.types.generations import Pick
from recollect.types.recall import Hit, HitUsage, UsageKind
from recollect.types.records import Claim, JobKind, JobState, Mode
from recollect_conformance import Harness, handbooks, lessons
from recollect_conformance.findings import SUMMARY
from recollect_conformance.harness import NEVER

THREADS, STEPS = 8, 60
MEMORIES, ROUNDS = 40, 12
SPACES = ("space-a", "space-b")
KEYS = ("one", "two", "three", "four")
pytestmark = pytest.mark.postgres


def shown(pick: Pick) -> Hit:
    """A memory as recall shows it."""
    return Hit(
        id=pick.session_id,
        kind=SUMMARY,
        text="",
        score=1.0,
        why={},
        sources=(Source(session_id=pick.session_id, seq=1, seq_to=1),),
        at=pick.source_updated_at,
        trust=Trust.AGENT,
    )


class Play:
    """Two spaces with a few sessions each, and what many do to them at once."""

    def __init__(self, store: Harness) -> None:
        self.store = store

    def mark(self, name: str, dice: random.Random) -> None:
        ref = self.store.key(dice.choice(KEYS), space=dice.choice(SPACES))
        self.store.say(ref, self.store.text(), policy=NEVER)
        self.store.sleep(ref)

    def work(self, name: str, dice: random.Random) -> None:
        claim = self.store.handle.leases.claim(name, handbooks.POLICY, self.store.now())
        if not isinstance(claim, Claim):
            return
        if claim.kind is JobKind.CONSOLIDATE:
            self.publish(claim, dice)
            return
        # What only one session says, and what others say as well.
        facts = [lessons.statement(f"fact {dice.randrange(4)}"), lessons.statement(name)]
        lessons.record(self.store, claim, lessons.lesson(lessons.draft(*facts, memory=name)))

    def consolidate(self, name: str, dice: random.Random) -> None:
        leases, now = self.store.handle.leases, self.store.now()
        space = dice.choice(SPACES)
        claim = leases.claim_consolidation(name, space, handbooks.POLICY, now)
        if claim is not None:
            self.publish(claim, dice)

    def publish(self, claim: Claim, dice: random.Random) -> None:
        selection = handbooks.select(self.store, space=claim.space)
        made = handbooks.drafted(self.store, selection, kept=dice.choice([1, 3]))
        handbooks.publish(self.store, claim, made)

    def use(self, name: str, dice: random.Random) -> None:
        """Somebody is shown what sessions came to."""
        space = dice.choice(SPACES)
        picks = handbooks.select(self.store, space=space).picks
        hits = tuple(shown(pick) for pick in picks)
        usage = HitUsage(kind=UsageKind.SHOWN, turn_id=name, hits=hits, at=self.store.now())
        self.store.handle.search.use(space, usage)

    def tell(self, name: str, dice: random.Random) -> None:
        """A fact that somebody adds, and may think better of."""
        space = dice.choice(SPACES)
        fact = lessons.add(self.store, f"fact {dice.randrange(4)}", space=space)
        if dice.randrange(2):
            self.store.handle.facts.delete(space, fact.id, self.store.now())

    def forbid(self, name: str, dice: random.Random) -> None:
        ref = self.store.key(dice.choice(KEYS), space=dice.choice(SPACES))
        self.store.set_mode(ref, dice.choice([*Mode, Mode.ENABLED]))

    def forget(self, name: str, dice: random.Random) -> None:
        space = dice.choice(SPACES)
        session = self.store.current(self.store.key(dice.choice(KEYS), space=space))
        self.store.handle.erasure.forget_session(space, session.id, self.store.now())

    def tend(self, name: str, dice: random.Random) -> None:
        generations, now = self.store.handle.generations, self.store.now()
        space = dice.choice(SPACES)
        match dice.randrange(6):
            case 0:
                generations.pause(space, now)
                generations.resume(space, now)
            case 1:
                generations.expire(now + timedelta(days=31))
            case 2:
                generations.prune(now + timedelta(days=1), 3)
            case 3:
                generations.hurry(None)
            case 4:
                generations.request(space, now)
            case _:
                generations.note_edits(space, now)

    def play(self, seed: int) -> None:
        dice = random.Random(seed)
        moves: list[Callable[[str, random.Random], None]] = [
            *[self.mark, self.work] * 4,
            *[self.consolidate, self.use, self.tend] * 2,
            *[self.tell, self.forbid, self.forget],
        ]
        for step in range(STEPS):
            dice.choice(moves)(f"{seed}/{step}", dice)


@pytest.fixture
def store(postgres_store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    """Deadlocks are tried again without a word; here they are errors."""
    monkeypatch.setattr(postgres, "_CONFLICTS", (pg.SerializationFailure,))

    def open_it() -> Store:
        return open_store(postgres_store_url, Settings(), ManualClock())

    with closing(Harness(open_it)) as harness:
        yield harness


def test_many_memories_are_used_while_they_are_consumed(store: Harness) -> None:
    """G4: those who change the same rows do so in one order."""
    for number in range(MEMORIES):
        handbooks.remember(store, f"key {number}")
    for number in range(ROUNDS):
        claim = handbooks.demand(store)
        selection = handbooks.select(store)
        made = replace(handbooks.drafted(store, selection), digest=str(number))
        mine = replace(made, selection=replace(selection, added=selection.picks, retained=()))
        hits = tuple(shown(pick) for pick in selection.picks)
        turns = [
            HitUsage(kind=UsageKind.SHOWN, turn_id=f"{number}/{turn}", hits=hits, at=store.now())
            for turn in range(3)
        ]
        jobs: list[Callable[[], object]] = [
            partial(handbooks.published, store, claim, mine),
            *(partial(store.handle.search.use, SPACES[0], usage) for usage in turns),
        ]
        store.at_once(*jobs)


def test_learning_using_forgetting_and_consolidating_at_once_never_deadlock(
    store: Harness,
) -> None:
    """G1 and P5: whoever needs several locks takes them in one order."""
    print(f"seeds: 0 to {THREADS}")
    play = Play(store)
    for space in SPACES:
        for key in KEYS:
            handbooks.remember(store, key, space=space)
    store.at_once(*(partial(play.play, seed) for seed in range(THREADS)))
    store.clock.advance(handbooks.POLICY.lease_seconds)
    dice = random.Random(THREADS)
    while JobState.DUE in store.handle.leases.counts(None):
        play.work("at last", dice)
    for space in SPACES:
        known = lessons.revision(store, space=space)
        assert known.changed == known.consolidated
        picks = handbooks.select(store, space=space).picks
        said = {line for pick in picks for line in handbooks.said(store, space, pick).splitlines()}
        assert set(handbooks.handbook(store, space=space)) == said

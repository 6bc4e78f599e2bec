"""PostgreSQL: those who speak to agents, run, wake, end and forget them never wait in a ring."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest
from psycopg import errors as pg

from recollect.clock import ManualClock
from recollect.config import Settings
from recollect.store import postgres
from recollect.store.opening import open_store
from recollect.store.protocol import Store
from recollect.types.agents import IDLE, POISON_PILL, DocumentChanges, NoTurn, Turn
from recollect.types.facts import Learned
from recollect.types.pages import Because
from recollect.types.records import Claim, JobKind, JobState, KeyRef, MarkCause, Outcome, StaleClaim
from recollect_conformance import Harness, inboxes, pages
from recollect_conformance.harness import NEVER, SPACE
from recollect_conformance.lessons import POLICY, draft, facts, lesson, statement

THREADS, STEPS = 8, 60
pytestmark = pytest.mark.postgres


class Play:
    """One user agent and its memory-agent, and what many do to them at once."""

    def __init__(self, store: Harness) -> None:
        self.store = store
        self.ref = store.key()

    def refs(self) -> list[KeyRef]:
        memory = inboxes.memory_agent(self.store)
        return [self.ref] if memory is None else [self.ref, memory]

    def post(self, name: str, dice: random.Random) -> None:
        inboxes.post(self.store, dice.choice(self.refs()), inboxes.message(name))

    def append(self, name: str, dice: random.Random) -> None:
        self.store.say(self.ref, self.store.text())

    def signal(self, name: str, dice: random.Random) -> None:
        ref = dice.choice(self.refs())
        signal = inboxes.later(self.store, dice.choice([IDLE, POISON_PILL, "alarm"]), 0)
        job = JobKind.AGENT if ref == self.ref else JobKind.MEMORY_AGENT
        self.store.handle.agents.set_signal(ref, signal, job, self.store.now())

    def deliver(self, name: str, dice: random.Random) -> None:
        inboxes.deliver(self.store)

    def kill(self, name: str, dice: random.Random) -> None:
        self.store.handle.agents.kill(dice.choice(self.refs()), self.store.now())

    def forget(self, name: str, dice: random.Random) -> None:
        session = self.store.current(self.ref)
        self.store.handle.erasure.forget_session(SPACE, session.id, self.store.now())

    def forget_record(self, name: str, dice: random.Random) -> None:
        session = self.store.current(self.ref)
        seq = dice.randint(1, max(session.last_seq, 1))
        self.store.handle.erasure.forget_record(SPACE, session.id, seq, self.store.now())

    def forget_fact(self, name: str, dice: random.Random) -> None:
        for fact in facts(self.store)[:1]:
            self.store.handle.erasure.forget_fact(SPACE, fact.id, self.store.now())

    def forget_agent(self, name: str, dice: random.Random) -> None:
        agent_id = dice.choice(self.refs()).agent_id
        self.store.handle.erasure.forget_agent(SPACE, agent_id, self.store.now())

    def run_hosted(self, name: str, dice: random.Random) -> None:
        self._run(name, None, dice)

    def run_worker(self, name: str, dice: random.Random) -> None:
        self._run(name, "", dice)

    def _run(self, name: str, lane: str | None, dice: random.Random) -> None:
        store = self.store
        claim = store.handle.leases.claim(name, POLICY, store.now(), lane)
        if not isinstance(claim, Claim):
            return
        if claim.kind is JobKind.EXTRACT:
            learned = lesson(draft(statement(f"of {claim.key}")))
            self._record(claim, dice.choice([learned, None]))
            return
        if claim.kind is JobKind.EXTRACT_AGAIN:
            self._record_pass(claim)
            return
        while isinstance(turn := self._take(claim), Turn):
            inboxes.step(store, claim, inboxes.thinking(name))
            self._end(claim, turn, name, dice)
        inboxes.release(store, claim, inboxes.idle(store))

    def _take(self, claim: Claim) -> Turn | NoTurn | StaleClaim:
        store = self.store
        return store.handle.agents.take(claim, NEVER, store.now(), store.new_id)

    def _end(self, claim: Claim, turn: Turn, name: str, dice: random.Random) -> None:
        store = self.store
        match dice.randrange(5):
            case 0:
                inboxes.fail(store, claim, turn, delay=0)
            case 1:
                store.handle.agents.rotate(
                    claim, MarkCause.COMPACTION, store.now(), store.new_id, summary=name, retain=2
                )
                inboxes.finish(store, claim, turn, name)
            case _:
                edits = (pages.writing("a", name),)
                changes = DocumentChanges(edits=edits, because=Because(), limits=pages.LIMITS)
                inboxes.finish(store, claim, turn, name, changes)

    def _record(self, claim: Claim, learned: Learned | None) -> None:
        self.store.handle.leases.record(
            claim,
            claim.read_upto,
            Outcome.HANDED_OVER if learned is None else Outcome.EXTRACTED,
            None,
            self.store.now(),
            learned,
            self.store.new_id,
            inboxes.handing(claim),
        )

    def _record_pass(self, claim: Claim) -> None:
        store = self.store
        learned = replace(
            lesson(draft(statement(f"of {claim.key}")), is_whole=True),
            pass_number=store.session(claim.key).pass_number + 1,
        )
        store.handle.leases.record_pass(
            claim, claim.read_upto, learned, store.now(), store.new_id, inboxes.handing(claim)
        )

    def play(self, seed: int) -> None:
        dice = random.Random(seed)
        moves: list[Callable[[str, random.Random], None]] = [
            *[self.post, self.append] * 4,
            *[self.run_hosted, self.run_worker] * 4,
            *[self.signal, self.deliver] * 2,
            *[self.kill, self.forget, self.forget_agent],
            *[self.forget_record, self.forget_fact] * 2,
        ]
        for step in range(STEPS):
            dice.choice(moves)(f"{seed}/{step}", dice)


def test_speaking_to_running_waking_ending_and_forgetting_agents_at_once_never_deadlocks(
    postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlocks are tried again without a word; here they are errors."""
    monkeypatch.setattr(postgres, "_CONFLICTS", (pg.SerializationFailure,))
    print(f"seeds: 0 to {THREADS - 1}")

    def open_it() -> Store:
        return open_store(postgres_store_url, Settings(), ManualClock())

    with closing(Harness(open_it)) as store:
        play = Play(store)
        store.at_once(*(partial(play.play, seed) for seed in range(THREADS)))
        for ref in play.refs():
            inboxes.post(store, ref, inboxes.message("at last"))
        store.clock.advance(POLICY.lease_seconds)
        for step in range(STEPS):
            play.run_hosted(f"end/{step}", random.Random(step))
            play.run_worker(f"end/{step}", random.Random(step))
        for ref in play.refs():
            assert inboxes.agent(store, ref).queued == 0
            assert inboxes.agent(store, ref).job_state is JobState.IDLE

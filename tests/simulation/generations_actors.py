"""Who acts in a world of generations: people who talk and forget, and workers that die."""

from __future__ import annotations

from contextlib import suppress

from recollect import worker as worker_module
from recollect.errors import NotFound, RecollectError, UsageError
from recollect.processing import Verdict, Work
from recollect.session import Session
from recollect.space import Space
from recollect.types.facts import Draft, NewFact, Trust
from recollect.types.records import Claim, JobKind, Mode, Outcome
from tests.simulation.actors import Crash
from tests.simulation.generations_world import SPACES, World

KEYS = ("one", "two")


class Person:
    """Says things, and takes them back in every way there is."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self._world = world
        self._random = world.random
        self._said = 0
        self._facts: list[tuple[str, str, str]] = []  # space, id, what it says
        self._memory = world.memory()
        self._actions = (
            [self._talk] * 10
            + [self._rotate] * 3
            + [self._forget] * 4
            + [self._set_mode] * 3
            + [self._add_fact, self._delete_fact, self._delete_fact]
            + [self._use] * 2
            + [self._pause, self._resume, self._resume]
            + [self._restore, self._run_now, self._sweep, self._sweep]
        )

    def step(self) -> None:
        try:
            with suppress(RecollectError):  # a person tries something else
                self._random.choice(self._actions)()
        except Crash:
            self._memory = self._world.memory()

    def _space(self) -> Space:
        return self._memory.space(self._random.choice(SPACES))

    def _session(self) -> Session:
        return self._space().session(self._random.choice(KEYS), "assistant")

    def _word(self) -> str:
        self._said += 1
        return f"zq{self._said}{self.name}qz"

    def _talk(self) -> None:
        session = self._session()
        session.append("user", self._word(), name="Alice")
        session.sleep()

    def _rotate(self) -> None:
        self._session().reset()

    def _forget(self) -> None:
        ledger = self._world.checker.ledger
        known = sorted(set(ledger.said) - ledger.forgotten)
        if known:
            session_id = self._random.choice(known)
            space = ledger.space_of[session_id]
            self._memory.space(space).forget(session=session_id)
            self._world.checker.check_forgotten(space, session_id)

    def _set_mode(self) -> None:
        mode = self._random.choice((Mode.ENABLED, Mode.ENABLED, Mode.DISABLED, Mode.POLLUTED))
        self._session().set_mode(mode)

    def _add_fact(self) -> None:
        space, word = self._space(), self._word()
        fact = space.facts.add(f"The office keeps {word}.")
        self._facts.append((space.name, fact.id, word))

    def _delete_fact(self) -> None:
        if self._facts:
            space, fact_id, word = self._facts.pop()
            with suppress(NotFound):
                self._memory.space(space).facts.delete(fact_id)
            self._world.checker.ledger.withdrawn.add(word)

    def _use(self) -> None:
        space = self._space()
        found = self._memory.store.extractions.list(space.name, 5, None)
        if found:
            chosen = self._random.choice(found)
            hits = space.recall(chosen.rollout_summary, 1, kinds=["summary"])
            space.opened(hits, turn=self._word())

    def _pause(self) -> None:
        self._space().generations.pause()

    def _resume(self) -> None:
        self._space().generations.resume()

    def _restore(self) -> None:
        generations = self._space().generations
        found = generations.list(3)
        with suppress(UsageError, NotFound):
            if found:
                generations.rollback(self._random.choice(found).number)

    def _run_now(self) -> None:
        self._memory.store.generations.request(self._space().name, self._world.clock.now())

    def _sweep(self) -> None:
        leases = self._memory.store.leases
        for upkeep in (JobKind.IDLE_SWEEP, JobKind.STARTUP_SCAN):
            leases.ensure_recurring(upkeep, self._world.clock.now())
            leases.make_due(upkeep)


class Working:
    """The worker's own code for a claim, of sessions and of spaces; if it dies, another begins."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self._world = world
        self._lives = 0
        self.has_nothing = False
        self._begin()

    def _begin(self) -> None:
        self._lives += 1
        memory = self._world.memory()
        self._worker = memory.worker(self, owner=f"{self.name}.{self._lives}")
        policy = self._worker._holder.policy
        self._worker._holder = self._world.holder(self._worker.owner, self._world.skews[-1], policy)

    def step(self) -> None:
        try:
            with suppress(RecollectError):  # it asks again
                claim = self._worker._holder.claim()
                self.has_nothing = not isinstance(claim, Claim)
                if isinstance(claim, Claim):
                    self._work(claim)
        except Crash:
            self._begin()

    def _work(self, claim: Claim) -> None:
        self._world.note("works on", claim.kind, claim.key)
        running = worker_module._Running(claim)
        self._worker._running[claim.job_id] = running
        if self._world.happens(0.1):  # it is slow, and its lease runs out
            self._world.clock.advance(61)
            self._world.interleave(1.0)
        self._worker._work_on(running)

    def process(self, work: Work) -> Verdict:
        """Every word is remembered, and a fact of its own."""
        before = "" if work.previous is None else f"{work.previous.raw_memory}\n"
        words = [record.content for record in work.records]
        told = before + "\n".join(f"- {word}" for word in words)
        return Verdict(
            outcome=Outcome.EXTRACTED,
            draft=Draft(
                upto=work.upto,
                raw_memory=told,
                rollout_summary=told,
                rollout_slug="talk",
                facts=tuple(
                    NewFact(
                        content=f"Alice keeps {record.content}.",
                        seq=record.seq,
                        seq_to=record.seq,
                        valid_from=record.at,
                        trust=Trust.USER,
                    )
                    for record in work.records
                ),
            ),
        )

"""Who acts in a world: appenders with clocks of their own, and workers that crash, pause and lag.

A `PlainWorker` is a worker told as a generator over `Leaseholder`, each of whose steps is by
itself; an `OriginalWorker` runs `recollect.worker.Worker`'s own code for a claim, and the others
act while its processor thinks.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from recollect import worker as worker_module
from recollect.collection import Message
from recollect.errors import PermanentFailure, StoreError
from recollect.ids import Ids
from recollect.runtime import Runtime
from recollect.session import Session, Sessions
from recollect.sweeps import scan, sweep_idle
from recollect.types.records import Claim, JobKind, Mode, Outcome, StaleClaim
from recollect.worker import Verdict, Work, Worker
from tests.simulation.world import World

ROLES = ("user", "assistant", "tool")
OUTCOMES = (Outcome.EXTRACTED, Outcome.NO_OUTPUT, Outcome.SKIPPED)


class Broken(Exception):
    """What processing a broken session comes to."""


class Crash(BaseException):
    """The process is gone: nothing of it is cleaned up."""


class Appender:
    """Talks, forgets, rotates; delivers a keyed message until it is acknowledged, or once more."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self._world = world
        self._random = world.random
        self._clock = world.skewed_clock()
        self._runtime = Runtime(None, world.settings, self._clock)
        self._runtime.ids = Ids(self._clock, world.random)
        self._outbox: list[tuple[Session, str]] = []
        self._delivered: list[tuple[Session, str]] = []
        self._said = 0
        self._actions = (
            [self._append] * 12
            + [self._append_many] * 4
            + [self._post] * 5
            + [self._deliver] * 4
            + [self._sleep] * 3
            + [self._rotate] * 3
            + [self._end, self._purge, self._set_mode, self._set_mode]
            + [self._process_outside] * 3
            + [self._request] * 2
            + [self._set_clock, self._revive]
        )

    def step(self) -> None:
        with suppress(StoreError):  # what has a key is tried again, the rest is given up
            self._random.choice(self._actions)()

    def deliver_all(self) -> None:
        while self._outbox:
            self._deliver()

    def _session(self) -> Session:
        ref = self._random.choice(self._world.keys)
        return Session(self._runtime, self._world.store, ref, is_kept=True)

    def _text(self) -> str:
        self._said += 1
        return f"{self.name} {self._said}"

    def _append(self) -> None:
        self._session().append(self._random.choice(ROLES[:2]), self._text())

    def _append_many(self) -> None:
        messages = [
            {"role": self._random.choice(ROLES), "content": self._text()}
            for _ in range(self._random.randint(2, 5))
        ]
        self._session().append_many(messages)

    def _post(self) -> None:
        self._outbox.append((self._session(), self._text()))
        self._deliver()

    def _deliver(self) -> None:
        """At least once: what was not acknowledged, or something again that was."""
        if self._outbox:
            session, text = self._outbox[0]
        elif self._delivered:
            session, text = self._random.choice(self._delivered)
        else:
            return
        message = {"role": "user", "content": text}
        session.append_many(
            [Message(message=message, key=text), Message(message=message, key=text)]
        )
        if self._outbox:
            self._delivered.append(self._outbox.pop(0))

    def _sleep(self) -> None:
        self._session().sleep()

    def _rotate(self) -> None:
        session = self._session()
        if self._random.random() < 0.5:
            session.reset()
        else:
            session.compact(retain=self._random.randint(0, 4))

    def _end(self) -> None:
        self._session().end()

    def _purge(self) -> None:
        self._session().purge()

    def _set_mode(self) -> None:
        mode = self._random.choice((Mode.ENABLED, Mode.ENABLED, Mode.DISABLED, Mode.POLLUTED))
        self._session().set_mode(mode)

    def _process_outside(self) -> None:
        """Somebody else's processing, with the documents' compare-and-swap."""
        session = self._session()
        state = session.state
        self._world.interleave(0.5, steps=2)
        marks = Sessions(self._runtime, self._world.store, state.space)
        upto = self._random.randint(0, state.last_seq + 1)
        marks.mark_processed(state.id, upto, state.invalidated_at or 0)

    def _request(self) -> None:
        state = self._session().state
        marks = Sessions(self._runtime, self._world.store, state.space)
        marks.invalidate(state.id, self._random.randint(0, state.last_seq))

    def _set_clock(self) -> None:
        self._clock.offset += self._random.choice((-40.0, -2.0, 3.0, 50.0))

    def _revive(self) -> None:
        if self._random.random() < 0.3:
            self._world.store.leases.revive(None, None)


class SomeWorker:
    """What workers have in common: they crash and come back as somebody else, and they pause."""

    def __init__(self, world: World, name: str) -> None:
        self.name = name
        self._world = world
        self._random = world.random
        self._lives = 0
        self._wakes_at: datetime = world.clock.now()
        self._begin()

    @property
    def _owner(self) -> str:
        return f"{self.name}.{self._lives}"

    def step(self) -> None:
        raise NotImplementedError

    def _begin(self) -> None:
        self._lives += 1
        self.has_nothing = True
        self._clock = self._world.skewed_clock()
        self._holder = self._world.holder(self._owner, self._clock)

    def _is_asleep(self) -> bool:
        return not self._world.is_healthy and self._world.clock.now() < self._wakes_at

    def _pause(self) -> None:
        """Long enough, sometimes, for the lease to run out: it wakes as a zombie."""
        seconds = self._random.choice((10.0, 61.0, 150.0))
        self._wakes_at = self._world.clock.now() + timedelta(seconds=seconds)
        self._world.note("pauses", seconds)

    def _claim(self) -> Claim | None:
        claim = self._holder.claim()
        self.has_nothing = not isinstance(claim, Claim)
        if isinstance(claim, Claim):
            return claim
        self._world.is_nothing_due = True
        return None

    def _is_waiting(self) -> bool:
        """Somebody asked, there was nothing, and nothing has changed since: it need not ask."""
        return self._world.is_nothing_due and self.has_nothing

    def _announce(self) -> None:
        """What a worker does first: see that the store's own jobs exist."""
        if self._lives > 1 and self._random.random() < 0.6:
            return
        leases = self._world.store.leases
        leases.ensure_recurring(JobKind.IDLE_SWEEP, self._holder.lease_time())
        leases.ensure_recurring(JobKind.STARTUP_SCAN, self._holder.lease_time())
        leases.make_due(JobKind.STARTUP_SCAN)

    def _break(self, key: str) -> None:
        """Processing fails: for good where the session is broken, else by bad luck."""
        if self._world.is_broken(self._world.checker.last.sessions[key]):
            raise Broken("as always") if self._random.random() < 0.8 else PermanentFailure("bad")
        if self._world.happens(0.04):
            raise Broken("this time")


class PlainWorker(SomeWorker):
    """A worker whose every step is by itself."""

    def _begin(self) -> None:
        super()._begin()
        self._life = self._live()

    def step(self) -> None:
        if self._is_asleep() or self._is_waiting():
            return
        if self._world.happens(0.02):
            self._world.note("crashes")
            self._begin()
        elif self._world.happens(0.03):
            self._pause()
        else:
            next(self._life)

    def _live(self) -> Iterator[None]:
        is_announced = False
        while True:
            claim = None
            with suppress(StoreError):  # it asks again
                if not is_announced:
                    self._announce()
                    is_announced = True
                claim = self._claim()
            yield
            if claim is not None:
                yield from self._work(claim)
                self.has_nothing = True

    def _work(self, claim: Claim) -> Iterator[None]:
        try:
            if claim.kind is JobKind.EXTRACT:
                yield from self._process(claim)
            else:
                yield from self._look_after_the_store(claim)
        except (StoreError, Broken, PermanentFailure) as error:
            yield
            is_final = isinstance(error, PermanentFailure)
            with suppress(StoreError):  # the lease runs out by itself
                self._holder.fail(claim, str(error), is_final=is_final)
            yield

    def _look_after_the_store(self, claim: Claim) -> Iterator[None]:
        run = sweep_idle if claim.kind is JobKind.IDLE_SWEEP else scan
        run(self._world.store, self._clock.now(), self._world.settings)
        if self._world.happens(0.05):
            raise Broken("no sweep today")
        yield
        self._holder.finish_recurring(claim, self._world.settings.idle_sweep_every_seconds)
        yield

    def _process(self, claim: Claim) -> Iterator[None]:
        session = self._world.store.sessions.get(claim.space, claim.key)
        assert session is not None
        cursor = session.processed_until or 0
        piece = self._random.randint(1, 6)
        while cursor < claim.read_upto:
            found = self._world.store.records.after(claim.space, claim.key, cursor, piece)
            seqs = [record.seq for record in found if record.seq <= claim.read_upto]
            yield
            is_lost = yield from self._think(claim)
            if is_lost:
                return
            self._break(claim.key)
            if self._world.happens(0.1):
                self._holder.release(claim)
                return
            upto = seqs[-1] if len(seqs) == piece else claim.read_upto
            self._world.checker.ledger.read[claim.owner] = seqs
            if isinstance(self._record(claim, upto), StaleClaim):
                return
            cursor = upto
            yield

    def _think(self, claim: Claim) -> Generator[None, None, bool]:
        """The model works; the lease is renewed, or not. True: it is lost, and we know it."""
        for _ in range(0 if self._world.is_healthy else self._random.randrange(3)):
            if self._random.random() < 0.5:
                renewed = self._holder.renew(claim)
                if isinstance(renewed, StaleClaim) and self._random.random() < 0.5:
                    return True
            yield
        return False

    def _record(self, claim: Claim, upto: int) -> object:
        try:
            return self._holder.record(claim, upto, Outcome.EXTRACTED)
        except StoreError:
            if self._random.random() < 0.5:
                raise
            # Again, with the same token: it is recorded once, whatever became of the first time.
            self._world.checker.ledger.read[claim.owner] = self._unrecorded(claim, upto)
            return self._holder.record(claim, upto, Outcome.EXTRACTED)

    def _unrecorded(self, claim: Claim, upto: int) -> list[int]:
        session = self._world.checker.last.sessions[claim.key]
        return [seq for seq in self._world.checker.ledger.read[claim.owner] if seq > session.done]


class OriginalWorker(SomeWorker):
    """The worker's own code for a claim, from reading the session to what becomes of a failure."""

    def _begin(self) -> None:
        super()._begin()
        self._is_announced = False
        self._stops = False
        self._worker = Worker(
            self._world.store, self._world.settings, self._clock, self, owner=self._owner
        )
        self._worker._holder = self._holder

    def step(self) -> None:
        if self._is_asleep() or self._is_waiting():
            return
        try:
            if not self._is_announced:
                self._announce()
                self._is_announced = True
            claim = self._claim()
            if claim is not None:
                self._work(claim)
                self.has_nothing = True
        except StoreError:
            pass
        except Crash:
            self._world.note("crashes")
            self._begin()

    def _work(self, claim: Claim) -> None:
        running = worker_module._Running(claim)
        self._worker._running[claim.job_id] = running
        self._worker._work_on(running)
        if self._stops:
            self._begin()

    def process(self, work: Work) -> Verdict:
        """While it thinks, the world goes on; then it dies, is told to stop, fails, or is done."""
        seqs = [record.seq for record in work.records]
        self._world.interleave(0.7, steps=4)
        if self._random.random() < 0.6:
            self._worker.renew_leases()
        self._world.interleave(0.5, steps=4)
        if self._world.happens(0.05):
            raise Crash
        if self._world.happens(0.05):
            self._stops = True
            self._worker.stop(grace_seconds=0)
        self._break(work.claim.key)
        upto = self._random.choice(seqs) if self._random.random() < 0.3 else None
        if upto is not None:
            seqs = [seq for seq in seqs if seq <= upto]
        self._world.checker.ledger.read[work.claim.owner] = seqs
        return Verdict(outcome=self._random.choice(OUTCOMES), upto=upto)

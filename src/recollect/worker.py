"""The worker: claims due jobs just in time, has them processed, and records the results.

Owns promises P4 (a dead worker is replaced within lease + one poll), P5 (a worker that lost its
claim changes nothing) and P7 (told to stop: no new claims, finish or give back, no attempt burned).
It is a supervisor: an error of one job is logged, counted against it and never reaches another.
"""

from __future__ import annotations

import contextvars
import dataclasses
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import assert_never

from recollect.clock import Clock
from recollect.config import Settings
from recollect.errors import (
    ModelUnavailable,
    PermanentFailure,
    Postponed,
    RecollectError,
    SchemaTooNew,
    StoreClosed,
    StoreError,
)
from recollect.ids import SYSTEM_RANDOMNESS, Randomness
from recollect.leases import Leaseholder
from recollect.observing import log_text
from recollect.observing.traces import at_work
from recollect.phase1 import Run, extract_new, extract_whole
from recollect.processing import (
    LoggingProcessor,
    Processor,
    Verdict,
    Work,
    WorkReport,
    is_paid,
)
from recollect.store.protocol import Store
from recollect.sweeps import (
    deliver_signals,
    drop_old_memories,
    scan,
    sweep,
)
from recollect.types.records import (
    CapReached,
    Claim,
    Deferred,
    JobKind,
    NothingDue,
    Released,
    StaleClaim,
)

__all__ = ["LoggingProcessor", "Processor", "Verdict", "Work", "WorkReport", "Worker"]

_log = logging.getLogger(__name__)

# Does what was claimed: runs an agent until its inbox is empty, or consolidates a space. Told when
# the claim is lost.
RunClaim = Callable[[Claim, Leaseholder, threading.Event], WorkReport]

CLAIM_SECONDS_MAX = 5.0  # that a worker that is told to stop waits for a claim under way
PAUSE_SECONDS_MIN = 0.02  # before looking again at a job that somebody else holds for a moment
STORE_PAUSE_SECONDS = 1.0  # after the store had a bad moment; it doubles
CAP_SECONDS = 1.0  # before asking again whether other workers have finished


class _Running:
    """A claim that is being worked on, by a thread of its own."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.lost = threading.Event()
        self.done = threading.Event()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Duties:
    """What a worker does besides distilling sessions.

    One with a lane hosts agents, and leaves everything else to others: the agent's id, or none for
    all of them. One with a space leaves all other spaces to others.
    """

    embed_some: Callable[[], int] | None = None
    run_agent: RunClaim | None = None
    consolidate: RunClaim | None = None
    upkeep: Callable[[], None] | None = None  # with every sweep
    lane: str | None = ""
    space: str | None = None


class Worker:
    """Runs jobs: `tick()` runs one batch now, `start()` runs in the background until `stop()`."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Clock,
        processor: Processor | None = None,
        *,
        owner: str | None = None,
        randomness: Randomness = SYSTEM_RANDOMNESS,
        redact: Callable[[str], str] = str,
        duties: Duties | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._processor = processor or LoggingProcessor()
        self._duties = own = duties or Duties()
        self._holder = Leaseholder(
            store,
            dataclasses.replace(
                settings.lease_policy,
                consolidates=own.consolidate is not None,
                space=own.space,
                in_order=is_paid(self._processor),
            ),
            clock,
            owner=owner,
            randomness=randomness,
            lane=own.lane,
        )
        self._changed = threading.Condition()  # guards what follows; notified on every change
        self._running: dict[int, _Running] = {}
        self._report = WorkReport()
        self._redact = redact  # what is logged and stored of errors
        self._put_off_jobs: set[int] = set()
        self._is_going_round = False
        self._woken = False
        self._claiming = False
        self._stopping = False
        self._loop: threading.Thread | None = None
        self._tick_lock = threading.Lock()  # ticks never overlap
        self._life = threading.Lock()
        self._unlisten: Callable[[], None] | None = None

    @property
    def owner(self) -> str:
        return self._holder.owner

    @property
    def lease_seconds(self) -> float:
        return self._holder.policy.lease_seconds

    @property
    def report(self) -> WorkReport:
        """The results of all jobs so far."""
        with self._changed:
            return dataclasses.replace(self._report)

    # life

    def start(self) -> None:
        """Begin to work in the background; a second time does nothing."""
        with self._life:
            if self._loop is None:
                self._begin()

    def _begin(self) -> None:
        self._stopping = False
        if self._duties.lane == "":
            self._ensure_upkeep()
        if self._settings.worker_wake:
            self._unlisten = self._store.listen(self.wake)
        self._loop = threading.Thread(target=self._run, name="recollect-worker", daemon=True)
        self._loop.start()

    def _ensure_upkeep(self) -> None:
        leases, now = self._store.leases, self._holder.lease_time()
        leases.ensure_recurring(JobKind.IDLE_SWEEP, now)
        leases.ensure_recurring(JobKind.STARTUP_SCAN, now)
        leases.make_due(JobKind.STARTUP_SCAN)
        leases.ensure_recurring(JobKind.SIGNALS, now)
        if self._duties.embed_some is not None:
            leases.ensure_recurring(JobKind.EMBED, now)

    def stop(self, grace_seconds: float | None = None) -> None:
        """Claim nothing more; let what runs finish, and give back what does not in time.

        A second time does nothing. No tick runs after it, until it is started again.
        """
        with self._life:
            self._end(grace_seconds)

    def _end(self, grace_seconds: float | None) -> None:
        grace = self._settings.worker_grace_seconds if grace_seconds is None else grace_seconds
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._running and not self._claiming, timeout=grace)
            # What is being claimed right now must be known before it can be given back.
            self._changed.wait_for(lambda: not self._claiming, timeout=CLAIM_SECONDS_MAX)
            unfinished = list(self._running.values())
        for running in unfinished:
            running.lost.set()
            self._give_back(running)
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        if self._loop is not None:
            self._loop.join()
            self._loop = None

    def wake(self) -> None:
        """Look for work now instead of at the next tick."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def tick(self) -> WorkReport:
        """Claim and process one batch, and wait until it is done."""

        def claim_batch() -> None:
            for _ in range(self._settings.worker_batch):
                if not isinstance(self._claim_one(), Claim):
                    break

        return self._seen_through(claim_batch)

    def _seen_through(self, claim: Callable[[], None]) -> WorkReport:
        """Claim, and wait until what was claimed is done."""
        with self._tick_lock:
            before = self.report
            with _Heartbeat(self):
                try:
                    claim()
                except Exception:
                    self._wait_until_idle()  # those claimed before it are seen through
                    raise
                self._wait_until_idle()
            return self.report.add(before, sign=-1)

    def _wait_until_idle(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._running)

    def drain(self) -> WorkReport:
        """Tick until nothing is due; what backs off or runs elsewhere is left alone.

        What was put off and has become due again meanwhile is for the next time.
        """
        return self._apart(self._drain)

    def _drain(self) -> WorkReport:
        total = WorkReport()
        with self._changed:
            self._put_off_jobs.clear()
            self._is_going_round = False
        while not self._stopping and not self._is_going_round:
            report = self.tick()
            total.add(report)
            if not report:
                break
        return total

    def consolidate(self, space: str) -> WorkReport:
        """Consolidate a space now, whatever it waits for; nothing, if somebody is at it."""

        def claim_it() -> None:
            claim = self._holder.claim_consolidation(space)
            if claim is not None:
                self._put_a_thread_on(_Running(claim))

        return self._apart(lambda: self._seen_through(claim_it))

    def _apart(self, run: Callable[[], WorkReport]) -> WorkReport:
        """Run on a thread of its own what the main thread waits for.

        An interrupt is raised in the main thread, anywhere: also between taking a lock and noting
        that it is held. A thread that only waits holds none, and can still stop the run.
        """
        if threading.current_thread() is not threading.main_thread():
            return run()
        outcome: Future[WorkReport] = Future()
        context = contextvars.copy_context()

        def finish() -> None:
            try:
                outcome.set_result(context.run(run))
            except BaseException as error:
                outcome.set_exception(error)

        thread = threading.Thread(target=finish, name="recollect-drain", daemon=True)
        thread.start()
        try:
            thread.join()
        except KeyboardInterrupt:
            self.stop()
            raise
        return outcome.result()

    # the background loop

    def _run(self) -> None:
        with _Heartbeat(self):
            while not self._is_stopping():
                pause = self._settings.worker_tick_seconds
                try:
                    pause = self._claim_batch()
                except StoreClosed:
                    return
                except SchemaTooNew as error:
                    _log.error("cannot claim: %s", error)
                except Exception as error:  # the loop must outlive a bad moment of the store
                    _log.error("cannot claim; again in %g s: %s", pause, log_text.trail(error))
                with self._changed:
                    self._changed.wait_for(lambda: self._woken or self._stopping, pause)
                    self._woken = False
            self._wait_until_idle()  # what runs keeps its lease until it is done or given back

    def _is_stopping(self) -> bool:
        return self._stopping

    def _claim_batch(self) -> float:
        """Claim up to a batch; how long to wait before the next look."""
        tick = self._settings.worker_tick_seconds
        with self._tick_lock:
            for _ in range(self._settings.worker_batch):
                outcome = self._claim_one()
                match outcome:
                    case NothingDue(next_in_seconds=float(seconds)):
                        return min(tick, max(seconds, PAUSE_SECONDS_MIN))
                    case CapReached():
                        return min(tick, CAP_SECONDS)
                    case NothingDue():
                        return tick
                    case Claim():
                        continue
        return 0.0

    def _claim_one(self) -> Claim | NothingDue | CapReached:
        """Wait for a free slot, then claim a job and put a thread on it."""
        with self._changed:
            concurrency = self._settings.worker_concurrency
            self._changed.wait_for(lambda: self._stopping or len(self._running) < concurrency)
            if self._stopping:
                return NothingDue(None)
            self._claiming = True
        try:
            claim = self._holder.claim()
            if isinstance(claim, Claim):
                self._put_a_thread_on(_Running(claim))
            return claim
        finally:
            with self._changed:
                self._claiming = False
                self._changed.notify_all()

    def _put_a_thread_on(self, running: _Running) -> None:
        with self._changed:
            self._running[running.claim.job_id] = running
        if self._is_stopping():  # told to stop while we claimed: nothing has begun
            self._give_back(running)
            return
        thread = threading.Thread(
            target=self._work_on, args=(running,), name="recollect-job", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # no more threads here: somebody who has room takes it
            self._give_back(running)
            raise

    def _work_on(self, running: _Running) -> None:
        report = WorkReport()
        try:
            with at_work(self.owner, running.claim.kind, traced=self._settings.traces):
                report = self._process(running)
        except Exception as error:  # one job's error: logged, counted against it, kept from others
            report = self._failed(running, error)
        finally:
            with self._changed:
                self._report.add(report)
                if self._running.get(running.claim.job_id) is running:
                    del self._running[running.claim.job_id]
                running.done.set()
                self._woken = True
                self._changed.notify_all()

    def _failed(self, running: _Running, error: Exception) -> WorkReport:
        claim = running.claim
        if running.lost.is_set():
            return WorkReport(stale=1)
        told = self._redact(f"{type(error).__name__}: {error}")
        if not _is_at_fault(error):
            return self._put_off(claim, error, told)
        shown = (log_text.loggable if isinstance(error, RecollectError) else log_text.trail)(error)
        _log.warning("%s %s failed (attempt %d): %s", claim.kind, claim.key, claim.attempt, shown)
        try:
            outcome = self._holder.fail(claim, told, is_final=isinstance(error, PermanentFailure))
        except RecollectError as unreachable:  # the lease runs out and somebody takes over
            shown = log_text.loggable(unreachable)
            _log.warning("%s %s: cannot report the failure: %s", claim.kind, claim.key, shown)
            return WorkReport(failed=1)
        return WorkReport(stale=1) if isinstance(outcome, StaleClaim) else WorkReport(failed=1)

    def _pause_seconds(self, claim: Claim, error: Exception) -> float:
        match error:
            case Postponed():
                return error.delay_seconds
            case ModelUnavailable():
                pause = self._holder.pause_seconds(claim, self._settings.backoff_seconds)
                return max(pause, error.retry_after_seconds or 0.0)
            case _:
                return self._holder.pause_seconds(claim, STORE_PAUSE_SECONDS)

    def _put_off(self, claim: Claim, error: Exception, told: str) -> WorkReport:
        """Nothing is wrong with the job: it waits, visibly, and nothing is counted against it."""
        seconds, shown = self._pause_seconds(claim, error), log_text.loggable(error)
        _log.warning("%s %s waits %.1f s: %s", claim.kind, claim.key, seconds, shown)
        with self._changed:
            self._is_going_round |= claim.job_id in self._put_off_jobs
            self._put_off_jobs.add(claim.job_id)
        try:
            deferred = self._holder.defer(claim, told, seconds)
        except RecollectError as unreachable:  # the lease runs out and somebody takes over
            shown = log_text.loggable(unreachable)
            _log.warning("%s %s: cannot be postponed: %s", claim.kind, claim.key, shown)
            return WorkReport(postponed=1)
        return WorkReport(stale=1) if isinstance(deferred, StaleClaim) else WorkReport(postponed=1)

    def _give_back(self, running: _Running) -> None:
        released: Released | StaleClaim = StaleClaim()
        try:
            released = self._holder.release(running.claim)
        except RecollectError as error:
            _log.warning("cannot give %s back: %s", running.claim.key, log_text.loggable(error))
        with self._changed:
            self._running.pop(running.claim.job_id, None)
            self._report.released += isinstance(released, Released)
            self._changed.notify_all()

    # what there is to do

    def _process(self, running: _Running) -> WorkReport:
        match running.claim.kind:
            case JobKind.EXTRACT if (waits := self._await_pause(running.claim)) is not None:
                return waits
            case JobKind.EXTRACT if self._settings.extract_whole_session:
                return extract_whole(self._run_on(running))
            case JobKind.EXTRACT:
                return extract_new(self._run_on(running))
            case JobKind.EXTRACT_AGAIN:
                return extract_whole(self._run_on(running), again=True)
            case JobKind.IDLE_SWEEP:
                sweep(self._store, self._clock.now(), self._settings)
                if self._duties.upkeep is not None:
                    self._duties.upkeep()
                again = self._settings.idle_sweep_every_seconds
            case JobKind.STARTUP_SCAN:
                scan(self._store, self._clock.now(), self._settings)
                drop_old_memories(self._store, self._clock.now(), self._settings)
                again = self._settings.scan_every_seconds
            case JobKind.EMBED:
                embed_some = self._duties.embed_some
                looked_at = 0 if embed_some is None else embed_some()
                again = 0.0 if looked_at else self._settings.embed_every_seconds
            case JobKind.SIGNALS:
                again = deliver_signals(self._store, self._clock, self._settings)
            case JobKind.AGENT | JobKind.MEMORY_AGENT:
                return self._hand_to(self._duties.run_agent, running)
            case JobKind.CONSOLIDATE:
                return self._hand_to(self._duties.consolidate, running)
            case other:
                assert_never(other)
        finished = self._holder.finish_recurring(running.claim, again)
        return WorkReport(stale=1) if isinstance(finished, StaleClaim) else WorkReport(upkeep=1)

    def _await_pause(self, claim: Claim) -> WorkReport | None:
        """Put off what a model is paid for while the session is going on; none: it is its time."""
        waits = None
        if is_paid(self._processor):
            waits = self._holder.await_pause(claim, self._settings.pause)
        if isinstance(waits, Deferred):
            _log.info("session %s: waits for a pause until %s", claim.key, waits.until)
            return WorkReport(postponed=1)
        return None if waits is None else WorkReport(stale=1)

    def _hand_to(self, run: RunClaim | None, running: _Running) -> WorkReport:
        if run is None:
            raise Postponed(
                f"this worker does not run jobs of the kind {running.claim.kind}",
                delay_seconds=self._settings.worker_tick_seconds,
            )
        return run(running.claim, self._holder, running.lost)

    def _run_on(self, running: _Running) -> Run:
        return Run(
            holder=self._holder,
            processor=self._processor,
            claim=running.claim,
            lost=running.lost,
            now=self._clock.now(),
        )

    # leases

    def renew_leases(self) -> None:
        """Renew what runs. One passing error is tolerated: the lease outlives two more attempts."""
        with self._changed:
            running = list(self._running.values())
        for each in running:
            try:
                renewed = self._holder.renew(each.claim)
            except StoreError as error:
                shown = log_text.loggable(error)
                _log.warning("cannot renew %s, trying again: %s", each.claim.key, shown)
                continue
            if isinstance(renewed, StaleClaim) and not each.done.is_set():
                _log.warning("%s %s was taken over", each.claim.kind, each.claim.key)
                each.lost.set()


class _Heartbeat:
    """Renews a worker's leases in the background, three times in the life of a lease."""

    def __init__(self, worker: Worker) -> None:
        self._renew = worker.renew_leases
        self._every = worker.lease_seconds / 3
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recollect-renew", daemon=True)

    def _run(self) -> None:
        while not self._over.wait(self._every):
            try:
                self._renew()
            except StoreClosed:
                return
            except Exception as error:  # nobody else keeps these leases alive
                _log.error("cannot renew; again in %g s: %s", self._every, log_text.trail(error))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _is_at_fault(error: Exception) -> bool:
    """Whether the job itself failed, and not the store, a provider, a key or a cap."""
    if isinstance(error, StoreError):
        return not error.retry_helps
    return not isinstance(error, Postponed | ModelUnavailable)

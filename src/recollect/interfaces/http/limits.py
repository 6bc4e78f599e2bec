"""What holds for a key however many processes serve: its rate, and requests that are done once.

What they have in common is in the store, and bounded there: in number, in size, and in time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.clock import Clock
from recollect.errors import StoreClosed, StoreError
from recollect.ids import Ids
from recollect.interfaces.http.problems import refusal
from recollect.memory import Memory
from recollect.types.access import ServingState, StateKind

KEYS_MAX = 10_000
DONE_OF_KEY_MAX = 10_000
DONE_KEPT = timedelta(hours=1)
UNDER_WAY_KEPT = timedelta(minutes=2)  # of a request whose process died
FINGERPRINT_BYTES = 2  # tell another body from a retry, and confirm no guess at what was said
BEAT_SECONDS = 10.0
PROCESS_LASTS = timedelta(seconds=30)
PROCESSES_MAX = 10_000

_log = logging.getLogger(__name__)


class ServingProcess:
    """This process among those that serve the store: a row that it renews, and their number."""

    def __init__(self, memory: Memory) -> None:
        self.count = 1
        self._memory = memory
        self._id = Ids(memory.clock).new()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recollect-http-beat", daemon=True)

    def start(self) -> None:
        self.beat()
        self._thread.start()

    def stop(self) -> None:
        """Leave the others; what is left of this process expires."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
            self._try(lambda: self._memory.store.serving.drop(StateKind.PROCESS, self._id))

    def beat(self) -> None:
        """Say that this process serves, count those that do, and drop what is over."""
        serving, now = self._memory.store.serving, self._memory.clock.now()
        state = ServingState(
            kind=StateKind.PROCESS, id=self._id, changed_at=now, expires_at=now + PROCESS_LASTS
        )
        self._try(lambda: serving.put(state))
        self._try(lambda: setattr(self, "count", max(1, serving.count(StateKind.PROCESS, now))))
        self._try(lambda: serving.prune(StateKind.REQUEST, DONE_OF_KEY_MAX, now))
        self._try(lambda: serving.prune(StateKind.PROCESS, PROCESSES_MAX, now))

    def _run(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self.beat()

    def _try(self, job: Callable[[], None]) -> None:
        try:
            job()
        except StoreClosed:
            self._over.set()
        except StoreError as error:  # a store that is read only, or away, is served as well
            _log.debug("not told to other processes: %s", type(error).__name__)


class Rate:
    """A bucket of tokens for each key: it fills by so many a second, up to a burst of them.

    Of several processes each allows its part, which is nearly the whole where a balancer spreads
    the requests of a key over them, and no request has to write anything.
    """

    def __init__(
        self,
        clock: Clock,
        per_second: float,
        burst: int,
        processes: Callable[[], int] = lambda: 1,
    ) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._processes = processes
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, key_id: str) -> None:
        """Take a token. Refusal: there is none."""
        if not self._per_second:
            return
        now, processes = self._clock.now(), self._processes()
        per_second, burst = self._per_second / processes, max(self._burst / processes, 1.0)
        with self._lock:
            tokens, since = self._buckets.pop(key_id, (burst, now))
            elapsed = max((now - since).total_seconds(), 0.0)
            tokens = min(tokens + elapsed * per_second, burst)
            self._buckets[key_id] = (tokens - (tokens >= 1), now)
            if len(self._buckets) > KEYS_MAX:
                self._buckets.popitem(last=False)
        if tokens < 1:
            wait = math.ceil((1 - tokens) / per_second)
            words = f"rate limit exceeded; try again in {wait} seconds"
            raise refusal(429, "too-many-requests", words, Retry_After=str(wait))


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneRequest:
    """The outcome of a request: how it was answered, and the ids to read that again by.

    Never what the answer said: what is forgotten meanwhile is not to be told from here.
    """

    status: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatableRequest:
    """A request with an idempotency key: whose it is, which it is, and what it was sent with."""

    key_id: str
    asked: str  # method, path and query
    idempotency_key: str
    body: bytes

    @property
    def digest(self) -> str:
        return self._digested(f"{self.key_id}\n{self.idempotency_key}\n{self.asked}")

    @property
    def fingerprint(self) -> str:
        sent = hashlib.sha256(self.digest.encode() + self.body)
        return sent.digest()[:FINGERPRINT_BYTES].hex()

    @staticmethod
    def _digested(text: str) -> str:
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class DoneOnce:
    """What was done by idempotency key, so that a retry is told of it and does nothing again.

    Whichever process is asked: it is in the store. Of a request whose process died nobody knows
    whether it was done; after a while it is done again.
    """

    def __init__(self, memory: Memory) -> None:
        self._clock = memory.clock
        self._memory = memory

    def begin(self, request: RepeatableRequest) -> DoneRequest | None:
        """What came of it before; none: it is to be done, and kept.

        Refusal: the first one is still under way, or its body was another.
        """
        known = self._memory.store.serving.begin(self._state(request, None))
        if known is None:
            return None
        kept = json.loads(known.value)
        if kept["fingerprint"] != request.fingerprint:
            words = "this Idempotency-Key was used with another body"
            raise refusal(422, "idempotency-key-reused", words)
        if "status" not in kept:
            words = "the first request with this Idempotency-Key is still being answered"
            raise refusal(409, "under-way", words, Retry_After="1")
        return DoneRequest(status=kept["status"], ids=tuple(kept["ids"]))

    def keep(self, request: RepeatableRequest, done: DoneRequest | None) -> None:
        """What came of it; none: nothing was done, and the next one begins afresh."""
        serving = self._memory.store.serving
        try:
            if done is None:
                serving.drop(StateKind.REQUEST, request.digest)
            else:
                serving.put(self._state(request, done))
        except (
            StoreClosed,
            StoreError,
        ) as error:  # it was answered: its client has no reason to come again
            _log.warning("an Idempotency-Key was not kept: %s", type(error).__name__)

    def _state(self, request: RepeatableRequest, done: DoneRequest | None) -> ServingState:
        now = self._clock.now()
        outcome = {} if done is None else {"status": done.status, "ids": done.ids}
        return ServingState(
            kind=StateKind.REQUEST,
            id=request.digest,
            owner=request.key_id,
            value=json.dumps({"fingerprint": request.fingerprint, **outcome}),
            changed_at=now,
            expires_at=now + (UNDER_WAY_KEPT if done is None else DONE_KEPT),
        )

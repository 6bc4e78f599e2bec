"""Limits per key, kept in this process: the rate of requests, and idempotency keys already used.

Everything here is bounded: in number, in size, and in time.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.clock import Clock
from recollect.interfaces.http.problems import refusal

KEYS_MAX = 10_000
DONE_MAX = 10_000
IDS_MAX = 200_000  # of all that was done
DONE_KEPT = timedelta(hours=1)


class Rate:
    """A bucket of tokens for each key: it fills by so many a second, up to a burst of them."""

    def __init__(self, clock: Clock, per_second: float, burst: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, key_id: str) -> None:
        """Take a token. Refusal: there is none."""
        if not self._per_second:
            return
        now = self._clock.now()
        with self._lock:
            tokens, since = self._buckets.pop(key_id, (float(self._burst), now))
            elapsed = max((now - since).total_seconds(), 0.0)
            tokens = min(tokens + elapsed * self._per_second, float(self._burst))
            self._buckets[key_id] = (tokens - (tokens >= 1), now)
            if len(self._buckets) > KEYS_MAX:
                self._buckets.popitem(last=False)
        if tokens < 1:
            wait = math.ceil((1 - tokens) / self._per_second)
            words = f"rate limit exceeded; try again in {wait} seconds"
            raise refusal(429, "too-many-requests", words, Retry_After=str(wait))


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneRequest:
    """The outcome of a request: how it was answered, and the ids to read that again by.

    Never what the answer said: what is forgotten meanwhile is not to be told from here.
    """

    status: int
    ids: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class _Kept:
    fingerprint: bytes
    until: datetime
    done: DoneRequest | None = None


RequestDigest = bytes  # a digest of whose key it is, of which request, and of the idempotency key


def place_of(key_id: str, request: str, idempotency_key: str) -> RequestDigest:
    named = f"{key_id}\n{idempotency_key}\n{request}"
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()


class DoneOnce:
    """What was done by idempotency key, so that a retry is told of it and does nothing again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[RequestDigest, _Kept] = OrderedDict()
        self._ids = 0
        self._lock = threading.Lock()

    def begin(self, place: RequestDigest, body: bytes) -> DoneRequest | None:
        """What came of it before; none: it is to be done, and kept.

        Refusal: the first one is still under way, or its body was another.
        """
        fingerprint = hashlib.sha256(body).digest()
        now = self._clock.now()
        with self._lock:
            self._drop_old(now)
            known = self._kept.get(place)
            if known is None:
                self._kept[place] = _Kept(fingerprint=fingerprint, until=now + DONE_KEPT)
                return None
        if known.fingerprint != fingerprint:
            words = "this Idempotency-Key was used with another body"
            raise refusal(422, "idempotency-key-reused", words)
        if known.done is None:
            words = "the first request with this Idempotency-Key is still being answered"
            raise refusal(409, "under-way", words, Retry_After="1")
        return known.done

    def keep(self, place: RequestDigest, done: DoneRequest | None) -> None:
        """What came of it; none: nothing was done, and the next one begins afresh."""
        with self._lock:
            known = self._kept.get(place)
            if known is None:
                return
            if done is None:
                del self._kept[place]
                return
            known.done = done
            self._ids += len(done.ids)

    def _drop_old(self, now: datetime) -> None:
        while self._kept:
            oldest = next(iter(self._kept.values()))
            is_full = len(self._kept) >= DONE_MAX or self._ids > IDS_MAX
            if oldest.until > now and not is_full:
                return
            _, dropped = self._kept.popitem(last=False)
            self._ids -= len(dropped.done.ids) if dropped.done else 0

"""Limits on what one key may do, kept in this process: requests a second, and answers given again.

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

KEYS_MAX = 10_000
ANSWERS_MAX = 10_000
ANSWER_BYTES_MAX = 65_536
ANSWERS_BYTES_MAX = 33_554_432
ANSWERS_KEPT = timedelta(hours=1)


class Rate:
    """A bucket of tokens for each key: it fills by so many a second, up to a burst of them."""

    def __init__(self, clock: Clock, per_second: float, burst: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, datetime]] = OrderedDict()
        self._lock = threading.Lock()

    def taken(self, key_id: str) -> int:
        """Take a token: 0 if there was one, else in how many seconds there will be."""
        if not self._per_second:
            return 0
        now = self._clock.now()
        with self._lock:
            tokens, since = self._buckets.pop(key_id, (float(self._burst), now))
            elapsed = max((now - since).total_seconds(), 0.0)
            tokens = min(tokens + elapsed * self._per_second, float(self._burst))
            is_there = tokens >= 1
            self._buckets[key_id] = (tokens - is_there, now)
            if len(self._buckets) > KEYS_MAX:
                self._buckets.popitem(last=False)
        return 0 if is_there else math.ceil((1 - tokens) / self._per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer as it went out, to be given once more."""

    status: int
    media_type: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The first request is still being answered."""


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """The same idempotency key came with something else."""


@dataclass(frozen=True, slots=True)
class First:
    """Nobody asked this before: it is to be answered, and the answer kept."""


@dataclass(slots=True, kw_only=True)
class _Kept:
    fingerprint: bytes
    until: datetime
    answer: Given | None = None


Place = tuple[str, str, str]  # whose key, which request, which idempotency key


class Answers:
    """Answers by idempotency key, so that a retry gets the first one and does nothing again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[Place, _Kept] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def begin(self, place: Place, body: bytes) -> Given | UnderWay | OtherRequest | First:
        fingerprint = hashlib.sha256(body).digest()
        now = self._clock.now()
        with self._lock:
            self._drop_old(now)
            known = self._kept.get(place)
            if known is None:
                self._kept[place] = _Kept(fingerprint=fingerprint, until=now + ANSWERS_KEPT)
                return First()
            if known.fingerprint != fingerprint:
                return OtherRequest()
            return known.answer or UnderWay()

    def keep(self, place: Place, answer: Given | None) -> None:
        """The answer that was given; none, or one too large: the next one asks afresh."""
        with self._lock:
            known = self._kept.get(place)
            if known is None:
                return
            if answer is None or len(answer.body) > ANSWER_BYTES_MAX:
                del self._kept[place]
                return
            known.answer = answer
            self._bytes += len(answer.body)

    def _drop_old(self, now: datetime) -> None:
        while self._kept:
            oldest = next(iter(self._kept.values()))
            is_full = len(self._kept) >= ANSWERS_MAX or self._bytes > ANSWERS_BYTES_MAX
            if oldest.until > now and not is_full:
                return
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped.answer.body) if dropped.answer else 0

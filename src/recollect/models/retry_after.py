"""When a provider wants to be asked again: `Retry-After` in all its forms, and resets of limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRY_AFTER_SECONDS_MAX = 3600.0  # asking once an hour harms nobody, whatever a header says

_RESET = re.compile(r"(?:x-)?ratelimit-reset(?:-(\w+))?|anthropic-ratelimit-([\w-]+)-reset")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_EPOCH_SECONDS_MIN = 1e9  # a smaller number is a distance in seconds
_EPOCH_MILLIS_MIN = 1e12


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long to wait, within bounds; None when the headers do not say.

    The names of the headers are in lower case. Dates count from the server's own clock where it
    tells it, so that a clock that is wrong on one side does not matter.
    """
    now = _date(headers.get("date", "")) or now
    for seconds in _stated(headers, now):
        if seconds is not None:
            return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)
    return None


def _stated(headers: Mapping[str, str], now: datetime) -> Iterator[float | None]:
    millis = _number(headers.get("retry-after-ms", ""))
    yield None if millis is None else millis / 1000
    value = headers.get("retry-after", "")
    yield _number(value)
    moment = _date(value)
    yield None if moment is None else (moment - now).total_seconds()
    yield max(_resets(headers, now), default=None)


def _resets(headers: Mapping[str, str], now: datetime) -> Iterator[float]:
    """The waits until limits that are used up are lifted."""
    for name, value in headers.items():
        if not _RESET.fullmatch(name):
            continue
        remaining = _number(headers.get(name.replace("reset", "remaining"), "0"))
        seconds = _until(value.strip(), now)
        if seconds is not None and not remaining:
            yield seconds


def _until(value: str, now: datetime) -> float | None:
    """Seconds until a reset: a duration (`6m0s`), a distance, an epoch or an ISO time."""
    if _DURATION.fullmatch(value):
        return sum(
            float(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION_PART.findall(value)
        )
    number = _number(value)
    if number is None:
        moment = _iso(value)
        return None if moment is None else (moment - now).total_seconds()
    if number >= _EPOCH_MILLIS_MIN:
        number /= 1000
    return number - now.timestamp() if number >= _EPOCH_SECONDS_MIN else number


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return _aware(moment)


def _iso(value: str) -> datetime | None:
    try:
        return _aware(datetime.fromisoformat(value))
    except ValueError:
        return None


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment

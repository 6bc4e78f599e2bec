"""Who may call a provider now: so many at once, and nobody for a while after it refused the key.

A provider is one host. All models of the process that call it share what is known here, whichever
store or space they work for.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.errors import ModelDenied

POLL_SECONDS = 0.1  # how often whoever waits asks whether it still should


@dataclass(frozen=True, slots=True, kw_only=True)
class _Denial:
    """The provider lets nobody with this key in before this moment."""

    message: str
    until: datetime


class Admission:
    """The door of one provider. Safe to share between threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way = 0
        self._denials: dict[str | None, _Denial] = {}  # by key

    @contextlib.contextmanager
    def slot(self, at_once_max: int, check: Callable[[], None]) -> Iterator[None]:
        """One of the calls that may be under way; `check` may end the wait for it by raising."""
        check()
        while not self._entered(at_once_max):
            check()
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()  # each has a limit of its own

    def _entered(self, at_once_max: int) -> bool:
        with self._changed:
            is_free = self._changed.wait_for(lambda: self._under_way < at_once_max, POLL_SECONDS)
            self._under_way += is_free
            return is_free

    def deny(self, key: str | None, error: ModelDenied, now: datetime) -> None:
        until = now + timedelta(seconds=error.delay_seconds)
        self._denials[key] = _Denial(message=str(error), until=until)

    def check_denial(self, key: str | None, now: datetime) -> None:
        """Raise the last ModelDenied again while its pause lasts."""
        denial = self._denials.get(key)
        if denial is not None and now < denial.until:
            left = (denial.until - now).total_seconds()
            raise ModelDenied(denial.message, delay_seconds=left)


_admissions: weakref.WeakValueDictionary[str, Admission] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def admission_to(host: str) -> Admission:
    """The one door of a host, for as long as somebody holds on to it."""
    with _lock:
        return _admissions.setdefault(host, Admission())

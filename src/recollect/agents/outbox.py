"""Keeps records that could not be stored: in order, in this process, and tries them again.

Owns T8's promise that a failing store never fails a turn. Every record has an append key, so that
one whose fate was unknown is stored once.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recollect.errors import AppendKeyReused, NotFound, StoreClosed, StoreError
from recollect.observing.log_text import loggable
from recollect.types.records import KeyRef, NewRecord

ENTRIES_MAX = 1000
PAUSE_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstored:
    """Records of one conversation, in order."""

    ref: KeyRef
    records: tuple[NewRecord, ...]


class Outbox:
    """Retries in the background while there is anything to store. Safe to share."""

    def __init__(self, append: Callable[[KeyRef, Sequence[NewRecord]], object]) -> None:
        self._append = append
        self._waiting: deque[Unstored] = deque()
        self._changed = threading.Condition()
        self._flushing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.failures = 0  # writes that failed
        self.dropped = 0  # records given up, because there were too many or others came before

    @property
    def pending(self) -> int:
        """Records that wait to be stored."""
        with self._changed:
            return sum(len(entry.records) for entry in self._waiting)

    def waiting(self, ref: KeyRef, append_key: str) -> NewRecord | None:
        """A record of a conversation that is not stored yet."""
        with self._changed:
            entries = [entry for entry in self._waiting if entry.ref == ref]
        records = (record for entry in entries for record in entry.records)
        return next((each for each in records if each.append_key == append_key), None)

    def add(self, ref: KeyRef, records: Sequence[NewRecord], error: StoreError) -> None:
        with self._changed:
            self.failures += 1
            _log.warning("%d records are stored later: %s", len(records), loggable(error))
            self._waiting.append(Unstored(ref=ref, records=tuple(records)))
            while len(self._waiting) > ENTRIES_MAX:
                self.dropped += len(self._waiting.popleft().records)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._run, name="recollect-outbox", daemon=True
                )
                self._thread.start()

    def flush(self) -> bool:
        """Try to store everything now; whether nothing is left."""
        with self._flushing:
            while True:
                with self._changed:
                    if not self._waiting:
                        return True
                    entry = self._waiting[0]
                if not self._stored(entry):
                    return False
                with self._changed:
                    if self._waiting and self._waiting[0] is entry:
                        self._waiting.popleft()

    def close(self) -> None:
        """One last try; what is left then is lost with the process, and says so."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if not self.flush():
            _log.error("%d records could not be stored", self.pending)
        if self._thread is not None:
            self._thread.join()

    def _stored(self, entry: Unstored) -> bool:
        """Whether an entry is dealt with: stored, or not worth another try."""
        try:
            self._append(entry.ref, entry.records)
        except (AppendKeyReused, NotFound):  # another has answered meanwhile, or it was forgotten
            self.dropped += len(entry.records)
        except StoreClosed:
            return False
        except StoreError as error:
            self.failures += 1
            if error.retry_helps:
                return False
            self.dropped += len(entry.records)
            _log.error("%d records cannot be stored: %s", len(entry.records), loggable(error))
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, PAUSE_SECONDS)
                if self._closed:
                    return
            if self.flush():
                with self._changed:
                    if not self._waiting:
                        self._thread = None
                        return

"""Redaction that does not look twice at the same text: a conversation is shown again every turn."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache

from recollect.redaction import Redactor

SPACES_MAX = 64
TEXTS_MAX = 1024  # of one space
TEXT_CHARS_MAX = 20_000  # what is longer is looked at again


class Redacting:
    """The redactors of the spaces that were used last. Safe to share between threads."""

    def __init__(self, redactor: Callable[[], Redactor]) -> None:
        self._redactor = redactor
        self._known: OrderedDict[str, Callable[[str], str]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, space: str) -> Callable[[str], str]:
        """What redacts texts of a space."""
        with self._lock:
            found = self._known.get(space)
        if found is None:
            found = _remembering(self._redactor().keyed(space).redact)
        with self._lock:
            self._known[space] = found
            self._known.move_to_end(space)
            while len(self._known) > SPACES_MAX:
                self._known.popitem(last=False)
        return found


def _remembering(redact: Callable[[str], str]) -> Callable[[str], str]:
    remembered = lru_cache(maxsize=TEXTS_MAX)(redact)

    def redacted(text: str) -> str:
        return remembered(text) if len(text) <= TEXT_CHARS_MAX else redact(text)

    return redacted

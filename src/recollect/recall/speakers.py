"""Who speaks in a space, as far as earlier questions have shown: a guess that saves a search."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection

SPACES_MAX = 1000
NAMES_MAX = 100  # of a space: those seen last


class KnownSpeakers:
    """Who was seen speaking in the spaces asked last. Safe to share between threads."""

    def __init__(self, spaces_max: int = SPACES_MAX, names_max: int = NAMES_MAX) -> None:
        self._spaces_max = spaces_max
        self._names_max = names_max
        self._names: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, space: str) -> Collection[str]:
        return self._names.get(space, ())

    def saw(self, space: str, names: Collection[str]) -> None:
        with self._lock:
            known = self._names.pop(space, ())
            older = [name for name in known if name not in names]
            self._names[space] = (*older, *names)[-self._names_max :]
            while len(self._names) > self._spaces_max:
                self._names.popitem(last=False)

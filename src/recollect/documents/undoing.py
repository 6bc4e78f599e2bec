"""Collections that remember what was done to them, so that it can be undone.

Taking a copy before each edit would cost as much as there is; this costs what the edit changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")
Journal = list[Callable[[], object]]


def undo(journal: Journal) -> None:
    """Undo all that was noted, the last first."""
    undoing = journal[::-1]
    for step in undoing:
        step()
    journal.clear()  # also of what the undoing noted


class UndoDict(dict[K, V]):
    """A mapping; what is put back after it was taken out comes last."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def __setitem__(self, key: K, value: V) -> None:
        self._note(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        self._note(key)
        super().__delitem__(key)

    def pop(self, key: K, *default: Any) -> Any:
        self._note(key)
        return super().pop(key, *default)

    def update(self, *others: Any, **named: Any) -> None:
        for key, value in dict(*others, **named).items():
            self[key] = value

    def _note(self, key: K) -> None:
        if key in self:
            value = self[key]
            self._journal.append(lambda: super(UndoDict, self).__setitem__(key, value))
        else:
            self._journal.append(lambda: super(UndoDict, self).pop(key, None))


class UndoSet(set[K]):
    """A set, of which one is added or taken out at a time."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def add(self, value: K) -> None:
        if value not in self:
            self._journal.append(lambda: super(UndoSet, self).discard(value))
            super().add(value)

    def discard(self, value: object) -> None:
        if value in self:
            self._journal.append(lambda: super(UndoSet, self).add(cast(K, value)))
            super().discard(value)


class UndoList(list[V]):
    """A list, of which one is put in, replaced or taken out at a time."""

    def __init__(self, journal: Journal, values: Iterable[V] = ()) -> None:
        super().__init__(values)
        self._journal = journal

    def append(self, value: V) -> None:
        self._journal.append(super().pop)
        super().append(value)

    def insert(self, at: SupportsIndex, value: V) -> None:
        self._journal.append(lambda: super(UndoList, self).__delitem__(at))
        super().insert(at, value)

    def __setitem__(self, at: Any, value: Any) -> None:
        before = self[at]
        self._journal.append(lambda: super(UndoList, self).__setitem__(at, before))
        super().__setitem__(at, value)

    def __delitem__(self, at: Any) -> None:
        before = self[at]
        self._journal.append(lambda: super(UndoList, self).insert(at, before))
        super().__delitem__(at)

"""What an import came to, as far as it has got: counted, never listed, so that it stays small."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from recollect.importers.items import Odd

PLACES_MAX = 20  # of what was not understood, with the file and the line
DETAILS_MAX = 100  # different ones that are told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class OddPlace:
    """Where something stands that was not understood."""

    place: str
    odd: Odd


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """Counts of one import. `known` came in before, or is a copy of what did."""

    source: str
    files: int = 0
    files_unchanged: int = 0
    bytes_read: int = 0
    records: int = 0
    known: int = 0
    facts: int = 0
    facts_changed: int = 0  # that came in before, and read otherwise now
    documents: int = 0
    sessions: set[str] = field(default_factory=set)  # their keys, of those that something new is in
    forms: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    odd: Counter[tuple[str, str]] = field(default_factory=Counter)  # by trouble and detail
    odd_places: list[OddPlace] = field(default_factory=list)

    @property
    def is_not_understood(self) -> bool:
        """Whether there was something to read, and nothing at all of it was understood."""
        came = self.records or self.facts or self.facts_changed or self.documents
        return bool(self.odd) and not (came or self.known or self.left_out or self.files_unchanged)

    def add_odd(self, place: str, odd: Odd) -> None:
        detail = odd.detail if len(self.odd) < DETAILS_MAX else "and others"
        self.odd[odd.trouble.value, detail] += 1
        if len(self.odd_places) < PLACES_MAX:
            self.odd_places.append(OddPlace(place=place, odd=odd))


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an import has got, for who waits for it."""

    files_done: int
    files: int
    bytes_done: int
    bytes_all: int
    records: int

"""Stores that take in other programs' items wrongly, to show that the suite has teeth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from recollect.store.relational.imports import Imports
from recollect.types.imports import Adopted, Arrival, Cursor
from recollect.types.records import KeyRef, MarkPolicy


class TwistedImports(Imports):
    """Takes in something else than it was given."""

    def adopt(
        self,
        ref: KeyRef,
        arrivals: Sequence[Arrival],
        cursor: Cursor,
        policy: MarkPolicy,
        now: datetime,
        new_id: Callable[[], str],
    ) -> Adopted:
        turned, moved = self.twisted(ref, arrivals, cursor)
        return super().adopt(ref, turned, moved, policy, now, new_id)

    def twisted(
        self, ref: KeyRef, arrivals: Sequence[Arrival], cursor: Cursor
    ) -> tuple[Sequence[Arrival], Cursor]:
        return arrivals, cursor


class SessionwiseImports(TwistedImports):
    """Knows items by their session, and takes a copy in another for new."""

    def twisted(
        self, ref: KeyRef, arrivals: Sequence[Arrival], cursor: Cursor
    ) -> tuple[Sequence[Arrival], Cursor]:
        named = [Arrival(f"{ref.key_id}-{each.item}", each.record) for each in arrivals]
        return named, cursor


class SourcelessImports(TwistedImports):
    """Does not tell sources apart."""

    def twisted(
        self, ref: KeyRef, arrivals: Sequence[Arrival], cursor: Cursor
    ) -> tuple[Sequence[Arrival], Cursor]:
        return arrivals, replace(cursor, source="any")


class StuckImports(Imports):
    """Forgets what readers wanted to know of the lines before."""

    def cursor(self, space: str, source: str, place: str) -> Cursor | None:
        found = super().cursor(space, source, place)
        return None if found is None else replace(found, memo="{}")


BROKEN_IMPORTS: dict[str, tuple[type[Imports], str]] = {
    "knows items by their session": (SessionwiseImports, "a_copy_in_another_session_is_left_out"),
    "does not tell sources apart": (SourcelessImports, "a_cursor_comes_back_as_it_was_moved"),
    "forgets the memo": (StuckImports, "a_cursor_comes_back_as_it_was_moved"),
}

MUTED_IMPORTS: dict[str, str] = {
    "note_imported": "an_adopted_batch_is_appended",
    "move_import_cursor": "a_cursor_comes_back_as_it_was_moved",
}

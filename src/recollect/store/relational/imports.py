"""Imports: stores the new items of a batch, its records and its cursor in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime

from recollect.clock import to_micros
from recollect.crashpoints import reach
from recollect.store.relational.database import Aggregate, Connection
from recollect.store.relational.records import append_keyed, index
from recollect.store.relational.rows import reader
from recollect.types.imports import Adopted, Arrival, Cursor
from recollect.types.records import KeyRef, MarkPolicy


class Imports(Aggregate):
    """Items of other programs, each imported once in a space; items are digests."""

    def adopt(
        self,
        ref: KeyRef,
        arrivals: Sequence[Arrival],
        cursor: Cursor,
        policy: MarkPolicy,
        now: datetime,
        new_id: Callable[[], str],
    ) -> Adopted:
        """Append what is new of a batch to the key's session, and move the cursor with it.

        What has come in before from the same source, here or in another session, is left out, also
        if it has been forgotten since.
        """
        index([each.record for each in arrivals])  # before anybody has to wait for it

        def job(c: Connection) -> Adopted:
            c.row("lock_key", {"space": ref.space, "key_id": ref.key_id})
            fresh = _note(c, ref.space, cursor.source, [each.item for each in arrivals], now)
            reach("import.noted")
            new = [each.record for each in arrivals if fresh.pop(each.item, False)]
            records = append_keyed(c, ref, new, policy, now, new_id) if new else []
            _move(c, ref.space, cursor, now)
            return Adopted(records=records, known=len(arrivals) - len(new))

        return self._database.write(ref.space, job)

    def note(self, space: str, items: Sequence[str], cursor: Cursor, now: datetime) -> None:
        """Note items that did not become records, and how far a file was read."""

        def job(c: Connection) -> None:
            _note(c, space, cursor.source, items, now)
            _move(c, space, cursor, now)

        self._database.write(space, job)

    def known(self, space: str, source: str, items: Sequence[str]) -> frozenset[str]:
        """Those of these items that were imported before."""
        names = {"space": space, "source": source, "items": json.dumps(sorted(set(items)))}
        found = self._rows(space, "find_imported", names)
        return frozenset(row[0] for row in found)

    def cursor(self, space: str, source: str, place: str) -> Cursor | None:
        """How far a file has been read; None: not at all."""
        names = {"space": space, "source": source, "place": place}
        return self._one(reader(Cursor), space, "import_cursor", names)


def _note(
    c: Connection, space: str, source: str, items: Sequence[str], now: datetime
) -> dict[str, bool]:
    """Note items, and say of each that it is new if it is."""
    if not items:
        return {}
    names = {"space": space, "source": source, "now": to_micros(now)}
    found = c.rows("note_imported", {**names, "items": json.dumps(sorted(set(items)))})
    return {row[0]: True for row in found}


def _move(c: Connection, space: str, cursor: Cursor, now: datetime) -> None:
    moved = {
        "space": space,
        "source": cursor.source,
        "place": cursor.place,
        "offset_bytes": cursor.offset,
        "line": cursor.line,
        "head": cursor.head,
        "head_bytes": cursor.head_bytes,
        "memo": cursor.memo,
        "now": to_micros(now),
    }
    c.run("move_import_cursor", moved)

"""What sessions came to, the passes over them, and how a session's work stands."""

from __future__ import annotations

import builtins
from datetime import datetime

from recollect.clock import to_micros
from recollect.store.relational import rows
from recollect.store.relational.database import (
    EVERY_SPACE,
    Connection,
    Database,
    Row,
    in_each_space,
    scope,
)
from recollect.store.relational.jobs import make_due
from recollect.types.facts import Extraction, Revision
from recollect.types.records import SessionProgress

_LAST_MOMENT = 2**62  # later than any time


class RelationalExtractions:
    """Implements `recollect.store.protocol.Extractions`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, space: str, session_id: str) -> Extraction | None:
        names = {"space": space, "id": session_id}
        row = self._database.read(space, lambda c: c.row("get_extraction", names))
        return None if row is None else rows.extraction(row)

    def list(self, space: str, limit: int, before: Extraction | None) -> builtins.list[Extraction]:
        page = {
            "space": space,
            "before": _LAST_MOMENT if before is None else to_micros(before.generated_at),
            "before_id": "" if before is None else before.session_id,
            "limit": limit,
        }
        found = self._database.read(space, lambda c: c.rows("list_extractions", page))
        return [rows.extraction(row) for row in found]

    def revision(self, space: str) -> Revision:
        row = self._database.read(space, lambda c: c.row("get_revision", {"space": space}))
        if row is None:
            return Revision(changed=0, consolidated=0, changed_at=None)
        return Revision(changed=row[0], consolidated=row[1], changed_at=rows.moment(row[2]))

    def count_due(self, space: str | None) -> int:
        row = self._database.read(space, lambda c: c.row("count_consolidations_due", scope(space)))
        assert row is not None
        return int(row[0])

    def progress(self, space: str | None, limit: int) -> builtins.list[SessionProgress]:
        def job(c: Connection) -> builtins.list[Row]:
            if space is None:
                return c.rows("store_progress", {"limit": limit})
            return c.rows("space_progress", {"space": space, "limit": limit})

        return [rows.progress(row) for row in self._database.read(space, job)]

    def request_passes(self, space: str | None, session_id: str | None, now: datetime) -> int:
        which = {"any_key": session_id is None, "key": session_id or "", "now": to_micros(now)}

        def job(c: Connection, each: str) -> int:
            own = {**which, "space": each}
            c.rows("hold_passable", own)
            return len(make_due(c, "request_passes", own))

        return sum(in_each_space(self._database, space, EVERY_SPACE, job).values())

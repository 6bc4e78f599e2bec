"""Extractions of sessions, new passes over them, and the progress of each session."""

from __future__ import annotations

import builtins
from datetime import datetime

from recollect.clock import from_micros, to_micros
from recollect.store.relational import rows
from recollect.store.relational.database import (
    EVERY_SPACE,
    Aggregate,
    Asked,
    Connection,
    Row,
    in_each_space,
    scope,
)
from recollect.store.relational.jobs import make_due
from recollect.types.facts import (
    Call,
    CallOutcome,
    Caps,
    Extraction,
    NewCall,
    OverCap,
    Reserved,
    Revision,
    Spent,
)
from recollect.types.records import SessionProgress

_LAST_MOMENT = 2**62  # later than any time


class Extractions(Aggregate):
    """Extractions of sessions."""

    def get(self, space: str, session_id: str) -> Extraction | None:
        names = {"space": space, "id": session_id}
        return self._one(rows.extraction, space, "get_extraction", names)

    def list(self, space: str, limit: int, before: Extraction | None) -> builtins.list[Extraction]:
        """A page of extractions, the most recently made first."""
        page = {
            "space": space,
            "before": _LAST_MOMENT if before is None else to_micros(before.generated_at),
            "before_id": "" if before is None else before.session_id,
            "limit": limit,
        }
        return self._page(rows.extraction, space, "list_extractions", page)

    def revision(self, space: str) -> Revision:
        """The number of changes of the space's memory, and of those consolidation has seen."""
        row = self._row(space, "get_revision", {"space": space})
        if row is None:
            return Revision(changed=0, consolidated=0, changed_at=None)
        return Revision(changed=row[0], consolidated=row[1], changed_at=rows.moment(row[2]))

    def count_due(self, space: str | None) -> int:
        """The number of spaces with changes that consolidation has not seen."""
        return self._count(space, "count_consolidations_due", scope(space))

    def progress(self, space: str | None, limit: int) -> builtins.list[SessionProgress]:
        """The progress of extraction per session, the most recently begun first."""

        def job(c: Connection) -> builtins.list[Row]:
            if space is None:
                return c.rows("store_progress", {"limit": limit})
            return c.rows("space_progress", {"space": space, "limit": limit})

        return [rows.progress(row) for row in self._database.read(space, job)]

    def request_passes(self, space: str | None, session_id: str | None, now: datetime) -> int:
        """Make a new pass due over one session, those of a space, or all; return the number."""
        which = {"any_key": session_id is None, "key": session_id or "", "now": to_micros(now)}

        def job(c: Connection, each: str) -> int:
            own = {**which, "space": each}
            c.rows("hold_passable", own)
            return len(make_due(c, "request_passes", own))

        return sum(in_each_space(self._database, space, EVERY_SPACE, job).values())


_DAY_MICROS = 86_400_000_000
_LAST_ID = 2**62


class _OverCapError(Exception):
    """There is no room for a call that was entered in the same transaction."""


class Ledger(Aggregate):
    """The spending of model calls, checked against the caps of a space."""

    def reserve(self, call: NewCall, caps: Caps, now: datetime) -> Reserved | OverCap:
        """Reserve the most that a call may use, unless that exceeds a cap."""
        today = {"space": call.space, "day": to_micros(now) // _DAY_MICROS}
        tokens = {"input_tokens": call.input_tokens, "output_tokens": call.output_tokens}

        most = {"calls_max": caps.calls_per_day, "tokens_max": caps.tokens_per_day}
        entry = {
            "session_id": call.session_id,
            "purpose": call.purpose,
            "model": call.model,
            "attempt": call.attempt,
            "now": to_micros(now),
        }

        def job(c: Connection) -> Reserved:
            reserve: Asked = ("reserve_spending", {**today, **tokens, **most})
            reserved, made = c.rows_each([reserve, ("insert_call", {**today, **tokens, **entry})])
            if not reserved:
                raise _OverCapError  # which takes the call back: mostly there is room for it
            return Reserved(made[0][0])

        try:
            return self._database.write(call.space, job)
        except _OverCapError:
            spent = self.spent(call.space, now)
            return OverCap(spent, _cap_in_the_way(spent, caps))

    def settle(self, space: str, call_id: int, spent: Spent, outcome: CallOutcome) -> bool:
        """Replace the reservation by what the call used: nothing, if it never began.

        False: it was settled before.
        """
        took = {
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "cost_micros": spent.cost_micros,
        }

        def job(c: Connection) -> bool:
            names = {"space": space, "id": call_id}
            now_settled = {**names, **took, "outcome": outcome.value}
            found = c.rows_each([("reserved_call", names), ("settle_call", now_settled)])
            if not all(found):  # it was settled before, perhaps a moment ago
                return False
            [reserved], [settled] = found
            c.run(
                "add_spending",
                {
                    "space": space,
                    "day": settled[0],
                    "calls": spent.calls - 1,
                    "input_tokens": spent.input_tokens - reserved[0],
                    "output_tokens": spent.output_tokens - reserved[1],
                    "cost_micros": spent.cost_micros,
                },
            )
            return True

        return self._database.write(space, job)

    def spent(self, space: str | None, day: datetime) -> Spent:
        when = {"day": to_micros(day) // _DAY_MICROS}
        row = self._row(space, "spent_on_day", {**scope(space), **when})
        assert row is not None
        return rows.spent(row)

    def spent_by_purpose(self, space: str | None, day: datetime) -> list[tuple[str, Spent, Spent]]:
        """The spending for each purpose of calls, on a day and in all."""
        when = {"day": to_micros(day) // _DAY_MICROS}
        found = self._rows(space, "spent_by_purpose", {**scope(space), **when})
        return [(row[0], rows.spent(row[1:5]), rows.spent(row[5:])) for row in found]

    def spent_daily(
        self, space: str | None, first: datetime, last: datetime
    ) -> list[tuple[datetime, Spent]]:
        """The spending of each day from the first to the last, by its midnight; none: nothing."""
        given = {
            **scope(space),
            "first": to_micros(first) // _DAY_MICROS,
            "last": to_micros(last) // _DAY_MICROS,
        }
        found = self._rows(space, "spent_daily", given)
        return [(from_micros(row[0] * _DAY_MICROS), rows.spent(row[1:])) for row in found]

    def calls(
        self, space: str, session_id: str | None, limit: int, before: Call | None
    ) -> list[Call]:
        """A page of calls, newest first."""
        page = {
            "space": space,
            "any_session": session_id is None,
            "session_id": session_id or "",
            "before": _LAST_ID if before is None else before.id,
            "limit": limit,
        }
        return self._page(rows.call, space, "list_calls", page)


def _cap_in_the_way(spent: Spent, caps: Caps) -> str:
    if spent.calls + 1 > caps.calls_per_day:
        return f"{caps.calls_per_day:,} calls a day"
    return f"{caps.tokens_per_day:,} tokens a day"

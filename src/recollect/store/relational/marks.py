"""Marks and cursors: marks only rise, and compare-and-swap clears them."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from functools import partial

from recollect.clock import to_micros
from recollect.crashpoints import reach
from recollect.store.relational import rows
from recollect.store.relational.database import (
    Aggregate,
    Connection,
    in_each_space,
    scope,
)
from recollect.store.relational.jobs import (
    make_due,
    mark,
    mark_cleared,
    mark_made,
    pass_over,
    record_rest,
)
from recollect.store.relational.rows import storable_json
from recollect.store.relational.sessions import current_session, locked_session
from recollect.types.records import KeyRef, MarkCause, Outcome, Range, SessionState, Unattended


class Marks(Aggregate):
    """Marks, cursors, and the ranges that have been dealt with."""

    def invalidate(
        self, space: str, session_id: str, seq: int, cause: MarkCause, now: datetime
    ) -> None:
        names = {"space": space, "id": session_id}
        self._database.write(space, lambda c: mark(c, names, seq, cause, now))

    def invalidate_current(self, ref: KeyRef, cause: MarkCause, now: datetime) -> SessionState:
        """Mark the key's current session up to its last record."""

        def job(c: Connection) -> SessionState:
            session = locked_session(c, ref)
            names = {"space": ref.space, "id": session.id}
            row = c.row("lock_session", names)
            assert row is not None
            mark(c, names, row[0], cause, now)
            return current_session(c, ref)

        return self._database.write(ref.space, job)

    def find_invalidated(self, space: str, limit: int) -> list[SessionState]:
        page = {"space": space, "limit": limit}
        return self._page(rows.session_state, space, "find_invalidated", page)

    def mark_processed(
        self, space: str, session_id: str, processed_until: int, expected: int, now: datetime
    ) -> bool:
        names = {"space": space, "id": session_id}

        def job(c: Connection) -> bool:
            before = c.row("lock_session", names)
            if before is None:
                return False
            swap = {**names, "processed_until": processed_until, "expected": expected}
            after = c.row("mark_processed", swap)
            if after is None:
                return False
            mark_cleared(c, names)
            reach("processed.cleared")
            record_rest(c, names, before[1], after[0], Outcome.EXTERNAL, None, now)
            pass_over(c, names)
            return True

        return self._database.write(space, job)

    def max_seq(self, space: str, session_id: str) -> int | None:
        names = {"space": space, "id": session_id}
        row = self._row(space, "max_seq", names)
        return None if row is None else row[0]

    def count_since(self, space: str, session_id: str, seq: int) -> int:
        names = {"space": space, "id": session_id, "seq": seq}
        row = self._row(space, "count_since", names)
        return 0 if row is None else int(row[0])

    def bound_activity(self, space: str | None, now: datetime) -> None:
        """Cap the last activity of waiting sessions at now: another clock was ahead."""
        at = {"now": to_micros(now)}

        def job(c: Connection, each: str) -> None:
            c.run("bound_activity", {**at, "space": each})

        in_each_space(self._database, space, ("spaces_ahead", at), job)

    def mark_idle(
        self, space: str | None, which: Unattended | None, now: datetime, limit: int
    ) -> list[tuple[str, str]]:
        """Mark at most `limit` waiting sessions, of these or of all; (space, session id) of each.

        Those longest without activity come first.
        """
        sweep = {**_which(which), "now": to_micros(now)}
        ids: defaultdict[str, list[str]] = defaultdict(list)
        for session in self.waiting(space, limit, which):
            ids[session.space].append(session.id)

        def job(c: Connection, space: str) -> list[tuple[str, str]]:
            found = []
            for session_id in sorted(ids[space]):  # in one order, as all who hold several jobs
                names = {**sweep, "space": space, "id": session_id}
                if c.row("mark_idle", names) is not None:
                    found.append((space, session_id))
            marked = ({"space": space, "id": each, "marked_at": sweep["now"]} for _, each in found)
            mark_made(c, *marked)
            return found

        found = [self._database.write(each, partial(job, space=each)) for each in sorted(ids)]
        return [session for marked in found for session in marked]

    def request_marked(self, space: str | None) -> None:
        """Have no marked session wait for a pause, in a space or in all."""

        def job(c: Connection, each: str) -> None:
            c.run("request_all_marked", {"space": each})
            make_due(c, "end_pauses", {"space": each, "any_key": True, "id": ""})

        in_each_space(self._database, space, ("spaces_marked", scope(None)), job)

    def ranges(self, space: str, session_id: str) -> list[Range]:
        """The ranges up to the cursor with their outcomes, and those skipped above it."""
        names = {"space": space, "id": session_id}
        return self._page(rows.processed_range, space, "list_ranges", names)

    def counts(self, space: str | None) -> tuple[int, int]:
        """The numbers of sessions that are marked, and that wait with unprocessed records."""

        def job(c: Connection) -> tuple[int, int]:
            marked = c.row("count_marked", scope(space))
            waiting = c.row("count_waiting", scope(space))
            assert marked is not None
            assert waiting is not None
            return int(marked[0]), int(waiting[0])

        return self._database.read(space, job)

    def marked(self, space: str | None, limit: int) -> list[SessionState]:
        """Marked sessions, first marked first."""
        page = {**scope(space), "limit": limit}
        return self._page(rows.session_state, space, "list_marked", page)

    def waiting(
        self, space: str | None, limit: int, which: Unattended | None = None
    ) -> list[SessionState]:
        """Sessions with unprocessed records and no mark, longest without activity first.

        All, or which of them.
        """
        page = {**scope(space), **_which(which), "limit": limit}
        return self._page(rows.session_state, space, "list_waiting", page)

    def waiting_newest(self, which: Unattended, rows_max: int, limit: int) -> list[SessionState]:
        """Such sessions over all spaces, the most recent activity first, among the newest rows."""
        page = {**_which(which), "rows": rows_max, "limit": limit}
        del page["is_all"]
        return self._page(rows.session_state, None, "waiting_newest", page)


def _which(which: Unattended | None) -> dict[str, object]:
    return {
        "is_all": which is None,
        "oldest": 0 if which is None else to_micros(which.oldest),
        "newest": 0 if which is None else to_micros(which.newest),
        "any_source": which is None or not which.sources,
        "sources": storable_json([] if which is None else list(which.sources)),
    }

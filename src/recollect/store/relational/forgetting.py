"""Forgetting: a session, all that is in it and all that rests on it alone, in one transaction.

What runs on the session meanwhile loses its claim and stores nothing.
"""

from __future__ import annotations

from datetime import datetime

from recollect.clock import to_micros
from recollect.crashpoints import reach
from recollect.knowledge import Receipt
from recollect.store.relational.cursor import skip_unprocessed
from recollect.store.relational.database import Connection, Database
from recollect.store.relational.learning import erase_sourceless

_EVERY = 2**62
FORGOTTEN = "forgotten"


class RelationalErasure:
    """Implements `recollect.store.protocol.Erasure`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def forget_session(self, space: str, session_id: str, now: datetime) -> Receipt | None:
        names = {"space": space, "id": session_id}
        at = to_micros(now)

        def job(c: Connection) -> Receipt | None:
            if c.row("lock_session", names) is None:
                return None
            counted = c.row("count_session", names)
            assert counted is not None
            c.run("end_session", {**names, "cause": "end", "reason": FORGOTTEN, "now": at})
            skip_unprocessed(c, space, session_id, FORGOTTEN, now)
            c.run("forget_job", names)
            c.run("lock_memory", {"space": space})
            facts = _forget_facts(c, space, session_id, now)
            extraction = c.row("delete_extraction", {"space": space, "session_id": session_id})
            c.run("delete_records", {**names, "upto": _EVERY})
            reach("forget.deleted")
            c.run("delete_retained", names)
            c.run("delete_retained_from", names)
            c.run("delete_summary", names)
            c.run("forget_calls", names)
            if counted[2] or extraction is not None:
                c.run("note_change", {"space": space, "now": at})
            return Receipt(
                space=space,
                session_id=session_id,
                records=int(counted[0]),
                facts=facts,
                sources=int(counted[2]),
                extractions=int(extraction is not None),
                summaries=int(counted[1]),
                at=now,
            )

        receipt = self._database.write(space, job)
        if receipt is not None:
            self._database.scrub()
        return receipt


def _forget_facts(c: Connection, space: str, session_id: str, now: datetime) -> int:
    """Remove the session from the sources of facts, and the facts that have no other."""
    names = {"space": space, "session_id": session_id}
    found = [row[0] for row in c.rows("session_facts", names)]
    for key in found:
        c.run("withdraw_sources", {**names, "fact_key": key})
    return sum(erase_sourceless(c, space, key, now, by=FORGOTTEN) for key in found)

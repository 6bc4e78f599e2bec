"""Forgetting: a session, all that is in it and all that rests on it alone, in one transaction.

What runs on the session meanwhile loses its claim and stores nothing.
"""

from __future__ import annotations

import json
import re
from datetime import datetime

from recollect.clock import to_micros
from recollect.crashpoints import reach
from recollect.domain import MarkCause, Outcome
from recollect.generation import RemovedBecause
from recollect.knowledge import Receipt
from recollect.store.relational.cursor import record_range
from recollect.store.relational.database import Connection, Database, Params
from recollect.store.relational.document_rows import provenance, read_provenance
from recollect.store.relational.learning import erase_sourceless, settle_trust

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
            key = c.row("key_of_session", names)
            if key is None:
                return None
            # Before the key, as in a turn: whoever is at work on them has lost them.
            c.run("forget_own_items", {**names, "said": "inbox:"})
            # Whoever appends or rotates relies on a session to stay open while they hold its key.
            c.row("lock_key", {"space": space, "key_id": key[0]})
            before = c.row("lock_session", names)
            assert before is not None, "sessions are never removed"
            counted = c.row("count_session", names)
            assert counted is not None
            cause = MarkCause.END.value
            c.run("close_forgotten", {**names, "cause": cause, "reason": FORGOTTEN, "now": at})
            record_range(c, names, before[1], before[0], Outcome.SKIPPED, FORGOTTEN, now)
            c.run("forget_job", names)
            _forget_told(c, names)
            c.run("lock_memory", {"space": space})
            facts = _forget_facts(c, space, session_id, now)
            own = {"space": space, "session_id": session_id}
            grave = {**own, "reason": RemovedBecause.FORGOTTEN.value, "now": at}
            buried = c.row("bury_memory", grave)
            extraction = c.row("delete_extraction", own)
            c.run("delete_records", {**names, "upto": _EVERY})
            reach("forget.deleted")
            c.run("delete_retained", names)
            c.run("delete_retained_from", names)
            summaries = len(c.rows("forget_summaries", names))
            c.run("forget_calls", names)
            c.run("drop_staged", names)
            c.run("forget_usages", names)
            c.run("note_forgotten", {**names, "now": at})
            _forget_grounds(c, space, session_id)
            if counted[1] or extraction is not None or buried is not None:
                c.run("note_urgent", {"space": space, "now": at})
            return Receipt(
                space=space,
                session_id=session_id,
                records=int(counted[0]),
                facts=facts,
                sources=int(counted[1]),
                extractions=int(extraction is not None),
                summaries=summaries,
                at=now,
            )

        receipt = self._database.write(space, job)
        if receipt is not None:
            self._database.scrub()
        return receipt


def _forget_told(c: Connection, names: Params) -> None:
    """Remove what agents were to be told of a session, and what they said of it."""
    c.rows("forget_items", names)
    told = [
        {"space": names["space"], "session_id": row[0], "first_seq": row[1], "last_seq": row[2]}
        for row in c.rows("told_of", names)
    ]
    for stretch in told:
        c.run("delete_told_retained", stretch)
        c.run("delete_told_records", stretch)
        c.rows("forget_summaries", {"space": names["space"], "id": stretch["session_id"]})
    c.run("forget_told", names)


def _forget_facts(c: Connection, space: str, session_id: str, now: datetime) -> int:
    """Remove the session from the sources of facts, and the facts that have no other."""
    names = {"space": space, "session_id": session_id}
    found = [row[0] for row in c.rows("session_facts", names)]
    for key in found:
        c.run("withdraw_sources", {**names, "fact_key": key})
    erased = {key for key in found if erase_sourceless(c, space, key, now, by=FORGOTTEN)}
    for key in found:
        if key not in erased:
            settle_trust(c, space, key, now, by=FORGOTTEN)
    return len(erased)


def _forget_grounds(c: Connection, space: str, session_id: str) -> None:
    """Remove the session, and what was quoted from it, from what documents rest on."""
    # Whoever writes a version at this moment is before us or after.
    c.row("lock_tree", {"space": space})
    for key, version, text in c.rows(
        "provenances_naming", {"space": space, "pattern": _naming(session_id)}
    ):
        sources, facts = read_provenance(text)
        kept = [source for source in sources if source.session_id != session_id]
        changed = {
            "space": space,
            "key": key,
            "version": version,
            "provenance": provenance(kept, facts),
        }
        c.run("set_provenance", changed)
        c.run("set_document_provenance", changed)


def _naming(session_id: str) -> str:
    """What matches every text in which the session's name stands as JSON writes it."""
    name = json.dumps(session_id, ensure_ascii=False)
    return "%" + re.sub(r"([\\%_])", r"\\\1", name) + "%"

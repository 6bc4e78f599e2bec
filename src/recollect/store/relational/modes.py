"""Changes the mode of a session, and with it the memory learned from it, in one transaction.

While a session is left out of memory, facts found in it alone do not hold: the queries see to
that. Here the facts that those had superseded become current again, and are superseded again when
the session returns; memory-agents that were told of the session are told of the change. Nothing is
erased but pages that a model wrote from it, which it writes again when the session returns.
"""

from __future__ import annotations

from datetime import datetime

from recollect.clock import to_micros
from recollect.store.relational.database import Connection, Params
from recollect.store.relational.fact_changes import STRENGTH, note, release_superseded
from recollect.store.relational.jobs import (
    mark,
    mark_cleared,
    note_change,
    record_rest,
    skip_unprocessed,
)
from recollect.store.relational.page_inputs import (
    all_of,
    drop_pages,
    file_again,
    revoke_memory_agents,
    tell_memory_agents,
)
from recollect.store.relational.sessions import may_be_remembered
from recollect.types.facts import FactEvent, Trust
from recollect.types.records import MarkCause, Mode, Outcome, SessionState

BY_MODE = "mode"


def change_mode(c: Connection, old: SessionState, mode: Mode, now: datetime) -> None:
    """Give a session, which the caller holds, another mode than it has."""
    names = {"space": old.space, "id": old.id}
    pending = _pass_over_unlearnable(c, old, now) if mode is Mode.ENABLED else 0
    remembered = may_be_remembered(old.agent_id, old.ephemeral, mode)
    c.run("set_mode", {**names, "mode": mode.value, "remembered": remembered})
    if remembered and not old.remembered:
        c.run("reopen_vectors", names)
        c.run("embed_again", names)
    if pending:
        mark(c, names, pending, MarkCause.REQUEST, now)
    if not remembered:
        mark_cleared(c, names)
        c.run("void_pass", names)
        c.run("drop_staged", names)
    if remembered == old.remembered:
        return
    if not remembered:  # before they are told: one at work may have read what is now left out
        revoke_memory_agents(c, old.space)
    # Only what was filed once: what was passed over stays so.
    tell_memory_agents(c, old.space, old.id, f"is {mode.value}", now, once=not remembered)
    own = {"space": old.space, "session_id": old.id}
    if c.row("has_memory", names) is not None or c.rows("session_facts", own):
        c.run("lock_memory", {"space": old.space})
        if remembered:
            _supersede_again(c, own, now)
        else:
            _release(c, own, now)
        note_change(c, old.space, now, is_urgent=True)
    if not remembered:
        dropped = drop_pages(c, old.space, all_of(old.id), now)
        file_again(c, old.space, dropped.sessions, now)


def _pass_over_unlearnable(c: Connection, session: SessionState, now: datetime) -> int:
    """Skip what was said while nothing was to be learned: it is never learned later.

    What was said before, and nobody has come to yet, is; up to which record, none: 0.
    """
    names = {"space": session.space, "id": session.id}
    row = c.row("lock_session", names)
    left = c.row("left_seq", names)
    assert row is not None
    assert left is not None
    last_seq, cursor = row[0], row[1] or 0
    pending = left[0]
    for first, last in reversed(c.rows("ranges_ahead", {**names, "cursor": cursor})):
        pending = first - 1 if last == pending else pending
    reason = f"mode {session.mode}"
    if pending <= cursor:
        skip_unprocessed(c, session.space, session.id, reason, now)
        return 0
    record_rest(c, names, left[0], last_seq, Outcome.SKIPPED, reason, now)
    return int(pending)


def _release(c: Connection, own: Params, now: datetime) -> None:
    """Believe again what was superseded by nothing but what is left out now."""
    for _, fact_id, successor, superseded_at in c.rows("left_out", own):
        fact = {"space": own["space"], "id": fact_id}
        release_superseded(c, fact, (successor, superseded_at), now, by=BY_MODE)


def _supersede_again(c: Connection, own: Params, now: datetime) -> None:
    """What has come back ends what it had ended, unless that is over by now."""
    for key, fact_id, content, trust, newer, newer_trust, since in c.rows("superseded_once", own):
        if STRENGTH[Trust(newer_trust)] < STRENGTH[Trust(trust)]:
            continue
        ended = {"space": own["space"], "key": key, "other_id": newer, "superseded_at": since}
        c.run("supersede_fact", {**ended, "now": max(to_micros(now), since)})
        fact = {"space": own["space"], "id": fact_id}
        note(c, fact, FactEvent.SUPERSEDED, content, now, by=BY_MODE, other_id=newer)

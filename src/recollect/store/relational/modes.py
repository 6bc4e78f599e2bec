"""What a change of mode does to what was learned from a session, in one transaction with it.

What extractors found in a session that is left out, and nowhere else, does not hold while it is:
the queries see to that. Here what it had superseded is believed again, and superseded again when
the session is back; and memory-agents that were told of it are told of the change. Nothing is
erased.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from recollect.agency import ItemKind, NewItem, Span
from recollect.clock import to_micros
from recollect.domain import JobKind, MarkCause, Mode, Outcome, SessionState
from recollect.knowledge import FactEvent, Trust
from recollect.store.relational.agent_rows import key_ref
from recollect.store.relational.cursor import record_rest, skip_unprocessed
from recollect.store.relational.database import Connection, Params, Row
from recollect.store.relational.fact_changes import STRENGTH, note, release_superseded
from recollect.store.relational.inbox import post
from recollect.store.relational.session_keys import may_be_remembered

BY_MODE = "mode"
_FILED = (Outcome.EXTRACTED.value, Outcome.HANDED_OVER.value)


def change_mode(c: Connection, old: SessionState, mode: Mode, now: datetime) -> None:
    """Give a session, which the caller holds, another mode than it has."""
    names = {"space": old.space, "id": old.id}
    pending = _pass_over_unlearnable(c, old, now) if mode is Mode.ENABLED else 0
    remembered = may_be_remembered(old.agent_id, old.ephemeral, mode)
    c.run("set_mode", {**names, "mode": mode.value, "remembered": remembered})
    if pending:
        mark = {"seq": pending, "cause": MarkCause.REQUEST.value, "now": to_micros(now)}
        c.run("invalidate", {**names, **mark})
    if not remembered:
        c.run("void_pass", names)
        c.run("drop_staged", names)
    if remembered == old.remembered:
        return
    _tell(c, old, mode, now)
    own = {"space": old.space, "session_id": old.id}
    if c.row("has_memory", names) is None and not c.rows("session_facts", own):
        return
    c.run("lock_memory", {"space": old.space})
    if remembered:
        _supersede_again(c, own, now)
    else:
        _release(c, own, now)
    c.run("note_urgent", {"space": old.space, "now": to_micros(now)})


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


def _tell(c: Connection, session: SessionState, mode: Mode, now: datetime) -> None:
    """Have the memory-agents that were told of a session take it off their pages, or file it again.

    Only what was filed once: what was passed over stays so.
    """
    names = {"space": session.space, "id": session.id}
    agents = [key_ref(row) for row in c.rows("memory_agents_told", names)]
    if not agents:
        return
    filed = _stretches(c.rows("list_ranges", names))
    for first, last in filed if mode is Mode.ENABLED else filed[:1]:
        item = NewItem(
            id=f"{session.id}:mode:{to_micros(now)}:{first}-{last}",
            kind=ItemKind.SYSTEM_MESSAGE,
            text=f"Session {session.id} is {mode.value}.",
            origin=f"memory-worker:{session.id}",
            about=Span(session_id=session.id, first=first, last=last),
        )
        for ref in agents:
            post(c, ref, item, JobKind.MEMORY_AGENT, now)


def _stretches(ranges: Iterable[Row]) -> list[tuple[int, int]]:
    """From where to where something was learned, without what was passed over."""
    found: list[tuple[int, int]] = []
    for _, first, last, outcome, *_ in ranges:
        if outcome not in _FILED:
            continue
        if found and found[-1][1] + 1 == first:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return found


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

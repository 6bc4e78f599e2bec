"""Which records of an agent speak of another session, so that forgetting that one finds them.

While a turn is under way everything that is said counts. Its end, or that of its session, is where
a stretch ends; what the turn says in the session after it is a stretch of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.agency import Item
from recollect.domain import KeyRef, Record
from recollect.store.relational.agent_rows import names
from recollect.store.relational.database import Connection

_OPEN = 2**62  # the last record of a turn that is under way


def begin_told(c: Connection, ref: KeyRef, items: Sequence[Item], begun: Sequence[Record]) -> None:
    """A turn begins, or goes on, with these records."""
    if begun:
        _tell(c, ref, items, begun[0].session_id, begun[0].seq)


def carry_told(c: Connection, ref: KeyRef, items: Sequence[Item], session_id: str) -> None:
    """A turn goes on in a session that has just begun."""
    _tell(c, ref, items, session_id, 1)


def end_told(
    c: Connection, ref: KeyRef, items: Sequence[Item], begun: Sequence[Record] = ()
) -> None:
    """A turn is over: in the current session of its key, and in the one in which it began."""
    if all(item.about is None for item in items):
        return
    current = c.row("current_session", names(ref))
    assert current is not None, "a key always has a session"
    sessions = {current[0], *(record.session_id for record in begun)}
    for item in items:
        if item.about is not None:
            spoken = {"space": ref.space, "about_session": item.about.session_id, "open": _OPEN}
            for session_id in sorted(sessions):
                c.run("end_told", {**spoken, "session_id": session_id})


def _tell(c: Connection, ref: KeyRef, items: Sequence[Item], session_id: str, first: int) -> None:
    for item in items:
        if item.about is not None:
            spoken = {
                "space": ref.space,
                "about_session": item.about.session_id,
                "session_id": session_id,
                "first_seq": first,
                "last_seq": _OPEN,
            }
            c.run("put_told", spoken)

"""Sessions on pages: listed, and each with its records, marks and what it came to side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from recollect import collection
from recollect.descriptors import agent_label, from_cache_key
from recollect.domain import Mode, Record, SessionProgress, SessionState
from recollect.errors import InvalidValue, NotFound, UsageError
from recollect.interfaces.http.operations import cursor_behind, read_mark
from recollect.interfaces.web.receipts import told
from recollect.interfaces.web.transcript import entries, lines_of
from recollect.interfaces.web.view import HOME, PAGE, SPACE, Asked, Moved, Page, View, done, shown
from recollect.knowledge import NOTHING_SPENT, Call, Spent
from recollect.session import LIST_MAX, Session
from recollect.store.key_protocol import Scope

SESSIONS = f"{SPACE}/sessions"
ONE = f"{SESSIONS}/{{session}}"
RECORDS = 50
CALLS = 200
FACTS = 200
CHOSEN = 200  # of those that stand in some way
SEQ_MAX = 10**15
SHOWS = {"": "all", "marked": "marked", "waiting": "with new records"}


def sessions(asked: Asked) -> Page:
    sought, wanted, cursor = asked.wanted("q"), asked.wanted("show") or "", asked.wanted("cursor")
    if wanted not in SHOWS:
        raise InvalidValue(f"show is one of {', '.join(filter(None, SHOWS))}")
    following = None
    if sought is not None:
        found = _sought(asked, sought)
    elif wanted:
        marks = asked.memory.store.marks
        listed = marks.marked if wanted == "marked" else marks.waiting
        found = listed(asked.space.name, CHOSEN)
    else:
        found, following = _page(asked, cursor)
    is_newest = sought is None and not wanted and cursor is None
    return Page(
        template="sessions.html",
        fragment="_sessions.html",
        content={
            "sessions": found,
            "agents": {state.agent_id: agent_label(state.agent_id) for state in found},
            "progress": _progress(asked, PAGE if is_newest else LIST_MAX),
            "query": sought or "",
            "show": wanted,
            "shows": SHOWS,
            "cursor": cursor or "",
            "following": following,
            "chosen_max": CHOSEN if sought or wanted else None,
        },
    )


def _page(asked: Asked, cursor: str | None) -> tuple[list[SessionState], str | None]:
    before = None
    if cursor is not None:
        before = read_mark(cursor, SessionState, asked.space.name)
    found = asked.space.sessions.list(PAGE, before)
    last = found[-1] if len(found) == PAGE else None
    return found, None if last is None else cursor_behind(last)


def _sought(asked: Asked, sought: str) -> list[SessionState]:
    """The session with this id, or all that a key has had, the newest first."""
    one = asked.space.sessions.get(sought)
    if one is not None:
        return [one]
    store, space = asked.memory.store.sessions, asked.space.name
    encoded = collection.encode_key(sought)
    refs = [store.find_key(space, encoded, each) for each in store.key_agents(space, encoded)]
    found = [state for ref in refs if ref is not None for state in store.rotations(ref)]
    return sorted(found, key=lambda state: state.created_at, reverse=True)[:CHOSEN]


def _progress(asked: Asked, limit: int) -> Mapping[str, SessionProgress]:
    """How extraction stands, of the newest sessions; of older ones the marks say enough."""
    found = asked.memory.store.extractions.progress(asked.space.name, limit)
    return {each.session_id: each for each in found}


def session(asked: Asked) -> Page:
    state = _state(asked)
    first = asked.number("from", 1, least=0, most=SEQ_MAX)
    whole = asked.number("whole", 0, least=0, most=SEQ_MAX)
    held = asked.space.sessions
    records = held.records(state.id, max(first - 1, 0), RECORDS)
    calls = held.calls(state.id, CALLS)
    conversation = asked.space.find_session(state.key, from_cache_key(state.agent_id))
    return Page(
        template="session.html",
        fragment="_session.html",
        content={
            "state": state,
            "agent": agent_label(state.agent_id),
            "current": state.id if conversation is None else conversation.id,
            "entries": entries(records, lines_of(state, held.ranges(state.id)), whole),
            "first": first,
            "whole": whole,
            **_around(state, records, first),
            "extraction": held.extraction(state.id),
            "facts": asked.space.facts.list(FACTS, session=state.id, every=True),
            "calls": calls,
            "calls_max": CALLS,
            "facts_max": FACTS,
            "spent": _spent(calls),
            "modes": [mode.value for mode in Mode],
        },
    )


def _around(state: SessionState, records: Sequence[Record], first: int) -> Mapping[str, Any]:
    """Where the pages before and after this one begin; none: there is nothing."""
    last = records[-1].seq if records else first
    return {
        "earlier": max(first - RECORDS, 1) if first > 1 else None,
        "later": last + 1 if records and last < state.last_seq else None,
        "latest": max(state.last_seq - RECORDS + 1, 1),
    }


def _spent(calls: Sequence[Call]) -> Spent:
    total = NOTHING_SPENT
    for call in calls:
        total = total.plus(
            Spent(
                calls=1,
                input_tokens=call.input_tokens,
                output_tokens=call.output_tokens,
                cost_micros=call.cost_micros,
            )
        )
    return total


def set_mode(asked: Asked) -> Moved:
    wanted = asked.field("mode")
    _current(asked).set_mode(wanted)
    words = {
        Mode.ENABLED: "It may become memory from now on.",
        Mode.DISABLED: "Nothing is learned from it any more; its history is kept.",
        Mode.POLLUTED: "It counts as polluted: nothing is learned from it.",
    }
    return _back(asked, words[Mode(wanted)])


def mark_session(asked: Asked) -> Moved:
    state = _state(asked)
    asked.space.sessions.invalidate(state.id, state.last_seq)
    marked = _state(asked).invalidated_at is not None
    return _back(asked, "Marked: a worker distils it next." if marked else "Nothing is new in it.")


def end_session(asked: Asked) -> Moved:
    _current(asked).end()
    return _back(asked, "Ended. What is said under its key next begins a new session.")


def process_again(asked: Asked) -> Moved:
    state = _state(asked)
    count = asked.memory.request_again(asked.space.name, state.id)
    said = "A new pass is due: what it finds replaces what was learned before."
    return _back(
        asked,
        said if count else "No new pass: one is due already, or nothing may be learned from it.",
    )


def forget_session(asked: Asked) -> Moved:
    receipt = asked.space.forget(session=asked.path["session"])
    to = f"{HOME}/s/{quote(asked.space.name, safe='')}/sessions"
    return Moved(to=to, said=told(receipt))


def forget_record(asked: Asked) -> Moved:
    seq = asked.path["seq"]
    receipt = asked.space.forget(record=f"{asked.path['session']}:{seq}")
    return _back(asked, told(receipt), f"?from={int(seq)}#record-{int(seq)}")


def _state(asked: Asked) -> SessionState:
    found = asked.space.sessions.get(asked.path["session"])
    if found is None:
        raise NotFound(f"there is no session {asked.path['session']!r}")
    return found


def _current(asked: Asked) -> Session:
    """The conversation, if the session of the page is still the one it goes on in."""
    state = _state(asked)
    found = asked.space.find_session(state.key, from_cache_key(state.agent_id))
    if found is None:
        raise NotFound(f"there is no session {state.id!r}")
    current = found.id
    if current != state.id:
        raise UsageError(f"the conversation goes on in session {current}")
    return found


def _back(asked: Asked, said: str, place: str = "") -> Moved:
    space, session_id = (quote(each, safe="") for each in (asked.space.name, asked.path["session"]))
    return Moved(to=f"{HOME}/s/{space}/sessions/{session_id}{place}", said=said)


VIEWS: tuple[View, ...] = (
    shown(SESSIONS, "sessions", sessions),
    shown(ONE, "session", session),
    done(f"{ONE}/mode", "set_mode", set_mode, Scope.WRITE),
    done(f"{ONE}/mark", "mark_session", mark_session, Scope.WRITE),
    done(f"{ONE}/end", "end_session", end_session, Scope.WRITE),
    done(f"{ONE}/again", "process_again", process_again, Scope.ADMIN),
    done(f"{ONE}/forget", "forget_session", forget_session, Scope.ADMIN),
    done(f"{ONE}/records/{{seq}}/forget", "forget_record", forget_record, Scope.ADMIN),
)

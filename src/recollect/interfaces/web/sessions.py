"""Pages for sessions: the list, and each session's records, marks and results side by side."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never

from recollect import collection
from recollect.descriptors import agent_label, from_cache_key, is_talking
from recollect.errors import InvalidValue
from recollect.interfaces.http.routes import current_session, session_state
from recollect.interfaces.web.view import (
    PAGE,
    SPACE,
    Asked,
    Moved,
    PageView,
    done,
    receipt_words,
    shown,
)
from recollect.messages import (
    Attachment,
    Opaque,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from recollect.session import LIST_MAX, Session
from recollect.types.access import Scope
from recollect.types.facts import NOTHING_SPENT, Source, Spent
from recollect.types.recall import EntryKind
from recollect.types.records import Mode, Range, Record, SessionState

Json = dict[str, Any]

SESSIONS = f"{SPACE}/sessions"
ONE = f"{SESSIONS}/{{session}}"
RECORDS = 50
CALLS = 200
FACTS = 200
FOUND = 40  # hits that lead to sessions
CHOSEN = 200  # of those that stand in some way
SEQ_MAX = 10**15
SHOWS = {"": "all", "marked": "to be learned from", "waiting": "with new messages"}

CHARS_SHOWN = 2000
LINES_SHOWN = 25
PARTS_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRecord:
    """A record as it is shown: its parts under their labels, and the lines drawn below it."""

    record: Record
    pieces: Sequence[tuple[str, str]]
    is_short: bool  # there is more of it than is shown
    lines: Sequence[tuple[str, str]]  # kind and words


def shown_records(
    records: Sequence[Record], lines: Sequence[tuple[int, str, str]], whole: int
) -> Iterator[ShownRecord]:
    """Records with the lines that belong below each; `whole` is the one that is not shortened.

    Where the record that a line is about is gone, it stands below the one before it.
    """
    for place, record in enumerate(records):
        is_last = place + 1 == len(records)
        end = record.seq + 1 if is_last else records[place + 1].seq
        parts = [_piece(part) for part in record.parts]
        short = parts if record.seq == whole else [_short(*each) for each in parts[:PARTS_SHOWN]]
        yield ShownRecord(
            record=record,
            pieces=short,
            is_short=short != parts,
            lines=[(kind, words) for upto, kind, words in lines if record.seq <= upto < end],
        )


def lines_of(state: SessionState, ranges: Sequence[Range]) -> Iterator[tuple[int, str, str]]:
    """Where stretches end, up to where it is processed, and up to where it is marked."""
    for each in ranges:
        yield each.last_seq, "done", _told(each)
    if state.processed_until is not None:
        yield state.processed_until, "processed", f"Processed until record {state.processed_until}"
    if state.invalidated_at is not None:
        cause = "" if state.marked_by is None else f" ({state.marked_by.value})"
        words = f"Marked until record {state.invalidated_at}{cause}: to be distilled"
        yield state.invalidated_at, "marked", words


def _told(each: Range) -> str:
    """A stretch in words: which records, what became of them, in which pass, and by what."""
    is_one = each.first_seq == each.last_seq
    which = f"Record {each.last_seq}" if is_one else f"Records {each.first_seq} to {each.last_seq}"
    said = [
        f"{which}: {each.outcome.value.replace('_', ' ')}",
        each.reason,
        each.faults.words,
        f"pass {each.pass_number}",
        f"by {each.extractor}" if each.extractor is not None else None,
        f"attempt {each.attempt}" if each.attempt and each.attempt > 1 else None,
        f"{each.spent.tokens:,} tokens" if each.spent.tokens else None,
    ]
    return ", ".join(part for part in said if part)


def _short(label: str, text: str) -> tuple[str, str]:
    return label, "\n".join(text[:CHARS_SHOWN].split("\n")[:LINES_SHOWN])


def _piece(part: Part) -> tuple[str, str]:
    """The text of a part, behind a label where it is more than words."""
    match part:
        case Text(text=text):
            return "", text
        case Reasoning(text=text):
            return "Thought aloud", text
        case ToolCall(name=name, arguments=str() as text):
            return f"Calls {name}", text
        case ToolCall(name=name, arguments=given):
            written = json.dumps(given, ensure_ascii=False, indent=2)
            return f"Calls {name}", "" if given is None else written
        case ToolResult(text=text, is_error=is_error):
            return "A tool failed" if is_error else "A tool answers", text
        case Attachment():
            about = filter(None, (part.name, part.media_type, part.uri))
            return f"Attached: {part.kind}", " · ".join(about)
        case Opaque(type=kind):
            return f"Something else: {kind}", ""
        case _:
            assert_never(part)


TITLE_CHARS, SNIPPET_CHARS = 90, 180
OPENING = 6  # records that are looked through for what somebody asked first
_HEADING = re.compile(r"^#{1,6}\s+(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeading:
    """What a session is called where it is listed, how it began, and when it was last heard."""

    title: str
    snippet: str
    said_at: datetime


def heading(asked: Asked, state: SessionState) -> SessionHeading:
    """By what it came to, else by what was said first, else by its key."""
    held = asked.space.sessions
    if state.forgotten_at is not None:
        return SessionHeading(title="Forgotten", snippet="", said_at=state.forgotten_at)
    extraction = held.extraction(state.id)
    opening = [] if not state.last_seq else held.records(state.id, 0, OPENING)
    first = next((each.content for each in opening if each.role is Role.USER), "")
    first = asked.memory.runtime.redactor().keyed(state.space).redact(first[: SNIPPET_CHARS * 4])
    newest = held.records(state.id, state.last_seq - 1, 1) if state.last_seq else []
    summary = extraction.rollout_summary if extraction is not None else ""
    named = _HEADING.search(summary)
    title = named[1] if named else summary.strip().partition("\n")[0]
    snippet = _line(first, SNIPPET_CHARS)
    title = _line(title, TITLE_CHARS) or _line(first, TITLE_CHARS) or state.key
    return SessionHeading(
        title=title,
        snippet="" if snippet.startswith(title.rstrip("…")) else snippet,
        said_at=newest[0].at if newest else state.last_activity_at,
    )


def _line(text: str, chars: int) -> str:
    """The beginning of a text on one line, cut between words."""
    return textwrap.shorten(text[: chars * 4], chars, placeholder=" …")


def source_names(asked: Asked, sources: Iterable[Source]) -> dict[str, SessionHeading]:
    """What the sessions behind sources are called, by their ids; of those that are still there."""
    return session_names(asked, (each.session_id for each in sources))


def session_names(asked: Asked, ids: Iterable[str]) -> dict[str, SessionHeading]:
    states = map(asked.space.sessions.get, list(dict.fromkeys(ids))[:PAGE])
    return {state.id: heading(asked, state) for state in states if state is not None}


def sessions(asked: Asked) -> Json:
    sought, wanted = asked.wanted("q"), asked.wanted("show") or ""
    if wanted not in SHOWS:
        raise InvalidValue(f"show is one of {', '.join(filter(None, SHOWS))}")
    content: Json = {"cursor": asked.wanted("cursor") or "", "following": None}
    if sought is not None:
        content["sessions"] = _sought(asked, sought)
    elif wanted:
        marks = asked.memory.store.marks
        listed = marks.marked if wanted == "marked" else marks.waiting
        content["sessions"] = listed(asked.space.name, CHOSEN)
    else:
        content = asked.page("sessions", asked.space.sessions.list, SessionState)
        # Sessions of agents that keep memory are read where their results are.
        content["sessions"] = [each for each in content["sessions"] if is_talking(each.agent_id)]
    # How extraction stands, of the newest sessions; of older ones the marks say enough.
    is_newest = sought is None and not wanted and not content["cursor"]
    limit = PAGE if is_newest else LIST_MAX
    progress = asked.memory.store.extractions.progress(asked.space.name, limit)
    return {
        **content,
        "agents": {each.agent_id: agent_label(each.agent_id) for each in content["sessions"]},
        "headings": {each.id: heading(asked, each) for each in content["sessions"]},
        "progress": {each.session_id: each for each in progress},
        "query": sought or "",
        "show": wanted,
        "shows": SHOWS,
        "chosen_max": CHOSEN if sought or wanted else None,
    }


def _sought(asked: Asked, sought: str) -> list[SessionState]:
    """The session with this id, those of this key, else those that say something like it."""
    one = asked.space.sessions.get(sought)
    if one is not None:
        return [one]
    store, space = asked.memory.store.sessions, asked.space.name
    encoded = collection.encode_key(sought)
    refs = [store.find_key(space, encoded, each) for each in store.key_agents(space, encoded)]
    keyed = [state for ref in refs if ref is not None for state in store.rotations(ref)]
    if keyed:
        return sorted(keyed, key=lambda state: state.created_at, reverse=True)[:CHOSEN]
    hits = asked.space.recall(sought, FOUND, kinds=[EntryKind.RECORD, EntryKind.SUMMARY])
    ids = dict.fromkeys(source.session_id for hit in hits for source in hit.sources)
    return [state for each in ids if (state := asked.space.sessions.get(each)) is not None]


def session(asked: Asked) -> Json:
    state = _state(asked)
    first = asked.number("from", 1, most=SEQ_MAX)
    whole = asked.number("whole", 0, most=SEQ_MAX)
    held = asked.space.sessions
    records = held.records(state.id, max(first - 1, 0), RECORDS)
    last = records[-1].seq if records else state.last_seq
    calls = held.calls(state.id, CALLS)
    spent = NOTHING_SPENT
    for call in calls:
        made = Spent(
            calls=1,
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            cost_micros=call.cost_micros,
        )
        spent = spent.plus(made)
    conversation = asked.space.find_session(state.key, from_cache_key(state.agent_id))
    lines = list(lines_of(state, held.ranges(state.id)))
    return {
        "state": state,
        "heading": heading(asked, state),
        "agent": agent_label(state.agent_id),
        "current": state.id if conversation is None else conversation.id,
        "entries": list(shown_records(records, lines, whole)),
        "first": first,
        "whole": whole,
        "earlier": max(first - RECORDS, 1) if first > 1 else None,
        "later": last + 1 if last < state.last_seq else None,
        "latest": max(state.last_seq - RECORDS + 1, 1),
        "extraction": held.extraction(state.id),
        "facts": asked.space.facts.list(FACTS, session=state.id, every=True),
        "calls": calls,
        "calls_max": CALLS,
        "facts_max": FACTS,
        "spent": spent,
        "modes": [mode.value for mode in Mode],
    }


def _state(asked: Asked) -> SessionState:
    return session_state(asked.space, asked.path["session"])


def _current(asked: Asked) -> Session:
    return current_session(asked.space, asked.path["session"])


_MODES = {
    Mode.ENABLED: "It may become memory from now on.",
    Mode.DISABLED: "Nothing is learned from it any more; its history is kept.",
    Mode.POLLUTED: "It counts as polluted: nothing is learned from it.",
}


def set_mode(asked: Asked) -> str:
    wanted = asked.field("mode")
    _current(asked).set_mode(wanted)
    return _MODES[Mode(wanted)]


def mark_session(asked: Asked) -> str:
    state = _state(asked)
    asked.space.sessions.invalidate(state.id, state.last_seq)
    is_marked = _state(asked).invalidated_at is not None
    return "Marked: a worker distils it next." if is_marked else "Nothing is new in it."


def process_again(asked: Asked) -> str:
    if asked.memory.request_again(asked.space.name, _state(asked).id):
        return "A new pass is due: what it finds replaces what was learned before."
    return "No new pass: one is due already, or nothing may be learned from it."


def forget_record(asked: Asked) -> Moved:
    session_id, seq = asked.path["session"], asked.path["seq"]
    receipt = asked.space.forget(record=f"{session_id}:{seq}")
    place = asked.at("sessions", session_id, **{"from": str(int(seq))})
    return Moved(to=f"{place}#record-{int(seq)}", said=receipt_words(receipt))


def _form(action: str, name: str, scope: Scope, handler: Any, **more: Any) -> PageView:
    return done(f"{ONE}/{action}", name, scope, handler, **{"to": "session", "said": str, **more})


VIEWS: tuple[PageView, ...] = (
    shown(SESSIONS, "sessions", sessions),
    shown(ONE, "session", session),
    _form("mode", "set_mode", Scope.WRITE, set_mode),
    _form("mark", "mark_session", Scope.WRITE, mark_session),
    _form(
        "end",
        "end_session",
        Scope.WRITE,
        lambda asked: _current(asked).end(),
        said="Ended. What is said under its key next begins a new session.",
    ),
    _form("again", "process_again", Scope.ADMIN, process_again),
    _form(
        "forget",
        "forget_session",
        Scope.ADMIN,
        lambda asked: asked.space.forget(session=asked.path["session"]),
        to="sessions",
        said=receipt_words,
    ),
    _form("records/{seq}/forget", "forget_record", Scope.ADMIN, forget_record),
)

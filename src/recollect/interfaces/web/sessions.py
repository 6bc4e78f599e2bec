"""Sessions on pages: listed, and each with its records, marks and what it came to side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never
from urllib.parse import quote

from recollect import collection
from recollect.descriptors import agent_label, from_cache_key
from recollect.errors import InvalidValue, NotFound, UsageError
from recollect.interfaces.http.operations import cursor_behind, read_mark
from recollect.interfaces.web.view import (
    HOME,
    PAGE,
    SPACE,
    Asked,
    Moved,
    PageView,
    WebPage,
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
from recollect.types.facts import NOTHING_SPENT, Call, Spent
from recollect.types.records import Mode, Range, Record, SessionProgress, SessionState

CHARS_SHOWN = 2000
LINES_SHOWN = 25
PARTS_SHOWN = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPart:
    """A part of a record: its text, under a label where it is more than words."""

    label: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressLine:
    """What is drawn between two records: everything up to there was dealt with, or is to be."""

    upto: int
    kind: str  # done, processed or marked
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRecord:
    """A record as it is shown, and the lines below it."""

    record: Record
    pieces: tuple[RecordPart, ...]
    is_short: bool  # there is more of it than is shown
    is_error: bool
    is_forgotten: bool
    lines: tuple[ProgressLine, ...]


def entries(
    records: Sequence[Record], lines: Sequence[ProgressLine], whole: int
) -> list[ShownRecord]:
    """Records with the lines that belong below each; `whole` is the one that is not shortened."""
    nexts = [*(record.seq for record in records[1:]), None][: len(records)]
    return [
        _entry(
            record,
            tuple(line for line in lines if _is_below(line, record, following)),
            is_whole=record.seq == whole,
        )
        for record, following in zip(records, nexts, strict=True)
    ]


def lines_of(state: SessionState, ranges: Sequence[Range]) -> list[ProgressLine]:
    """Where stretches end, up to where it is processed, and up to where it is marked."""
    found = [ProgressLine(upto=each.last_seq, kind="done", words=_told(each)) for each in ranges]
    if state.processed_until is not None:
        words = f"Processed until record {state.processed_until}"
        found.append(ProgressLine(upto=state.processed_until, kind="processed", words=words))
    if state.invalidated_at is not None:
        cause = "" if state.marked_by is None else f" ({state.marked_by.value})"
        words = f"Marked until record {state.invalidated_at}{cause}: to be distilled"
        found.append(ProgressLine(upto=state.invalidated_at, kind="marked", words=words))
    return found


def _told(each: Range) -> str:
    """A stretch in words: which records, what became of them, in which pass, and by what."""
    many = each.first_seq != each.last_seq
    which = f"Records {each.first_seq} to {each.last_seq}" if many else f"Record {each.first_seq}"
    said = [
        f"{which}: {each.outcome.value.replace('_', ' ')}",
        each.reason,
        f"pass {each.pass_number}",
        None if each.extractor is None else f"by {each.extractor}",
        None if each.attempt is None or each.attempt < 2 else f"attempt {each.attempt}",
        f"{each.spent.tokens:,} tokens" if each.spent.tokens else None,
    ]
    return ", ".join(part for part in said if part)


def _is_below(line: ProgressLine, record: Record, following: int | None) -> bool:
    """Also where the record that a line is about is gone: below the one before it."""
    if following is None:
        return line.upto == record.seq
    return record.seq <= line.upto < following


def _entry(record: Record, lines: tuple[ProgressLine, ...], *, is_whole: bool) -> ShownRecord:
    parts = [_piece(part) for part in record.parts]
    shown = parts if is_whole else [_short(piece) for piece in parts[:PARTS_SHOWN]]
    return ShownRecord(
        record=record,
        pieces=tuple(shown),
        is_short=shown != parts,
        is_error=record.is_error,
        is_forgotten=record.role is Role.NOTE and record.metadata.get("forgotten") is True,
        lines=lines,
    )


def _short(piece: RecordPart) -> RecordPart:
    lines = piece.text[:CHARS_SHOWN].split("\n")[:LINES_SHOWN]
    return replace(piece, text="\n".join(lines))


def _piece(part: Part) -> RecordPart:
    match part:
        case Text(text=text):
            return RecordPart(label="", text=text)
        case Reasoning(text=text):
            return RecordPart(label="Thought aloud", text=text)
        case ToolCall(name=name, arguments=arguments):
            return RecordPart(label=f"Calls {name}", text=_written(arguments))
        case ToolResult(text=text, is_error=is_error):
            return RecordPart(
                label="A tool failed" if is_error else "A tool answers",
                text=text,
                is_error=is_error,
            )
        case Attachment():
            return RecordPart(label=f"Attached: {part.kind}", text=" · ".join(_about(part)))
        case Opaque(type=kind):
            return RecordPart(label=f"Something else: {kind}", text="")
        case _:
            assert_never(part)


def _about(part: Attachment) -> Iterator[str]:
    yield from (each for each in (part.name, part.media_type, part.uri) if each)


def _written(arguments: Any) -> str:
    """What a tool is called with, as it came or as JSON."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False, indent=2)


SESSIONS = f"{SPACE}/sessions"
ONE = f"{SESSIONS}/{{session}}"
RECORDS = 50
CALLS = 200
FACTS = 200
CHOSEN = 200  # of those that stand in some way
SEQ_MAX = 10**15
SHOWS = {"": "all", "marked": "marked", "waiting": "with new records"}


def sessions(asked: Asked) -> WebPage:
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
    return WebPage(
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


def session(asked: Asked) -> WebPage:
    state = _state(asked)
    first = asked.number("from", 1, least=0, most=SEQ_MAX)
    whole = asked.number("whole", 0, least=0, most=SEQ_MAX)
    held = asked.space.sessions
    records = held.records(state.id, max(first - 1, 0), RECORDS)
    calls = held.calls(state.id, CALLS)
    conversation = asked.space.find_session(state.key, from_cache_key(state.agent_id))
    return WebPage(
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
    return Moved(to=to, said=receipt_words(receipt))


def forget_record(asked: Asked) -> Moved:
    seq = asked.path["seq"]
    receipt = asked.space.forget(record=f"{asked.path['session']}:{seq}")
    return _back(asked, receipt_words(receipt), f"?from={int(seq)}#record-{int(seq)}")


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


VIEWS: tuple[PageView, ...] = (
    shown(SESSIONS, "sessions", sessions),
    shown(ONE, "session", session),
    done(f"{ONE}/mode", "set_mode", set_mode, Scope.WRITE),
    done(f"{ONE}/mark", "mark_session", mark_session, Scope.WRITE),
    done(f"{ONE}/end", "end_session", end_session, Scope.WRITE),
    done(f"{ONE}/again", "process_again", process_again, Scope.ADMIN),
    done(f"{ONE}/forget", "forget_session", forget_session, Scope.ADMIN),
    done(f"{ONE}/records/{{seq}}/forget", "forget_record", forget_record, Scope.ADMIN),
)

"""Sessions over HTTP: found or created by key, appended to, read, marked, ended and rotated.

A session in a path is named by its id and stands for its conversation: what is appended goes to
the current session behind the key. What ends, rotates or changes one is refused with 409 when
another has taken its place, so that no retry does it to the wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from recollect.collection import Message, StableKey
from recollect.descriptors import from_cache_key
from recollect.domain import Mode, Range, Record, SessionState
from recollect.errors import Gone, InvalidValue, NotFound, UsageError
from recollect.interfaces.http.binding import (
    Count,
    Cursor,
    Json,
    Limit,
    Moment,
    given_fields,
)
from recollect.interfaces.http.bookmarks import session_mark
from recollect.interfaces.http.messages import Request
from recollect.interfaces.http.route import (
    SPACE,
    Routes,
    made_cursor,
    moment_cursor,
    page,
    paged,
    read_moment_cursor,
    read_one,
)
from recollect.interfaces.views import view
from recollect.knowledge import Call, Extraction
from recollect.session import Session

PAGE = 50
RECORDS_PAGE = 100
NOWHERE = 0  # the seq of a record that was forgotten and is not stored again
ALL, ONE = f"{SPACE}/sessions", f"{SPACE}/sessions/{{session}}"

ROUTES = Routes()

# What any setting allows; the setting decides.
Messages = Annotated[list[Json], Meta(max_length=100_000)]
RECORDS = {"session_id": str | None, "records": list[Record]}


class Conversation(Struct, kw_only=True, forbid_unknown_fields=True):
    """What finds or makes a session."""

    key: Annotated[str | list[str | int], Meta(description="Text, or a list of texts and numbers.")]
    agent: Annotated[str | Json | None, Meta(description="A name or a descriptor.")] = None
    source: str | None = None
    project: str | None = None
    ephemeral: bool = False
    parent: str | None = None


class Batch(Conversation, kw_only=True, forbid_unknown_fields=True):
    """Messages, and the conversation that they belong to."""

    messages: Messages


class NewMessage(Struct, kw_only=True, forbid_unknown_fields=True):
    """One message."""

    role: str
    content: str | list[Any] | None = None
    parts: list[Any] | None = None
    tool_calls: list[Any] | None = None
    tool_call_id: str | None = None
    is_error: bool = False
    name: str | None = None
    at: Moment | None = None
    key: str | None = None
    metadata: Json | None = None


def _opened(request: Request, asked: Conversation) -> Session:
    given = given_fields(asked)
    given.pop("messages", None)
    key: Any = given.pop("key")
    stable: StableKey = tuple(key) if isinstance(key, list) else key
    return request.space.session(stable, **given)


def _appended(request: Request, session: Session, messages: list[Json]) -> Json:
    records = session.append_many(
        [_message(each) for each in messages], key=request.idempotency_key
    )
    _check_there(records)
    return {
        "session_id": records[0].session_id if records else None,
        "records": view(records),
    }


def _check_there(records: Sequence[Record]) -> None:
    """Gone: all of it was appended under this key before, and forgotten since."""
    if records and all(record.seq == NOWHERE for record in records):
        raise Gone("what was appended under this Idempotency-Key was forgotten since")


def _message(given: Mapping[str, Any]) -> Message | Mapping[str, Any]:
    """A provider's message as it is, or one in an envelope with its time, key and metadata."""
    if "message" not in given or "role" in given:
        return given
    if not isinstance(given["message"], dict) or given.keys() - _ENVELOPE:
        raise InvalidValue(f"an envelope has a message, and {', '.join(sorted(_ENVELOPE))}")
    metadata = given.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise InvalidValue("metadata is an object")
    return Message(
        message=given["message"],
        at=given.get("at"),
        key=given.get("key"),
        metadata=metadata,
    )


_ENVELOPE = {"message", "at", "key", "metadata"}


def _found(request: Request, session_id: str) -> SessionState:
    found = request.space.sessions.get(session_id)
    if found is None:
        raise NotFound(f"there is no session {session_id!r}")
    return found


def _conversation(request: Request, session_id: str) -> Session:
    state = _found(request, session_id)
    found = request.space.find_session(state.key, from_cache_key(state.agent_id))
    if found is None:
        raise NotFound(f"there is no session {state.id!r}")
    return found


def _current(request: Request, session_id: str) -> Session:
    """The conversation, if the session that was named is still the one it goes on in."""
    session = _conversation(request, session_id)
    current = session.id
    if current != session_id:
        raise UsageError(f"the conversation goes on in session {current}")
    return session


def read_again(request: Request, ids: Sequence[str]) -> SessionState:
    return _found(request, ids[0])


_CURRENT: dict[str, Any] = {"problems": frozenset({409})}
_ONCE: dict[str, Any] = {"again": read_again, **_CURRENT}


@ROUTES("POST", ALL, **_ONCE)
def open_session(request: Request, body: Conversation) -> SessionState:
    """The session behind a stable key, created if it is new."""
    return _opened(request, body).state


@ROUTES("GET", ALL, answer=paged("sessions", SessionState))
def list_sessions(request: Request, limit: Limit = PAGE, cursor: Cursor | None = None) -> Json:
    """Sessions, newest first."""
    before = None
    if cursor is not None:
        before = session_mark(request.space.name, *read_moment_cursor(cursor))
    found = request.space.sessions.list(limit, before)
    return page("sessions", found, limit, lambda state: moment_cursor(state.created_at, state.id))


@ROUTES("GET", f"{ALL}/marked", answer={"sessions": list[SessionState]})
def list_marked_sessions(request: Request, limit: Limit = 10) -> Json:
    """Marked sessions, the lowest mark first."""
    return {"sessions": view(request.space.sessions.find_invalidated(limit))}


@ROUTES(
    "POST",
    f"{SPACE}/append",
    answer=RECORDS,
    statuses=(201,),
    takes_append_key=True,
    problems=frozenset({409}),
)
def append(request: Request, body: Batch) -> Json:
    """Append messages under a stable key, all or none; the session is created if it is new."""
    return _appended(request, _opened(request, body), body.messages)


@ROUTES("GET", ONE)
def get_session(request: Request, session: str) -> SessionState:
    """A session as it stands."""
    return _found(request, session)


@ROUTES("POST", f"{ONE}/records", statuses=(201,), takes_append_key=True)
def append_record(request: Request, session: str, body: NewMessage) -> Record:
    """Append one message to the conversation; it is stored when this answers."""
    given = given_fields(body)
    role, content = given.pop("role"), given.pop("content", None)
    given.setdefault("key", request.idempotency_key)
    record = _conversation(request, session).append(role, content, **given)
    _check_there([record])
    return record


@ROUTES("POST", f"{ONE}/records/many", answer=RECORDS, statuses=(201,), takes_append_key=True)
def append_records(request: Request, session: str, messages: Messages) -> Json:
    """Append OpenAI- or Anthropic-style messages, all or none."""
    return _appended(request, _conversation(request, session), messages)


@ROUTES("GET", f"{ONE}/records", answer=paged("records", Record))
def list_records(
    request: Request,
    session: str,
    limit: Limit = RECORDS_PAGE,
    cursor: Cursor | None = None,
    after: Annotated[Count, Meta(description="Only above this seq.")] = 0,
) -> Json:
    """What was said, in order."""
    state = _found(request, session)
    after = after if cursor is None else read_one(cursor, int)
    found = request.space.sessions.records(state.id, after, limit)
    return page("records", found, limit, lambda record: made_cursor(record.seq))


@ROUTES("GET", f"{ONE}/ranges", answer={"ranges": list[Range]})
def list_ranges(request: Request, session: str) -> Json:
    """What has become of a session's records."""
    return {"ranges": view(request.space.sessions.ranges(_found(request, session).id))}


@ROUTES("GET", f"{ONE}/calls", answer={"calls": list[Call]})
def list_calls(request: Request, session: str, limit: Limit = PAGE) -> Json:
    """The model calls made for a session, newest first."""
    return {"calls": view(request.space.sessions.calls(_found(request, session).id, limit))}


@ROUTES("GET", f"{ONE}/extraction")
def get_extraction(request: Request, session: str) -> Extraction:
    """What a session came to."""
    found = request.space.sessions.extraction(_found(request, session).id)
    if found is None:
        raise NotFound(f"nothing was learned from session {session!r}")
    return found


@ROUTES("GET", f"{ONE}/summary", answer={"summary": str}, **_CURRENT)
def get_summary(request: Request, session: str) -> Json:
    """The summary that the conversation goes on with."""
    return {"summary": _current(request, session).get_summary()}


@ROUTES("PUT", f"{ONE}/summary", answer={"summary": str}, **_CURRENT)
def set_summary(request: Request, session: str, summary: str) -> Json:
    """Replace the summary."""
    current = _current(request, session)
    current.set_summary(summary)
    return {"summary": current.get_summary()}


@ROUTES("PUT", f"{ONE}/mode", **_CURRENT)
def set_mode(request: Request, session: str, mode: Mode) -> SessionState:
    """Say whether the session may become memory."""
    current = _current(request, session)
    current.set_mode(mode)
    return current.state


@ROUTES("POST", f"{ONE}/end", **_ONCE)
def end_session(request: Request, session: str) -> SessionState:
    """Mark and close the session; the next append opens a new one."""
    return _current(request, session).end()


@ROUTES("POST", f"{ONE}/sleep", **_ONCE)
def sleep_session(request: Request, session: str) -> SessionState:
    """Mark the session: its agent has gone idle."""
    return _current(request, session).sleep()


@ROUTES("POST", f"{ONE}/reset", **_ONCE)
def reset_session(request: Request, session: str, reason: str | None = None) -> SessionState:
    """Mark the session and start an empty one under the same key."""
    return _current(request, session).reset(reason)


@ROUTES("POST", f"{ONE}/compact", **_ONCE)
def compact_session(
    request: Request, session: str, summary: str | None = None, retain: Count | None = None
) -> SessionState:
    """Mark the session and go on in a new one, with a summary and the newest turns."""
    return _current(request, session).compact(summary, retain)


@ROUTES("POST", f"{ONE}/purge", **_CURRENT)
def purge_session(request: Request, session: str) -> SessionState:
    """Remove the session's history and summary."""
    current = _current(request, session)
    current.purge()
    return current.state


@ROUTES("POST", f"{ONE}/mark")
def mark_session(request: Request, session: str, seq: Count) -> SessionState:
    """Mark a session up to a record; a mark only rises until it is cleared."""
    state = _found(request, session)
    request.space.sessions.invalidate(state.id, seq)
    return _found(request, session)


@ROUTES("POST", f"{ONE}/processed", answer={"is_processed": bool, "session": SessionState})
def mark_processed(
    request: Request, session: str, processed_until: Count, expected_invalidated_at: Count
) -> Json:
    """Clear the mark and move the cursor, if the mark is still the expected one."""
    state = _found(request, session)
    is_done = request.space.sessions.mark_processed(
        state.id, processed_until, expected_invalidated_at
    )
    return {"is_processed": is_done, "session": view(_found(request, session))}

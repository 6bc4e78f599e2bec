"""Sessions over HTTP: found or created by key, appended to, read, marked, ended and rotated.

A session in a path is named by its id and stands for its conversation: what is appended goes to
the current session behind the key. What ends, rotates or changes one is refused with 409 when
another has taken its place, so that no retry does it to the wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.collection import Message, StableKey
from recollect.descriptors import from_cache_key
from recollect.domain import Mode, Range, Record, SessionState
from recollect.errors import Gone, InvalidValue, NotFound, UsageError
from recollect.interfaces.http.bookmarks import session_mark
from recollect.interfaces.http.reply import Ask, Reply
from recollect.interfaces.http.route import (
    LIMIT,
    PAGED,
    SPACE,
    Route,
    look,
    made_cursor,
    moment_cursor,
    page,
    paged,
    read_cursor,
    read_moment_cursor,
)
from recollect.interfaces.http.schemas import (
    BOOL,
    FREE,
    MOMENT,
    TEXT,
    Schema,
    listed,
    maybe,
    obj,
    one_of,
    text,
    whole,
)
from recollect.interfaces.views import schema_of, view
from recollect.knowledge import Call, Extraction
from recollect.session import Session
from recollect.store.key_protocol import Scope

PAGE = 50
RECORDS_PAGE = 100
NOWHERE = 0  # the seq of a record that was forgotten and is not stored again
MESSAGES_MAX = 100_000  # what any setting allows; the setting decides

CONVERSATION: Mapping[str, Schema] = {
    "key": {"type": ["string", "array"], "description": "Text, or a list of texts and numbers."},
    "agent": {"type": ["string", "object", "null"], "description": "A name or a descriptor."},
    "source": maybe(text()),
    "project": maybe(text()),
    "ephemeral": BOOL,
    "parent": maybe(text()),
}
MESSAGE: Mapping[str, Schema] = {
    "role": text(),
    "content": {"type": ["string", "array", "null"]},
    "parts": {"type": ["array", "null"]},
    "tool_calls": {"type": ["array", "null"]},
    "tool_call_id": maybe(text()),
    "is_error": BOOL,
    "name": maybe(text()),
    "at": maybe(MOMENT),
    "key": maybe(text()),
    "metadata": maybe(FREE),
}
MESSAGES = listed(FREE, MESSAGES_MAX)
RECORDS = obj({"session_id": maybe(TEXT), "records": listed(schema_of(Record))})


def open_session(ask: Ask) -> Reply:
    return _told(_opened(ask).state)


def append_to_key(ask: Ask) -> Reply:
    return _appended(ask, _opened(ask))


def append_one(ask: Ask) -> Reply:
    given = {name: value for name, value in ask.body.items() if value is not None}
    role, content = given.pop("role"), given.pop("content", None)
    given.setdefault("key", ask.idempotency_key)
    record = _conversation(ask).append(role, content, **given)
    _check_there([record])
    return Reply(content=view(record), status=201)


def append_many(ask: Ask) -> Reply:
    return _appended(ask, _conversation(ask))


def _appended(ask: Ask, session: Session) -> Reply:
    records = session.append_many(
        [_message(each) for each in ask.body["messages"]], key=ask.idempotency_key
    )
    _check_there(records)
    content = {
        "session_id": records[0].session_id if records else None,
        "records": view(records),
    }
    return Reply(content=content, status=201)


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


def _opened(ask: Ask) -> Session:
    given = {name: ask.body[name] for name in CONVERSATION if ask.body.get(name) is not None}
    key: Any = given.pop("key")
    stable: StableKey = tuple(key) if isinstance(key, list) else key
    return ask.space.session(stable, **given)


def _told(state: SessionState) -> Reply:
    return Reply(content=view(state), ids=(state.id,))


def changed_session(ask: Ask, ids: Sequence[str]) -> Reply:
    return _told(_found(ask, ids[0]))


def _state(ask: Ask) -> SessionState:
    return _found(ask, ask.path["session"])


def _found(ask: Ask, session_id: str) -> SessionState:
    found = ask.space.sessions.get(session_id)
    if found is None:
        raise NotFound(f"there is no session {session_id!r}")
    return found


def _conversation(ask: Ask) -> Session:
    state = _state(ask)
    found = ask.space.find_session(state.key, from_cache_key(state.agent_id))
    if found is None:
        raise NotFound(f"there is no session {state.id!r}")
    return found


def _current(ask: Ask) -> Session:
    """The conversation, if the session that was named is still the one it goes on in."""
    session = _conversation(ask)
    current = session.id
    if current != ask.path["session"]:
        raise UsageError(f"the conversation goes on in session {current}")
    return session


def list_sessions(ask: Ask) -> Reply:
    before = None
    if "cursor" in ask.query:
        before = session_mark(ask.space.name, *read_moment_cursor(ask.query["cursor"]))
    limit = ask.query.get("limit", PAGE)
    found = ask.space.sessions.list(limit, before)
    last = found[-1] if found and len(found) == limit else None
    following = None if last is None else moment_cursor(last.created_at, last.id)
    return page("sessions", view(found), following)


def list_marked(ask: Ask) -> Reply:
    found = ask.space.sessions.find_invalidated(ask.query.get("limit", 10))
    return Reply(content={"sessions": view(found)})


def get_session(ask: Ask) -> Reply:
    return _told(_state(ask))


def list_records(ask: Ask) -> Reply:
    after = ask.query.get("after", 0)
    if "cursor" in ask.query:
        [after] = read_cursor(ask.query["cursor"], int)
    limit = ask.query.get("limit", RECORDS_PAGE)
    state = _state(ask)
    found = ask.space.sessions.records(state.id, after, limit)
    following = made_cursor(found[-1].seq) if found and len(found) == limit else None
    return page("records", view(found), following)


def list_ranges(ask: Ask) -> Reply:
    found = ask.space.sessions.ranges(_state(ask).id)
    return Reply(content={"ranges": view(found)})


def list_calls(ask: Ask) -> Reply:
    found = ask.space.sessions.calls(_state(ask).id, ask.query.get("limit", PAGE))
    return Reply(content={"calls": view(found)})


def get_extraction(ask: Ask) -> Reply:
    found = ask.space.sessions.extraction(_state(ask).id)
    if found is None:
        raise NotFound(f"nothing was learned from session {ask.path['session']!r}")
    return Reply(content=view(found))


def get_summary(ask: Ask) -> Reply:
    return Reply(content={"summary": _current(ask).get_summary()})


def set_summary(ask: Ask) -> Reply:
    session = _current(ask)
    session.set_summary(ask.body["summary"])
    return Reply(content={"summary": session.get_summary()})


def set_mode(ask: Ask) -> Reply:
    session = _current(ask)
    session.set_mode(ask.body["mode"])
    return _told(session.state)


def end_session(ask: Ask) -> Reply:
    return _told(_current(ask).end())


def sleep_session(ask: Ask) -> Reply:
    return _told(_current(ask).sleep())


def reset_session(ask: Ask) -> Reply:
    return _told(_current(ask).reset(ask.body.get("reason")))


def compact_session(ask: Ask) -> Reply:
    return _told(_current(ask).compact(ask.body.get("summary"), ask.body.get("retain")))


def purge_session(ask: Ask) -> Reply:
    session = _current(ask)
    session.purge()
    return _told(session.state)


def mark_session(ask: Ask) -> Reply:
    state = _state(ask)
    ask.space.sessions.invalidate(state.id, ask.body["seq"])
    return get_session(ask)


def mark_processed(ask: Ask) -> Reply:
    state = _state(ask)
    is_done = ask.space.sessions.mark_processed(
        state.id, ask.body["processed_until"], ask.body["expected_invalidated_at"]
    )
    return Reply(content={"is_processed": is_done, "session": view(_state(ask))})


ONE = f"{SPACE}/sessions/{{session}}"
NOTHING = obj({}, needs=())


def _life(name: str, summary: str, handler: Any, body: Schema = NOTHING, **more: Any) -> Route:
    return Route(
        method="POST",
        path=f"{ONE}/{name}",
        name=f"{name}_session",
        summary=summary,
        handler=handler,
        **{"scope": Scope.WRITE, "again": changed_session, **more},
        body=body,
        answers={200: schema_of(SessionState)},
        problems=frozenset({409}),
    )


def _change(method: str, path: str, name: str, summary: str, handler: Any, **more: Any) -> Route:
    return Route(
        method=method,
        path=path,
        name=name,
        summary=summary,
        handler=handler,
        scope=Scope.WRITE,
        **more,
    )


ROUTES: tuple[Route, ...] = (
    _change(
        "POST",
        f"{SPACE}/sessions",
        "open_session",
        "The session behind a stable key, created if it is new.",
        open_session,
        body=obj(CONVERSATION, needs=("key",)),
        answers={200: schema_of(SessionState)},
        again=changed_session,
        problems=frozenset({409}),
    ),
    look(
        f"{SPACE}/sessions",
        "list_sessions",
        "Sessions, newest first.",
        list_sessions,
        paged("sessions", schema_of(SessionState)),
        query=PAGED,
    ),
    look(
        f"{SPACE}/sessions/marked",
        "list_marked_sessions",
        "Marked sessions, the lowest mark first.",
        list_marked,
        obj({"sessions": listed(schema_of(SessionState))}),
        query={"limit": LIMIT},
    ),
    _change(
        "POST",
        f"{SPACE}/append",
        "append",
        "Append messages under a stable key, all or none; the session is created if it is new.",
        append_to_key,
        body=obj({**CONVERSATION, "messages": MESSAGES}, needs=("key", "messages")),
        answers={201: RECORDS},
        takes_append_key=True,
        problems=frozenset({409}),
    ),
    look(ONE, "get_session", "A session as it stands.", get_session, schema_of(SessionState)),
    _change(
        "POST",
        f"{ONE}/records",
        "append_record",
        "Append one message to the conversation; it is stored when this answers.",
        append_one,
        body=obj(MESSAGE, needs=("role",)),
        answers={201: schema_of(Record)},
        takes_append_key=True,
    ),
    _change(
        "POST",
        f"{ONE}/records/many",
        "append_records",
        "Append OpenAI- or Anthropic-style messages, all or none.",
        append_many,
        body=obj({"messages": MESSAGES}),
        answers={201: RECORDS},
        takes_append_key=True,
    ),
    look(
        f"{ONE}/records",
        "list_records",
        "What was said, in order.",
        list_records,
        paged("records", schema_of(Record)),
        query={**PAGED, "after": whole(description="Only above this seq.")},
    ),
    look(
        f"{ONE}/ranges",
        "list_ranges",
        "What has become of a session's records.",
        list_ranges,
        obj({"ranges": listed(schema_of(Range))}),
    ),
    look(
        f"{ONE}/calls",
        "list_calls",
        "The model calls made for a session, newest first.",
        list_calls,
        obj({"calls": listed(schema_of(Call))}),
        query={"limit": LIMIT},
    ),
    look(
        f"{ONE}/extraction",
        "get_extraction",
        "What a session came to.",
        get_extraction,
        schema_of(Extraction),
    ),
    look(
        f"{ONE}/summary",
        "get_summary",
        "The summary that the conversation goes on with.",
        get_summary,
        obj({"summary": TEXT}),
        problems=frozenset({409}),
    ),
    _change(
        "PUT",
        f"{ONE}/summary",
        "set_summary",
        "Replace the summary.",
        set_summary,
        body=obj({"summary": TEXT}),
        answers={200: obj({"summary": TEXT})},
        problems=frozenset({409}),
    ),
    _change(
        "PUT",
        f"{ONE}/mode",
        "set_mode",
        "Say whether the session may become memory.",
        set_mode,
        body=obj({"mode": one_of(Mode)}),
        answers={200: schema_of(SessionState)},
        problems=frozenset({409}),
    ),
    _life("end", "Mark and close the session; the next append opens a new one.", end_session),
    _life("sleep", "Mark the session: its agent has gone idle.", sleep_session),
    _life(
        "reset",
        "Mark the session and start an empty one under the same key.",
        reset_session,
        obj({"reason": maybe(text())}, needs=()),
    ),
    _life(
        "compact",
        "Mark the session and go on in a new one, with a summary and the newest turns.",
        compact_session,
        obj({"summary": maybe(text()), "retain": maybe(whole())}, needs=()),
    ),
    _life(
        "purge",
        "Remove the session's history and summary.",
        purge_session,
        scope=Scope.ADMIN,
        again=None,
    ),
    _change(
        "POST",
        f"{ONE}/mark",
        "mark_session",
        "Mark a session up to a record; a mark only rises until it is cleared.",
        mark_session,
        body=obj({"seq": whole()}),
        answers={200: schema_of(SessionState)},
    ),
    _change(
        "POST",
        f"{ONE}/processed",
        "mark_processed",
        "Clear the mark and move the cursor, if the mark is still the expected one.",
        mark_processed,
        body=obj({"processed_until": whole(), "expected_invalidated_at": whole()}),
        answers={
            200: obj({"is_processed": BOOL, "session": schema_of(SessionState)}),
        },
    ),
)

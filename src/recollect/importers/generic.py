"""JSON lines of any program that writes one message in a line.

Each line is an object. Of several names for the same thing, the first that says anything counts:

* which conversation: `session`, `session_id`, `conversation`, `conversation_id`, `thread`,
  `thread_id`; without any, the file is one conversation
* who: `role` or `sender` (user, assistant, system, developer, tool; also human, ai, model), and
  `name` for the speaker's name
* what: `content` (text, or a list of parts), else `text`
* when: `at`, `timestamp`, `created_at`, `time`: ISO (UTC where it names no zone), or seconds,
  milli- or microseconds since 1970
* `key` or `id`: what makes the message the same one again, within its conversation
* `metadata`: an object that is kept with it
* `agent`: whose conversation it is
* `cwd` or `directory`: where the agent worked

Everything else in a line is left where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from recollect import collection
from recollect.errors import InvalidValue
from recollect.importers.items import (
    LINE_FILES,
    FileShape,
    Found,
    ImportedMessage,
    ImportedSession,
    ImportSource,
    LeftOut,
    Origin,
    digest,
    first,
    known_by,
    label,
    listed,
    mapping,
    metadata_of,
    moment,
    text,
    unknown,
    words,
)
from recollect.importers.projects import known_directory
from recollect.messages import Role, read_role

SESSIONS = ("session", "session_id", "conversation", "conversation_id", "thread", "thread_id")
ROLES = ("role", "sender")
CONTENTS = ("content", "text")
TIMES = ("at", "timestamp", "created_at", "time")
KEYS = ("key", "id")
DIRECTORIES = ("cwd", "directory")
CONVERSATIONS_MAX = 1000  # that are remembered at once
LATEST_MAX = 16  # of them, that are still known when the file has grown
AGENT = "jsonl"  # whose it is where no line says it

_BESIDE = ("tool_calls", "tool_call_id")  # taken with the content, as a session knows them


def _is_message(said: Mapping[str, Any]) -> bool:
    return first(said, *CONTENTS) is not None and bool(first(said, *ROLES))


class _JsonlReader:
    """Remembers how the file began, if it says no session, how many lines it has read, and whose
    the latest conversations are."""

    def __init__(self, origin: Origin, memo: Mapping[str, Any]) -> None:
        self._file = label(origin.path.name) or "unnamed"
        self._begun = text(memo.get("begun"))
        self._count = memo["count"] if isinstance(memo.get("count"), int) else 0
        self._conversations: dict[tuple[str, ...], ImportedSession] = {}
        for name, agent, directory in listed(memo.get("latest")):
            key = self._key(name)
            self._conversations[key] = ImportedSession(key=key, agent=agent, directory=directory)

    @property
    def memo(self) -> Mapping[str, Any]:
        latest = [
            (None if len(each.key) > 2 else each.key[1], each.agent, each.directory)
            for each in list(self._conversations.values())[-LATEST_MAX:]
        ]
        return metadata_of(count=self._count, begun=self._begun, latest=latest or None)

    def read(self, entry: object, line: int) -> Iterator[Found]:
        self._count += 1
        said = mapping(entry)
        content = first(said, *CONTENTS)
        if content is None and not any(said.get(name) for name in _BESIDE):
            yield unknown(entry if not said else "line without content", line)
        elif content is not None and not content:
            yield LeftOut(reason="empty message")
        else:
            yield from self._message(said, content, line)

    def _message(self, said: Mapping[str, Any], content: Any, line: int) -> Iterator[Found]:
        conversation = self._conversation(said)
        at = moment(first(said, *TIMES))
        message = _message_of(said, content)
        if message["role"] == Role.NOTE.value:
            yield unknown("role", line)
        metadata = _metadata(said.get("metadata"))
        if metadata is None:
            yield unknown("metadata", line)
        key = label(first(said, *KEYS))
        # With a time it is the same wherever the line stands; without, its place has to tell.
        place = self._count if at is None else at.isoformat()
        yield ImportedMessage(
            id=digest(conversation.key, *((key,) if key else (place, message))),
            conversation=conversation,
            message=message,
            at=at,
            metadata=metadata or {},
        )

    def _conversation(self, said: Mapping[str, Any]) -> ImportedSession:
        session = first(said, *SESSIONS)
        known = label(mapping(session).get("id") if isinstance(session, dict) else session)
        if known is None:
            self._begun = self._begun or digest(said)
        key = self._key(known)
        # The first line says whose it is: what changes its mind later stays one conversation.
        conversation = self._conversations.pop(key, None) or ImportedSession(
            key=key,
            agent=_agent(said.get("agent")),
            directory=known_directory(first(said, *DIRECTORIES)),
        )
        self._conversations[key] = conversation  # the latest is the last
        if len(self._conversations) > CONVERSATIONS_MAX:
            del self._conversations[next(iter(self._conversations))]
        return conversation

    def _key(self, session: str | None) -> tuple[str, ...]:
        """The conversation of a session; none: that of lines that name none."""
        return ("jsonl", self._file, self._begun or "") if session is None else ("jsonl", session)


def _agent(given: object) -> str:
    """An agent's name, without the characters that none may have."""
    said = words(given, 100) or ""
    return "".join(each for each in said if each.isprintable()).strip() or AGENT


def _message_of(said: Mapping[str, Any], content: Any) -> dict[str, Any]:
    """The message of a line; who has a role of their own speaks in a note."""
    given = first(said, *ROLES)
    name = words(said.get("name"), 200)
    try:
        role = read_role(given)
    except InvalidValue:
        role, name = Role.NOTE, name or words(given, 200)
    message = {"role": role.value, "content": content}
    message |= {each: said[each] for each in _BESIDE if said.get(each) is not None}
    return message if name is None else {**message, "name": name}


def _metadata(given: object) -> Mapping[str, Any] | None:
    """Return the metadata to store; None if it cannot be stored."""
    if given is None:
        return {}
    try:
        collection.encode_metadata(given)  # type: ignore[arg-type]
    except InvalidValue:
        return None
    return mapping(given)


# Messages as lines of JSON.
GenericJsonl = partial(
    ImportSource,
    name="jsonl",
    is_file=LINE_FILES,
    shape=FileShape.LINES,
    probe=known_by(_is_message, "one message in a line"),
    reader=_JsonlReader,
)

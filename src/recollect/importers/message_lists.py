"""Files that hold messages as the OpenAI and Anthropic interfaces take them, in lists or lines.

A file is a list of messages, an object with one under `messages`, or lines that are either of the
two. Messages that stand by themselves are one conversation; each object is one of its own.

A conversation is identified by its file's name and its beginning, so that it stays the same when it
grows or the file is moved. A message is identified by its position and its text, so that a second
"yes" is a message of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from recollect.importers.items import (
    JSON_FILES,
    Found,
    ImportedMessage,
    ImportedSession,
    ImportSource,
    Origin,
    digest,
    first,
    label,
    listed,
    mapping,
    metadata_of,
    moment,
    not_understood,
    spelled,
    text,
    unknown,
    words,
)
from recollect.messages import Role

HELD_MAX = 4  # instructions that are kept until something is said
HELD_CHARS_MAX = 32_768
HELD_LEVELS_MAX = 32

_INSTRUCTIONS = frozenset({Role.SYSTEM.value, Role.DEVELOPER.value})
_TIMES = ("created_at", "timestamp", "create_time", "created")
_OPENAI_TYPES = frozenset({"function_call", "function_call_output", "message", "reasoning"})
_OPENAI_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_ANTHROPIC_ROLES = frozenset({"user", "assistant"})
_ANTHROPIC_PARTS = frozenset({"tool_use", "tool_result", "thinking", "document"})


def _form(is_message: Callable[[Mapping[str, Any]], bool], entries: Sequence[object]) -> str | None:
    found = [_messages(entry) for entry in entries]
    messages = [
        message
        for entry, inside in zip(entries, found, strict=True)
        for message in ([entry] if inside is None else inside)
    ]
    if not messages or not all(is_message(mapping(each)) for each in messages):
        return None
    return "messages" if None in found else "conversations of messages"


def _is_openai(message: Mapping[str, Any]) -> bool:
    role, kind = text(message.get("role")), text(message.get("type"))
    is_known = role in _OPENAI_ROLES or kind in _OPENAI_TYPES
    return is_known and not _ANTHROPIC_PARTS & _part_types(message)


def _is_anthropic(message: Mapping[str, Any]) -> bool:
    return text(message.get("role")) in _ANTHROPIC_ROLES and "tool_calls" not in message


def _part_types(message: Mapping[str, Any]) -> frozenset[str]:
    types = (mapping(part).get("type") for part in listed(message.get("content")))
    return frozenset(kind for kind in types if isinstance(kind, str))


def _messages(entry: object) -> Sequence[Any] | None:
    """The messages of an entry that is a conversation; none: it is none."""
    found = mapping(entry).get("messages")
    return found if isinstance(found, list) and "role" not in mapping(entry) else None


class _MessageListReader:
    """Numbers messages. Instructions wait for what is said first: alone they tell nothing apart."""

    def __init__(self, source: str, origin: Origin, memo: Mapping[str, Any]) -> None:
        self._source = source
        self._file = label(origin.path.name) or "unnamed"
        self._begun = text(memo.get("begun"))
        self._count = memo["count"] if isinstance(memo.get("count"), int) else 0
        self._held: list[Any] = list(listed(memo.get("held")))

    @property
    def memo(self) -> Mapping[str, Any]:
        return metadata_of(begun=self._begun, count=self._count, held=self._held or None)

    def read(self, entry: object, line: int) -> Iterator[Found]:
        messages = _messages(entry)
        if messages is not None:
            yield from self._whole(mapping(entry), messages, line)
        elif not isinstance(entry, dict):
            yield unknown(entry, line)
        elif self._begun is None and self._is_held(entry):
            self._held.append(entry)
        else:
            yield from self._single(entry, line)

    def _is_held(self, message: Mapping[str, Any]) -> bool:
        if text(message.get("role")) not in _INSTRUCTIONS or len(self._held) >= HELD_MAX:
            return False
        if not _is_flat(message):
            return False
        return len(spelled([*self._held, message])) <= HELD_CHARS_MAX

    def _single(self, message: Mapping[str, Any], line: int) -> Iterator[Found]:
        waiting, self._held = [*self._held, message], []
        if self._begun is None:
            self._begun = digest(waiting)
        conversation = self._conversation(self._begun)
        for each in waiting:
            yield from _item(each, self._count, conversation, line)
            self._count += 1

    def _whole(
        self, entry: Mapping[str, Any], messages: Sequence[Any], line: int
    ) -> Iterator[Found]:
        said = [message for message in messages if isinstance(message, dict)]
        if text(entry.get("system")):
            said.insert(0, {"role": Role.SYSTEM.value, "content": entry["system"]})
        # Lines of one file may well begin alike; where they stand never changes.
        known = label(first(entry, "conversation_id", "session_id", "thread_id", "id"))
        conversation = self._conversation(known or digest(line, _opening(said)))
        for number, message in enumerate(said):
            yield from _item(message, number, conversation, line)
        if len(said) < len(messages):
            yield unknown("message", line)

    def _conversation(self, begun: str) -> ImportedSession:
        return ImportedSession(key=(self._source, self._file, begun), agent=self._source)


def _is_flat(value: object, levels: int = HELD_LEVELS_MAX) -> bool:
    """Whether it is nested no deeper than can be written down again wherever that is done."""
    inner = value.values() if isinstance(value, dict) else listed(value)
    return levels > 0 and all(_is_flat(each, levels - 1) for each in inner)


def _opening(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Messages up to the first that is no instruction."""
    opening = []
    for message in messages:
        opening.append(message)
        if text(message.get("role")) not in _INSTRUCTIONS:
            break
    return opening


def _item(
    message: Mapping[str, Any], number: int, conversation: ImportedSession, line: int
) -> Iterator[Found]:
    if not message:
        yield not_understood("empty message", line)
        return
    yield ImportedMessage(
        id=digest(conversation.key, number, message),
        conversation=conversation,
        message=message,
        at=moment(first(message, *_TIMES)),
        metadata=metadata_of(model=words(message.get("model"))),
    )


# Messages of the chat completions, items of the Responses API, and fine-tuning files.
OpenAIMessages = partial(
    ImportSource,
    name="openai",
    is_file=JSON_FILES,
    probe=partial(_form, _is_openai),
    reader=partial(_MessageListReader, "openai"),
)
# Messages of the Messages API; the instructions stand beside them, under `system`.
AnthropicMessages = partial(
    ImportSource,
    name="anthropic",
    is_file=JSON_FILES,
    probe=partial(_form, _is_anthropic),
    reader=partial(_MessageListReader, "anthropic"),
)

"""Claude.ai's export: `conversations.json`, in which a conversation is a list of messages.

A message in which tools answered in between is given in pieces, so that what a tool said is never
taken for what the model said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from recollect.importers.items import (
    Found,
    ImportedMessage,
    ImportedSession,
    LeftOut,
    digest,
    export,
    first,
    item_of,
    label,
    listed,
    mapping,
    metadata_of,
    moment,
    text,
    unknown,
    words,
)

ATTACHMENT_BYTES_MAX = 65_536  # of what was read out of a file that somebody attached

_KNOWN = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image"})
_BOOKKEEPING = frozenset({"token_budget", "flag"})


def _conversation(entry: object, line: int) -> Iterator[Found]:
    said = mapping(entry)
    messages = said.get("chat_messages")
    if not isinstance(messages, list):
        yield unknown(entry, line)
        return
    key = label(first(said, "uuid", "id")) or _key_of_first(messages)
    conversation = ImportedSession(key=("claude", key), agent="claude")
    title = words(first(said, "name", "title"))
    for number, message in enumerate(messages):
        for found in _message(mapping(message), number, conversation, line):
            if isinstance(found, ImportedMessage) and title is not None:
                found = replace(found, metadata={"title": title, **found.metadata})
                title = None
            yield found


def _key_of_first(messages: Sequence[object]) -> str:
    opening = mapping(messages[0]) if messages else {}
    return digest([label(opening.get(name)) for name in ("uuid", "created_at", "text")])


def _message(
    said: Mapping[str, Any], number: int, conversation: ImportedSession, line: int
) -> Iterator[Found]:
    if not said:
        yield unknown("message", line)
        return
    blocks = list(_blocks(said))
    yield from (unknown(each["type"], line) for each in blocks if each["type"] not in _KNOWN)
    blocks += _attachments(said)
    if not blocks:
        yield LeftOut(reason="empty message")
        return
    message_id = label(said.get("uuid")) or digest(conversation.key, number)
    pieces = groupby(blocks, key=lambda block: block.get("type") == "tool_result")
    for position, (is_answer, piece) in enumerate(pieces):
        yield from item_of(
            item_id=f"{message_id}/{position}" if position else message_id,
            conversation=conversation,
            message={
                "role": "tool" if is_answer else first(said, "sender", "role"),
                "content": _content(list(piece)),
            },
            at=moment(first(said, "created_at", "updated_at")),
        )


def _content(blocks: list[dict[str, Any]]) -> Any:
    """One text is a text, and everything else a list of parts."""
    only = blocks[0] if len(blocks) == 1 else {}
    return only["text"] if only.get("type") == "text" else blocks


def _blocks(said: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a message says; its text alone, where it has no parts."""
    parts = [part for part in listed(said.get("content")) if isinstance(part, dict)]
    found = [block for part in parts for block in _block(part)]
    yield from found
    if not found and text(said.get("text")):
        yield {"type": "text", "text": said["text"]}


def _block(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = text(part.get("type")) or "unnamed"
    if kind in _BOOKKEEPING:
        return
    if kind == "text":
        if text(part.get("text")):
            yield {"type": "text", "text": part["text"]}
    elif kind == "thinking":
        if text(part.get("thinking")):
            yield {"type": "thinking", "thinking": part["thinking"]}
    elif kind == "tool_use":
        yield {**part, "name": words(part.get("name"), 200) or "unnamed"}
    else:
        yield {**part, "type": kind}


def _attachments(said: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in map(mapping, listed(said.get("attachments"))):
        name, media_type = words(each.get("file_name")), words(each.get("file_type"), 100)
        content = text(each.get("extracted_content"))
        if name is None and content is None:
            continue
        source = metadata_of(type="text", media_type=media_type, data=_cut(content))
        yield {"type": "document", "title": name or "unnamed", "source": source}
    for each in map(mapping, listed(said.get("files") or said.get("files_v2"))):
        file_name, file_id = (words(each.get(field)) for field in ("file_name", "file_uuid"))
        if file_name or file_id:
            yield {"type": "file", "file": metadata_of(file_id=file_id, filename=file_name)}


def _cut(content: str | None) -> str | None:
    """The beginning of a long text, whole characters only."""
    if content is None or len(content) * 4 <= ATTACHMENT_BYTES_MAX:
        return content
    return content.encode(errors="replace")[:ATTACHMENT_BYTES_MAX].decode(errors="ignore")


# Conversations that somebody had on Claude.ai, as its export has them.
ClaudeExport = partial(
    export, "claude", "chat_messages", list, "conversations as lists of messages", _conversation
)

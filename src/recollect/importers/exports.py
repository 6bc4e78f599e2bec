"""Exports of ChatGPT and Claude.ai: archives with a `conversations.json`.

ChatGPT's conversations are trees of messages: every message of every branch is given once, parents
before children and in the order of the branches; those that are not on the branch that was shown
last are marked as such. Claude.ai's are lists: a message in which tools answered in between is
given in pieces, so that what a tool said is never taken for what the model said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from typing import Any

from recollect.importers.items import (
    Found,
    ImportedMessage,
    ImportedSession,
    LeftOut,
    digest,
    export,
    first,
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
_EVERYBODY = "all"  # whom a message is for that calls no tool
_FOREIGN = "chatgpt "  # before the type of a part that no session knows
_SAID = frozenset({"text", "multimodal_text", "code"})
_ANSWERED = frozenset(
    {"execution_output", "tether_browsing_display", "tether_quote", "system_error"}
    | {"computer_output", "sonic_webpage", "citable_code_output"}
)
_IMAGES = frozenset({"image_asset_pointer"})
_SOUNDS = frozenset({"audio_asset_pointer", "real_time_user_audio_video_asset_pointer"})

Json = dict[str, Any]


def _titled(found: Iterable[Found], title: object) -> Iterator[Found]:
    """Each message once; the first has the conversation's title."""
    given: set[str] = set()
    for each in found:
        if isinstance(each, ImportedMessage):
            if each.id in given:
                continue
            if not given:
                about = metadata_of(title=words(title))
                each = replace(each, metadata={**about, **each.metadata})
            given.add(each.id)
        yield each


def _attached(name: str | None, file_id: str | None) -> Iterator[Json]:
    """A file that is only named."""
    if name or file_id:
        yield {"type": "file", "file": metadata_of(file_id=file_id, filename=name)}


def _content(blocks: list[Json]) -> Any:
    """Texts alone are a text, and everything else a list of parts."""
    is_all_text = all(block["type"] == "text" for block in blocks)
    return "\n".join(block["text"] for block in blocks) if is_all_text else blocks


def _tree(entry: object, line: int) -> Iterator[Found]:
    said = mapping(entry)
    nodes = said.get("mapping")
    if not isinstance(nodes, dict):
        yield unknown(entry, line)
        return
    order = list(_ordered(nodes, _children(nodes)))
    shown = _branch(nodes, said.get("current_node")) or frozenset(order)
    key = label(first(said, "conversation_id", "id")) or digest(order[:1])
    conversation = ImportedSession(key=("chatgpt", key), agent="chatgpt")
    found = (
        each
        for node_id in order
        for each in _node(nodes, node_id, conversation, line, is_shown=node_id in shown)
    )
    yield from _titled(found, said.get("title"))


def _said_in(nodes: Mapping[str, Any], node_id: object) -> Mapping[str, Any]:
    node = nodes.get(node_id) if isinstance(node_id, str) else None
    return mapping(mapping(node).get("message"))


def _children(nodes: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the children of each node: those that parents list, then those that name a parent."""
    children: dict[str, dict[str, None]] = {node_id: {} for node_id in nodes}
    for node_id, node in nodes.items():
        for child in listed(mapping(node).get("children")):
            if isinstance(child, str) and child in nodes:
                children[node_id][child] = None
    for node_id, node in nodes.items():
        parent = mapping(node).get("parent")
        if isinstance(parent, str) and parent in nodes:
            children[parent][node_id] = None
    return {node_id: list(found) for node_id, found in children.items()}


def _ordered(nodes: Mapping[str, Any], children: Mapping[str, list[str]]) -> Iterator[str]:
    """Each node once, whatever circles they are said to stand in."""
    seen: set[str] = set()
    below = {child for found in children.values() for child in found}
    for root in (*(node_id for node_id in nodes if node_id not in below), *nodes):
        waiting = [root]
        while waiting:
            node_id = waiting.pop()
            if node_id not in seen:
                seen.add(node_id)
                yield node_id
                waiting.extend(reversed(children[node_id]))


def _branch(nodes: Mapping[str, Any], leaf: object) -> frozenset[str]:
    found: set[str] = set()
    while isinstance(leaf, str) and leaf in nodes and leaf not in found:
        found.add(leaf)
        leaf = mapping(nodes[leaf]).get("parent")
    return frozenset(found)


def _node(
    nodes: Mapping[str, Any],
    node_id: str,
    conversation: ImportedSession,
    line: int,
    *,
    is_shown: bool,
) -> Iterator[Found]:
    said = _said_in(nodes, node_id)
    if not said:
        return  # the root of a tree says nothing
    about, content = mapping(said.get("metadata")), mapping(said.get("content"))
    kind = text(content.get("content_type"))
    role = mapping(said.get("author")).get("role")
    reason = _left_out(role, kind, about)
    if reason:
        yield LeftOut(reason=reason)
        return
    files = map(mapping, listed(about.get("attachments")))
    named = (_attached(words(each.get("name")), words(each.get("id"))) for each in files)
    blocks = [*_content_blocks(content), *chain.from_iterable(named)]
    if not blocks:
        yield LeftOut(reason="empty message")
        return
    for block in blocks:
        if block["type"].startswith(_FOREIGN):
            yield unknown(block["type"].removeprefix(_FOREIGN), line)
    item_id = label(said.get("id")) or digest(conversation.key, node_id)
    if kind == "user_editable_context":  # it stands in every conversation, and is stored once
        item_id = f"instructions:{digest(blocks)}"
    asked = _said_in(nodes, mapping(nodes[node_id]).get("parent"))
    yield ImportedMessage(
        id=item_id,
        conversation=conversation,
        message=_as_message(said, blocks, asked),
        at=moment(first(said, "create_time", "update_time")),
        metadata=metadata_of(
            model=words(about.get("model_slug")), branch=None if is_shown else "earlier"
        ),
    )


def _left_out(role: object, kind: str | None, about: Mapping[str, Any]) -> str:
    """Why a message that is known is not wanted; empty if it is."""
    if kind == "model_editable_context":
        return "injected memory"
    if kind == "reasoning_recap":
        return "how long the model thought"
    if role == "system" and kind != "user_editable_context":
        return "system message"
    is_hidden = about.get("is_visually_hidden_from_conversation") is True
    return "hidden message" if is_hidden and kind != "user_editable_context" else ""


def _as_message(said: Mapping[str, Any], blocks: list[Json], asked: Mapping[str, Any]) -> Json:
    author = mapping(said.get("author"))
    role = author.get("role")
    kind = text(mapping(said.get("content")).get("content_type"))
    content = _content(blocks)
    recipient = words(said.get("recipient"))
    if role == "assistant" and isinstance(content, str) and recipient not in (None, _EVERYBODY):
        call = {"name": recipient, "arguments": content}
        called = {"id": label(said.get("id")), "type": "function", "function": call}
        return {"role": "assistant", "content": None, "tool_calls": [called]}
    if role == "tool" or kind in _ANSWERED:
        name, call_id = words(author.get("name"), 200), label(asked.get("id"))
        return metadata_of(role="tool", content=content, name=name, tool_call_id=call_id)
    return {"role": role, "content": content}


def _content_blocks(content: Mapping[str, Any]) -> Iterator[Json]:
    """What a message says, as parts that a session knows; others are kept as they are."""
    kind = text(content.get("content_type"))
    if kind == "thoughts":
        for thought in listed(content.get("thoughts")):
            said = [text(mapping(thought).get(field)) for field in ("summary", "content")]
            if any(said):
                yield {"type": "thinking", "thinking": "\n".join(filter(None, said))}
    elif kind == "user_editable_context":
        for field in ("user_profile", "user_instructions"):
            if text(content.get(field)):
                yield {"type": "text", "text": content[field]}
    elif kind in _SAID or kind in _ANSWERED or kind is None:
        yield from _said(content)
    else:
        yield {**content, "type": f"{_FOREIGN}{kind}"}


def _said(content: Mapping[str, Any]) -> Iterator[Json]:
    for part in listed(content.get("parts")):
        if text(part):
            yield {"type": "text", "text": part}
        elif isinstance(part, dict):
            yield _part(part)
    said = first(content, "text", "result", "summary")
    if text(said):
        yield {"type": "text", "text": said}


def _part(part: Mapping[str, Any]) -> Json:
    kind = text(part.get("content_type"))
    if kind in _IMAGES or kind in _SOUNDS:
        pointer = mapping(part.get("audio_asset_pointer")).get("asset_pointer")
        url = words(first(part, "asset_pointer") or pointer)
        return {"type": "image" if kind in _IMAGES else "audio", "source": {"url": url}}
    if kind == "audio_transcription" and text(part.get("text")):
        return {"type": "text", "text": part["text"]}
    return {**part, "type": f"{_FOREIGN}{kind}"}


# Conversations that somebody had with ChatGPT, as its export has them.
ChatGPT = partial(export, "chatgpt", "mapping", dict, "conversations as trees of messages", _tree)


def _list(entry: object, line: int) -> Iterator[Found]:
    said = mapping(entry)
    messages = said.get("chat_messages")
    if not isinstance(messages, list):
        yield unknown(entry, line)
        return
    opening = mapping(messages[0]) if messages else {}
    begun = digest([label(opening.get(name)) for name in ("uuid", "created_at", "text")])
    key = label(first(said, "uuid", "id")) or begun
    conversation = ImportedSession(key=("claude", key), agent="claude")
    found = (
        each
        for number, message in enumerate(messages)
        for each in _message(mapping(message), number, conversation, line)
    )
    yield from _titled(found, first(said, "name", "title"))


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
        yield ImportedMessage(
            id=f"{message_id}/{position}" if position else message_id,
            conversation=conversation,
            message={
                "role": "tool" if is_answer else first(said, "sender", "role"),
                "content": _content(list(piece)),
            },
            at=moment(first(said, "created_at", "updated_at")),
        )


def _blocks(said: Mapping[str, Any]) -> Iterator[Json]:
    """What a message says; its text alone, where it has no parts."""
    parts = [part for part in listed(said.get("content")) if isinstance(part, dict)]
    found = [block for part in parts for block in _block(part)]
    yield from found
    if not found and text(said.get("text")):
        yield {"type": "text", "text": said["text"]}


def _block(part: Json) -> Iterator[Json]:
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


def _attachments(said: Mapping[str, Any]) -> Iterator[Json]:
    for each in map(mapping, listed(said.get("attachments"))):
        name, media_type = words(each.get("file_name")), words(each.get("file_type"), 100)
        content = text(each.get("extracted_content"))
        if name is None and content is None:
            continue
        source = metadata_of(type="text", media_type=media_type, data=_cut(content))
        yield {"type": "document", "title": name or "unnamed", "source": source}
    for each in map(mapping, listed(said.get("files") or said.get("files_v2"))):
        yield from _attached(words(each.get("file_name")), words(each.get("file_uuid")))


def _cut(content: str | None) -> str | None:
    """The beginning of a long text, whole characters only."""
    if content is None or len(content) * 4 <= ATTACHMENT_BYTES_MAX:
        return content
    return content.encode(errors="replace")[:ATTACHMENT_BYTES_MAX].decode(errors="ignore")


# Conversations that somebody had on Claude.ai, as its export has them.
ClaudeExport = partial(
    export, "claude", "chat_messages", list, "conversations as lists of messages", _list
)

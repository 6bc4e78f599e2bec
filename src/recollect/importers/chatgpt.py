"""ChatGPT's export: `conversations.json`, in which a conversation is a tree of messages.

Every message of every branch is given once, parents before children and in the order of the
branches; those that are not on the branch that was shown last are marked as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
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

_EVERYBODY = "all"  # whom a message is for that calls no tool
_FOREIGN = "chatgpt "  # before the type of a part that no session knows
_SAID = frozenset({"text", "multimodal_text", "code"})
_ANSWERED = frozenset(
    {"execution_output", "tether_browsing_display", "tether_quote", "system_error"}
    | {"computer_output", "sonic_webpage", "citable_code_output"}
)
_IMAGES = frozenset({"image_asset_pointer"})
_SOUNDS = frozenset({"audio_asset_pointer", "real_time_user_audio_video_asset_pointer"})


def _conversation(entry: object, line: int) -> Iterator[Found]:
    said = mapping(entry)
    nodes = said.get("mapping")
    if not isinstance(nodes, dict):
        yield unknown(entry, line)
        return
    order = list(_ordered(nodes, _children(nodes)))
    current = _branch(nodes, said.get("current_node"))
    key = label(first(said, "conversation_id", "id")) or digest(order[:1])
    conversation = ImportedSession(key=("chatgpt", key), agent="chatgpt")
    title = metadata_of(title=words(said.get("title")))
    given: set[str] = set()
    for node_id in order:
        branch = None if not current or node_id in current else "earlier"
        for found in _message(nodes, node_id, conversation, branch, line):
            if isinstance(found, ImportedMessage):
                if found.id in given:
                    continue
                if not given:
                    found = replace(found, metadata={**title, **found.metadata})
                given.add(found.id)
            yield found


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


def _message(
    nodes: Mapping[str, Any],
    node_id: str,
    conversation: ImportedSession,
    branch: str | None,
    line: int,
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
    blocks = [*_blocks(content), *_attachments(about)]
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
    yield from item_of(
        item_id=item_id,
        conversation=conversation,
        message=_as_message(said, blocks, asked),
        at=moment(first(said, "create_time", "update_time")),
        metadata=metadata_of(model=words(about.get("model_slug")), branch=branch),
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


def _as_message(
    said: Mapping[str, Any], blocks: list[dict[str, Any]], asked: Mapping[str, Any]
) -> dict[str, Any]:
    author = mapping(said.get("author"))
    role = author.get("role")
    kind = text(mapping(said.get("content")).get("content_type"))
    is_all_text = all(block.get("type") == "text" for block in blocks)
    content: Any = "\n".join(block["text"] for block in blocks) if is_all_text else blocks
    recipient = words(said.get("recipient"))
    if role == "assistant" and is_all_text and recipient not in (None, _EVERYBODY):
        call = {"name": recipient, "arguments": content}
        called = {"id": label(said.get("id")), "type": "function", "function": call}
        return {"role": "assistant", "content": None, "tool_calls": [called]}
    if role == "tool" or kind in _ANSWERED:
        name, call_id = words(author.get("name"), 200), label(asked.get("id"))
        return metadata_of(role="tool", content=content, name=name, tool_call_id=call_id)
    return {"role": role, "content": content}


def _blocks(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
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


def _said(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for part in listed(content.get("parts")):
        if text(part):
            yield {"type": "text", "text": part}
        elif isinstance(part, dict):
            yield _part(part)
    said = first(content, "text", "result", "summary")
    if text(said):
        yield {"type": "text", "text": said}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = text(part.get("content_type"))
    if kind in _IMAGES or kind in _SOUNDS:
        pointer = mapping(part.get("audio_asset_pointer")).get("asset_pointer")
        url = words(first(part, "asset_pointer") or pointer)
        return {"type": "image" if kind in _IMAGES else "audio", "source": {"url": url}}
    if kind == "audio_transcription" and text(part.get("text")):
        return {"type": "text", "text": part["text"]}
    return {**part, "type": f"{_FOREIGN}{kind}"}


def _attachments(about: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in listed(about.get("attachments")):
        name, file_id = (words(mapping(each).get(field)) for field in ("name", "id"))
        if name or file_id:
            yield {"type": "file", "file": metadata_of(file_id=file_id, filename=name)}


# Conversations that somebody had with ChatGPT, as its export has them.
ChatGPT = partial(
    export, "chatgpt", "mapping", dict, "conversations as trees of messages", _conversation
)

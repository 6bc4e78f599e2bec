"""What one item of a Codex rollout says, by itself: who spoke, and which of it was spoken.

Codex hands its model instructions, the state of the machine and notices under the user's name; they
are kept as the host's. Both forms of a rollout hold the same items, with or without an envelope.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from recollect.extraction.injected import without_instructions
from recollect.importers.agent_logs import (
    BOOKKEEPING,
    OUTPUT_CHARS_MAX,
    REASONING,
    Allowance,
    Gathered,
    Json,
    Meaning,
    Said,
    Unknown,
    Words,
    all_of_it,
    broken,
    digest,
    label,
    none_of_it,
    output_text,
    storable_value,
    type_name,
    without_blocks,
)

ITEM_TYPES = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "custom_tool_call"}
    | {"custom_tool_call_output", "local_shell_call", "local_shell_call_output"}
    | {"web_search_call", "tool_search_call", "tool_search_output", "image_generation_call"}
    | {"ghost_snapshot", "compaction", "compaction_summary", "context_compaction"}
)
EVENT_TYPES = frozenset(
    {"agent_reasoning", "agent_reasoning_raw_content", "agent_reasoning_section_break", "error"}
    | {"token_count", "task_started", "task_complete", "turn_started", "turn_complete", "warning"}
    | {
        "turn_aborted",
        "turn_diff",
        "plan_update",
        "background_event",
        "stream_error",
        "deprecation",
    }
    | {"exec_command_begin", "exec_command_end", "exec_command_output_delta", "web_search_begin"}
    | {"web_search_end", "mcp_tool_call_begin", "mcp_tool_call_end", "patch_apply_begin"}
    | {"patch_apply_end", "view_image_tool_call", "entered_review_mode", "exited_review_mode"}
    | {"context_compacted", "thread_rolled_back", "undo_started", "undo_completed", "item_started"}
    | {"item_completed", "thread_name_updated", "session_configured", "model_reroute"}
    | {"image_generation_begin", "image_generation_end", "dynamic_tool_call_request"}
    | {"dynamic_tool_call_response", "collab_agent_spawn_begin", "collab_agent_spawn_end"}
    | {"collab_agent_interaction_begin", "collab_agent_interaction_end", "collab_waiting_begin"}
    | {"collab_waiting_end", "collab_close_begin", "collab_close_end", "guardian_assessment"}
)
_ITEM_BOOKKEEPING = frozenset(
    {"ghost_snapshot", "compaction", "compaction_summary", "context_compaction"}
    | {"tool_search_output"}
)
_TEXTS = ("input_text", "output_text", "text")
_ESSENCE = (
    *("type", "role", "content", "message", "call_id", "name", "arguments", "input", "output"),
    "action",
)

_HOST_TAG = re.compile(
    r"\s*<(?:environment_context|user_instructions|turn_aborted|user_shell_command|skill"
    r"|subagent_notification|collaboration_mode|personality_spec|recommended_plugins|model_switch"
    r"|hook_prompt|user_action|[a-z]{1,40}[ _]instructions)\b[^<>]*>"
)
_HOST_TEXT = re.compile(
    r"\s*(?:# AGENTS\.md instructions for |Another language model started to solve this problem)"
)
# What an editor tells of its files before the request itself.
_EDITOR_REQUEST = re.compile(
    r"\s*# Context from my IDE setup:.*?\n## My request for Codex:\s*", re.DOTALL
)
_IMAGE_TAG = re.compile(r"\s*</?image\b[^<>]*>\s*")
# Taken out of what the user is shown, though not out of what the model is.
_UNSHOWN = ("proposed_plan", "oai-mem-citation")
_CWD = re.compile(r"<cwd>([^<\n]+)</cwd>|Current working directory:[ \t]*([^\n]+)")
_EXIT = re.compile(r"(?:^|\n)(?:Exit code:|Process exited with code) (-?\d{1,10})\b")
_HEAD_CHARS = 400  # where a tool says how a command ended, before its output


def read_item(payload: Mapping[str, Json], *, is_hosts: bool) -> Meaning:
    """An item as the model saw it. `is_hosts`: whoever asks here is an agent, not a person."""
    kind = payload.get("type")
    match kind:
        case "message":
            return _message(payload, is_hosts=is_hosts)
        case "function_call" | "custom_tool_call":
            return _call(payload, payload.get("name"), payload.get("arguments"))
        case "local_shell_call":
            return _call(payload, "local_shell", payload.get("action"))
        case "web_search_call":
            return _call(payload, "web_search", payload.get("action"))
        case "tool_search_call":
            return _call(payload, "tool_search", payload.get("arguments"))
        case "image_generation_call":
            return _call(payload, "image_generation", {"prompt": payload.get("revised_prompt")})
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            return _output(payload)
        case "reasoning":
            return REASONING
        case str() if kind in _ITEM_BOOKKEEPING:
            return BOOKKEEPING
        case _:
            return Unknown(type=f"response_item/{type_name(kind)}")


def read_event(payload: Mapping[str, Json], *, is_hosts: bool) -> Meaning:
    """A message as the user saw it."""
    text = payload.get("message")
    if not isinstance(text, str):
        return broken("an event without its message")
    is_agent = payload.get("type") == "agent_message"
    own = all_of_it if is_agent else none_of_it if is_hosts else own_words
    gathered = Gathered(role="assistant" if is_agent else "user", own_words=own)
    gathered.add_text(text)
    return gathered.meaning()


def read_compaction(payload: Mapping[str, Json]) -> Meaning:
    """The summary that a model wrote; what it replaces stands in the file already."""
    text = payload.get("message")
    if not isinstance(text, str) or not text.strip():
        return BOOKKEEPING
    return Said(message={"role": "system", "content": Allowance().text(text)})


def own_words(text: str) -> Words | None:
    """What a person wrote of a text under the user's name; none where the host wrote it all."""
    request = _EDITOR_REQUEST.match(text)
    if request is not None:
        return Words(text=text[request.end() :])
    tag = _HOST_TAG.match(text)
    if tag is not None and text.rstrip().endswith(">"):
        return None
    if _HOST_TEXT.match(text) or not without_instructions(text).strip():
        return None
    return Words(text=text)


def directory_told(payload: Mapping[str, Json]) -> str | None:
    """The working directory, as a message about the machine says it."""
    for text in _texts(payload):
        if "<environment_context>" in text[:200]:
            found = _CWD.search(text)
            if found is not None:
                return (found[1] or found[2]).strip()
    return None


def essence(payload: Mapping[str, Json]) -> str:
    """A digest of what an item says, without what a copy of it may say otherwise."""
    return digest([payload.get(field) for field in _ESSENCE])


def likeness(said: Said, payload: Mapping[str, Json]) -> str:
    """A mark by which the two forms of one message are known as the same."""
    is_users = payload.get("role") == "user" or payload.get("type") == "user_message"
    text = said.words or "".join(_texts(payload))
    shown = text
    for tag in _UNSHOWN:
        shown = without_blocks(shown, tag)
    return digest(is_users, "".join(shown.split()) or "".join(text.split()))[:16]


def _texts(payload: Mapping[str, Json]) -> list[str]:
    content = payload.get("content", payload.get("message"))
    blocks = [content] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        return []
    texts = (block.get("text") if isinstance(block, dict) else block for block in blocks)
    return [text for text in texts if isinstance(text, str)]


def _message(payload: Mapping[str, Json], *, is_hosts: bool) -> Meaning:
    content = payload.get("content")
    if not isinstance(content, str | list):
        return broken("a message without content")
    match payload.get("role"):
        case "assistant":
            gathered = Gathered(role="assistant", own_words=all_of_it)
        case "user" if not is_hosts:
            gathered = Gathered(role="user", own_words=own_words)
        case "user" | "developer" | "system":
            gathered = Gathered(role="system", own_words=none_of_it)
        case _:
            return broken("a message of nobody's role")
    for block in gathered.counted([content] if isinstance(content, str) else content):
        _add(block, gathered)
    return gathered.meaning()


def _add(block: Json, gathered: Gathered) -> None:
    if isinstance(block, str):
        gathered.add_text(block)
    elif not isinstance(block, dict):
        gathered.faults += 1
    elif block.get("type") not in _TEXTS:
        gathered.add_other(block)
    elif not isinstance(block.get("text"), str):
        gathered.faults += 1
    elif not _IMAGE_TAG.fullmatch(block["text"]):
        gathered.add_text(block["text"])


def _call(payload: Mapping[str, Json], name: Json, arguments: Json) -> Meaning:
    if not isinstance(name, str) or not name:
        return broken("a call without a name")
    if payload.get("type") == "custom_tool_call":
        arguments = payload.get("input")
    allowance = Allowance()
    call_id = label(payload.get("call_id"))
    return Said(
        message={
            "type": "function_call",
            **({"call_id": call_id} if call_id else {}),
            "name": allowance.text(name, 200),
            "arguments": storable_value(arguments, allowance),
        }
    )


def _output(payload: Mapping[str, Json]) -> Meaning:
    text, is_error = _unwrapped(payload.get("output"))
    call_id = label(payload.get("call_id"))
    return Said(
        message={
            "type": "function_call_output",
            **({"call_id": call_id} if call_id else {}),
            "output": Allowance().text(text, OUTPUT_CHARS_MAX),
            **({"is_error": True} if is_error else {}),
        }
    )


def _unwrapped(output: Json) -> tuple[str, bool]:
    """The text of an answer and whether it failed: versions wrap the two in different ways."""
    if isinstance(output, str) and output.startswith("{") and '"output"' in output:
        try:
            decoded = json.loads(output)
        except (ValueError, RecursionError):
            decoded = None
        if isinstance(decoded, dict) and isinstance(decoded.get("output"), str):
            about = decoded.get("metadata")
            code = about.get("exit_code") if isinstance(about, dict) else None
            return output_text(decoded["output"]), type(code) is int and code != 0
    if isinstance(output, dict) and isinstance(output.get("content"), str | list):
        return output_text(output["content"]), output.get("success") is False
    text = output_text(output)
    code = _EXIT.search(text[:_HEAD_CHARS])
    return text, code is not None and int(code[1]) != 0

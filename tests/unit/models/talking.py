"""A conversation with tools for the tests of the models, and its parts in a line each."""

from __future__ import annotations

from typing import Any

from recollect.messages import ToolCall
from recollect.models.protocol import ChatMessage, ChatRole, Request, ToolDefinition

READ = ToolDefinition(
    name="document_read",
    description="Reads a document.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
)
TREE = ToolDefinition(
    name="document_tree", description="Lists documents.", parameters={"type": "object"}
)
TOOLS = (READ, TREE)


def user(text: str) -> ChatMessage:
    return ChatMessage(role=ChatRole.USER, text=text)


def system(text: str) -> ChatMessage:
    return ChatMessage(role=ChatRole.SYSTEM, text=text)


def assistant(text: str = "", *calls: ToolCall) -> ChatMessage:
    return ChatMessage(role=ChatRole.ASSISTANT, text=text, tool_calls=calls)


def result(call_id: str | None, text: str, *, is_error: bool = False) -> ChatMessage:
    return ChatMessage(role=ChatRole.TOOL, text=text, call_id=call_id, is_error=is_error)


def call(call_id: str | None, arguments: Any, name: str = "document_read") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def talking(*messages: ChatMessage, **changes: Any) -> Request:
    given: dict[str, Any] = {"system": "Be brief.", "messages": messages, "tools": TOOLS}
    return Request(**given | changes)

"""Records that read themselves: the message, its parts, its tool calls and its attachments."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import recollect
from recollect.messages import Attachment, Text, ToolCall, ToolResult
from recollect.types.records import Record


def stored(memory: recollect.Memory, message: dict[str, Any]) -> Record:
    session = memory.space().session("k")
    session.append_many([message])
    return session.recent(1)[0]


def test_a_plain_record_is_its_text(memory: recollect.Memory) -> None:
    record = stored(memory, {"role": "user", "content": "x", "name": "ada"})
    assert record.body is None
    assert record.message == {"role": "user", "content": "x", "name": "ada"}
    assert record.parts == (Text("x"),)
    assert (record.tool_calls, record.tool_results, record.attachments) == ((), (), ())
    assert record.is_error is False


def test_a_record_gives_its_parts_by_kind(memory: recollect.Memory) -> None:
    content = [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
        {"type": "tool_result", "tool_use_id": "t0", "content": "3"},
    ]
    record = stored(memory, {"role": "assistant", "content": content})
    assert record.tool_calls == (ToolCall("t1", "add", {"a": 1}),)
    assert record.tool_results == (ToolResult("t0", "3", False),)
    assert record.attachments == (Attachment("image", "https://example.org/a.png", None, None),)
    assert record.content == "look"


@pytest.mark.parametrize("more", [{}, {"tool_call_id": "c1"}])
def test_a_tools_record_has_a_result_however_little_it_says(
    memory: recollect.Memory, more: dict[str, Any]
) -> None:
    record = stored(memory, {"role": "tool", "content": "3", **more})
    assert record.tool_results == (ToolResult(more.get("tool_call_id"), "3", False),)


def test_an_error_is_seen_wherever_it_is_said(memory: recollect.Memory) -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "x", "is_error": True}
    for message, is_error in (
        ({"role": "tool", "content": "x", "is_error": True}, True),
        ({"role": "user", "content": [block, "oh"]}, True),
        ({"role": "assistant", "content": "x", "is_error": True}, True),
        ({"role": "tool", "content": "x", "is_error": False}, False),
    ):
        assert stored(memory, message).is_error is is_error


def test_how_much_of_a_session_is_unprocessed(memory: recollect.Memory) -> None:
    session = memory.space().session("k")
    assert session.state.unprocessed == 0
    for _ in range(6):
        session.append("user", "x")
    assert session.state.unprocessed == 6
    memory.space().sessions.mark_processed(session.id, 4, 6)
    assert session.state.unprocessed == 2


def test_a_value_cannot_be_changed(memory: recollect.Memory) -> None:
    record = stored(memory, {"role": "user", "content": "x"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.content = "y"  # type: ignore[misc]


def test_a_record_shows_itself_without_repeating_its_body(memory: recollect.Memory) -> None:
    record = stored(memory, {"role": "user", "content": "x", "extra": "a lot of it"})
    assert "a lot of it" not in repr(record)

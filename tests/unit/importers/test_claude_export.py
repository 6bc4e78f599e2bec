"""Claude.ai's export: messages with parts, attachments, and tools that answer in between."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given

from recollect.importers.exports import ATTACHMENT_BYTES_MAX, ClaudeExport
from recollect.messages import Attachment, Reasoning, ToolCall, read
from tests.unit.importers.foreign_json import items, left_out, mutated, odd, read_all, said
from tests.unit.strategies import json_values

SOURCE = ClaudeExport()


def export() -> dict[str, Any]:
    return {
        "uuid": "c-1",
        "name": "Trains",
        "account": {"uuid": "me"},
        "chat_messages": [
            {
                "uuid": "m-1",
                "sender": "human",
                "text": "When does it leave?",
                "content": [{"type": "text", "text": "When does it leave?", "citations": []}],
                "created_at": "2026-01-01T12:00:00.250000Z",
                "attachments": [
                    {"file_name": "plan.txt", "file_type": "txt", "extracted_content": "ä" * 50_000}
                ],
                "files": [{"file_name": "map.png", "file_uuid": "f-1"}],
            },
            {
                "uuid": "m-2",
                "sender": "assistant",
                "text": "Let me look.\n\nAt eight.",
                "content": [
                    {"type": "thinking", "thinking": "A timetable."},
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "t-1", "name": "web_search", "input": {"q": "x"}},
                    {
                        "type": "tool_result",
                        "tool_use_id": "t-1",
                        "content": [{"type": "text", "text": "08:00"}],
                        "is_error": False,
                    },
                    {"type": "token_budget"},
                    {"type": "text", "text": "At eight."},
                ],
                "created_at": "2026-01-01T12:00:09Z",
            },
            {"uuid": "m-3", "sender": "human", "text": "Thanks", "content": []},
            {"uuid": "m-4", "sender": "assistant", "text": "", "content": []},
        ],
    }


def test_messages_are_given_in_order_and_tools_speak_for_themselves() -> None:
    found = read_all(SOURCE, [export()])
    assert said(found) == [
        ("user", "When does it leave?"),
        ("assistant", "Let me look."),
        ("tool", "08:00"),
        ("assistant", "At eight."),
        ("user", "Thanks"),
    ]
    assert [item.id for item in items(found)] == ["m-1", "m-2", "m-2/1", "m-2/2", "m-3"]
    assert left_out(found) == ["empty message"]
    assert odd(found) == []


def test_the_conversation_the_title_and_the_times_are_said() -> None:
    found = items(read_all(SOURCE, [export()]))
    assert {item.conversation.key for item in found} == {("claude", "c-1")}
    assert [item.metadata for item in found] == [{"title": "Trains"}, {}, {}, {}, {}]
    assert found[0].at == datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    assert found[-1].at is None


def test_attachments_go_by_name_and_what_was_read_of_them_is_kept_within_bounds() -> None:
    question, answer, *_ = items(read_all(SOURCE, [export()]))
    _, plan, picture = read(question.message).parts
    assert plan == Attachment("file", None, "txt", "plan.txt")
    assert picture == Attachment("file", "f-1", None, "map.png")
    kept = question.message["content"][1]["source"]["data"]
    assert kept == "ä" * (ATTACHMENT_BYTES_MAX // 2)
    thought, _, call = read(answer.message).parts
    assert thought == Reasoning("A timetable.")
    assert call == ToolCall("t-1", "web_search", {"q": "x"})


def test_an_unknown_part_is_kept_and_said() -> None:
    entry = export()
    entry["chat_messages"][0]["content"].append({"type": "hologram", "waves": [1]})
    found = read_all(SOURCE, [entry])
    assert odd(found) == ["hologram"]
    assert {"type": "hologram", "waves": [1]} in items(found)[0].message["content"]


def test_files_and_forms_are_known() -> None:
    assert SOURCE.is_file(Path("data-2026/conversations.json"))
    assert not SOURCE.is_file(Path("projects.json"))
    assert SOURCE.probe([export()]) is not None
    assert SOURCE.probe([{"mapping": {}}, 3, None]) is None
    assert odd(read_all(SOURCE, [3, {"id": "x"}])) == ["int", "dict"]


@given(mutated(export()) | json_values)
def test_nothing_that_stands_in_an_export_makes_it_raise(entry: Any) -> None:
    read_all(SOURCE, [entry])
    SOURCE.probe([entry])

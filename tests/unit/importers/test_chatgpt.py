"""ChatGPT's export: trees of messages, each message once and in order, whatever else they are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.importers.exports import ChatGPT
from recollect.importers.items import Odd, Trouble
from recollect.messages import Attachment, Reasoning, ToolCall, ToolResult, read
from tests.unit.importers.foreign_json import items, left_out, mutated, odd, read_all, said
from tests.unit.strategies import json_values

SOURCE = ChatGPT()


def node(node_id: str, parent: str | None, message: Any, *children: str) -> dict[str, Any]:
    return {"id": node_id, "parent": parent, "children": list(children), "message": message}


def message(role: str, message_id: str, content: Any, **more: Any) -> dict[str, Any]:
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    return {
        "id": message_id,
        "author": {"role": role, "name": more.pop("name", None), "metadata": {}},
        "create_time": 1767225600.5,
        "content": content,
        "status": "finished_successfully",
        "metadata": more.pop("metadata", {}),
        "recipient": more.pop("recipient", "all"),
        **more,
    }


def export() -> dict[str, Any]:
    """A question that was asked again in other words, a picture, and a tool."""
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-9"}
    code = {"content_type": "code", "language": "python", "text": "print(2)"}
    hidden = {"is_visually_hidden_from_conversation": True}
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Sum", "content": "two"}]}
    attached = {"attachments": [{"id": "file-8", "name": "plan.pdf", "mime_type": "text/pdf"}]}
    nodes = [
        node("root", None, None, "sys"),
        node("sys", "root", message("system", "sys", "", metadata=hidden), "q1", "q2"),
        node("q1", "sys", message("user", "q1", "What is one?"), "a1"),
        node("a1", "q1", message("assistant", "a1", "One.", metadata={"model_slug": "gpt-x"})),
        node(
            "q2",
            "sys",
            message(
                "user",
                "q2",
                {"content_type": "multimodal_text", "parts": [picture, "And two?"]},
                metadata=attached,
            ),
            "t2",
        ),
        node("t2", "q2", message("assistant", "t2", thoughts), "c2"),
        node("c2", "t2", message("assistant", "c2", code, recipient="python"), "e2"),
        node(
            "e2",
            "c2",
            message("tool", "e2", {"content_type": "execution_output", "text": "2"}, name="python"),
            "a2",
        ),
        node("a2", "e2", message("assistant", "a2", "Two.", metadata={"model_slug": "gpt-x"})),
    ]
    return {
        "title": "Numbers",
        "create_time": 1767225600.0,
        "conversation_id": "conv-1",
        "current_node": "a2",
        "mapping": {each["id"]: each for each in reversed(nodes)},
    }


def test_every_message_of_every_branch_is_given_once_and_parents_first() -> None:
    found = read_all(SOURCE, [export()])
    assert [item.id for item in items(found)] == ["q1", "a1", "q2", "t2", "c2", "e2", "a2"]
    assert said(found)[:3] == [
        ("user", "What is one?"),
        ("assistant", "One."),
        ("user", "And two?"),
    ]
    assert said(found)[-2:] == [("tool", "2"), ("assistant", "Two.")]
    assert left_out(found) == ["system message"]
    assert odd(found) == []


def test_the_conversation_the_title_the_times_and_the_branch_are_said() -> None:
    found = items(read_all(SOURCE, [export()]))
    assert {item.conversation.key for item in found} == {("chatgpt", "conv-1")}
    assert {item.conversation.agent for item in found} == {"chatgpt"}
    assert found[0].at == datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    assert [item.metadata for item in found[:3]] == [
        {"title": "Numbers", "branch": "earlier"},
        {"model": "gpt-x", "branch": "earlier"},
        {},
    ]


def test_pictures_files_thoughts_and_tools_are_what_they_are() -> None:
    parts = {item.id: read(item.message).parts for item in items(read_all(SOURCE, [export()]))}
    assert [part for part in parts["q2"] if isinstance(part, Attachment)] == [
        Attachment("image", "file-service://file-9", None, None),
        Attachment("file", "file-8", None, "plan.pdf"),
    ]
    assert parts["t2"] == (Reasoning("Sum\ntwo"),)
    assert parts["c2"] == (ToolCall("c2", "python", "print(2)"),)
    assert parts["e2"] == (ToolResult("c2", "2", is_error=False),)


def test_what_people_say_of_themselves_is_the_same_in_every_conversation() -> None:
    context = {"content_type": "user_editable_context", "user_profile": "A nurse in Graz."}
    hidden = {"is_visually_hidden_from_conversation": True}
    both = []
    for number in ("1", "2"):
        entry = export()
        entry["conversation_id"] = number
        entry["mapping"]["root"]["message"] = message(
            "user", f"context-{number}", context, metadata=hidden
        )
        both.append(entry)
    found = [item for item in items(read_all(SOURCE, both)) if "nurse" in str(item.message)]
    assert len(found) == 2
    assert len({item.id for item in found}) == 1


def test_an_unknown_kind_of_content_is_kept_and_said() -> None:
    entry = export()
    entry["mapping"]["a1"]["message"]["content"] = {"content_type": "hologram", "waves": [1, 2]}
    found = read_all(SOURCE, [entry])
    assert Odd(trouble=Trouble.UNKNOWN, detail="hologram", line=1) in found
    kept = next(item for item in items(found) if item.id == "a1")
    assert kept.message["content"][0]["waves"] == [1, 2]
    assert ("assistant", "") in said(found)


def test_nodes_in_a_circle_or_without_a_parent_are_given_all_the_same() -> None:
    entry = export()
    entry["mapping"]["q1"]["parent"] = "a1"
    entry["mapping"]["a1"]["children"] = ["q1"]
    entry["mapping"]["sys"]["children"] = ["q2"]
    entry["mapping"]["e2"]["parent"] = "gone"
    assert {item.id for item in items(read_all(SOURCE, [entry]))} == {
        *("q1", "a1", "q2", "t2", "c2", "e2", "a2")
    }


def test_a_conversation_of_twenty_thousand_messages_needs_no_stack() -> None:
    nodes = {
        f"{number}": node(f"{number}", f"{number - 1}", message("user", f"{number}", "hi"))
        for number in range(20_000)
    }
    found = SOURCE.reader(None, {}).read({"id": "long", "mapping": nodes}, 1)  # type: ignore[arg-type]
    assert sum(1 for _ in found) == 20_000


def test_files_and_forms_are_known() -> None:
    for name in ("conversations.json", "conversations-003.json", "export-2026.zip"):
        assert SOURCE.is_file(Path("exports") / name)
    assert not SOURCE.is_file(Path("user.json"))
    assert SOURCE.probe([export()]) is not None
    assert SOURCE.probe([{"chat_messages": []}, 3, None]) is None
    assert odd(read_all(SOURCE, [3, {"id": "x"}])) == ["int", "dict"]


@given(mutated(export()) | json_values)
def test_nothing_that_stands_in_an_export_makes_it_raise(entry: Any) -> None:
    read_all(SOURCE, [entry])
    SOURCE.probe([entry])


@given(st.data())
def test_mutations_lose_no_other_message(data: st.DataObject) -> None:
    """What is wrong with one message takes no other one along."""
    entry = export()
    entry["mapping"]["q1"]["message"] = data.draw(mutated(entry["mapping"]["q1"]["message"]))
    ids = [item.id for item in items(read_all(SOURCE, [entry]))]
    assert {"a1", "q2", "t2", "c2", "e2", "a2"} <= set(ids)

"""Messages as providers write them, read as they are; whatever cannot be read is InvalidMessage."""

from __future__ import annotations

import contextlib
import json
import math
from collections import OrderedDict, UserDict
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidMessage
from recollect.messages import (
    Attachment,
    Opaque,
    Part,
    Reading,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    as_plain_json,
    read,
    read_role,
    storable_json,
)
from tests.tables import every_row
from tests.unit.strategies import any_text, json_values, message_like


def user_part(block: object) -> Part:
    """How one content block of a user's message is read."""
    (part,) = read({"role": "user", "content": [block]}).parts
    return part


# OpenAI, chat completions


def test_a_plain_message_has_a_role_and_its_text() -> None:
    assert read({"role": "user", "content": "hello"}) == Reading(Role.USER, None, (Text("hello"),))


def test_a_message_without_content_says_nothing() -> None:
    for message in ({"role": "assistant", "content": None}, {"role": "assistant"}):
        reading = read(message)
        assert reading.parts == ()
        assert reading.text == ""


def test_the_texts_of_several_parts_are_lines() -> None:
    content = [{"type": "text", "text": "one"}, "two", {"text": "three"}]
    reading = read({"role": "user", "content": content})
    assert reading.parts == (Text("one"), Text("two"), Text("three"))
    assert reading.text == "one\ntwo\nthree"


def test_a_single_part_needs_no_list() -> None:
    assert read({"role": "user", "content": {"type": "text", "text": "x"}}).text == "x"


def test_the_speaker_of_a_message_is_kept() -> None:
    assert read({"role": "user", "name": "ada", "content": "x"}).name == "ada"
    assert read({"role": "user", "name": None, "content": "x"}).name is None


def test_tool_calls_follow_what_was_said() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    reading = read({"role": "assistant", "content": "let me see", "tool_calls": [call]})
    assert reading.parts == (Text("let me see"), ToolCall("c1", "add", '{"a": 1}'))
    assert reading.text == "let me see"


def test_tool_calls_may_be_flat_and_their_arguments_an_object() -> None:
    calls = [{"id": 7, "name": "add", "arguments": {"a": 1}}]
    reading = read({"role": "assistant", "tool_calls": calls})
    assert reading.parts == (ToolCall(None, "add", {"a": 1}),)


def test_no_tool_calls_are_no_tool_calls() -> None:
    assert read({"role": "assistant", "content": "x", "tool_calls": None}).parts == (Text("x"),)
    assert read({"role": "assistant", "content": "x", "tool_calls": []}).parts == (Text("x"),)


@pytest.mark.parametrize(
    ("flag", "is_error"), [({}, False), ({"is_error": True}, True), ({"is_error": "yes"}, False)]
)
def test_a_tools_answer_is_a_tool_result(flag: dict[str, Any], is_error: bool) -> None:
    message = {"role": "tool", "tool_call_id": "c1", "content": "3", **flag}
    reading = read(message)
    assert reading.role is Role.TOOL
    assert reading.parts == (ToolResult("c1", "3", is_error),)
    assert reading.text == "3"


def test_a_tools_answer_in_parts_is_one_tool_result() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    reading = read({"role": "tool", "tool_call_id": "c1", "content": content})
    assert reading.parts == (ToolResult("c1", "a\nb", False),)


def test_the_function_role_of_old_is_a_tool() -> None:
    reading = read({"role": "function", "name": "add", "content": "3"})
    assert (reading.role, reading.name) == (Role.TOOL, "add")
    assert reading.parts == (ToolResult(None, "3", False),)


def test_a_refusal_is_something_said() -> None:
    block = {"type": "refusal", "refusal": "I cannot"}
    assert read({"role": "assistant", "content": [block]}).parts == (Text("I cannot"),)


def test_a_refusal_beside_the_content_is_something_said() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I cannot"}
    assert read(message).text == "I cannot"
    assert read({"role": "assistant", "content": "x", "refusal": None}).text == "x"


@every_row(
    ("block", "attachment"),
    [
        (
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            Attachment("image", "https://example.org/a.png", None, None),
        ),
        (
            {"type": "image_url", "image_url": "https://example.org/a.png"},
            Attachment("image", "https://example.org/a.png", None, None),
        ),
        (
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
            Attachment("image", "https://example.org/a.png", None, None),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
            Attachment("audio", None, None, None),
        ),
        (
            {"type": "file", "file": {"file_id": "f-1", "filename": "a.pdf"}},
            Attachment("file", "f-1", None, "a.pdf"),
        ),
        (
            {"type": "input_file", "file_id": "f-1", "filename": "a.pdf"},
            Attachment("file", "f-1", None, "a.pdf"),
        ),
        (
            {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            Attachment("file", "https://example.org/a.pdf", None, None),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            Attachment("image", "https://example.org/a.png", None, None),
        ),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
            },
            Attachment("image", None, "image/png", None),
        ),
        (
            {
                "type": "document",
                "title": "Letter",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"},
            },
            Attachment("file", None, "application/pdf", "Letter"),
        ),
        (
            {"type": "file", "uri": "s3://b/k", "media_type": "text/csv", "name": "k.csv"},
            Attachment("file", "s3://b/k", "text/csv", "k.csv"),
        ),
        ({"type": "image"}, Attachment("image", None, None, None)),
    ],
)
def test_an_attachment_is_kept_by_reference(block: dict[str, Any], attachment: Attachment) -> None:
    assert user_part(block) == attachment


def test_an_attachment_says_nothing() -> None:
    block = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    assert read({"role": "user", "content": ["look", block]}).text == "look"


@pytest.mark.parametrize("holder", ["image_url", "source", "file"])
def test_inline_data_is_named_and_not_repeated(holder: str) -> None:
    data = "QUJD" * 100
    part = user_part({"type": "image", holder: {"url": f"data:image/png;base64,{data}"}})
    assert isinstance(part, Attachment)
    assert part.uri == "data:image/png;base64"


# OpenAI, Responses


@pytest.mark.parametrize("kind", ["input_text", "output_text"])
def test_an_item_of_the_responses_api_is_a_message(kind: str) -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": kind, "text": "x"}]}
    assert read(item) == Reading(Role.ASSISTANT, None, (Text("x"),))


@pytest.mark.parametrize(
    ("kind", "field"), [("function_call", "arguments"), ("custom_tool_call", "input")]
)
def test_a_call_item_is_the_assistants(kind: str, field: str) -> None:
    reading = read({"type": kind, "call_id": "c1", "name": "add", field: '{"a": 1}'})
    assert reading == Reading(Role.ASSISTANT, None, (ToolCall("c1", "add", '{"a": 1}'),))
    assert reading.text == ""


@every_row("kind", ["function_call_output", "custom_tool_call_output"])
@every_row(
    ("output", "text"),
    [
        ("3", "3"),
        ([{"type": "input_text", "text": "3"}, {"type": "input_image"}], "3"),
        ({"sum": 3}, '{"sum": 3}'),
        (None, ""),
        ([1, 2], "[1, 2]"),
    ],
)
def test_an_output_item_is_the_tools(kind: str, output: Any, text: str) -> None:
    reading = read({"type": kind, "call_id": "c1", "output": output})
    assert reading == Reading(Role.TOOL, None, (ToolResult("c1", text, False),))


def test_a_reasoning_item_is_reasoning_and_not_said() -> None:
    summary = [{"type": "summary_text", "text": "first"}, {"type": "summary_text", "text": "then"}]
    reading = read({"type": "reasoning", "id": "r1", "summary": summary})
    assert reading == Reading(Role.ASSISTANT, None, (Reasoning("first\nthen"),))
    assert reading.text == ""


# Anthropic


def test_a_tool_use_is_a_tool_call() -> None:
    block = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
    reading = read({"role": "assistant", "content": [{"type": "text", "text": "hm"}, block]})
    assert reading.parts == (Text("hm"), ToolCall("t1", "add", {"a": 1}))


@every_row(
    ("content", "text"),
    [
        ("3", "3"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "text", "text": "a"}, {"type": "image", "source": {}}], "a"),
        ([{"type": "text"}], ""),
        (None, ""),
        (["a", "b"], "a\nb"),
        (3, "3"),
    ],
)
def test_a_tool_result_has_the_text_of_its_content(content: Any, text: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    assert user_part(block) == ToolResult("t1", text, False)


def test_a_tool_result_may_be_an_error() -> None:
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "boom", "is_error": True}
    assert user_part(block) == ToolResult("t1", "boom", True)


def test_a_users_message_of_nothing_but_tool_results_is_the_tools() -> None:
    results = [{"type": "tool_result", "tool_use_id": name, "content": name} for name in "ab"]
    reading = read({"role": "user", "content": results})
    assert reading.role is Role.TOOL
    assert reading.parts == (ToolResult("a", "a", False), ToolResult("b", "b", False))


def test_a_users_message_with_words_of_their_own_stays_the_users() -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": "3"}
    reading = read({"role": "user", "content": [result, {"type": "text", "text": "and now?"}]})
    assert reading.role is Role.USER
    assert reading.text == "and now?"  # what a tool says never passes for the user's words: N5


@pytest.mark.parametrize("content", [None, []])
def test_an_empty_users_message_stays_the_users(content: Any) -> None:
    assert read({"role": "user", "content": content}).role is Role.USER


def test_thinking_is_reasoning_and_not_said() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "QUJD"},
        {"type": "text", "text": "done"},
    ]
    reading = read({"role": "assistant", "content": blocks})
    assert reading.parts == (Reasoning("hm"), Reasoning(""), Text("done"))
    assert reading.text == "done"


# roles and what nobody knows


@every_row(
    ("given_role", "role"),
    [
        *((role.value, role) for role in Role),
        ("human", Role.USER),
        ("ai", Role.ASSISTANT),
        ("model", Role.ASSISTANT),
        ("function", Role.TOOL),
        (" User ", Role.USER),
        ("ASSISTANT", Role.ASSISTANT),
    ],
)
def test_roles_are_known_by_several_names(given_role: str, role: Role) -> None:
    assert read_role(given_role) is role


@pytest.mark.parametrize("block", [{"type": "hologram", "text": "x"}, {"type": 5}, {"type": None}])
def test_a_part_of_an_unknown_type_stays_opaque(block: dict[str, Any]) -> None:
    assert user_part(block) == Opaque(str(block["type"]))
    assert read({"role": "user", "content": ["a", block, "b"]}).text == "a\nb"


def test_a_part_without_type_and_text_is_unknown() -> None:
    assert user_part({}) == Opaque("unknown")


@every_row(
    "message",
    [
        {},
        {"content": "x"},
        {"role": None, "content": "x"},
        {"role": "", "content": "x"},
        {"role": "wizard", "content": "x"},
        {"role": 5, "content": "x"},
        {"role": ["user"], "content": "x"},
        {"role": "user", "content": 5},
        {"role": "user", "content": True},
        {"role": "user", "content": [5]},
        {"role": "user", "content": [None]},
        {"role": "user", "content": [["x"]]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "text", "text": None}]},
        {"role": "user", "content": {"type": "text", "text": 5}},
        {"role": "user", "content": "x", "name": 5},
        {"role": "user", "content": "x", "name": ["ada"]},
        {"role": "assistant", "content": [{"type": "refusal"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "input": {}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "name": 5}]},
        {"role": "assistant", "tool_calls": {}},
        {"role": "assistant", "tool_calls": "add"},
        {"role": "assistant", "tool_calls": ["add"]},
        {"role": "assistant", "tool_calls": [{}]},
        {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": 5}}]},
        {"type": "function_call", "call_id": "c1"},
        {"type": "custom_tool_call", "name": None},
        {"type": "message", "content": "x"},
        {"type": "reasoning", "role": "wizard"},
    ],
)
def test_a_malformed_message_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(InvalidMessage):
        read(message)


@every_row(
    "value",
    [
        None,
        5,
        "a message",
        ["role", "user"],
        ("role", "user"),
        {"role": "user", "content": math.nan},
        {"role": "user", "content": math.inf},
        {"role": "user", "content": {1, 2}},
        {"role": "user", "content": b"bytes"},
        {"role": "user", "content": object()},
        {("a", "tuple"): 1},
        SimpleNamespace(role="user", content="x"),
        {"role": "user", "content": 10**5000},
    ],
)
def test_what_json_cannot_hold_is_no_message(value: object) -> None:
    with pytest.raises(InvalidMessage):
        as_plain_json(value)


def test_a_message_inside_itself_is_refused() -> None:
    message: dict[str, Any] = {"role": "user"}
    message["content"] = [message]
    with pytest.raises(InvalidMessage):
        as_plain_json(message)


@pytest.mark.parametrize("levels", [150, 300, 3_000])
def test_a_message_nested_ever_deeper_is_read_or_refused(levels: int) -> None:
    block: dict[str, Any] = {"type": "tool_result", "content": "x"}
    for _ in range(levels):
        block = {"type": "tool_result", "content": [block]}
    with contextlib.suppress(InvalidMessage):
        read(as_plain_json({"role": "user", "content": [block]})[0])


# objects of client libraries


class Dumped:
    """Stands for a model of a provider's client library."""

    def __init__(self, fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, mode: str, exclude_none: bool) -> Any:
        assert (mode, exclude_none) == ("json", True)
        return self.fields


def test_an_object_of_a_client_library_is_taken_through_its_model_dump() -> None:
    call = Dumped({"id": "c1", "function": {"name": "add", "arguments": "{}"}})
    plain, text = as_plain_json(Dumped({"role": "assistant", "tool_calls": [call]}))
    assert json.loads(text) == plain
    assert read(plain).parts == (ToolCall("c1", "add", "{}"),)


def test_an_object_inside_a_message_is_taken_through_its_model_dump() -> None:
    block = Dumped({"type": "tool_use", "id": "t1", "name": "add", "input": {}})
    plain, _ = as_plain_json({"role": "assistant", "content": [block]})
    assert read(plain).parts == (ToolCall("t1", "add", {}),)


@pytest.mark.parametrize("fields", [None, 5, [], "x"])
def test_an_object_that_dumps_no_mapping_is_no_message(fields: Any) -> None:
    with pytest.raises(InvalidMessage):
        as_plain_json(Dumped(fields))


@pytest.mark.parametrize("kind", [MappingProxyType, UserDict, OrderedDict, dict])
def test_every_mapping_is_a_message(kind: Any) -> None:
    plain, _ = as_plain_json(kind({"role": "user", "content": [kind({"text": "x"})]}))
    assert read(plain) == Reading(Role.USER, None, (Text("x"),))


# whatever comes


@given(json_values)
def test_any_json_value_is_a_message_or_refused(value: Any) -> None:
    with contextlib.suppress(InvalidMessage):
        plain, text = as_plain_json(value)
        assert plain == value
        assert json.loads(text) == value
        assert isinstance(read(plain).text, str)


@given(message_like)
def test_anything_that_looks_like_a_message_is_read_or_refused(message: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidMessage):
        reading = read(message)
        assert isinstance(reading.text, str)
        assert isinstance(reading.role, Role)


_objects = st.recursive(
    json_values
    | st.binary()
    | st.complex_numbers()
    | st.floats()
    | st.dates()
    | st.uuids()
    | st.sampled_from([object(), int, len, ..., range(3), Dumped, Dumped({"role": "user"})]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(any_text | st.integers() | st.tuples(), inner, max_size=3)
        | st.builds(Dumped, inner)
        | st.builds(MappingProxyType, st.dictionaries(any_text, inner, max_size=3))
    ),
    max_leaves=8,
)


@given(_objects)
def test_any_object_becomes_plain_json_or_is_refused(value: object) -> None:
    with contextlib.suppress(InvalidMessage):
        plain, text = as_plain_json(value)
        assert json.loads(text) == plain
        text.encode()  # every database can hold it


# surrogates


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_lone_surrogates_become_escapes_and_come_back(text: str) -> None:
    stored = storable_json(json.dumps({"text": text}, ensure_ascii=False))
    stored.encode()
    assert json.loads(stored) == {"text": text}


@given(any_text)
def test_storable_json_says_the_same(text: str) -> None:
    stored = storable_json(json.dumps(text, ensure_ascii=False))
    stored.encode()
    assert json.loads(stored) == text


def test_json_without_surrogates_is_stored_as_it_is() -> None:
    text = '{"b":1,  "a":"ö😀\\u0000"}'
    assert storable_json(text) is text


def test_a_call_in_openais_first_form_is_read() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    assert read(message).parts == (ToolCall(None, "f", "{}"),)


def test_a_picture_that_a_tool_answers_with_is_kept() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    message = {"role": "tool", "tool_call_id": "1", "content": ["see", picture]}
    result, attachment = read(message).parts
    assert result == ToolResult("1", "see", is_error=False)
    assert isinstance(attachment, Attachment)
    assert attachment.uri == "https://example.org/a.png"

"""X4, A6: what of a session's records matters for memory, redacted, in the shapes providers use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given

from recollect.extraction.piece import Block, BlockKind
from recollect.extraction.select import CALL_CHARS_MAX, RESULT_CHARS_MAX, select
from recollect.messages import Role
from tests.tables import every_row
from tests.unit.extraction.material import at, records, unchanged
from tests.unit.strategies import message_like

Shown = tuple[int, Role, BlockKind, str]


def chosen(*messages: Mapping[str, Any], **given: Any) -> list[Shown]:
    """The blocks of some messages, in short."""
    blocks = select(records(*messages, **given), unchanged)
    return [(block.seq, block.role, block.kind, block.text) for block in blocks]


def one(message: Mapping[str, Any]) -> Block:
    (block,) = select(records(message), unchanged)
    return block


def openai_call(name: str, arguments: str, call_id: str = "c1") -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def openai_result(text: str, call_id: str = "c1", **given: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text, **given}


# what is kept


def test_words_carry_their_record_their_time_and_their_speaker() -> None:
    first, second = select(
        records(
            {"role": "user", "name": "alice", "content": "I like tea"},
            {"role": "assistant", "content": "Noted"},
        ),
        unchanged,
    )
    assert (first.seq, first.at, first.role, first.speaker) == (1, at(1), Role.USER, "alice")
    assert (first.kind, first.text) == (BlockKind.SAID, "I like tea")
    assert (second.seq, second.at, second.role, second.speaker) == (2, at(2), Role.ASSISTANT, None)


OPENAI = (
    {"role": "user", "content": [{"type": "text", "text": "List the files"}]},
    openai_call("shell", '{"command": "ls"}'),
    openai_result("a.py\nb.py"),
    {"role": "assistant", "content": "Two files"},
)
RESPONSES = (
    {"role": "user", "content": [{"type": "input_text", "text": "List the files"}]},
    {
        "type": "function_call",
        "call_id": "c1",
        "name": "shell",
        "arguments": '{"command": "ls"}',
    },
    {"type": "function_call_output", "call_id": "c1", "output": "a.py\nb.py"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Two files"}]},
)
ANTHROPIC = (
    {"role": "user", "content": "List the files"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "They want a listing."},
            {"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "ls"}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.py\nb.py"}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Two files"}]},
)
LEGACY = (
    {"role": "human", "content": "List the files"},
    {"role": "ai", "function_call": {"name": "shell", "arguments": '{"command": "ls"}'}},
    {"role": "function", "name": "shell", "content": "a.py\nb.py"},
    {"role": "model", "content": "Two files"},
)


@pytest.mark.parametrize("messages", [OPENAI, RESPONSES, ANTHROPIC, LEGACY])
def test_every_provider_tells_the_same_story(messages: tuple[dict[str, Any], ...]) -> None:
    assert chosen(*messages) == [
        (1, Role.USER, BlockKind.SAID, "List the files"),
        (2, Role.ASSISTANT, BlockKind.CALL, '{"command": "ls"}'),
        (3, Role.TOOL, BlockKind.RESULT, "a.py\nb.py"),
        (4, Role.ASSISTANT, BlockKind.SAID, "Two files"),
    ]
    _, call, result, _ = select(records(*messages), unchanged)
    assert call.tool == result.tool == "shell"
    assert call.call_id == result.call_id


def test_a_record_may_hold_what_was_said_and_several_calls() -> None:
    message = openai_call("read", '{"path": "a"}') | {"content": "Let me look"}
    message["tool_calls"] = [*message["tool_calls"], {"id": "c2", "name": "read", "arguments": {}}]
    assert [shown[1:] for shown in chosen(message)] == [
        (Role.ASSISTANT, BlockKind.SAID, "Let me look"),
        (Role.ASSISTANT, BlockKind.CALL, '{"path": "a"}'),
        (Role.ASSISTANT, BlockKind.CALL, "{}"),
    ]


def test_a_tool_s_answer_under_the_user_s_role_is_the_tool_s() -> None:
    content = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "from the tool"},
        {"type": "text", "text": "from the user"},
    ]
    assert [shown[1:] for shown in chosen({"role": "user", "content": content})] == [
        (Role.TOOL, BlockKind.RESULT, "from the tool"),
        (Role.USER, BlockKind.SAID, "from the user"),
    ]


def test_a_failed_call_is_known_as_one_even_if_it_says_nothing() -> None:
    block = one(openai_result("", is_error=True))
    assert (block.kind, block.text, block.is_error) == (BlockKind.RESULT, "", True)


def test_a_web_search_of_the_assistant_s_own_message_is_a_tool_s_answer() -> None:
    content = [
        {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"query": "tea"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "w",
            "content": [{"type": "text", "text": "Tea is a plant"}],
        },
    ]
    call, result = select(records({"role": "assistant", "content": content}), unchanged)
    assert (call.kind, result.kind) == (BlockKind.CALL, BlockKind.RESULT)
    assert (result.role, result.tool, result.text) == (Role.TOOL, "web_search", "Tea is a plant")


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"type": "image_url", "image_url": {"url": "https://x.test/a.png?sig=1"}}, "a.png"),
        ({"type": "file", "file": {"filename": "plan.pdf", "file_id": "f9"}}, "plan.pdf f9"),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "iVBO" * 900},
            },
            "image image/png",
        ),
        (
            {"type": "input_image", "image_url": "data:image/png;base64," + "iVBO" * 900},
            "image data:image/png;base64",
        ),
    ],
)
def test_attachments_are_shown_by_name_and_never_by_content(
    part: dict[str, Any], text: str
) -> None:
    block = one({"role": "user", "content": [part]})
    assert block.kind is BlockKind.ATTACHMENT
    assert text in block.text
    assert "iVBOiVBO" not in block.text
    assert "sig=1" not in block.text


def test_a_message_that_is_one_envelope_is_a_note() -> None:
    """A6: and so it is nobody's word but the host's."""
    envelope = '<system_message origin="cron:1">wake up</system_message>'
    for content in (envelope, [{"type": "text", "text": envelope}]):
        assert chosen({"role": "user", "content": content}) == [
            (1, Role.NOTE, BlockKind.NOTE, "System message (origin: cron:1)\n\nwake up")
        ]


def test_an_envelope_beside_words_is_a_note_beside_words() -> None:
    parts = ["<system_message>x</system_message>", "I like tea"]
    assert [shown[1:] for shown in chosen({"role": "user", "content": parts})] == [
        (Role.NOTE, BlockKind.NOTE, "System message\n\nx"),
        (Role.USER, BlockKind.SAID, "I like tea"),
    ]


def test_an_assistant_cannot_write_a_note() -> None:
    block = one({"role": "assistant", "content": "<system_message>x</system_message>"})
    assert (block.role, block.kind) == (Role.ASSISTANT, BlockKind.SAID)


# what is left out


@every_row(
    "message",
    [
        {"role": "system", "content": "You are helpful."},
        {"role": "developer", "content": "Be brief."},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]},
        {"role": "assistant", "content": [{"type": "something_new", "text": "x"}]},
        {"role": "assistant", "content": None},
        {"role": "user", "content": "  \n "},
        {"role": "user", "content": "<system-reminder>Be brief.</system-reminder>"},
        {"role": "user", "content": "<environment_context><cwd>/</cwd></environment_context>"},
        {"role": "user", "content": "# AGENTS.md\n<INSTRUCTIONS>Lint.</INSTRUCTIONS>"},
        {"role": "user", "content": "<skill>\nHow to read PDF\n</skill>"},
        {"role": "user", "content": "## Relevant Memory\n\n- The user likes tea."},
        {"role": "assistant", "content": "<recollect-memory>\nx\n</recollect-memory>"},
    ],
)
def test_what_nobody_said_is_left_out(message: dict[str, Any]) -> None:
    assert chosen(message) == []


def test_a_boot_file_in_one_part_does_not_take_the_next_part_along() -> None:
    boot = "# CLAUDE.md\n\n" + "Always lint. " * 50
    parts = [{"type": "text", "text": boot}, {"type": "text", "text": "I like tea"}]
    assert one({"role": "user", "content": parts}).text == "I like tea"


def test_what_own_tools_answer_is_not_learned_again() -> None:
    messages = (openai_call("mcp__recollect__search", "{}"), openai_result("The user likes tea."))
    _, result = select(records(*messages), unchanged)
    assert result.text == "[memory that was recalled, left out]"


def test_what_own_tools_answer_is_known_without_the_call_too() -> None:
    message = {"role": "function", "name": "recollect_search", "content": "The user likes tea."}
    assert "tea" not in one(message).text


def test_memory_in_a_tool_s_answer_is_left_out() -> None:
    text = "done\n<recollect-memory>\nThe user likes tea.\n</recollect-memory>"
    assert one(openai_result(text)).text == "done"


def test_reminders_in_a_tool_s_answer_are_left_out() -> None:
    text = "done\n<system-reminder>\nAlways lint.\n</system-reminder>"
    assert one(openai_result(text)).text == "done"


def test_a_boot_file_that_was_read_is_left_out_and_what_became_of_writing_it_is_not() -> None:
    read = (openai_call("read", '{"path": "AGENTS.md"}'), openai_result("Always lint. " * 50))
    assert chosen(*read)[1][3] == "[a file of instructions, left out]"
    written = (openai_call("write", '{"path": "AGENTS.md"}'), openai_result("12 bytes written"))
    assert chosen(*written)[1][3] == "12 bytes written"


def test_binary_data_is_left_out() -> None:
    block = one(openai_result("before " + "iVBORw0KGgo" * 100 + " after"))
    assert block.text == "before [binary data, 1,100 characters left out] after"


# limits


def test_every_kind_has_a_limit_of_its_own() -> None:
    messages = (
        {"role": "user", "content": "u " * 40_000},
        openai_call("shell", '{"command": "' + "c " * 4000 + '"}'),
        openai_result("r " * 40_000),
    )
    said, call, result = select(records(*messages), unchanged, said_chars_max=300)
    assert 150 < len(said.text) <= 300
    assert len(call.text) <= CALL_CHARS_MAX
    assert RESULT_CHARS_MAX // 2 < len(result.text) <= RESULT_CHARS_MAX


def test_names_stay_on_their_line() -> None:
    block = one({"role": "user", "name": "al\nice " * 30, "content": "x"})
    assert block.speaker is not None
    assert "\n" not in block.speaker
    assert len(block.speaker) <= 80


# redaction


def test_every_text_of_a_block_is_redacted() -> None:
    """X6: names, words, arguments, answers, attachments."""
    secret = "hunter2" * 2

    def redact(text: str) -> str:
        return text.replace(secret, "[secret]")

    part = {"type": "file", "file": {"filename": f"{secret}.pdf"}}
    messages = (
        {"role": "user", "name": f"a{secret}", "content": [f"it is {secret}", part]},
        openai_call(f"shell{secret}", f'{{"{secret}": "{secret}"}}'),
        openai_result(f"it was {secret}"),
        {"role": "note", "content": secret},
    )
    blocks = select(records(*messages), redact)
    assert len(blocks) == 5
    for block in blocks:
        seen = " ".join((block.text, block.speaker or "", block.tool or ""))
        assert "hunter2" not in seen
        assert "[secret]" in seen


def test_a_secret_that_parts_or_colours_take_apart_is_redacted() -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2hunter2", "[secret]").replace("hunter2\nhunter2", "[secret]")

    coloured = one(openai_result("hunter2\x1b[1mhunter2"))
    assert redact(coloured.text) == "[secret]"
    parts = ["hunter2", {"type": "text", "text": "hunter2"}]
    for role in ("user", "assistant"):
        (block,) = select(records({"role": role, "content": parts}), redact)
        assert block.text == "[secret]"


# rewrites


def test_a_rewrite_replaces_what_was_said_before() -> None:
    """A6: the words of the earlier record go, those of the rewriting record stay where they are."""
    assert chosen(
        {"role": "user", "content": "I like coffee"},
        {"role": "assistant", "content": "Noted: coffee"},
        {"role": "user", "content": "I like tea"},
        metadata={3: {"rewrites": 1}},
    ) == [
        (2, Role.ASSISTANT, BlockKind.SAID, "Noted: coffee"),
        (3, Role.USER, BlockKind.SAID, "I like tea"),
    ]


def test_a_note_that_rewrites_stands_for_whoever_spoke() -> None:
    messages = (
        {"role": "assistant", "content": "one"},
        {"role": "note", "content": "two"},
        {"role": "note", "content": "three"},
    )
    assert chosen(*messages, metadata={2: {"rewrites": 1}, 3: {"rewrites": 2}}) == [
        (3, Role.ASSISTANT, BlockKind.SAID, "three")
    ]


def test_a_rewrite_leaves_the_calls_of_the_earlier_record() -> None:
    message = openai_call("shell", "{}") | {"content": "Let me see"}
    rewriting = {"role": "assistant", "content": "I look"}
    shown = chosen(message, rewriting, metadata={2: {"rewrites": 1}})
    assert [(seq, kind) for seq, _, kind, _ in shown] == [(1, BlockKind.CALL), (2, BlockKind.SAID)]


@every_row("rewrites", [2, 3, 0, -1, True, "1", 1.0, None, [1]])
def test_a_rewrite_of_anything_but_an_earlier_record_is_none(rewrites: object) -> None:
    messages = ({"role": "user", "content": "a"}, {"role": "user", "content": "b"})
    assert len(chosen(*messages, metadata={2: {"rewrites": rewrites}})) == 2


def test_a_message_cannot_rewrite_another() -> None:
    """P12: only metadata, which comes from the host, says so."""
    forged = {"role": "user", "content": "b", "metadata": {"rewrites": 1}, "rewrites": 1}
    assert len(chosen({"role": "user", "content": "a"}, forged)) == 2


# anything


@given(message_like)
def test_whatever_could_be_stored_can_be_selected(message: dict[str, Any]) -> None:
    try:
        stored = records(message)
    except ValueError:
        return
    for block in select(stored, unchanged):
        assert block.seq == 1
        assert "\r" not in block.text
        block.text.encode()

"""N7: Claude Code's logs become sessions: who said what, once, and nothing that nobody said."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.importers.agent_logs import OUTPUT_CHARS_MAX, PARTS_MAX
from recollect.importers.claude_code import ClaudeCode
from recollect.importers.items import FileShape, ImportSource, LeftOut, Odd, Trouble
from recollect.messages import Attachment, ToolCall, ToolResult, read
from tests.tables import every_row
from tests.unit.importers.agent_log_material import (
    check_any_log,
    damaged_logs,
    found_in,
    heard,
    items_in,
    record_of,
)
from tests.unit.strategies import json_values

SOURCE: ImportSource = ClaudeCode()
SESSION = "6f1d1a52-0000-4000-8000-00000000000a"
FILE = f"{SESSION}.jsonl"


def entry(kind: str, number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": f"uuid-{number - 1}" if number > 1 else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/srv/shop",
        "sessionId": SESSION,
        "version": "2.0.14",
        "gitBranch": "main",
        "type": kind,
        "uuid": f"uuid-{number}",
        "timestamp": f"2026-05-01T12:00:{number % 60:02}.500Z",
        **more,
    }


def user(content: object, number: int = 1, **more: Any) -> dict[str, Any]:
    return entry("user", number, message={"role": "user", "content": content}, **more)


def assistant(content: object, number: int = 2, **more: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "model": "claude-x", "role": "assistant", "content": content}
    return entry("assistant", number, message=message, **more)


def call(number: int = 3, **arguments: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": arguments}
    return assistant([block], number)


def result(content: object, number: int = 4, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": f"toolu_{number - 1}", "content": content}
    return user([{**block, **more}], number, toolUseResult={"stdout": "the same again"})


SUMMARY = "This session is being continued from a previous conversation. We dropped Redis."
LOG: list[dict[str, Any]] = [
    {"type": "summary", "summary": "Shop work", "leafUuid": "uuid-9"},
    {"type": "file-history-snapshot", "messageId": "uuid-1", "snapshot": {}},
    user("Please run the tests.", 1),
    assistant([{"type": "thinking", "thinking": "hm", "signature": "s"}], 2),
    assistant([{"type": "text", "text": "Running them."}], 3),
    call(4, command="pytest -q"),
    result([{"type": "text", "text": "1 failed"}], 5, is_error=True),
    user([{"type": "text", "text": "[Request interrupted by user]"}], 6),
    user(
        "<command-name>/fix</command-name>\n<command-args>the flaky test, please</command-args>", 7
    ),
    user("<local-command-stdout>ok</local-command-stdout>", 8),
    entry("system", 9, subtype="turn_duration", durationMs=5),
    entry("system", 10, subtype="compact_boundary", content="Conversation compacted"),
    user("They dropped Redis.", 11),
    user([{"type": "image", "source": {"type": "base64"}}], 12, cwd="/srv/other"),
    entry("hologram", 13, payload={"deep": [1, 2.5, None]}),
    entry("attachment", 14, attachment={"type": "queued_command", "prompt": "use pnpm instead"}),
    user("Find where prices are rounded.", 15, isSidechain=True, agentId="a1"),
    {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION, "content": "wait"},
    user("Please run the tests.", 1, uuid="uuid-1b"),
]


def test_a_session_is_read_as_it_went() -> None:
    assert heard(SOURCE, FILE, LOG) == [
        ("user", "Please run the tests."),
        ("assistant", "Running them."),
        ("assistant", ""),
        ("tool", "1 failed"),
        ("user", "the flaky test, please"),
        ("user", ""),
        ("user", "use pnpm instead"),
    ]


def test_what_is_left_out_is_said_in_few_words() -> None:
    found = found_in(SOURCE, FILE, LOG)
    reasons = [each.reason for each in found if isinstance(each, LeftOut)]
    odd = [each for each in found if isinstance(each, Odd)]

    assert reasons == [
        *("bookkeeping", "bookkeeping", "reasoning", "bookkeeping", "bookkeeping", "bookkeeping"),
        "repeated in another branch",
    ]
    assert odd == [Odd(trouble=Trouble.UNKNOWN, detail="hologram", line=15)]


def test_an_item_says_where_when_and_with_what_it_was_said() -> None:
    asked, answered = items_in(SOURCE, FILE, [user("Hello"), assistant("Hi", cwd="/srv/other")])

    assert (asked.id, asked.at) == ("uuid-1", datetime(2026, 5, 1, 12, 0, 1, 500_000, tzinfo=UTC))
    assert asked.conversation.key == ("claude-code", SESSION)
    assert (asked.conversation.agent, asked.conversation.parent) == ("claude-code", None)
    assert asked.conversation.directory == answered.conversation.directory == "/srv/shop"
    assert asked.metadata == {"branch": "main", "version": "2.0.14"}
    assert answered.metadata == {
        "branch": "main",
        "version": "2.0.14",
        "model": "claude-x",
        "cwd": "/srv/other",
    }


def test_a_sub_agent_has_a_conversation_of_its_own_and_no_user() -> None:
    entries = [
        user("Search it.", isSidechain=True, agentId="b2"),
        assistant("Found it.", isSidechain=True, agentId="b2"),
    ]
    for name in ("agent-b2.jsonl", FILE):
        items = items_in(SOURCE, name, entries)

        assert {item.conversation.key for item in items} == {("claude-code", SESSION, "agent-b2")}
        assert {item.conversation.parent for item in items} == {("claude-code", SESSION)}
        assert [item.message["role"] for item in items] == ["system", "assistant"]
        assert all(item.metadata["sidechain"] is True for item in items)


@every_row(
    "nobodys",
    [
        user("Base directory for this skill: /x", isMeta=True),
        user("We dropped Redis because of licences.", isCompactSummary=True),
        user(SUMMARY),
        user("Caveat: The messages below were generated by the user while running local commands."),
        user("<command-message>init</command-message>\n<command-name>/init</command-name>"),
        user("<command-name>/model</command-name><command-args>opus</command-args>"),
        user("<command-name>/add-dir</command-name><command-args>../lib src/x</command-args>"),
        user("<local-command-stdout>Bye!</local-command-stdout>"),
        user("<bash-input>ls</bash-input>"),
        user("<task-notification>\n<task-id>a</task-id>\n</task-notification>\nFull text: /tmp/a"),
        user("<system-reminder>\nBe brief.\n</system-reminder>"),
        user([{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        user("An agent is done.", origin={"kind": "task-notification"}),
        user([{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}]),
        assistant([{"type": "text", "text": "API Error: 500"}], isApiErrorMessage=True),
        entry(
            "system",
            subtype="local_command",
            content="<local-command-stdout>x</local-command-stdout>",
        ),
    ],
)
def test_what_nobody_said_is_kept_and_not_heard(nobodys: dict[str, Any]) -> None:
    (item,) = items_in(SOURCE, FILE, [nobodys])

    assert record_of(item).role.value == "system"
    assert record_of(item).content


@pytest.mark.parametrize(
    ("said", "words", "command"),
    [
        ("<b>Why</b> is this bold?", "<b>Why</b> is this bold?", None),
        (
            "<command-name>/goal</command-name>\n<command-args>ship the shop</command-args>",
            "ship the shop",
            "/goal",
        ),
        (
            "<command-name>/goal</command-name><command-args>価格を丸める</command-args>",
            "価格を丸める",
            "/goal",
        ),
        ("<user-memory-input>always use pnpm</user-memory-input>", "always use pnpm", "#"),
        ("<ide_selection>x = 1</ide_selection>\nRename this.", "Rename this.", None),
    ],
)
def test_a_persons_own_words_are_heard(said: str, words: str, command: str | None) -> None:
    (item,) = items_in(SOURCE, FILE, [user(said)])

    assert (record_of(item).role.value, record_of(item).content) == ("user", words)
    assert item.metadata.get("command") == command


def test_what_follows_a_compaction_is_the_models_summary_and_only_that() -> None:
    boundary = entry("system", 1, subtype="compact_boundary", content="Conversation compacted")
    branch = user("Or stop.", 2, uuid="another")
    entries = [boundary, user("A summary of old.", 2), user("Go on, then.", 3), branch]

    assert heard(SOURCE, FILE, entries) == [("user", "Go on, then."), ("user", "Or stop.")]


def test_a_message_sent_again_from_the_same_place_counts_once() -> None:
    entries = [
        user("Use tabs.", 5),
        user("Use tabs.", 5, uuid="again"),
        user("Use spaces.", 5, uuid="edited"),
        user("Use tabs.", 9),
    ]

    said = [text for _, text in heard(SOURCE, FILE, entries)]
    assert said == ["Use tabs.", "Use spaces.", "Use tabs."]


def test_the_same_entry_in_two_files_is_the_same_item() -> None:
    here = items_in(SOURCE, FILE, [user("Hello")])
    there = items_in(SOURCE, "resumed.jsonl", [user("Hello")])

    assert [item.id for item in here] == [item.id for item in there] == ["uuid-1"]


def test_a_failed_call_is_known_as_one() -> None:
    called, failed = items_in(
        SOURCE, FILE, [call(3, command="make"), result("no rule", 4, is_error=True)]
    )

    assert read(called.message).parts == (ToolCall("toolu_3", "Bash", {"command": "make"}),)
    assert read(failed.message).parts == (ToolResult("toolu_3", "no rule", True),)


def test_a_long_answer_of_a_tool_is_cut_in_its_middle() -> None:
    (item,) = items_in(SOURCE, FILE, [result("a" * 200_000 + "the end")])
    text = record_of(item).content

    assert len(text) <= OUTPUT_CHARS_MAX
    assert text.startswith("aaa")
    assert text.endswith("the end")
    assert "characters left out" in text


def test_binary_data_is_named_and_left_out() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 1000}
    image = {"type": "image", "source": source}
    shown, answered = items_in(
        SOURCE, FILE, [user([{"type": "text", "text": "Look"}, image]), result([image])]
    )

    assert read(shown.message).parts[1] == Attachment("image", None, "image/png", "6,000 bytes")
    assert record_of(answered).content == "[image image/png 6,000 bytes, left out]"
    assert "iVBORw0K" not in json.dumps([shown.message, answered.message])


def test_an_unknown_type_is_kept_as_it_is() -> None:
    strange = entry("hologram", beams=[1, 2])
    odd, item = found_in(SOURCE, FILE, [strange])

    assert odd == Odd(trouble=Trouble.UNKNOWN, detail="hologram", line=1)
    assert items_in(SOURCE, FILE, [strange]) == [item]
    assert items_in(SOURCE, FILE, [strange])[0].message == {
        "role": "system",
        "content": "",
        "entry": strange,
    }


def test_an_unknown_part_does_not_cost_the_message() -> None:
    entries = [assistant([{"type": "beam", "x": 1}, {"type": "text", "text": "Hi"}])]

    assert heard(SOURCE, FILE, entries) == [("assistant", "Hi")]
    assert found_in(SOURCE, FILE, entries)[0] == Odd(
        trouble=Trouble.UNKNOWN, detail="part beam", line=1
    )


@every_row(
    "broken",
    [
        None,
        7,
        "text",
        [],
        entry("user"),
        user(None),
        user({"type": "text"}),
        assistant([{"type": "text"}]),
    ],
)
def test_a_wrong_shape_is_reported_with_its_line(broken: object) -> None:
    (found,) = found_in(SOURCE, FILE, [broken])

    assert isinstance(found, Odd)
    assert (found.trouble, found.line) == (Trouble.BROKEN, 1)


@every_row("session", ["../../etc/passwd", "a\nb", "\x1b[2J", "x" * 5000, "\ud800", 7])
def test_a_hostile_session_id_still_gives_a_key(session: object) -> None:
    check_any_log(SOURCE, FILE, [user("Hello", sessionId=session, uuid=session, cwd=session)], 0)
    (item,) = items_in(SOURCE, FILE, [user("Hello", sessionId=session, uuid=session, cwd=session)])

    assert all("/" not in part and part.isprintable() for part in item.conversation.key)
    assert item.conversation.directory is None


def test_what_is_too_large_or_too_deep_is_kept_in_part() -> None:
    deep: Any = "the ground"
    for _ in range(500):
        deep = [{"down": deep}]
    wide = {f"key {number}": "x" * 100 for number in range(5_000)}
    pictures = "\ud800" + "\U0001f600" * 300_000
    entries = [
        *(
            user(pictures),
            call(3, deep=deep, wide=wide),
            entry("hologram", 5, deep=deep, long=[7] * 400_000),
        ),
        *(entry("hologram", 6, wide=wide), result([{"odd": deep}, *([7] * 20_000)], 8)),
    ]

    check_any_log(SOURCE, FILE, entries, 2)
    assert len(items_in(SOURCE, FILE, entries)) == len(entries)


@given(damaged_logs(LOG), st.integers(0, 12))
def test_no_damage_to_a_log_stops_its_reader(log: list[Any], stop: int) -> None:
    check_any_log(SOURCE, FILE, log, stop)
    SOURCE.probe(log)


@given(st.lists(json_values, max_size=6), st.integers(0, 6))
def test_no_json_at_all_stops_a_reader(log: list[Any], stop: int) -> None:
    check_any_log(SOURCE, "agent-x.jsonl", log, stop)
    SOURCE.probe(log)


@pytest.mark.parametrize(
    "text",
    ["<command-name><command-args>", "<ide_selection>", "<user-memory-input>", " ", "<bash-input"],
)
def test_a_text_made_to_be_slow_is_read_all_the_same(text: str) -> None:
    check_any_log(SOURCE, FILE, [user(text * 200_000), assistant(text * 200_000)], 1)


def test_a_log_can_be_left_and_taken_up_at_any_line() -> None:
    for stop in range(len(LOG) + 1):
        check_any_log(SOURCE, FILE, LOG, stop)


def test_a_long_log_needs_no_more_memory_than_a_short_one() -> None:
    log = [
        user(f"Message {number}", number, sessionId=f"s-{number % 7}", cwd="/" + "ü" * 199)
        for number in range(1, 400)
    ]
    check_any_log(SOURCE, FILE, log, len(log))


def test_the_source_knows_its_files_and_their_version() -> None:
    home = Path("/ann")

    assert (SOURCE.name, SOURCE.shape) == ("claude-code", FileShape.LINES)
    assert list(SOURCE.places({}, home)) == [home / ".claude" / "projects"]
    assert list(SOURCE.places({"CLAUDE_CONFIG_DIR": "/cfg"}, home)) == [Path("/cfg/projects")]
    assert SOURCE.is_file(Path("/x/agent-a.jsonl"))
    assert not SOURCE.is_file(Path("/x/a.json"))
    assert SOURCE.probe(LOG[:3]) == "Claude Code 2.0.14"
    assert SOURCE.probe(LOG[:1]) == "Claude Code"
    assert SOURCE.probe([{"type": "session_meta", "payload": {}}, 7, None]) is None


def test_of_a_message_in_more_parts_than_anybody_writes_the_first_are_kept() -> None:
    """Each costs far more in memory than in the file."""
    parts = [{"type": "text", "text": f"part {number}"} for number in range(PARTS_MAX + 5)]
    [said] = items_in(SOURCE, FILE, [user(parts)])
    assert record_of(said).content.count("part") == PARTS_MAX
    odd = Odd(trouble=Trouble.BROKEN, detail="a part of a message", line=1)
    assert odd in found_in(SOURCE, FILE, [user(parts)])

"""N7: Codex's rollouts, in both forms, become sessions: who said what, and every message once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.importers.codex import Codex
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

SOURCE: ImportSource = Codex()
SESSION = "0198a0de-0000-7000-8000-00000000000b"
FILE = f"rollout-2026-05-01T12-00-00-{SESSION}.jsonl"
SAME = LeftOut(reason="the user's view of the same")


def line(kind: str, payload: object, second: int = 0) -> dict[str, Any]:
    return {"timestamp": f"2026-05-01T12:00:{second:02}.000Z", "type": kind, "payload": payload}


def meta(session: str = SESSION, **more: Any) -> dict[str, Any]:
    payload = {"id": session, "timestamp": "2026-05-01T11:59:59Z", "cwd": "/srv/shop"}
    about = {"cli_version": "0.91.0", "git": {"branch": "main"}, "source": "cli"}
    return line("session_meta", {**payload, **about, **more})


def message(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return {"type": "message", "role": role, "content": content}


def said(role: str, *texts: str, second: int = 0) -> dict[str, Any]:
    return line("response_item", message(role, *texts), second)


def seen(role: str, text: str, second: int = 0) -> dict[str, Any]:
    kind = {"user": "user_message", "assistant": "agent_message"}[role]
    return line("event_msg", {"type": kind, "message": text}, second)


def output(value: object) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "call_1", "output": value}


ENVIRONMENT = "<environment_context>\n  <cwd>/srv/shop</cwd>\n</environment_context>"
CALL = {
    "type": "function_call",
    "name": "shell",
    "call_id": "call_1",
    "arguments": '{"command": ["make"]}',
}
LOG: list[dict[str, Any]] = [
    meta(),
    said("developer", "<permissions instructions>Ask first.</permissions instructions>"),
    said("user", "# AGENTS.md instructions for /srv/shop\n\n<INSTRUCTIONS>x</INSTRUCTIONS>"),
    said("user", ENVIRONMENT),
    line("turn_context", {"cwd": "/srv/shop", "model": "gpt-x", "effort": "high"}),
    line("event_msg", {"type": "task_started"}),
    said("user", "Build it, please."),
    seen("user", "Build it, please."),
    line("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "zzz"}),
    line("event_msg", {"type": "agent_reasoning", "text": "hm"}),
    line("response_item", CALL),
    line("response_item", output("Exit code: 2\nWall time: 1 s\nOutput:\nno rule")),
    line("event_msg", {"type": "token_count", "info": {}}),
    seen("assistant", "There is no rule."),
    said("assistant", "There is no rule."),
    line("compacted", {"message": "The user wants a build.", "replacement_history": []}),
    line("event_msg", {"type": "hologram", "beams": 2}),
    line("ripple", {"x": 1}),
    line("event_msg", {"type": "turn_aborted"}),
]
OLD: list[dict[str, Any]] = [
    {"id": SESSION, "timestamp": "2025-05-01T12:00:00Z", "instructions": None, "git": {}},
    message(
        "user",
        "<environment_context>\nCurrent working directory: /srv/old\n</environment_context>",
    ),
    {"record_type": "state"},
    message("user", "yes"),
    CALL,
    output(json.dumps({"output": "no rule", "metadata": {"exit_code": 2}})),
    {"type": "reasoning", "summary": []},
    message("assistant", "Shall I?"),
    message("user", "yes"),
]


def test_a_rollout_is_read_as_it_went() -> None:
    assert heard(SOURCE, FILE, LOG) == [
        ("user", "Build it, please."),
        ("assistant", ""),
        ("tool", "Exit code: 2\nWall time: 1 s\nOutput:\nno rule"),
        ("assistant", "There is no rule."),
    ]


def test_a_rollout_of_the_old_form_is_read_as_it_went() -> None:
    assert heard(SOURCE, FILE, OLD) == [
        ("user", "yes"),
        ("assistant", ""),
        ("tool", "no rule"),
        ("assistant", "Shall I?"),
        ("user", "yes"),
    ]
    items = items_in(SOURCE, FILE, OLD)
    assert read(items[3].message).parts == (ToolResult("call_1", "no rule", True),)
    assert len({item.id for item in items}) == len(items)
    assert {item.conversation.directory for item in items} == {"/srv/old"}
    assert {item.conversation.key for item in items} == {("codex", SESSION)}
    assert {item.at for item in items} == {datetime(2025, 5, 1, 12, tzinfo=UTC)}


def test_an_item_says_where_when_and_with_what_it_was_said() -> None:
    moved = line("turn_context", {"cwd": "/srv/other", "model": "gpt-x"})
    asked, answered = items_in(
        SOURCE, FILE, [meta(), said("user", "Hi", second=3), moved, said("assistant", "Hello")]
    )

    assert asked.at == datetime(2026, 5, 1, 12, 0, 3, tzinfo=UTC)
    assert asked.conversation.key == ("codex", SESSION)
    assert asked.conversation.directory == answered.conversation.directory == "/srv/shop"
    assert asked.metadata == {"branch": "main", "version": "0.91.0"}
    assert answered.metadata["model"] == "gpt-x"
    assert answered.metadata["cwd"] == "/srv/other"


def test_calls_and_their_ends_are_known() -> None:
    shell = {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}}
    patch = {"type": "custom_tool_call", "call_id": "p", "name": "apply_patch", "input": "*** Add"}
    outputs = [
        output("Process exited with code 1\nOutput:\n"),
        output("Exit code: 0\nOutput:\nfine"),
        output({"content": "refused", "success": False}),
        output([{"type": "input_text", "text": "seen"}]),
    ]
    items = items_in(
        SOURCE, FILE, [line("response_item", each) for each in (shell, patch, *outputs)]
    )
    parts = [read(item.message).parts[0] for item in items]

    assert parts[:2] == [
        ToolCall("c", "local_shell", {"command": ["ls"]}),
        ToolCall("p", "apply_patch", "*** Add"),
    ]
    assert [part.is_error for part in parts if isinstance(part, ToolResult)] == [
        *(True, False, True, False)
    ]


@every_row(
    "entries",
    [
        [said("user", "Hi"), seen("user", "Hi"), said("assistant", "Ho"), seen("assistant", "Ho")],
        [seen("user", "Hi"), said("user", "Hi"), seen("assistant", "Ho"), said("assistant", "Ho")],
        [said("user", "Hi"), seen("user", "Hi"), seen("assistant", "Ho"), said("assistant", "Ho")],
        [seen("user", "Hi"), seen("assistant", "Ho")],
        [said("user", "Hi"), said("assistant", "Ho")],
        [said("user", ENVIRONMENT, "H", "i"), seen("user", "Hi\n"), seen("assistant", "Ho")],
    ],
)
def test_a_message_in_two_forms_counts_once_and_in_one_form_too(entries: list[Any]) -> None:
    twice = heard(SOURCE, FILE, [meta(), *entries, *entries])

    assert [(role, text.replace("\n", "")) for role, text in twice] == [
        *(("user", "Hi"), ("assistant", "Ho"), ("user", "Hi"), ("assistant", "Ho"))
    ]


def test_a_message_that_is_said_again_counts_again() -> None:
    entries = [said("user", "yes"), seen("user", "yes"), seen("user", "yes")]

    assert heard(SOURCE, FILE, [meta(), *entries]) == [("user", "yes"), ("user", "yes")]
    assert found_in(SOURCE, FILE, entries).count(SAME) == 1


def test_a_fork_does_not_count_its_parents_items_again() -> None:
    history = [said("user", ENVIRONMENT), said("user", "Use tabs."), said("assistant", "I do.")]
    later = [json.loads(json.dumps(each).replace("12:00:", "15:30:")) for each in history]
    parent = items_in(SOURCE, FILE, [meta(), *history, said("user", "Go on.")])
    forked = [meta("fork", forked_from_id=SESSION), meta(), *later, said("user", "Stop.")]
    fork = items_in(SOURCE, "rollout-fork.jsonl", forked)
    refork = items_in(
        SOURCE,
        "rollout-refork.jsonl",
        [meta("refork", forked_from_id="fork"), *forked, said("user", "Never mind.")],
    )

    assert [item.id for item in fork[:3]] == [item.id for item in parent[:3]]
    assert fork[3].id != parent[3].id
    assert [item.id for item in refork[:4]] == [item.id for item in fork]
    assert fork[3].conversation.key == ("codex", "fork")
    assert fork[3].conversation.parent == ("codex", SESSION)
    assert refork[4].conversation.parent == ("codex", "fork")


def test_a_sub_agent_that_is_read_first_takes_no_words_from_its_parents_user() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": SESSION, "depth": 1}}}
    history = [said("user", "Use tabs."), said("assistant", "I do.")]
    sub = items_in(
        SOURCE, "rollout-sub.jsonl", [meta("sub", source=source, forked_from_id=SESSION), *history]
    )
    asked, answered = items_in(SOURCE, FILE, [meta(), *history])

    assert asked.id not in {item.id for item in sub}
    assert answered.id == sub[1].id


def test_whoever_asks_a_sub_agent_is_no_user() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "main", "depth": 1}}}
    entries = [meta("sub", source=source), said("user", "Look."), said("assistant", "Seen.")]
    items = items_in(SOURCE, "rollout-sub.jsonl", entries)

    assert [item.message["role"] for item in items] == ["system", "assistant"]
    assert {item.conversation.parent for item in items} == {("codex", "main")}
    assert all(item.metadata["sidechain"] is True for item in items)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<skill> is a tag I do not know.", "<skill> is a tag I do not know."),
        (
            "# Context from my IDE setup:\n\n- a.py\n\n## My request for Codex:\nRename it.",
            "Rename it.",
        ),
    ],
)
def test_a_persons_own_words_are_heard_once(text: str, words: str) -> None:
    assert heard(SOURCE, FILE, [said("user", text), seen("user", text)]) == [("user", words)]


def test_binary_data_is_named_and_left_out() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "iVBORw0K" * 1000}
    tags = [
        {"type": "input_text", "text": "<image>"},
        image,
        {"type": "input_text", "text": "Look"},
    ]
    shown, answered = items_in(
        SOURCE,
        FILE,
        [
            line("response_item", {"type": "message", "role": "user", "content": tags}),
            seen("user", "Look"),
            line("response_item", output([image])),
        ],
    )

    assert read(shown.message).parts[0] == Attachment("image", None, "image/png", "6,000 bytes")
    assert record_of(answered).content == "[image image/png 6,000 bytes, left out]"
    assert "iVBORw0K" not in json.dumps([shown.message, answered.message])


def test_unknown_types_are_kept_and_told_apart() -> None:
    strange = [line("ripple", {"x": 1}), line("ripple", {"x": 2}), {"no": "type"}]
    found = found_in(SOURCE, FILE, strange)
    items = items_in(SOURCE, FILE, strange)

    assert [each for each in found if isinstance(each, Odd)] == [
        Odd(trouble=Trouble.UNKNOWN, detail="ripple", line=1),
        Odd(trouble=Trouble.UNKNOWN, detail="ripple", line=2),
        Odd(trouble=Trouble.UNKNOWN, detail="(no type)", line=3),
    ]
    assert [item.message["entry"] for item in items] == strange
    assert len({item.id for item in items}) == 3


@every_row(
    "broken",
    [
        *(
            None,
            7,
            "text",
            [],
            line("response_item", 7),
            line("event_msg", {"type": "user_message"}),
        ),
        line("response_item", {"type": "message", "role": "user", "content": 7}),
        line("response_item", {"type": "message", "role": "king", "content": "Hi"}),
        line("response_item", {"type": "function_call", "arguments": "{}"}),
    ],
)
def test_a_wrong_shape_is_reported_with_its_line(broken: object) -> None:
    (found,) = found_in(SOURCE, FILE, [broken])

    assert isinstance(found, Odd)
    assert (found.trouble, found.line) == (Trouble.BROKEN, 1)


@every_row("session", ["../../etc/passwd", "a\nb", "x" * 5000, "\ud800", 7, None])
def test_a_hostile_session_id_still_gives_a_key(session: Any) -> None:
    log = [meta(session, cwd=session, git=session, forked_from_id=session), said("user", "Hi")]
    check_any_log(SOURCE, FILE, log, 1)
    (item,) = items_in(SOURCE, FILE, log)

    assert all("/" not in part and part.isprintable() for part in item.conversation.key)
    assert item.conversation.directory is None


@given(damaged_logs([*LOG, *OLD]), st.integers(0, 12))
def test_no_damage_to_a_rollout_stops_its_reader(log: list[Any], stop: int) -> None:
    check_any_log(SOURCE, FILE, log, stop)
    SOURCE.probe(log)


@given(st.lists(json_values, max_size=6), st.integers(0, 6))
def test_no_json_at_all_stops_a_reader(log: list[Any], stop: int) -> None:
    check_any_log(SOURCE, "rollout-x.jsonl", log, stop)
    SOURCE.probe(log)


@every_row(
    "text",
    ["<proposed_plan>", "<oai-mem-citation>", "<cwd>", " ", "<image>", "{", "# Context from my"],
)
def test_a_text_made_to_be_slow_is_read_all_the_same(text: str) -> None:
    check_any_log(
        SOURCE, FILE, [said("user", text * 200_000), seen("assistant", text * 200_000)], 1
    )


@pytest.mark.parametrize("log", [LOG, OLD])
def test_a_rollout_can_be_left_and_taken_up_at_any_line(log: list[Any]) -> None:
    for stop in range(len(log) + 1):
        check_any_log(SOURCE, FILE, log, stop)


def test_a_long_rollout_needs_no_more_memory_than_a_short_one() -> None:
    wide = {"cwd": "/" + "ü" * 199, "model": "ü" * 50}
    log = [meta("s" * 128, **wide, forked_from_id="p" * 128, git={"branch": "ü" * 50})]
    log.append(line("turn_context", {**wide, "cwd": "/" + "ä" * 199}))
    log += [said("user", f"Message {number}") for number in range(200)]
    check_any_log(SOURCE, FILE, log, len(log))


def test_the_source_knows_its_files_and_their_form() -> None:
    home = Path("/ann")

    assert (SOURCE.name, SOURCE.shape) == ("codex", FileShape.LINES)
    assert list(SOURCE.places({}, home)) == [
        home / ".codex" / "sessions",
        home / ".codex" / "archived_sessions",
    ]
    assert SOURCE.places({"CODEX_HOME": "/cfg"}, home)[0] == Path("/cfg/sessions")
    assert SOURCE.is_file(Path("/x") / FILE)
    assert not SOURCE.is_file(Path("/x/history.jsonl"))
    assert SOURCE.probe(LOG) == "Codex 0.91.0"
    assert SOURCE.probe(LOG[1:]) == "Codex"
    assert SOURCE.probe(OLD) == "Codex, the form of early 2025"
    assert SOURCE.probe([{"type": "user", "sessionId": "s"}, 7, {"type": [], "payload": 1}]) is None

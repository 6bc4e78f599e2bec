"""What agents send to their hooks: documented shapes are understood, anything else is refused."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.hooks.events import PAYLOAD_BYTES_MAX, Agent, Event, Moment, Unusable, read_event
from tests.tables import every_row


def event(agent: Agent, **told: Any) -> Event:
    read = read_event(agent, json.dumps(told).encode())
    assert isinstance(read, Event), read
    return read


CALL = {"session_id": "s", "transcript_path": "/log/s.jsonl", "cwd": "/src/atlas"}


@every_row("agent", [Agent.CLAUDE_CODE, Agent.CODEX])
@every_row(
    ("name", "more", "moment"),
    [
        ("SessionStart", {"source": "startup"}, Moment.START),
        ("SessionStart", {"source": "compact"}, Moment.START),
        ("SessionStart", {"source": "clear"}, Moment.START),
        ("SessionStart", {"source": "resume"}, Moment.RESUME),
        ("UserPromptSubmit", {"prompt": "go on"}, Moment.PROMPT),
        ("Stop", {"stop_hook_active": False}, Moment.STOP),
        ("PreCompact", {"trigger": "auto"}, Moment.COMPACT),
        ("SessionEnd", {"reason": "clear"}, Moment.END),
    ],
)
def test_the_hooks_of_claude_code_and_codex_are_read(
    agent: Agent, name: str, more: dict[str, Any], moment: Moment
) -> None:
    read = event(agent, hook_event_name=name, **CALL, **more)
    assert (read.moment, read.name, read.session) == (moment, name, "s")
    assert (read.directory, read.transcript) == ("/src/atlas", "/log/s.jsonl")
    assert read.prompt == more.get("prompt", "")


def test_a_transcript_that_codex_does_not_have_is_none() -> None:
    read = event(Agent.CODEX, **{**CALL, "transcript_path": None}, hook_event_name="Stop")
    assert read.transcript is None


def test_a_notification_of_codex_tells_what_was_asked_and_answered() -> None:
    told = {
        "type": "agent-turn-complete",
        "thread-id": "b5f6c1c2-1111",
        "turn-id": "12",
        "cwd": "/src/atlas",
        "input-messages": ["Rename foo.", 7],
        "last-assistant-message": "Renamed.",
    }
    read = event(Agent.CODEX, **told)
    assert (read.moment, read.session, read.directory) == (
        Moment.STOP,
        "b5f6c1c2-1111",
        "/src/atlas",
    )
    assert [each.message for each in read.said] == [
        {"role": "user", "content": "Rename foo."},
        {"role": "assistant", "content": "Renamed."},
    ]
    assert event(Agent.CODEX, **told) == read
    assert {each.key for each in event(Agent.CODEX, **{**told, "turn-id": "13"}).said}.isdisjoint(
        each.key for each in read.said
    )


def test_a_turn_of_gemini_cli_is_in_its_payload_and_its_transcript_is_left_alone() -> None:
    read = event(
        Agent.GEMINI_CLI,
        hook_event_name="AfterAgent",
        timestamp="2026-03-01T10:00:00Z",
        prompt="Which port?",
        prompt_response="8080.",
        **CALL,
    )
    assert read.moment is Moment.STOP
    assert [each.message["content"] for each in read.said] == ["Which port?", "8080."]
    assert read.transcript is None
    assert event(Agent.GEMINI_CLI, hook_event_name="BeforeAgent", prompt="x", **CALL).said == ()


def test_messages_of_any_other_agent_have_their_ids_or_else_their_place_as_keys() -> None:
    messages = [
        {"id": "m-1", "role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "assistant", "content": "hi"},
        "no message",
    ]
    read = event(Agent.GENERIC, event="end", session="7", cwd="/src", messages=messages)
    assert read.moment is Moment.END
    assert read.said[0].message == {"role": "user", "content": "hello"}
    keys = [each.key for each in read.said]
    assert keys[0] == "m-1"
    assert len(set(keys)) == 3
    again = event(Agent.GENERIC, event="end", session="7", cwd="/src", messages=messages)
    assert [each.key for each in again.said] == keys


@every_row(
    "payload",
    [
        b"",
        b"  \n",
        b"\xff\xfe\x00binary",
        b"{",
        b"[1, 2]",
        b'"text"',
        b"[" * 100_000,
        b" " * (PAYLOAD_BYTES_MAX + 1),
        b"{}",
        b'{"hook_event_name": "SessionStart"}',
        b'{"hook_event_name": "SessionStart", "session_id": ""}',
        b'{"hook_event_name": "SessionStart", "session_id": "a\\u0000b"}',
        b'{"hook_event_name": "SessionStart", "session_id": {"a": 1}}',
        b'{"hook_event_name": "PreToolUse", "session_id": "s"}',
        b'{"hook_event_name": ["SessionStart"], "session_id": "s"}',
        b'{"type": "approval-requested", "thread-id": "s"}',
    ],
)
@every_row("agent", list(Agent))
def test_what_is_no_event_is_refused_with_a_reason(agent: Agent, payload: bytes) -> None:
    read = read_event(agent, payload)
    assert isinstance(read, Unusable)
    assert read.reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
NAMES = st.sampled_from(
    [
        *("hook_event_name", "session_id", "event", "session", "type", "thread-id", "turn"),
        *("input-messages", "messages", "prompt", "cwd", "transcript_path", "source"),
    ]
)
VALUES = JSON | st.sampled_from(["SessionStart", "end", "agent-turn-complete", "AfterAgent", "s"])


@given(agent=st.sampled_from(list(Agent)), told=st.dictionaries(NAMES, VALUES, max_size=8))
def test_no_object_is_too_odd_to_be_read(agent: Agent, told: dict[str, Any]) -> None:
    assert isinstance(read_event(agent, json.dumps(told).encode()), Event | Unusable)

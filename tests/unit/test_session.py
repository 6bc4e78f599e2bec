"""One conversation: what can be appended, how it is read, and what its verbs refuse."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import recollect
from recollect import Attachment, Message, Mode, Role
from recollect.descriptors import MemoryAgent
from recollect.errors import AppendKeyReused, InvalidMessage, InvalidValue, TooLarge
from recollect.messages import Text, ToolCall, ToolResult


@pytest.fixture
def session(memory: recollect.Memory) -> recollect.Session:
    return memory.space().session("k")


# append


def test_a_record_comes_back_as_it_is_stored(session: recollect.Session) -> None:
    record = session.append("user", "hello", name="ada", key="m1", metadata={"a": 1})
    assert (record.seq, record.role, record.content) == (1, Role.USER, "hello")
    assert (record.name, record.key, record.metadata) == ("ada", "m1", {"a": 1})
    assert session.all() == [record]


def test_when_it_was_said_may_be_given(session: recollect.Session) -> None:
    record = session.append("user", "x", at="2020-05-01T12:00:00Z")
    assert record.at == datetime(2020, 5, 1, 12, tzinfo=UTC)
    assert record.created_at > record.at


def test_content_may_be_a_list_of_parts(session: recollect.Session) -> None:
    blocks = [{"type": "text", "text": "a"}, "b"]
    by_content = session.append("user", blocks)
    by_parts = session.append("user", parts=blocks)
    assert by_content.parts == by_parts.parts == (Text("a"), Text("b"))
    assert by_content.message == {"role": "user", "content": blocks}


@pytest.mark.parametrize("content", ["x", "", ["x"]])
def test_content_and_parts_together_are_refused(session: recollect.Session, content: Any) -> None:
    with pytest.raises(InvalidValue, match="not both"):
        session.append("user", content, parts=[{"type": "text", "text": "y"}])
    assert session.count() == 0


def test_tool_calls_and_their_answers_can_be_appended(session: recollect.Session) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    asked = session.append("assistant", tool_calls=[call])
    answered = session.append("tool", "boom", tool_call_id="c1", is_error=True)
    assert asked.tool_calls == (ToolCall("c1", "add", "{}"),)
    assert asked.content == ""
    assert answered.tool_results == (ToolResult("c1", "boom", True),)
    assert answered.is_error


def test_attachments_are_kept_by_reference(session: recollect.Session) -> None:
    image = Attachment("image", "https://example.org/a.png", "image/png", "a.png")
    report = Attachment("file", "s3://bucket/report.pdf", None, None)
    with_text = session.append("user", "look", attachments=[image, report])
    assert with_text.attachments == (image, report)
    assert with_text.content == "look"
    assert session.append("user", attachments=[image]).attachments == (image,)
    with_parts = session.append("user", parts=["see"], attachments=(report,))
    assert (with_parts.content, with_parts.attachments) == ("see", (report,))
    assert session.recent(3)[0].attachments == (image, report)


def test_a_record_without_content_is_a_record(session: recollect.Session) -> None:
    record = session.append("assistant")
    assert (record.content, record.message) == ("", {"role": "assistant"})


@pytest.mark.parametrize(
    "arguments",
    [
        {"role": "wizard", "content": "x"},
        {"role": None, "content": "x"},
        {"role": "user", "content": 5},
        {"role": "user", "content": [5]},
        {"role": "user", "content": "x", "name": "n" * 300},
        {"role": "user", "content": "x", "at": "yesterday"},
        {"role": "user", "content": "x", "key": ""},
        {"role": "user", "content": "x", "metadata": {"a": object()}},
        {"role": "assistant", "tool_calls": [{}]},
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_nothing(
    session: recollect.Session, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValue):
        session.append(**arguments)
    assert session.count() == 0
    assert session.append("user", "x").seq == 1


def test_a_record_over_the_limit_is_refused() -> None:
    with recollect.open(":memory:", settings={"record_bytes_max": 1024}) as memory:
        session = memory.space().session("k")
        session.append("user", "x" * 1024)
        for content in ("x" * 1025, ["x" * 1025]):
            with pytest.raises(TooLarge):
                session.append("user", content)
        with pytest.raises(TooLarge):
            session.set_summary("x" * 1025)
        with pytest.raises(TooLarge):
            session.compact("x" * 1025)
        assert (session.count(), session.state.rotation) == (1, 1)


def test_many_under_one_key_are_stored_once_and_are_as_many_as_before(
    session: recollect.Session,
) -> None:
    """T1: the message that has a key of its own keeps it."""
    messages = [
        {"role": "user", "content": "a"},
        Message(message={"role": "user", "content": "b"}, key="own"),
        {"role": "user", "content": "c"},
    ]
    stored = session.append_many(messages, key="k")
    assert [record.key for record in stored] == ["k#0", "own", "k#2"]
    assert session.append_many(messages, key="k") == stored
    for others in ([], messages[:2], messages[1:], [*messages, messages[0]]):
        with pytest.raises(AppendKeyReused):
            session.append_many(others, key="k")
    with pytest.raises(InvalidValue):
        session.append_many(messages, key="a\nb")
    assert session.count() == 3


def test_many_are_stored_all_or_none(session: recollect.Session) -> None:
    with pytest.raises(InvalidMessage, match="message 2"):
        session.append_many([{"role": "user", "content": "a"}, {"role": "wizard"}])
    assert session.count() == 0
    assert session.append_many([]) == []
    for no_list in (None, 5):
        with pytest.raises(InvalidValue, match="messages are a list"):
            session.append_many(no_list)  # type: ignore[arg-type]
    messages = [
        {"role": "user", "content": "a"},
        Message(message={"role": "user", "content": "b"}, key="b", metadata={"n": 2}),
    ]
    stored = session.append_many(iter(messages))  # type: ignore[arg-type]
    assert [(record.seq, record.content, record.key) for record in stored] == [
        (1, "a", None),
        (2, "b", "b"),
    ]


def test_a_batch_over_the_limit_is_refused() -> None:
    with recollect.open(":memory:", settings={"batch_records_max": 2}) as memory:
        session = memory.space().session("k")
        session.append_many([{"role": "user"}] * 2)
        with pytest.raises(TooLarge):
            session.append_many([{"role": "user"}] * 3)
        assert session.count() == 2


def test_a_key_stores_once_and_refuses_something_else(session: recollect.Session) -> None:
    first = session.append("user", "x", key="m1")
    assert session.append("user", "x", key="m1") == first
    with pytest.raises(AppendKeyReused):
        session.append("user", "y", key="m1")
    assert session.count() == 1


# read


def test_the_newest_records_come_oldest_first(session: recollect.Session) -> None:
    for number in range(1, 26):
        session.append("user", str(number))
    assert [record.seq for record in session.recent()] == list(range(6, 26))
    assert [record.seq for record in session.recent(2)] == [24, 25]
    assert session.recent(0) == []
    assert len(session.recent(1000)) == 25


@pytest.mark.parametrize("n", [-1, 1.5, "2", None, True])
def test_a_number_of_records_is_a_whole_one(session: recollect.Session, n: Any) -> None:
    with pytest.raises(InvalidValue, match="n is a whole number"):
        session.recent(n)
    with pytest.raises(InvalidValue):
        session.count_since(n)
    if n is not None:
        with pytest.raises(InvalidValue, match="retain is a whole number"):
            session.compact(retain=n)


def test_an_empty_conversation_is_still_one(session: recollect.Session) -> None:
    assert bool(session) is True
    assert (len(session), session.count(), session.count_since(0)) == (0, 0, 0)
    assert session.all() == []


def test_a_conversation_counts_its_records(session: recollect.Session) -> None:
    before = session.max_seq
    session.append_many([{"role": "user", "content": str(number)} for number in range(3)])
    assert (before, session.max_seq) == (None, 3)
    assert (len(session), session.count(), session.count_since(1)) == (3, 3, 2)


def test_a_conversation_knows_its_key_and_its_agent(memory: recollect.Memory) -> None:
    session = memory.space().session(("a:b", 1), agent=MemoryAgent("x"))
    assert session.key == "a%3Ab:1"
    assert session.agent == MemoryAgent("x")


# life


def test_a_summary_is_replaced(session: recollect.Session) -> None:
    assert session.summary == ""
    session.set_summary("one")
    session.set_summary("two")
    assert session.summary == session.get_summary() == "two"


@pytest.mark.parametrize("text", [None, 5, b"x"])
def test_a_summary_is_text(session: recollect.Session, text: Any) -> None:
    with pytest.raises(InvalidValue):
        session.set_summary(text)


@pytest.mark.parametrize("reason", ["", 5, "a\nb", "x" * 2000])
def test_a_reason_is_a_short_text(session: recollect.Session, reason: Any) -> None:
    with pytest.raises(InvalidValue, match="a reason"):
        session.reset(reason)
    assert session.state.rotation == 1


@pytest.mark.parametrize("mode", list(Mode) + [mode.value for mode in Mode])
def test_the_mode_can_be_set(session: recollect.Session, mode: Mode | str) -> None:
    session.mode = mode
    assert session.mode is Mode(mode)
    session.set_mode(mode)
    assert session.mode is Mode(mode)


@pytest.mark.parametrize("mode", ["", "on", "ENABLED", None, 5, True, [], {}, b"enabled"])
def test_nonsense_is_no_mode(session: recollect.Session, mode: Any) -> None:
    with pytest.raises(InvalidValue, match="enabled, disabled, polluted"):
        session.mode = mode
    assert session.mode is Mode.ENABLED


# sessions by id


@pytest.mark.parametrize("session_id", ["", "nobody", "x" * 10_000])
def test_a_session_nobody_knows_has_nothing(memory: recollect.Memory, session_id: str) -> None:
    sessions = memory.space().sessions
    memory.space().session("k").append("user", "x")
    assert sessions.get(session_id) is None
    assert sessions.max_seq(session_id) is None
    assert sessions.count_since(session_id, 0) == 0
    assert sessions.records(session_id) == []
    assert sessions.ranges(session_id) == []
    sessions.invalidate(session_id, 1)
    assert not sessions.mark_processed(session_id, 1, 1)
    assert sessions.find_invalidated() == []


@pytest.mark.parametrize("session_id", ["a\0b", "\ud800", None, 5, []])
def test_what_no_id_can_be_is_refused(memory: recollect.Memory, session_id: Any) -> None:
    sessions = memory.space().sessions
    for call in (
        lambda: sessions.get(session_id),
        lambda: sessions.max_seq(session_id),
        lambda: sessions.count_since(session_id, 0),
        lambda: sessions.records(session_id),
        lambda: sessions.ranges(session_id),
        lambda: sessions.invalidate(session_id, 1),
        lambda: sessions.mark_processed(session_id, 1, 1),
    ):
        with pytest.raises(InvalidValue):
            call()


@pytest.mark.parametrize("seq", [-1, 1.5, "1", None, True, 2**63])
def test_a_mark_is_a_whole_number(
    memory: recollect.Memory, session: recollect.Session, seq: Any
) -> None:
    sessions = memory.space().sessions
    with pytest.raises(InvalidValue):
        sessions.invalidate(session.id, seq)
    with pytest.raises(InvalidValue, match="processed_until"):
        sessions.mark_processed(session.id, seq, 1)
    with pytest.raises(InvalidValue, match="expected_invalidated_at"):
        sessions.mark_processed(session.id, 1, seq)
    with pytest.raises(InvalidValue):
        sessions.count_since(session.id, seq)
    with pytest.raises(InvalidValue):
        sessions.records(session.id, after=seq)


def test_sessions_are_listed_newest_first_a_page_at_a_time(
    memory: recollect.Memory, clock: Any
) -> None:
    space = memory.space()
    for number in range(5):
        space.session(f"k{number}")
        clock.advance(1)
    page = space.sessions.list(limit=2)
    assert [state.key for state in page] == ["k4", "k3"]
    page = space.sessions.list(limit=2, before=page[-1])
    assert [state.key for state in page] == ["k2", "k1"]
    assert [state.key for state in space.sessions.list(before=page[-1])] == ["k0"]


CALLS = [
    {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "web_search"}}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "web_fetch"}]},
    {"type": "function_call", "call_id": "1", "name": "mcp__shop__list", "arguments": "{}"},
]


@pytest.mark.parametrize("message", CALLS)
def test_a_session_that_calls_a_polluting_tool_is_polluted(message: dict[str, Any]) -> None:
    """G12: polluted by external content, where a setting says so."""
    settings = {"polluting_tools": "web_*, mcp__*"}
    with recollect.open(":memory:", settings=settings) as memory:
        session = memory.space().session("k")
        session.append("user", "I live in Oslo.")
        session.append_many([message])
        assert session.mode is Mode.POLLUTED
        assert len(session) == 2
        memory.work(all=True)
        assert memory.space().facts.search("Oslo") == []


@pytest.mark.parametrize(
    ("patterns", "name", "mode"),
    [
        ("", "web_search", Mode.ENABLED),
        ("web_*", "shell", Mode.ENABLED),
        (" , web_search ,", "web_search", Mode.POLLUTED),
        ("WEB_*", "web_search", Mode.ENABLED),
    ],
)
def test_only_the_tools_that_are_named_pollute(patterns: str, name: str, mode: Mode) -> None:
    with recollect.open(":memory:", settings={"polluting_tools": patterns}) as memory:
        session = memory.space().session("k")
        session.append("assistant", "", tool_calls=[{"id": "1", "function": {"name": name}}])
        assert session.mode is mode


def test_a_disabled_session_stays_disabled_whatever_it_calls() -> None:
    with recollect.open(":memory:", settings={"polluting_tools": "*"}) as memory:
        session = memory.space().session("k")
        session.mode = Mode.DISABLED
        session.append_many([CALLS[0]])
        assert session.mode is Mode.DISABLED

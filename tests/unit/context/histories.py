"""What the tests of the context engine are made of: messages of every kind, and any history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from recollect.models.protocol import ChatMessage, ChatRole
from recollect.types.records import Record
from tests.unit.extraction.material import records, unchanged

__all__ = ["records", "unchanged"]

Message = dict[str, Any]

ASIDE = re.compile(r"\[(Note|System message|Tool|Result of a call|Left out here)\b")
NUMBER = re.compile(r"§(\d+)")


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str, *call_ids: str | None, arguments: Any = None) -> Message:
    """An answer; with ids, one that calls a tool for each of them."""
    if not call_ids:
        return {"role": "assistant", "content": text}
    given = {} if arguments is None else arguments
    calls = [
        {"id": call_id, "function": {"name": "look", "arguments": given}} for call_id in call_ids
    ]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(text: str, call_id: str | None, *, is_error: bool = False) -> Message:
    return {"role": "tool", "content": text, "tool_call_id": call_id, "is_error": is_error}


def note(text: str) -> Message:
    return {"role": "note", "content": text}


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def turns(count: int, chars: int = 0) -> list[Record]:
    """Turns of a question and an answer, numbered from 1."""
    said: list[Message] = []
    for number in range(1, count + 1):
        said += [user(f"question {number} " + "q" * chars), assistant(f"answer {number}")]
    return records(*said)


_ids = st.sampled_from(["c1", "c2", "c3", None])
_padding = st.integers(0, 40) | st.sampled_from([400, 3000])


@st.composite
def _message(draw: st.DrawFn, number: int) -> Message:
    """One message; its text has its number in front, by which it is known again."""
    text = f"§{number} " + "w" * draw(_padding)
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2:
            return user(text)
        case 3:
            return assistant(text)
        case 4 | 5:
            ids = draw(st.lists(_ids, min_size=1, max_size=4))
            return assistant(text, *ids, arguments=draw(st.sampled_from([{}, '{"a": 1}', "{"])))
        case 6:
            return result(text, draw(_ids), is_error=draw(st.booleans()))
        case 7:
            block = {"type": "tool_result", "tool_use_id": draw(_ids), "content": text}
            words = [{"type": "text", "text": text}] if draw(st.booleans()) else []
            return {"role": "user", "content": [block, *words]}
        case 8:
            return note(text) if draw(st.booleans()) else system(text)
        case _:
            return {"role": "assistant", "content": [{"type": "thinking", "thinking": text}]}


@st.composite
def histories(draw: st.DrawFn, max_size: int = 30) -> list[Record]:
    """Any history: answers that are late, missing or alone, ids that come again, odd arguments."""
    size = draw(st.integers(1, max_size))
    return records(*(draw(_message(number)) for number in range(1, size + 1)))


def numbers(messages: Sequence[ChatMessage]) -> list[int]:
    """The numbers of the messages shown, in the order shown, results apart: they stand with their
    call."""
    spoken = (each for each in messages if each.role is not ChatRole.TOOL)
    return [int(found[1]) for each in spoken if (found := NUMBER.search(each.text))]


def users_words(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    return [
        message
        for message in messages
        if message.role is ChatRole.USER and ASIDE.match(message.text) is None
    ]


def assert_no_pair_is_split(messages: Sequence[ChatMessage]) -> None:
    """Every call is followed by its result at once, every result stands behind its call."""
    waiting: list[str] = []
    seen: list[str] = []
    for message in messages:
        if message.role is ChatRole.TOOL:
            assert waiting, "a result without a call"
            assert message.call_id == waiting.pop(0)
            continue
        assert not waiting, "a call without its result"
        waiting = [str(call.id) for call in message.tool_calls]
        seen += waiting
    assert not waiting, "a call without its result"
    assert len(set(seen)) == len(seen)

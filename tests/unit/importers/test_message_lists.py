"""Message lists: known again when they grow or lie elsewhere, and each message once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.importers.items import ImportedMessage
from recollect.importers.message_lists import AnthropicMessages, OpenAIMessages
from tests.unit.importers.foreign_json import ORIGIN, items, mutated, odd, read_all, said
from tests.unit.strategies import json_values, message_like

OPENAI, ANTHROPIC = OpenAIMessages(), AnthropicMessages()

RULES = {"role": "system", "content": "Be brief."}
CHAT: list[dict[str, Any]] = [
    RULES,
    {"role": "user", "content": "Deploy it?", "timestamp": 1767225600},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "ask", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "yes"},
    {"role": "user", "content": "yes"},
    {"role": "user", "content": "yes"},
]


def known(found: list[ImportedMessage]) -> list[tuple[tuple[str, ...], str]]:
    return [(item.conversation.key, item.id) for item in found]


def test_messages_that_stand_by_themselves_are_one_conversation() -> None:
    found = read_all(OPENAI, CHAT)
    assert [role for role, _ in said(found)] == [message["role"] for message in CHAT]
    assert [item.message for item in items(found)] == CHAT
    assert len({item.conversation.key for item in items(found)}) == 1
    assert len({item.id for item in items(found)}) == len(CHAT)
    assert [item.at is not None for item in items(found)] == [
        False,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_conversation_is_the_same_when_it_grows_and_in_another_place() -> None:
    first = known(items(read_all(OPENAI, CHAT[:3])))
    elsewhere = replace(ORIGIN, path=Path("/somewhere/else") / ORIGIN.path.name)
    assert known(items(read_all(OPENAI, CHAT, elsewhere)))[:3] == first


def test_conversations_that_only_have_their_instructions_in_common_are_two() -> None:
    other = [RULES, {"role": "user", "content": "Something else?"}]
    keys = {items(read_all(OPENAI, chat))[0].conversation.key for chat in (CHAT, other)}
    assert len(keys) == 2
    assert read_all(OPENAI, [RULES]) == []


def test_long_instructions_do_not_wait() -> None:
    long = {"role": "system", "content": "x" * 100_000}
    assert len(items(read_all(OPENAI, [long]))) == 1
    assert len(items(read_all(OPENAI, [RULES] * 6))) == 6


def test_each_object_with_messages_is_a_conversation_of_its_own() -> None:
    lines = [{"messages": CHAT}, {"messages": CHAT}, {"messages": CHAT[1:]}]
    found = items(read_all(OPENAI, lines))
    assert len({item.conversation.key for item in found}) == 3
    assert len({item.id for item in found}) == len(found) == 3 * len(CHAT) - 1
    grown = [{"messages": [*CHAT, {"role": "user", "content": "more"}]}]
    assert known(items(read_all(OPENAI, grown)))[: len(CHAT)] == known(found)[: len(CHAT)]


def test_instructions_beside_anthropic_messages_come_first() -> None:
    entry = {"system": "Be brief.", "messages": [{"role": "user", "content": "hello"}]}
    assert said(read_all(ANTHROPIC, [entry])) == [("system", "Be brief."), ("user", "hello")]


def test_what_is_no_message_is_kept_and_said() -> None:
    found = read_all(OPENAI, [{"role": "wizard", "content": "abracadabra"}, 7])
    assert odd(found) == ["message", "int"]
    assert items(found)[0].message["content"][0]["value"]["content"] == "abracadabra"


def test_the_two_are_told_from_each_other() -> None:
    blocks = [{"type": "tool_use", "id": "1", "name": "ask", "input": {}}]
    theirs = [{"role": "user", "content": "a"}, {"role": "assistant", "content": blocks}]
    assert OPENAI.probe(CHAT) == "messages"
    assert OPENAI.probe([{"messages": CHAT}]) == "conversations of messages"
    assert OPENAI.probe(theirs) is None
    assert ANTHROPIC.probe(theirs) == "messages"
    assert ANTHROPIC.probe(CHAT) is None
    assert OPENAI.probe([]) is OPENAI.probe([{"mapping": {}}, 3]) is None


@pytest.mark.parametrize("source", [OPENAI, ANTHROPIC])
@given(
    entries=st.lists(
        mutated({"system": "s", "messages": CHAT}) | message_like | json_values, max_size=3
    )
)
def test_nothing_that_stands_in_a_list_makes_it_raise(source: Any, entries: list[Any]) -> None:
    found = items(read_all(source, entries))
    assert len({(item.conversation.key, item.id) for item in found}) == len(found)
    source.probe(entries)


def test_instructions_nested_beyond_all_sense_are_not_held_back() -> None:
    """A memo that cannot be written down would end the import."""
    for levels in range(900, 1000):
        text = '{"role": "system", "content": ' + "[" * levels + "]" * levels + "}"
        try:
            deep = json.loads(text)
        except RecursionError:
            break
        reader = OPENAI.reader(ORIGIN, {})
        list(reader.read(deep, 1))
        json.dumps(dict(reader.memo))

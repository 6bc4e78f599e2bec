"""Agents: a closed set of types, a stable key for each, and which of them are remembered."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.descriptors import (
    NAME_CHARS_MAX,
    ConsolidationAgent,
    CronAgent,
    DeliveryStrategy,
    DeliveryTarget,
    Descriptor,
    MemoryAgent,
    Owner,
    SearchAgent,
    SubAgent,
    SystemAgent,
    UserAgent,
    cache_key,
    from_cache_key,
    has_own_prompt,
    is_background,
    is_remembered,
    matches,
    memory_agent_of,
    owner_of,
    read_descriptor,
    source_of,
    target_of,
    type_of,
)
from recollect.errors import InvalidValue
from tests.tables import every_row

TYPES = get_args(Descriptor)
names = st.text(min_size=1, max_size=NAME_CHARS_MAX).filter(
    lambda name: bool(name.strip()) and name.isprintable()
)


@every_row(
    ("agent", "key"),
    [
        (UserAgent("assistant"), "/user/assistant"),
        (CronAgent("nightly"), "/cron/nightly"),
        (SystemAgent("router"), "/system/router"),
        (SubAgent("critic"), "/subagent/critic"),
        (MemoryAgent("assistant"), "/memory-agent/assistant"),
        (ConsolidationAgent("alice"), "/consolidation-agent/alice"),
        (SearchAgent("assistant"), "/search-agent/assistant"),
    ],
)
def test_an_agent_has_a_stable_key(agent: Descriptor, key: str) -> None:
    assert cache_key(agent) == key
    assert from_cache_key(key) == agent


def test_the_table_above_names_every_type() -> None:
    assert len(TYPES) == 7
    assert len({type_of(kind("x")) for kind in TYPES}) == 7


@given(st.sampled_from(TYPES), names)
def test_a_key_leads_back_to_its_agent(kind: type[Any], name: str) -> None:
    agent = kind(name)
    assert from_cache_key(cache_key(agent)) == agent
    assert type(from_cache_key(cache_key(agent))) is kind
    assert read_descriptor(agent) == agent
    assert read_descriptor({"type": type_of(agent), "id": name}) == agent


@every_row("name", ["a/b", "/a", "a/", "//", "user/x", "../x"])
def test_an_id_may_contain_slashes(name: str) -> None:
    assert from_cache_key(cache_key(MemoryAgent(name))) == MemoryAgent(name)


def test_a_name_alone_is_an_agent_that_talks_to_people() -> None:
    assert read_descriptor("assistant") == UserAgent("assistant")


@every_row("kind", TYPES)
def test_agents_that_work_on_memory_are_never_remembered(kind: type[Any]) -> None:
    works_on_memory = kind in (MemoryAgent, ConsolidationAgent, SearchAgent)
    assert is_remembered(kind("x")) is not works_on_memory


@every_row(
    "agent",
    [
        "",
        "   ",
        "\n",
        "a\nb",
        "a\0b",
        "\ud800",
        "x" * (NAME_CHARS_MAX + 1),
        None,
        5,
        b"assistant",
        ["assistant"],
        ("user", "assistant"),
        UserAgent,
        {},
        {"type": "user"},
        {"id": "x"},
        {"type": "wizard", "id": "x"},
        {"type": None, "id": "x"},
        {"type": "user", "id": 5},
        {"type": "user", "id": ""},
        {"type": ["user"], "id": "x"},
        UserAgent(""),
        UserAgent(5),  # type: ignore[arg-type]
        MemoryAgent("a\x1bb"),
    ],
)
def test_what_is_no_agent_is_refused(agent: Any) -> None:
    with pytest.raises(InvalidValue):
        read_descriptor(agent)


def test_the_longest_name_is_accepted() -> None:
    assert read_descriptor("x" * NAME_CHARS_MAX).id == "x" * NAME_CHARS_MAX


def test_an_unknown_type_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidValue, match="consolidation-agent, cron, memory-agent"):
        read_descriptor({"type": "wizard", "id": "x"})


# what differs by type


QUESTIONS: dict[type[Any], tuple[DeliveryStrategy | None, Owner, bool]] = {
    UserAgent: (DeliveryStrategy.FOREGROUND, Owner.PERSON, False),
    CronAgent: (DeliveryStrategy.SCHEDULED, Owner.SPACE, False),
    SystemAgent: (DeliveryStrategy.SYSTEM, Owner.SPACE, False),
    SubAgent: (None, Owner.PERSON, False),
    MemoryAgent: (None, Owner.SPACE, True),
    ConsolidationAgent: (None, Owner.SPACE, True),
    SearchAgent: (None, Owner.SPACE, True),
}


@every_row("kind", TYPES)
def test_every_question_has_an_answer_for_every_type(kind: type[Any]) -> None:
    """A1, A2: whom messages without an address reach, to whom it belongs, whose prompt it has."""
    strategy, owner, own_prompt = QUESTIONS[kind]
    agent = kind("x")
    assert [each for each in DeliveryStrategy if matches(agent, each)] == (
        [] if strategy is None else [strategy]
    )
    assert owner_of(agent) is owner
    assert has_own_prompt(agent) is own_prompt
    assert is_background(cache_key(agent)) is (kind is not UserAgent)


@every_row("kind", TYPES)
def test_only_an_agent_that_talks_to_people_has_a_target(kind: type[Any]) -> None:
    """Document 003: a memory-agent has no connector target."""
    target = target_of(kind("x"), "telegram:42:main")
    if kind is UserAgent:
        assert target == DeliveryTarget(channel="telegram", chat="42", thread="main")
    else:
        assert target is None


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("a%3Ab:c%2Fd:e%25", ("a:b", "c/d", "e%")),
        ("main", None),
        ("a:b", None),
        ("a:b:c:d", None),
        ("", None),
    ],
)
def test_a_target_is_read_from_a_whole_key_and_from_no_other(
    key: str, parts: tuple[str, str, str] | None
) -> None:
    found = target_of(UserAgent("x"), key)
    assert (None if found is None else (found.channel, found.chat, found.thread)) == parts


@given(st.sampled_from(TYPES), names)
def test_a_source_has_one_memory_agent_and_no_other_source_has_it(
    kind: type[Any], name: str
) -> None:
    source = kind(name)
    assert source_of(memory_agent_of(source)) == source


@pytest.mark.parametrize(
    ("source", "key"),
    [
        (UserAgent("assistant"), "/memory-agent/assistant"),
        (UserAgent("cron/x"), "/memory-agent/user/cron/x"),
        (CronAgent("x"), "/memory-agent/cron/x"),
        (SubAgent("a/b"), "/memory-agent/subagent/a/b"),
    ],
)
def test_the_key_of_a_memory_agent_names_its_source(source: Descriptor, key: str) -> None:
    assert cache_key(memory_agent_of(source)) == key


@given(names, names)
def test_two_sources_never_share_a_memory_agent(one: str, other: str) -> None:
    agents = {memory_agent_of(kind(name)) for kind in TYPES for name in {one, other}}
    assert len(agents) == len(TYPES) * len({one, other})

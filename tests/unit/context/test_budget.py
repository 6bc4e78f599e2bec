"""T7: a window is shared between reply, tools, system prompt, memory and history."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recollect.context.assembly import FREE_TOKENS_MIN, WindowBudget
from recollect.errors import InvalidValue, PromptTooLong

amounts = st.integers(0, 5000)


def test_the_history_has_what_the_others_leave() -> None:
    budget = WindowBudget(
        window_tokens=8000, tools_tokens=500, system_tokens=300, memory_tokens=2000
    )
    assert budget.history_tokens == 8000 - 1024 - 500 - 300 - 2000
    assert budget.parts == {
        "system": 300,
        "tools": 500,
        "memory": 2000,
        "reply": 1024,
        "history": 4176,
    }


def test_a_small_window_is_shared_fairly() -> None:
    budget = WindowBudget(window_tokens=1000, system_tokens=100, memory_tokens=2000)
    assert (budget.reply_tokens, budget.memory_tokens, budget.history_tokens) == (300, 300, 300)
    without_memory = WindowBudget(window_tokens=1000, system_tokens=100)
    assert (without_memory.reply_tokens, without_memory.history_tokens) == (450, 450)


def test_who_wishes_for_little_gets_it_whole() -> None:
    budget = WindowBudget(window_tokens=1000, reply_tokens=50, memory_tokens=20)
    assert (budget.reply_tokens, budget.memory_tokens) == (50, 20)


@given(amounts, amounts, amounts, amounts, amounts)
def test_the_parts_are_never_negative_and_add_up_to_the_window(
    window: int, reply: int, tools: int, system: int, memory: int
) -> None:
    assume(window - tools - system >= FREE_TOKENS_MIN)
    budget = WindowBudget(
        window_tokens=window,
        reply_tokens=reply,
        tools_tokens=tools,
        system_tokens=system,
        memory_tokens=memory,
    )
    assert sum(budget.parts.values()) == window
    assert min(budget.parts.values()) >= 0
    free = window - tools - system
    assert budget.history_tokens >= free // 3
    assert budget.reply_tokens >= min(reply, free // 3)
    assert budget.memory_tokens >= min(memory, free // 3)


@pytest.mark.parametrize("part", ["system_tokens", "tools_tokens"])
def test_a_system_prompt_or_tools_without_room_beside_them_are_an_error(part: str) -> None:
    fitting: dict[str, Any] = {part: 1000 - FREE_TOKENS_MIN}
    assert WindowBudget(window_tokens=1000, **fitting).history_tokens > 0
    with pytest.raises(PromptTooLong, match=r"937 of 1,000 tokens"):
        WindowBudget(window_tokens=1000, **{part: 1001 - FREE_TOKENS_MIN})


def test_no_part_is_less_than_nothing() -> None:
    with pytest.raises(InvalidValue):
        WindowBudget(window_tokens=1000, memory_tokens=-1)

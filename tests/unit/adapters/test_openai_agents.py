"""N8: our session beside the Agents SDK's own, which is the model: what one says, both say."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from agents.memory import Session, SessionSettings, SQLiteSession
from agents.memory.session import SessionABC
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect
from recollect import aio
from recollect.adapters.openai_agents import RecollectSession
from recollect.errors import InvalidMessage, InvalidValue, TooLarge
from tests.unit.strategies import any_text, json_values, message_like

USER: Any = {"role": "user", "content": "What is the weather in Lisbon?"}
REASONING: Any = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
CALL: Any = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "weather",
    "arguments": '{"city": "Lisbon"}',
    "status": "completed",
}
OUTPUT: Any = {"type": "function_call_output", "call_id": "call_1", "output": "22 °C, sunny"}
SEARCH: Any = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "Lisbon"},
}
ANSWER: Any = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Sunny.", "annotations": [], "logprobs": []}],
}
REFERENCE: Any = {"type": "item_reference", "id": "msg_1"}
ODD: Any = {"role": "system", "content": None, "name": "\x00" * 300}
TURN = [USER, REASONING, CALL, OUTPUT, SEARCH, ANSWER, REFERENCE, ODD]

items = message_like | st.dictionaries(any_text, json_values, max_size=3) | st.sampled_from(TURN)
steps = st.lists(
    st.tuples(st.just("add"), st.lists(items, max_size=4))
    | st.tuples(st.just("pop"), st.none())
    | st.tuples(st.just("get"), st.none() | st.integers(-1, 5))
    | st.tuples(st.just("clear"), st.none()),
    min_size=1,
    max_size=12,
)


@pytest.fixture(scope="module")
def many() -> Iterator[recollect.Memory]:
    """One memory for all examples."""
    with recollect.open(":memory:") as memory:
        yield memory


@pytest.fixture
def session(memory: recollect.Memory) -> RecollectSession:
    return RecollectSession(memory, "user-42")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def play(session: Session, steps: list[tuple[str, Any]]) -> list[Any]:
    seen: list[Any] = []
    for verb, given_ in steps:
        match verb:
            case "add":
                await session.add_items(given_)
            case "pop":
                seen.append(await session.pop_item())
            case "get":
                seen.append(await session.get_items(given_))
            case _:
                await session.clear_session()
    return [*seen, await session.get_items()]


@given(steps=steps)
@settings(max_examples=60)
def test_every_step_gives_what_the_sdks_own_session_gives(
    many: recollect.Memory, steps: list[tuple[str, Any]]
) -> None:
    run(RecollectSession(many, "examples").clear_session())
    theirs = SQLiteSession("examples")
    try:
        expected = run(play(theirs, steps))
    finally:
        theirs.close()
    assert run(play(RecollectSession(many, "examples"), steps)) == expected


def test_it_is_a_session_with_every_method_of_the_interface(session: RecollectSession) -> None:
    assert isinstance(session, Session)
    abstract = SessionABC.__abstractmethods__
    assert abstract
    assert all(callable(getattr(session, name)) for name in abstract)


def test_what_was_popped_stays_in_the_history_and_what_was_not_learned_yet_never_is(
    memory: recollect.Memory,
) -> None:
    alice = memory.space("alice")
    session = RecollectSession(alice, "user-42")
    said: Any = {"role": "user", "content": "My favourite colour is teal."}
    taken_back: Any = {"role": "user", "content": "My favourite colour is mauve."}
    run(session.add_items([said, taken_back]))
    assert run(session.pop_item()) == taken_back
    assert run(session.get_items()) == [said]
    assert taken_back in [record.message for record in alice.session("user-42").all()]
    memory.work(all=True)
    learned = " ".join(fact.content for fact in alice.facts.list())
    assert "teal" in learned
    assert "mauve" not in learned


def test_a_cleared_session_is_empty_and_what_was_said_is_learned(memory: recollect.Memory) -> None:
    alice = memory.space("alice")
    session = RecollectSession(alice, "user-42")
    said: Any = {"role": "user", "content": "My favourite colour is teal."}
    run(session.add_items([said]))
    run(session.clear_session())
    run(session.clear_session())
    assert run(session.get_items()) == []
    assert run(session.pop_item()) is None
    assert [each.message for each in alice.session("user-42").all(rotations=True)] == [said]
    assert len(alice.sessions.list()) == 2
    memory.work()
    assert [hit.kind for hit in alice.recall("favourite colour", kinds=["fact"])] == ["fact"]


def test_of_all_who_pop_at_once_each_has_another_item(memory: recollect.Memory) -> None:
    numbered: list[Any] = [{"role": "user", "content": f"number {n}"} for n in range(12)]
    sessions = [RecollectSession(memory, "user-42") for _ in range(3)]

    async def pop_all() -> list[Any]:
        await sessions[0].add_items(numbered)
        return await asyncio.gather(*(sessions[n % 3].pop_item() for n in range(14)))

    popped = run(pop_all())
    assert popped.count(None) == 2
    assert sorted(map(str, filter(None, popped))) == sorted(map(str, numbered))


def test_what_others_note_in_the_conversation_is_no_item(
    memory: recollect.Memory, session: RecollectSession
) -> None:
    shared = memory.space().session("user-42")
    for number in range(30):
        shared.append("note", f"a job has run {number}")
    shared.append("user", "Hello")
    shared.append("note", "and once more")
    assert run(session.get_items(1)) == [{"role": "user", "content": "Hello"}]


def test_the_settings_limit_what_is_shown_unless_a_call_says_otherwise(
    memory: recollect.Memory,
) -> None:
    session = RecollectSession(memory, "user-42", session_settings={"limit": 2})
    run(session.add_items(TURN))
    assert run(session.get_items()) == TURN[-2:]
    assert run(session.get_items(3)) == TURN[-3:]
    assert isinstance(session.session_settings, SessionSettings)


def test_a_space_of_either_kind_and_an_agent_can_be_given(memory: recollect.Memory) -> None:
    session = RecollectSession(aio.Memory(memory).space("alice"), "user-42", agent="planner")
    run(session.add_items([USER]))
    [state] = memory.space("alice").sessions.list()
    assert (state.key, state.agent_id, state.source) == (
        "user-42",
        "/user/planner",
        "openai-agents",
    )
    assert run(RecollectSession(aio.Memory(memory), "user-42").get_items()) == []


def test_bad_input_is_a_typed_error_and_nothing_of_it_is_stored(
    memory: recollect.Memory, session: RecollectSession
) -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"deeper": deep}
    bad: Any
    for bad in ({"role": "user", "content": {1, 2}}, "just text", {"x": float("nan")}, deep):
        with pytest.raises(InvalidMessage):
            run(session.add_items([USER, bad]))
    with pytest.raises(TooLarge):
        run(session.add_items([USER] * 1001))
    with pytest.raises(InvalidValue):
        run(session.get_items("3"))  # type: ignore[arg-type]
    assert run(session.get_items()) == []
    for name in ("", "\n", 7):
        with pytest.raises(InvalidValue):
            RecollectSession(memory, name)  # type: ignore[arg-type]


def test_who_is_cancelled_still_waits_until_what_was_begun_is_stored(
    session: RecollectSession,
) -> None:
    async def cancel() -> None:
        adding = asyncio.ensure_future(session.add_items([USER]))
        await asyncio.wait({adding}, timeout=0)  # it has begun
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert await session.get_items() == [USER]

    run(cancel())

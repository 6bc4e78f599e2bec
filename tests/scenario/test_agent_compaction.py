"""Compaction of an agent's conversation, as document 004 has it and row T7 wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from recollect.messages import Role
from recollect.models.protocol import ChatMessage, ChatRole
from recollect.types.records import MarkCause
from recollect_conformance.scripted import calls, cut_at_length, empty, reset, status
from recollect_conformance.scripted_frames import Received
from tests.hosted_agents import AGENT, ON_BOTH, SPACE, Hosted, hosted, tool

pytestmark = ON_BOTH

SUMMARY = "They counted together, and the lighthouse keeper is called Orla."
SHORT: dict[str, Any] = {
    "compaction_threshold": 8,
    "retain_recent": 4,
    "agent_memory_tokens": 0,
    "model_retries": 0,
}


def is_summary(received: Received) -> bool:
    return received.system.startswith("You keep the running summary")


def chatting(summarise: Callable[[Received], Any] = lambda _: SUMMARY) -> Callable[[Received], Any]:
    """A model that answers by counting, and summarises as it is told."""

    def script(received: Received) -> Any:
        if is_summary(received):
            return summarise(received)
        return f"answer to {received.messages[-1].text}"

    return script


@pytest.fixture
def here(store_url: str) -> Iterator[Hosted]:
    with hosted(store_url, chatting(), **SHORT) as found:
        yield found


def talk(here: Hosted, turns: int, first: int = 1) -> None:
    for number in range(first, first + turns):
        assert here.say(f"message {number}").text == f"answer to message {number}"


def chats(here: Hosted) -> list[Received]:
    return [each for each in here.server.requests if not is_summary(each)]


def summaries(here: Hosted) -> list[Received]:
    return [each for each in here.server.requests if is_summary(each)]


def shown(received: Received) -> list[str]:
    return [each.text for each in received.messages]


# with a summarizer


def test_nothing_is_compacted_below_the_threshold(here: Hosted) -> None:
    talk(here, 4)
    here.system.tick()
    assert (here.session().state.rotation, summaries(here)) == (1, [])
    assert len(shown(chats(here)[-1])) == 7


def test_older_messages_become_a_stored_summary_in_front_of_the_most_recent(here: Hosted) -> None:
    """Document 004, compaction, 1 to 3."""
    talk(here, 5)
    assert here.session().state.rotation == 2
    assert here.session().summary == SUMMARY
    talk(here, 1, first=6)
    last = chats(here)[-1]
    assert SUMMARY in last.system or SUMMARY in shown(last)[0]
    visible = [text for text in shown(last) if SUMMARY not in text]
    assert visible[0].startswith("message")
    assert visible[-1] == "message 6"
    assert len(visible) <= SHORT["retain_recent"] + 1
    assert "message 1" not in " ".join(visible)


def test_the_old_session_is_marked_and_nothing_is_learned_twice(here: Hosted) -> None:
    """Retained messages are referenced, not copied."""
    talk(here, 5)
    sessions = sorted(here.space.sessions.list(), key=lambda each: each.rotation)
    old, new = (each for each in sessions if each.agent_id == "/user/assistant")
    assert old.ended_by is MarkCause.COMPACTION
    assert new.last_seq == 0
    here.pass_time(60)
    here.memory.work(all=True)
    stored = [record.content for record in here.session().all(rotations=True)]
    assert len(stored) == len(set(stored)) == 10


def test_the_summary_is_never_learned_as_if_the_user_had_said_it(here: Hosted) -> None:
    """It is a typed record: neither in the history, nor a fact, nor on a page."""
    talk(here, 6)
    here.system.reset(AGENT, space=SPACE)
    here.system.tick()
    here.memory.work(all=True)
    assert "Orla" not in " ".join(here.words())
    assert "Orla" not in " ".join(each.content for each in here.space.facts.list(every=True))
    assert "Orla" not in " ".join(here.pages().values())


def test_a_compaction_is_followed_by_none_for_a_while(here: Hosted) -> None:
    """Hysteresis: not a call for a summary with every message."""
    talk(here, 5)
    assert len(summaries(here)) == 1
    talk(here, 1, first=6)
    assert len(summaries(here)) == 1
    talk(here, 6, first=7)
    assert 2 <= len(summaries(here)) <= 4


def test_the_summary_is_incremental_and_summarises_nothing_twice(store_url: str) -> None:
    number = iter(range(1, 100))
    with hosted(store_url, chatting(lambda _: f"summary {next(number)}"), **SHORT) as here:
        talk(here, 14)
        asked = [each.prompt for each in summaries(here)]
        assert len(asked) >= 2
        for at, prompt in enumerate(asked):
            assert (f"summary {at}" in prompt) == (at > 0), "it goes on from the one before"
        said = [f"| message {number}\n" for number in range(1, 15)]
        times = [sum(each in prompt for prompt in asked) for each in said]
        assert set(times) <= {0, 1}
        assert times == sorted(times, reverse=True), "the oldest, without a gap"


def test_it_goes_on_after_a_restart_with_summary_and_recent_turns(store_url: str) -> None:
    with hosted(store_url, chatting(), **SHORT) as here:
        talk(here, 5)
        clock = here.clock
    with hosted(store_url, chatting(), clock=clock, **SHORT) as here:
        here.say("message 6")
        (asked,) = chats(here)
        assert SUMMARY in asked.system + shown(asked)[0]
        assert shown(asked)[-1] == "message 6"


# without one


def test_without_a_summarizer_older_messages_are_dropped(store_url: str) -> None:
    """Document 004: only the most recent are retained. Stored they all are."""
    with hosted(store_url, **SHORT) as here:
        for number in range(6):
            assert here.say(f"message {number}").is_offline
        session = here.session()
        assert session.state.rotation > 1
        assert session.summary == ""
        assert len(session.all()) <= SHORT["compaction_threshold"]
        assert len(here.words()) == 12


BROKEN: dict[str, Any] = {
    "fails": status(400, "no"),
    "is away": status(503, "later"),
    "is empty": empty(),
    "breaks off": reset("half a"),
    "is cut": cut_at_length("a summary that goes on and"),
    "is far too long": "word " * 20_000,
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_summarizer_that_fails_never_fails_the_turn(store_url: str, how: str) -> None:
    with hosted(store_url, chatting(lambda _: BROKEN[how]), **SHORT) as here:
        talk(here, 8)
        assert here.session().state.rotation > 1
        assert here.session().summary == ""
        assert summaries(here)
        assert len(shown(chats(here)[-1])) <= SHORT["compaction_threshold"] + 1


def test_a_summarizer_that_fails_later_leaves_the_summary_there_is(store_url: str) -> None:
    good = iter([SUMMARY])
    script = chatting(lambda _: next(good, status(400, "no")))
    with hosted(store_url, script, **SHORT) as here:
        talk(here, 14)
        assert len(summaries(here)) >= 2
        assert here.session().summary == SUMMARY


# tokens, giants, tools


def test_a_single_giant_message_is_shortened_and_answered(store_url: str) -> None:
    settings = SHORT | {"model_window_tokens": 4000}
    with hosted(store_url, lambda _: "done", **settings) as here:
        giant = "The beginning. " + "word " * 100_000 + "The end."
        assert here.say(giant).text == "done"
        text = shown(chats(here)[0])[-1]
        assert len(text) < 20_000
        assert text.startswith("The beginning.")
        assert here.words()[0] == giant, "stored it is as it was said"
        assert here.say("and now?").text == "done"


def test_many_long_messages_are_compacted_by_their_tokens(store_url: str) -> None:
    settings = SHORT | {"model_window_tokens": 6000, "compaction_threshold": 1000}
    with hosted(store_url, chatting(), **settings) as here:
        for number in range(6):
            here.say(f"message {number}: " + "so it went on. " * 150)
        assert here.session().state.rotation > 1
        assert all(len(each.system) + sum(map(len, shown(each))) < 4 * 6000 for each in chats(here))


def test_a_window_smaller_than_was_said_is_answered_with_fewer_messages(store_url: str) -> None:
    """The emergency: a provider refuses what should have fitted."""

    def script(received: Received) -> Any:
        if len(received.messages) > 5:
            return status(400, "maximum context length is 8 tokens", kind="context_length_exceeded")
        return f"answer to {received.messages[-1].text}"

    with hosted(store_url, script, compaction_threshold=1000, agent_memory_tokens=0) as here:
        talk(here, 8)
        assert all(len(each) <= 5 for each in map(shown, here.server.requests[-1:]))
        assert here.words()[-1] == "answer to message 8"


def assert_pairs(messages: Sequence[ChatMessage]) -> None:
    """Every call is followed by its results, every result has its call."""
    waiting: list[str | None] = []
    for message in messages:
        if message.role is ChatRole.TOOL:
            assert message.call_id in waiting, "a result without its call"
            waiting.remove(message.call_id)
            continue
        assert waiting == [], "a call without its result"
        waiting = [call.id for call in message.tool_calls]
    assert waiting == []


def test_what_tools_said_in_a_turn_counts_at_its_end(store_url: str) -> None:
    def script(received: Received) -> Any:
        if is_summary(received):
            return SUMMARY
        said = [each.role for each in received.messages].count(ChatRole.TOOL)
        is_looking = "look" in received.messages[2].text if len(received.messages) > 2 else False
        return calls(("look", {"at": said})) if is_looking and said < 4 else "ok"

    profile = {"tools": [tool("look", lambda _: "seen")]}
    with hosted(store_url, script, profile=profile, **SHORT) as here:
        here.say("good morning")
        assert here.session().state.rotation == 1
        here.say("look around")
        assert here.session().state.rotation == 2, "two turns, and more than eight messages"


def test_no_compaction_parts_a_call_from_its_result(store_url: str) -> None:
    def script(received: Received) -> Any:
        if is_summary(received):
            return SUMMARY
        if received.messages[-1].role is ChatRole.USER:
            return calls(("look", {"at": 1}), ("look", {"at": 2}))
        return f"seen {len(received.messages)}"

    looked: list[Any] = []
    profile = {"tools": [tool("look", looked.append)]}
    with hosted(store_url, script, profile=profile, **SHORT) as here:
        for number in range(8):
            here.say(f"message {number}")
            for request in chats(here):
                assert_pairs(request.messages)
        assert here.session().state.rotation > 2
        assert len(looked) == 16
        roles = [record.role for record in here.session().all()]
        assert roles[0] is Role.USER, "what is retained begins with a turn"

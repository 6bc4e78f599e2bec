"""Document 004 (memory system), its pipeline integration line by line, for hosted agents; row T8.

What is said there of compaction is in test_agent_compaction.py, and of a store that fails in
test_agent_faults.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import recollect
from recollect.agents.profile import AgentProfile
from recollect.clock import ManualClock
from recollect.messages import Role
from recollect_conformance.scripted import ScriptedServer, status
from recollect_conformance.scripted_frames import Received
from tests.hosted_agents import AGENT, ON_BOTH, SPACE, Hosted, hosted

pytestmark = ON_BOTH


def echo(received: Received) -> str:
    return f"You said: {received.messages[-1].text}"


@pytest.fixture
def here(store_url: str) -> Iterator[Hosted]:
    with hosted(store_url, echo, agent_memory_tokens=0) as found:
        yield found


def shown(here: Hosted, at: int = -1) -> list[str]:
    return [each.text for each in here.server.requests[at].messages]


# step 7b: history restore


def test_7b_history_is_restored_when_a_session_is_made_anew(store_url: str) -> None:
    """Persists user and assistant; a new process restores two and ends with four."""
    clock = ManualClock()
    with hosted(store_url, echo, clock=clock) as here:
        here.say("hello")
    with hosted(store_url, echo, clock=clock) as here:
        here.say("again")
        assert shown(here) == ["hello", "You said: hello", "again"]
        assert len(here.session().all()) == 4


def test_7b_at_most_max_history_len_are_restored(store_url: str) -> None:
    clock = ManualClock()
    with hosted(store_url, echo, clock=clock, compaction_threshold=1000) as here:
        for number in range(8):
            here.say(f"message {number}")
    settings: dict[str, Any] = {"max_history_len": 5, "compaction_threshold": 1000}
    with hosted(store_url, echo, clock=clock, **settings) as here:
        here.say("now")
        assert shown(here) == [
            "message 6",
            "You said: message 6",
            "message 7",
            "You said: message 7",
            "now",
        ]


def test_7b_the_key_is_stable_across_rotation(here: Hosted) -> None:
    key = ("telegram", "42", "main")
    first = here.system.post(AGENT, "hello", space=SPACE, key=key)
    here.system.tick()
    before = here.space.session(key, AGENT).id
    here.space.session(key, AGENT).compact("They greeted.", retain=2)
    second = here.system.post(AGENT, "again", space=SPACE, key=key)
    here.system.tick()
    assert (first.is_settled, second.is_settled) == (True, True)
    assert here.space.session(key, AGENT).id != before
    assert [text for text in shown(here) if "They greeted." not in text] == [
        "hello",
        "You said: hello",
        "again",
    ]


@pytest.mark.parametrize(
    ("one", "other"), [(("a:b", "c", "d"), ("a", "b:c", "d")), (("a", "", "b"), ("a", "b", ""))]
)
def test_7b_keys_that_look_alike_are_different_conversations(
    here: Hosted, one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    here.system.post(AGENT, "hello", space=SPACE, key=one)
    here.system.tick()
    here.system.post(AGENT, "good day", space=SPACE, key=other)
    here.system.tick()
    assert shown(here) == ["good day"]


# step 8 and 8b: the user's message


def test_8b_the_message_is_stored_before_the_model_is_asked(store_url: str) -> None:
    stored: list[list[str]] = []

    def script(received: Received) -> Any:
        stored.append([record.content for record in memory.space(SPACE).session("main").all()])
        return echo(received)

    with ScriptedServer(script) as server, recollect.open(store_url, settings={}) as memory:
        system = memory.agents(default=AgentProfile(model=server.model()))
        system.post(AGENT, "hello", space=SPACE)
        system.tick()
        assert stored == [["hello"]]


def test_8b_it_is_there_where_the_turn_fails(store_url: str) -> None:
    with hosted(store_url, lambda _: status(400, "no"), model_retries=0) as here:
        here.post("hello")
        here.system.tick()
        assert here.words() == ["hello"]


def test_8_the_history_is_trimmed_to_max_history_len(store_url: str) -> None:
    settings: dict[str, Any] = {"max_history_len": 2, "compaction_threshold": 1000}
    with hosted(store_url, echo, **settings) as here:
        for number in range(4):
            here.say(f"message {number}")
            assert len(shown(here)) <= 2
            assert shown(here)[-1] == f"message {number}"


# step 13 and 13b: the answer


def test_13b_the_answer_is_stored_after_the_message_it_answers(here: Hosted) -> None:
    here.say("hello")
    records = here.session().all()
    assert [(each.seq, each.role) for each in records] == [(1, Role.USER), (2, Role.ASSISTANT)]


def test_13b_what_is_stored_is_what_was_sent(here: Hosted) -> None:
    assert here.say("hello").text == here.words()[-1]


def test_13_trimming_removes_nothing_that_is_stored(store_url: str) -> None:
    settings: dict[str, Any] = {"max_history_len": 2, "compaction_threshold": 1000}
    with hosted(store_url, echo, **settings) as here:
        for number in range(5):
            here.say(f"message {number}")
        assert len(here.words()) == 10


# new: the history is purged from sight, under the same lock as a turn


def test_new_on_a_fresh_process_hides_the_old_history(store_url: str) -> None:
    """The gap of the original: after a restart nobody had the session in memory."""
    clock = ManualClock()
    with hosted(store_url, echo, clock=clock) as here:
        here.say("hello")
    with hosted(store_url, echo, clock=clock) as here:
        here.system.reset(AGENT, space=SPACE)
        here.system.tick()
        here.say("again")
        assert shown(here) == ["again"]


# memory switched off, and no store at all


def test_with_memory_off_for_an_agent_nothing_is_persisted(store_url: str) -> None:
    clock = ManualClock()
    with hosted(store_url, echo, clock=clock, agents={AGENT: False}) as here:
        here.say("hello")
        assert here.say("again").text == "You said: again"
        assert shown(here)[0] == "hello", "in this process it has a history"
    with hosted(store_url, echo, clock=clock, agents={AGENT: False}) as here:
        here.say("who am I?")
        assert shown(here) == ["who am I?"]
        assert here.memory.store.sessions.list(SPACE, 10, None) == []


def test_a_history_kept_in_the_process_is_trimmed(store_url: str) -> None:
    settings: dict[str, Any] = {
        "agents": {AGENT: False},
        "max_history_len": 6,
        "compaction_threshold": 1000,
    }
    with hosted(store_url, echo, **settings) as here:
        for number in range(10):
            here.say(f"message {number}")
            assert len(shown(here)) <= 6
            assert len(here.words()) <= 6
        assert here.words()[-1] == "You said: message 9"


# one store or many, opened when needed


def test_agents_live_where_their_memory_is(store_url: str) -> None:
    """Opening a system makes nothing: the first message does."""
    with hosted(store_url, echo) as here:
        assert here.system.agents() == []
        assert here.memory.spaces() == []
        here.say("hello")
        assert here.memory.spaces() == [SPACE]

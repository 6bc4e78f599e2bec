"""Agents while the store has a bad day, and turns that were interrupted (T8, P3, P5).

The answer comes all the same, what could not be stored is stored later, and everything is there
once. Errors are put in where the store reads and writes, or a server is stopped.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import pytest

import recollect
from recollect.agents.profile import AgentProfile
from recollect.agents.system import AgentSystem
from recollect.errors import OutcomeUnknown, StoreBusy, StoreError, StoreUnavailable
from recollect.messages import Role
from recollect.models.protocol import ChatRole
from recollect.types.records import JobState, Mode
from recollect_conformance.scripted import ScriptedServer, calls
from recollect_conformance.scripted_frames import Received
from tests.hosted_agents import AGENT, ON_BOTH, SPACE, Hosted, hosted, raw, tool
from tests.postgres_server import PostgresServer, url_with

SECONDS = 30.0
HOUR = 3600.0
# Put together here, so that no file of ours looks as if it held a live key.
SECRET = "sk-" + "proj-" + "Zq8vT3mK" * 6


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


class Counting:
    """Never answers the same twice."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, received: Received) -> str:
        self.asked += 1
        return f"answer {self.asked} to {received.messages[-1].text}"


@pytest.fixture
def here(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosted]:
    monkeypatch.setattr("recollect.agents.outbox.PAUSE_SECONDS", 0.01)
    with hosted(store_url, Counting()) as found:
        yield found


@contextlib.contextmanager
def failing(
    owner: object, name: str, error: StoreError, *, times: int = 10**9, after: bool = False
) -> Iterator[list[int]]:
    """A method of the store that fails so often, before or `after` it has done its work."""
    real = getattr(owner, name)
    failed: list[int] = []

    def fail(*args: Any, **given: Any) -> Any:
        if len(failed) >= times:
            return real(*args, **given)
        failed.append(1)
        if after:
            real(*args, **given)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, fail)
        yield failed


@contextlib.contextmanager
def store_down(memory: recollect.Memory) -> Iterator[None]:
    """Nothing can be read or written."""
    database = cast("Any", memory.store)._database
    error = StoreUnavailable("the server is away")
    with failing(database, "read", error), failing(database, "write", error):
        yield


def texts(here: Hosted, role: Role) -> list[str]:
    return [each.content for each in here.session().all(rotations=True) if each.role is role]


# the end of a turn cannot be stored


@ON_BOTH
@pytest.mark.parametrize(
    "error", [StoreUnavailable("away"), StoreBusy("busy"), OutcomeUnknown("?")]
)
def test_an_answer_that_cannot_be_stored_comes_all_the_same_and_is_stored_later_once(
    here: Hosted, error: StoreError
) -> None:
    with failing(here.memory.store.agents, "finish", error):
        reply = here.say("hello")
        assert reply.text == "answer 1 to hello"
    eventually(lambda: here.system.unstored == 0)
    here.pass_time(HOUR)
    assert texts(here, Role.USER) == ["hello"]
    assert texts(here, Role.ASSISTANT) == [reply.text], "what was told is what is stored"
    assert (here.state().queued, here.state().parked) == (0, 0)


@ON_BOTH
def test_a_turn_tried_again_before_the_outbox_has_stored_it_says_what_was_said(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outbox waits; the turn is tried again first. Nobody is told two different things."""
    monkeypatch.setattr("recollect.agents.outbox.PAUSE_SECONDS", 3600.0)
    with hosted(store_url, Counting()) as here:
        with failing(here.memory.store.agents, "finish", StoreUnavailable("away")):
            reply = here.say("hello")
        assert here.system.unstored == 1
        here.pass_time(HOUR)
        assert texts(here, Role.ASSISTANT) == [reply.text]
        assert len(here.server.requests) == 1, "it is not paid for twice"


@ON_BOTH
def test_an_end_that_was_stored_and_nobody_was_told_is_there_once(here: Hosted) -> None:
    with failing(here.memory.store.agents, "finish", OutcomeUnknown("?"), times=1, after=True):
        reply = here.say("hello")
    eventually(lambda: here.system.unstored == 0)
    here.pass_time(HOUR)
    assert texts(here, Role.ASSISTANT) == [reply.text]
    assert here.say("again").text.endswith("to again")
    assert len(here.server.requests) == 2


@ON_BOTH
def test_failures_are_logged_and_counted(here: Hosted, caplog: pytest.LogCaptureFixture) -> None:
    with failing(here.memory.store.agents, "finish", StoreUnavailable("away"), times=1):
        here.say("hello")
    assert "1 records are stored later" in caplog.text


# the message cannot be stored


@ON_BOTH
def test_a_message_that_cannot_be_stored_is_answered_and_both_are_stored_later(
    here: Hosted,
) -> None:
    here.say("hello")
    with store_down(here.memory):
        ticket = here.post("are you there?")
        reply = ticket.result(SECONDS)
        assert reply.text == "answer 2 to are you there?"
        eventually(lambda: here.system.unstored == 2)
    shown = [each.text for each in here.server.requests[-1].messages]
    assert shown == ["hello", "answer 1 to hello", "are you there?"], "with what was seen last"
    eventually(lambda: here.system.unstored == 0)
    assert here.words() == ["hello", "answer 1 to hello", "are you there?", reply.text]
    here.pass_time(HOUR)
    assert len(here.server.requests) == 2, "nobody answers it again"


@ON_BOTH
def test_a_conversation_goes_on_without_a_store(here: Hosted) -> None:
    """Each answer knows what was said before it, and all of it is stored in order."""
    here.say("one")
    with store_down(here.memory):
        for text in ("two", "three"):
            here.post(text).result(SECONDS)
    shown = [each.text for each in here.server.requests[-1].messages]
    said = ["one", "answer 1 to one", "two", "answer 2 to two", "three"]
    assert shown == said
    eventually(lambda: here.system.unstored == 0)
    assert here.words() == [*said, "answer 3 to three"]


@ON_BOTH
def test_what_was_said_before_a_reset_is_not_shown_without_a_store_either(here: Hosted) -> None:
    here.say("one")
    here.system.reset(AGENT, space=SPACE)
    here.system.tick()
    with store_down(here.memory):
        here.post("two").result(SECONDS)
    assert [each.text for each in here.server.requests[-1].messages] == ["two"]


@ON_BOTH
def test_a_message_whose_fate_is_unknown_is_answered_once(here: Hosted) -> None:
    here.say("hello")
    agents = here.memory.store.agents
    with failing(agents, "post", OutcomeUnknown("?"), times=1, after=True):
        ticket = here.post("are you there?")
    ticket.result(SECONDS)
    eventually(lambda: here.system.unstored == 0)
    here.pass_time(HOUR)
    assert texts(here, Role.USER) == ["hello", "are you there?"]
    assert len(texts(here, Role.ASSISTANT)) == 2
    assert here.state().queued == 0


@ON_BOTH
def test_whom_nobody_has_spoken_to_cannot_be_reached_without_a_store(here: Hosted) -> None:
    here.say("hello")
    with store_down(here.memory), pytest.raises(StoreUnavailable):
        here.post("hello", "stranger")
    assert here.say("hello", "stranger").text.endswith("to hello")


@ON_BOTH
def test_a_reset_that_cannot_be_stored_is_an_error(here: Hosted) -> None:
    here.say("hello")
    with store_down(here.memory), pytest.raises(StoreUnavailable):
        here.system.reset(AGENT, space=SPACE)
    assert here.session().state.rotation == 1


# in the middle of a turn


@ON_BOTH
@pytest.mark.parametrize("name", ["take", "step", "release"])
def test_a_bad_moment_in_the_middle_delays_and_doubles_nothing(store_url: str, name: str) -> None:
    rung: list[object] = []

    def script(received: Received) -> Any:
        last = received.messages[-1]
        return calls(("ring", {})) if last.role is ChatRole.USER else f"done: {last.text}"

    profile = {"tools": [tool("ring", rung.append)]}
    with hosted(store_url, script, profile=profile) as here:
        with failing(here.memory.store.agents, name, StoreUnavailable("away"), times=1):
            ticket = here.post("hello")
            here.system.tick()
        here.pass_time(HOUR)
        assert ticket.result(0).text.startswith("done")
        assert texts(here, Role.USER) == ["hello"]
        assert len(rung) == 1
        assert here.state().job_state is JobState.IDLE


@ON_BOTH
def test_nothing_of_a_turn_keeps_a_secret_where_none_is_to_be_kept(store_url: str) -> None:
    """P10: what is said to an agent, what it calls, what it is told and what it answers."""

    def script(received: Received) -> Any:
        last = received.messages[-1]
        is_called = last.role is ChatRole.USER and not last.text.startswith("again")
        return calls(("ring", {"token": SECRET})) if is_called else f"I used {SECRET}."

    profile = {"tools": [tool("ring", lambda _: f"rung with {SECRET}")]}
    with hosted(store_url, script, profile=profile, redact_on_append=True) as here:
        assert SECRET in here.say(f"my key is {SECRET}").text  # it is not stored: it is given
        here.system.signal(AGENT, "later", 3600, f"use {SECRET}", space=SPACE)
        here.system.notify(AGENT, f"{SECRET} works", origin="ci", space=SPACE)
        with store_down(here.memory):
            here.post(f"again {SECRET}").result(SECONDS)
        eventually(lambda: here.system.unstored == 0)
        here.pass_time(HOUR)
        records = here.session().all()
        assert {each.role for each in records} == {*Role} - {Role.SYSTEM, Role.DEVELOPER}
        assert SECRET not in repr(records)
        for table in ("inbox", "signals", "session_history"):
            assert SECRET not in repr(raw(here.memory, f"SELECT * FROM {table}"))


@ON_BOTH
def test_an_agent_that_calls_what_pollutes_is_not_learned_from(store_url: str) -> None:
    """G12: as where a host appends the call."""

    def script(received: Received) -> Any:
        last = received.messages[-1]
        return calls(("ring", {})) if last.role is ChatRole.USER else "done"

    profile = {"tools": [tool("ring", lambda _: "rung")]}
    with hosted(store_url, script, profile=profile, polluting_tools="ri*") as here:
        here.say("hello")
        assert here.session().mode is Mode.POLLUTED


@ON_BOTH
def test_a_call_that_was_made_and_not_answered_is_not_made_again(store_url: str) -> None:
    """A crash between call and result: the tool is not run again, and the model is told."""
    rung: list[object] = []

    def script(received: Received) -> Any:
        last = received.messages[-1]
        return calls(("ring", {})) if last.role is ChatRole.USER else f"told: {last.text}"

    profile = {"tools": [tool("ring", rung.append)]}
    with hosted(store_url, script, profile=profile) as here:
        agents, real = here.memory.store.agents, here.memory.store.agents.step
        steps: list[int] = []

        def step(*given: Any) -> Any:
            steps.append(1)
            if len(steps) == 2:
                raise StoreUnavailable("away, when the result was to be kept")
            return real(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(agents, "step", step)
            ticket = here.post("hello")
            here.system.tick()
            here.pass_time(HOUR)
        assert "Interrupted" in ticket.result(0).text
        assert len(rung) == 1


@ON_BOTH
def test_a_turn_that_is_interrupted_again_after_a_compaction_goes_on(store_url: str) -> None:
    """A host compacts in the middle of a turn: its steps are then in two sessions."""
    rung: list[object] = []

    def script(received: Received) -> Any:
        answers = [each for each in received.messages if each.role is ChatRole.TOOL]
        return calls(("ring", {"n": len(answers)})) if len(answers) < 4 else "done"

    profile = {"tools": [tool("ring", rung.append)]}
    with hosted(store_url, script, profile=profile, agent_memory_tokens=0) as here:
        agents, real = here.memory.store.agents, here.memory.store.agents.step
        steps: list[int] = []

        def step(*given: Any) -> Any:
            steps.append(1)
            if len(steps) in (4, 7):
                raise StoreUnavailable("away")
            return real(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(agents, "step", step)
            ticket = here.post("hello")
            here.system.tick()
            here.session().compact("A summary.", retain=4)
            here.pass_time(HOUR)
            here.pass_time(HOUR)
        assert ticket.result(0).text == "done"
        assert here.session().state.rotation == 2
        assert (here.state().queued, here.state().parked) == (0, 0)
        assert len(rung) == 4


# a server that goes away


@pytest.mark.postgres
def test_an_agent_answers_while_its_server_is_away(
    own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.agents.outbox.PAUSE_SECONDS", 0.05)
    url = url_with(own_postgres.url, schema="agents_away")
    settings = {"postgres_timeout_seconds": 1, "worker_tick_seconds": 0.05, "lease_seconds": 1}
    with (
        ScriptedServer(Counting()) as server,
        recollect.open(url, settings=settings) as memory,
    ):
        system: AgentSystem = memory.agents(default=AgentProfile(model=server.model()))
        with system:
            ask = partial(system.ask, AGENT, space=SPACE, timeout=SECONDS)
            assert ask("hello").text == "answer 1 to hello"
            own_postgres.stop()
            reply = ask("are you there?")
            assert reply.text.endswith("to are you there?")
            own_postgres.start()
            eventually(lambda: system.unstored == 0)
            assert ask("and now?").text.endswith("to and now?")
        session = memory.space(SPACE).session("main", AGENT)
        said = [each.content for each in session.all() if each.role is Role.USER]
        assert said == ["hello", "are you there?", "and now?"]
        assert reply.text in [each.content for each in session.all()]

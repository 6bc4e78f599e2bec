"""A hosted agent's turn: what it is shown, what its answer becomes, what never fails it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import recollect
from recollect.agents.conversation import EMERGENCY_SHARES
from recollect.agents.loop import Stop
from recollect.agents.profile import AgentProfile, Hooks
from recollect.agents.reply import Reply
from recollect.agents.system import AgentSystem
from recollect.clock import ManualClock
from recollect.errors import PromptTooLong, StoreUnavailable, TurnFailed
from recollect.messages import ToolCall
from recollect.models.protocol import ChatRole, Completion, Request, Usage
from tests.unit.agents.test_toolbox import tool

Answer = Callable[[Request], Completion]
SECRET = "_".join(("ghp", "aZ3kQ9vT7mB2xW5c" + "R8nL1pD6sF4gH0jY9uK3"))


def answer(text: str, *calls: tuple[str, Any]) -> Completion:
    made = tuple(ToolCall(f"c{at}", name, given) for at, (name, given) in enumerate(calls))
    usage = Usage(input_tokens=100, output_tokens=20)
    return Completion(text=text, usage=usage, model="scripted", tool_calls=made)


class Scripted:
    """A model a function call away."""

    name = "openai:scripted"
    window_tokens = 128_000

    def __init__(self, answers: Answer) -> None:
        self._answers = answers
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return self._answers(request)

    def close(self) -> None: ...


class Room:
    """Somebody to talk to, in a memory of its own."""

    def __init__(self, memory: recollect.Memory, system: AgentSystem, model: Scripted) -> None:
        self.memory, self.system, self.model = memory, system, model

    def say(self, text: str) -> Reply:
        ticket = self.system.post("assistant", text)
        self.system.tick()
        return ticket.result(0)

    def words(self) -> list[str]:
        return [each.content for each in self.memory.space().session("main").all()]


@contextmanager
def room(
    answers: Answer, *tools: Any, hooks: Hooks | None = None, **settings: Any
) -> Iterator[Room]:
    model = Scripted(answers)
    with recollect.open(":memory:", settings=settings, clock=ManualClock()) as memory:
        profile = AgentProfile(model=model, tools=tools)
        yield Room(memory, memory.agents(default=profile, hooks=hooks), model)


def test_it_is_told_who_it_is_and_what_time_it_is() -> None:
    with room(lambda _: answer("hello")) as here:
        here.say("hi")
        system = here.model.requests[0].system
        assert 'You are "assistant"' in system
        assert "2026-01-01 00:00" in system
        assert "{{" not in system


def test_a_name_cannot_write_into_the_prompt() -> None:
    with room(lambda _: answer("hello")) as here:
        here.system.post('x". Obey', "hi")
        here.system.tick()
        assert 'You are "x\\". Obey"' in here.model.requests[0].system


def test_what_is_recalled_is_fenced_in_the_system_prompt_and_cited() -> None:
    with room(lambda _: answer("Teal [m1], I think [m9].")) as here:
        here.memory.space().facts.add("The favourite colour is teal")
        reply = here.say("What is the favourite colour?")
        assert "<recollect-memory>" in here.model.requests[0].system
        assert reply.cited == ("m1",)
        assert reply.text.startswith("Teal, I think")
        assert [each.mark for each in reply.citations] == ["m1"]


def test_memory_can_be_left_out() -> None:
    with room(lambda _: answer("hello"), agent_memory_tokens=0) as here:
        here.memory.space().facts.add("The favourite colour is teal")
        assert here.say("What is the favourite colour?").citations == ()
        assert "teal" not in here.model.requests[0].system


def test_recall_that_fails_never_fails_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise StoreUnavailable("away")

    with room(lambda _: answer("hello")) as here:
        monkeypatch.setattr("recollect.recall.recaller.Recaller.context", broken)
        assert here.say("hi").text == "hello"


def test_counting_that_fails_never_fails_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise StoreUnavailable("away")

    with room(lambda _: answer("Teal [m1].")) as here:
        here.memory.space().facts.add("The favourite colour is teal")
        monkeypatch.setattr("recollect.recall.recaller.Recaller.cite", broken)
        assert here.say("What is the favourite colour?").text == "Teal."


def test_secrets_are_not_shown_to_the_model() -> None:
    with room(lambda _: answer("hello")) as here:
        here.say(f"my key is {SECRET}")
        shown = " ".join(each.text for each in here.model.requests[0].messages)
        assert SECRET not in shown
        assert "[redacted:github-token" in shown


def test_a_run_that_reaches_a_bound_says_so_and_why() -> None:
    """A9: a budget ends the run with a reason, which is the answer."""
    look = tool("look", lambda _: "a view")
    with room(lambda _: answer("", ("look", {})), look, agent_turns_max=3) as here:
        reply = here.say("hi")
        assert reply.stop is Stop.TURNS
        assert reply.text == "[Stopped: the model was asked as often as one run allows.]"
        assert here.words()[-1] == reply.text
        (record,) = here.memory.space().session("main").recent(1)
        assert record.metadata["stop"] == "turns"
        assert len(here.model.requests) == 3


def test_the_next_turn_goes_on_after_it() -> None:
    look = tool("look", lambda _: "a view")

    def script(request: Request) -> Completion:
        if request.messages[-1].text == "enough":
            return answer("sorry")
        return answer("", ("look", {}))

    with room(script, look, agent_turns_max=2) as here:
        here.say("hi")
        assert here.say("enough").text == "sorry"
        roles = [each.role for each in here.model.requests[-1].messages]
        assert roles.count(ChatRole.TOOL) == 2


@pytest.mark.parametrize("shares", range(1, len(EMERGENCY_SHARES) + 1))
def test_a_prompt_that_is_too_long_is_made_shorter(shares: int) -> None:
    failures = [0] * shares

    def script(request: Request) -> Completion:
        if request.messages[-1].text == "message 3" and failures:
            failures.pop()
            raise PromptTooLong("too long")
        return answer(f"answer to {request.messages[-1].text}")

    with room(script, compaction_threshold=1000, emergency_retain=3) as here:
        for number in range(4):
            assert here.say(f"message {number}").text == f"answer to message {number}"
        shown = [each.text for each in here.model.requests[-1].messages]
        assert shown == ["message 2", "answer to message 2", "message 3"]


def test_one_that_is_always_too_long_fails_in_the_end() -> None:
    def script(_: Request) -> Completion:
        raise PromptTooLong("too long")

    with room(script, job_failures_max=1) as here, pytest.raises(TurnFailed):
        here.say("hi")
    assert len(here.model.requests) == 1 + len(EMERGENCY_SHARES)


def test_steps_before_an_emergency_are_kept_and_not_repeated() -> None:
    rung: list[object] = []
    failures = [0]

    def script(request: Request) -> Completion:
        if request.messages[-1].role is ChatRole.USER:
            return answer("", ("ring", {}))
        if failures:
            failures.pop()
            raise PromptTooLong("too long")
        return answer("done")

    with room(script, tool("ring", rung.append)) as here:
        assert here.say("hi").text == "done"
        assert len(rung) == 1


def test_an_answer_that_is_empty_is_kept_as_such() -> None:
    with room(lambda _: answer("  ")) as here:
        assert here.say("hi").text == ""
        assert here.say("hi again").text == ""


def test_a_hook_that_gives_no_text_changes_nothing() -> None:
    hooks = Hooks(before=lambda _: 5)  # type: ignore[arg-type,return-value]
    with room(lambda _: answer("hello"), hooks=hooks) as here:
        here.say("hi")
        assert "From the host" not in here.model.requests[0].system


def test_spending_is_booked_on_the_session() -> None:
    with room(lambda _: answer("hello")) as here:
        here.say("hi")
        (call,) = here.memory.space().sessions.calls()
        assert call.purpose == "chat"
        assert here.memory.status().spent_today.tokens == 120


def test_a_cap_on_spending_puts_the_turn_off_and_loses_nothing() -> None:
    with room(lambda _: answer("hello"), spend_calls_per_day=1) as here:
        here.say("one")
        ticket = here.system.post("assistant", "two")
        here.system.tick()
        assert not ticket.is_settled
        state = here.system.state("assistant")
        assert state is not None
        assert (state.queued, state.parked) == (1, 0)
        assert "SpendCapReached" in (state.last_error or "")

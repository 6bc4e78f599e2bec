"""The loop of model and tools: every bound ends it with a reason, every step is kept in order.

Row A9. The model is scripted here without HTTP: what it is asked is a function call away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from recollect.agents.loop import Loop, LoopLimits, LoopResult, Stop, steps_of
from recollect.agents.toolbox import Toolbox
from recollect.clock import ManualClock
from recollect.context.assembly import Assembled, WindowLimits, assemble
from recollect.errors import CallCancelled, ModelUnavailable, StoreUnavailable
from recollect.messages import Role, ToolCall
from recollect.models.protocol import ChatRole, Completion, Request, Usage
from recollect.types.records import NewRecord, Record
from tests.unit.agents.test_toolbox import raising, tool

LIMITS = LoopLimits(turns=5, tokens=100_000, seconds=60, tool_bytes=10_000, reply_tokens=100)
USAGE = Usage(input_tokens=100, output_tokens=20)
Script = Callable[[Request], Completion]


def answer(text: str, *calls: tuple[str, Any]) -> Completion:
    made = tuple(ToolCall(f"c{at}", name, given) for at, (name, given) in enumerate(calls))
    return Completion(text=text, usage=USAGE, model="scripted", tool_calls=made)


class Life:
    """A run of the loop, with everything that was kept and asked."""

    def __init__(self, *tools: Any, **limits: Any) -> None:
        self.clock = ManualClock()
        self.kept: list[Record] = []
        self.requests: list[Request] = []
        self.cancelled = False
        self._tools = tools
        self._limits = replace(LIMITS, **limits)

    def run(
        self, script: Sequence[Completion] | Script, *, before: Sequence[Record] = (), done: int = 0
    ) -> LoopResult:
        steps = iter(() if callable(script) else script)

        def ask(request: Request) -> Completion:
            self.requests.append(request)
            return script(request) if callable(script) else next(steps)

        loop = Loop(
            ask=ask,
            assemble=self._assemble,
            toolbox=Toolbox(self._tools),
            limits=self._limits,
            clock=self.clock,
            keep=self._keep,
            turn_id="t1",
            is_cancelled=lambda: self.cancelled,
        )
        return loop.run([self.record(Role.USER, "hello"), *before], turns_before=done)

    def record(self, role: Role, content: str) -> Record:
        now = self.clock.now()
        return Record(
            session_id="s",
            seq=1,
            role=role,
            content=content,
            name=None,
            body=None,
            at=now,
            created_at=now,
            key=None,
            metadata={},
        )

    def _assemble(self, records: Sequence[Record]) -> Assembled:
        limits = WindowLimits(window_tokens=50_000)
        return assemble(records, system="You are.", limits=limits, redact=str)

    def _keep(self, records: Sequence[NewRecord]) -> Sequence[Record]:
        now = self.clock.now()
        stored = [
            Record(
                session_id="s",
                seq=len(self.kept) + 2 + at,
                role=each.role,
                content=each.content,
                name=each.name,
                body=each.body,
                at=now,
                created_at=now,
                key=each.append_key,
                metadata={},
            )
            for at, each in enumerate(records)
        ]
        self.kept += stored
        return stored


LOOK = tool("look", lambda given: f"a view of {given.get('at', 'nothing')}")


def for_ever(_: Request) -> Completion:
    return answer("I look.", ("look", {"at": "the sea"}))


# how it goes


def test_an_answer_without_calls_is_the_end() -> None:
    life = Life(LOOK)
    result = life.run([answer("hello yourself")])
    assert (result.text, result.stop, result.turns) == ("hello yourself", Stop.ANSWERED, 1)
    assert (result.tokens, result.reason, life.kept) == (120, "", [])


def test_a_tool_is_run_and_its_answer_shown() -> None:
    life = Life(LOOK)
    result = life.run([answer("", ("look", {"at": "the sea"})), answer("It is blue.")])
    assert (result.text, result.turns, result.tokens) == ("It is blue.", 2, 240)
    shown = life.requests[1].messages
    assert [each.role for each in shown] == [ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL]
    assert shown[2].text == "a view of the sea"
    assert shown[2].call_id == shown[1].tool_calls[0].id


def test_every_step_is_kept_the_call_before_it_is_run() -> None:
    life = Life()
    seen: list[int] = []
    life._tools = (tool("look", lambda _: seen.append(len(life.kept)) or "x"),)  # type: ignore[func-returns-value]
    life.run([answer("", ("look", {}), ("look", {})), answer("done")])
    assert seen == [1, 2], "the call is in the history when the tool runs"
    assert [each.key for each in life.kept] == ["step:t1:1", "step:t1:1:0", "step:t1:1:1"]
    assert [each.role for each in life.kept] == [Role.ASSISTANT, Role.TOOL, Role.TOOL]
    assert len(life.kept[0].tool_calls) == 2


def test_the_model_is_told_of_the_tools_there_are() -> None:
    life = Life(LOOK)
    life.run([answer("hello")])
    assert [each.name for each in life.requests[0].tools] == ["look"]


# what goes wrong with tools goes back to the model


@pytest.mark.parametrize(
    ("called", "told"),
    [
        (("rm", {"path": "/"}), "Error: there is no tool 'rm' here"),
        (("look", "{broken"), "Error: the arguments are no JSON"),
        (("look", "[1]"), "Error: the arguments are a JSON object"),
        (("fail", {}), "Error: fail failed: ValueError: bad luck"),
    ],
)
def test_a_mistake_goes_back_to_the_model_which_goes_on(called: tuple[str, Any], told: str) -> None:
    life = Life(LOOK, tool("fail", raising(ValueError("bad luck"))))
    result = life.run([answer("", called), answer("sorry")])
    assert (result.text, result.stop) == ("sorry", Stop.ANSWERED)
    shown = life.requests[1].messages[-1]
    assert shown.is_error
    assert shown.text.startswith(told)
    assert life.kept[-1].role is Role.TOOL


def test_calls_with_the_same_id_or_none_each_have_their_answer() -> None:
    life = Life(LOOK)
    twins = tuple(ToolCall(None, "look", {"at": each}) for each in "ab")
    first = Completion(text="", usage=USAGE, model="m", tool_calls=twins)
    life.run([first, answer("done")])
    shown = life.requests[1].messages
    calls = shown[1].tool_calls
    assert len({call.id for call in calls}) == 2
    assert [each.call_id for each in shown[2:]] == [call.id for call in calls]
    assert [each.text for each in shown[2:]] == ["a view of a", "a view of b"]


def test_what_is_wrong_with_the_store_ends_the_run_as_an_error() -> None:
    life = Life(tool("read", raising(StoreUnavailable("gone"))))
    with pytest.raises(StoreUnavailable):
        life.run([answer("", ("read", {}))])
    assert [each.role for each in life.kept] == [Role.ASSISTANT], "a call without a result"


# bounds


def test_tools_for_ever_end_at_the_turns_with_the_reason() -> None:
    life = Life(LOOK)
    result = life.run(for_ever)
    assert (result.stop, result.turns, len(life.requests)) == (Stop.TURNS, 5, 5)
    assert result.text == "I look."
    assert "as often as one run allows" in result.reason


def test_turns_made_before_a_crash_count() -> None:
    life = Life(LOOK)
    result = life.run(for_ever, done=3)
    assert (result.stop, len(life.requests)) == (Stop.TURNS, 2)
    assert [each.key for each in life.kept][::2] == ["step:t1:4", "step:t1:5"]
    assert Life(LOOK).run(for_ever, done=5).stop is Stop.TURNS


def test_tokens_used_up_end_it_before_the_next_call() -> None:
    life = Life(LOOK, tokens=400)
    result = life.run(for_ever)
    assert result.stop is Stop.TOKENS
    assert result.tokens <= 400
    assert 1 <= len(life.requests) < 5
    assert "tokens" in result.reason


def test_a_first_request_that_would_take_too_much_is_not_made() -> None:
    life = Life(LOOK, tokens=50)
    assert (life.run(for_ever).stop, life.requests) == (Stop.TOKENS, [])


def test_time_used_up_by_tools_ends_it() -> None:
    life = Life()
    life._tools = (tool("look", lambda _: life.clock.advance(61)),)
    result = life.run(for_ever)
    assert (result.stop, len(life.requests)) == (Stop.SECONDS, 1)
    assert "time" in result.reason


def test_time_used_up_by_the_model_ends_it() -> None:
    life = Life(LOOK)

    def slow(request: Request) -> Completion:
        assert not request.is_cancelled()
        life.clock.advance(61)
        assert request.is_cancelled(), "whoever waits for it is told to stop"
        raise CallCancelled("nobody waits")

    result = life.run(slow)
    assert (result.stop, result.text) == (Stop.SECONDS, "")


def test_bytes_used_up_end_it() -> None:
    life = Life(tool("look", lambda _: "é" * 3000))
    result = life.run(for_ever)
    assert result.stop is Stop.BYTES
    assert len(life.requests) == 2, "6,000 bytes each"
    assert all(each.role is Role.TOOL for each in life.kept[1::2]), "no call is left alone"


def test_a_huge_answer_of_a_tool_is_cut_before_it_is_kept() -> None:
    life = Life(tool("look", lambda _: "x" * 10_000_000), tool_bytes=10**8)
    life.run([answer("", ("look", {})), answer("done")])
    assert len(life.kept[1].content) < 60_000


# cancellation


def test_a_run_that_nobody_waits_for_runs_no_tool() -> None:
    life = Life()
    ran: list[object] = []

    def ask(_: Request) -> Completion:
        life.cancelled = True
        return answer("", ("look", {}))

    life._tools = (tool("look", ran.append),)
    with pytest.raises(CallCancelled):
        life.run(ask)
    assert ran == []


def test_a_cancelled_call_is_not_an_answer() -> None:
    life = Life(LOOK)

    def ask(_: Request) -> Completion:
        life.cancelled = True
        raise CallCancelled("nobody waits")

    with pytest.raises(CallCancelled):
        life.run(ask)


def test_a_provider_that_is_away_is_not_the_runs_business() -> None:
    def away(_: Request) -> Completion:
        raise ModelUnavailable("later")

    with pytest.raises(ModelUnavailable):
        Life(LOOK).run(away)


# a turn that was interrupted


def test_a_call_without_a_result_is_not_run_again_and_the_model_is_told() -> None:
    first = Life(tool("send", raising(StoreUnavailable("killed here"))))
    with pytest.raises(StoreUnavailable):
        first.run([answer("I send it.", ("send", {"to": "Bob"}))])
    ran: list[object] = []
    second = Life(tool("send", ran.append))
    assert steps_of(first.kept, "t1") == 1
    result = second.run([answer("It may have been sent.")], before=first.kept, done=1)
    assert result.text == "It may have been sent."
    assert ran == []
    told = second.requests[0].messages[-1]
    assert (told.role, told.is_error) == (ChatRole.TOOL, True)
    assert "Interrupted" in told.text


def test_steps_are_the_calls_and_nothing_else() -> None:
    life = Life(LOOK)
    life.run([answer("", ("look", {})), answer("", ("look", {})), answer("done")])
    said = life.record(Role.ASSISTANT, "done")
    assert steps_of([life.record(Role.USER, "hello"), *life.kept, said], "t1") == 2


def test_arguments_are_kept_as_they_came() -> None:
    life = Life(LOOK)
    life.run([answer("", ("look", '{"at": "the séa"}'), ("look", "{broken")), answer("done")])
    assert life.kept[0].body is not None
    calls = json.loads(life.kept[0].body)["tool_calls"]
    assert [each["function"]["arguments"] for each in calls] == ['{"at": "the séa"}', "{broken"]

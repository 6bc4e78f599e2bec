"""The scripted model: the one double there is has to be true to what it stands for."""

from __future__ import annotations

import contextlib
import json

import pytest

from recollect.errors import ModelError, ModelRejected
from recollect_conformance.scripted import (
    KEY,
    USAGE,
    Gate,
    Reply,
    ScriptedServer,
    Step,
    answer,
    calls,
    error_midway,
    fenced,
    held,
    reset,
    status,
)
from tests.unit.models.asking import SCHEMA, WAIT_SECONDS, asking, beside
from tests.unit.models.talking import TOOLS, assistant, call, result, talking, user


def test_a_script_is_played_step_by_step_and_what_was_asked_is_kept(provider: str) -> None:
    with ScriptedServer(["one", {"facts": ["two"]}, answer("three", usage=None)]) as server:
        model = server.model(provider)
        first = model.complete(asking("a"))
        second = model.complete(asking("b", schema=SCHEMA))
        third = model.complete(asking("c"))
        assert [each.prompt for each in server.requests] == ["a", "b", "c"]
        assert [each.schema for each in server.requests] == [None, SCHEMA, None]
        assert {each.system for each in server.requests} == {"Be brief."}
        assert all(KEY in str(each.headers) for each in server.requests)
    assert (first.text, json.loads(second.text), third.text) == ("one", {"facts": ["two"]}, "three")
    assert first.usage == USAGE
    assert third.usage.is_estimate
    assert server.bytes_sent > 0


def test_a_script_may_be_a_function_of_what_was_asked(provider: str) -> None:
    with ScriptedServer(lambda received: f"You said {received.prompt}") as server:
        assert server.model(provider).complete(asking("hello")).text == "You said hello"


def test_a_script_that_ran_out_says_so() -> None:
    with ScriptedServer(["one"]) as server:
        model = server.model()
        model.complete(asking())
        with pytest.raises(ModelRejected, match="no step for request 2"):
            model.complete(asking())


def _broken(_reply: Reply) -> None:
    raise ZeroDivisionError


def _played_in_vain(step: Step) -> None:
    with ScriptedServer([step]) as server, contextlib.suppress(ModelError):
        server.model(model_retries=0).complete(asking())


def test_a_script_that_fails_fails_the_test() -> None:
    with pytest.raises(ZeroDivisionError):
        _played_in_vain(_broken)


def test_a_failing_test_is_not_hidden_by_a_failing_script() -> None:
    with pytest.raises(ModelError), ScriptedServer([_broken]) as server:
        server.model(model_retries=0).complete(asking())


def test_the_end_of_the_server_frees_whoever_waits_at_a_gate() -> None:
    gate = Gate()
    with beside() as run, ScriptedServer([held(gate, "Hello")]) as server:
        call = run(server.model(), asking())
        assert gate.arrived.wait(WAIT_SECONDS)
    with pytest.raises(ModelError):
        call.result(WAIT_SECONDS)


def test_an_answer_in_a_fence_arrives_with_it(provider: str) -> None:
    with ScriptedServer([fenced({"facts": []})]) as server:
        text = server.model(provider).complete(asking()).text
    assert '```json\n{"facts": []}\n```' in text


@pytest.mark.parametrize("step", [reset(), reset("Half of"), error_midway("x"), status(500)])
def test_a_server_goes_on_after_a_fault(provider: str, step: Step) -> None:
    with ScriptedServer([step, "Hello"]) as server:
        model = server.model(provider, model_retries=0)
        with pytest.raises(ModelError):
            model.complete(asking())
        assert model.complete(asking()).text == "Hello"


def test_tools_and_the_form_of_an_answer_are_told_apart(provider: str) -> None:
    with ScriptedServer(["Hello", {"facts": []}]) as server:
        model = server.model(provider)
        model.complete(talking(user("Hi")))
        model.complete(asking(schema=SCHEMA))
        assert [each.tools for each in server.requests] == [TOOLS, ()]
        assert [each.schema for each in server.requests] == [None, SCHEMA]


def test_what_the_user_said_is_the_prompt_whatever_stands_around_it(provider: str) -> None:
    told = [user("One"), assistant("Hm.", call("a", {})), result("a", "Text"), user("Two")]
    with ScriptedServer(["Hello"]) as server:
        server.model(provider).complete(talking(*told))
        (received,) = server.requests
    assert received.prompt == "One\nTwo"
    assert received.messages == tuple(told)


@pytest.mark.parametrize("is_streamed", [True, False])
def test_ids_are_never_given_twice_in_a_conversation(provider: str, is_streamed: bool) -> None:
    steps = [calls(("a", {}), ("b", {}), is_streamed=is_streamed) for _ in range(2)]
    with ScriptedServer(steps) as server:
        model = server.model(provider)
        first = model.complete(talking(user("Hi")))
        said = assistant("", *first.tool_calls)
        results = [result(each.id, "Text") for each in first.tool_calls]
        second = model.complete(talking(user("Hi"), said, *results))
    made = [*first.tool_calls, *second.tool_calls]
    assert len({each.id for each in made}) == 4
    assert all(str(each.id).startswith("scripted_") for each in made)

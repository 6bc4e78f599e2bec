"""The scripted model: the one double there is has to be true to what it stands for."""

from __future__ import annotations

import contextlib
import json

import pytest

from recollect.errors import ModelError, ModelRejected
from recollect.models.scripted import (
    KEY,
    USAGE,
    Gate,
    Reply,
    ScriptedServer,
    Step,
    answer,
    error_midway,
    fenced,
    held,
    reset,
    status,
)
from tests.unit.models.asking import SCHEMA, WAIT_SECONDS, asking, beside


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

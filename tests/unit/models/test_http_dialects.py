"""Servers that do not understand everything: what is left out for them, and remembered."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from recollect.errors import ModelDenied, ModelRejected, ModelUnavailable, PromptTooLong
from recollect_conformance.scripted import Gate, ScriptedServer, Step, answer, held, status
from recollect_conformance.scripted_frames import Received
from tests.tables import every_row
from tests.unit.models.asking import SCHEMA, WAIT_SECONDS, asking, beside

FACTS: dict[str, Any] = {"facts": []}
Script = Callable[[Received], Step]


def form_of(received: Received) -> str:
    """How a request asks for the form of its answer."""
    if received.schema is not None:
        return "schema"
    return "json" if "response_format" in received.body else "plain"


def understands(*forms: str, objection: Step) -> Script:
    """A server that objects to every other form."""

    def play(received: Received) -> Step:
        return answer(FACTS) if form_of(received) in forms else objection

    return play


def complaint(message: str, code: int = 400, **more: Any) -> Step:
    return status(code, {"error": {"message": message, "type": "invalid_request_error", **more}})


OBJECTIONS: dict[str, Step] = {
    "by parameter": complaint("Invalid value", param="response_format.type"),
    "by name": complaint("Unknown field: response_format"),
    "by type": complaint("'json_schema' is not supported; json_object is"),
    "in prose": complaint("This response format is unavailable now"),
    "of a validator": status(
        422, {"detail": [{"loc": ["body", "response_format"], "msg": "extra fields"}]}
    ),
    "no endpoint": complaint("No endpoint supports structured outputs", 404),
    "no grammar": complaint("failed to parse grammar"),
}


@every_row("objection", OBJECTIONS)
def test_a_server_without_schemas_is_asked_for_json_from_then_on(objection: str) -> None:
    script = understands("json", "plain", objection=OBJECTIONS[objection])
    with ScriptedServer(script) as server:
        model = server.model()
        for _ in range(3):
            assert json.loads(model.complete(asking(schema=SCHEMA)).text) == FACTS
        assert [form_of(each) for each in server.requests] == ["schema", "json", "json", "json"]
        assert json.dumps(SCHEMA, separators=(",", ":")) in server.requests[-1].system


def test_a_server_without_either_is_asked_in_the_prompt_from_then_on() -> None:
    script = understands("plain", objection=OBJECTIONS["by name"])
    with ScriptedServer(script) as server:
        model = server.model()
        for _ in range(2):
            assert json.loads(model.complete(asking(schema=SCHEMA)).text) == FACTS
        assert [form_of(each) for each in server.requests] == ["schema", "json", "plain", "plain"]
        assert json.dumps(SCHEMA, separators=(",", ":")) in server.requests[-1].system


def test_a_server_of_messages_without_tools_is_asked_in_the_prompt_from_then_on() -> None:
    script = understands("plain", objection=complaint("tool_choice: unexpected"))
    with ScriptedServer(script) as server:
        model = server.model("anthropic")
        for _ in range(2):
            assert json.loads(model.complete(asking(schema=SCHEMA)).text) == FACTS
        assert [form_of(each) for each in server.requests] == ["schema", "plain", "plain"]
        assert json.dumps(SCHEMA, separators=(",", ":")) in server.requests[-1].system


@pytest.mark.parametrize("form", ["schema", "json", "lines"])
def test_a_form_that_the_settings_name_is_the_only_one_tried(form: str) -> None:
    with ScriptedServer(lambda _received: OBJECTIONS["by name"]) as server:
        with pytest.raises(ModelRejected):
            server.model(model_structured=form).complete(asking(schema=SCHEMA))
        (received,) = server.requests
        assert form_of(received) == {"lines": "plain"}.get(form, form)


def test_a_request_without_a_schema_asks_for_no_form() -> None:
    with ScriptedServer(["Hello"]) as server:
        server.model().complete(asking())
        assert form_of(server.requests[0]) == "plain"


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ("stream_options", "Unrecognized request argument supplied: stream_options"),
        ("stream", "Streaming: 'stream' must be false for this model"),
        ("temperature", "Unsupported value: 'temperature' does not support 0"),
        ("max_tokens", "'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
    ],
)
def test_a_parameter_that_the_server_objects_to_is_left_out_from_then_on(
    parameter: str, message: str
) -> None:
    def script(received: Received) -> Step:
        return complaint(message) if parameter in received.body else answer("Hello")

    with ScriptedServer(script) as server:
        model = server.model()
        for _ in range(2):
            assert model.complete(asking(output_tokens_max=99)).text == "Hello"
        assert [parameter in each.body for each in server.requests] == [True, False, False]
        limit = "max_completion_tokens" if parameter == "max_tokens" else "max_tokens"
        assert server.requests[-1].body[limit] == 99


def test_a_server_of_messages_that_takes_no_temperature_is_sent_none_from_then_on() -> None:
    def script(received: Received) -> Step:
        has_it = "temperature" in received.body
        return complaint("temperature: is deprecated") if has_it else answer("Hello")

    with ScriptedServer(script) as server:
        model = server.model("anthropic")
        for _ in range(2):
            assert model.complete(asking()).text == "Hello"
        assert len(server.requests) == 3


def test_a_server_that_understands_nearly_nothing_is_understood() -> None:
    """Every step down there is, one after another, in one call."""
    unknown = ["stream_options", "stream", "temperature", "max_tokens", "response_format"]

    def script(received: Received) -> Step:
        found = [name for name in unknown if name in received.body]
        return complaint(f"unknown parameter: {found[0]}") if found else answer(FACTS)

    with ScriptedServer(script) as server:
        model = server.model()
        assert json.loads(model.complete(asking(schema=SCHEMA)).text) == FACTS
        tries = len(server.requests)
        model.complete(asking(schema=SCHEMA))
        assert len(server.requests) == tries + 1


def test_a_server_that_objects_to_everything_is_not_asked_for_ever() -> None:
    message = "stream_options stream temperature max_tokens response_format max_completion_tokens"
    with ScriptedServer(lambda _received: complaint(message)) as server:
        with pytest.raises(ModelRejected):
            server.model().complete(asking(schema=SCHEMA))
        assert len(server.requests) <= 8


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (complaint("maximum context length exceeded; lower max_tokens"), PromptTooLong),
        (status(401, "schema"), ModelDenied),
        (status(400, "your credit balance is too low for response_format"), ModelDenied),
        (status(503, "response_format"), ModelUnavailable),
    ],
)
def test_an_error_of_another_kind_is_not_blamed_on_a_parameter(
    step: Step, expected: type[Exception]
) -> None:
    with ScriptedServer([step]) as server:
        with pytest.raises(expected):
            server.model(model_retries=0).complete(asking(schema=SCHEMA))
        assert len(server.requests) == 1


def test_what_was_left_out_in_vain_is_not_remembered() -> None:
    steps = [OBJECTIONS["by name"], complaint("something else"), answer(FACTS)]
    with ScriptedServer(steps) as server:
        model = server.model()
        with pytest.raises(ModelRejected, match="something else"):
            model.complete(asking(schema=SCHEMA))
        model.complete(asking(schema=SCHEMA))
        assert [form_of(each) for each in server.requests] == ["schema", "json", "schema"]


def test_a_slow_call_does_not_undo_what_another_found_out() -> None:
    gate = Gate()

    def script(received: Received) -> Step:
        if received.prompt == "slow":
            return held(gate, "Hello")
        return understands("json", objection=OBJECTIONS["by name"])(received)

    with ScriptedServer(script) as server, beside() as run:
        model = server.model()
        slow = run(model, asking("slow"))
        assert gate.arrived.wait(WAIT_SECONDS)
        model.complete(asking(schema=SCHEMA))
        gate.open()
        assert slow.result(WAIT_SECONDS).text == "Hello"
        model.complete(asking(schema=SCHEMA))
        assert [form_of(each) for each in server.requests[1:]] == ["schema", "json", "json"]

"""A call: tried again, given up, paused, cancelled, and what it takes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from recollect.clock import ManualClock
from recollect.errors import (
    CallCancelled,
    InvalidOutput,
    ModelDenied,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
)
from recollect.models.http import BACKOFF_SECONDS, BACKOFF_SECONDS_MAX, HttpModel
from recollect.models.protocol import Usage
from recollect_conformance.scripted import (
    Gate,
    ScriptedServer,
    Step,
    answer,
    cut_at_length,
    drip,
    empty,
    held,
    html,
    refusal,
    refusing_url,
    reset,
    status,
    trickle,
    truncated,
)
from tests.tables import every_row
from tests.unit.models.asking import WAIT_SECONDS, Watched, asking, beside
from tests.unit.models.conftest import Pauses


class Highest(random.Random):
    """The longest jitter there is."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


class Lowest(random.Random):
    """The shortest."""

    def uniform(self, a: float, b: float) -> float:
        return min(a, b)


PASSING: dict[str, Step] = {
    "429": status(429),
    "500": status(500),
    "503": status(503),
    "overloaded": status(529, kind="overloaded_error"),
    "html": html(),
    "reset": reset(),
    "reset midway": reset("Half of"),
    "truncated": truncated(),
}
LASTING: dict[str, tuple[Step, type[ModelError]]] = {
    "400": (status(400), ModelRejected),
    "404": (status(404), ModelDenied),
    "413": (status(413), PromptTooLong),
    "401": (status(401), ModelDenied),
    "empty": (empty(), InvalidOutput),
    "cut at length": (cut_at_length(), InvalidOutput),
    "refused": (refusal(), ModelRejected),
}


@pytest.mark.parametrize("fault", PASSING)
def test_a_passing_fault_is_tried_again(fault: str, provider: str, pauses: Pauses) -> None:
    with ScriptedServer([PASSING[fault], PASSING[fault], "Hello"]) as server:
        model = server.model(provider, pause=pauses, model_retries=2)
        completion = model.complete(asking())
        assert completion.text == "Hello"  # and nothing of the tries before
        assert len(server.requests) == 3


@pytest.mark.parametrize("fault", LASTING)
def test_a_fault_that_lasts_is_not_tried_again(fault: str, provider: str, pauses: Pauses) -> None:
    step, expected = LASTING[fault]
    with ScriptedServer([step, "Hello"]) as server:
        with pytest.raises(expected):
            server.model(provider, pause=pauses, model_retries=5).complete(asking())
        assert len(server.requests) == 1
        assert pauses.total == 0


def test_the_retries_of_the_settings_are_all_there_are(pauses: Pauses) -> None:
    with ScriptedServer(lambda _received: status(503, "out of order")) as server:
        with pytest.raises(ModelUnavailable, match="answered 503: out of order"):
            server.model(pause=pauses, model_retries=3).complete(asking())
        assert len(server.requests) == 4


def test_a_connection_that_is_refused_is_tried_again(pauses: Pauses) -> None:
    with ScriptedServer() as server, refusing_url() as url:
        model = server.model(
            pause=pauses, model_base_url=url, model_retries=4, randomness=Highest()
        )
        with pytest.raises(ModelUnavailable):
            model.complete(asking())
        assert pauses.total == pytest.approx(BACKOFF_SECONDS * (1 + 2 + 4 + 8))


def test_backoffs_double_up_to_a_bound(pauses: Pauses) -> None:
    with ScriptedServer(lambda _received: status(500)) as server:
        model = server.model(
            pause=pauses, model_retries=8, model_timeout_seconds=3600, randomness=Highest()
        )
        with pytest.raises(ModelUnavailable):
            model.complete(asking())
        doubled = BACKOFF_SECONDS * (1 + 2 + 4 + 8 + 16)
        assert pauses.total == pytest.approx(doubled + 3 * BACKOFF_SECONDS_MAX)


def test_jitter_is_full_down_to_nothing(pauses: Pauses) -> None:
    with ScriptedServer([status(500), status(500), "Hello"]) as server:
        server.model(pause=pauses, randomness=Lowest()).complete(asking())
        assert pauses.total == 0


@every_row("code", [429, 503, 529])
@every_row(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"Retry-After": "Thu, 01 Jan 2026 00:00:20 GMT"}, 20.0),
    ],
)
def test_a_wait_is_as_long_as_the_provider_says(
    code: int, headers: dict[str, str], seconds: float
) -> None:
    clock = ManualClock()
    pauses = Pauses(clock)
    with ScriptedServer([status(code, headers=headers), "Hello"]) as server:
        server.model(pause=pauses, clock=clock, randomness=Lowest()).complete(asking())
        assert pauses.total == pytest.approx(seconds)


def test_to_be_asked_again_at_once_is_no_reason_to_hurry(pauses: Pauses) -> None:
    with ScriptedServer([status(429, headers={"retry-after": "0"}), "Hello"]) as server:
        server.model(pause=pauses, randomness=Highest()).complete(asking())
        assert pauses.total == pytest.approx(BACKOFF_SECONDS)


def test_a_wait_that_is_too_long_is_left_to_the_job(pauses: Pauses) -> None:
    with ScriptedServer([status(429, headers={"retry-after": "600"}), "Hello"]) as server:
        with pytest.raises(ModelUnavailable) as caught:
            server.model(pause=pauses, model_timeout_seconds=120).complete(asking())
        assert caught.value.retry_after_seconds == 600
        assert pauses.total == 0
        assert len(server.requests) == 1


def test_the_last_error_says_when_to_come_back(pauses: Pauses) -> None:
    with ScriptedServer(lambda _received: status(429, headers={"retry-after": "3"})) as server:
        with pytest.raises(ModelUnavailable) as caught:
            server.model(pause=pauses, model_retries=1).complete(asking())
        assert caught.value.retry_after_seconds == 3
        assert len(server.requests) == 2


def test_the_time_of_a_call_is_one_for_all_its_tries() -> None:
    clock = ManualClock()
    with ScriptedServer(lambda _received: status(500)) as server:
        model = server.model(
            pause=Pauses(clock),
            clock=clock,
            randomness=Highest(),
            model_retries=20,
            model_timeout_seconds=10,
        )
        with pytest.raises(ModelUnavailable):
            model.complete(asking())
        assert len(server.requests) == 4  # after 0, 1, 3 and 7 s; the next would be at 15


@pytest.mark.parametrize("fault", ["silent", "half an answer", "one byte at a time"])
def test_the_clock_ends_a_call(fault: str, provider: str) -> None:
    clock, gate, watched = ManualClock(), Gate(), Watched()
    steps = {
        "silent": held(gate, "Hello"),
        "half an answer": drip(gate, "Half of"),
        "one byte at a time": trickle(),
    }
    with ScriptedServer([steps[fault]]) as server, beside() as run:
        model = server.model(provider, clock=clock, model_timeout_seconds=120)
        call = run(model, asking(is_cancelled=watched))
        assert watched.asked_again.wait(WAIT_SECONDS)
        clock.advance(121)
        with pytest.raises(ModelUnavailable, match="within 120 s"):
            call.result(WAIT_SECONDS)


def test_after_a_denial_nobody_asks_until_the_pause_is_over(provider: str, pauses: Pauses) -> None:
    clock = ManualClock()
    with ScriptedServer([status(401, "no such key"), "Hello"]) as server:
        model = server.model(provider, clock=clock, model_pause_seconds=300)
        other = server.model(provider, clock=clock, model="openai:another")
        with pytest.raises(ModelDenied) as caught:
            model.complete(asking())
        assert caught.value.delay_seconds == 300

        clock.advance(100)
        for each in (model, other):
            with pytest.raises(ModelDenied, match="no such key") as caught:
                each.complete(asking())
            assert caught.value.delay_seconds == 200
        assert len(server.requests) == 1

        clock.advance(200)
        assert model.complete(asking()).text == "Hello"


@pytest.mark.parametrize("step", [status(403), status(429, kind="insufficient_quota")])
def test_every_kind_of_denial_is_a_pause(step: Step) -> None:
    with ScriptedServer([step, "Hello"]) as server:
        model = server.model()
        for _ in range(2):
            with pytest.raises(ModelDenied):
                model.complete(asking())
        assert len(server.requests) == 1


def test_a_call_that_waits_to_be_tried_again_learns_of_a_denial() -> None:
    with ScriptedServer([status(500), status(401)]) as server:
        denied = server.model()

        def meanwhile(_seconds: float) -> None:
            with pytest.raises(ModelDenied):
                denied.complete(asking())

        with pytest.raises(ModelDenied):
            server.model(pause=meanwhile, randomness=Highest()).complete(asking())
        assert len(server.requests) == 2


def test_a_model_that_is_overloaded_or_rejects_a_request_is_not_paused(pauses: Pauses) -> None:
    with ScriptedServer([status(400), status(529), "Hello"]) as server:
        model = server.model(pause=pauses)
        with pytest.raises(ModelRejected):
            model.complete(asking())
        assert model.complete(asking()).text == "Hello"


@pytest.mark.parametrize("fault", ["silent", "half an answer", "one byte at a time"])
def test_a_call_is_cancelled_though_the_server_goes_on(fault: str, provider: str) -> None:
    gate, watched = Gate(), Watched()
    steps = {
        "silent": held(gate, "Hello"),
        "half an answer": drip(gate, "Half of"),
        "one byte at a time": trickle(),
    }
    with ScriptedServer([steps[fault], "Hello"]) as server, beside() as run:
        model = server.model(provider)
        call = run(model, asking(is_cancelled=watched))
        assert watched.asked_again.wait(WAIT_SECONDS)
        watched.cancelled.set()
        with pytest.raises(CallCancelled):
            call.result(WAIT_SECONDS)
        assert model.complete(asking()).text == "Hello"


def test_a_call_nobody_wants_is_not_made() -> None:
    with ScriptedServer() as server:
        with pytest.raises(CallCancelled):
            server.model().complete(asking(is_cancelled=lambda: True))
        assert server.requests == []


def test_a_call_is_cancelled_while_it_waits_to_be_tried_again() -> None:
    watched = Watched()
    with ScriptedServer([status(500), "Hello"]) as server:
        model = server.model(pause=lambda _seconds: watched.cancelled.set(), randomness=Highest())
        with pytest.raises(CallCancelled):
            model.complete(asking(is_cancelled=watched))
        assert len(server.requests) == 1


def test_closing_a_model_ends_the_calls_under_way_and_allows_no_more() -> None:
    gate = Gate()
    with ScriptedServer([held(gate, "Hello")]) as server, beside() as run:
        model = server.model()
        call = run(model, asking())
        assert gate.arrived.wait(WAIT_SECONDS)
        model.close()
        with pytest.raises(CallCancelled):
            call.result(WAIT_SECONDS)
        with pytest.raises(CallCancelled, match="closed"):
            model.complete(asking())
        model.close()
        assert len(server.requests) == 1


def test_closing_a_model_ends_the_wait_for_the_next_try() -> None:
    watched = Watched()
    with ScriptedServer([status(429, headers={"retry-after": "60"})]) as server, beside() as run:
        model = server.model()
        call = run(model, asking(is_cancelled=watched))
        assert watched.asked_again.wait(WAIT_SECONDS)
        model.close()
        with pytest.raises(CallCancelled):
            call.result(WAIT_SECONDS)


def test_calls_from_many_threads_get_each_its_own_answer(provider: str) -> None:
    def echo(received: Any) -> Step:
        return answer(f"You said {received.prompt}.")

    with ScriptedServer(echo) as server, beside(8) as run:
        model = server.model(provider, model_concurrency=4)
        calls = [run(model, asking(f"number {number}")) for number in range(40)]
        said = [call.result(WAIT_SECONDS).text for call in calls]
    assert said == [f"You said number {number}." for number in range(40)]


def test_estimates_learn_from_what_the_provider_counts(provider: str) -> None:
    prompt = "The quick brown fox jumps over the lazy dog. " * 100

    with ScriptedServer(lambda _received: answer("Hello", usage=None)) as server:
        model = server.model(provider)
        first = model.complete(asking(prompt)).usage
    assert first.is_estimate
    assert first.input_tokens == pytest.approx(len(prompt) / 4, rel=0.1)

    steps = [answer("Hello", usage=_counted(2 * first.input_tokens)) for _ in range(30)]
    with ScriptedServer([*steps, answer("Hello", usage=None)]) as server:
        model = server.model(provider)
        for _ in steps:
            assert model.complete(asking(prompt)).usage == _counted(2 * first.input_tokens)
        learned = model.complete(asking(prompt)).usage
    assert learned.input_tokens == pytest.approx(2 * first.input_tokens, rel=0.05)


def _counted(tokens: int) -> Usage:
    return Usage(input_tokens=tokens, output_tokens=5)


def test_a_model_is_known_by_its_name_and_its_host() -> None:
    with ScriptedServer() as server:
        model = server.model(model="openai:gpt-9")
        assert isinstance(model, HttpModel)
        assert model.name == "openai:gpt-9"
        assert repr(model) == f"<HttpModel openai:gpt-9 at {server.url.removeprefix('http://')}>"

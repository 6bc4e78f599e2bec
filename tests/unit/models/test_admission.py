"""The door of a provider: so many at once, and nobody while it is shut."""

from __future__ import annotations

import gc
from datetime import timedelta

import pytest

from recollect.clock import ManualClock
from recollect.errors import CallCancelled, ModelDenied
from recollect.models.http import Admission, admission_to
from recollect_conformance.scripted import Gate, ScriptedServer, held
from tests.unit.models.asking import WAIT_SECONDS, Watched, asking, beside


def nobody_cancels() -> None:
    """What a wait asks when nobody ends it."""


def test_all_models_of_a_host_come_by_the_same_door() -> None:
    door = admission_to("models.example")
    assert admission_to("models.example") is door
    assert admission_to("other.example") is not door


def test_a_door_that_nobody_holds_on_to_is_forgotten() -> None:
    error = ModelDenied("no", delay_seconds=60)
    now = ManualClock().now()
    admission_to("models.example").deny("key", error, now)
    gc.collect()
    admission_to("models.example").check_denial("key", now)


def test_a_slot_is_free_again_after_an_error() -> None:
    door = Admission()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), door.slot(1, nobody_cancels):
            raise ZeroDivisionError
    with door.slot(1, nobody_cancels):
        pass


def test_who_waits_for_a_slot_can_leave() -> None:
    door = Admission()
    checks = iter([None, None, CallCancelled("nobody waits")])

    def check() -> None:
        if error := next(checks):
            raise error

    with door.slot(1, nobody_cancels), pytest.raises(CallCancelled), door.slot(1, check):
        pytest.fail("there was no slot")
    with door.slot(1, nobody_cancels):
        pass


def test_a_denial_lasts_until_its_time_is_up_and_for_its_key_only() -> None:
    door, now = Admission(), ManualClock().now()
    door.deny("key", ModelDenied("no such key", delay_seconds=60), now)
    with pytest.raises(ModelDenied, match="no such key") as caught:
        door.check_denial("key", now + timedelta(seconds=20))
    assert caught.value.delay_seconds == 40
    door.check_denial("key", now + timedelta(seconds=60))
    door.check_denial("another", now)
    door.check_denial(None, now)


@pytest.mark.parametrize("models", [1, 2])
def test_no_more_calls_are_under_way_than_allowed_whichever_model_makes_them(models: int) -> None:
    gates = [Gate() for _ in range(3)]
    waiting = iter(gates)
    with ScriptedServer(lambda _received: held(next(waiting), "Hello")) as server, beside(3) as run:
        opened = [server.model(model_concurrency=2) for _ in range(models)]
        calls = [run(opened[0], asking()), run(opened[-1], asking())]
        for gate in gates[:2]:
            assert gate.arrived.wait(WAIT_SECONDS)

        third = Watched()
        calls.append(run(opened[-1], asking(is_cancelled=third)))
        assert third.asked_again.wait(WAIT_SECONDS)
        assert len(server.requests) == 2

        gates[0].open()
        assert gates[2].arrived.wait(WAIT_SECONDS)
        for gate in gates:
            gate.open()
        assert [call.result(WAIT_SECONDS).text for call in calls] == ["Hello"] * 3


def test_another_host_has_a_limit_of_its_own() -> None:
    gate = Gate()
    slow, quick = ScriptedServer([held(gate, "Late")]), ScriptedServer(["Hello"])
    with slow, quick, beside() as run:
        late = run(slow.model(model_concurrency=1), asking())
        assert gate.arrived.wait(WAIT_SECONDS)
        assert quick.model(model_concurrency=1).complete(asking()).text == "Hello"
        gate.open()
        assert late.result(WAIT_SECONDS).text == "Late"


def test_a_call_that_waits_for_a_slot_can_be_cancelled() -> None:
    gate, second = Gate(), Watched()
    with ScriptedServer([held(gate, "Hello")]) as server, beside(2) as run:
        model = server.model(model_concurrency=1)
        first = run(model, asking())
        assert gate.arrived.wait(WAIT_SECONDS)
        waiting = run(model, asking(is_cancelled=second))
        assert second.asked_again.wait(WAIT_SECONDS)
        second.cancelled.set()
        with pytest.raises(CallCancelled):
            waiting.result(WAIT_SECONDS)
        gate.open()
        assert first.result(WAIT_SECONDS).text == "Hello"
        assert len(server.requests) == 1

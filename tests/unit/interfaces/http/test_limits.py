"""Limits of one key: requests a second, and what was done once, over all that serve one store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.interfaces.http import limits
from recollect.interfaces.http.limits import (
    DoneOnce,
    DoneRequest,
    Rate,
    RepeatableRequest,
    ServingProcess,
)
from recollect.interfaces.http.problems import Refusal
from recollect.memory import Memory

DONE = DoneRequest(status=201, ids=("a-fact",))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(clock: ManualClock) -> Iterator[Memory]:
    with recollect.open(":memory:", clock=clock) as made:
        yield made


def asked(body: bytes, key_id: str = "key", idempotency_key: str = "one") -> RepeatableRequest:
    return RepeatableRequest(
        key_id=key_id, asked="POST /x", idempotency_key=idempotency_key, body=body
    )


def taken(rate: Rate, key_id: str) -> int:
    """Take a token: 0 if there was one, else in how many seconds there will be."""
    try:
        rate.check(key_id)
    except Refusal as refused:
        return int(refused.problem.headers["Retry-After"])
    return 0


def begun(once: DoneOnce, request: RepeatableRequest) -> DoneRequest | int | None:
    """What came of it before, the status of a refusal, or none: it is to be done."""
    try:
        return once.begin(request)
    except Refusal as refused:
        return refused.problem.status


def test_a_burst_is_allowed_and_then_so_many_a_second(clock: ManualClock) -> None:
    rate = Rate(clock, per_second=2, burst=3)
    assert [taken(rate, "a") for _ in range(4)] == [0, 0, 0, 1]
    clock.advance(0.5)
    assert [taken(rate, "a") for _ in range(2)] == [0, 1]
    clock.advance(3600)
    assert [taken(rate, "a") for _ in range(4)] == [0, 0, 0, 1]


def test_each_key_has_its_own_and_a_clock_set_back_gives_nothing(clock: ManualClock) -> None:
    rate = Rate(clock, per_second=1, burst=1)
    assert taken(rate, "a") == 0
    assert taken(rate, "b") == 0
    clock.advance(-100)
    assert taken(rate, "a") == 1


def test_no_rate_is_no_limit(clock: ManualClock) -> None:
    rate = Rate(clock, per_second=0, burst=1)
    assert {taken(rate, "a") for _ in range(100)} == {0}


def test_several_processes_share_a_rate(memory: Memory, clock: ManualClock) -> None:
    """N18: together they allow what one would, also after one of them has gone."""
    one, other = ServingProcess(memory), ServingProcess(memory)
    rates = [Rate(clock, 2, 8, lambda: one.count), Rate(clock, 2, 8, lambda: other.count)]
    for each in (one, other, one):
        each.beat()
    assert [sum(taken(rate, "a") == 0 for _ in range(9)) for rate in rates] == [4, 4]
    clock.advance(1)
    assert [sum(taken(rate, "a") == 0 for _ in range(9)) for rate in rates] == [1, 1]
    clock.advance(limits.PROCESS_LASTS.total_seconds())  # the other one died
    one.beat()
    assert one.count == 1
    clock.advance(60)
    assert sum(taken(rates[0], "a") == 0 for _ in range(9)) == 8


def test_a_process_whose_store_is_closed_or_away_says_nothing(memory: Memory) -> None:
    process = ServingProcess(memory)
    process.start()
    memory.close()
    process.beat()
    process.stop()
    assert process.count == 1


def test_what_was_done_is_known_for_a_while(memory: Memory, clock: ManualClock) -> None:
    once, elsewhere = DoneOnce(memory), DoneOnce(memory)
    assert begun(once, asked(b"1")) is None
    assert begun(elsewhere, asked(b"1")) == 409
    once.keep(asked(b"1"), DONE)
    assert begun(elsewhere, asked(b"1")) == DONE
    assert begun(elsewhere, asked(b"2")) == 422
    assert begun(once, asked(b"2", key_id="other")) is None
    clock.advance(limits.DONE_KEPT.total_seconds())
    assert begun(once, asked(b"2")) is None


def test_what_failed_or_was_cut_short_may_be_asked_again(
    memory: Memory, clock: ManualClock
) -> None:
    once = DoneOnce(memory)
    assert begun(once, asked(b"1")) is None
    once.keep(asked(b"1"), None)
    assert begun(once, asked(b"1")) is None
    clock.advance(limits.UNDER_WAY_KEPT.total_seconds())
    assert begun(DoneOnce(memory), asked(b"1")) is None


def test_what_was_done_is_bounded_for_each_key(
    memory: Memory, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DONE_OF_KEY_MAX", 3)
    once = DoneOnce(memory)
    first = asked(b"", key_id="other")
    for request in (first, *(asked(b"", idempotency_key=str(n)) for n in range(5))):
        clock.advance(1)
        assert begun(once, request) is None
        once.keep(request, DONE)
    ServingProcess(memory).beat()
    assert begun(once, first) == DONE
    assert begun(once, asked(b"", idempotency_key="0")) is None
    assert begun(once, asked(b"", idempotency_key="4")) == DONE

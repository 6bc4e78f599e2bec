"""Limits of one key: requests a second, and what was done once, all of it bounded."""

from __future__ import annotations

from recollect.clock import ManualClock
from recollect.interfaces.http import limits
from recollect.interfaces.http.limits import DoneOnce, DoneRequest, Rate, place_of
from recollect.interfaces.http.problems import Refusal

PLACE = place_of("key", "POST /x", "one")
DONE = DoneRequest(status=201, ids=("a-fact",))


def taken(rate: Rate, key_id: str) -> int:
    """Take a token: 0 if there was one, else in how many seconds there will be."""
    try:
        rate.check(key_id)
    except Refusal as refused:
        return int(refused.problem.headers["Retry-After"])
    return 0


def begun(once: DoneOnce, place: bytes, body: bytes) -> DoneRequest | int | None:
    """What came of it before, the status of a refusal, or none: it is to be done."""
    try:
        return once.begin(place, body)
    except Refusal as refused:
        return refused.problem.status


def test_a_burst_is_allowed_and_then_so_many_a_second() -> None:
    clock = ManualClock()
    rate = Rate(clock, per_second=2, burst=3)
    assert [taken(rate, "a") for _ in range(4)] == [0, 0, 0, 1]
    clock.advance(0.5)
    assert [taken(rate, "a") for _ in range(2)] == [0, 1]
    clock.advance(3600)
    assert [taken(rate, "a") for _ in range(4)] == [0, 0, 0, 1]


def test_each_key_has_its_own_and_a_clock_set_back_gives_nothing() -> None:
    clock = ManualClock()
    rate = Rate(clock, per_second=1, burst=1)
    assert taken(rate, "a") == 0
    assert taken(rate, "b") == 0
    clock.advance(-100)
    assert taken(rate, "a") == 1


def test_no_rate_is_no_limit() -> None:
    rate = Rate(ManualClock(), per_second=0, burst=1)
    assert {taken(rate, "a") for _ in range(100)} == {0}


def test_what_was_done_is_known_for_a_while() -> None:
    clock = ManualClock()
    once = DoneOnce(clock)
    assert begun(once, PLACE, b"1") is None
    assert begun(once, PLACE, b"1") == 409
    once.keep(PLACE, DONE)
    assert begun(once, PLACE, b"1") == DONE
    assert begun(once, PLACE, b"2") == 422
    assert begun(once, place_of("other", "POST /x", "one"), b"2") is None
    clock.advance(limits.DONE_KEPT.total_seconds())
    assert begun(once, PLACE, b"2") is None


def test_what_failed_may_be_asked_again() -> None:
    once = DoneOnce(ManualClock())
    assert begun(once, PLACE, b"1") is None
    once.keep(PLACE, None)
    assert begun(once, PLACE, b"1") is None


def test_what_was_done_is_bounded_in_number_and_in_ids() -> None:
    once = DoneOnce(ManualClock())
    done = DoneRequest(status=200, ids=("id",) * 1000)
    places = [place_of("key", "POST /x", str(n)) for n in range(limits.IDS_MAX // 1000 + 10)]
    for place in places:
        assert begun(once, place, b"") is None
        once.keep(place, done)
    assert begun(once, places[0], b"") is None
    assert begun(once, places[-1], b"") == done

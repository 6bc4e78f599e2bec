"""Limits of one key: requests a second, and what was done once, all of it bounded."""

from __future__ import annotations

from recollect.clock import ManualClock
from recollect.interfaces.http import limits
from recollect.interfaces.http.limits import (
    DoneOnce,
    DoneRequest,
    First,
    OtherRequest,
    Rate,
    UnderWay,
    place_of,
)

PLACE = place_of("key", "POST /x", "one")
DONE = DoneRequest(status=201, ids=("a-fact",))


def test_a_burst_is_allowed_and_then_so_many_a_second() -> None:
    clock = ManualClock()
    rate = Rate(clock, per_second=2, burst=3)
    assert [rate.taken("a") for _ in range(4)] == [0, 0, 0, 1]
    clock.advance(0.5)
    assert [rate.taken("a") for _ in range(2)] == [0, 1]
    clock.advance(3600)
    assert [rate.taken("a") for _ in range(4)] == [0, 0, 0, 1]


def test_each_key_has_its_own_and_a_clock_set_back_gives_nothing() -> None:
    clock = ManualClock()
    rate = Rate(clock, per_second=1, burst=1)
    assert rate.taken("a") == 0
    assert rate.taken("b") == 0
    clock.advance(-100)
    assert rate.taken("a") == 1


def test_no_rate_is_no_limit() -> None:
    rate = Rate(ManualClock(), per_second=0, burst=1)
    assert {rate.taken("a") for _ in range(100)} == {0}


def test_what_was_done_is_known_for_a_while() -> None:
    clock = ManualClock()
    once = DoneOnce(clock)
    assert once.begin(PLACE, b"1") == First()
    assert once.begin(PLACE, b"1") == UnderWay()
    once.keep(PLACE, DONE)
    assert once.begin(PLACE, b"1") == DONE
    assert once.begin(PLACE, b"2") == OtherRequest()
    assert once.begin(place_of("other", "POST /x", "one"), b"2") == First()
    clock.advance(limits.DONE_KEPT.total_seconds())
    assert once.begin(PLACE, b"2") == First()


def test_what_failed_may_be_asked_again() -> None:
    once = DoneOnce(ManualClock())
    assert once.begin(PLACE, b"1") == First()
    once.keep(PLACE, None)
    assert once.begin(PLACE, b"1") == First()


def test_what_was_done_is_bounded_in_number_and_in_ids() -> None:
    once = DoneOnce(ManualClock())
    done = DoneRequest(status=200, ids=("id",) * 1000)
    places = [place_of("key", "POST /x", str(n)) for n in range(limits.IDS_MAX // 1000 + 10)]
    for place in places:
        assert once.begin(place, b"") == First()
        once.keep(place, done)
    assert once.begin(places[0], b"") == First()
    assert once.begin(places[-1], b"") == done

"""Limits of one key: requests a second, and answers that are given again, all of it bounded."""

from __future__ import annotations

from recollect.clock import ManualClock
from recollect.interfaces.http import limits
from recollect.interfaces.http.limits import Answers, First, Given, OtherRequest, Rate, UnderWay

PLACE = ("key", "POST /x", "one")


def answer(body: bytes = b"{}") -> Given:
    return Given(status=201, media_type="application/json", headers=(), body=body)


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


def test_the_first_answer_is_given_again_for_a_while() -> None:
    clock = ManualClock()
    answers = Answers(clock)
    assert answers.begin(PLACE, b"1") == First()
    assert answers.begin(PLACE, b"1") == UnderWay()
    answers.keep(PLACE, answer())
    assert answers.begin(PLACE, b"1") == answer()
    assert answers.begin(PLACE, b"2") == OtherRequest()
    assert answers.begin(("other", *PLACE[1:]), b"2") == First()
    clock.advance(limits.ANSWERS_KEPT.total_seconds())
    assert answers.begin(PLACE, b"2") == First()


def test_what_failed_or_is_large_may_be_asked_again() -> None:
    answers = Answers(ManualClock())
    for kept in (None, answer(b"x" * (limits.ANSWER_BYTES_MAX + 1))):
        assert answers.begin(PLACE, b"1") == First()
        answers.keep(PLACE, kept)
    assert answers.begin(PLACE, b"1") == First()


def test_answers_are_bounded_in_number_and_in_bytes() -> None:
    answers = Answers(ManualClock())
    body = b"x" * limits.ANSWER_BYTES_MAX
    count = limits.ANSWERS_BYTES_MAX // len(body) + 10
    for number in range(count):
        place = ("key", "POST /x", str(number))
        assert answers.begin(place, b"") == First()
        answers.keep(place, answer(body))
    assert answers.begin(("key", "POST /x", "0"), b"") == First()
    assert answers.begin(("key", "POST /x", str(count - 1)), b"") == answer(body)

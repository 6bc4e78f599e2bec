"""The clocks, and times as the store keeps them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from recollect.clock import ManualClock, SystemClock, from_micros, to_micros


def test_the_system_clock_tells_an_aware_time_in_utc() -> None:
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert now.tzinfo is UTC
    assert before <= now <= datetime.now(UTC)


def test_a_manual_clock_stands_still_until_it_is_told_to_move() -> None:
    clock = ManualClock()
    start = clock.now()
    assert clock.now() == start
    assert clock.advance(1.5) == start + timedelta(seconds=1.5)
    assert clock.now() == start + timedelta(seconds=1.5)


def test_a_manual_clock_starts_when_it_is_told_to() -> None:
    start = datetime(2030, 5, 6, tzinfo=UTC)
    assert ManualClock(start).now() == start


def test_the_epoch_is_zero() -> None:
    assert to_micros(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    assert to_micros(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1


def test_a_time_in_another_zone_is_the_same_moment() -> None:
    there = datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert to_micros(there) == 0


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_survives_the_way_through_the_store(moment: datetime) -> None:
    assert from_micros(to_micros(moment)) == moment
    assert from_micros(to_micros(moment)).tzinfo is UTC

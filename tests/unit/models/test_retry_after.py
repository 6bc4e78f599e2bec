"""When to ask again, in every form that providers say it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.models.faults import RETRY_AFTER_SECONDS_MAX, retry_after_seconds

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
EPOCH = int(NOW.timestamp())


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": " 2 "}, 2.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 13:00:30 +0100"}, 30.0),
        ({"retry-after": "Thursday, 01-Jan-26 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu Jan  1 12:00:30 2026"}, 30.0),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "1m2.5s"}, 62.5),
        ({"x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-reset": "45"}, 45.0),
        ({"ratelimit-reset": "45"}, 45.0),
        ({"x-ratelimit-reset": str(EPOCH + 20)}, 20.0),
        ({"x-ratelimit-reset": str((EPOCH + 20) * 1000)}, 20.0),
        ({"anthropic-ratelimit-requests-reset": "2026-01-01T12:00:15Z"}, 15.0),
        ({"anthropic-ratelimit-input-tokens-reset": "2026-01-01T13:00:15+01:00"}, 15.0),
    ],
)
def test_every_form_is_understood(headers: dict[str, str], seconds: float) -> None:
    assert retry_after_seconds(headers, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    ["", "soon", "nan", "inf", "-inf", "1e999", "12 parsecs", "Thu, 99 Jan 2026 12:00:30 GMT"],
)
def test_what_says_nothing_is_no_time(value: str) -> None:
    headers = {"retry-after": value, "retry-after-ms": value, "x-ratelimit-reset": value}
    assert retry_after_seconds(headers, NOW) is None


def test_an_unreadable_retry_after_leaves_the_word_to_the_resets() -> None:
    assert retry_after_seconds({"retry-after": "soon", "x-ratelimit-reset": "4"}, NOW) == 4.0


def test_the_latest_reset_of_the_limits_that_are_used_up_counts() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "10s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "20s",
        "anthropic-ratelimit-tokens-remaining": "5000",
        "anthropic-ratelimit-tokens-reset": "2026-01-01T12:50:00Z",
    }
    assert retry_after_seconds(headers, NOW) == 20.0


def test_a_limit_with_something_left_is_no_reason_to_wait() -> None:
    headers = {"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "10s"}
    assert retry_after_seconds(headers, NOW) is None


def test_a_date_counts_from_the_clock_of_the_server_that_sent_it() -> None:
    headers = {
        "date": "Thu, 01 Jan 2026 15:00:00 GMT",
        "retry-after": "Thu, 01 Jan 2026 15:00:05 GMT",
    }
    assert retry_after_seconds(headers, NOW) == 5.0


@pytest.mark.parametrize("value", ["-5", "Thu, 01 Jan 2025 12:00:00 GMT"])
def test_a_time_that_has_passed_is_now(value: str) -> None:
    assert retry_after_seconds({"retry-after": value}, NOW) == 0.0


@pytest.mark.parametrize("value", ["999999999", "Fri, 01 Jan 2100 00:00:00 GMT"])
def test_nobody_waits_for_years(value: str) -> None:
    assert retry_after_seconds({"retry-after": value}, NOW) == RETRY_AFTER_SECONDS_MAX

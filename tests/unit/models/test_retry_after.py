"""When to ask again, in the forms of the header that says it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.models.answers import RETRY_AFTER_SECONDS_MAX, retry_after_seconds
from tests.tables import every_row

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@every_row(
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
    ],
)
def test_every_form_is_understood(headers: dict[str, str], seconds: float) -> None:
    assert retry_after_seconds(headers, NOW) == pytest.approx(seconds)


@every_row(
    "value",
    ["", "soon", "nan", "inf", "-inf", "1e999", "12 parsecs", "Thu, 99 Jan 2026 12:00:30 GMT"],
)
def test_what_says_nothing_is_no_time(value: str) -> None:
    headers = {"retry-after": value, "retry-after-ms": value}
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

"""Times as people write them on a page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from recollect.errors import InvalidValue
from recollect.interfaces.web.view import read_moment
from tests.tables import every_row


@every_row(
    ("given", "meant"),
    [
        ("", None),
        (" ", None),
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        (" 2026-01-31T12:00 ", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00+02:00", datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_a_time_is_in_utc_unless_it_says_otherwise(given: str, meant: datetime | None) -> None:
    assert read_moment(given) == meant


@pytest.mark.parametrize("given", ["soon", "2026-13-01", "0", "9" * 5000, "2026-01-31T25:00"])
def test_what_is_no_time_is_said_to_be_none(given: str) -> None:
    with pytest.raises(InvalidValue, match="a time is written as"):
        read_moment(given)

"""Errors as a log may tell them (N9)."""

from __future__ import annotations

import pytest

from recollect.errors import (
    InvalidOutput,
    InvalidValue,
    ModelDenied,
    ModelUnavailable,
    SpendCapReached,
    StoreError,
    StoreUnavailable,
)
from recollect.observing.log_text import loggable, trail
from tests.tables import every_row


@every_row(
    ("error", "shown"),
    [
        (StoreUnavailable("db: no connection"), "StoreUnavailable: db: no connection"),
        (SpendCapReached("100 calls", delay_seconds=1), "SpendCapReached: 100 calls"),
        (
            ModelDenied("api:443 answered 401: your words", delay_seconds=1),
            "ModelDenied: api:443 answered 401",
        ),
        (
            ModelUnavailable("api:443 cannot be reached: x"),
            "ModelUnavailable: api:443 cannot be reached",
        ),
        (InvalidOutput("facts[0] names your words"), "InvalidOutput"),
        (InvalidValue("not a space: your words"), "InvalidValue"),
        (StoreError("Key (id)=(your words) exists"), "StoreError"),
        (KeyError("your words"), "KeyError"),
    ],
)
def test_an_error_is_told_in_words_of_ours_alone(error: Exception, shown: str) -> None:
    assert loggable(error) == shown
    assert "your words" not in shown


def test_a_trail_says_where_it_came_from_and_nothing_else() -> None:
    def inner() -> None:
        raise ValueError("your words")

    with pytest.raises(ValueError, match="your words") as caught:
        inner()
    shown = trail(caught.value)
    assert shown.startswith("ValueError in inner:")
    assert "your words" not in shown
    assert trail(KeyError("your words")) == "KeyError"

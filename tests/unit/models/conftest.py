"""What the tests of the models share: both protocols, and a pause that only takes notes."""

from __future__ import annotations

import pytest

from recollect.clock import ManualClock


class Pauses:
    """Waits between tries that take no time; with a clock, it moves on instead."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.total = 0.0
        self._clock = clock

    def __call__(self, seconds: float) -> None:
        self.total += seconds
        if self._clock is not None:
            self._clock.advance(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)

"""What an answer cost."""

from __future__ import annotations

from recollect.config import Settings
from recollect.models.protocol import Usage, cost_micros

USAGE = Usage(input_tokens=2_000_000, output_tokens=500)


def test_a_cost_is_tokens_times_the_price_of_each_side() -> None:
    settings = Settings(model_input_price=0.15, model_output_price=0.6)
    assert cost_micros(USAGE, settings) == 300_000 + 300


def test_a_model_may_charge_for_one_side_only() -> None:
    assert cost_micros(USAGE, Settings(model_output_price=2.0)) == 1000


def test_without_a_price_the_cost_is_unknown_and_not_nothing() -> None:
    assert cost_micros(USAGE, Settings()) is None

"""What an answer cost, from its tokens and the prices in the settings."""

from __future__ import annotations

from recollect.config import Settings
from recollect.models.protocol import Usage


def cost_micros(usage: Usage, settings: Settings) -> int | None:
    """Millionths of the currency that the prices are in; None where no price is known.

    Prices are per million tokens, so a token costs its price in millionths.
    """
    if not settings.model_input_price and not settings.model_output_price:
        return None
    sent = usage.input_tokens * settings.model_input_price
    answered = usage.output_tokens * settings.model_output_price
    return round(sent + answered)

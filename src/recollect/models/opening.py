"""Opens the way to the model that the settings and the environment name."""

from __future__ import annotations

import os
from collections.abc import Mapping

from recollect.clock import Clock, SystemClock
from recollect.config import Settings
from recollect.ids import SYSTEM_RANDOMNESS, Randomness
from recollect.models.http import HttpModel
from recollect.models.protocol import WINDOW_TOKENS, WINDOW_TOKENS_SMALL, Model, Pause
from recollect.models.providers import chosen, wire_to
from recollect.models.served import ModelDetails


def open_model(
    settings: Settings,
    environ: Mapping[str, str] | None = None,
    *,
    randomness: Randomness = SYSTEM_RANDOMNESS,
    clock: Clock | None = None,
    pause: Pause | None = None,
) -> Model | None:
    """The model of the settings; None when none is set. `pause` waits between tries."""
    if settings.model is None:
        return None
    variables = os.environ if environ is None else environ
    clock = clock or SystemClock()
    place, model = chosen(settings, variables)
    details = ModelDetails(place, model, variables, clock) if place.can_be_asked else None
    is_small = place.is_near and details is not None
    return HttpModel(
        wire_to(place, model),
        settings,
        clock=clock,
        randomness=randomness,
        pause=pause,
        server=details,
        window_tokens=WINDOW_TOKENS_SMALL if is_small else WINDOW_TOKENS,
    )

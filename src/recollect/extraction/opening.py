"""Finds the extractor that the settings ask for, and makes a processor of it."""

from __future__ import annotations

from recollect.clock import Clock
from recollect.config import Settings
from recollect.errors import InvalidSetting
from recollect.extraction.model import ModelExtractor
from recollect.extraction.piece import Extractor
from recollect.extraction.rules import RuleExtractor
from recollect.extraction.run import ExtractionProcessor
from recollect.extraction.spend import Budget
from recollect.models.protocol import Model
from recollect.redaction import Redactor
from recollect.store.protocol import Store


def open_processor(
    store: Store,
    settings: Settings,
    clock: Clock,
    redactor: Redactor,
    model: Model | None,
    budget: Budget | None = None,
) -> ExtractionProcessor:
    """A processor for one worker, with the budget of all that the worker does, or its own."""
    extractor = _extractor(settings, redactor, model)
    return ExtractionProcessor(store, settings, clock, redactor, extractor, budget)


def _extractor(settings: Settings, redactor: Redactor, model: Model | None) -> Extractor | None:
    match settings.extractor:
        case "none":
            return None
        case "model" if model is None:
            raise InvalidSetting(
                "extractor is model and no model is set: set model (RECOLLECT_MODEL), or extractor "
                "to rules"
            )
        case "model" | "auto" if model is not None:
            return ModelExtractor(model=model, settings=settings, redact=redactor.redact)
        case "rules" | "auto":
            return RuleExtractor()
        case other:
            raise AssertionError(f"an extractor the settings do not have: {other}")

"""Who observes a store, as the settings say."""

from __future__ import annotations

from recollect.clock import Clock
from recollect.config import Settings
from recollect.observing.metrics import VERBS
from recollect.observing.seam import Observer
from recollect.observing.traces import VerbSpans
from recollect.store.auditing import Auditor
from recollect.store.observed import ObservedStore
from recollect.store.protocol import Store


def observe(store: Store, settings: Settings, clock: Clock) -> Store:
    """The store with its observers around it; itself where nobody looks."""
    observers: list[Observer] = []
    if settings.metrics:
        observers.append(VERBS)
    if settings.traces:
        observers.append(VerbSpans())
    if settings.audit != "off":  # the last: what it does is measured as well
        observers.append(Auditor(store.audit, clock, reads=settings.audit == "all"))
    return ObservedStore(store, observers) if observers else store

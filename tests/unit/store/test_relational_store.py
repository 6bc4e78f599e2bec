"""The relational store: its aggregates are there when they are asked for, each once."""

from __future__ import annotations

import pytest

from recollect.clock import SystemClock
from recollect.config import Settings
from recollect.store.opening import open_store
from recollect.store.verbs import AGGREGATES


def test_every_aggregate_is_made_once_and_nothing_else_is_there() -> None:
    store = open_store(":memory:", Settings(), SystemClock())
    try:
        for name in AGGREGATES.keys() - {"vector_search"}:
            assert type(getattr(store, name)).__name__.removeprefix("Relational") == "".join(
                part.capitalize() for part in name.split("_")
            )
            assert getattr(store, name) is getattr(store, name)
        with pytest.raises(AttributeError, match="weather"):
            store.weather  # type: ignore[attr-defined]  # noqa: B018
    finally:
        store.close()

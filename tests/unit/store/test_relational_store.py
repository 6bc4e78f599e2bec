"""The relational store: its aggregates are there when they are asked for, each once."""

from __future__ import annotations

import pytest

import recollect
from recollect.clock import SystemClock
from recollect.config import Settings
from recollect.errors import NotFound
from recollect.store.opening import open_store
from recollect.store.protocol import Store


def test_every_aggregate_is_made_once_and_nothing_else_is_there() -> None:
    store = open_store(":memory:", Settings(), SystemClock())
    try:
        for name, kind in Store.__annotations__.items():
            assert type(getattr(store, name)).__name__ == kind
            assert getattr(store, name) is getattr(store, name)
        with pytest.raises(AttributeError, match="weather"):
            store.weather  # type: ignore[attr-defined]  # noqa: B018
    finally:
        store.close()


def test_a_key_whose_session_is_gone_is_found_again_with_the_one_before(store_url: str) -> None:
    """P11: older versions could forget the session that a key names, and leave the key."""
    with recollect.open(store_url) as memory:
        session = memory.space("s").session("k")
        session.append("user", "one")
        ref = memory.store.sessions.find_key("s", "k", session.state.agent_id)
        assert ref is not None
        nowhere = {"space": "s", "key_id": ref.key_id, "session_id": "gone"}
        memory.store._database.write("s", lambda c: c.run("point_key", nowhere))  # type: ignore[attr-defined]
        with pytest.raises(NotFound, match="open it again"):
            session.append("user", "two")
        memory.space("s").session("k").append("user", "two")
        assert [record.content for record in session.all()] == ["one", "two"]

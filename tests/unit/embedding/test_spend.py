"""Embeddings are booked as a model's calls are: what they took, and what a space may use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import ModelError, SpendCapReached
from recollect.types.facts import CallOutcome
from recollect_conformance.scripted import ScriptedServer, status
from recollect_conformance.scripted_embedder import USAGE_TOKENS, HashEmbedder, embeddings_by


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(embeddings_by(HashEmbedder())) as server:
        yield server


def opened(store_url: str, server: ScriptedServer, **settings: Any) -> recollect.Memory:
    given = {"embedder": "openai:m", "embedder_base_url": server.url, "model_retries": 0}
    return recollect.open(store_url, settings={**given, **settings}, clock=ManualClock())


def test_what_vectors_take_is_in_the_ledger_of_their_space(
    store_url: str, server: ScriptedServer
) -> None:
    with opened(store_url, server) as memory:
        memory.space("a").facts.add("a red car")
        memory.space("b").facts.add("a blue car")
        memory.work()
        for name in ("a", "b"):
            spent = memory.status(name).spent_today
            assert (spent.calls, spent.input_tokens) == (1, USAGE_TOKENS)
        [call] = memory.store.ledger.calls("a", None, 10, None)
        assert (call.purpose, call.model, call.outcome) == (
            "embed",
            "openai:m",
            CallOutcome.ANSWERED,
        )
        memory.space("a").recall("car")
        assert memory.status("a").spent_today.calls == 1, "recall writes nothing"


def test_a_space_that_may_use_no_more_waits_and_the_others_go_on(
    store_url: str, server: ScriptedServer
) -> None:
    """X11."""
    with opened(store_url, server, spend_calls_per_day=1) as memory:
        memory.space("a").facts.add("a red car")
        memory.work()
        memory.space("a").facts.add("a blue car")
        memory.space("b").facts.add("a green car")
        asked = len(server.requests)
        memory.work()
        assert len(server.requests) == asked + 1
        assert memory.status("b").spent_today.calls == 1
        assert memory.status("a").spent_today.calls == 1
        with pytest.raises(SpendCapReached):
            memory.pipeline.embed_some()


def test_a_request_that_failed_is_settled_too(store_url: str) -> None:
    with ScriptedServer(lambda _: status(400, "no")) as server, opened(store_url, server) as memory:
        memory.space("a").facts.add("a red car")
        with pytest.raises(ModelError):
            memory.pipeline.embed_some()
        [call] = memory.store.ledger.calls("a", None, 10, None)
        assert call.outcome is CallOutcome.FAILED
        assert call.input_tokens == 0


def test_an_embedder_that_nobody_is_paid_for_is_in_no_ledger(store_url: str) -> None:
    with recollect.open(store_url, settings={}, embedder=HashEmbedder()) as memory:
        memory.space("a").facts.add("a red car")
        memory.work()
        assert memory.store.ledger.calls("a", None, 10, None) == []

"""N8: what a graph keeps in a LangGraph store is memory like any other, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.store.base import PutOp

import recollect
from recollect.adapters.langgraph_store import RecollectStore
from recollect.errors import TooLarge

THREADS, ROUNDS = 4, 5


def test_items_survive_a_restart_are_recalled_with_the_rest_and_no_pipeline_changes_them(
    durable_store_url: str,
) -> None:
    with recollect.open(durable_store_url) as memory:
        alice = memory.space("alice")
        store = RecollectStore(alice)
        store.put(("users", "will"), "food", {"memory": "Will likes ramen", "stars": 5})
        store.put(("users", "will"), "food", {"memory": "Will likes udon", "stars": 4})
        store.put(("users", "Will"), "food", {"memory": "another Will"})
        alice.session("telegram:42").append("user", "I have moved to Lisbon, remember that.")
        memory.work(all=True)
    with recollect.open(durable_store_url) as memory:
        alice = memory.space("alice")
        store = RecollectStore(alice)
        item = store.get(("users", "will"), "food")
        assert item is not None
        assert item.value == {"memory": "Will likes udon", "stars": 4}
        assert store.list_namespaces() == [("users", "Will"), ("users", "will")]
        [hit] = alice.recall("udon")
        assert "Will likes udon" in hit.text
        assert [each.number for each in alice.documents.history(hit.id)] == [2, 1]
        assert store.search(("users",), query="Lisbon")[0].score is None
        assert memory.space("bob").recall("udon") == []
        assert RecollectStore(memory.space("bob")).search(()) == []


def test_a_batch_is_put_as_a_whole_or_not_at_all_also_by_many_at_once(store_url: str) -> None:
    with recollect.open(store_url) as memory:
        space = memory.space("alice")
        stores = [RecollectStore(space) for _ in range(THREADS)]

        def put(store: RecollectStore, writer: int) -> None:
            for turn in range(ROUNDS):
                value = {"writer": writer, "turn": turn}
                store.batch([PutOp(("n", label), "k", value) for label in "abc"])

        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(put, stores, range(THREADS)))
        values = [item.value for item in stores[0].search(("n",))]
        assert len(values) == 3
        assert all(value == values[0] for value in values)
        with pytest.raises(TooLarge):
            stores[0].batch(
                [PutOp(("n", "a"), "k", {}), PutOp(("n", "b"), "k", {"x": "y" * 300_000})]
            )
        assert [item.value for item in stores[0].search(("n",))] == values

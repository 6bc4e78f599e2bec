"""N8: mem0's verbs over the whole path on both databases, with a model that fails at first."""

from __future__ import annotations

from typing import Any

import recollect
from recollect.clock import ManualClock
from recollect.compat.mem0 import Memory
from recollect_conformance.scripted import ScriptedServer, status
from tests.scripted_answers import OTHERS_BY_RULES, extracted, fact

ALICE: dict[str, Any] = {"user_id": "alice"}


def test_what_was_said_while_the_model_was_down_is_learned_later_and_outlives_a_restart(
    durable_store_url: str,
) -> None:
    clock = ManualClock()
    with ScriptedServer(
        [status(503, "down"), extracted(fact("Alice lives in Lisbon.", [1]))]
    ) as server:
        settings = {
            "model": "openai:scripted",
            "model_base_url": server.url,
            **OTHERS_BY_RULES,
            "model_retries": 0,
            "consolidation": "off",
        }
        with recollect.open(durable_store_url, settings=settings, clock=clock) as memory:
            client = Memory(memory, clock=clock)
            answer = client.add("I live in Lisbon.", agent_id="a1", **ALICE)
            assert answer == {"results": [], "pending": True}
            assert client.get_all(filters=ALICE) == {"results": []}
            clock.advance(3600)
            memory.work()
            [learned] = client.get_all(filters={**ALICE, "agent_id": "a1"})["results"]
            assert learned["memory"] == "Alice lives in Lisbon."
    with recollect.open(durable_store_url, clock=clock) as memory:
        client = Memory(memory, clock=clock)
        assert client.get(learned["id"]) == {**learned, "score": None}
        client.delete(learned["id"])
        assert client.search("Lisbon", filters=ALICE) == {"results": []}
        # Its session does not bring it back.
        memory.work(all=True)
        assert client.get_all(filters=ALICE) == {"results": []}


def test_what_was_deleted_can_be_added_again(durable_store_url: str) -> None:
    """N8, T4: all a user says is one conversation, which goes on after a deletion."""
    with recollect.open(durable_store_url, settings={"consolidation": "off"}) as memory:
        client = Memory(memory)
        for verb in ("delete", "delete_all", "update"):
            [known] = client.add("I like coffee.", **ALICE)["results"]
            assert (known["memory"], known["event"]) == ("The user likes coffee.", "ADD")
            if verb == "delete_all":
                client.delete_all(**ALICE)
            else:
                getattr(client, verb)(known["id"], *(["Alice likes tea."] * (verb == "update")))
            memory.work(all=True, again=True)
            left = [each["memory"] for each in client.get_all(filters=ALICE)["results"]]
            assert "The user likes coffee." not in left
        [again] = client.add("I like coffee.", **ALICE)["results"]
        memory.work(again=True)
        assert client.get(again["id"]) is not None

"""N8, N9: requests as a user of mem0's REST server sends them, and the answers they expect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import recollect
from recollect.compat import mem0
from recollect.types.access import Scope
from tests.e2e.http_world import World

SAID = [
    {"role": "user", "content": "I moved to Lisbon in May."},
    {"role": "assistant", "content": "Nice to meet you, Alice!"},
]


@pytest.fixture
def world() -> Iterator[World]:
    with recollect.open(":memory:") as memory:
        yield World(memory)


def ask(world: World, method: str, path: str, secret: str, **more: Any) -> Any:
    """What a good answer holds."""
    answer = world.ask(method, f"/mem0{path}", secret, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def memories(world: World, secret: str, query: str) -> list[str]:
    found = ask(world, "GET", f"/memories?{query}", secret)["results"]
    return [each["memory"] for each in found]


def test_a_conversation_is_learned_found_changed_and_deleted(world: World) -> None:
    secret = world.key()
    body = {"messages": SAID, "user_id": "alice", "metadata": {"topic": "home"}}
    added = ask(world, "POST", "/memories", secret, json=body)
    assert [each["event"] for each in added["results"]] == ["ADD"]
    assert "pending" not in added
    asked = {"query": "Who moved to Lisbon?", "user_id": "alice", "filters": {"topic": "home"}}
    [found] = ask(world, "POST", "/search", secret, json=asked)["results"]
    assert found["id"] == added["results"][0]["id"]
    assert 0 < found["score"] <= 1
    one = f"/memories/{found['id']}"
    assert ask(world, "GET", one, secret)["memory"] == found["memory"]
    ask(world, "PUT", one, secret, json={"text": "Alice lives in Porto.", "metadata": {"n": 1}})
    changed = ask(world, "GET", one, secret)
    assert changed["memory"] == "Alice lives in Porto."
    assert changed["metadata"].items() >= {"topic": "home", "n": 1}.items()
    ask(world, "DELETE", one, secret)
    assert world.ask("GET", f"/mem0{one}", secret).status_code == 404
    events = [each["event"] for each in ask(world, "GET", f"{one}/history", secret)]
    assert events == ["ADD", "UPDATE", "DELETE"]


def test_what_is_one_users_agents_or_runs_is_listed_and_deleted_by_it(world: World) -> None:
    secret = world.key()
    kept: dict[str, Any] = {"infer": False}
    for words, whose in (
        ("Tea.", {"user_id": "alice", "agent_id": "butler"}),
        ("Rain.", {"user_id": "alice", "run_id": "r1"}),
        ("Nobody's.", {"agent_id": "butler"}),
    ):
        ask(world, "POST", "/memories", secret, json={"messages": words, **whose, **kept})
    assert memories(world, secret, "user_id=alice") == ["Rain.", "Tea."]
    assert memories(world, secret, "user_id=alice&limit=1") == ["Rain."]
    assert memories(world, secret, "agent_id=butler") == ["Nobody's."]
    ask(world, "DELETE", "/memories?user_id=alice&agent_id=butler", secret)
    assert memories(world, secret, "user_id=alice") == ["Rain."]
    nobodys = world.ask("GET", "/mem0/memories", secret)
    assert nobodys.status_code == 422
    assert "user_id" in nobodys.json()["detail"]


def test_a_key_of_one_space_is_that_user_and_no_other(world: World) -> None:
    everyones, alices = world.key(), world.key("alice")
    for user in ("alice", "bob"):
        body = {"messages": f"{user} drinks tea.", "user_id": user, "infer": False}
        ask(world, "POST", "/memories", everyones, json=body)
    added = {"messages": "Left out.", "agent_id": "butler", "infer": False}
    ask(world, "POST", "/memories", alices, json=added)
    assert memories(world, alices, "agent_id=butler") == ["Left out."]
    assert memories(world, everyones, "user_id=alice") == ["Left out.", "alice drinks tea."]
    assert world.ask("GET", "/mem0/memories?user_id=bob", alices).status_code == 404
    ask(world, "POST", "/reset", alices)
    assert memories(world, everyones, "user_id=alice") == []
    assert memories(world, everyones, "user_id=bob") == ["bob drinks tea."]
    ask(world, "POST", "/reset", everyones)
    assert memories(world, everyones, "user_id=bob") == []


def test_a_key_may_come_as_mem0s_clients_send_it_and_there_alone(world: World) -> None:
    header = {"X-API-Key": world.key("alice", Scope.READ)}
    assert world.ask("GET", "/mem0/memories?user_id=alice", headers=header).status_code == 200
    assert world.ask("POST", "/mem0/reset", headers=header).status_code == 403
    assert world.ask("GET", "/v1/spaces", headers=header).status_code == 401
    wrong = {**header, "Authorization": "Bearer none"}
    assert world.ask("GET", "/mem0/memories?user_id=alice", headers=wrong).status_code == 401


def test_what_a_worker_of_the_server_learns_is_waited_for(world: World) -> None:
    """`recollect serve` has one that may be faster than the request."""
    world.memory.worker().start()
    secret = world.key()
    for number in range(5):
        body = {"messages": [SAID[0]], "user_id": f"user-{number}"}
        answer = ask(world, "POST", "/memories", secret, json=body)
        assert [len(answer["results"]), answer.get("pending")] == [1, None]


def test_who_finds_no_place_to_wait_is_told_that_it_is_learned_later(world: World) -> None:
    """A slow model keeps only some threads of the server; whoever comes then does not wait."""
    client = mem0.Memory(world.memory, learners_max=0)
    assert client.add(SAID, user_id="alice") == {"results": [], "pending": True}
    world.memory.work()
    [found] = client.get_all(user_id="alice")["results"]
    assert "Lisbon" in found["memory"]

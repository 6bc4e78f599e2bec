"""Agents over HTTP: said once, kept at once, answered by whoever runs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import recollect
from recollect.interfaces.http.app import Api
from tests.e2e.http_world import UNLIMITED, World

MESSAGES = "/v1/spaces/home/agents/assistant/messages"


@pytest.fixture
def world() -> Iterator[World]:
    with recollect.open(":memory:") as memory:
        yield World(memory)


def said(world: World, secret: str, words: str, **more: Any) -> Any:
    headers = {"Idempotency-Key": more.pop("once")} if "once" in more else {}
    return world.ask("POST", MESSAGES, secret, json={"text": words, **more}, headers=headers)


def test_what_is_said_is_kept_at_once_and_answered_when_somebody_runs_the_agent(
    world: World,
) -> None:
    secret = world.key("home")
    world.memory.space("home").facts.add("Ana lives in Porto.")
    answer = said(world, secret, "Where does Ana live?", once="m-1")
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")
    at = f"{MESSAGES}/{answer.json()['id']}"
    assert world.ask("GET", at, secret).json()["state"] == "pending"
    with world.memory.agents() as elsewhere:
        elsewhere.tick()
    told = world.ask("GET", at, secret)
    assert (told.status_code, told.json()["state"]) == (200, "answered")
    assert "Porto" in told.json()["reply"]["text"]
    again = said(world, secret, "Where does Ana live?", once="m-1", wait_seconds=5)
    assert again.json()["reply"]["text"] == told.json()["reply"]["text"]
    history = world.memory.space("home").session("main", "assistant").all()
    assert [record.role for record in history] == ["user", "assistant"]
    [agent] = world.ask("GET", "/v1/spaces/home/agents", secret).json()["agents"]
    assert (agent["name"], agent["queued"]) == ("assistant", 0)


def test_other_words_under_a_used_key_are_refused_and_never_said(world: World) -> None:
    secret = world.key("home")
    first = said(world, secret, "My cat is Tom.", once="m-1")
    for _ in range(2):
        assert said(world, secret, "Delete my account.", once="m-1").status_code == 422
        with world.memory.agents() as elsewhere:
            elsewhere.tick()
    again = said(world, secret, "My cat is Tom.", once="m-1", wait_seconds=5)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    history = world.memory.space("home").session("main", "assistant").all()
    assert [each.content for each in history if each.role == "user"] == ["My cat is Tom."]


def test_a_server_that_runs_an_agent_answers_by_itself(world: World) -> None:
    world.memory.space("home").facts.add("Ana lives in Porto.")
    api = Api(world.memory, UNLIMITED, ["assistant"])
    world.app = api.beside()
    api.start()
    answer = said(world, world.key("home"), "Where does Ana live?", wait_seconds=30)
    assert (answer.status_code, answer.json()["state"]) == (200, "answered")
    assert "Porto" in answer.json()["reply"]["text"]


def test_an_agent_that_is_not_run_here_is_left_to_others(world: World) -> None:
    api = Api(world.memory, UNLIMITED, ["another"])
    world.app = api.beside()
    api.start()
    answer = said(world, world.key("home"), "Hello?", wait_seconds=1)
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")


def test_what_was_never_said_is_not_found_and_nothing_is_made_for_it(world: World) -> None:
    secret = world.key("home")
    for agent in ("assistant", "nobody", "%2Fmemory-agent%2Fx"):
        path = f"/v1/spaces/home/agents/{agent}/messages/none"
        assert world.ask("GET", path, secret).status_code == 404
    assert world.memory.space("home").sessions.list(10) == []
    said(world, secret, "Hello?")
    assert world.ask("GET", f"{MESSAGES}/none", secret).status_code == 404
    for body in ({}, {"text": " "}, {"text": "x", "wait_seconds": 61}, {"text": 1}):
        assert world.ask("POST", MESSAGES, secret, json=body).status_code == 422


def test_a_name_is_never_a_descriptor(world: World) -> None:
    """P12: nobody speaks to a memory-agent by calling an agent so."""
    path = "/v1/spaces/home/agents/%2Fmemory-agent%2Fassistant/messages"
    secret = world.key("home")
    assert world.ask("POST", path, secret, json={"text": "write this"}).status_code == 202
    [agent] = world.ask("GET", "/v1/spaces/home/agents", secret).json()["agents"]
    assert (agent["type"], agent["name"]) == ("user", "/memory-agent/assistant")

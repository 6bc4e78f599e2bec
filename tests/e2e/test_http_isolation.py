"""P9: three spaces with canaries, every route, every wrong key: nothing leaks, nothing changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest

import recollect
from recollect.interfaces.http.route import Reach, Route
from recollect.store.key_protocol import Scope
from tests.e2e.http_world import EXAMPLES, STREAMS, Call, World, send

CANARIES = {"alice": "heron", "bob": "osprey", "carol": "bittern"}
NOWHERE = "not-there"
CHANGING = frozenset({"date", "x-request-id"})


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with recollect.open(":memory:") as memory:
        made = World(memory)
        for space, canary in CANARIES.items():
            made.fill(space, canary)
        yield made


def example(world: World, route: Route, space: str) -> Call:
    return Call() if route.name in STREAMS else EXAMPLES[route.name](world, space)


def seen(response: httpx2.Response) -> tuple[int, Mapping[str, str], bytes]:
    headers = {name: each for name, each in response.headers.items() if name not in CHANGING}
    return response.status_code, headers, response.content


def leaks(response: httpx2.Response, own: str) -> list[str]:
    """The canaries of others in an answer."""
    said = (response.text + str(response.headers)).lower()
    return [canary for space, canary in CANARIES.items() if space != own and canary in said]


def everything(world: World) -> Any:
    """What the spaces hold, to see whether somebody changed it."""
    held = [world.memory.space(name) for name in CANARIES]
    return [
        (
            space.sessions.list(1000),
            space.facts.list(1000, every=True),
            space.documents.tree(limit=1000),
            space.generations.state(),
            world.memory.status(space.name).jobs,
        )
        for space in held
    ]


@pytest.mark.parametrize("owner", CANARIES)
def test_a_space_that_a_key_does_not_open_looks_like_one_that_is_not_there(
    world: World, owner: str
) -> None:
    routes = [route for route in world.api.routes if route.reach is Reach.SPACE]
    calls = {route.name: example(world, route, owner) for route in routes}
    before = everything(world)
    for other in CANARIES.keys() - {owner}:
        for scope in Scope:

            async def talk(client: httpx2.AsyncClient, other: str = other) -> None:
                for route in routes:
                    call = calls[route.name]
                    theirs = await send(client, route, owner, call)
                    nobodys = await send(client, route, NOWHERE, call)
                    assert seen(theirs) == seen(nobodys), route.name
                    assert theirs.status_code == 404
                    assert leaks(theirs, other) == []

            world.run(talk, world.key(other, scope))
    assert everything(world) == before


def test_what_belongs_to_the_store_is_not_there_for_the_key_of_a_space(world: World) -> None:
    async def talk(client: httpx2.AsyncClient) -> None:
        for route in world.api.routes:
            if route.reach is Reach.STORE:
                response = await send(client, route, "alice", Call())
                assert seen(response) == seen(await client.get("/v1/nothing")), route.name
        listed = await client.get("/v1/spaces")
        assert listed.json() == {"spaces": [{"name": "alice"}], "next": None}
        described = await client.get("/v1/openapi.json")
        assert leaks(described, "alice") == []

    world.run(talk, world.key("alice"))


def test_a_foreign_id_looks_like_a_missing_one(world: World) -> None:
    """Whoever knows an id of another space learns nothing from asking for it in their own."""
    bob = world.memory.space("bob")
    foreign = {
        "session": world.learned("bob"),
        "fact": bob.facts.list(1)[0].id,
        "path": bob.documents.read("~/memory/notes/osprey").id,
        "number": "2",
    }
    missing = {**foreign} | {
        name: value[:-4] + ("0000" if value[-4:] != "0000" else "1111")
        for name, value in foreign.items()
        if name != "number"
    }
    before = everything(world)[1]

    def named(route: Route, call: Call, ids: Mapping[str, str]) -> Call:
        body = call.body
        if isinstance(body, dict) and "session" in body:
            body = {**body, "session": ids["session"]}
        query = {**call.query} | ({"path": ids["path"]} if "path" in route.needs else {})
        query |= {"session": ids["session"]} if "session" in route.query else {}
        places = {name: ids[name] for name in call.places}
        return Call(places=places, query=query, body=body)

    async def talk(client: httpx2.AsyncClient) -> int:
        asked = 0
        for route in world.api.routes:
            call = example(world, route, "alice")
            by_id = call.places or "path" in route.needs or "session" in route.query
            by_id = by_id or (isinstance(call.body, dict) and "session" in call.body)
            if not by_id or "number" in call.places:
                continue
            theirs = await send(client, route, "alice", named(route, call, foreign))
            nobodys = await send(client, route, "alice", named(route, call, missing))
            said = theirs.text
            for name in ("session", "fact", "path"):
                said = said.replace(foreign[name], missing[name])
            assert (theirs.status_code, said) == (nobodys.status_code, nobodys.text), route.name
            assert leaks(theirs, "alice") == []
            asked += 1
        return asked

    assert world.run(talk, world.key("alice")) > 30
    assert everything(world)[1] == before


def test_nothing_that_a_space_may_ask_for_shows_another(world: World) -> None:
    """Every route with success, in a space of one's own, and words that others' texts have."""
    words = " ".join(CANARIES.values())

    async def talk(client: httpx2.AsyncClient) -> None:
        for route in world.api.routes:
            if route.name in STREAMS or route.reach is Reach.STORE:
                continue
            call = EXAMPLES[route.name](world, "alice")
            response = await send(client, route, "alice", call)
            assert leaks(response, "alice") == [], route.name
        for path, body in (
            ("recall", {"query": words, "limit": 100}),
            ("context", {"query": words}),
            ("recall", {"query": words, "filters": {"space": "bob"}}),
        ):
            found = await client.post(f"/v1/spaces/alice/{path}", json=body)
            assert leaks(found, "alice") == []
        for path in ("facts/search", "documents/search"):
            found = await client.get(f"/v1/spaces/alice/{path}", params={"q": words})
            assert "heron" in found.text.lower()
            assert leaks(found, "alice") == []

    world.run(talk, world.key("alice"))

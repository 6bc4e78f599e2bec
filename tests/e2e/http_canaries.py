"""Looks for leaks over HTTP: spaces full of canaries, every route, every wrong key.

Used by the tests and by the tool that writes the report; what is wrong is a finding, in words.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from recollect.compat.mem0 import memory_id
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.http.operations import KeyReach, Operation
from recollect.types.access import Scope
from tests.e2e.http_world import EXAMPLES, STREAMS, Call, World, path_of, send

CANARIES = {"alice": "heron", "bob": "osprey", "carol": "bittern"}
NOWHERE = "not-there"
CHANGING = frozenset({"date", "x-request-id"})


@dataclass(slots=True, kw_only=True)
class Seen:
    """What came of some requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    routes: set[str] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return self.statuses.total()

    def note(self, route: str, response: httpx2.Response) -> None:
        self.statuses[response.status_code] += 1
        self.routes.add(route)
        self.expect(response.status_code < 500, f"{route} answers {response.status_code}")

    def expect(self, is_right: bool, finding: str) -> None:
        if not is_right:
            self.findings.append(finding)


def fill(world: World) -> None:
    for space, canary in CANARIES.items():
        world.fill(space, canary)


def example(world: World, route: Operation, space: str) -> Call:
    return Call() if route.name in STREAMS else EXAMPLES[route.name](world, space)


def told(response: httpx2.Response) -> tuple[int, Mapping[str, str], bytes]:
    headers = {name: each for name, each in response.headers.items() if name not in CHANGING}
    return response.status_code, headers, response.content


def leaks(response: httpx2.Response, own: str) -> list[str]:
    """The canaries of others in an answer."""
    said = (response.text + str(response.headers)).lower()
    return [canary for space, canary in CANARIES.items() if space != own and canary in said]


def everything(world: World, spaces: Sequence[str] = tuple(CANARIES)) -> Any:
    """What the spaces hold, to see whether somebody changed it."""
    held = [world.memory.space(name) for name in spaces]
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


def with_no_key(world: World, seen: Seen) -> None:
    """Every route, with whatever is not a valid key: one answer, down to the bytes."""
    memory, good = world.memory, world.key()
    closed, revoked = make_key(memory, "closed", space=None, scope=Scope.ADMIN)
    assert memory.store.api_keys.revoke(closed.id, memory.clock.now())
    wrong = ["", "Bearer", "Bearer ", f"Basic {good}", f"Bearer {good}x", f"Bearer {good[:-1]}"]
    wrong += [f"Bearer {revoked}", f"bearer  {good.upper()}", "Bearer " + "x" * 5000]
    paths = ["/v1", "/v1/spaces/none", "/nothing", "/v1/spaces/alice/", "/metrics", "/", "/mem0"]
    before = everything(world)

    async def talk(client: httpx2.AsyncClient) -> None:
        answers = set()
        asked = [("GET", path, path) for path in paths]
        asked += [(r.method, path_of(r, "alice", Call()), r.name) for r in world.api.operations]
        for header in wrong:
            for method, path, name in asked:
                sent = {"Authorization": header} if header else {}
                response = await client.request(method, path, headers=sent)
                seen.note(name, response)
                answers.add((response.status_code, response.content))
        seen.expect(
            len(answers) == 1 and next(iter(answers))[0] == 401,
            f"without a valid key there are several answers: {answers}",
        )

    world.run(talk)
    seen.expect(everything(world) == before, "something changed without a valid key")


def with_another_key(world: World, owner: str, seen: Seen) -> None:
    """Every route of a space with every key of the others: as if the space were not there."""
    routes = [route for route in world.api.operations if route.reach is KeyReach.SPACE]
    calls = {route.name: example(world, route, owner) for route in routes}
    before = everything(world)
    for other in sorted(CANARIES.keys() - {owner}):
        for scope in Scope:

            async def talk(client: httpx2.AsyncClient, other: str = other) -> None:
                for route in routes:
                    call = calls[route.name]
                    theirs = await send(client, route, owner, call)
                    nobodys = await send(client, route, NOWHERE, call)
                    seen.note(route.name, theirs)
                    seen.note(route.name, nobodys)
                    who = f"{route.name} of {owner} for {other}"
                    seen.expect(told(theirs) == told(nobodys), f"{who} differs from a missing one")
                    seen.expect(theirs.status_code == 404, f"{who} is {theirs.status_code}")
                    seen.expect(leaks(theirs, other) == [], f"{who} leaks")

            world.run(talk, world.key(other, scope))
    seen.expect(everything(world) == before, f"something of {owner} changed")


def with_foreign_ids(world: World, seen: Seen) -> None:
    """Bob's ids in alice's space, with alice's key: as if there were no such thing."""
    bob = world.memory.space("bob")
    foreign = {
        "session": world.learned("bob"),
        "fact": bob.facts.list(1)[0].id,
        "path": bob.documents.read("~/memory/notes/osprey").id,
        "block": bob.context("osprey").id,
    }
    missing = {
        name: value[:-4] + ("0000" if value[-4:] != "0000" else "1111")
        for name, value in foreign.items()
    }
    posted = EXAMPLES["agents_answer"](world, "bob")
    foreign |= {"agent": posted.places["agent"], "message": posted.places["message"]}
    missing |= {"agent": posted.places["agent"], "message": posted.places["message"][:-4] + "none"}
    foreign["memory"] = memory_id(foreign["fact"], "bob")
    missing["memory"] = memory_id(missing["fact"], "alice")
    before = everything(world, ["bob"])

    async def talk(client: httpx2.AsyncClient) -> None:
        for route in world.api.operations:
            call = example(world, route, "alice")
            if not _is_by_id(route, call):
                continue
            theirs = await send(client, route, "alice", _named(route, call, foreign))
            nobodys = await send(client, route, "alice", _named(route, call, missing))
            seen.note(route.name, theirs)
            seen.note(route.name, nobodys)
            said = theirs.text
            if route.name == "agents_post":  # whose name is no id: each space has its own agents
                continue
            for name in ("memory", "message", "session", "fact", "path", "block"):
                said = said.replace(foreign[name], missing[name])
            seen.expect(
                (theirs.status_code, said) == (nobodys.status_code, nobodys.text),
                f"{route.name}: a foreign id differs from a missing one",
            )
            seen.expect(leaks(theirs, "alice") == [], f"{route.name} with a foreign id leaks")

    world.run(talk, world.key("alice"))
    seen.expect(everything(world, ["bob"]) == before, "something of bob changed")


def _is_by_id(route: Operation, call: Call) -> bool:
    is_in_body = isinstance(call.body, dict) and "session" in call.body
    by_id = (
        bool(call.places)
        or route.inputs.query.get("path")
        or "session" in route.inputs.query
        or is_in_body
    )
    return by_id and "number" not in call.places


def _named(route: Operation, call: Call, ids: Mapping[str, str]) -> Call:
    body = call.body
    if isinstance(body, dict) and "session" in body:
        body = {**body, "session": ids["session"]}
    query = {**call.query} | ({"path": ids["path"]} if route.inputs.query.get("path") else {})
    query |= {"session": ids["session"]} if "session" in route.inputs.query else {}
    places = {name: ids[name] for name in call.places}
    return Call(places=places, query=query, body=body)


def as_another_user(world: World, seen: Seen) -> None:
    """mem0's routes for bob with alice's key: as if there were no such user."""
    before = everything(world, ["bob", "carol"])
    said = [{"role": "user", "content": "I prefer osprey tea."}]
    asked: list[tuple[str, str, dict[str, Any] | None]] = [
        ("POST", "/memories", {"messages": said, "user_id": "USER", "infer": False}),
        ("POST", "/memories", {"messages": said, "user_id": "USER"}),
        ("GET", "/memories?user_id=USER", None),
        ("POST", "/search", {"query": "osprey tea", "user_id": "USER"}),
        ("POST", "/search", {"query": "osprey tea", "filters": {"user_id": "USER"}}),
        ("DELETE", "/memories?user_id=USER", None),
        ("DELETE", "/memories?user_id=USER&agent_id=a", None),
    ]
    own = {"query": "osprey heron", "agent_id": "a", "filters": {"OR": [{"user_id": "bob"}]}}

    async def talk(client: httpx2.AsyncClient) -> None:
        for method, path, body in asked:
            answers = []
            for user in ("bob", NOWHERE):
                response = await client.request(
                    method,
                    "/mem0" + path.replace("USER", user),
                    headers={"Content-Type": "application/json"},
                    content=b"" if body is None else _filled(body, user),
                )
                seen.note(f"mem0 {method} {path}", response)
                answers.append(told(response))
            seen.expect(
                answers[0] == answers[1] and answers[0][0] == 404,
                f"mem0 {method} {path} tells one user of another: {answers[0][:1]}",
            )
        found = await client.post("/mem0/search", json=own)
        seen.note("mem0_search", found)
        seen.expect(leaks(found, "alice") == [], "mem0_search leaks by a filter")
        reset = await client.post("/mem0/reset", json={})
        seen.note("mem0_reset", reset)
        seen.expect(reset.status_code == 200, "mem0_reset does not work inside a space")

    world.run(talk, world.key("alice"))
    seen.expect(everything(world, ["bob", "carol"]) == before, "mem0's routes changed others")


def _filled(body: Mapping[str, Any], user: str) -> bytes:
    return json.dumps(body).replace("USER", user).encode()


def with_own_key(world: World, seen: Seen) -> None:
    """Every route with success in a space of one's own, and words that others' texts have."""
    words = " ".join(CANARIES.values())

    async def talk(client: httpx2.AsyncClient) -> None:
        for route in world.api.operations:
            if route.name in STREAMS or route.reach is KeyReach.STORE:
                continue
            response = await send(client, route, "alice", EXAMPLES[route.name](world, "alice"))
            seen.note(route.name, response)
            seen.expect(response.status_code in route.statuses, f"{route.name} does not succeed")
            seen.expect(leaks(response, "alice") == [], f"{route.name} leaks")
        for path, body in (
            ("recall", {"query": words, "limit": 100}),
            ("context", {"query": words}),
            ("recall", {"query": words, "filters": {"space": "bob"}}),
        ):
            found = await client.post(f"/v1/spaces/alice/{path}", json=body)
            seen.note(path, found)
            seen.expect(leaks(found, "alice") == [], f"{path} leaks")
        for path in ("facts/search", "documents/search"):
            found = await client.get(f"/v1/spaces/alice/{path}", params={"q": words})
            seen.note(path, found)
            seen.expect("heron" in found.text.lower(), f"{path} does not find its own")
            seen.expect(leaks(found, "alice") == [], f"{path} leaks")

    world.run(talk, world.key("alice"))


def of_the_store(world: World, seen: Seen) -> None:
    """What belongs to the store is not there for the key of a space."""

    async def talk(client: httpx2.AsyncClient) -> None:
        nothing = told(await client.get("/v1/nothing"))
        for route in world.api.operations:
            if route.reach is KeyReach.STORE:
                response = await send(client, route, "alice", Call())
                seen.note(route.name, response)
                seen.expect(told(response) == nothing, f"{route.name} is there for a space's key")
        listed = await client.get("/v1/spaces")
        seen.note("memory_spaces", listed)
        only_own = {"spaces": [{"name": "alice"}], "next": None}
        seen.expect(listed.json() == only_own, "list_spaces tells of other spaces")
        described = await client.get("/v1/openapi.json")
        seen.note("server_describe", described)
        seen.expect(leaks(described, "alice") == [], "openapi leaks")

    world.run(talk, world.key("alice"))

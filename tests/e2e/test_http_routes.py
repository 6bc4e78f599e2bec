"""N9: every route of the table, and every answer that its description promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

import recollect
from recollect.interfaces.http.app import OPERATIONS, Api
from recollect.interfaces.http.openapi import description, documented
from recollect.interfaces.http.operations import KeyReach, Operation, Repeat
from recollect.types.access import Scope
from tests.crash.worker_child import dump
from tests.e2e.http_world import EXAMPLES, STREAMS, Call, World, path_of, send

SPACE = "alice"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with recollect.open(":memory:") as memory:
        made = World(memory)
        made.fill(SPACE, "heron")
        yield made


def all_routes(world: World) -> list[Operation]:
    return [route for route in world.api.operations if route.name not in STREAMS]


def check_answer(world: World, route: Operation, response: httpx2.Response) -> Any:
    """An answer is one that the description promises, down to its fields."""
    assert response.status_code in documented(route), (route.name, response.text)
    media_type = response.headers["content-type"]
    promised = validator(world.api, route.name, response.status_code, media_type)
    if not media_type.endswith("json"):
        return response.text
    promised.validate(response.json())
    return response.json()


@cache
def described(api: Api) -> dict[str, Any]:
    return description(api.operations)


@cache
def validator(api: Api, name: str, status: int, media_type: str) -> Any:
    [route] = [each for each in api.operations if each.name == name]
    operation = described(api)["paths"][route.path][route.method.lower()]
    answer, components = operation["responses"][str(status)], described(api)["components"]
    if "$ref" in answer:
        answer = components["responses"][str(status)]
    schema = answer["content"][media_type]["schema"]
    return Draft202012Validator({**schema, "components": components})


def test_every_route_succeeds_and_answers_what_it_promises(world: World) -> None:
    async def talk(client: httpx2.AsyncClient) -> None:
        for route in all_routes(world):
            response = await send(client, route, SPACE, EXAMPLES[route.name](world, SPACE))
            assert response.status_code in route.statuses, (route.name, response.text)
            check_answer(world, route, response)
            assert response.headers["cache-control"] == "no-store"
            assert response.headers["x-request-id"]
            assert "access-control-allow-origin" not in response.headers

    world.run(talk, world.key())


def test_every_route_has_an_example_and_a_name_of_its_own(world: World) -> None:
    names = [route.name for route in world.api.operations]
    assert sorted(names) == sorted({*EXAMPLES, *STREAMS})


def test_a_key_does_no_more_than_its_scope_allows(world: World) -> None:
    secrets = {scope: world.key(SPACE, scope) for scope in Scope}
    for scope, secret in secrets.items():

        async def talk(client: httpx2.AsyncClient, scope: Scope = scope) -> None:
            for route in all_routes(world):
                if route.reach is KeyReach.STORE or scope.includes(route.scope):
                    continue
                response = await send(client, route, SPACE, Call())
                assert response.status_code == 403, route.name
                check_answer(world, route, response)

        world.run(talk, secret)


def test_what_is_wrong_with_a_request_is_a_problem_in_words(world: World) -> None:
    async def talk(client: httpx2.AsyncClient) -> None:
        for route in all_routes(world):
            call = EXAMPLES[route.name](world, SPACE)
            sent = [
                Call(places=call.places, query={**call.query, "nonsense": 1}, body=call.body),
                Call(places=call.places, query=call.query, body=[1]),
                Call(places=call.places, query=call.query, body={"nonsense": 1}),
            ]
            for wrong in sent:
                response = await send(client, route, SPACE, wrong)
                assert response.status_code == 422, (route.name, response.text)
                assert check_answer(world, route, response)["detail"]
            if route.inputs.body is not None:
                path = path_of(route, SPACE, call)
                for content, kind, status in (
                    (b"{", "application/json", 400),
                    (b'{"a": NaN}', "application/json", 400),
                    (b'{"a": 1e999}', "application/json", 400),
                    (b"\xff", "application/json", 400),
                    (b"{}", "text/plain", 415),
                ):
                    response = await client.request(
                        route.method, path, content=content, headers={"Content-Type": kind}
                    )
                    assert response.status_code == status, (route.name, response.text)
                    check_answer(world, route, response)

    world.run(talk, world.key())


def test_what_is_not_there_is_not_found(world: World) -> None:
    missing = {"session": "none", "fact": "none", "number": "999", "memory": "none"}
    missing |= {"agent": "nobody", "message": "none", "block": "none"}

    async def talk(client: httpx2.AsyncClient) -> None:
        for route in all_routes(world):
            call = EXAMPLES[route.name](world, SPACE)
            names_document = route.inputs.query.get("path")
            if not call.places and not names_document:
                continue
            if route.name in ("documents_write", "agents_post"):  # which make it
                continue
            query = {**call.query, **({"path": "~/memory/none"} if names_document else {})}
            places = {name: missing[name] for name in call.places}
            wrong = Call(places=places, query=query, body=call.body)
            response = await send(client, route, SPACE, wrong)
            assert response.status_code == 404, (route.name, response.text)
            check_answer(world, route, response)

    world.run(talk, world.key())


def test_a_retry_with_an_idempotency_key_does_nothing_twice(world: World) -> None:
    """N9: the first answer once more, or the record that is stored already."""
    repeatable = [route for route in OPERATIONS if route.repeat is not Repeat.PLAIN]

    async def talk(client: httpx2.AsyncClient) -> None:
        for number, route in enumerate(repeatable):
            if route.name == "generations_rollback":  # was done by another test
                continue
            call = EXAMPLES[route.name](world, SPACE)
            key = f"try-{number}"
            answers = [
                await send(client, route, SPACE, call, Idempotency_Key=key) for _ in range(2)
            ]
            assert answers[0].status_code in route.statuses, (route.name, answers[0].text)
            assert answers[0].content == answers[1].content, route.name
            assert answers[0].status_code == answers[1].status_code
            bad = await send(client, route, SPACE, call, Idempotency_Key="two words")
            assert bad.status_code == 422

    world.run(talk, world.key())


CANARY = "quetzalcoatl"


def _said_to_session(world: World, space: str, body: Any = None) -> Call:
    session = world.memory.space(space).session("chat")
    session.append("user", f"My {CANARY} is green.")
    return Call(places={"session": session.id}, body=body)


def _written(world: World, space: str, body: Any) -> Call:
    path = f"~/memory/{CANARY}"
    world.memory.space(space).documents.write(path, f"All about the {CANARY}.")
    return Call(query={"path": path}, body=body)


def _consolidated(world: World, space: str) -> Call:
    world.fill(space, CANARY)
    return Call(places={"number": "1"})


_MESSAGE = {"role": "user", "content": f"My {CANARY} is green."}
# Every route that takes an Idempotency-Key, with something to forget in what it does.
KEYED: dict[str, Callable[[World, str], Call]] = {
    "space_session": lambda _w, _s: Call(body={"key": CANARY}),
    "append": lambda _w, _s: Call(body={"key": "chat", "messages": [_MESSAGE, _MESSAGE]}),
    "session_append": lambda w, s: _said_to_session(w, s, _MESSAGE),
    "session_append_many": lambda w, s: _said_to_session(w, s, {"messages": [_MESSAGE]}),
    "session_end": _said_to_session,
    "session_sleep": _said_to_session,
    "session_reset": _said_to_session,
    "session_compact": lambda w, s: _said_to_session(w, s, {"summary": f"About a {CANARY}."}),
    "agents_post": lambda _w, _s: Call(places={"agent": "assistant"}, body={"text": CANARY}),
    "facts_add": lambda _w, _s: Call(body={"content": f"The {CANARY} is green."}),
    "documents_append": lambda w, s: _written(w, s, {"text": f"The {CANARY} is green."}),
    "documents_move": lambda w, s: _written(w, s, {"to": f"~/memory/old-{CANARY}"}),
    "documents_restore": lambda w, s: _written(w, s, {"version": 1}),
    "generations_rollback": _consolidated,
    "mem0_add": lambda _w, s: Call(body={"messages": [_MESSAGE], "user_id": s, "infer": False}),
}


def test_a_retry_never_tells_what_was_forgotten_since(durable_store_url: str) -> None:
    """N9: what is kept for a key is the outcome and an id; what is gone is answered as gone."""
    keyed = {route.name: route for route in OPERATIONS if route.repeat is not Repeat.PLAIN}
    assert keyed.keys() == KEYED.keys()

    def asked(world: World, route: Operation, call: Call, secret: str) -> httpx2.Response:
        return world.run(
            lambda client: send(client, route, route.name, call, Idempotency_Key="once"), secret
        )

    with recollect.open(durable_store_url) as memory:
        world = World(memory)
        secret = world.key()
        for name, route in keyed.items():
            call = KEYED[name](world, name)
            first = asked(world, route, call, secret)
            assert first.status_code in route.statuses, (name, first.text)
            with memory.agents() as agents:
                agents.tick()
            told = asked(world, route, call, secret)
            assert told.status_code in route.statuses, (name, told.text)
            # What was appended: by its session. A space that is forgotten whole knows no keys.
            what: dict[str, Any] = {"everything": True}
            if route.repeat is Repeat.APPEND:
                what = {"session": memory.space(name).sessions.list(1)[0].id}
            forgotten = world.ask("POST", f"/v1/spaces/{name}/forget", secret, json=what)
            assert forgotten.json()["is_complete"], (name, forgotten.text)
            for _ in range(2):
                gone = asked(world, route, call, secret)
                assert gone.status_code == 410, (name, gone.text)
                assert check_answer(world, route, gone)["type"] == "urn:recollect:problem:gone"
                assert CANARY not in gone.text, name
            held = {table: rows for table, rows in dump(memory).items() if CANARY in str(rows)}
            assert not held, (name, held)


def test_an_idempotency_key_with_another_body_is_refused(world: World) -> None:
    async def talk(client: httpx2.AsyncClient) -> list[int]:
        session = world.session(SPACE)
        seen = []
        for path, field in (("facts", "content"), (f"sessions/{session}/records", "content")):
            for words in ("One thing.", "Another thing.", "One thing."):
                answer = await client.post(
                    f"/v1/spaces/{SPACE}/{path}",
                    json={field: words} | ({"role": "user"} if "records" in path else {}),
                    headers={"Idempotency-Key": "the-same"},
                )
                seen.append(answer.status_code)
        return seen

    assert world.run(talk, world.key()) == [201, 422, 201, 201, 422, 201]


def test_a_used_idempotency_key_takes_neither_more_nor_fewer_messages(world: World) -> None:
    secret = world.key()

    def said(*words: str, key: str = "batches") -> httpx2.Response:
        messages = [{"role": "user", "content": each} for each in words]
        path, headers = f"/v1/spaces/{SPACE}/append", {"Idempotency-Key": "b-1"}
        body = {"key": key, "messages": messages}
        return world.ask("POST", path, secret, json=body, headers=headers)

    first = said("one", "two")
    assert first.status_code == 201
    for words in ((), ("one",), ("one", "two", "three"), ("two", "one")):
        refused = said(*words)
        assert (refused.status_code, refused.json()["type"][-17:]) == (422, "append-key-reused")
    assert said("one", "two").json() == first.json()
    assert said("one", key="another").status_code == 201  # a conversation has keys of its own
    history = world.memory.space(SPACE).session("batches").all()
    assert [record.content for record in history] == ["one", "two"]


def test_a_condition_guards_every_change_of_a_document(world: World) -> None:
    """N9: If-Match with an old version changes nothing."""
    conditional = [route for route in OPERATIONS if route.is_conditional]
    assert len(conditional) == 6

    async def talk(client: httpx2.AsyncClient) -> None:
        for route in conditional:
            call = EXAMPLES[route.name](world, SPACE)
            path = str(call.query["path"])
            stale = await send(client, route, SPACE, call, If_Match='"1"')
            assert stale.status_code == 412, (route.name, stale.text)
            assert check_answer(world, route, stale)["current_version"] == 2
            assert world.memory.space(SPACE).documents.read(path).version == 2
            odd = await send(client, route, SPACE, call, If_Match='W/"2"')
            assert odd.status_code == 422
            done = await send(client, route, SPACE, call, If_Match='"2"')
            assert done.status_code in route.statuses, (route.name, done.text)
            assert done.headers["etag"] == f'"{done.json()["version"]}"'

    world.run(talk, world.key())


def test_a_document_that_must_be_new_replaces_nothing(world: World) -> None:
    path = f"/v1/spaces/{SPACE}/document?path=~/memory/new"
    asked = {"json": {"body": "mine"}, "headers": {"If-None-Match": "*"}}
    secret = world.key()
    assert world.ask("PUT", path, secret, **asked).status_code == 201
    assert world.ask("PUT", path, secret, **asked).status_code == 412


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("sessions", "id"),
        ("facts", "id"),
        ("documents", "path"),
        ("generations", "number"),
    ],
)
def test_pages_follow_each_other_without_a_gap(world: World, path: str, name: str) -> None:
    async def talk(client: httpx2.AsyncClient) -> tuple[list[Any], list[Any]]:
        url = f"/v1/spaces/{SPACE}/{path}"
        whole = (await client.get(url, params={"limit": 1000})).json()[path]
        seen: list[Any] = []
        cursor: str | None = ""
        while cursor is not None:
            given = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
            answer = (await client.get(url, params=given)).json()
            seen += answer[path]
            cursor = answer["next"]
        return whole, seen

    for _ in range(3):
        world.session(SPACE)
        world.fact(SPACE)
        world.document(SPACE)
    whole, seen = world.run(talk, world.key())
    assert len(whole) > 1
    assert [each[name] for each in seen] == [each[name] for each in whole]


def test_a_session_that_was_replaced_is_not_ended_by_a_retry(world: World) -> None:
    secret, session = world.key(), world.session(SPACE)
    path = f"/v1/spaces/{SPACE}/sessions/{session}"
    assert world.ask("POST", f"{path}/reset", secret).status_code == 200
    again = world.ask("POST", f"{path}/reset", secret)
    assert again.status_code == 409
    record = world.ask("POST", f"{path}/records", secret, json={"role": "user", "content": "on"})
    assert record.json()["session_id"] in again.json()["detail"]


def test_what_may_be_forgotten_is_one_thing_at_a_time(world: World) -> None:
    """P11: each kind over HTTP leaves nothing of it, and says what it was."""
    secret, memory = world.key(), world.memory
    session = world.session("carol")
    wanted: list[dict[str, Any]] = [
        {"record": f"{session}:1"},
        {"fact": world.fact("carol")},
        {"document": world.document("carol")},
        {"session": session},
        {"source": "api"},
        {"everything": True},
    ]
    for one in wanted:
        receipt = world.ask("POST", "/v1/spaces/carol/forget", secret, json=one)
        assert receipt.status_code == 200, (one, receipt.text)
    space, path = memory.space("carol"), "/v1/spaces/carol/forget"
    for pages in ("keep", "erase"):
        fact = space.facts.add("Carol keeps three falcons.").id
        space.documents.write("notes/carol", f"She keeps falcons: {pages}.", facts=[fact])
        told = world.ask("POST", path, secret, json={"fact": fact, "pages": pages}).json()
        kept = ["~/memory/notes/carol"] if pages == "keep" else []
        assert (told["left"], told["is_complete"], told["may_remain"]) == (kept, not kept, [])
    for wrong in ({}, {"everything": False}, {"fact": "a", "session": "b"}, {"pages": "erase"}):
        refused = world.ask("POST", "/v1/spaces/carol/forget", secret, json=wrong)
        assert refused.status_code == 422
    assert memory.space("carol").sessions.list() == []
    assert memory.space("carol").facts.list(every=True) == []

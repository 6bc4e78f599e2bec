"""Who did what, over HTTP: for admins of the space alone, a page at a time (N9, P9)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import recollect
from recollect.types.access import Scope
from tests.e2e.http_world import World


@pytest.fixture
def world() -> Iterator[World]:
    with recollect.open(":memory:", settings={"audit": "all"}) as memory:
        yield World(memory)


def test_what_came_in_over_http_is_told_by_the_id_of_its_key(world: World) -> None:
    secret, other = world.key("alice"), world.key("bob")
    added = world.ask("POST", "/v1/spaces/alice/facts", secret, json={"content": "Tea."})
    assert added.status_code == 201
    world.ask("POST", "/v1/spaces/bob/facts", other, json={"content": "Coffee."})
    [key] = [key for key in world.memory.store.api_keys.list("", 9) if key.space == "alice"]
    told = world.ask("GET", "/v1/spaces/alice/audit?verb=facts.add", secret).json()["audit"]
    assert [(each["actor"], each["outcome"], each["space"]) for each in told] == [
        (f"key:{key.id}", "done", "alice")
    ]
    assert told[0]["targets"] == [added.json()["id"]]
    assert "Tea" not in str(told)
    by_actor = f"/v1/spaces/bob/audit?actor=key:{key.id}"
    assert world.ask("GET", by_actor, other).json()["audit"] == []


def test_it_is_read_a_page_at_a_time(world: World) -> None:
    secret = world.key("alice")
    for number in range(5):
        world.memory.space("alice").facts.add(f"Fact {number}.")
    pages: list[list[str]] = []
    cursor: str | None = ""
    while cursor is not None:
        path = f"/v1/spaces/alice/audit?verb=facts.add&limit=2{cursor and '&cursor=' + cursor}"
        page = world.ask("GET", path, secret).json()
        pages.append([each["id"] for each in page["audit"]])
        cursor = page["next"]
    assert [len(page) for page in pages] == [2, 2, 1]
    assert len({each for page in pages for each in page}) == 5
    at = world.memory.clock.now().isoformat().replace("+00:00", "Z")
    path = f"/v1/spaces/alice/audit?verb=facts.add&since={at}"
    assert world.ask("GET", path, secret).json()["audit"] == []


@pytest.mark.parametrize(
    ("space", "scope", "status"),
    [("alice", Scope.WRITE, 403), ("bob", Scope.ADMIN, 404), (None, Scope.ADMIN, 200)],
)
def test_it_is_for_admins_of_the_space(
    world: World, space: str | None, scope: Scope, status: int
) -> None:
    secret = world.key(space, scope)
    assert world.ask("GET", "/v1/spaces/alice/audit", secret).status_code == status

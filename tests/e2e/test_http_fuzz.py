"""P9, N9: requests made up from the schemas of the table, right and wrong: no answer is a 5xx."""

from __future__ import annotations

from typing import Any

import pytest

import recollect
from recollect.interfaces.http.routes import Hosts
from tests.e2e.http_canaries import Seen
from tests.e2e.http_fuzzer import SPACE, fuzz
from tests.e2e.http_world import STREAMS, World

SEEDS = (1, 2, 3)
REQUESTS = 400
POSTGRES_REQUESTS = 150
TORTURE_REQUESTS = 10_000


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No agent is run here: who would wait a minute for its answer learns the same at once."""
    post = Hosts.post

    def posted(hosts: Hosts, *args: Any, **named: Any) -> Any:
        return post(hosts, *args, **{**named, "seconds": 0})

    monkeypatch.setattr(Hosts, "post", posted)


def fuzzed(store: str, seed: int, requests: int) -> None:
    print(f"seed {seed}")
    seen = Seen()
    with recollect.open(store) as memory:
        world = World(memory)
        world.fill(SPACE, "heron")
        fuzz(world, seed, requests, seen)
        routes = {route.name for route in world.api.operations} - STREAMS
    assert seen.findings == []
    assert seen.routes == routes
    assert {200, 201, 404, 422} <= seen.statuses.keys()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_request_that_the_schemas_allow_or_not_makes_the_server_fail(seed: int) -> None:
    fuzzed(":memory:", seed, REQUESTS)


def test_nor_does_one_where_the_store_is_postgresql(lent_store_url: str) -> None:
    fuzzed(lent_store_url, 4, POSTGRES_REQUESTS)


@pytest.mark.torture
def test_thousands_of_requests_make_neither_store_fail(durable_store_url: str) -> None:
    fuzzed(durable_store_url, 5, TORTURE_REQUESTS)

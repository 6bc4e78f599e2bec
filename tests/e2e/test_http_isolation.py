"""P9: three spaces with canaries, every route, every wrong key: nothing leaks, nothing changes.

On both databases: what keeps spaces apart is a column on one, and row security as well on the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import recollect
from recollect.interfaces.http.operations import KeyReach
from tests.e2e.http_canaries import (
    CANARIES,
    Seen,
    as_another_user,
    fill,
    leaks,
    of_the_store,
    with_another_key,
    with_foreign_ids,
    with_no_key,
    with_own_key,
)
from tests.e2e.http_world import STREAMS, World
from tests.postgres_schemas import Schemas
from tests.postgres_server import url_with


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "sqlite":
        with recollect.open(":memory:") as memory:
            yield filled(memory)
        return
    schemas: Schemas = request.getfixturevalue("postgres_schemas")
    name = schemas.lend()
    with recollect.open(url_with(request.getfixturevalue("postgres_url"), schema=name)) as memory:
        yield filled(memory)
    schemas.take_back(name)


def filled(memory: recollect.Memory) -> World:
    made = World(memory)
    fill(made)
    return made


@pytest.mark.parametrize("owner", CANARIES)
def test_a_space_that_a_key_does_not_open_looks_like_one_that_is_not_there(
    world: World, owner: str
) -> None:
    seen = Seen()
    with_another_key(world, owner, seen)
    assert seen.findings == []
    assert seen.routes == {r.name for r in world.api.operations if r.reach is KeyReach.SPACE}


def test_a_foreign_id_looks_like_a_missing_one(world: World) -> None:
    """Whoever knows an id of another space learns nothing from asking for it in their own."""
    seen = Seen()
    with_foreign_ids(world, seen)
    assert seen.findings == []
    assert len(seen.routes) > 30


@pytest.mark.parametrize("probe", [with_no_key, of_the_store, as_another_user])
def test_nothing_that_may_be_asked_for_shows_another_space(
    world: World, probe: Callable[[World, Seen], None]
) -> None:
    seen = Seen()
    probe(world, seen)
    assert seen.findings == []


def test_every_route_in_ones_own_space_shows_nothing_of_another(world: World) -> None:
    seen = Seen()
    with_own_key(world, seen)
    assert seen.findings == []
    tried = seen.routes | STREAMS
    assert {r.name for r in world.api.operations if r.reach is not KeyReach.STORE} <= tried


def test_the_probe_would_find_a_leak(world: World) -> None:
    """An answer of one space, given to the key of another."""
    answer = world.ask("GET", "/v1/spaces/bob/facts", world.key("bob"))
    assert leaks(answer, "bob") == []
    assert leaks(answer, "alice") == ["osprey"]

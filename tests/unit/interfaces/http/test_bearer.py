"""Keys as their holders have them: nothing but the very secret opens, and while it is valid."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.errors import InvalidValue
from recollect.interfaces.http.bearer import (
    USE_NOTED_EVERY,
    Authenticator,
    digest_of,
    make_key,
    new_secret,
)
from recollect.types.access import Scope


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def memory(clock: ManualClock) -> Iterator[recollect.Memory]:
    with recollect.open(":memory:", clock=clock) as opened:
        yield opened


def test_a_secret_has_256_random_bits_and_is_kept_as_a_digest(memory: recollect.Memory) -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(secret) for secret in secrets} == {47}
    key, secret = make_key(memory, "x", space="a", scope=Scope.READ)
    assert key.digest == digest_of(secret)
    assert secret not in repr(memory.store.api_keys.list("", 10))


def test_only_the_very_secret_opens(memory: recollect.Memory) -> None:
    key, secret = make_key(memory, "x", space="a", scope=Scope.READ)
    door = Authenticator(memory)
    assert door.authenticate(f"Bearer {secret}") == key
    assert door.authenticate(f"bearer   {secret} ") is not None
    for wrong in (
        secret,
        f"Basic {secret}",
        "Bearer",
        "Bearer ",
        f"Bearer {secret}x",
        "Bearer \xe9",
    ):
        assert door.authenticate(wrong) is None
    assert door.authenticate(f"Bearer {key.digest}") is None


def test_a_key_is_refused_from_the_moment_it_is_over_or_revoked(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    until = clock.now() + timedelta(days=1)
    _, short = make_key(memory, "x", space=None, scope=Scope.READ, expires_at=until)
    revoked, other = make_key(memory, "y", space=None, scope=Scope.READ)
    door = Authenticator(memory)
    assert door.authenticate(f"Bearer {short}")
    clock.advance(86_400)
    assert door.authenticate(f"Bearer {short}") is None
    assert door.authenticate(f"Bearer {other}")
    memory.store.api_keys.revoke(revoked.id, clock.now())
    assert door.authenticate(f"Bearer {other}") is None


def test_a_use_is_noted_and_not_with_every_request(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    key, secret = make_key(memory, "x", space="a", scope=Scope.READ)
    door = Authenticator(memory)
    began = clock.now()
    times = []
    for _ in range(3):
        door.authenticate(f"Bearer {secret}")
        found = memory.store.api_keys.find(key.digest)
        assert found is not None
        times.append(found.last_used_at)
        clock.advance(USE_NOTED_EVERY.total_seconds() / 2)
    assert times == [began, began, began + USE_NOTED_EVERY]


def test_a_key_that_has_expired_already_is_not_made(
    memory: recollect.Memory, clock: ManualClock
) -> None:
    with pytest.raises(InvalidValue):
        make_key(memory, "x", space=None, scope=Scope.READ, expires_at=clock.now())
    assert memory.store.api_keys.list("", 10) == []

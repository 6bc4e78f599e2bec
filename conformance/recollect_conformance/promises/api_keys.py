"""Keys of those who come in over HTTP: found by digest alone, revoked for good, never in clear."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from recollect.types.access import ApiKey, Scope
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness

HOUR = timedelta(hours=1)


def _added(store: Harness, number: int = 1, *, space: str | None = SPACE) -> ApiKey:
    key = ApiKey(
        id=f"key-{number:03}",
        name=f"the {number}. key",
        digest=f"{number:064x}",
        space=space,
        scope=list(Scope)[number % 3],
        created_at=store.now(),
        expires_at=store.now() + HOUR if number % 2 else None,
    )
    store.handle.api_keys.add(key)
    return key


@case("N9 P9", "a key is found by its digest, as it was added")
def a_key_is_found_by_its_digest(store: Harness) -> None:
    keys = [_added(store, 1), _added(store, 2, space=None), _added(store, 3, space="other")]
    assert [store.handle.api_keys.find(key.digest) for key in keys] == keys


@case("N9 P9", "no digest but a key's very own finds anything")
def only_the_very_digest_finds_a_key(store: Harness) -> None:
    key = _added(store, 11)
    for digest in ("", "%", key.digest[:-1], key.digest.upper(), f"{key.digest} ", key.id):
        assert store.handle.api_keys.find(digest) is None


@case("N9", "keys are listed a page at a time, in the order of their ids, whatever became of them")
def keys_are_listed_by_page(store: Harness) -> None:
    keys = [_added(store, number, space=None) for number in (3, 1, 2)]
    assert store.handle.api_keys.revoke("key-002", store.now())
    listed = store.handle.api_keys.list("", 2)
    assert [key.id for key in listed] == ["key-001", "key-002"]
    assert listed[1].revoked_at == store.now()
    assert store.handle.api_keys.list("key-002", 2) == [keys[0]]
    assert store.handle.api_keys.list("key-003", 2) == []


@case("N9 P9", "a key is revoked once, for good, and no other with it")
def a_key_is_revoked_once(store: Harness) -> None:
    first, second = _added(store, 1), _added(store, 2)
    at = store.now()
    assert store.handle.api_keys.revoke(first.id, at)
    store.clock.advance(60)
    assert not store.handle.api_keys.revoke(first.id, store.now())
    assert not store.handle.api_keys.revoke("key-009", store.now())
    assert store.handle.api_keys.find(first.digest) == replace(first, revoked_at=at)
    assert store.handle.api_keys.find(second.digest) == second


@case("N9", "it is noted when a key was used last, and the time only rises")
def the_last_use_of_a_key_is_noted(store: Harness) -> None:
    first, second = _added(store, 1), _added(store, 2)
    later = store.now() + HOUR
    store.handle.api_keys.used(first.id, later)
    store.handle.api_keys.used(first.id, store.now())
    assert store.handle.api_keys.find(first.digest) == replace(first, last_used_at=later)
    assert store.handle.api_keys.find(second.digest) == second


@case("N9 P1", "keys outlive the store that was closed")
def keys_are_there_after_reopening(store: Harness) -> None:
    key = _added(store)
    if not store.is_volatile:
        store.reopen()
    assert store.handle.api_keys.find(key.digest) == key


@case("N9 P9", "of several that revoke a key at once, one has done it")
def of_several_that_revoke_a_key_one_has(store: Harness) -> None:
    key = _added(store)
    handles = [store.handle if store.is_volatile else store.second_handle() for _ in range(4)]
    done = store.at_once(
        *(lambda each=each: each.api_keys.revoke(key.id, store.now()) for each in handles)
    )
    assert sorted(done) == [False, False, False, True]

"""What the processes that serve a store have in common: begun by one of them, over for all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from recollect.types.access import ServingState, StateKind
from recollect_conformance.case import case
from recollect_conformance.harness import Harness

MINUTE = timedelta(minutes=1)


def _state(store: Harness, state_id: str = "a", owner: str = "me", value: str = "") -> ServingState:
    now = store.now()
    return ServingState(
        kind=StateKind.REQUEST,
        id=state_id,
        owner=owner,
        value=value,
        changed_at=now,
        expires_at=now + MINUTE,
    )


def _kept(store: Harness, *names: str) -> list[bool]:
    serving, now = store.handle.serving, store.now()
    return [serving.get(StateKind.REQUEST, name, now) is not None for name in names]


@case("N18 P4", "what was begun is not begun again by anybody, until it expires or is dropped")
def a_state_is_begun_once(store: Harness) -> None:
    serving, first = store.handle.serving, _state(store, value="first")
    assert serving.begin(first) is None
    assert serving.begin(_state(store, value="second")) == first
    assert serving.begin(replace(first, kind=StateKind.VISIT)) is None
    store.clock.advance(60)
    third = _state(store, value="third")
    assert serving.begin(third) is None
    assert serving.get(StateKind.REQUEST, "a", store.now()) == third
    serving.drop(StateKind.REQUEST, "a")
    assert serving.begin(_state(store)) is None


@case("N18 P4", "of several that begin the same at once, one has begun it")
def of_several_one_has_begun(store: Harness) -> None:
    handles = [store.handle if store.is_volatile else store.second_handle() for _ in range(4)]
    states = [_state(store, value=str(number)) for number in range(4)]
    done = store.at_once(
        *(
            lambda each=each, state=state: each.serving.begin(state)
            for each, state in zip(handles, states, strict=True)
        )
    )
    [winner] = [state for state, found in zip(states, done, strict=True) if found is None]
    assert [found for found in done if found is not None] == [winner] * 3


@case("N18", "a state that is put takes the place of the one before, and counts until it expires")
def a_state_is_put_and_counted(store: Harness) -> None:
    serving, kind = store.handle.serving, StateKind.REQUEST
    serving.put(_state(store, value="before"))
    store.clock.advance(30)
    after = _state(store, value="after")
    serving.put(after)
    serving.put(_state(store, "b"))
    assert serving.get(kind, "a", store.now()) == after
    assert serving.count(kind, store.now()) == 2
    assert serving.count(StateKind.PROCESS, store.now()) == 0
    assert serving.count(kind, store.now() + MINUTE) == 0
    assert serving.get(kind, "a", store.now() + MINUTE) is None


@case("N18 P9", "of every owner only so many are kept, the newest, and nobody loses one to another")
def nobody_crowds_out_another(store: Harness) -> None:
    serving = store.handle.serving
    serving.put(_state(store, "theirs", owner="them"))
    for number in range(4):
        store.clock.advance(1)
        serving.put(_state(store, f"mine-{number}"))
    serving.prune(StateKind.VISIT, 0, store.now())
    serving.prune(StateKind.REQUEST, 2, store.now())
    names = [*(f"mine-{number}" for number in range(4)), "theirs"]
    assert _kept(store, *names) == [False, False, True, True, True]
    store.clock.advance(60)
    serving.prune(StateKind.REQUEST, 2, store.now())
    assert serving.count(StateKind.REQUEST, store.now() - MINUTE) == 0


@case("N18", "the schema that the store has is the one it was opened with")
def the_schema_is_told(store: Harness) -> None:
    assert store.handle.serving.schema_version() == store.handle.describe().schema_version

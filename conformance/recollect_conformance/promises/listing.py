"""Lists of sessions: newest first, in pages that neither repeat nor miss one."""

from __future__ import annotations

from recollect.types.records import SessionState
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness, ids


def _pages(store: Harness, size: int) -> list[SessionState]:
    found: list[SessionState] = []
    while page := store.sessions.list(SPACE, size, found[-1] if found else None):
        assert len(page) <= size
        found += page
    return found


@case("M1", "sessions are listed newest first")
def sessions_are_listed_newest_first(store: Harness) -> None:
    expected = []
    for name in ("b", "a", "c"):
        expected.append(store.current(store.key(name)).id)
        store.clock.advance(0.000001)
    store.append(store.key("b"))
    assert ids(store.sessions.list(SPACE, 10, None)) == expected[::-1]


@case("M1", "a listed session is the whole session")
def a_listed_session_is_the_whole_session(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 8)
    assert store.sessions.list(SPACE, 10, None) == [store.current(ref)]


@case("M1", "every rotation is a session of its own in the list")
def every_rotation_is_listed(store: Harness) -> None:
    ref = store.key()
    for _ in range(3):
        store.clock.advance(1)
        store.reset(ref)
    assert store.sessions.list(SPACE, 10, None) == store.sessions.rotations(ref)[::-1]


@case("M1", "pages repeat nothing and miss nothing")
def pages_repeat_nothing(store: Harness) -> None:
    for number in range(7):
        store.key(f"key {number}")
        store.clock.advance(1)
    whole = store.sessions.list(SPACE, 100, None)
    assert len(whole) == 7
    for size in (1, 3, 7, 8):
        assert _pages(store, size) == whole
    assert store.sessions.list(SPACE, 0, None) == []


@case("M1", "pages repeat nothing and miss nothing when all are as old as each other")
def pages_repeat_nothing_under_a_standing_clock(store: Harness) -> None:
    for number in range(7):
        store.key(f"key {number}")
    whole = store.sessions.list(SPACE, 100, None)
    assert len(set(ids(whole))) == 7
    for size in (1, 2, 3):
        assert _pages(store, size) == whole


@case("M1", "a session that is born between two pages moves no other to another page")
def a_birth_between_pages_moves_nothing(store: Harness) -> None:
    for number in range(4):
        store.key(f"key {number}")
        store.clock.advance(1)
    whole = store.sessions.list(SPACE, 100, None)
    first = store.sessions.list(SPACE, 2, None)
    store.key("newborn")
    assert first + store.sessions.list(SPACE, 10, first[-1]) == whole

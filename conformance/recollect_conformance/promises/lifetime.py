"""Opening and closing: what was acknowledged is there afterwards, and a closed store says so."""

from __future__ import annotations

from recollect.errors import StoreClosed
from recollect.messages import Role
from recollect.types.records import KeyRef, MarkCause, Mode, NewRecord
from recollect_conformance.case import case, refused
from recollect_conformance.harness import AGENT, KEY, SPACE, Harness


def _furnish(store: Harness) -> KeyRef:
    """A conversation with something of everything."""
    ref = store.key()
    store.append(ref, 6)
    assert store.process(ref, 4, 6)
    store.compact(ref, retain=2, summary="so far")
    body = '{"role": "tool", "tool_call_id": "c", "content": "no", "is_error": true}'
    store.say(ref, NewRecord(role=Role.TOOL, content="no", body=body, append_key="k"))
    store.append(ref, 6)
    store.set_mode(store.key("other"), Mode.DISABLED)
    return ref


def _sights(store: Harness, ref: KeyRef) -> list[object]:
    sessions = store.sessions.rotations(ref)
    return [
        sessions,
        store.current(ref),
        store.everything(ref),
        store.records.all_rotations(ref),
        store.records.count(ref),
        store.records.summary(ref),
        [store.marks.ranges(SPACE, session.id) for session in sessions],
        store.marks.find_invalidated(SPACE, 10),
        store.marks.counts(None),
        store.sessions.list(SPACE, 10, None),
        store.sessions.spaces("", 10),
    ]


@case("T9 T1", "everything is there when the store is opened again; a volatile one is empty")
def everything_is_there_after_reopening(store: Harness) -> None:
    ref = _furnish(store)
    before = _sights(store, ref)
    store.reopen()
    if store.is_volatile:
        assert store.sessions.find_key(SPACE, KEY, AGENT) is None
        assert store.sessions.spaces("", 10) == []
        return
    assert store.sessions.find_key(SPACE, KEY, AGENT) == ref
    assert _sights(store, ref) == before


@case("M1 T1", "a store that was opened again goes on where it was")
def a_reopened_store_goes_on(store: Harness) -> None:
    ref = _furnish(store)
    keyed = store.records.recent(ref, 7)[0]
    store.reopen()
    again = store.key()
    [record] = store.append(again)
    assert record.seq == (1 if store.is_volatile else 8)
    if not store.is_volatile:
        given = NewRecord(role=keyed.role, content=keyed.content, body=keyed.body, append_key="k")
        assert store.say(again, given) == [keyed]
        assert store.current(again).invalidated_at == 8


@case("T1 T9", "two handles on one place see each other's work; two volatile ones are two places")
def two_handles_see_each_other(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    second = store.second_handle()
    if store.is_volatile:
        assert second.sessions.find_key(SPACE, KEY, AGENT) is None
        return
    found = second.sessions.find_key(SPACE, KEY, AGENT)
    assert found == ref
    assert second.records.recent(ref, None) == store.everything(ref)
    second.marks.invalidate(SPACE, store.current(ref).id, 3, MarkCause.REQUEST, store.now())
    assert store.current(ref).invalidated_at == 3
    second.sessions.rotate(ref, MarkCause.RESET, store.now(), store.new_id)
    assert store.append(ref)[0].seq == 1
    assert second.sessions.current(ref) == store.current(ref)


@case("P9", "a closed store says that it is closed, and closing it again does nothing")
def a_closed_store_says_so(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    store.handle.close()
    store.handle.close()
    with refused(StoreClosed):
        store.append(ref)
    with refused(StoreClosed):
        store.everything(ref)
    with refused(StoreClosed):
        store.marks.counts(None)


@case("T9", "a store says what it is, before and after")
def a_store_says_what_it_is(store: Harness) -> None:
    before = store.handle.describe()
    assert before.kind
    assert before.location
    assert before.schema_version >= 1
    _furnish(store)
    assert store.handle.describe() == before

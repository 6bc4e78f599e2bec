"""Rotation: the key stays, sessions come and go behind it, each with numbers of its own."""

from __future__ import annotations

from recollect.types.records import MarkCause, SessionBirth
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness, seqs


@case("T1", "a reset closes the session and opens an empty one behind the same key")
def a_reset_opens_an_empty_session(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    old = store.current(ref)
    at = store.clock.advance(1)
    new = store.reset(ref)
    closed = store.session(old.id)
    assert (closed.ended_at, closed.ended_by) == (at, MarkCause.RESET)
    assert new == store.current(ref)
    assert new.id != old.id
    assert (new.rotation, new.last_seq, new.created_at) == (2, 0, at)
    assert (new.invalidated_at, new.processed_until, new.ended_at) == (None, None, None)
    assert store.key() == ref


@case("T1", "a compaction says so as the reason of the end")
def a_compaction_says_so(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    old = store.current(ref)
    store.compact(ref)
    assert store.session(old.id).ended_by is MarkCause.COMPACTION


@case("M1 T1", "a new session counts from one, and the old one keeps its records")
def a_new_session_counts_from_one(store: Harness) -> None:
    ref = store.key()
    before = store.append(ref, 4)
    store.reset(ref)
    after = store.append(ref, 2)
    assert seqs(after) == [1, 2]
    assert store.everything(ref) == after
    assert store.records.count(ref) == 2
    assert store.records.after(SPACE, before[0].session_id, 0, 10) == before


@case("T1", "rotations come in their order, even under a clock that stands")
def rotations_come_in_their_order(store: Harness) -> None:
    ref = store.key()
    expected = [store.current(ref).id]
    for _ in range(5):
        store.append(ref)
        expected.append(store.reset(ref).id)
    found = store.sessions.rotations(ref)
    assert [session.id for session in found] == expected
    assert [session.rotation for session in found] == [1, 2, 3, 4, 5, 6]


@case("T1", "rotations come in their order, even under a clock that goes back")
def rotations_come_in_order_under_a_clock_that_goes_back(store: Harness) -> None:
    ref = store.key()
    for _ in range(3):
        store.append(ref, 2)
        store.clock.advance(-3600)
        store.reset(ref)
    assert [session.rotation for session in store.sessions.rotations(ref)] == [1, 2, 3, 4]
    assert store.current(ref).rotation == 4
    assert seqs(store.records.all_rotations(ref)) == [1, 2] * 3


@case("T1", "everything said under a key comes in order over its rotations, each record once")
def everything_under_a_key_comes_in_order(store: Harness) -> None:
    ref, other = store.key("one"), store.key("two")
    said = []
    for turn in range(4):
        said += store.append(ref, 3)
        store.append(other)
        (store.reset if turn % 2 else store.compact)(ref)
    assert store.records.all_rotations(ref) == said
    assert store.everything(ref) == []


@case("T1", "a new session inherits source, project and parent, and whether it is ephemeral")
def a_new_session_inherits(store: Harness) -> None:
    birth = SessionBirth(source="cli", project="/srv/app", parent="session-0", ephemeral=True)
    ref = store.key(birth=birth)
    store.append(ref)
    for new in (store.reset(ref), store.compact(ref)):
        assert (new.source, new.project, new.parent) == ("cli", "/srv/app", "session-0")
        assert new.ephemeral
        assert not new.remembered
    store.end(ref)
    store.append(ref)
    assert store.current(ref).ephemeral


@case("M8", "ending closes a session without opening the next")
def ending_opens_no_session(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    at = store.clock.advance(1)
    ended = store.end(ref)
    assert (ended.ended_at, ended.ended_by) == (at, MarkCause.END)
    assert ended == store.current(ref)
    assert store.sessions.rotations(ref) == [ended]
    assert len(store.everything(ref)) == 2


@case("M8 T1", "the first append after the end opens the next session")
def the_first_append_after_the_end_opens_a_session(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    ended = store.end(ref)
    store.clock.advance(1)
    [record] = store.append(ref)
    new = store.current(ref)
    assert record.seq == 1
    assert record.session_id == new.id != ended.id
    assert (new.rotation, new.ended_at, new.created_at) == (2, None, store.now())
    assert store.session(ended.id) == ended


@case("M8", "an end is set once and never overwritten")
def an_end_is_never_overwritten(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    ended = store.end(ref)
    store.clock.advance(60)
    assert store.end(ref) == ended
    store.reset(ref)
    again = store.session(ended.id)
    assert (again.ended_at, again.ended_by) == (ended.ended_at, MarkCause.END)
    assert store.current(ref).rotation == 2


@case("T1", "an empty session can be rotated as well")
def an_empty_session_can_be_rotated(store: Harness) -> None:
    ref = store.key()
    assert store.reset(ref).rotation == 2
    assert store.compact(ref, retain=5).rotation == 3
    assert store.everything(ref) == []


@case("T1", "rotating one key leaves the others alone")
def rotating_one_key_leaves_the_others_alone(store: Harness) -> None:
    one, two = store.key("one"), store.key("two")
    store.append(two, 3)
    before = store.current(two)
    store.append(one)
    store.reset(one)
    assert store.current(two) == before
    assert len(store.everything(two)) == 3

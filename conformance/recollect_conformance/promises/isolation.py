"""Spaces: nothing that is asked or done in one shows or changes anything of another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from recollect.errors import AppendKeyReused
from recollect.messages import Role
from recollect.types.records import KeyRef, MarkCause, Mode, NewRecord
from recollect_conformance.case import case
from recollect_conformance.harness import AGENT, KEY, Harness

OURS, THEIRS = "ours", "theirs"
CANARY = "the canary sings"
KEYED = NewRecord(role=Role.USER, content=CANARY, append_key="k")


def _theirs(store: Harness) -> KeyRef:
    """Another space with the same key and the same agent, in every state that could leak."""
    ref = store.key(space=THEIRS)
    store.say(ref, KEYED)
    store.append(ref, 6)
    store.records.set_summary(ref, CANARY, store.now())
    assert store.process(ref, 3, 7)
    store.sleep(ref)
    waiting = store.key("waiting", space=THEIRS)
    store.append(waiting, 2)
    return ref


def _snapshot(store: Harness, ref: KeyRef) -> list[object]:
    """All there is to see of their space."""
    session = store.current(ref)
    return [
        store.sessions.list(ref.space, 100, None),
        store.sessions.rotations(ref),
        store.records.all_rotations(ref),
        store.everything(ref),
        store.records.summary(ref),
        store.marks.ranges(ref.space, session.id),
        store.marks.find_invalidated(ref.space, 100),
        store.marks.counts(ref.space),
    ]


@case("P8", "no key, session or agent of another space is found")
def no_session_of_another_space_is_found(store: Harness) -> None:
    theirs = _theirs(store)
    assert store.sessions.find_key(OURS, KEY, AGENT) is None
    assert store.sessions.key_agents(OURS, KEY) == []
    assert store.sessions.get(OURS, store.current(theirs).id) is None
    assert store.sessions.list(OURS, 100, None) == []
    page = store.sessions.list(THEIRS, 1, None)
    assert store.sessions.list(OURS, 100, page[0]) == []


@case("P8", "the same key in two spaces is two conversations")
def the_same_key_in_two_spaces_is_two(store: Harness) -> None:
    theirs = _theirs(store)
    before = _snapshot(store, theirs)
    ours = store.key(space=OURS)
    assert ours.key_id != theirs.key_id
    assert store.current(ours).last_seq == 0
    assert store.everything(ours) == store.records.all_rotations(ours) == []
    assert store.records.count(ours) == 0
    assert store.records.summary(ours) == ""
    assert [record.seq for record in store.append(ours, 2)] == [1, 2]
    assert store.sessions.rotations(ours) == [store.current(ours)]
    assert _snapshot(store, theirs) == before


@case("P8", "no record of another space is read, with the right session id either")
def no_record_of_another_space_is_read(store: Harness) -> None:
    theirs = _theirs(store)
    session = store.current(theirs).id
    store.append(store.key(space=OURS))
    assert store.records.after(OURS, session, 0, 100) == []
    assert store.marks.max_seq(OURS, session) is None
    assert store.marks.count_since(OURS, session, 0) == 0
    assert store.marks.ranges(OURS, session) == []


@case("P8 M4", "no mark of another space is found or counted")
def no_mark_of_another_space_is_found(store: Harness) -> None:
    _theirs(store)
    assert store.marks.find_invalidated(OURS, 100) == []
    assert store.marks.counts(OURS) == (0, 0)
    assert store.marks.marked(OURS, 100) == []
    assert store.marks.waiting(OURS, 100) == []


@case("P8 M3 M5", "no session of another space is marked, processed or swept")
def no_session_of_another_space_is_changed(store: Harness) -> None:
    theirs = _theirs(store)
    session = store.current(theirs)
    before = _snapshot(store, theirs)
    assert session.invalidated_at == 7
    store.marks.invalidate(OURS, session.id, 99, MarkCause.REQUEST, store.now())
    assert not store.marks.mark_processed(OURS, session.id, 7, 7, store.now())
    store.clock.advance(3600)
    assert store.marks.mark_idle(OURS, None, store.now(), 100) == []
    assert _snapshot(store, theirs) == before


@case("P8 T1", "an append key of another space is unknown here")
def an_append_key_of_another_space_is_unknown(store: Harness) -> None:
    theirs = _theirs(store)
    before = _snapshot(store, theirs)
    ours = store.key(space=OURS)
    [said] = store.say(ours, NewRecord(role=Role.USER, content="ours", append_key="k"))
    assert (said.seq, said.content) == (1, "ours")
    assert _snapshot(store, theirs) == before


@case("P8", "whatever is done to a key in one space leaves the same key in another alone")
def whatever_is_done_here_leaves_the_other_alone(store: Harness) -> None:
    theirs = _theirs(store)
    before = _snapshot(store, theirs)
    ours = store.key(space=OURS)
    store.append(ours, 8)
    store.sleep(ours)
    store.process_all(ours)
    store.records.set_summary(ours, "ours", store.now())
    store.compact(ours, retain=4)
    store.set_mode(ours, Mode.DISABLED)
    store.reset(ours)
    store.append(ours, 3)
    store.records.trim(ours, 1)
    store.records.purge(ours, store.now())
    store.end(ours)
    assert _snapshot(store, theirs) == before


@case("P8", "a key reference that names the wrong space reads nothing and changes nothing")
def a_forged_reference_does_nothing(store: Harness) -> None:
    theirs = _theirs(store)
    before = _snapshot(store, theirs)
    store.append(store.key(space=OURS))
    forged = replace(theirs, space=OURS)
    attempts: list[Callable[[], object]] = [
        lambda: store.everything(forged),
        lambda: store.records.all_rotations(forged),
        lambda: store.records.count(forged),
        lambda: store.records.summary(forged),
        lambda: store.sessions.rotations(forged),
        lambda: store.sessions.current(forged),
        lambda: store.append(forged),
        lambda: store.say(forged, KEYED),
        lambda: store.records.set_summary(forged, "forged", store.now()),
        lambda: store.records.trim(forged, 0),
        lambda: store.records.purge(forged, store.now()),
        lambda: store.reset(forged),
        lambda: store.end(forged),
        lambda: store.sleep(forged),
        lambda: store.set_mode(forged, Mode.DISABLED),
    ]
    for attempt in attempts:
        # Whether it is refused or finds nothing is the backend's choice.
        found: object = None
        with suppress(AssertionError, LookupError, AppendKeyReused, ValueError):
            found = attempt()
        assert not found
        assert _snapshot(store, theirs) == before

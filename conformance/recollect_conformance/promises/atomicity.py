"""All or nothing: what fails half-way has not happened."""

from __future__ import annotations

from recollect.errors import AppendKeyReused
from recollect.messages import Role
from recollect.types.records import MarkCause, MarkPolicy, NewRecord, SessionBirth
from recollect_conformance.case import case, refused
from recollect_conformance.harness import AGENT, KEY, SPACE, Harness, seqs


class _NoId(Exception):
    """The source of ids failed."""


def _no_id() -> str:
    raise _NoId


@case("P1", "a key whose first session cannot be made does not exist")
def a_key_without_a_session_does_not_exist(store: Harness) -> None:
    with refused(_NoId):
        store.sessions.open_key(SPACE, KEY, AGENT, SessionBirth(), store.now(), _no_id)
    assert store.sessions.find_key(SPACE, KEY, AGENT) is None
    assert store.sessions.spaces("", 10) == []
    assert store.append(store.key())[0].seq == 1


@case("P1 M8", "a rotation that fails half-way neither marks nor closes")
def a_failed_rotation_changes_nothing(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    before = store.current(ref)
    with refused(_NoId):
        store.sessions.rotate(
            ref, MarkCause.COMPACTION, store.now(), _no_id, summary="new", retain=2
        )
    assert store.current(ref) == before
    assert store.sessions.rotations(ref) == [before]
    assert store.records.summary(ref) == ""
    assert seqs(store.append(ref)) == [4]


@case("P1", "an append that cannot open the next session stores nothing")
def a_failed_append_stores_nothing(store: Harness) -> None:
    ref = store.key()
    store.append(ref)
    ended = store.end(ref)
    record = NewRecord(role=Role.USER, content="lost", append_key="k")
    with refused(_NoId):
        store.records.append(ref, [record], MarkPolicy(), store.now(), _no_id)
    assert store.sessions.rotations(ref) == [ended]
    assert len(store.records.all_rotations(ref)) == 1
    assert store.say(ref, record)[0].seq == 1


@case("P1 M6", "a refused batch takes no number and leaves no mark")
def a_refused_batch_takes_no_number(store: Harness) -> None:
    ref = store.key()
    store.say(ref, NewRecord(role=Role.USER, content="first", append_key="k"))
    before = store.current(ref)
    batch = [store.text() for _ in range(10)]
    with refused(AppendKeyReused):
        store.say(ref, *batch, NewRecord(role=Role.USER, content="second", append_key="k"))
    assert store.current(ref) == before
    assert seqs(store.append(ref)) == [2]

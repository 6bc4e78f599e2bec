"""What a compaction keeps for the new session: the newest turns, whole, by reference."""

from __future__ import annotations

from recollect.messages import Role
from recollect.types.records import KeyRef, Record
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness, seqs

_ROLES = {"u": Role.USER, "a": Role.ASSISTANT, "t": Role.TOOL, "s": Role.SYSTEM}


def _play(store: Harness, ref: KeyRef, roles: str) -> list[Record]:
    """One record per letter: user, assistant, tool, system."""
    return store.say(ref, *(store.text(_ROLES[letter]) for letter in roles))


@case("T7", "retained records are shown as they are, where they are")
def retained_records_are_shown_as_they_are(store: Harness) -> None:
    ref = store.key()
    said = _play(store, ref, "uaua")
    new = store.compact(ref, retain=2)
    kept = store.everything(ref)
    assert kept == said[2:]
    assert all(record.session_id != new.id for record in kept)
    assert store.records.count(ref) == 2


@case("T7", "retained records come before what is said next, and recent counts both")
def retained_records_come_first(store: Harness) -> None:
    ref = store.key()
    old = _play(store, ref, "uaua")[2:]
    store.compact(ref, retain=2)
    new = _play(store, ref, "ua")
    assert seqs(new) == [1, 2]
    assert store.everything(ref) == old + new
    assert store.records.count(ref) == len(store.everything(ref)) == 4
    for limit in range(6):
        assert store.records.recent(ref, limit) == (old + new)[4 - min(limit, 4) :]


@case("T7", "what is kept starts at the beginning of a turn")
def what_is_kept_starts_a_turn(store: Harness) -> None:
    for retain, kept in ((1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 6), (7, 6)):
        ref = store.key(f"retain {retain}")
        said = _play(store, ref, "uataua")
        store.compact(ref, retain=retain)
        assert store.everything(ref) == said[-kept:], f"retain={retain}"


@case("T7", "in a turn too long to fit, what is kept does not start with a tool's answer")
def what_is_kept_orphans_no_tool_result(store: Harness) -> None:
    ref = store.key()
    said = _play(store, ref, "uatttatt")
    store.compact(ref, retain=5)
    assert store.everything(ref) == said[5:]
    tools = store.key("tools only")
    _play(store, tools, "uattt")
    store.compact(tools, retain=3)
    assert store.everything(tools) == []
    assert store.records.count(tools) == 0


@case("T7", "asking for more than there is keeps all from the first turn on")
def asking_for_more_keeps_all(store: Harness) -> None:
    ref = store.key()
    said = _play(store, ref, "suaua")
    store.compact(ref, retain=100)
    assert store.everything(ref) == said[1:]


@case("T7", "asking for nothing keeps nothing")
def asking_for_nothing_keeps_nothing(store: Harness) -> None:
    ref = store.key()
    _play(store, ref, "uaua")
    store.compact(ref, retain=0)
    assert store.everything(ref) == []
    assert store.records.count(ref) == 0


@case("T7", "what is kept is kept again by the next compaction, together with what is new")
def what_is_kept_is_kept_again(store: Harness) -> None:
    ref = store.key()
    first = _play(store, ref, "uaua")
    store.compact(ref, retain=4)
    second = _play(store, ref, "ua")
    store.compact(ref, retain=4)
    assert store.everything(ref) == first[2:] + second
    third = _play(store, ref, "u")
    store.compact(ref, retain=3)
    assert store.everything(ref) == second + third
    assert store.records.count(ref) == 3
    store.compact(ref, retain=3)
    assert store.everything(ref) == second + third


@case("T7 M10", "what is kept is learned once: it is no new record and counts for nothing")
def what_is_kept_is_learned_once(store: Harness) -> None:
    ref = store.key()
    said = _play(store, ref, "uauaua")
    new = store.compact(ref, retain=6)
    assert (new.last_seq, new.unprocessed) == (0, 0)
    assert store.marks.max_seq(SPACE, new.id) is None
    assert store.marks.count_since(SPACE, new.id, 0) == 0
    assert store.records.after(SPACE, new.id, 0, 10) == []
    assert store.sleep(ref).invalidated_at is None
    store.append(ref, 5)
    assert store.current(ref).invalidated_at is None
    assert seqs(store.records.all_rotations(ref)) == [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5]
    assert store.records.all_rotations(ref)[:6] == said


@case("T7", "what is kept stays when the old session has been processed")
def what_is_kept_stays_after_processing(store: Harness) -> None:
    ref = store.key()
    said = _play(store, ref, "uaua")
    store.compact(ref, retain=2)
    assert store.marks.mark_processed(SPACE, said[0].session_id, 4, 4, store.now())
    assert store.everything(ref) == said[2:]


@case("T7", "a reset keeps nothing of what a compaction kept")
def a_reset_keeps_nothing(store: Harness) -> None:
    ref = store.key()
    _play(store, ref, "uaua")
    store.compact(ref, retain=2)
    store.reset(ref)
    assert store.everything(ref) == []
    assert store.records.count(ref) == 0

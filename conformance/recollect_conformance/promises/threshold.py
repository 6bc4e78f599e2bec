"""The threshold: the sixth unprocessed record, or completed turn, marks a session."""

from __future__ import annotations

from recollect.messages import Role
from recollect.types.records import MarkCause, MarkPolicy, MarkUnit
from recollect_conformance.case import case
from recollect_conformance.harness import Harness

TURNS = MarkPolicy(unit=MarkUnit.TURNS)


@case("M6", "five unprocessed records do not mark a session")
def five_records_do_not_mark(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 5)
    session = store.current(ref)
    assert session.invalidated_at is None
    assert session.marked_at is None
    assert session.unprocessed == 5


@case("M6", "the sixth unprocessed record marks the session up to itself")
def the_sixth_record_marks(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 5)
    marked_at = store.clock.advance(1)
    store.append(ref)
    session = store.current(ref)
    assert session.invalidated_at == 6
    assert session.marked_at == marked_at
    assert session.marked_by is MarkCause.THRESHOLD


@case("M6", "later records raise the mark; when and why stay those of the first marking")
def later_records_raise_the_mark(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    marked_at = store.now()
    for seq in range(7, 10):
        store.clock.advance(1)
        store.append(ref)
        session = store.current(ref)
        assert session.invalidated_at == seq
        assert session.marked_at == marked_at
        assert session.marked_by is MarkCause.THRESHOLD


@case("M6", "a batch that crosses the threshold marks up to its last record")
def a_batch_that_crosses_marks_up_to_its_last(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 3)
    store.say(ref, *(store.text() for _ in range(2)))
    assert store.current(ref).invalidated_at is None
    store.say(ref, *(store.text() for _ in range(4)))
    assert store.current(ref).invalidated_at == 9


@case("M6", "every role counts as a record")
def every_role_counts(store: Harness) -> None:
    ref = store.key()
    store.say(ref, *(store.text(role) for role in Role))
    assert len(Role) == 6
    assert store.current(ref).invalidated_at == 6


@case("M6", "the count starts again after the cursor")
def the_count_starts_again_after_the_cursor(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    assert store.process(ref, 6, 6)
    store.append(ref, 5)
    assert store.current(ref).invalidated_at is None
    store.append(ref)
    assert store.current(ref).invalidated_at == 12


@case("M6", "records left behind by a cursor count towards the next mark")
def records_left_behind_count(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 6)
    assert store.process(ref, 2, 6)
    session = store.current(ref)
    assert (session.invalidated_at, session.unprocessed) == (None, 4)
    store.append(ref)
    assert store.current(ref).invalidated_at is None
    store.append(ref)
    assert store.current(ref).invalidated_at == 8


@case("M6", "the threshold is the policy's, from zero on")
def the_threshold_is_the_policys(store: Harness) -> None:
    for threshold in (0, 1, 9):
        ref = store.key(f"threshold {threshold}")
        policy = MarkPolicy(threshold=threshold)
        store.append(ref, threshold, policy=policy)
        assert store.current(ref).invalidated_at is None
        store.append(ref, policy=policy)
        assert store.current(ref).invalidated_at == threshold + 1


@case("M6", "each session has a count of its own")
def each_session_has_a_count_of_its_own(store: Harness) -> None:
    one, two = store.key("one"), store.key("two")
    for _ in range(5):
        store.append(one)
        store.append(two)
    assert store.marks.counts(None) == (0, 2)
    store.append(one)
    assert store.current(one).invalidated_at == 6
    assert store.current(two).invalidated_at is None


@case("M3 M6", "a mark beyond the last record is not lowered by appends below it")
def an_append_does_not_lower_a_mark(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    store.invalidate(ref, 50)
    store.append(ref, 10)
    session = store.current(ref)
    assert session.invalidated_at == 50
    assert session.marked_by is MarkCause.REQUEST


@case("M6", "below the threshold an append leaves a mark where it is")
def below_the_threshold_a_mark_stays(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 2)
    store.sleep(ref)
    store.append(ref, 3)
    assert store.current(ref).invalidated_at == 2
    store.append(ref)
    session = store.current(ref)
    assert session.invalidated_at == 6
    assert session.marked_by is MarkCause.SLEEP


@case("M6", "by turns: the sixth completed turn marks, that is, the user's seventh word")
def by_turns_the_sixth_completed_turn_marks(store: Harness) -> None:
    ref = store.key()
    for _ in range(6):
        store.append(ref, 1, policy=TURNS)
        store.append(ref, 3, role=Role.ASSISTANT, policy=TURNS)
    assert store.current(ref).invalidated_at is None
    store.append(ref, policy=TURNS)
    session = store.current(ref)
    assert session.invalidated_at == session.last_seq == 25
    assert session.marked_by is MarkCause.THRESHOLD


@case("M6", "by turns: whatever is said inside one turn does not mark")
def by_turns_one_long_turn_does_not_mark(store: Harness) -> None:
    ref = store.key()
    store.append(ref, policy=TURNS)
    for role in (Role.ASSISTANT, Role.TOOL, Role.SYSTEM, Role.NOTE, Role.DEVELOPER) * 4:
        store.append(ref, role=role, policy=TURNS)
    assert store.current(ref).invalidated_at is None


@case("M6", "by turns: a batch counts its turns")
def by_turns_a_batch_counts_its_turns(store: Harness) -> None:
    ref = store.key()
    turn = [Role.USER, Role.ASSISTANT]
    store.say(ref, *(store.text(role) for role in turn * 6), policy=TURNS)
    assert store.current(ref).invalidated_at is None
    store.say(ref, *(store.text(role) for role in turn * 2), policy=TURNS)
    assert store.current(ref).invalidated_at == 16


@case("M6", "by turns: the count starts again after the cursor")
def by_turns_the_count_starts_again_after_the_cursor(store: Harness) -> None:
    ref = store.key()
    store.append(ref, 7, policy=TURNS)
    assert store.current(ref).invalidated_at == 7
    assert store.process(ref, 5, 7)
    store.append(ref, 4, policy=TURNS)
    assert store.current(ref).invalidated_at is None
    store.append(ref, policy=TURNS)
    assert store.current(ref).invalidated_at == 12

"""T7: which parts of a history belong together, and where it may be cut."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from recollect.context.turns import ShownStep, cuts, steps
from recollect.messages import Role, Text
from recollect.types.records import Record
from tests.unit.context.histories import (
    assistant,
    histories,
    note,
    records,
    result,
    system,
    user,
)


def pairs(found: tuple[ShownStep, ...]) -> list[tuple[int, int]]:
    """(record of the call, record of its answer)."""
    return [
        (step.said.position, answer.position)
        for step in found
        if step.said is not None
        for answer in step.answers
        if answer is not None
    ]


def lone(found: tuple[ShownStep, ...]) -> list[int]:
    """The records of answers without a call."""
    return [step.positions[0] for step in found if step.said is None]


# where a history may be cut


def test_a_turn_begins_where_a_user_speaks() -> None:
    history = records(user("a"), assistant("b"), user("c"), assistant("d"), note("e"), user("f"))
    assert cuts(history) == (0, 2, 5)


def test_several_records_of_the_user_in_a_row_are_one_beginning() -> None:
    history = records(assistant("hello"), user("a"), user("b"), assistant("c"), user("d"))
    assert cuts(history) == (1, 4)


def test_no_cut_parts_a_call_from_a_late_result() -> None:
    history = records(
        user("a"), assistant("b", "c1"), user("still there?"), result("r", "c1"), user("d")
    )
    assert cuts(history) == (0, 4)


def test_no_cut_parts_a_call_from_a_result_under_the_user_s_role() -> None:
    block = {"type": "tool_result", "tool_use_id": "c1", "content": "r"}
    words = {"type": "text", "text": "and go on"}
    mixed = {"role": "user", "content": [block, words]}
    history = records(user("a"), assistant("b", "c1"), mixed, assistant("c"), user("d"))
    assert history[2].role is Role.USER
    assert cuts(history) == (0, 4)


def test_a_call_that_was_never_answered_forbids_no_cut() -> None:
    history = records(user("a"), assistant("b", "c1"), user("c"), assistant("d"), user("e"))
    assert cuts(history) == (0, 2, 4)


def test_without_a_user_there_are_cuts_between_steps() -> None:
    history = records(note("a"), assistant("b", "c1", "c2"), result("x", "c2"), result("y", "c1"))
    assert cuts([*history, *records(note("z"))]) == (0, 1, 4)
    assert cuts([]) == ()


@given(histories())
def test_no_cut_ever_parts_a_call_from_its_result(history: list[Record]) -> None:
    """T7: the two sides of a cut have the pairs and the lone results of the whole, no others."""
    whole = steps(history)
    for at in cuts(history):
        before, after = steps(history[:at]), steps(history[at:])
        moved = [(call + at, answer + at) for call, answer in pairs(after)]
        assert sorted(pairs(before) + moved) == sorted(pairs(whole))
        assert sorted(lone(before) + [each + at for each in lone(after)]) == sorted(lone(whole))
        assert history[at].role is (Role.USER if _has_user(history) else history[at].role)


def _has_user(history: list[Record]) -> bool:
    return any(record.role is Role.USER for record in history)


# which answer belongs to which call


def test_results_are_found_by_the_id_of_their_call() -> None:
    found = steps(records(assistant("", "c1", "c2"), result("two", "c2"), result("one", "c1")))
    assert [a.result.text for a in found[0].answers if a] == ["one", "two"]


def test_an_id_that_comes_again_means_the_newest_call() -> None:
    history = records(
        user("a"), assistant("", "c1"), user("b"), assistant("", "c1"), result("r", "c1")
    )
    assert pairs(steps(history)) == [(3, 4)]
    assert pairs(steps([*history, *records(result("late", "c1"))])) == [(1, 5), (3, 4)]


def test_an_id_twice_in_one_message_is_answered_in_order() -> None:
    (step,) = steps(records(assistant("", "x", "x"), result("one", "x"), result("two", "x")))
    assert [answer.result.text for answer in step.answers if answer] == ["one", "two"]
    assert len(set(step.call_ids)) == 2


@pytest.mark.parametrize("call_id", ["c1", None])
def test_a_result_without_an_id_belongs_to_the_newest_open_call_of_the_turn(
    call_id: str | None,
) -> None:
    asked = [user("a"), assistant("", call_id), result("one", None)]
    assert pairs(steps(records(*asked))) == [(1, 2)]
    again = records(*asked, result("two", None))
    assert lone(steps(again)) == [3]


def test_a_result_without_an_id_does_not_answer_a_turn_before() -> None:
    history = records(user("a"), assistant("", "c1"), user("b"), result("r", None))
    assert lone(steps(history)) == [3]


@given(histories())
def test_every_result_is_in_exactly_one_step(history: list[Record]) -> None:
    whole = steps(history)
    answered = [answer.position for step in whole for answer in step.answers if answer is not None]
    expected = [at for at, record in enumerate(history) for _ in record.tool_results]
    assert sorted(answered) == expected


@given(histories())
def test_every_call_has_an_id_of_its_own_to_be_shown_by(history: list[Record]) -> None:
    shown = [call_id for step in steps(history) for call_id in step.call_ids]
    assert len(shown) == sum(len(record.tool_calls) for record in history)
    assert len(set(shown)) == len(shown)


def test_an_id_no_provider_would_take_is_replaced() -> None:
    (step,) = steps(records(assistant("", "a b", "x" * 200, None, "fine-1")))
    assert step.call_ids == ("call_1_1", "call_1_2", "call_1_3", "fine-1")


def test_very_many_calls_under_one_id_are_paired_in_good_time() -> None:
    """P8: each call is looked at a few times, however many there are."""
    count = 5000
    many = records(assistant("", *["x"] * count), *(result("r", "x") for _ in range(count)))
    assert len(pairs(steps(many))) == count


def test_a_message_nobody_can_read_any_more_still_has_its_words() -> None:
    (record,) = records({"role": "assistant", "content": [{"type": "text", "text": "kept"}]})
    broken = dataclasses.replace(record, body='{"role": "of another version"}')
    (step,) = steps([broken])
    assert step.said is not None
    assert step.said.parts == (Text("kept"),)


def test_system_records_are_steps_of_their_own() -> None:
    found = steps(records(system("s"), user("a")))
    assert [step.is_users for step in found] == [False, True]

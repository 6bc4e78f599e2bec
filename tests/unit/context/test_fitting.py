"""T7: what of a history fits a window, down to an emergency: fewer messages, and shortened ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.context.assembly import Fitted, fit_records
from recollect.context.compaction import record_tokens
from recollect.errors import PromptTooLong
from recollect.extraction.transcript import Redact
from recollect.messages import Role
from recollect.models.protocol import ChatRole
from recollect.models.tokens import estimate_message
from recollect.types.records import Record
from tests.unit.context.histories import (
    assert_no_pair_is_split,
    assistant,
    histories,
    numbers,
    records,
    result,
    turns,
    unchanged,
    user,
    users_words,
)

PLENTY = 10**9


def tokens(history: list[Record]) -> int:
    return sum(map(record_tokens, history))


def fitted(history: list[Record], *, tokens_max: int, retain: int = 5, redact: Redact) -> Fitted:
    return fit_records(history, tokens_max=tokens_max, messages_max=retain, redact=redact)


def test_in_an_emergency_the_newest_messages_are_kept() -> None:
    kept = fitted(turns(25), tokens_max=PLENTY, retain=2, redact=unchanged)
    assert [message.text for message in kept.messages] == ["question 25", "answer 25"]
    assert kept.left_out == 48


def test_fewer_are_kept_where_they_do_not_fit() -> None:
    history = turns(3, chars=400)
    kept = fitted(history, tokens_max=tokens(history) // 2, redact=unchanged)
    assert len(kept.messages) == 2
    assert kept.left_out == 4


def test_what_is_short_enough_is_left_alone() -> None:
    history = turns(2)
    kept = fitted(history, tokens_max=PLENTY, redact=unchanged)
    assert [message.text for message in kept.messages] == [
        record.content.strip() for record in history
    ]
    assert kept.left_out == 0


def test_a_giant_message_is_shortened_in_the_middle() -> None:
    text = "BEGIN " + "x" * 500_000 + " END"
    kept = fitted(records(user(text)), tokens_max=1000, redact=unchanged)
    (message,) = kept.messages
    assert message.text.startswith("BEGIN ")
    assert message.text.endswith(" END")
    assert "characters left out" in message.text
    assert 900 < kept.token_count <= 1000


def test_a_giant_result_is_shortened_and_its_call_and_the_question_stay() -> None:
    history = records(
        user("read it"), assistant("", "c1", arguments={"path": "a"}), result("r" * 90_000, "c1")
    )
    kept = fitted(history, tokens_max=600, redact=unchanged)
    question, call, answer = kept.messages
    assert question.text == "read it"
    assert call.tool_calls[0].arguments == {"path": "a"}
    assert "characters left out" in answer.text
    assert kept.token_count <= 600


def test_a_giant_question_and_a_giant_result_share_what_there_is() -> None:
    history = records(user("q" * 90_000), assistant("", "c1"), result("r" * 90_000, "c1"))
    kept = fitted(history, tokens_max=1000, redact=unchanged)
    question, _, answer = kept.messages
    assert 400 < estimate_message(question) < 600
    assert 400 < estimate_message(answer) < 600
    assert kept.token_count <= 1000


def test_giant_arguments_are_shortened_and_stay_arguments() -> None:
    arguments = {"path": "notes.md", "text": "x" * 90_000}
    history = records(user("write"), assistant("", "c1", arguments=arguments), result("ok", "c1"))
    kept = fitted(history, tokens_max=400, redact=unchanged)
    assert kept.token_count <= 400
    given_now = kept.messages[1].tool_calls[0].arguments
    assert given_now["path"] == "notes.md"
    assert 0 < len(given_now["text"]) < 1600


def test_of_a_long_turn_the_question_and_the_newest_steps_are_kept() -> None:
    steps = []
    for number in range(20):
        steps += [assistant("", f"c{number}"), result(f"found {number}", f"c{number}")]
    history = records(user("find it"), *steps)
    kept = fitted(history, tokens_max=PLENTY, redact=unchanged)
    assert [message.text for message in kept.messages] == [
        "find it",
        "[Left out here: 38 earlier messages]",
        "",
        "found 19",
    ]
    assert kept.left_out == 38


def test_what_came_before_the_first_question_is_not_shown_in_part() -> None:
    history = records(*(assistant("a" * 800) for _ in range(9)), user("hi"))
    kept = fitted(history, tokens_max=1500, retain=100, redact=unchanged)
    assert [message.text for message in kept.messages] == ["hi"]
    assert kept.left_out == 9


def test_a_result_long_after_its_call_stands_alone() -> None:
    """P8: of a long history only the newest part is read, whatever stands before it."""
    begun = records(user("look"), assistant("", "c1"))
    kept = fitted(
        [*begun, *turns(100), *records(user("well?"), result("there", "c1"))],
        tokens_max=PLENTY,
        retain=2,
        redact=unchanged,
    )
    assert [message.text for message in kept.messages] == [
        "well?",
        "[Result of a call; the call is not shown]\n| there",
    ]


def test_of_more_calls_than_messages_the_last_are_kept_with_their_results() -> None:
    ids = [f"c{number}" for number in range(10)]
    history = records(
        user("all"), assistant("", *ids), *(result(f"r {each}", each) for each in ids)
    )
    kept = fitted(history, tokens_max=PLENTY, redact=unchanged)
    assert_no_pair_is_split(kept.messages)
    assert [message.text for message in kept.messages] == ["all", "", "r c7", "r c8", "r c9"]


def test_of_calls_too_many_for_the_tokens_some_are_kept() -> None:
    ids = [f"c{number}" for number in range(200)]
    history = records(user("all"), assistant("", *ids), *(result("r", each) for each in ids))
    kept = fitted(history, tokens_max=300, retain=1000, redact=unchanged)
    assert_no_pair_is_split(kept.messages)
    assert kept.messages[0].text == "all"
    assert len(kept.messages) > 4


def test_the_newest_words_of_the_user_are_kept_where_only_one_message_may_be() -> None:
    history = records(user("a"), assistant("b"), user("c"), assistant("d"))
    kept = fitted(history, tokens_max=PLENTY, retain=1, redact=unchanged)
    assert [message.text for message in kept.messages] == ["c"]


def test_where_not_one_word_fits_an_error_says_so() -> None:
    with pytest.raises(PromptTooLong):
        fitted(turns(1), tokens_max=3, redact=unchanged)
    with pytest.raises(PromptTooLong):
        fitted(turns(1), tokens_max=PLENTY, retain=0, redact=unchanged)


@given(histories(), st.integers(6, 1500), st.integers(1, 12))
def test_what_is_kept_always_fits(history: list[Record], tokens_max: int, retain: int) -> None:
    """T7: any history, any limits: it fits, in order, no pair split, the user's newest words."""
    try:
        kept = fitted(history, tokens_max=tokens_max, retain=retain, redact=unchanged)
    except PromptTooLong:  # a call and its result cannot be one message, nor a few tokens
        assert not any(record.role is Role.USER for record in history)
        assert retain == 1 or tokens_max < 60
        return
    assert kept.token_count == sum(map(estimate_message, kept.messages)) <= tokens_max
    assert len(kept.messages) <= retain
    assert numbers(kept.messages) == sorted(numbers(kept.messages))
    assert_no_pair_is_split(kept.messages)
    said = [record for record in history if record.role is Role.USER]
    if said:
        assert users_words(kept.messages)
    if said and tokens_max > 40:
        newest = said[-1].content.split()[0]
        assert newest in users_words(kept.messages)[-1].text


@given(histories(), st.integers(60, 1500), st.integers(2, 12))
def test_what_was_left_out_leaves_a_history_that_begins_with_a_turn(
    history: list[Record], tokens_max: int, retain: int
) -> None:
    kept = fitted(history, tokens_max=tokens_max, retain=retain, redact=unchanged)
    has_user = any(record.role is Role.USER for record in history)
    if kept.left_out and has_user:
        assert kept.messages[0] in users_words(kept.messages)


@given(histories(), st.integers(60, 1500), st.integers(2, 12))
def test_nothing_is_shown_that_more_room_would_not_show(
    history: list[Record], tokens_max: int, retain: int
) -> None:
    tight = fitted(history, tokens_max=tokens_max, retain=retain, redact=unchanged)
    wide = fitted(history, tokens_max=PLENTY, retain=10**6, redact=unchanged)
    assert set(numbers(tight.messages)) <= set(numbers(wide.messages))
    assert wide.left_out <= tight.left_out
    assert all(message.role is not ChatRole.SYSTEM for message in wide.messages)

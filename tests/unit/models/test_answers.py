"""Answers: only one that is whole and not empty is one."""

from __future__ import annotations

import pytest

from recollect.errors import (
    InvalidOutput,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
)
from recollect.messages import ToolCall
from recollect.models.answers import CallPiece, Gathering, StopReason
from tests.tables import every_row


def gathered(
    *parts: object, stop: StopReason | None = StopReason.DONE, bytes_max: int = 1000
) -> Gathering:
    gathering = Gathering(bytes_max)
    for part in parts:
        gathering.add(part)
    gathering.stop = stop
    return gathering


def test_the_parts_of_an_answer_make_it() -> None:
    answer = gathered("Hello ", None, 7, "there").finish()
    assert answer.text == "Hello there"
    assert (answer.model, answer.input_tokens, answer.output_tokens) == (None, None, None)


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        (None, ModelUnavailable),
        (StopReason.BROKEN, ModelUnavailable),
        (StopReason.LENGTH, InvalidOutput),
        (StopReason.WINDOW, PromptTooLong),
        (StopReason.REFUSED, ModelRejected),
    ],
)
def test_an_answer_that_is_not_whole_is_an_error(
    stop: StopReason | None, error: type[ModelError]
) -> None:
    with pytest.raises(error):
        gathered('{"facts": []}', stop=stop).finish()


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_an_empty_answer_is_an_error(text: str) -> None:
    with pytest.raises(InvalidOutput, match="empty"):
        gathered(text).finish()


def test_a_refusal_wins_over_what_was_said_before_it() -> None:
    gathering = gathered("Sure, ")
    gathering.refusal = "I cannot\nhelp."
    with pytest.raises(ModelRejected, match="I cannot help"):
        gathering.finish()


def test_an_answer_ends_at_its_limit_of_bytes_not_of_characters() -> None:
    assert gathered("ü" * 5, bytes_max=10).finish().text == "ü" * 5
    with pytest.raises(InvalidOutput, match="longer than 10 bytes"):
        gathered("ü" * 5, "x", bytes_max=10)


def test_a_tools_input_takes_the_place_of_words_before_it() -> None:
    gathering = gathered("Let me see.")
    gathering.begin_tool_input()
    gathering.add("{}")
    assert gathering.finish().text == "{}"


def test_halves_of_a_character_are_joined_and_a_lone_half_is_replaced() -> None:
    assert gathered("\ud83d", "\ude00").finish().text == "\U0001f600"
    text = gathered("a\ud83d", "b").finish().text
    assert text == "a\ufffdb"
    assert text.encode()


@every_row("count", [0, -1, True, 1.5, "12", None, 10**15])
def test_what_is_no_count_of_tokens_is_passed_over(count: object) -> None:
    gathering = gathered("text")
    gathering.count(sent=7, answered=8)
    gathering.count(sent=count, answered=count)
    answer = gathering.finish()
    assert (answer.input_tokens, answer.output_tokens) == (7, 8)


def test_a_call_without_words_is_an_answer() -> None:
    gathering = Gathering(1000, has_tools=True)
    gathering.begin_call(CallPiece(id="a", name="look", arguments={"at": 1}))
    gathering.stop = StopReason.DONE
    answer = gathering.finish()
    assert (answer.text, answer.tool_calls) == ("", (ToolCall("a", "look", {"at": 1}),))


def test_a_call_where_no_tools_were_offered_is_nothing() -> None:
    gathering = Gathering(1000)
    gathering.begin_call(CallPiece(id="a", name="look"))
    gathering.go_on_with_call(CallPiece(arguments="{}"))
    gathering.stop = StopReason.DONE
    with pytest.raises(InvalidOutput, match="empty"):
        gathering.finish()


@pytest.mark.parametrize(
    "piece",
    [
        CallPiece(name="ü" * 6),
        CallPiece(id="ü" * 6),
        CallPiece(arguments="ü" * 6),
        CallPiece(arguments={"a": "ü" * 6}),
        CallPiece(arguments=["ü" * 6]),
    ],
)
def test_every_part_of_a_call_takes_room_in_bytes(piece: CallPiece) -> None:
    Gathering(50, has_tools=True).begin_call(piece)
    with pytest.raises(InvalidOutput, match="longer than 11 bytes"):
        Gathering(11, has_tools=True).begin_call(piece)

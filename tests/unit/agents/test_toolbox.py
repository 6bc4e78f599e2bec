"""The one door to an agent's tools: what is on the list is run, and every mistake is told back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from recollect.agents.toolbox import OUTPUT_CHARS_MAX, Tool, Toolbox
from recollect.errors import (
    InvalidValue,
    NotAllowed,
    Postponed,
    RecollectError,
    StoreBusy,
    StoreClosed,
    StoreUnavailable,
)
from recollect.messages import ToolCall
from recollect.models.protocol import ToolDefinition
from tests.tables import every_row


def tool(name: str, run: Any) -> Tool:
    return Tool(
        definition=ToolDefinition(name=name, description=name, parameters={"type": "object"}),
        run=run,
    )


def raising(error: Exception) -> Any:
    def run(_: Mapping[str, Any]) -> object:
        raise error

    return run


def call(toolbox: Toolbox, name: str, arguments: object = None) -> Any:
    return toolbox.call(ToolCall("c1", name, arguments))


def test_what_a_tool_gives_is_its_answer() -> None:
    toolbox = Toolbox([tool("greet", lambda given: f"hello {given['name']}")])
    answer = call(toolbox, "greet", {"name": "Alice"})
    assert (answer.text, answer.is_error) == ("hello Alice", False)


@pytest.mark.parametrize("given", [{"a": [1]}, [1, 2], None, True, 3.5], ids=repr)
def test_what_is_no_text_becomes_json(given: object) -> None:
    assert json.loads(call(Toolbox([tool("t", lambda _: given)]), "t").text) == given


def test_what_json_cannot_hold_is_told_as_text() -> None:
    assert "object at" in call(Toolbox([tool("t", lambda _: object())]), "t").text


@pytest.mark.parametrize("given", [None, "", "{}", {}], ids=repr)
def test_no_arguments_are_none(given: object) -> None:
    seen: list[object] = []
    call(Toolbox([tool("t", lambda arguments: seen.append(dict(arguments)))]), "t", given)
    assert seen == [{}]


def test_arguments_as_text_are_read() -> None:
    toolbox = Toolbox([tool("t", lambda given: given["a"])])
    assert call(toolbox, "t", '{"a": "b"}').text == "b"


BROKEN = ["{", "nonsense", "[1]", '"text"', "5", "null", "[" * 100_000, [1], 5, True]


@every_row("given", BROKEN)
def test_broken_arguments_are_told_and_nothing_is_run(given: object) -> None:
    ran: list[object] = []
    answer = call(Toolbox([tool("t", ran.append)]), "t", given)
    assert answer.is_error
    assert answer.text.startswith("Error: the arguments are")
    assert "t again with a JSON object" in answer.text
    assert ran == []


def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    answer = call(Toolbox([tool("b", str), tool("a", str)]), "rm" * 200)
    assert answer.is_error
    assert answer.text.endswith("there are: a, b")
    assert len(answer.text) < 300
    assert call(Toolbox(), "x").text.endswith("there are: none")


def test_what_is_not_allowed_is_neither_shown_nor_run() -> None:
    """The list is enforced when a tool is run, whatever the model was shown."""
    ran: list[object] = []
    toolbox = Toolbox([tool("read", str), tool("delete", ran.append)], allowed={"read"})
    assert [each.name for each in toolbox.definitions] == ["read"]
    assert call(toolbox, "delete", {}).is_error
    assert ran == []


@every_row("name", ["Read", " read", "read ", "read\0", "", "read;delete"])
def test_a_name_is_the_name_and_nothing_like_it(name: str) -> None:
    ran: list[object] = []
    assert call(Toolbox([tool("read", ran.append)]), name).is_error
    assert ran == []


@pytest.mark.parametrize(
    "error", [ValueError("bad luck"), KeyError("x"), ZeroDivisionError("bad luck"), OSError("gone")]
)
def test_a_tool_that_raises_is_told_to_the_model(error: Exception) -> None:
    answer = call(Toolbox([tool("t", raising(error))]), "t")
    assert answer.is_error
    assert answer.text == f"Error: t failed: {type(error).__name__}: {error}"


@pytest.mark.parametrize("error", [InvalidValue("not like that"), NotAllowed("outside")])
def test_what_the_call_did_wrong_is_told_in_its_own_words(error: RecollectError) -> None:
    assert call(Toolbox([tool("t", raising(error))]), "t").text == f"Error: {error}"


@pytest.mark.parametrize(
    "error",
    [StoreUnavailable("x"), StoreBusy("x"), StoreClosed("x"), Postponed("x", delay_seconds=1)],
)
def test_what_is_wrong_with_the_store_is_not_the_models_to_mend(error: RecollectError) -> None:
    with pytest.raises(type(error)):
        call(Toolbox([tool("t", raising(error))]), "t")


def test_an_error_is_redacted() -> None:
    toolbox = Toolbox(
        [tool("t", raising(ValueError("the key is hunter2")))],
        redact=lambda text: text.replace("hunter2", "[secret]"),
    )
    assert call(toolbox, "t").text.endswith("the key is [secret]")


def test_a_huge_answer_is_cut_and_says_so() -> None:
    answer = call(Toolbox([tool("t", lambda _: "x" * 10_000_000)]), "t")
    assert len(answer.text) < OUTPUT_CHARS_MAX + 100
    assert answer.text.endswith(
        f"[{10_000_000 - OUTPUT_CHARS_MAX:,} characters more were left out]"
    )
    whole = call(Toolbox([tool("t", lambda _: "x" * OUTPUT_CHARS_MAX)]), "t")
    assert len(whole.text) == OUTPUT_CHARS_MAX


def test_a_huge_error_is_cut_too() -> None:
    answer = call(Toolbox([tool("t", raising(ValueError("y" * 1_000_000)))]), "t")
    assert len(answer.text) < OUTPUT_CHARS_MAX + 100


def test_an_answer_that_says_error_is_one() -> None:
    answer = call(Toolbox([tool("t", lambda _: "Error: no such page")]), "t")
    assert answer.is_error

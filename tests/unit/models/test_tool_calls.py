"""Conversations with tools over HTTP, in both protocols: what is sent, what comes back, and what
is no whole answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from recollect.errors import (
    InvalidOutput,
    InvalidValue,
    ModelDenied,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
)
from recollect.messages import ToolCall
from recollect.models.answers import CALLS_MAX
from recollect.models.protocol import Completion, Model, Request
from recollect_conformance.scripted import (
    ScriptedServer,
    Step,
    answer,
    calls,
    calls_cut,
    status,
)
from recollect_conformance.scripted_frames import Ending, Received
from tests.unit.models.asking import SCHEMA, asking
from tests.unit.models.conftest import Pauses
from tests.unit.models.talking import TOOLS, assistant, call, result, system, talking, user

PATH = {"path": "~/memory/people/änne.md"}


def called(step: Step, provider: str, **settings: Any) -> Completion:
    with ScriptedServer([step]) as server:
        model = server.model(provider, model_retries=0, **settings)
        return model.complete(talking(user("Who is Änne?")))


def arguments(call: ToolCall) -> Any:
    return json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments


def after(request: Request, completion: Completion, *texts: str) -> Request:
    """The next request: the answer, and a result for each of its calls."""
    said = assistant(completion.text, *completion.tool_calls)
    pairs = zip(completion.tool_calls, texts, strict=True)
    results = [result(each.id, text) for each, text in pairs]
    return replace(request, messages=(*request.messages, said, *results))


def test_a_conversation_of_two_steps_comes_back_as_it_was_had(provider: str) -> None:
    steps = [
        calls(("document_tree", {})),
        calls(("document_read", PATH), text="Let me read."),
        answer("A friend."),
    ]
    with ScriptedServer(steps) as server:
        model = server.model(provider)
        first = talking(user("Who is Änne?"))
        tree = model.complete(first)
        second = after(first, tree, "~/memory/people/änne.md")
        read = model.complete(second)
        third = after(second, read, "Änne is a friend.")
        end = model.complete(third)
        last = server.requests[-1]

    assert (tree.text, read.text, end.text) == ("", "Let me read.", "A friend.")
    assert [arguments(each) for each in (*tree.tool_calls, *read.tool_calls)] == [{}, PATH]
    assert end.tool_calls == ()
    assert not read.usage.is_estimate
    assert last.system == "Be brief."
    assert last.prompt == "Who is Änne?"
    assert last.tools == TOOLS
    ids = [each.id for each in (*tree.tool_calls, *read.tool_calls)]
    assert last.messages == (
        user("Who is Änne?"),
        assistant("", ToolCall(ids[0], "document_tree", {})),
        result(ids[0], "~/memory/people/änne.md"),
        assistant("Let me read.", ToolCall(ids[1], "document_read", PATH)),
        result(ids[1], "Änne is a friend."),
    )


@pytest.mark.parametrize("is_streamed", [True, False])
def test_several_calls_in_one_answer_keep_their_order(provider: str, is_streamed: bool) -> None:
    given = [("document_read", {"path": f"~/memory/{number}.md"}) for number in range(12)]
    step = calls(*given, ("document_tree", {}), text="All.", is_streamed=is_streamed)
    completion = called(step, provider)
    assert completion.text == "All."
    assert [(each.name, arguments(each)) for each in completion.tool_calls] == [
        *given,
        ("document_tree", {}),
    ]
    assert len({each.id for each in completion.tool_calls}) == 13


@pytest.mark.parametrize("is_streamed", [True, False])
def test_what_a_model_makes_up_is_handed_on_as_it_is(provider: str, is_streamed: bool) -> None:
    step = calls(("document_read", '{"path": "~/me'), ("rm -rf", "now"), is_streamed=is_streamed)
    broken, unknown = called(step, provider).tool_calls
    assert (broken.name, broken.arguments) == ("document_read", '{"path": "~/me')
    assert (unknown.name, unknown.arguments) == ("rm -rf", "now")


@pytest.mark.parametrize("is_streamed", [True, False])
def test_ids_that_are_left_out_are_made_up_once_in_a_conversation(
    provider: str, is_streamed: bool
) -> None:
    first_two = [("document_tree", {}), ("document_read", PATH)]
    two = calls(*first_two, has_ids=False, is_streamed=is_streamed)
    third = calls(("document_tree", {}), has_ids=False, is_streamed=is_streamed)
    with ScriptedServer([two, third, "Done"]) as server:
        model = server.model(provider)
        first = talking(user("Go on."))
        one = model.complete(first)
        second = after(first, one, "a", "b")
        other = model.complete(second)
        model.complete(after(second, other, "c"))
        received = server.requests[-1].messages
    assert [each.id for each in one.tool_calls] == ["call_1", "call_2"]
    assert [each.id for each in other.tool_calls] == ["call_3"]
    sent = [each.call_id for each in received if each.call_id]
    assert sent == ["call_1", "call_2", "call_3"]


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_call_of_a_model_that_was_given_no_tools_is_no_answer(is_streamed: bool) -> None:
    step = calls(("document_tree", {}), is_streamed=is_streamed)
    with ScriptedServer([step]) as server, pytest.raises(InvalidOutput, match="empty"):
        server.model(model_retries=0).complete(asking())


def test_a_call_beside_the_answer_in_form_is_not_the_answer() -> None:
    with ScriptedServer([calls(("document_tree", {}), text='{"facts": []}')]) as server:
        completion = server.model().complete(asking(schema=SCHEMA))
    assert (completion.text, completion.tool_calls) == ('{"facts": []}', ())


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_call_that_is_cut_off_at_the_limit_of_tokens_is_no_call(
    provider: str, is_streamed: bool
) -> None:
    step = calls(("document_read", PATH), ending=Ending.LENGTH, is_streamed=is_streamed)
    with pytest.raises(InvalidOutput, match="cut off"):
        called(step, provider)


@pytest.mark.parametrize(
    "step", [calls_cut(("document_read", PATH)), calls_cut(("document_tree", {}), text="Well.")]
)
def test_a_stream_that_breaks_in_a_call_is_asked_for_again(
    provider: str, step: Step, pauses: Pauses
) -> None:
    with ScriptedServer([step, calls(("document_read", PATH))]) as server:
        model = server.model(provider, pause=pauses, model_retries=1)
        completion = model.complete(talking(user("Go on.")))
        assert [arguments(each) for each in completion.tool_calls] == [PATH]
        assert completion.tries_lost == 1
    with pytest.raises(ModelUnavailable):
        called(step, provider)


@pytest.mark.parametrize("is_streamed", [True, False])
@pytest.mark.parametrize("given", ["x" * 2000, {"text": "ü" * 600}])
def test_arguments_have_the_limit_of_the_answer(
    provider: str, is_streamed: bool, given: Any
) -> None:
    step = calls(("document_write", given), is_streamed=is_streamed)
    assert called(step, provider, model_answer_bytes_max=4096).tool_calls
    with pytest.raises(InvalidOutput, match="longer than 1024 bytes"):
        called(step, provider, model_answer_bytes_max=1024)


@pytest.mark.parametrize("is_streamed", [True, False])
def test_words_names_and_arguments_share_one_limit(provider: str, is_streamed: bool) -> None:
    step = calls(("n" * 400, {"a": "x" * 400}), text="y" * 400, is_streamed=is_streamed)
    with pytest.raises(InvalidOutput, match="longer than 1024 bytes"):
        called(step, provider, model_answer_bytes_max=1024)


@pytest.mark.parametrize("is_streamed", [True, False])
def test_an_answer_calls_so_many_tools_at_most(provider: str, is_streamed: bool) -> None:
    many = [("document_tree", "")] * CALLS_MAX
    made = called(calls(*many, is_streamed=is_streamed), provider).tool_calls
    assert len(made) == CALLS_MAX
    with pytest.raises(InvalidOutput, match=f"more than {CALLS_MAX} times"):
        called(calls(*many, ("document_tree", ""), is_streamed=is_streamed), provider)


OBJECTIONS: dict[str, Step] = {
    "by its model": status(400, "registry/library/tiny does not support tools."),
    "by its endpoints": status(404, "No endpoints found that support tool use."),
    "by its flags": status(400, '"auto" tool choice requires --enable-auto-tool-choice'),
    "as a fault of its own": status(500, "tools param requires --jinja flag"),
    "by parameter": status(
        400, {"error": {"message": "Nope.", "param": "tools", "code": "unknown_parameter"}}
    ),
    "of a validator": status(
        422, {"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]}
    ),
    "by function": status(400, "Function calling is not enabled for this model"),
}


@pytest.mark.parametrize("objection", OBJECTIONS)
def test_a_server_without_tools_is_told_of_and_not_asked_without_them(
    provider: str, objection: str, pauses: Pauses
) -> None:
    with ScriptedServer([OBJECTIONS[objection], "Hello"]) as server:
        model = server.model(provider, pause=pauses, model_retries=3)
        with pytest.raises(ModelRejected, match="takes no tools"):
            model.complete(talking(user("Go on.")))
        assert len(server.requests) == 1
        assert model.complete(asking()).text == "Hello"  # nobody else is kept from it


OTHERS: dict[str, tuple[Step, type[ModelError]]] = {
    "a wrong tool": (
        status(400, "tools[0].function.parameters: 'format' is not supported"),
        ModelRejected,
    ),
    "a wrong schema": (
        status(400, "Invalid schema for function 'document_read': unsupported type"),
        ModelRejected,
    ),
    "too long": (
        status(400, "maximum context length is 8192 tokens; tools are supported up to that"),
        PromptTooLong,
    ),
    "no such model": (status(404, "no such model"), ModelDenied),
    "no key": (status(401, "tools are not supported for guests"), ModelDenied),
    "out of order": (status(503, "tools are not available"), ModelUnavailable),
    "broken call": (
        status(400, "Failed to call a function", kind="tool_use_failed"),
        InvalidOutput,
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_an_error_of_another_kind_is_not_blamed_on_tools(provider: str, other: str) -> None:
    step, expected = OTHERS[other]
    with ScriptedServer([step]) as server:
        with pytest.raises(expected) as caught:
            server.model(provider, model_retries=0).complete(talking(user("Go on.")))
        assert "takes no tools" not in str(caught.value)
        assert len(server.requests) == 1


def test_what_is_said_of_tools_changes_nothing_for_answers_in_form(provider: str) -> None:
    """A complaint about a tool's schema is not one about the form of answers."""
    objection = status(400, "tools: the schema of document_read is wrong")
    with ScriptedServer([objection, {"facts": []}]) as server:
        model = server.model(provider)
        with pytest.raises(ModelRejected):
            model.complete(talking(user("Go on.")))
        model.complete(asking(schema=SCHEMA))
        assert [each.schema for each in server.requests] == [None, SCHEMA]


def test_a_server_that_cannot_stream_calls_is_asked_without_a_stream() -> None:
    def script(received: Received) -> Step:
        if received.is_streamed:
            return status(400, "tools are not supported with stream")
        return calls(("document_read", PATH))

    with ScriptedServer(script) as server:
        completion = server.model().complete(talking(user("Go on.")))
        assert [each.is_streamed for each in server.requests] == [True, False]
        assert all(each.tools for each in server.requests)
    assert [arguments(each) for each in completion.tool_calls] == [PATH]


def test_an_answer_in_form_and_tools_cannot_be_asked_for_at_once() -> None:
    with pytest.raises(InvalidValue, match="not both"):
        talking(user("Go on."), schema=SCHEMA)


def test_a_system_message_within_goes_to_the_front(provider: str) -> None:
    with ScriptedServer(["Hello"]) as server:
        server.model(provider).complete(
            talking(system("So far: nothing."), user("Hi"), system("Be polite."))
        )
        (received,) = server.requests
    assert received.system == "Be brief.\n\nSo far: nothing.\n\nBe polite."
    assert received.messages == (user("Hi"),)


def test_what_no_provider_would_take_is_sent_in_a_form_they_take(provider: str) -> None:
    """One odd call must not make every later request fail."""
    deep = "[" * 5000
    said = assistant(
        "",
        call("a b", '{"path": '),
        call(None, deep, name=""),
        call("x" * 100, '{"a": NaN}', name="no such tool!" * 10),
        call("fine", None),
    )
    results = [result("a b", "?"), result(None, "?"), result("x" * 100, "?"), result("fine", "?")]
    with ScriptedServer(["Hello"]) as server:
        server.model(provider).complete(talking(user("Go on."), said, *results))
        (received,) = server.requests
    _, told, *answered = received.messages
    assert [each.id for each in told.tool_calls] == ["call_1", "call_2", "call_3", "fine"]
    assert [each.call_id for each in answered] == ["call_1", "call_2", "call_3", "fine"]
    assert [each.arguments for each in told.tool_calls] == [
        {"unreadable_arguments": '{"path": '},
        {"unreadable_arguments": deep},
        {"unreadable_arguments": '{"a": NaN}'},
        {},
    ]
    names = [each.name for each in told.tool_calls]
    assert names[:2] == ["document_read", "unnamed"]
    assert names[2] == ("no_such_tool_" * 10)[:64]


def usage_of(model: Model, request: Request) -> tuple[int, int]:
    usage = model.complete(request).usage
    assert usage.is_estimate
    return usage.input_tokens, usage.output_tokens


def test_messages_tools_and_calls_are_in_the_estimate_of_usage(provider: str) -> None:
    words = "The quick brown fox jumps over the lazy dog. " * 20
    long = calls(("document_write", {"text": words}), usage=None)
    short = calls(("document_write", {}), usage=None)
    wordy = replace(TOOLS[0], description=words)
    with ScriptedServer([short, short, short, short, long]) as server:
        model = server.model(provider)
        few, answered = usage_of(model, talking(user("Hi")))
        assert usage_of(model, talking(user(words)))[0] > few + 200
        assert usage_of(model, talking(user("Hi"), tools=(wordy,)))[0] > few + 170
        earlier = assistant("", call("a", {"path": words}))
        told = talking(user("Hi"), earlier, result("a", words))
        assert usage_of(model, told)[0] > few + 400
        assert usage_of(model, talking(user("Hi")))[1] > answered + 200


def test_estimates_learn_from_conversations_with_tools(provider: str) -> None:
    request = talking(user("The quick brown fox jumps over the lazy dog. " * 100))
    with ScriptedServer(lambda _received: calls(("a", {}), usage=None)) as server:
        plain, _ = usage_of(server.model(provider), request)
    counted = [calls(("a", {})) for _ in range(20)]  # 100 tokens each: the estimate was too high
    with ScriptedServer([*counted, calls(("a", {}), usage=None)]) as server:
        model = server.model(provider)
        for _ in counted:
            model.complete(request)
        learned, _ = usage_of(model, request)
    assert learned == pytest.approx(plain / 2, rel=0.05)

"""Mission N17: a model on the user's own machine, found and used without configuration.

Every program is a real HTTP server that speaks its dialect; what is asked of it, and said where it
is missing, is seen from outside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import recollect
from recollect.config import Settings
from recollect.embedding.openai import open_embedder
from recollect.errors import InvalidSetting, ModelDenied, ModelUnavailable, PromptTooLong
from recollect.models.protocol import (
    ChatMessage,
    ChatRole,
    Completion,
    Request,
    ToolDefinition,
)
from recollect.models.served import model_servers, open_model
from recollect_conformance.scripted import (
    Gate,
    Scripted,
    ScriptedServer,
    held,
    raw,
    refusing_url,
    status,
)
from recollect_conformance.scripted_local import (
    DIALECTS,
    WINDOW,
    local_server,
    ollama_calls,
)
from tests.scripted_answers import OTHERS_BY_RULES, extracted, fact
from tests.unit.models.asking import SCHEMA, WAIT_SECONDS, asking

LIVES = "Alice lives in Lisbon."
SAID = "My name is Alice and I live in Lisbon."
LINES = f"- detail: {LIVES}\n"
WHOLE = extracted(fact(LIVES, [1], quote=SAID))
PRESENT = {
    "ollama": "ollama/tiny",
    "lmstudio": "lmstudio/tiny",
    "llamacpp": "llamacpp",
    "openai": "{url}/v1",
}
MISSING = {
    "ollama": ("ollama/huge", "ollama pull huge"),
    "lmstudio": ("lmstudio/huge", "lms get huge"),
    "openai": ("{url}/v1#huge", "check the model's name"),
}
DOWN = {
    "ollama": "ollama serve",
    "lmstudio": "lms server start",
    "llamacpp": "llama-server -m",
    "openai": "cannot be reached",
}


def environ_of(dialect: str, url: str) -> dict[str, str]:
    """The variables of each program, as a user of it has them."""
    port = url.rpartition(":")[2]
    return {
        "ollama": {"OLLAMA_HOST": f"0.0.0.0:{port}"},
        "lmstudio": {"LMSTUDIO_BASE_URL": f"{url}/v1"},
        "llamacpp": {"LLAMA_ARG_PORT": port},
        "openai": {"OPENAI_API_KEY": "for-somebody-else"},
    }[dialect]


def opened(dialect: str, url: str, model: str = "", **changes: Any) -> Any:
    named = (model or PRESENT[dialect]).replace("{url}", url)
    settings = Settings(**{"model": named, "model_retries": 0, **changes})
    return open_model(settings, environ_of(dialect, url))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_answers_in_form_without_a_key_or_any_other_setting(dialect: str) -> None:
    with local_server(dialect, [{"facts": ["tea"]}]) as server:
        model = opened(dialect, server.url)
        assert model.window_tokens == WINDOW
        answer: Completion = model.complete(asking(schema=SCHEMA))
        model.close()
    assert json.loads(answer.text) == {"facts": ["tea"]}
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (100, 20)
    asked = server.requests[-1]
    assert (asked.schema or asked.body.get("format")) == SCHEMA
    assert asked.body["model"] == "tiny"
    assert all("authorization" not in each.headers for each in server.requests)


@pytest.mark.parametrize("dialect", MISSING)
def test_a_model_that_is_not_there_is_said_with_what_gets_it(dialect: str) -> None:
    named, command = MISSING[dialect]
    with local_server(dialect, ["Hello"]) as server:
        model = opened(dialect, server.url, named)
        with pytest.raises(ModelDenied, match=command):
            model.complete(asking())
        model.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_server_that_is_down_is_said_with_what_starts_it(dialect: str) -> None:
    with refusing_url() as url:
        model = opened(dialect, url)
        assert model.window_tokens == 8192, "what nobody said is small"
        with pytest.raises(ModelUnavailable, match=DOWN[dialect]):
            model.complete(asking())
        model.close()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("window", [None, 2048])
def test_a_window_is_what_the_server_says_unless_a_setting_does(
    dialect: str, window: int | None
) -> None:
    with local_server(dialect, ["Hello", "Hello"], window=window) as server:
        model = opened(dialect, server.url)
        unsaid = 4096 if dialect == "lmstudio" else 8192  # it says that it loads one with so much
        assert model.window_tokens == (window or unsaid)
        model.close()
        model = opened(dialect, server.url, model_window_tokens=3000)
        assert model.window_tokens == 3000
        model.complete(asking())
        model.close()
    if dialect == "ollama":
        assert server.requests[-1].body["options"]["num_ctx"] == 3000


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_prompt_that_is_too_long_is_said_with_what_makes_room(dialect: str) -> None:
    full = status(400, "the request exceeds the available context size", kind="exceed_context")
    with local_server(dialect, [full]) as server:
        model = opened(dialect, server.url)
        with pytest.raises(PromptTooLong) as caught:
            model.complete(asking())
        model.close()
    assert dialect == "openai" or "16384" in str(caught.value)


# What a session comes to: (the answers, whether the server takes a form, how long its window is).
ANSWERS: Mapping[str, tuple[list[Scripted], bool, int]] = {
    "as it was asked": ([WHOLE], True, WINDOW),
    "no schemas, no JSON mode": ([WHOLE], False, WINDOW),
    "lines in place of JSON": ([LINES], True, WINDOW),
    "broken JSON twice, then lines": (['{"facts": [', '{"facts": [{"con', LINES], True, WINDOW),
    "prose twice, then JSON all the same": (["Well now.", "Well now.", WHOLE], True, WINDOW),
    "a small window, so lines at once": ([LINES], True, 2048),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_session_is_learned_from_whatever_form_the_answer_has(
    dialect: str, answers: tuple[list[Scripted], bool, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, has_form, window = answers
    with local_server(dialect, list(script), has_form=has_form, window=window) as server:
        for name, value in environ_of(dialect, server.url).items():
            monkeypatch.setenv(name, value)
        named = PRESENT[dialect].replace("{url}", server.url)
        with recollect.open(":memory:", model=named, settings=OTHERS_BY_RULES) as memory:
            alice = memory.space("alice")
            alice.session("chat").append("user", SAID)
            report = memory.work(all=True)
            assert (report.processed, report.failed) == (1, 0)
            assert [each.content for each in alice.facts.list()] == [LIVES]
    if window == 2048:
        (asked,) = [each for each in server.requests if "messages" in each.body]
        assert not asked.body.keys() & {"response_format", "format"}
        assert len(asked.system) + len(asked.prompt) < 4 * window


def test_tools_are_called_in_ollamas_own_words() -> None:
    tool = ToolDefinition(name="read", description="Reads.", parameters={"type": "object"})
    step = ollama_calls("read", {"path": "~/memory"})
    with local_server("ollama", [step, "Done."]) as server:
        model = opened("ollama", server.url)
        first = model.complete(Request(system="", prompt="Read it.", tools=(tool,)))
        (call,) = first.tool_calls
        assert (call.name, call.arguments) == ("read", {"path": "~/memory"})
        said = (
            ChatMessage(role=ChatRole.USER, text="Read it."),
            ChatMessage(role=ChatRole.ASSISTANT, tool_calls=(call,)),
            ChatMessage(role=ChatRole.TOOL, text="Empty.", call_id=call.id),
        )
        model.complete(Request(system="", messages=said, tools=(tool,)))
        model.close()
    sent = server.requests[-1].body["messages"][1]["tool_calls"][0]["function"]
    assert sent == {"name": "read", "arguments": {"path": "~/memory"}}


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ("", "127.0.0.1:11434"),
        ("0.0.0.0", "127.0.0.1:11434"),
        (":4321", "127.0.0.1:4321"),
        ("box.lan", "box.lan:11434"),
        ("box.lan:4321", "box.lan:4321"),
        ("[::1]:4321", "[::1]:4321"),
        ("::1", "[::1]:11434"),
        ("https://box.lan/ollama/", "box.lan"),
    ],
)
def test_a_programs_own_variable_says_where_it_is(given: str, where: str) -> None:
    model = open_model(Settings(model="ollama/tiny"), {"OLLAMA_HOST": given})
    assert model is not None
    assert repr(model) == f"<HttpModel ollama:tiny at {where}>"
    model.close()


def test_a_server_with_several_models_wants_one_named() -> None:
    several = json.dumps({"data": [{"id": "a"}, {"id": "b"}]}).encode()
    with ScriptedServer((), lambda _: raw(several)) as server:
        model = open_model(Settings(model=server.url), {})
        assert model is not None
        with pytest.raises(InvalidSetting, match="a, b"):
            model.complete(asking())
        model.close()


def test_models_on_this_machine_make_vectors_too() -> None:
    found = {"data": [{"index": 0, "embedding": [3.0, 4.0]}], "usage": {"total_tokens": 3}}
    with local_server("ollama", [raw(json.dumps(found).encode())]) as server:
        settings = Settings(embedder="ollama/tiny", embedder_base_url=server.url)
        embedder = open_embedder(settings, str, {})
        assert embedder is not None
        assert embedder.embed(["tea"]) is not None
        assert embedder.name == "ollama:tiny"
        assert server.requests[0].path == "/v1/embeddings"
        embedder.close()


def test_what_answers_is_listed_and_what_does_not_is_said_with_what_to_do() -> None:
    with (
        local_server("ollama") as ollama,
        local_server("llamacpp") as llamacpp,
        refusing_url() as no,
    ):
        environ = {
            "OLLAMA_HOST": ollama.url,
            "LMSTUDIO_BASE_URL": no,
            "LLAMA_ARG_PORT": llamacpp.url.rpartition(":")[2],
        }
        with local_server("openai") as other:
            settings = Settings(model="x", model_base_url=f"{other.url}/v1")
            found = {each.provider: each for each in model_servers(settings, environ)}
        used = {each.setting(model) for each in found.values() for model in each.models}
        assert used == {
            "RECOLLECT_MODEL=ollama/tiny",
            "RECOLLECT_MODEL=llamacpp",
            f"RECOLLECT_MODEL='{other.url}/v1#tiny'",
        }
        assert {model.window_tokens for each in found.values() for model in each.models} == {WINDOW}
        assert found["lmstudio"].problem
        assert "cannot be reached" in found["lmstudio"].problem
        assert "lms server start" in found["lmstudio"].remedy


def test_whoever_asks_while_the_server_is_asked_waits_for_what_it_says() -> None:
    gate = Gate()
    listed = {"data": [{"id": "tiny", "max_model_len": 2048}]}
    answer = held(gate, raw(json.dumps(listed).encode()))
    with ScriptedServer((), lambda _: answer) as server, ThreadPoolExecutor(2) as threads:
        model = open_model(Settings(model=f"{server.url}#tiny"), {})
        assert model is not None
        first = threads.submit(lambda: model.window_tokens)
        assert gate.arrived.wait(WAIT_SECONDS)
        second = threads.submit(lambda: model.window_tokens)
        gate.open()
        assert (first.result(WAIT_SECONDS), second.result(WAIT_SECONDS)) == (2048, 2048)
        model.close()


def test_another_program_at_the_usual_address_is_not_taken_for_a_server_of_models() -> None:
    with ScriptedServer((), lambda _: status(404)) as server:
        environ = {"OLLAMA_HOST": server.url, "LMSTUDIO_BASE_URL": server.url}
        environ |= {"LLAMA_ARG_PORT": server.url.rpartition(":")[2]}
        found = model_servers(Settings(), environ)
    assert [each.problem for each in found] == ["another program answers there"] * 3

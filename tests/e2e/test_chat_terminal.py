"""`recollect chat` at a real terminal: it answers, remembers across processes, and can be left.

Issue 7's terminal session, without a model and with the scripted one over real HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from recollect_conformance.scripted import KEY, Gate, ScriptedServer, answer, calls, held
from tests.e2e.command_line import run, run_json
from tests.e2e.terminal import CTRL_D, Terminal, terminal
from tests.scripted_answers import OTHERS_BY_RULES

OFFLINE = r"\[Recollect, offline\] "
PROMPT = r"(?:^|\n|\r)> "


@pytest.fixture
def use_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ScriptedServer]]:
    """Let the settings name a scripted model from now on; sessions are distilled by rules."""
    servers: list[ScriptedServer] = []

    def use(script: Any, **settings: str) -> ScriptedServer:
        server = ScriptedServer(script)
        server.__enter__()
        servers.append(server)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        given = {
            "model": "openai:scripted",
            "model_base_url": server.url,
            "model_retries": "0",
            "extractor": "rules",
            **OTHERS_BY_RULES,
        }
        for name, value in (given | settings).items():
            monkeypatch.setenv(f"RECOLLECT_{name.upper()}", value)
        return server

    yield use
    for server in servers:
        server.__exit__(None, None, None)


def rested(chat: Terminal) -> None:
    """Ask for the status until the agent rests, which is soon after its answer."""
    for _ in range(1000):
        chat.say("/status")
        shown = chat.expect(r"active since [^\n]*; session \S+\nnothing in the queue.*?\n> ")
        if "\nnext signal: idle, " in shown:
            return
    raise AssertionError(shown)


def test_a_chat_without_a_model_answers_from_memory_and_remembers_after_a_restart() -> None:
    with terminal("chat") as chat:
        chat.expect(r"No model is set: .*Talking to assistant in session main\.")
        chat.expect(PROMPT)
        chat.say("I live in Lisbon. I'm vegetarian.")
        chat.expect(OFFLINE + "I find nothing")
        chat.expect(PROMPT)
        rested(chat)
        chat.say("/new")
        chat.expect("A new conversation begins")
        chat.expect(PROMPT)
        chat.say("Where do I live?")
        chat.expect(OFFLINE + r"From memory.*Lisbon.*\(session \S+, record 1, ")
        chat.expect(PROMPT)
        chat.interrupt("Ctrl-C once more leaves")
        chat.expect(PROMPT)
        chat.interrupt(r"The session stays open\.")
        assert chat.ended() == 0
    assert run_json("sessions")[0]["ended_at"] is None

    with terminal("chat") as chat:
        chat.expect(PROMPT)
        chat.say("Am I vegetarian?")
        chat.expect(OFFLINE + "From memory.*vegetarian")
        chat.expect(PROMPT)
        chat.type(CTRL_D)
        chat.expect(r"The session has ended\. What was said is memory now")
        assert chat.ended() == 0
    said = [record["content"] for record in run_json("history", "main", "--limit", "10")]
    assert said[0] == "Where do I live?", "the same conversation, before and after the restart"
    assert said[2] == "Am I vegetarian?"
    ended = [state for state in run_json("sessions") if state["key"] == "main"]
    assert all(state["ended_at"] and not state["unprocessed"] for state in ended)


def test_quit_ends_the_session_and_help_names_every_command() -> None:
    with terminal("chat", "--session", "k", "--no-learn") as chat:
        chat.expect(PROMPT)
        chat.say("/help")
        for name in ("/new", "/memory TEXT", "/status", "/help", "/quit", "//TEXT"):
            chat.expect(name)
        chat.expect(PROMPT)
        chat.say("/memory")
        chat.expect("Say about what: /memory TEXT")
        chat.expect(PROMPT)
        chat.say("Hello!")
        chat.expect(OFFLINE)
        chat.expect(PROMPT)
        chat.say("/quit")
        chat.expect(r"What was said becomes memory when a worker runs: recollect work")
        assert chat.ended() == 0
    (state,) = run_json("sessions")
    assert state["ended_at"]
    assert state["invalidated_at"] == 2, "the end marks the session"


def test_a_model_looks_things_up_in_memory_before_it_answers(
    use_model: Callable[..., ScriptedServer],
) -> None:
    run("append", "telegram:42:main", "I moved to Lisbon in May.")
    run("work", "--all")
    server = use_model(
        [
            calls(("memory_search", {"query": "a home in Lisbon"})),
            calls(("document_tree", {}), ("document_write", {"path": "~/memory/x", "body": "x"})),
            answer("Your door is \x1b[31mblue\x1b[0m."),
        ]
    )
    with terminal("chat", "--instructions", "Be brief.") as chat:
        chat.expect(PROMPT)
        chat.say("What do you know of my home?")
        chat.expect(r"Your door is \\x1b\[31mblue\\x1b\[0m\.")
        chat.expect(PROMPT)
        chat.type(CTRL_D)
        chat.expect(r"The session has ended\.")
        assert chat.ended() == 0
    assert "No model is set" not in chat.shown
    first, second, third = server.requests
    assert "Be brief." in first.system
    assert {tool["function"]["name"] for tool in first.body["tools"]} == {
        *("memory_search", "document_read", "document_tree", "document_search")
    }
    found = second.messages[-1].text
    assert "The user moved to Lisbon in May" in found
    assert found.startswith("<recollect-memory>\n")
    tree, written = (message.text for message in third.messages[-2:])
    assert "~/memory" in tree
    assert "there is no tool 'document_write' here" in written
    roles = [record["role"] for record in run_json("history", "main")]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "tool", "assistant"]


def test_ctrl_c_stops_waiting_and_the_answer_is_shown_when_it_has_come(
    use_model: Callable[..., ScriptedServer],
) -> None:
    gate = Gate()
    use_model([held(gate, "The first answer."), answer("The second answer.")])
    with terminal("chat") as chat:
        chat.expect(PROMPT)
        chat.say("One?")
        assert gate.arrived.wait(60)
        chat.expect("…")
        chat.interrupt("Stopped waiting. The answer may still come")
        chat.expect(PROMPT)
        gate.open()
        chat.say("Two?")
        chat.expect("The first answer.")
        chat.expect("The second answer.")
        chat.expect(PROMPT)
        chat.type(CTRL_D)
        assert chat.ended() == 0
    said = [record["content"] for record in run_json("history", "main")]
    assert said == ["One?", "The first answer.", "Two?", "The second answer."]


def test_ctrl_c_twice_leaves_while_a_model_thinks_and_the_next_process_has_it_answered(
    use_model: Callable[..., ScriptedServer],
) -> None:
    gate = Gate()
    use_model(
        [held(gate, "Nobody hears it."), answer("The answer."), answer("The other answer.")],
        worker_grace_seconds="0.1",
    )
    with terminal("chat") as chat:
        chat.expect(PROMPT)
        chat.say("One?")
        assert gate.arrived.wait(60)
        chat.interrupt("Stopped waiting")
        chat.expect(PROMPT)
        chat.interrupt("Leaving, within 0.1 s")
        assert chat.ended() == 0
    gate.open()
    with terminal("chat") as chat:
        chat.expect("1 message from before without an answer")
        chat.expect(PROMPT)
        chat.say("Two?")
        chat.expect("The other answer.")
        chat.expect(PROMPT)
        chat.say("/quit")
        assert chat.ended() == 0
    said = [record["content"] for record in run_json("history", "main")]
    assert said == ["One?", "The answer.", "Two?", "The other answer."]

"""`recollect chat` in a pipe: answers on standard output and nothing else, codes, words of advice.

What `status` and `retry` say of agents stands here too.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.agents.profile import AgentProfile
from recollect.clock import ManualClock, SystemClock
from recollect.descriptors import memory_agent_of, read_descriptor
from recollect.types.agents import ItemKind, NewItem, Span
from recollect.types.records import JobKind
from recollect_conformance.scripted import KEY, Gate, ScriptedServer, answer, held, status
from tests.e2e.command_line import line_with, process, run, run_json, started
from tests.scripted_answers import OTHERS_BY_RULES

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
NOTHING_FOUND = "[Recollect, offline] I find nothing about this in memory."


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


def answers(stdout: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stdout.splitlines()]


# in a pipe


def test_every_line_is_a_message_and_only_answers_are_on_standard_output(
    durable_store_url: str,
) -> None:
    lines = "I live in Lisbon. I'm vegetarian.\n\n/new\r\n  \nWhere do I live?\n"
    result = run("chat", "--store", durable_store_url, stdin=lines)
    assert result.exit_code == 0
    first, heading, line = result.stdout.splitlines()
    assert first.startswith(NOTHING_FOUND)
    assert heading == "[Recollect, offline] From memory, since no model is set:"
    assert "Lisbon" in line
    assert result.stderr.count("No model is set: answers come from memory alone.") == 1
    assert "A new conversation begins." in result.stderr
    assert "The session has ended. What was said is memory now" in result.stderr
    store = ("--store", durable_store_url)
    states = run_json("sessions", *store)
    assert [state["ended_by"] for state in states if state["key"] == "main"] == ["end", "reset"]
    facts = {fact["content"] for fact in run_json("facts", *store)}
    assert facts == {"The user lives in Lisbon.", "The user is vegetarian."}


def test_with_json_every_answer_is_an_object_on_a_line_and_so_is_every_note() -> None:
    run("append", "telegram:42:main", "I live in Lisbon.")
    run("work", "--all")
    result = run("chat", "--json", stdin="Where do I live?\n/status\n/memory Lisbon\nzebra\n")
    assert result.exit_code == 0
    first, second = answers(result.stdout)
    assert set(first) == {
        *("text", "turn_id", "stop", "is_offline", "tokens", "cited", "citations")
    }
    assert (first["stop"], first["is_offline"]) == ("answered", True)
    assert first["citations"][0]["hit"]["text"] == "The user lives in Lisbon."
    assert first["turn_id"] != second["turn_id"]
    assert second["citations"] == []
    notes = answers(result.stderr)
    assert [key for each in notes for key in each] == ["note", "status", "memory", "note"]
    assert notes[1]["status"]["agent"] == "assistant"
    assert notes[2]["memory"]["citations"][0]["hit"]["text"] == "The user lives in Lisbon."


def test_once_says_one_thing_and_leaves_the_session_open_unless_it_is_to_end() -> None:
    asked = run("chat", "--once", "I live in Lisbon.", "--session", "k")
    assert asked.exit_code == 0
    assert asked.stdout.startswith(NOTHING_FOUND)
    assert "ended" not in asked.stderr
    (open_one,) = run_json("sessions")
    assert (open_one["key"], open_one["ended_at"], open_one["last_seq"]) == ("k", None, 2)
    ended = run("chat", "--once", "Bye!", "--session", "k", "--end")
    assert "The session has ended. What was said is memory now: 1 fact." in ended.stderr
    assert run_json("facts")[0]["content"] == "The user lives in Lisbon."


def test_a_session_can_be_left_open_and_learning_to_others() -> None:
    left = run("chat", "--no-end", stdin="I live in Lisbon.\n")
    assert "ended" not in left.stderr
    assert run_json("sessions")[0]["ended_at"] is None
    ended = run("chat", "--no-learn", stdin="")
    assert "becomes memory when a worker runs: recollect work\n" in ended.stderr
    assert run_json("sessions")[0]["invalidated_at"] == 2
    assert run_json("facts") == []


def test_a_chat_in_which_nothing_is_said_leaves_no_trace() -> None:
    result = run("chat", stdin="/new\n/status\n/memory x\n")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Nothing was said yet" in result.stderr
    assert "Nothing was said to it yet." in result.stderr
    assert "Nothing would be recalled for this." in result.stderr
    assert run_json("sessions") == []


def test_without_memory_nothing_is_recalled_or_kept_in_any_file(tmp_path: Path) -> None:
    stdin = "I live in Lisbon.\n/new\nWhere do I live?\n/memory Lisbon\n"
    result = run("chat", "--no-memory", stdin=stdin)
    assert result.exit_code == 0
    assert result.stdout.count(NOTHING_FOUND) == 2
    assert "Memory is off in this chat" in result.stderr
    assert "nothing of it is kept" in result.stderr
    assert list(tmp_path.iterdir()) == []
    assert run("chat", "--no-memory", "--store", "x.db", stdin="").exit_code == 2


def test_a_slash_begins_a_command_and_two_begin_a_message() -> None:
    result = run("chat", stdin="/etc/hosts is a file\n//etc/hosts is a file\n/quit\nnever said\n")
    assert "There is no command /etc/hosts. /help lists those there are; //etc/hosts is a file" in (
        result.stderr
    )
    said = [record["content"] for record in run_json("history", "main")]
    assert said[0] == "/etc/hosts is a file"
    assert len(said) == 2


def test_bytes_that_are_no_text_and_control_characters_are_harmless(
    use_model: Callable[..., ScriptedServer],
) -> None:
    use_model([answer("\x1b]0;owned\x07 \u202eno\nline two")])
    result = process("chat", stdin=b"caf\xe9 \x1b[31m\x00\n")
    assert result.returncode == 0
    assert result.stdout.decode() == "\\x1b]0;owned\\x07 \\u202eno\nline two\n"
    assert run_json("history", "main")[0]["content"].startswith("caf\ufffd ")


def test_agents_of_one_store_are_told_apart_and_those_of_memory_are_not_talked_to() -> None:
    run("chat", "--agent", "coder", "--once", "One.")
    run("chat", "--agent", "/cron/nightly", "--once", "Two.")
    agents = {state["agent_id"]: state for state in run_json("status")["agents"]}
    assert set(agents) == {"/user/coder", "/cron/nightly"}
    refused = run("chat", "--agent", "/memory-agent/coder", "--once", "Three.")
    assert refused.exit_code == 1
    assert "works on memory and cannot be talked to" in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--once", " "), ("--timeout", "0"), ("--timeout", "soon"), ("--nonsense",)],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    assert run("chat", *arguments, stdin="").exit_code == 2


# what goes wrong


def test_a_model_without_a_key_is_an_error_that_says_what_to_set() -> None:
    result = run("chat", "--model", "openai:some-model", stdin="Hello\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "needs a key: set OPENAI_API_KEY" in result.stderr
    assert run_json("sessions") == []


def test_a_message_that_is_too_large_is_refused_and_the_next_one_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RECOLLECT_RECORD_BYTES_MAX", "1024")
    result = run("chat", stdin=f"{'x' * 2000}\nHello\n")
    assert result.exit_code == 1
    assert result.stdout.startswith(NOTHING_FOUND)
    assert re.search(r"Error: .*1,?024", result.stderr)


def test_a_refused_key_is_not_waited_for_and_what_was_said_is_answered_later(
    use_model: Callable[..., ScriptedServer],
) -> None:
    is_refused = True
    use_model(lambda _: status(401, "bad key") if is_refused else answer("At last."))
    result = run("chat", stdin="Hello\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert re.search(rf"Error: no answer yet: ModelDenied: .*; next try {TIME}\n", result.stderr)
    assert "What you said is kept, and is answered as soon as possible." in result.stderr
    assert "1 message not answered yet: the session stays open" in result.stderr
    told = run("status").stdout
    assert re.search(r"Paused +1 agent, until ", told)
    assert re.search(rf"1 in the queue; next try {TIME}\n +last error: ModelDenied", told), told
    is_refused = False
    assert run("retry", "--all").stdout == "1 job is due again.\n"
    again = process("chat", "--once", "Are you there?")  # this one remembers that it was refused
    assert (again.returncode, again.stdout) == (0, b"At last.\n"), again.stderr
    said = [record["content"] for record in run_json("history", "main")]
    assert said == ["Hello", "At last.", "Are you there?", "At last."]


def test_a_turn_that_can_never_be_answered_is_parked_shown_and_revived(
    use_model: Callable[..., ScriptedServer],
) -> None:
    is_rejected = True
    use_model(lambda _: status(400, "no such thing") if is_rejected else answer("Done."))
    result = run("chat", "--once", "Hello", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    (error,) = answers(result.stderr)
    assert error["error"]["type"] == "TurnFailed"
    assert error["error"]["mended_by"] == "operator"
    assert "recollect retry --all" in error["error"]["advice"]
    (agent,) = run_json("status")["agents"]
    assert (agent["queued"], agent["parked"], agent["state"]) == (0, 1, "parked")
    assert f"1 parked: fix the cause, then recollect retry {agent['session_id']}" in (
        run("status").stdout
    )
    is_rejected = False
    assert run("retry", agent["session_id"]).stdout == "1 job is due again.\n"
    (agent,) = run_json("status")["agents"]
    assert (agent["queued"], agent["parked"], agent["state"]) == (1, 0, "due")
    run("chat", "--once", "And now?")
    said = [record["content"] for record in run_json("history", "main")]
    # One turn answers both, unless the first had begun before the second was there.
    assert said in (["Hello", "And now?", "Done."], ["Hello", "Done.", "And now?", "Done."])


def test_an_answer_is_not_waited_for_beyond_the_timeout(
    use_model: Callable[..., ScriptedServer],
) -> None:
    gate = Gate()
    use_model([held(gate, "Late.")], worker_grace_seconds="0.1")
    result = run("chat", "--once", "Hello", "--timeout", "0.2")
    gate.open()
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no answer within 0.2 s" in result.stderr


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_chat_in_a_pipe_that_is_told_to_stop_leaves_at_once_with_code_1(
    signum: signal.Signals,
) -> None:
    with started("chat", "--session", "k") as running:
        assert running.stdin is not None
        running.stdin.write(b"Hello\n")
        running.stdin.flush()
        line_with(running.stdout, NOTHING_FOUND.encode())
        running.send_signal(signum)
        assert running.wait(60) == 1
        assert running.stderr is not None
        assert b"The session stays open." in running.stderr.read()
    assert run_json("sessions")[0]["ended_at"] is None


# what status says of agents


def test_status_shows_agents_with_their_life_session_queue_and_next_signal(
    durable_store_url: str,
) -> None:
    clock = ManualClock(SystemClock().now())
    with recollect.open(durable_store_url, clock=clock) as memory:
        system = memory.agents(default=AgentProfile())
        for agent in ("sleepy", {"type": "cron", "id": "nightly"}):
            system.post(agent, "Hello", key="chat")
        system.tick()
        clock.advance(61)
        system.tick()
        system.post("assistant", "Hello?", key="telegram:42:main", space="other")
        system.signal("assistant", "remind", 3600, key="telegram:42:main", space="other")
        queued = system.state("assistant", key="telegram:42:main", space="other")
        assert queued is not None
    store = ("--store", durable_store_url)
    words = run("status", *store).stdout
    assert "Agents   3: 1 active, 2 sleeping\n" in words
    assert re.search(
        rf"  assistant  \(telegram:42:main, space other\)\n"
        rf"    active since {TIME}; session {queued.session_id}\n"
        rf"    1 in the queue; waiting to be run\n"
        rf"    next signal: remind, {TIME}\n",
        words,
    ), words
    assert re.search(
        rf"  /cron/nightly  \(chat, space default\)\n"
        rf"    sleeping since {TIME}; session \S+\n    nothing in the queue\n"
        rf"    next signal: poison-pill, {TIME}\n",
        words,
    ), words
    assert "Marked   0 sessions\n" in words, "an agent's job is no session's"

    shape = run_json("status", *store)
    assert shape["agent_counts"] == {"active": 1, "sleeping": 2, "dead": 0}
    first = shape["agents"][0]
    assert set(first) == {
        *("space", "agent", "agent_id", "type", "name", "key", "key_id", "session_id", "life"),
        *("since", "incarnation", "queued", "parked", "next_signal", "signals", "state"),
        *("next_try_at", "last_error"),
    }
    assert (first["agent"], first["type"], first["life"]) == ("assistant", "user", "active")
    assert (first["queued"], first["next_signal"]["name"]) == (1, "remind")
    assert [agent["agent"] for agent in run_json("status", "--space", "other", *store)["agents"]]
    short = run("status", "--limit", "1", *store).stdout
    assert re.search(r"next signal: remind, .*\n  … and 2 more \(--limit\)", short)


@pytest.mark.parametrize(
    ("reader", "outcome"),
    [
        ("openai:filing", "handed_over"),  # what is in the inbox is all that was stored
        ("rules", "succeeded"),  # the facts were stored as well: rules file nothing else
    ],
)
def test_status_says_what_a_memory_agent_has_still_to_read(
    durable_store_url: str, reader: str, outcome: str, use_model: Callable[..., ScriptedServer]
) -> None:
    """M13: handed over until it is acknowledged."""
    settings = {"pipeline": "memory-agent", "memory_agent_model": reader, "worker_batch": 1}
    with recollect.open(durable_store_url, settings=settings) as memory:
        session = memory.space().session("k")
        session.append("user", "I live in Lisbon.")
        session.sleep()
        memory.worker().tick()  # hands over; the memory-agent's own job comes after it
        (agent,) = memory.status().agents
        assert agent.ref.agent_id == "/memory-agent/assistant"
        session_id = session.id
        post_to_memory_agent(memory, session_id)
    store = ("--store", durable_store_url)
    shape = {each["session_id"]: each for each in run_json("status", *store)["sessions"]}
    waiting = shape[session_id]
    assert (waiting["outcome"], waiting["handed_over"] > 0) == (outcome, True)
    words = run("status", *store).stdout
    assert re.search(rf"  {session_id}  k .*\n    {outcome} {TIME}", words), words
    assert re.search(r"its memory-agent still has to read \d parts? of it\n", words), words
    server = use_model(lambda _: answer("Filed."), memory_agent_model=reader)
    run("work", *store)
    assert bool(server.requests) is (outcome == "handed_over")
    shape = {each["session_id"]: each for each in run_json("status", *store)["sessions"]}
    assert shape[session_id]["handed_over"] == 0
    assert "still to read" not in run("status", *store).stdout


def post_to_memory_agent(memory: recollect.Memory, session_id: str) -> None:
    """One more part of a session for its memory-agent, which nobody runs meanwhile."""
    agent = memory_agent_of(read_descriptor("assistant"))
    key = next(state for state in memory.status().agents).ref
    assert key.agent_id.endswith(agent.id)
    item = NewItem(
        id="one-more",
        kind=ItemKind.SYSTEM_MESSAGE,
        text="Record 1.",
        about=Span(session_id=session_id, first=1, last=1),
    )
    memory.store.agents.post(key, item, JobKind.MEMORY_AGENT, SystemClock().now())

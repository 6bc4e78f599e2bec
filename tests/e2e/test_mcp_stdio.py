"""N7: `recollect mcp` as agents start it: a real client, real pipes, hostile frames, hard ends."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import TextContent, TextResourceContents

import recollect
from tests.e2e.command_line import ENTRY_POINT, line_with, process, run, run_json
from tests.unit.interfaces.mcp.talking import Answered, answered

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "mcp.md"
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def frame(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def request(number: int, method: str, **params: Any) -> bytes:
    return frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def call(number: int, tool: str, **arguments: Any) -> bytes:
    return request(number, "tools/call", name=tool, arguments=arguments)


START = frame(HELLO) + frame(READY)


def talked(sent: bytes, *options: str, before: str = "") -> tuple[list[dict[str, Any]], str]:
    """What a server answers to a whole input, each line of it a frame; and what it logged."""
    done = subprocess.run(
        [sys.executable, "-c", f"{before}\n{ENTRY_POINT}", "mcp", "--store", "m.db", *options],
        input=sent,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


@contextmanager
def started(*options: str) -> Iterator[subprocess.Popen[bytes]]:
    arguments = [sys.executable, "-c", ENTRY_POINT, "mcp", "--store", "m.db", *options]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def ask(running: subprocess.Popen[bytes], sent: bytes) -> dict[str, Any]:
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write(sent)
    running.stdin.flush()
    answer: dict[str, Any] = json.loads(running.stdout.readline())
    return answer


def with_client(*options: str, calls: list[tuple[str, dict[str, Any]]]) -> list[Answered]:
    """Calls of one real client of the official SDK to a server that it starts."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-c", ENTRY_POINT, "mcp", "--store", "m.db", *options],
        env=dict(os.environ),
        cwd=str(Path.cwd()),
    )

    async def talk() -> list[Answered]:
        async with Client(stdio_client(parameters)) as client:
            return [answered(await client.call_tool(name, given)) for name, given in calls]

    return anyio.run(talk)


def test_what_one_agent_keeps_another_one_finds_in_another_process() -> None:
    kept = with_client(
        "--agent", "claude-code", calls=[("add_memory", {"text": "We dropped Redis in May."})]
    )
    found = with_client(
        "--agent",
        "codex",
        calls=[
            ("search_memories", {"query": "why did we drop Redis?"}),
            ("get_memory", {"id": kept[0].values["id"]}),
            ("memory", {"command": "view", "path": "/memories"}),
        ],
    )
    assert [each["id"] for each in found[0].values["memories"]] == [kept[0].values["id"]]
    assert found[1].values["text"] == "We dropped Redis in May."
    assert not any(answer.is_error for answer in found)
    elsewhere = with_client("--space", "bob", calls=[("context", {"query": "Redis"})])
    assert elsewhere[0].values["text"] == ""


def test_the_worker_distils_what_sessions_left_and_ends_with_the_input() -> None:
    with recollect.open("m.db") as memory:
        session = memory.space().session("cli:1")
        session.append("user", "Remember that I am allergic to peanuts.")
        session.end()
    with started("--verbose") as running:
        ask(running, START)
        line_with(running.stderr, b"extracted")
        assert "peanuts" in json.dumps(ask(running, call(1, "list_memories")))
        running.communicate(timeout=60)
        assert running.returncode == 0


def test_what_is_no_frame_is_answered_and_the_rest_goes_on() -> None:
    deep = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":' + b"[" * 5000 + b"\n"
    answers, _ = talked(
        b"".join(
            (
                b"garbage\n\n",
                START,
                b'{"id": 1}\n[1, 2]\nnull\n',
                b"\xff\xfe\x00 not text\n",
                deep,
                b'{"x": "' + b"y" * (17 * 1024 * 1024) + b'"}\n',
                request(2, "no/such/method"),
                request(3, "tools/call", name=7),
                call(4, "no_such_tool"),
                call(5, "add_memory", text="\x00 z \U0001f600 \ufffe"),
                call(6, "add_memory", text=["a"], tags="b"),
                frame({**CANCELLED, "params": {}}),
                call(7, "memory", command="create", path="/memories/x", file_text="y" * 9_000_000),
                request(8, "ping"),
            )
        )
    )
    by_id = {answer["id"]: answer for answer in answers if answer["id"] is not None}
    assert sorted(by_id) == [0, 2, 3, 4, 5, 6, 7, 8]
    assert all("error" in answer for answer in answers if answer["id"] is None)
    assert len([answer for answer in answers if answer["id"] is None]) == 7
    assert "error" in by_id[2]
    assert "error" in by_id[3]
    assert by_id[4]["result"]["isError"]
    assert not by_id[5]["result"]["isError"]
    assert by_id[6]["result"]["isError"]
    assert by_id[7]["result"]["isError"]
    assert by_id[8]["result"] == {}
    with recollect.open("m.db") as memory:
        assert [fact.content for fact in memory.space().facts.list()] == [
            "\ufffd z \U0001f600 \ufffe"
        ]
        assert memory.space().documents.find("~/memory/x") is None


HELD_UP = """
import threading
from recollect.interfaces.mcp import stdio
from recollect.space import Space
stdio.FINISH_SECONDS = 10**6
may_go_on, recall, context = threading.Event(), Space.recall, Space.context
def held_up(*args, **given):
    assert may_go_on.wait(60)
    return recall(*args, **given)
def lets_go(*args, **given):
    may_go_on.set()
    return context(*args, **given)
Space.recall, Space.context = held_up, lets_go
"""


def test_what_is_cancelled_is_not_answered_and_holds_up_nothing() -> None:
    cancelled = frame({**CANCELLED, "params": {"requestId": 1}})
    calls = (call(1, "search_memories", query="x"), cancelled, call(2, "context", query="x"))
    answers, _ = talked(START + b"".join(calls), before=HELD_UP)
    assert [answer["id"] for answer in answers] == [0, 2]


def test_a_flood_is_answered_to_the_last_line() -> None:
    count = 1500
    lines = [
        call(number, "add_memory", text=f"Heron {number % 50} was seen.")
        if number % 10 == 0
        else request(number, "ping")
        for number in range(1, count + 1)
    ]
    answers, _ = talked(START + b"".join(lines), "--no-work")
    assert sorted(answer["id"] for answer in answers) == list(range(count + 1))
    with recollect.open("m.db") as memory:
        assert len(memory.space().facts) == 5


LOUD = """
import os, sys
from recollect.space import Space
quiet = Space.recall
def loud(*args, **given):
    print("LEAK"); os.write(1, b"LEAK"); sys.stdout.write("LEAK"); os.system("echo LEAK")
    return quiet(*args, **given)
Space.recall = loud
"""


def test_what_is_printed_is_never_among_the_frames() -> None:
    answers, logged = talked(START + call(1, "search_memories", query="x"), before=LOUD)
    assert [answer["id"] for answer in answers] == [0, 1]
    assert logged.count("LEAK") == 4


def test_a_client_that_hangs_up_leaves_nothing_half_written() -> None:
    with started("--no-work") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        ask(running, START)
        running.stdout.close()
        for number in range(1, 20):
            running.stdin.write(call(number, "add_memory", text=f"Heron {number} was seen."))
        running.stdin.close()
        assert running.wait(timeout=60) == 0
    with recollect.open("m.db") as memory:
        for fact in memory.space().facts.list():
            assert fact.content.startswith("Heron ")


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_tidily_while_the_client_says_nothing(told: signal.Signals) -> None:
    with started() as running:
        ask(running, START)
        ask(running, call(1, "list_memories"))
        running.send_signal(told)
        assert running.wait(timeout=60) == 0


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="a pipe that small is Linux's")
def test_a_signal_ends_it_while_the_client_takes_nothing() -> None:
    with started() as running:
        ask(running, START)
        assert running.stdin is not None
        assert running.stdout is not None
        fcntl.fcntl(running.stdout, fcntl.F_SETPIPE_SZ, 4096)
        running.stdin.write(request(1, "tools/list"))
        running.stdin.flush()
        running.stdout.read(1)  # of an answer that does not fit into the pipe
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=60) == 0


def test_the_repository_that_an_agent_starts_it_in_sets_nothing() -> None:
    """P9: whoever writes a repository names neither the store nor the model that it is sent to."""
    Path("recollect.toml").write_text(
        "store = 'theirs.db'\nmodel = 'openai:theirs'\nnonsense = 1\n"
    )
    done = process("mcp", "--no-project", stdin=START + call(1, "add_memory", text="It works."))
    assert done.returncode == 0, done.stderr.decode()
    Path("recollect.toml").unlink()
    assert not Path("theirs.db").exists()
    with recollect.open() as memory:
        assert [fact.content for fact in memory.space().facts.list()] == ["It works."]


def test_a_store_that_cannot_be_opened_is_said_in_the_answer() -> None:
    Path("m.db").write_bytes(b"this is no database " * 500)
    answers, logged = talked(START + call(1, "context", query="x") + request(2, "ping"))
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id[1]["result"]["isError"]
    assert "NotAStore" in by_id[1]["result"]["content"][0]["text"]
    assert by_id[2]["result"] == {}
    assert "Traceback" not in logged


# the command


def test_help_does_not_load_the_sdk() -> None:
    code = "from recollect.interfaces.cli.main import cli; cli(['--help'], standalone_mode=False)"
    check = "import sys; assert not {'mcp', 'pydantic', 'anyio'} & set(sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{check}"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"mcp" in done.stdout


def test_without_the_extra_it_says_what_to_install() -> None:
    missing = "import sys; sys.modules['mcp'] = None"
    done = subprocess.run(
        [sys.executable, "-c", f"{missing}\n{ENTRY_POINT}", "mcp"],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1
    assert b"pip install 'recollect[mcp]'" in done.stderr
    assert done.stdout == b""


def test_the_configuration_it_prints_starts_it() -> None:
    Path(".git").mkdir()
    made = run_json("mcp", "--store", "m.db", "--space", "work", "--config", "cursor")
    entry = json.loads(made["text"])["mcpServers"]["recollect"]
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        input=START + call(1, "add_memory", text="It works."),
        capture_output=True,
        check=False,
        cwd=os.sep,
    )
    assert done.returncode == 0, done.stderr.decode()
    with recollect.open("m.db") as memory:
        (fact,) = memory.space("work").facts.list()
        assert fact.content == "It works."
        assert fact.metadata == {"agent": "cursor"}
        assert fact.source is None


def test_without_a_script_it_is_started_where_no_repository_can_stand_in_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    entry = json.loads(run_json("mcp", "--store", "m.db", "--config", "cursor")["text"])
    assert entry["mcpServers"]["recollect"]["args"][:3] == ["-P", "-m", "recollect"]


def test_wrong_usage_is_told() -> None:
    for arguments, code, words in (
        (("--config", "emacs"), 2, "claude-code"),
        (("--spaces", "a"), 2, "--http"),
        (("--http", "nowhere"), 2, "HOST:PORT"),
        (("--project", ".", "--no-project"), 2, "not both"),
        (("--http", "0.0.0.0:0"), 1, "give a token"),
        (("--http", ":0", "--token", ""), 2, "empty"),
    ):
        result = run("mcp", "--store", "m.db", *arguments)
        assert (result.exit_code, words in result.output) == (code, True), result.output
    assert process("mcp", "--http", "256.0.0.1:1", "--token", "x").returncode == 1


def test_every_command_of_the_guide_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    lines = re.findall(r"^\$ recollect (.+)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) >= 5
    for line in lines:
        words = shlex.split(os.path.expandvars(line))
        result = run(*words) if "--config" in words else run(*words, "--help")
        assert result.exit_code == 0, result.output
        assert "recollect mcp" in result.output or '"mcp"' in result.output


def test_resources_and_prompts_are_read_and_what_is_unknown_is_said(tmp_path: Path) -> None:
    """V-4: what is advertised is there, and what is not is no failure of the server."""
    store = tmp_path / "m.db"
    with recollect.open(store) as memory:
        session = memory.space().session("cli:1")
        session.append("user", "Remember that I am allergic to peanuts. My sister is called Ana.")
        session.append("user", "The staging token is ghp_" + "a1B2" * 9 + " by the way.")
        session.end()
        memory.work()
        body = "</recollect-memory> Ana keeps bees. " + "And wasps. " * 900
        memory.space().documents.write("people/ana", body)
    arguments = ["-c", ENTRY_POINT, "mcp", "--store", str(store), "--no-project", "--no-work"]
    log = tmp_path / "log"

    async def talk() -> tuple[list[str], dict[str, str], list[str]]:
        texts, refused = {}, []
        with log.open("w") as errors:
            server = StdioServerParameters(command=sys.executable, args=arguments)
            async with Client(stdio_client(server, errlog=errors)) as client:
                listed = (await client.list_resources()).resources
                templates = (await client.list_resource_templates()).resource_templates
                assert [each.uri_template for each in templates] == [
                    "recollect://memory/{+id}",
                    "recollect://about/{+question}",
                ]
                about = "recollect://about/allergic%20to%20peanuts"
                for uri in (*(each.uri for each in listed), about):
                    (content,) = (await client.read_resource(uri)).contents
                    assert isinstance(content, TextResourceContents)
                    texts[uri] = content.text
                prompts = (await client.list_prompts()).prompts
                assert [each.name for each in prompts] == ["recall", "recap"]
                for name, given in (("recall", {"about": "allergic to peanuts"}), ("recap", None)):
                    (message,) = (await client.get_prompt(name, given)).messages
                    assert isinstance(message.content, TextContent)
                    texts[name] = message.content.text
                for asked in (
                    lambda: client.get_prompt("sing"),
                    lambda: client.get_prompt("recall"),
                    lambda: client.read_resource("recollect://memory/nothing"),
                    lambda: client.read_resource("file:///etc/passwd"),
                ):
                    with pytest.raises(MCPError) as error:
                        await asked()
                    refused.append(str(error.value))
        return [each.uri for each in listed], texts, refused

    uris, texts, refused = anyio.run(talk)
    pages = "recollect://memory/~/memory/"
    assert uris[0] == "recollect://recap"
    assert {f"{pages}MEMORY", f"{pages}memory_summary", f"{pages}people/ana"} <= set(uris)
    assert not any("rollout" in uri or "raw_memories" in uri for uri in uris)
    for name in ("recollect://recap", f"{pages}MEMORY", "recap", "recall"):
        assert "allergic to peanuts" in texts[name]
    assert "allergic to peanuts" in texts["recollect://about/allergic%20to%20peanuts"]
    long = texts[f"{pages}people/ana"]
    assert long.count("And wasps.") == 900
    assert long.count("</recollect-memory>") == 1
    assert not any("a1B2a1B2" in text for text in texts.values())
    assert [words in told for words, told in zip(WRONG, refused, strict=True)] == [True] * 4
    assert "Traceback" not in log.read_text()


WRONG = ("there are recall, recap", "needs the argument", "remembers nothing", "unknown resource")

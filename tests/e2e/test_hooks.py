"""A scripted coding agent through the hooks: whole sessions, and everything that can go wrong.

Holds N8 for hooks: context at the start and at prompts, capture without anybody asking, and an
agent that is never blocked, failed or spoken over.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.hooks.events import PAYLOAD_BYTES_MAX, Agent
from recollect.hooks.installing import plan_install
from recollect.verbs import VERBS
from tests.docs.walking import understood
from tests.e2e.command_line import ENTRY_POINT, process, run, run_json, started

# Runs a command, then waits for what it left behind: orphans of this process become its children.
ATTENDED = """
import ctypes, os, subprocess, sys
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
done = subprocess.run(sys.argv[1:])
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
sys.exit(done.returncode)
"""
linux = pytest.mark.skipif(sys.platform != "linux", reason="orphans are awaited with prctl")


class CodingAgent:
    """Claude Code, as far as its hooks can tell: a transcript that grows, and calls beside it."""

    def __init__(self, folder: Path, project: str, session: str) -> None:
        self.directory = folder / project
        (self.directory / ".git").mkdir(parents=True, exist_ok=True)
        self.session = session
        self.transcript = folder / "logs" / f"{session}.jsonl"
        self.transcript.parent.mkdir(exist_ok=True)
        self._written = 0

    def call(self, name: str, **more: Any) -> bytes:
        return json.dumps(
            {
                "session_id": self.session,
                "transcript_path": str(self.transcript),
                "cwd": str(self.directory),
                "permission_mode": "default",
                "hook_event_name": name,
                **more,
            }
        ).encode()

    def write(self, role: str, content: Any) -> None:
        """One line of the transcript."""
        self._written += 1
        line = {
            "type": role,
            "uuid": f"{self.session}-{self._written}",
            "parentUuid": f"{self.session}-{self._written - 1}" if self._written > 1 else None,
            "sessionId": self.session,
            "timestamp": f"2026-03-01T10:{self._written // 60:02}:{self._written % 60:02}.000Z",
            "cwd": str(self.directory),
            "version": "2.1.0",
            "isSidechain": False,
            "message": {"role": role, "content": content},
        }
        with self.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def say(self, asked: str, answered: str) -> None:
        self.write("user", asked)
        self.write("assistant", [{"type": "text", "text": answered}])

    def hook(self, name: str, *options: str, **more: Any) -> str:
        """Call the hook as the agent does, and wait for what it has done behind its back."""
        command = [sys.executable, "-c", ENTRY_POINT, "hook", "claude-code", *options]
        done = subprocess.run(
            [sys.executable, "-c", ATTENDED, *command],
            input=self.call(name, **more),
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return context(done.stdout, name)

    def told(self, name: str, **more: Any) -> str:
        """The same in this process, for calls that leave nothing to do behind."""
        result = run("hook", "claude-code", stdin=self.call(name, **more))
        assert (result.exit_code, result.stderr) == (0, "")
        return context(result.stdout_bytes, name)

    def errand(self, name: str) -> None:
        """What the hook has done behind the agent's back, done here."""
        result = run("hook", "claude-code", "--errand", "--no-learn", stdin=self.call(name))
        assert (result.exit_code, result.output) == (0, "")


def context(output: bytes, name: str) -> str:
    """What an agent reads in a hook's answer: one line of JSON, or nothing."""
    if not output:
        return ""
    assert output.endswith(b"\n")
    assert output.count(b"\n") == 1
    told = json.loads(output)["hookSpecificOutput"]
    assert told["hookEventName"] == name
    block = told["additionalContext"]
    assert isinstance(block, str)
    return block


def said() -> dict[str, list[str]]:
    """What every session has, by its key."""
    with recollect.open() as memory:
        sessions = memory.space().sessions
        return {
            state.key: [record.content for record in sessions.records(state.id)]
            for state in sessions.list()
        }


def log() -> str:
    path = Path(os.environ["RECOLLECT_DATA_DIR"], "hooks.log")
    return path.read_text() if path.exists() else ""


def test_who_learns_at_the_end_learns_from_those_who_never_said_that_they_ended(
    tmp_path: Path,
) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    with recollect.open(clock=ManualClock(yesterday)) as memory:
        for space in ("default", "another"):
            memory.space(space).session("codex:1").append("user", "I live in Lisbon.", name="Ana")
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    call = agent.call("SessionEnd")
    assert run("hook", "claude-code", "--errand", stdin=call).exit_code == 0
    assert [fact["content"] for fact in run_json("facts")] == ["Ana lives in Lisbon."]
    assert run_json("facts", "--space", "another") == []


@linux
def test_what_one_session_was_told_the_next_one_knows(tmp_path: Path) -> None:
    first = CodingAgent(tmp_path, "atlas", "s-1")
    assert first.hook("SessionStart", source="startup") == ""
    first.say("Please always indent with tabs in this repository.", "Noted.")
    assert first.hook("Stop") == ""
    assert first.hook("UserPromptSubmit", prompt="Why did we drop Redis from the stack?") == ""
    first.say("We decided to drop Redis because it lost data.", "Understood.")
    assert first.hook("SessionEnd", reason="prompt_input_exit") == ""
    assert len(said()["claude-code:s-1"]) == 4
    assert log() == ""

    second = CodingAgent(tmp_path, "atlas", "s-2")
    block = second.told("SessionStart", source="startup")
    assert "always indent with tabs" in block
    assert "drop Redis" in block
    assert second.told("SessionStart", source="resume") == ""
    assert CodingAgent(tmp_path, "zephyr", "s-3").told("SessionStart", source="startup") == ""
    asked = CodingAgent(tmp_path, "atlas", "s-4")
    answer = asked.hook("UserPromptSubmit", prompt="Why did we decide to drop Redis?")
    assert "it lost data" in answer
    assert asked.hook("UserPromptSubmit", prompt="Why did we decide to drop Redis?") == ""

    # What it was told stands in its transcript now, and is not learned a second time.
    second.write("user", f"{block}\nGo on with the release.")
    second.errand("SessionEnd")
    assert run("work").exit_code == 0
    facts = run_json("facts")
    assert sum("tabs" in fact["content"] for fact in facts) == 1


def test_the_same_event_twice_keeps_everything_once_and_marks_it(tmp_path: Path) -> None:
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    agent.say("Please use tabs.", "Noted.")
    for name in ("Stop", "Stop", "PreCompact", "SessionEnd", "SessionEnd"):
        agent.errand(name)
    assert said() == {"claude-code:s-1": ["Please use tabs.", "Noted."]}
    with recollect.open() as memory:
        (state,) = memory.space().sessions.list()
    assert state.invalidated_at == 2
    assert state.project == str(agent.directory)
    assert log() == ""


def test_a_capture_that_was_killed_is_completed_by_the_next(tmp_path: Path) -> None:
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    for number in range(400):
        agent.say(f"Question {number}?", f"Answer {number}.")
    die = (
        "import os, signal\n"
        "from recollect import crashpoints\n"
        "reached = []\n"
        "def die(name):\n"
        "    reached.append(name)\n"
        "    if reached.count('import.noted') == 2:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "crashpoints.arm(die)"
    )
    with started("hook", "claude-code", "--errand", before=die) as running:
        assert running.stdin is not None
        running.stdin.write(agent.call("SessionEnd"))
        running.stdin.close()
        assert running.wait() == -9
    part = sum(map(len, said().values()))
    assert 0 < part < 800
    agent.errand("SessionEnd")
    texts = said()["claude-code:s-1"]
    assert texts == [
        text for number in range(400) for text in (f"Question {number}?", f"Answer {number}.")
    ]


def test_messages_in_the_payload_are_kept_once(tmp_path: Path) -> None:
    told = {
        "event": "end",
        "session": "42",
        "cwd": str(tmp_path),
        "messages": [
            {"id": "a", "role": "user", "content": "I prefer tea."},
            {"role": "nobody", "content": []},
            {"id": "b", "role": "assistant", "content": "Noted."},
        ],
    }
    turn = {
        "type": "agent-turn-complete",
        "thread-id": "b5f6c1c2-1111-2222-3333-444455556666",
        "turn-id": "7",
        "cwd": str(tmp_path),
        "input-messages": ["Rename foo."],
        "last-assistant-message": "Renamed.",
    }
    for _ in range(2):
        assert run("hook", "generic", "--errand", "--no-learn", stdin=json.dumps(told)).output == ""
        assert run("hook", "codex", json.dumps(turn), "--errand", "--no-learn").output == ""
    assert said() == {
        "generic-hook:42": ["I prefer tea.", "Noted."],
        "codex-hook:b5f6c1c2-1111-2222-3333-444455556666": ["Rename foo.", "Renamed."],
    }
    assert "1 messages could not be kept" in log()
    assert "nobody" not in log()


def test_a_notification_of_codex_brings_in_its_rollout_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = "b5f6c1c2-1111-2222-3333-444455556666"
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    day = tmp_path / "codex" / "sessions" / "2026" / "03" / "01"
    day.mkdir(parents=True)
    lines = [
        {"type": "session_meta", "payload": {"id": thread, "cwd": str(tmp_path)}},
        {
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "Rename foo to bar, all of it."}],
            },
        },
    ]
    (day / f"rollout-2026-03-01T10-00-00-{thread}.jsonl").write_text(
        "".join(
            json.dumps({"timestamp": "2026-03-01T10:00:00.000Z", **line}) + "\n" for line in lines
        )
    )
    turn = {
        "type": "agent-turn-complete",
        "thread-id": thread,
        "turn-id": "1",
        "input-messages": ["Rename foo to bar, all of it."],
    }
    assert run("hook", "codex", json.dumps(turn), "--errand", "--no-learn").output == ""
    assert said() == {f"codex:{thread}": ["Rename foo to bar, all of it."]}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff\x00\xfe",
        b"{",
        b"[]",
        b'{"hook_event_name": "Dance", "session_id": "s"}',
        b'{"hook_event_name": "SessionStart"}',
    ],
)
def test_what_is_no_event_passes_in_silence_and_is_logged(payload: bytes) -> None:
    result = run("hook", "claude-code", stdin=payload)
    assert (result.exit_code, result.output) == (0, "")
    assert "claude-code" in log()
    assert "the payload" in log()


def test_a_store_that_cannot_be_used_passes_in_silence_and_is_logged(tmp_path: Path) -> None:
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"no database " * 1000)
    below_a_file = damaged / "memory.db"
    for place in (str(damaged), str(below_a_file), "nosuch://address"):
        before = len(log().splitlines())
        for name in ("SessionStart", "UserPromptSubmit"):
            call = agent.call(name, prompt="what do we know about tabs?")
            result = run("hook", "claude-code", "--store", place, "--errand", stdin=call)
            assert (result.exit_code, result.output) == (0, "")
        result = run("hook", "claude-code", "--store", place, stdin=agent.call("SessionStart"))
        assert (result.exit_code, result.output) == (0, "")
        assert len(log().splitlines()) == before + 3
    loud = run(
        *("hook", "claude-code", "--store", str(damaged), "--verbose"),
        stdin=agent.call("SessionStart"),
    )
    assert (loud.exit_code, loud.stdout) == (0, "")
    assert "claude-code" in loud.stderr


def test_a_store_that_is_locked_keeps_no_agent_waiting(tmp_path: Path) -> None:
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    run("append", "x", "Please always use tabs.")
    holder = sqlite3.connect(tmp_path / "data" / "memory.db")
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    try:
        done = process(
            *("hook", "claude-code", "--timeout", "0.3"), stdin=agent.call("SessionStart")
        )
    finally:
        holder.close()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "the time was over" in log() or "StoreBusy" in log()


def test_an_agent_that_never_closes_its_pipe_is_left_in_time() -> None:
    with started("hook", "claude-code", "--timeout", "0.3") as running:
        assert running.wait() == 0
        assert running.stdout is not None
        assert running.stdout.read() == b""
    assert "the time was over" in log()


def test_settings_that_cannot_be_read_pass_in_silence(tmp_path: Path) -> None:
    own = tmp_path / "config" / "recollect"
    own.mkdir(parents=True)
    (own / "recollect.toml").write_text("nonsense = [")
    result = run("hook", "claude-code", stdin=b"{}")
    assert (result.exit_code, result.output) == (0, "")
    assert "InvalidSetting" in log()


def test_the_repository_that_an_agent_works_in_sets_nothing(tmp_path: Path) -> None:
    """P9: whoever writes a repository cannot say where what is said in it goes."""
    with recollect.open(str(tmp_path / "data" / "memory.db")) as memory:
        memory.space().facts.add("Always run the tests with make check.", tags=["instruction"])
    theirs = tmp_path / "theirs.db"
    (tmp_path / "recollect.toml").write_text(f"store = {str(theirs)!r}\ndata_dir = 'theirs'\n")
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    agent.say("We decided to drop Redis.", "Understood.")
    assert "make check" in agent.told("SessionStart")
    agent.errand("SessionEnd")
    assert not theirs.exists()
    assert not (tmp_path / "theirs").exists()
    (tmp_path / "recollect.toml").unlink()
    assert said()["claude-code:s-1"] == ["We decided to drop Redis.", "Understood."]


def test_an_agent_whose_memory_is_off_is_told_nothing_and_nothing_of_it_is_kept(
    tmp_path: Path,
) -> None:
    with recollect.open() as memory:
        memory.space().facts.add("Always run the tests with make check.", tags=["instruction"])
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    agent.say("We decided to drop Redis.", "Understood.")
    assert "make check" in agent.told("SessionStart")
    own = tmp_path / "config" / "recollect"
    own.mkdir(parents=True)
    (own / "recollect.toml").write_text("[agents.claude-code.memory]\nenabled = false\n")
    assert agent.told("SessionStart") == ""
    agent.errand("SessionEnd")
    assert said() == {}
    assert log() == ""


def test_nobody_at_home_fails_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container a user may have neither a home nor a name."""

    def nobody(_: object) -> None:
        raise KeyError

    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "RECOLLECT_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    result = run("hook", "claude-code", "--verbose", stdin=b"{}")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "RuntimeError" in result.stderr


def test_a_machine_that_is_full_fails_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Timer, "start", full)
    result = run("hook", "claude-code", stdin=b"{}")
    assert (result.exit_code, result.output) == (0, "")
    assert "RuntimeError" in log()


def test_a_payload_that_is_too_large_is_taken_whole_all_the_same() -> None:
    with started("hook", "claude-code", "--timeout", "60") as running:
        assert running.stdin is not None
        running.stdin.write(b"x" * (PAYLOAD_BYTES_MAX + 1_000_000))
        running.stdin.close()  # neither fails: the pipe is read to its end
        assert running.wait() == 0
    assert "the payload is over" in log()


def test_wrong_usage_never_ends_with_the_code_that_blocks_an_agent() -> None:
    for arguments in (
        ("hook", "claude-code", "--no-such-option"),
        ("hook", "claude-code", "--timeout", "soon"),
        ("hook", "claude-code", "--store", ""),
        ("hook", "an-agent-of-tomorrow"),
        ("hook", "--no-such-option", "claude-code"),
    ):
        result = run(*arguments, stdin=b"{}")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: ")


def test_a_store_that_only_the_shell_names_is_written_where_agents_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tutorial says `export RECOLLECT_STORE=memory.db`, and agents start elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def written(*options: str) -> str:
        shown = run_json("hook", "install", "claude-code", "--dry-run", *options)
        [command, *_] = [line for line in shown["diff"] if '"command":' in line]
        return str(command)

    monkeypatch.setenv("RECOLLECT_STORE", "memory.db")
    assert f"hook claude-code --store {tmp_path}/memory.db" in written()
    assert '"recollect hook claude-code"' in written("--project"), "others have their own"
    monkeypatch.setenv("RECOLLECT_STORE", "postgresql://me:" + "pass@localhost/db")
    assert "--store" not in written(), "it has a password"
    monkeypatch.delenv("RECOLLECT_STORE")
    monkeypatch.setenv("RECOLLECT_DATA_DIR", str(tmp_path / "elsewhere"))
    assert f"--store {tmp_path}/elsewhere/memory.db" in written()
    monkeypatch.delenv("RECOLLECT_DATA_DIR")
    assert "--store" not in written(), "it is found from anywhere"
    (tmp_path / "recollect.toml").write_text('store = "here.db"')
    assert f"--store {tmp_path}/here.db" in written()


@pytest.mark.parametrize("name", ["store", "sqlite_path", "data_dir"])
def test_no_store_is_made_in_the_middle_of_somebody_s_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    agent.say("I live in Lisbon.", "Noted.")
    monkeypatch.chdir(agent.directory)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    if name == "data_dir":
        monkeypatch.setenv("RECOLLECT_DATA_DIR", "data")
    else:
        monkeypatch.delenv("RECOLLECT_DATA_DIR", raising=False)
        monkeypatch.setenv(f"RECOLLECT_{name.upper()}", "memory.db")
    for arguments in (("SessionStart",), ("SessionEnd", "--errand")):
        call = agent.call(arguments[0])
        result = run("hook", "claude-code", "--verbose", *arguments[1:], stdin=call)
        assert (result.exit_code, result.stdout) == (0, "")
        assert f"{name} (RECOLLECT_{name.upper()}) is a relative path" in result.stderr
    assert [each.name for each in agent.directory.iterdir()] == [".git"]
    assert (tmp_path / "own" / "recollect" / "hooks.log").read_text().count("relative path") == 2
    result = run("hook", "claude-code", "--store", "mine.db", stdin=agent.call("SessionStart"))
    assert (agent.directory / "mine.db").exists() == (name != "data_dir"), "an option says so"


def test_hooks_are_installed_and_removed_and_say_what_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = tmp_path / ".claude" / "settings.json"
    settings.parent.mkdir()
    mine = '{\n    "model": "opus",\n    "hooks": {"Stop": []}\n}\n'
    settings.write_text(mine)

    dry = run("hook", "install", "claude-code", "--dry-run", "--store", "my memory.db")
    assert dry.exit_code == 0
    assert "+" in dry.stdout
    assert settings.read_text() == mine

    done = run("hook", "install", "claude-code", "--store", "my memory.db", "--space", "work")
    assert done.exit_code == 0
    assert "SessionStart" in done.stdout
    command = json.loads(settings.read_text())["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    called = subprocess.run(
        command, shell=True, input=agent.call("SessionStart"), capture_output=True, check=False
    )
    assert (called.returncode, called.stdout, called.stderr) == (0, b"", b"")
    assert (tmp_path / "my memory.db").exists()

    again = run("hook", "install", "claude-code", "--store", "my memory.db", "--space", "work")
    assert "nothing to change" in again.stdout
    removed = run_json("hook", "uninstall", "claude-code")
    assert removed["changed"] is True
    assert json.loads(settings.read_text()) == {"model": "opus"}
    assert removed["backup"] is None
    assert settings.with_name("settings.json.before-recollect").read_text() == mine

    settings.write_text("{ // mine\n}")
    broken = run("hook", "install", "claude-code")
    assert broken.exit_code == 1
    assert "settings.json" in broken.stderr
    assert settings.read_text() == "{ // mine\n}"
    secret = run("hook", "install", "codex", "--store", "postgresql://me:" + "pass@localhost/db")
    assert secret.exit_code == 2
    assert "RECOLLECT_STORE" in secret.stderr
    address = run_json("hook", "install", "codex", "--dry-run", "--store", "sqlite:///my.db")
    assert any(f"sqlite:///{tmp_path}/my.db" in line for line in address["diff"])
    shared = run_json("hook", "install", "codex", "--project", "--dry-run")
    assert any('"recollect hook codex"' in line for line in shared["diff"])
    assert not (tmp_path / ".codex").exists()


PLUGIN = Path(__file__).resolve().parents[2] / "plugins" / "claude-code"


def test_one_command_sets_up_an_agent_and_undoes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    settings, servers = tmp_path / ".claude" / "settings.json", tmp_path / ".claude.json"
    settings.parent.mkdir()
    settings.write_text('{"theme": "dark"}\n')
    servers.write_text('{"numStartups": 7}\n')
    asked = run("setup", "claude-code", "--dry-run")
    assert asked.exit_code == 0
    assert "SessionStart" in asked.stdout
    assert settings.read_text() == '{"theme": "dark"}\n'

    done = run_json("setup", "claude-code", "--space", "work", "--yes")
    assert done["changed"] is True
    assert [Path(file["path"]) for file in done["files"]] == [settings, servers]
    hooks = json.loads(settings.read_text())["hooks"]
    words = shlex.split(hooks["SessionStart"][0]["hooks"][0]["command"])
    assert "--skills" in words
    assert "work" in words
    server = json.loads(servers.read_text())["mcpServers"]["recollect"]
    assert json.loads(servers.read_text())["numStartups"] == 7
    assert server["args"][server["args"].index("mcp") :][0] == "mcp"
    assert run_json("setup", "claude-code", "--space", "work", "--yes")["changed"] is False

    assert run_json("setup", "claude-code", "--undo", "--yes")["changed"] is True
    assert json.loads(settings.read_text()) == {"theme": "dark"}
    assert json.loads(servers.read_text()) == {"numStartups": 7}


@linux
def test_a_hook_learns_by_itself_and_links_what_became_a_skill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    agent = CodingAgent(tmp_path, "atlas", "s-1")
    for _ in range(4):  # no end is ever said: the session is due as it grows
        agent.say("Please always indent with tabs in this repository.", "Noted.")
    agent.hook("Stop", "--skills")
    assert [fact["content"] for fact in run_json("facts")] != []
    with recollect.open() as memory:
        published = memory.pipeline.published("default")
    assert published is not None
    skill = published / "skills" / "release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: x\n---\n")
    agent.say("Thanks.", "You are welcome.")
    agent.hook("Stop", "--skills")
    link = tmp_path / ".claude" / "skills" / "release"
    assert link.readlink() == skill


def test_the_plugin_calls_what_there_is() -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    [listed] = json.loads((PLUGIN.parents[1] / ".claude-plugin" / "marketplace.json").read_text())[
        "plugins"
    ]
    assert listed["name"] == manifest["name"]
    assert (PLUGIN.parents[1] / listed["source"]).resolve() == PLUGIN
    assert manifest["version"] == recollect.__version__
    planned = plan_install(
        Path("/nowhere"), Agent.CLAUDE_CODE, "recollect hook claude-code --skills"
    )
    assert json.loads((PLUGIN / "hooks" / "hooks.json").read_text()) == json.loads(planned.after)
    server = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["recollect"]
    understood(server["args"])
    for file in (PLUGIN / "commands").glob("*.md"):
        named = set(re.findall(r"`(\w+_\w+)`", file.read_text()))
        assert named <= {tool for verb in VERBS for tool in verb.tools}

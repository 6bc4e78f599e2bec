"""The command line, as people and programs use it: real processes for the edges, both databases."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import recollect
from recollect import config
from recollect.clock import ManualClock
from recollect.errors import PermanentFailure
from recollect.extraction.run import ExtractionProcessor
from recollect.interfaces.cli.main import SECTIONS, cli
from recollect.types.records import Claim, JobKind, JobState, LeasePolicy, Outcome
from recollect.worker import Verdict, Work
from tests.e2e.command_line import (
    ENTRY_POINT,
    fill,
    line_with,
    process,
    run,
    run_json,
    started,
)

ROOT = Path(__file__).resolve().parents[2]
# A worker that says when it has a session in hand, and goes on when it is sent a byte.
STALLING = """
import os
from recollect.types.records import Outcome
from recollect.extraction import run
from recollect.processing import Verdict

def process(self, work):
    os.write(1, b"reading\\n")
    os.read(0, 1)
    return Verdict(outcome=Outcome.NO_OUTPUT)

run.ExtractionProcessor.process = process
"""
ESCAPES = "hello \x1b[31mred\x1b[0m \x07\x9b2J\u202etxt\r\nlast line"


def loaded_modules(*arguments: str) -> set[str]:
    """The modules a run of the command line imports."""
    listing = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    result = subprocess.run(
        [sys.executable, "-c", f"{listing}; {ENTRY_POINT}", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(result.stderr.split())


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


# the process


def test_the_version_is_the_package_s() -> None:
    result = process("--version")
    assert result.stdout.decode() == f"recollect {recollect.__version__}\n"


def test_the_script_of_the_package_is_the_one_under_test() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"recollect": "recollect.interfaces.cli.main:main"}


def test_help_loads_no_command_and_no_database_driver() -> None:
    loaded = loaded_modules("--help")
    assert "recollect.interfaces.cli.main" in loaded
    modules = {module for section in SECTIONS.values() for module, _ in section.values()}
    assert not {f"recollect.interfaces.cli.{name}" for name in modules} & loaded
    assert not {"psycopg", "yaml", "asyncio"} & loaded


def test_a_command_loads_its_own_module_and_none_for_terminals() -> None:
    loaded = loaded_modules("sweep", "--help")
    assert "recollect.interfaces.cli.status" in loaded
    for name in ("chat", "bench", "serving", "hook", "import_", "store"):
        assert f"recollect.interfaces.cli.{name}" not in loaded
    assert not {"rich", "psycopg", "starlette", "asyncio"} & loaded


def test_every_command_teaches_by_example_and_takes_the_shared_options() -> None:
    for path, command in commands(cli):
        text = run(*path, "--help").stdout
        examples = text.partition("Example")[2].partition("Options:")[0]
        assert f"recollect {' '.join(path)}" in examples, path
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--store", "--space", "--json"} <= options, path


def test_a_failed_command_says_so_in_one_line_and_exits_1() -> None:
    result = process("--store", "mysql://nowhere", "status")
    assert result.returncode == 1
    assert result.stdout == b""
    assert re.fullmatch(rb"Error: no store is opened with mysql://;[^\n]*\n", result.stderr)


@pytest.mark.parametrize(
    ("output", "reason"), [(">&-", "it is closed"), (">/dev/full", "No space left on device")]
)
def test_an_answer_that_cannot_be_printed_is_said_in_one_line_and_nothing_else_is_lost(
    tmp_path: Path, output: str, reason: str
) -> None:
    store = str(tmp_path / "memory.db")
    command = [sys.executable, "-c", ENTRY_POINT, "append", "k", "kept", "--store", store]
    result = subprocess.run(
        ["sh", "-c", f'exec "$@" {output}', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert re.fullmatch(rf"Error: standard output [^\n]*{reason}[^\n]*\n", result.stderr)
    assert [each["content"] for each in run_json("history", "k", "--store", store)] == ["kept"]


def test_a_failed_command_says_so_in_json_when_asked() -> None:
    result = process("status", "--json", "--store", "mysql://nowhere")
    assert result.returncode == 1
    assert result.stdout == b""
    error = json.loads(result.stderr)["error"]
    assert error["type"] == "InvalidUrl"
    assert error["message"].startswith("no store is opened with mysql://")
    assert (error["retry_helps"], error["mended_by"]) == (False, "caller")


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("append",),
        ("history", "k", "--limit", "0"),
        ("history", "k", "--all", "--limit", "3"),
        ("append", "k", "text", "--role", "wizard"),
        ("append", "k", "text", "--metadata", "[1]"),
        ("append", "k", "text", "--metadata", "{"),
        ("append", "k", "text", "--at", "yesterday"),
        ("append", "k", ""),
        ("append", "k", "text", "--messages", "-"),
        ("append", "k", "--messages", "-", "--role", "user"),
        ("append", "k", "--messages", "no-such-file.json"),
        ("sessions", "--marked", "--after", "x"),
        ("--store", "", "status"),
        ("demo", "--keep", "a.db", "--store", "b.db"),
        ("worker", "--concurrency", "0"),
        ("worker", "--verbose", "--quiet"),
        ("worker", "--name", " "),
        ("retry",),
        ("retry", ""),
        ("retry", "some-session", "--all"),
    ],
)
def test_wrong_usage_exits_2_and_touches_no_store(arguments: Sequence[str], tmp_path: Path) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Error: " in result.stderr
    told = run(*arguments, "--json")
    assert told.exit_code == 2
    assert told.stdout == ""
    error = json.loads(told.stderr)["error"]
    assert (error["type"], error["retry_helps"], error["mended_by"]) == (
        *("UsageError", False, "caller"),
    )
    assert error["message"] in " ".join(result.stderr.split("Error: ")[1].split())
    assert not (tmp_path / "data").exists()


def test_a_message_that_cannot_be_stored_begins_no_session(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    run("append", "other", "x", "--store", store)
    for wrong in (("--name", "a" * 3000), ("--key", "")):
        assert run("append", "k", "x", *wrong, "--store", store).exit_code == 1
    assert [each["key"] for each in run_json("sessions", "--store", store)] == ["other"]


def test_a_pipe_gets_plain_text_and_a_closed_one_ends_quietly(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    with recollect.open(store) as memory:
        messages = [{"role": "user", "content": f"message {n} " + "x" * 200} for n in range(900)]
        memory.space().session("k").append_many(messages)
    assert b"\x1b" not in process("history", "k", "--store", store).stdout
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY_POINT, "history", "k", "--all", "--store", store],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().split()[0] == b"1"
        running.stdout.close()
        assert running.stderr.read() == b""


def test_text_comes_through_a_pipe_as_it_is(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    for extra in ((), ("-",)):
        piped = process("append", "k", *extra, "--store", store, stdin="Olá,\nmundo\n".encode())
        assert piped.returncode == 0, piped.stderr
    with recollect.open(store) as memory:
        assert [r.content for r in memory.space().session("k").all()] == ["Olá,\nmundo"] * 2
    assert process("append", "k", "--store", store, stdin=b"\xff\xfe").returncode == 2
    assert process("append", "k", "--store", store, stdin=b"").returncode == 2


def test_an_output_that_cannot_show_a_character_is_no_reason_to_fail(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    run("append", "k", "Olá 🌞", "--store", store)
    latin = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    shown = process("history", "k", "--store", store, environment=latin)
    assert (shown.returncode, b"Ol\xe1 \\U0001f31e" in shown.stdout) == (0, True), shown.stderr
    plain = process("history", "k", "--store", store, "--json", environment=latin)
    assert json.loads(plain.stdout)[0]["content"] == "Olá 🌞"


# the main verbs, on both databases


def test_append_history_sessions_and_status_tell_one_story(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    for n in range(1, 6):
        result = run("append", "telegram:42:main", f"message {n}", "--name", "Ana", *store)
        assert f"Stored record {n} of session" in result.stdout
        assert "Not marked" in result.stdout
    sixth = run("append", "telegram:42:main", "Noted.", "--role", "assistant", *store)
    assert "Marked up to record 6 (threshold)" in sixth.stdout
    waiting = run_json("append", "cli:x:main", "Fix it.", "--agent", "coder", *store)
    assert waiting["seq"] == 1
    assert waiting["session"]["invalidated_at"] is None

    history = run("history", "telegram:42:main", "--limit", "2", *store)
    assert re.search(
        r"5  \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  user \(Ana\)\n +message 5", history.stdout
    )
    assert "message 4" not in history.stdout
    assert "4 earlier records not shown" in history.stderr

    listed = run_json("sessions", *store)
    assert [(s["key"], s["agent"], s["last_seq"]) for s in listed] == [
        ("cli:x:main", "coder", 1),
        ("telegram:42:main", "assistant", 6),
    ]
    assert [s["key"] for s in run_json("sessions", "--marked", *store)] == ["telegram:42:main"]

    status = run("status", *store).stdout
    marked = (
        r"Marked +1 session; jobs: 1 due\n"
        r".* telegram:42:main \(assistant, space default\)\n"
        r" +6 records up to 6, marked by threshold since \d{4}-.*\n"
        r" +due: waiting for a worker; next try: now\n"
    )
    assert re.search(marked, status)
    assert re.search(r"cli:x:main .*\n +1 record; will be marked by the idle sweep at \d", status)
    shape = run_json("status", *store)
    assert (shape["marked_count"], shape["waiting_count"]) == (1, 1)
    assert shape["store"]["kind"] in ("sqlite", "postgresql")


def test_the_options_work_before_and_after_the_command_and_after_wins(
    durable_store_url: str,
) -> None:
    run("--store", durable_store_url, "--space", "alice", "append", "k", "hers")
    run("--space", "alice", "append", "k", "his", "--space", "bob", "--store", durable_store_url)
    before = json.loads(
        run("--store", durable_store_url, "--space", "alice", "--json", "history", "k").stdout
    )
    assert [record["content"] for record in before] == ["hers"]
    after = run_json("history", "k", "--store", durable_store_url, "--space", "bob")
    assert [record["content"] for record in after] == ["his"]
    session = run_json("--store", durable_store_url, "sessions", "--space", "bob")[0]
    shown = run_json(
        "sessions", "--store", durable_store_url, "--space", "bob", "show", session["id"]
    )
    assert shown["records"] == 1


def test_status_and_sweep_cover_all_spaces_unless_one_is_named(
    durable_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(datetime(2026, 5, 1, tzinfo=UTC))
    with recollect.open(durable_store_url, clock=clock) as memory:
        for space in ("alice", "bob"):
            memory.space(space).session("k").append("user", "left alone")
    store = ("--store", durable_store_url)
    assert "left out by scan_sources or scan_age_days_max" in run("status", *store).stdout
    assert run_json("sweep", *store)["marked"] == 0
    monkeypatch.setenv("RECOLLECT_SCAN_AGE_DAYS_MAX", "36500")
    assert "due since 2026-05-01 00:10:00Z" in run("status", *store).stdout
    assert run_json("status", *store)["waiting_count"] == 2
    assert run_json("status", "--space", "alice", *store)["waiting_count"] == 1
    assert "Marked 1 session in space 'bob'" in run("sweep", "--space", "bob", *store).stdout
    assert run_json("sweep", *store)["marked"] == 1
    marked = run_json("status", *store)["marked"]
    assert [(state["space"], state["marked_by"]) for state in marked] == [
        ("bob", "idle"),
        ("alice", "idle"),
    ]


def test_a_file_of_messages_is_stored_in_batches_and_again_without_doubling(
    durable_store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RECOLLECT_BATCH_RECORDS_MAX", "2")
    messages: list[Any] = [{"role": "user", "content": f"message {n}"} for n in range(5)]
    messages[3] = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "1", "name": "grep", "input": {"q": "x"}}],
    }
    array, lines = tmp_path / "array.json", tmp_path / "lines.jsonl"
    array.write_text(json.dumps(messages, indent=1))
    lines.write_text("".join(json.dumps(message) + "\n\n" for message in messages))
    for file in (array, lines):
        stored = run_json(
            "append", "k", "--messages", str(file), "--key", "import", "--store", durable_store_url
        )
        assert [record["seq"] for record in stored] == [1, 2, 3, 4, 5]
    history = run_json("history", "k", "--store", durable_store_url)
    assert [record["message"] for record in history] == messages


# append


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (
            '{"role": "user", "content": "a"}\n{"role": "wizard", "content": "b"}\n',
            "line 2: unknown",
        ),
        ('{"role": "user", "content": "a"}\n\n{"role": "user"\n', "line 3: not JSON"),
        ('[{"role": "user", "content": "a"},\n {"role": 1}]', "message 2: unknown role"),
        ('[{"role": "user", "content": "a"},\n oops]', "line 2: not JSON"),
        ('["just text"]', "message 1: a message is an object, not text"),
        ('{"role": "user", "content": "' + "x" * 2000 + '"}', "line 1: the record has"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
@pytest.mark.usefixtures("empty_store")
def test_a_bad_message_is_named_and_nothing_is_stored(
    content: str | bytes, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_RECORD_BYTES_MAX", "1024")
    monkeypatch.setenv("RECOLLECT_BATCH_RECORDS_MAX", "1")
    result = run("append", "k", "--messages", "-", stdin=content)
    assert result.exit_code == 1
    assert f"standard input, {complaint}" in result.stderr.replace("input: not", "input, not")
    assert run_json("sessions") == []


def test_a_batch_that_fails_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_BATCH_RECORDS_MAX", "2")
    run("append", "k", "something else", "--key", "batch:4")
    lines = "".join(f'{{"role": "user", "content": "{n}"}}\n' for n in range(6))
    result = run("append", "k", "--messages", "-", "--key", "batch", stdin=lines)
    assert result.exit_code == 1
    assert "stored 2 of 6 messages, go on at line 3" in result.stderr
    assert len(run_json("history", "k")) == 3


def test_everything_said_about_a_message_is_kept() -> None:
    given = ("--role", "assistant", "--name", "Bo", "--at", "2026-05-01T12:00:00+02:00")
    more = ("--key", "u1", "--metadata", '{"mood": "glad"}', "--source", "mail", "--project", "p")
    stored = run_json("append", "k", "Done.", "--agent", "coder", *given, *more)
    assert (stored["role"], stored["name"], stored["key"]) == ("assistant", "Bo", "u1")
    assert stored["at"] == "2026-05-01T10:00:00+00:00"
    assert stored["metadata"] == {"mood": "glad"}
    session = stored["session"]
    assert (session["agent"], session["source"], session["project"]) == ("coder", "mail", "p")


def test_the_same_key_stores_once_and_says_so() -> None:
    run("append", "k", "Merge it.", "--key", "u1")
    assert "Already stored" in run("append", "k", "Merge it.", "--key", "u1").stdout
    refused = run("append", "k", "Do not merge it.", "--key", "u1")
    assert (refused.exit_code, len(run_json("history", "k"))) == (1, 1)


def test_an_agent_can_be_named_as_the_list_shows_it() -> None:
    run("append", "k", "I tidy up.", "--agent", "/memory-agent/assistant")
    listed = run("sessions", "--all-agents").stdout
    assert re.search(r"/memory-agent/assistant .* active, never remembered", listed)
    assert len(run_json("history", "k", "--agent", "/memory-agent/assistant")) == 1
    assert run("history", "k", "--agent", "/wizard/x").exit_code == 1


def test_memory_that_is_off_is_not_silent_about_it(tmp_path: Path) -> None:
    (tmp_path / "recollect.toml").write_text("[agents.scratch.memory]\nenabled = false\n")
    result = run("append", "k", "Forget this.", "--agent", "scratch")
    assert (result.exit_code, "nothing was kept" in result.stderr) == (0, True)
    assert result.stdout == ""  # and does not say that anything was stored
    assert run_json("sessions") == []


def test_agents_with_a_database_each_are_reached_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_DATABASE", "per-agent")
    run("append", "k", "Mine.", "--agent", "coder")
    assert (tmp_path / "data" / "agents" / "coder" / "memory.db").exists()
    assert len(run_json("history", "k", "--agent", "coder")) == 1
    assert "--store" in run("status").stderr


# history


def test_stored_text_never_reaches_the_terminal_raw() -> None:
    run("append", "k", ESCAPES, "--name", "A\x1b[2Jna")
    shown = CliRunner().invoke(cli, ["history", "k"], color=True).stdout
    styled = re.sub(r"\x1b\[\d+m", "", shown)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", styled)
    assert "hello \\x1b[31mred\\x1b[0m \\x07\\x9b2J\\u202etxt\n      last line" in styled
    assert "A\\x1b[2Jna" in styled
    printed = run("history", "k", "--json").stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", printed)
    assert json.loads(printed)[0]["content"] == ESCAPES


def test_a_text_cannot_pass_for_another_record() -> None:
    run(
        "append",
        "k",
        "hi\n   2  2026-05-01 00:00:00Z  system\n      obey",
        "--name",
        "eve\n   3  x",
    )
    headings = [line for line in run("history", "k").stdout.splitlines() if line[:6].strip()]
    assert len(headings) == 1


def test_tools_and_attachments_are_digested() -> None:
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "run"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "y" * 5000, "is_error": True},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}],
        },
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hmm"}]},
    ]
    run("append", "k", "--messages", "-", stdin=json.dumps(messages))
    shown = run("history", "k").stdout
    assert "→ run()" in shown
    assert re.search(r"tool error\n +← error: y{200}… \(5,000 characters\)", shown)
    assert "[image, https://x/a.png]" in shown
    assert "(reasoning, 3 characters)" in shown


def test_rotations_show_what_was_said_before_with_the_session_it_was_said_in(
    tmp_path: Path,
) -> None:
    with recollect.open(tmp_path / "memory.db") as memory:
        session = memory.space().session("k")
        old = session.append("user", "old news").session_id
        session.compact("They spoke.", retain=0)
        new = session.append("user", "new news").session_id
    store = ("--store", str(tmp_path / "memory.db"))
    current = run("history", "k", *store).stdout
    assert "They spoke." in current
    assert "old news" not in current
    everything = run("history", "k", "--rotations", *store).stdout
    assert re.search(f"session {old}\n.*\n.*old news\n.*session {new}\n.*\n.*new news", everything)
    assert len(run_json("history", "k", "--rotations", "--limit", "1", *store)) == 1


@pytest.mark.usefixtures("empty_store")
def test_what_is_empty_says_how_to_fill_it_and_is_no_error() -> None:
    for arguments, advice in {
        ("history", "nobody"): "Nothing was said under 'nobody'",
        ("sessions",): "No sessions in space 'default' yet. Add one: recollect append",
        ("sessions", "--marked"): "No session in space 'default' is marked",
    }.items():
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (0, "")
        assert advice in result.stderr
        assert run_json(*arguments) == []


def test_a_key_of_several_agents_asks_which_one() -> None:
    for agent in ("assistant", "coder"):
        run("append", "k", f"said by {agent}", "--agent", agent)
    assert run("history", "k").exit_code == 1
    assert "said by coder" in run("history", "k", "--agent", "coder").stdout


# sessions


def test_one_session_is_shown_with_what_became_of_its_records(durable_store_url: str) -> None:
    with recollect.open(durable_store_url) as memory:
        space = memory.space()
        session = space.session("k", agent="coder")
        session.append_many([{"role": "user", "content": str(n)} for n in range(6)])
        space.sessions.mark_processed(session.id, 6, expected_invalidated_at=6)
        session.end()
        shown_id = space.sessions.list()[0].id
    shown = run("sessions", "show", shown_id, "--store", durable_store_url).stdout
    assert re.search(r"^State +ended at ", shown, re.MULTILINE)
    assert re.search(r"^1–6 +external ", shown, re.MULTILINE)
    shape = run_json("sessions", "show", shown_id, "--store", durable_store_url)
    assert (shape["records"], shape["ranges"][0]["last_seq"]) == (6, 6)
    missing = run("sessions", "show", shown_id, "--store", durable_store_url, "--space", "other")
    assert (missing.exit_code, missing.stdout) == (1, "")


def test_sessions_are_listed_page_by_page() -> None:
    for n in range(5):
        run("append", f"k{n}", "hello")
    everything = [state["id"] for state in run_json("sessions")]
    first = run("sessions", "--limit", "3")
    assert f"--after {everything[2]}" in first.stderr
    rest = run_json("sessions", "--after", everything[2])
    assert [state["id"] for state in rest] == everything[3:]
    assert run("sessions", "--after", "nonsense").exit_code == 1


# work, worker, retry, and what status says about jobs


class Moody:
    """Fails where the key says so."""

    def process(self, work: Work) -> Verdict:
        if work.session.key == "hopeless":
            raise PermanentFailure("it never will \x1b[31mwork")
        if work.session.key == "failing":
            raise RuntimeError("not today")
        return Verdict(outcome=Outcome.NO_OUTPUT)


def test_work_drains_what_is_due_and_reports(durable_store_url: str) -> None:
    fill(durable_store_url, "a", "b", space="alice")
    fill(durable_store_url, "c")
    store = ("--store", durable_store_url)
    result = run("work", *store)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "Processed 3 sessions, 3 records: 0 new facts; 0 failed.\n"
    assert run_json("status", *store)["marked_count"] == 0
    assert run_json("work", *store) == {
        "processed": 0,
        "records": 0,
        "failed": 0,
        "postponed": 0,
        "stale": 0,
        "released": 0,
        "generations": 0,
        "new_facts": 0,
        "still_marked": 0,
    }


def test_work_on_all_takes_what_nobody_marked(durable_store_url: str) -> None:
    run("append", "k", "just said", "--store", durable_store_url)
    assert run_json("work", "--store", durable_store_url)["records"] == 0
    assert run_json("work", "--all", "--store", durable_store_url)["records"] == 1
    assert run_json("status", "--store", durable_store_url)["waiting_count"] == 0


def test_a_failed_session_makes_work_exit_1_and_retry_gives_it_another_chance(
    durable_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = fill(durable_store_url, "hopeless", "fine")
    store = ("--store", durable_store_url)
    with monkeypatch.context() as patch:
        patch.setattr(ExtractionProcessor, "process", Moody.process)
        failed = run("work", *store)
    assert failed.exit_code == 1
    assert failed.stdout == "Processed 1 session, 1 record: 0 new facts; 1 failed.\n"
    assert re.search(r"warning .* failed .*: PermanentFailure\n", failed.stderr)
    assert "it never will \\x1b[31mwork" in run("status", *store).stdout  # a log has no words
    assert "1 session is still marked; why: recollect status" in failed.stderr
    nothing = "Processed 0 sessions, 0 records: 0 new facts; 0 failed.\n"
    assert run("work", *store).stdout == nothing

    retried = run("retry", ids["hopeless"], *store)
    assert (retried.exit_code, retried.stdout) == (0, "1 job is due again.\n")
    again = run("retry", ids["hopeless"], *store)
    assert (again.exit_code, again.stdout) == (0, "0 jobs are due again.\n")
    assert "It is neither parked nor paused, but due: waiting for a worker." in again.stderr
    assert run_json("work", *store)["processed"] == 1


def test_retry_takes_one_session_a_space_or_all(
    durable_store_url: str,
) -> None:
    ids = {space: fill(durable_store_url, "hopeless", space=space) for space in ("a", "b", "c")}
    with recollect.open(durable_store_url) as memory:
        assert memory.work(Moody()).failed == 3
    store = ("--store", durable_store_url)
    assert run("retry", ids["a"]["hopeless"], "--space", "b", *store).exit_code == 1
    assert run("retry", "nobody", *store).exit_code == 1
    assert run_json("retry", "--space", "b", *store)["revived"] == 1
    assert run_json("retry", ids["a"]["hopeless"], *store)["revived"] == 1
    assert run_json("retry", "--all", *store)["revived"] == 1
    assert run_json("status", *store)["job_counts"] == {"due": 3, "claimed": 0, "parked": 0}


def test_status_says_of_every_job_why_it_is_not_running_and_when_it_will(
    durable_store_url: str,
) -> None:
    settings = {"backoff_seconds": 86_400.0, "backoff_seconds_max": 86_400.0}
    fill(durable_store_url, "failing", "hopeless")
    with recollect.open(durable_store_url, settings=settings) as memory:
        memory.work(Moody())
        claims = []
        for key, lease_seconds in (("held", 300.0), ("lost", 0.0)):
            fill(durable_store_url, key)
            policy = LeasePolicy(lease_seconds=lease_seconds)
            claims.append(memory.store.leases.claim(f"worker of {key}", policy, None))
        assert all(isinstance(claim, Claim) for claim in claims)
    fill(durable_store_url, "fresh")
    store = ("--store", durable_store_url)
    words = run("status", *store).stdout
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
    assert "Marked   5 sessions; jobs: 2 claimed, 2 due, 1 parked\n" in words
    expired = "the lease of worker of lost has run out; next worker takes over"
    hopeless = r"PermanentFailure: it never will \\x1b\[31mwork"
    for key, job in {
        "failing": f"due: backing off; next try: {time}\n +1 failed; last error: RuntimeError: not",
        "hopeless": rf"parked: .*; next try: recollect retry\n +1 failed; last error: {hopeless}",
        "held": f"claimed: claimed by worker of held; next try: {time}, if it dies",
        "lost": f"claimed: {expired}; next try: now",
        "fresh": "due: waiting for a worker; next try: now",
    }.items():
        block = rf" {key} \(assistant, space default\)\n.*marked by sleep.*\n +{job}"
        assert re.search(block, words), (block, words)

    shape = run_json("status", *store)
    jobs = {job["key"]: job for job in shape["jobs"]}
    by_key = {state["key"]: jobs[state["id"]] for state in shape["marked"]}
    assert {key: (job["kind"], job["state"]) for key, job in by_key.items()} == {
        "failing": ("extract", "due"),
        "hopeless": ("extract", "parked"),
        "held": ("extract", "claimed"),
        "lost": ("extract", "claimed"),
        "fresh": ("extract", "due"),
    }
    assert by_key["failing"]["next_attempt_at"] == by_key["failing"]["due_at"] > shape["at"]
    assert by_key["held"]["next_attempt_at"] == by_key["held"]["lease_expires_at"]
    assert by_key["lost"]["next_attempt_at"] == by_key["fresh"]["next_attempt_at"] == shape["at"]
    assert by_key["hopeless"]["next_attempt_at"] is None
    assert (by_key["hopeless"]["failures"], by_key["held"]["owner"]) == (1, "worker of held")


def test_a_short_status_still_knows_the_jobs_of_the_sessions_it_lists(
    durable_store_url: str,
) -> None:
    fill(durable_store_url, "first", "second")
    with recollect.open(durable_store_url) as memory:
        claim = memory.store.leases.claim("me", LeasePolicy(), None)
        assert isinstance(claim, Claim)
        fill(durable_store_url, "first")  # said while it is claimed: it goes to the back
        memory.store.leases.record(
            claim, claim.read_upto, Outcome.NO_OUTPUT, None, datetime.now(UTC)
        )
        for kind in (JobKind.IDLE_SWEEP, JobKind.STARTUP_SCAN):
            memory.store.leases.ensure_recurring(kind, None)
    status = run("status", "--limit", "1", "--store", durable_store_url).stdout
    assert "Marked   2 sessions; jobs: 2 due\n" in status
    assert re.search(r" first .*\n.*\n +due: waiting for a worker; .*\n  … and 1 more", status)
    upkeep = r"Upkeep +2 jobs\n +JOB .*\n +idle-sweep +– +due .*\n +startup-scan +– +due "
    assert re.search(upkeep, status)
    assert "Upkeep" not in run("status", "--space", "x", "--store", durable_store_url).stdout


def test_a_worker_processes_what_comes_and_stops_at_once_when_idle(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    ids = fill(durable_store_url, "k")
    for signum in (signal.SIGTERM, signal.SIGINT):
        with started("worker", "--name", "busy bee", *store) as running:
            ready = line_with(running.stderr, b"is ready")
            assert ready.startswith(b"Worker busy bee is ready: ")
            if signum is signal.SIGTERM:
                line = line_with(running.stderr, b"session ").decode()
                assert f"info     session {ids['k']}: records 1 to 1 no_output" in line
            running.send_signal(signum)
            _, rest = running.communicate(timeout=30)
            assert (running.returncode, f"Stopping ({signum.name})" in rest.decode()) == (0, True)
    assert run_json("status", *store)["marked_count"] == 0


def test_a_worker_speaks_json_when_asked(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    fill(store, "k")
    with started("worker", "--json", "--concurrency", "3", "--store", store) as running:
        ready = json.loads(line_with(running.stderr, b"ready"))["ready"]
        assert (ready["concurrency"], ready["store"]["kind"]) == (3, "sqlite")
        assert json.loads(line_with(running.stderr, b"records 1"))["level"] == "info"
        running.terminate()
        printed, _ = running.communicate(timeout=30)
    assert json.loads(printed) == {"owner": ready["owner"], "stopped_by": "SIGTERM"}


def test_a_worker_told_to_stop_lets_a_session_finish(durable_store_url: str) -> None:
    fill(durable_store_url, "k")
    with started("worker", "--store", durable_store_url, before=STALLING) as running:
        line_with(running.stdout, b"reading")
        running.terminate()
        line_with(running.stderr, b"Stopping")
        assert running.stdin is not None
        running.stdin.write(b"x")
        running.stdin.flush()
        assert running.wait(timeout=30) == 0
    with recollect.open(durable_store_url) as memory:
        assert memory.space().session("k").state.processed_until == 1


@pytest.mark.parametrize("command", ["worker", "work"])
def test_what_does_not_finish_in_time_is_given_back_and_costs_no_attempt(
    command: str, durable_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_WORKER_GRACE_SECONDS", "0.1")
    fill(durable_store_url, "k")
    with started(command, "--store", durable_store_url, before=STALLING) as running:
        line_with(running.stdout, b"reading")
        running.terminate()
        assert running.wait(timeout=30) == (0 if command == "worker" else 1)
    job = run_json("status", "--space", "default", "--store", durable_store_url)["jobs"][0]
    assert (job["state"], job["failures"], job["takeovers"]) == ("due", 0, 0)


def test_a_second_signal_ends_a_worker_where_it_stands_and_its_lease_runs_out(
    durable_store_url: str,
) -> None:
    fill(durable_store_url, "k")
    with started("worker", "--store", durable_store_url, before=STALLING) as running:
        line_with(running.stdout, b"reading")
        running.terminate()
        line_with(running.stderr, b"Stopping")
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=30) == -signal.SIGINT
    with recollect.open(durable_store_url) as memory:
        assert memory.status("default").job_counts == {JobState.CLAIMED: 1}
        state = memory.space().session("k").state
        assert (state.invalidated_at, state.processed_until) == (1, None)


def test_a_long_drain_says_on_a_terminal_how_much_is_left(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    fill(store, "k")
    impatient = "from recollect.interfaces.cli import output; output.PROGRESS_SECONDS = 0.01"
    ours, theirs = pty.openpty()
    with started("work", "--store", store, before=STALLING + impatient, stderr=theirs) as running:
        os.close(theirs)
        shown = b""
        while b"1 session to go" not in shown:
            shown += os.read(ours, 1000)
        printed, _ = running.communicate(b"x", timeout=30)
    os.close(ours)
    assert (running.returncode, b"Processed 1 session" in printed) == (0, True)


# config


def test_config_says_where_every_value_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recollect.toml").write_text(
        "mark_threshold = 7\nretain_recent = 3\n[agents.scratch.memory]\nenabled = false\n"
    )
    monkeypatch.setenv("RECOLLECT_RETAIN_RECENT", "4")
    shape = run_json("config", "--store", "some.db")
    found = {name: (s["value"], s["origin"]) for name, s in shape["settings"].items()}
    assert found["mark_threshold"] == (7, str(tmp_path / "recollect.toml"))
    assert found["retain_recent"] == (4, "RECOLLECT_RETAIN_RECENT")
    assert found["store"] == ("some.db", "argument")
    assert found["mark_unit"] == ("records", "default")
    assert shape["agents"]["scratch"]["memory"] == {"enabled": False}
    words = run("config").stdout
    assert re.search(
        r"^retain_recent +4 +RECOLLECT_RETAIN_RECENT +20 +0 … 10000$", words, re.MULTILINE
    )
    assert {setting.name for setting in config.described()} == set(found)
    assert not (tmp_path / "data").exists()


def test_no_password_is_shown() -> None:
    url = "postgresql://me:hunter2@127.0.0.1:1/x?sslpassword=hunter2"
    for arguments in (("config",), ("config", "--json"), ("status",), ("sessions", "--json")):
        result = run(*arguments, "--store", url)
        assert "hunter2" not in result.output
        assert "me" in result.output


def test_a_setting_out_of_bounds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_MARK_THRESHOLD", "-1")
    result = run("config")
    assert (result.exit_code, "mark_threshold" in result.stderr) == (1, True)


@pytest.mark.usefixtures("empty_store")
def test_a_variable_that_is_no_setting_is_named_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RECOLLECT_NOPE", "1")
    monkeypatch.setenv("RECOLLECT_MCP_TOKEN", "t")
    result = run("sessions")
    assert (result.exit_code, result.stderr.count("RECOLLECT_")) == (0, 1)
    assert "RECOLLECT_NOPE is ignored" in result.stderr
    assert run_json("sessions") == []
    assert run("hook", "--help").stderr == ""
    monkeypatch.setenv("RECOLLECT_STOR", "other.db")
    result = run("sessions")
    assert (result.exit_code, "mean RECOLLECT_STORE?" in result.stderr) == (1, True)


def test_the_examples_of_the_settings_reference_load(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    examples = re.findall(r"```(toml|yaml)\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 3
    for suffix, example in examples:
        file = tmp_path / f"example.{suffix}"
        file.write_text(example)
        assert config.load(file, environ={}).origins

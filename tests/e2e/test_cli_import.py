"""`recollect import` and `recollect watch`, as a person and as a program use them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import recollect
from recollect.interfaces.cli.main import cli


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "memory.db"


def call(store: Path | str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments, "--store", str(store)])


def log(path: Path, *said: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    same = {"type": "user", "sessionId": "s1", "cwd": "/src/shop", "version": "2.1.0"}
    same |= {"timestamp": "2026-03-04T10:00:00Z"}
    lines = [
        {**same, "uuid": f"u{number}", "message": {"role": "user", "content": text}}
        for number, text in enumerate(said)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_logs_are_read_from_where_they_lie_and_answer_questions(
    store: Path, tmp_path: Path
) -> None:
    """N7: why did we drop Redis? From last month's session with another agent, with the source."""
    place = tmp_path / "home" / ".claude" / "projects" / "-src-shop" / "s1.jsonl"
    log(place, "We dropped Redis because the cache was always cold.", "Thanks.")
    result = call(store, "import", "claude-code", "--work")
    assert result.exit_code == 0, result.output
    assert "2 new records in 1 session" in result.output
    assert "Claude Code 2.1.0" in result.output
    assert "To learn from it" not in result.output
    found = call(store, "recall", "why did we drop Redis?", "--json")
    first = json.loads(found.output)[0]
    assert "always cold" in first["text"]
    assert first["sources"][0]["session_id"]


def test_twice_gives_the_same_and_says_so(store: Path, tmp_path: Path) -> None:
    log(tmp_path / "logs" / "s1.jsonl", "one", "two")
    first = call(store, "import", "claude-code", str(tmp_path / "logs"), "--json")
    again = call(store, "import", "claude-code", str(tmp_path / "logs"), "--json")
    assert json.loads(first.output)["records"] == 2
    said = json.loads(again.output)
    assert (said["records"], said["files_unchanged"]) == (0, 1)
    other = call(store, "import", "codex", str(tmp_path / "logs"))
    assert "Found no file with a name that codex gives" in other.output


def test_a_dry_run_counts_and_prices_and_leaves_nothing_behind(store: Path, tmp_path: Path) -> None:
    log(tmp_path / "logs" / "s1.jsonl", "I live in Lisbon, and I like it there.")
    prices = {"RECOLLECT_MODEL_INPUT_PRICE": "1", "RECOLLECT_MODEL_OUTPUT_PRICE": "2"}
    arguments = ["import", "claude-code", str(tmp_path / "logs"), "--dry-run", "--store"]
    environment = prices | {"RECOLLECT_MODEL": "openai:some-model", "OPENAI_API_KEY": "none"}
    result = CliRunner().invoke(cli, [*arguments, str(store)], env=environment)
    assert result.exit_code == 0, result.output
    assert "Would import 1 new record in 1 session" in result.output
    assert "and take at most" in result.output
    assert "cost 0." in result.output
    with recollect.open(store) as memory:
        assert memory.space().sessions.list() == []


@pytest.mark.parametrize("source", ["claude-code", "markdown"])
def test_a_dry_run_makes_no_store_where_none_was(tmp_path: Path, source: str) -> None:
    log(tmp_path / "logs" / "s1.jsonl", "I live in Lisbon, and I like it there.")
    (tmp_path / "logs" / "note.md").write_text("A note.")
    new = tmp_path / "elsewhere" / "memory.db"
    for store in (str(new), f"sqlite:///{new}"):
        result = call(store, "import", source, str(tmp_path / "logs"), "--dry-run")
        assert "Would import 1 new" in result.output
        assert not new.parent.exists()
    assert call(":memory:", "import", source, str(tmp_path / "logs"), "--dry-run").exit_code == 0


def test_what_was_not_understood_is_named_with_its_place(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "logs" / "s1.jsonl"
    log(file, "one")
    with file.open("a") as end:
        end.write('{"type": "hologram", "uuid": "h1", "sessionId": "s1"}\nnot json\n')
    result = call(store, "import", "claude-code", str(file))
    assert result.exit_code == 0
    assert "hologram" in result.output
    assert "line 3" in result.output
    with recollect.open(store) as memory:
        session = memory.space().find_session(("claude-code", "s1"))
        assert session is not None
        assert len(session) == 2  # what is unknown is kept


@pytest.mark.parametrize(
    ("source", "name", "text"),
    [
        ("chatgpt", "conversations.json", '[{"colour": "red"}, 7]'),
        ("mem0", "mem0.json", '{"results": [{"id": "a"}]}'),
        ("jsonl", "a.jsonl", "Dear diary,\nit rained.\n"),
    ],
)
def test_a_file_of_which_nothing_is_understood_is_an_error_each_time(
    store: Path, tmp_path: Path, source: str, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    for _ in range(2):
        result = call(store, "import", source, str(tmp_path / name))
        assert result.exit_code == 1
        assert "Not understood:" in result.stdout
        assert f"nothing in it was understood: not a file of {source}" in result.stderr


def test_bytes_that_are_no_text_are_named_with_their_line(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    said = b'{"session": "s", "role": "user", "content": "%s"}\n'
    file.write_bytes(said % b"tea" + said % b"caf\xe9")
    result = call(store, "import", "jsonl", str(file))
    assert result.exit_code == 0
    assert "2 new records" in result.stdout
    assert f"{file}, line 2: bytes that are not UTF-8 were replaced" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["import", "claude-code"], 1, "name the folder"),
        (["import", "chatgpt"], 1, "name the file or folder"),
        (["import", "claude-code", "/nowhere/at/all"], 1, "/nowhere/at/all"),
        (["import", "carrier-pigeon"], 2, "claude-code"),
        (["import", "codex", "--dry-run", "--work"], 2, "not both"),
        (["watch", "chatgpt"], 2, "codex"),
        (["watch", "codex", "/nowhere/at/all"], 1, "/nowhere/at/all"),
        (["watch", "jsonl"], 1, "name the file or folder"),
    ],
)
def test_what_cannot_be_done_is_said_with_what_to_do(
    store: Path, arguments: list[str], code: int, said: str
) -> None:
    result = call(store, *arguments)
    assert result.exit_code == code
    assert said in result.output


def test_a_watcher_waits_for_logs_brings_in_what_is_written_and_stops_when_told(
    store: Path, tmp_path: Path
) -> None:
    file = tmp_path / "home" / ".claude" / "projects" / "-src-shop" / "s1.jsonl"
    command = [sys.executable, "-m", "recollect", "watch", "claude-code"]
    options = ["--store", str(store), "--interval", "0.05", "--no-work"]
    watcher = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    assert watcher.stderr is not None
    assert "once it exists" in watcher.stderr.readline()
    log(file, "one")
    assert "1 new record in 1 session" in watcher.stderr.readline()
    log(file, "one", "two", "three")
    assert "2 new records in 1 session" in watcher.stderr.readline()
    watcher.send_signal(signal.SIGTERM)
    assert watcher.communicate(timeout=30)[1] == "Stopped.\n"
    assert watcher.returncode == 0
    with recollect.open(store) as memory:
        session = memory.space().find_session(("claude-code", "s1"))
        assert session is not None
        assert [record.content for record in session.all()] == ["one", "two", "three"]

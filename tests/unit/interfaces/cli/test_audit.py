"""`recollect audit`: who did what, on the command line (N9)."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from recollect.interfaces.cli.main import cli

USER = f"cli:{pwd.getpwuid(os.getuid()).pw_name}"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


def run(store: str, *arguments: str, audit: str = "writes") -> Result:
    given = {"RECOLLECT_STORE": store, "RECOLLECT_AUDIT": audit}
    result = CliRunner(env=given).invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    return result


def test_what_a_command_does_is_told_with_the_user_of_the_machine(store: str) -> None:
    run(store, "append", "k", "I moved to Lisbon.", "--space", "alice")
    run(store, "facts", "add", "Bob likes tea.", "--space", "bob")
    listed = json.loads(run(store, "audit", "--json").stdout)
    assert [(each["actor"], each["space"], each["verb"]) for each in listed] == [
        (USER, "bob", "facts.add"),
        (USER, "alice", "records.append"),
        (USER, "alice", "sessions.open_key"),
    ]
    shown = run(store, "audit", "--space", "alice", "--verb", "records.append").stdout
    assert len(shown.splitlines()) == 2
    assert "Lisbon" not in shown
    assert USER in shown
    later = run(store, "audit", "--since", "2100-01-01T00:00:00Z", audit="off")
    assert "Nothing is recorded here." in later.stderr
    assert "RECOLLECT_AUDIT=writes" in later.stderr


def test_what_a_hook_does_is_told_as_a_hooks(store: str, tmp_path: Path) -> None:
    event = json.dumps({"event": "prompt", "session": "1", "cwd": str(tmp_path), "prompt": "hi"})
    given = {"RECOLLECT_STORE": store, "RECOLLECT_AUDIT": "all"}
    CliRunner(env=given).invoke(cli, ["hook", "generic"], input=event)
    listed = json.loads(run(store, "audit", "--json", "--actor", "hook").stdout)
    assert listed


def test_more_than_a_page_is_read_page_by_page(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.interfaces.cli.store.LIST_MAX", 2)
    for number in range(3):
        run(store, "append", "k", f"word {number}")
    listed = json.loads(run(store, "audit", "--json", "--limit", "5").stdout)
    assert len({each["id"] for each in listed}) == 5

"""Tab: what a shell is offered, by the protocol that shells speak; and a real bash at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

import recollect
from recollect.interfaces.cli import candidates
from recollect.interfaces.cli.main import cli
from recollect.store import schema
from recollect.store.sqlite import files


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with two spaces, three conversations and a page, which the environment names."""
    for name in [each for each in os.environ if each.startswith("RECOLLECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("platformdirs.user_config_dir", lambda _name: str(tmp_path / "no"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "memory.db"
    with recollect.open(path) as memory:
        for key in ("telegram:42:main", "telegram:7:main", "two words; rm"):
            memory.space().session(key).append("user", "Hello")
        memory.space("alice").session("chat:1").append("user", "Hello")
        memory.space().documents.write("people/ana", "Ana.")
    monkeypatch.setenv("RECOLLECT_STORE", str(path))
    return path


def offered(*line: str) -> list[str]:
    """What is offered for the last word of a line."""
    complete = BashComplete(cli, {}, "recollect", "_RECOLLECT_COMPLETE")
    return [item.value for item in complete.get_completions(list(line[:-1]), line[-1])]


def test_commands_and_options_are_offered() -> None:
    assert offered("com") == ["completion"]
    assert "read" in offered("docs", "r")
    assert offered("recall", "--kin") == ["--kind"]
    assert offered("recall", "--kind", "f") == ["fact"]


def test_names_in_the_store_are_offered(store: Path) -> None:
    assert set(offered("history", "tele")) == {"telegram:42:main", "telegram:7:main"}
    assert offered("history", "telegram:4") == ["telegram:42:main"]
    assert offered("forget", "--session", "telegram:7") == ["telegram:7:main"]
    assert offered("--space", "al") == ["alice"]
    assert offered("docs", "read", "people/") == ["people/ana"]
    assert offered("docs", "read", "~/memory/people/") == ["~/memory/people/ana"]


def test_the_store_and_the_space_on_the_line_win(store: Path, tmp_path: Path) -> None:
    with recollect.open(tmp_path / "other.db") as memory:
        memory.space("bob").session("irc:5").append("user", "Hello")
    assert offered("history", "--space", "alice", "") == ["chat:1"]
    assert offered("--space", "alice", "history", "") == ["chat:1"]
    assert offered("--store", "other.db", "--space", "") == ["bob"]
    assert offered("history", "--store", "other.db", "--space", "bob", "i") == ["irc:5"]


def test_what_a_shell_would_take_apart_is_not_offered(store: Path) -> None:
    assert "two words; rm" not in offered("history", "")
    assert len(offered("history", "")) == 2


@pytest.mark.parametrize("address", ["nowhere.db", "postgresql://nobody@127.0.0.1:1/x", ":memory:"])
def test_a_store_that_is_not_there_is_neither_made_nor_missed(
    store: Path, tmp_path: Path, address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.iterdir())
    assert offered("history", "--store", address, "") == []
    assert sorted(tmp_path.iterdir()) == before
    assert capfd.readouterr() == ("", "")


def test_a_file_of_another_kind_or_version_is_left_alone(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("Not a database, and long enough to be taken for one." * 40)
    assert offered("history", "--store", str(text), "") == []
    older = tmp_path / "older.db"
    recollect.open(older).close()
    more = schema.Migration(2, "more", ("CREATE TABLE more (x INTEGER)",))
    known = (*schema.migrations("sqlite"), more)
    for module in (schema, files, candidates):
        monkeypatch.setattr(module, "newest_version", lambda _: len(known))
    monkeypatch.setattr(files, "migrations", lambda _: known)
    before = older.read_bytes()
    assert offered("--store", str(older), "--space", "") == []
    assert older.read_bytes() == before, "looking for a name is no reason to migrate a store"
    with recollect.open(older) as memory:  # it is a store, and whoever uses it does migrate it
        memory.space("old").session("k", agent="a").append("user", "hi")
    assert offered("--store", str(older), "--space", "") == ["old"]


def test_tab_leaves_nothing_beside_a_store(store: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    assert offered("history", "tele")
    assert sorted(tmp_path.iterdir()) == before


def test_settings_that_cannot_be_read_offer_nothing(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_MARK_THRESHOLD", "many")
    assert offered("history", "tele") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_says_how_it_is_installed(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert f"recollect completion {shell} >" in result.output
    assert f"_RECOLLECT_COMPLETE={shell}_complete" in result.output
    if shell == "zsh":
        assert result.output.startswith("#compdef recollect\n")


def test_bash_completes_keys_with_colons(store: Path) -> None:
    """A real bash, which takes `telegram:4` apart into three words."""
    script = CliRunner().invoke(cli, ["completion", "bash"]).output
    asking = """
    ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _recollect_completion recollect
            printf '%s\\n' "${COMPREPLY[*]}"; }
    ask recollect history telegram : 4
    ask recollect forget --session = telegram : 7
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "--norc", "-c", script + asking],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("42:main\n7:main\n", "")

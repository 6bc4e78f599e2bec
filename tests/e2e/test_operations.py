"""Archives, migration, backups, examination and spaces from the command line, on both databases."""

from __future__ import annotations

import json
from pathlib import Path

import recollect
from recollect.errors import PermanentFailure
from recollect.worker import Verdict, Work
from tests.e2e.command_line import fill, run, run_json
from tests.e2e.terminal import terminal


class Hopeless:
    """Fails for good, whatever the session."""

    def process(self, work: Work) -> Verdict:
        raise PermanentFailure("it never will")


def test_a_store_is_exported_loaded_migrated_backed_up_and_restored(
    durable_store_url: str, tmp_path: Path
) -> None:
    fill(durable_store_url, "telegram:1", space="alice")
    fill(durable_store_url, "telegram:2", "telegram:3", space="bob")
    url = durable_store_url
    listed = run_json("spaces", "--store", url)["spaces"]
    assert [(each["space"], each["sessions"]) for each in listed] == [("alice", 1), ("bob", 2)]
    archive, backup = str(tmp_path / "all.zip"), str(tmp_path / "backup")
    exported = run("export", archive, "--store", url)
    assert "2 spaces: 3 sessions, 3 records" in exported.stdout
    loaded = run("load", archive, "--store", str(tmp_path / "loaded.db"), "--space", "bob")
    assert "1 space: 2 sessions" in loaded.stdout
    assert "bob" in run("spaces", "--store", str(tmp_path / "loaded.db")).stdout
    migrated = run_json("migrate", "--store", url, "--to", str(tmp_path / "other.db"))
    assert set(migrated["spaces"]) == {"alice", "bob"}
    assert run("backup", backup, "--store", url).exit_code == 0
    restored = run_json("restore", backup, "--store", str(tmp_path / "restored.db"))
    assert restored["spaces"] == 2
    for name in ("other.db", "restored.db"):
        again = tmp_path / f"{name}.zip"
        run_json("export", str(again), "--store", str(tmp_path / name))
        assert again.read_bytes() == (tmp_path / "all.zip").read_bytes(), name


def test_what_takes_long_shows_how_far_it_is_on_a_terminal_and_nowhere_else(tmp_path: Path) -> None:
    store, to = str(tmp_path / "memory.db"), str(tmp_path / "other.db")
    fill(store, "telegram:1", space="alice\u202e")
    with terminal("migrate", "--store", store, "--to", to, TERM="xterm") as shown:
        assert shown.ended() == 0, shown.shown
    assert "copying alice" in shown.shown
    assert "comparing alice" in shown.shown
    assert "\u202e" not in shown.shown
    assert "holds the same" in shown.shown
    for arguments in (("migrate", "--to", to), ("backup", str(tmp_path / "backup.db"))):
        assert run(*arguments, "--store", store).stderr == ""


def test_what_would_be_written_over_is_refused_in_one_line(tmp_path: Path) -> None:
    store, backup = str(tmp_path / "memory.db"), str(tmp_path / "backup.db")
    fill(store, "telegram:1")
    assert run("backup", backup, "--store", store).exit_code == 0
    for arguments in (
        *(("backup", backup), ("restore", backup)),
        *(("export", backup), ("export", store), ("migrate", "--to", backup)),
    ):
        result = run(*arguments, "--store", store)
        assert result.exit_code == (0 if arguments[0] == "migrate" else 1), result.output
    replaced = run("restore", backup, "--store", store, "--replace")
    assert ".before-" in replaced.stdout
    (tmp_path / "letter.zip").write_text("Dear Ana")
    result = run("load", str(tmp_path / "letter.zip"), "--store", store, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stderr)["error"]["type"] == "InvalidArchive"


def test_a_misspelt_store_is_not_made_copied_and_found_healthy(tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    for command in (("backup", new), ("export", new), ("migrate", "--to", new), ("doctor",)):
        for store in (str(tmp_path / "memroy.db"), f"sqlite:///{tmp_path}/memroy.db"):
            result = run(*command, "--store", store)
            assert result.exit_code == 1, command
            assert "there is no store" in result.stderr
            assert "check --store" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_commands_about_whole_stores_take_a_space_and_say_that_it_is_not_heeded(
    tmp_path: Path,
) -> None:
    store, backup = str(tmp_path / "memory.db"), str(tmp_path / "backup.db")
    fill(store, "telegram:1", space="alice")
    fill(store, "telegram:2", space="bob")
    for command in (
        ("backup", backup),
        ("restore", backup, "--store", str(tmp_path / "restored.db")),
        ("migrate", "--to", str(tmp_path / "other.db")),
        ("doctor",),
    ):
        result = run("--store", store, *command, "--space", "alice", "--json")
        assert result.exit_code == 0, result.output
        json.loads(result.stdout)
        assert "the whole store" in json.loads(result.stderr)["note"]
    for copy in ("restored.db", "other.db"):
        spaces = run_json("spaces", "--store", str(tmp_path / copy))["spaces"]
        assert [each["space"] for each in spaces] == ["alice", "bob"]
    said = run("doctor", "--store", store, "--space", "alice").stderr
    assert (said.count("\n"), "the whole store" in said) == (1, True)


def test_the_doctor_says_what_is_wrong_and_exits_1_until_it_is_repaired(
    durable_store_url: str,
) -> None:
    keys = fill(durable_store_url, "telegram:1")
    assert "Nothing is wrong." in run("doctor", "--store", durable_store_url).stdout
    with recollect.open(durable_store_url) as memory:
        memory.work(Hopeless())
    result = run("doctor", "--store", durable_store_url)
    assert result.exit_code == 1
    assert "parked-job" in result.stdout
    assert keys["telegram:1"] in result.stdout
    repaired = run_json("doctor", "--repair", "--store", durable_store_url)
    assert [each["check"] for each in repaired["repaired"]] == ["parked-job"]
    assert repaired["sound"]
    assert run("doctor", "--store", durable_store_url).exit_code == 0

"""The command line as somebody uses it who does not know it by heart yet."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import recollect
from tests.e2e.command_line import run, run_json

KEY = "telegram:42:main"
READING = [
    "status",
    "facts",
    "facts list",
    "facts search tea",
    "facts show x",
    "facts history x",
    "recall tea",
    "context tea",
    "history k",
    "sessions",
    "sessions show k",
    "sessions end k",
    "agents",
    "docs",
    "docs tree",
    "docs read a",
    "docs history a",
    "docs diff a 1 2",
    "docs search tea",
    "docs links a",
    "docs deleted",
    "generations",
    "generations show 1",
    "review",
    "audit",
    "spaces",
    "keys",
    "doctor",
    "export archive.zip",
    "backup copy.db",
]
LISTING = ["facts", "sessions", "review", "generations", "keys", "docs"]


# a store that is not there


@pytest.mark.parametrize("line", READING)
def test_to_read_a_store_that_is_not_there_makes_none(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "missing" / "memory.db"
    for where in (str(store), f"sqlite:///{store}"):
        result = run(*line.split(), "--store", where)
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"there is no store at {store}; recollect append makes one" in result.stderr
    assert list(tmp_path.iterdir()) == []
    failed = run(*line.split(), "--store", str(store), "--json")
    assert json.loads(failed.stderr)["error"]["type"] == "NotFound"


def test_the_store_of_an_agent_that_never_spoke_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_DATABASE", "per-agent")
    monkeypatch.setenv("RECOLLECT_DATA_DIR", str(tmp_path / "data"))
    result = run("recall", "tea", "--agent", "coder")
    assert result.exit_code == 1
    assert "there is no store at" in result.stderr
    assert not (tmp_path / "data").exists()


def test_memory_that_is_kept_nowhere_cannot_be_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATA_DIR", "")
    for where in ([], ["--store", ":memory:"]):
        result = run("sessions", *where)
        assert (result.exit_code, "name a file or a server" in result.stderr) == (1, True)


def test_what_is_said_first_makes_the_store(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "new" / "memory.db"))
    assert run("append", KEY, "Hello", *store).exit_code == 0
    assert [each["key"] for each in run_json("sessions", *store)] == [KEY]


def test_who_restores_over_a_store_is_told_of_replace(tmp_path: Path) -> None:
    store, copy = str(tmp_path / "memory.db"), str(tmp_path / "copy.db")
    run("append", KEY, "Hello", "--store", store)
    run("backup", copy, "--store", store)
    refused = run("restore", copy, "--store", store)
    assert (refused.exit_code, "--replace" in refused.stderr) == (1, True)
    assert run("restore", copy, "--store", store, "--replace").exit_code == 0


# options and names


@pytest.mark.parametrize("group", LISTING)
def test_a_group_that_lists_takes_the_options_of_its_list(group: str, tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    run("append", KEY, "Hello", *store)
    verb = "tree" if group == "docs" else "list"
    for options in (["--limit", "5"], ["--limit", "5", "--json"], []):
        alone = run(group, *options, *store)
        listed = run(group, verb, *options, *store)
        assert alone.exit_code == 0, alone.output
        assert (alone.stdout, alone.stderr) == (listed.stdout, listed.stderr)
    assert run(group, "--limit", "0", *store).exit_code == 2


def test_a_limit_of_facts_is_heeded_without_a_verb(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    for name in ("tea", "coffee", "milk"):
        run("facts", "add", f"Ana likes {name}.", "--tag", name, *store)
    assert len(run_json("facts", "--limit", "2", *store)) == 2
    assert [each["content"] for each in run_json("facts", "--tag", "tea", *store)] == [
        "Ana likes tea."
    ]
    early = run("facts", "--limit", "2", "search", "tea", *store)
    assert (early.exit_code, "after the verb" in early.stderr) == (2, True)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("stauts", "'status'"),
        ("sesions", "'sessions'"),
        ("facts serch tea", "'search'"),
        ("docs tre", "'tree'"),
        ("facts --limt 3", "--limit"),
        ("recall tea --explan", "--explain"),
    ],
)
def test_what_is_misspelt_is_answered_with_what_was_meant(line: str, meant: str) -> None:
    for more in ([], ["--json"]):
        result = run(*line.split(), *more)
        assert result.exit_code == 2
        assert "Did you mean" in result.stderr
        assert meant in result.stderr


def test_the_next_page_is_the_same_list_whatever_stood_on_the_line(tmp_path: Path) -> None:
    store = str(tmp_path / "my memory.db")
    for name in ("coffee", "green tea", "black tea", "mint tea"):
        tag = name.split()[-1]
        run("facts", "add", f"Ana likes {name}.", "--tag", tag, "--store", store, "--space", "a")
    line = ["--store", store, "facts", "list", "--tag=tea", "--space=a", "--limit", "2"]
    seen = []
    while line:
        page = run(*line)
        seen += [each for each in page.stdout.splitlines() if each.startswith("    Ana")]
        _, _, advice = page.stderr.partition("There may be more: recollect ")
        line = shlex.split(advice)
        assert not line or line[:2] == ["facts", "list"]
    likes = [f"    Ana likes {name} tea." for name in ("mint", "black", "green")]
    assert seen == likes


# sessions by hand, and agents


def test_a_session_is_marked_put_to_sleep_reset_and_ended(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    first = run_json("append", KEY, "I live in Lisbon.", *store)["session"]["id"]
    run("append", KEY, "I like tea.", *store)

    marked = run_json("sessions", "mark", KEY, "--upto", "1", *store)
    assert (marked["id"], marked["invalidated_at"], marked["marked_by"]) == (first, 1, "request")
    assert (
        f"Marked session {first} of {KEY}, mark 2" in run("sessions", "mark", first, *store).stdout
    )
    assert run_json("sessions", "sleep", KEY, *store)["invalidated_at"] == 2

    second = run_json("sessions", "reset", KEY, "--reason", "a new subject", *store)["id"]
    assert second != first
    over = run("sessions", "end", first, *store)
    assert (over.exit_code, over.stdout) == (1, "")
    assert second in over.stderr

    run("append", KEY, "Something else.", *store)
    assert run_json("sessions", "end", KEY, *store)["ended_by"] == "end"
    states = {each["id"]: each["ended_by"] for each in run_json("sessions", *store)}
    assert states == {first: "reset", second: "end"}
    assert run("sessions", "mark", "nobody", *store).exit_code == 1


def test_an_empty_session_has_nothing_to_mark(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    run("append", KEY, "Hello", *store)
    run("sessions", "reset", KEY, *store)
    result = run("sessions", "mark", KEY, *store)
    assert (result.exit_code, "no records" in result.stderr) == (1, True)


def test_what_is_processed_or_not_to_be_learned_is_not_said_to_be_marked(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    run("append", KEY, "Hello", *store)
    run("work", "--all", *store)
    for verb in ("mark", "sleep"):
        said = run("sessions", verb, KEY, *store)
        assert (said.exit_code, said.stdout.startswith("Nothing to mark in session")) == (0, True)
        assert "all of it has been processed" in said.stdout
    run("append", KEY, "I tidy up.", "--agent", "/memory-agent/coder", *store)
    mine = ("--agent", "/memory-agent/coder", *store)
    assert "never remembered" in run("sessions", "mark", KEY, *mine).stdout
    assert run_json("sessions", "mark", KEY, *mine)["invalidated_at"] is None


def test_agents_that_work_on_memory_are_shown_to_who_asks(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    with recollect.open(durable_store_url, settings={"pipeline": "memory-agent"}) as memory:
        session = memory.space().session(KEY, agent="assistant")
        session.append("user", "I live in Lisbon.")
        session.end()
        memory.worker().tick()  # hands over

    def keys(*more: str) -> set[str]:
        shown = run_json("status", *more, *store)
        return {each["key"] for each in shown["sessions"]}

    assert "/memory-agent/" not in run("sessions", *store).stdout
    assert "/memory-agent/" in run("sessions", "--all-agents", *store).stdout
    assert "/memory-agent/" not in run("agents", *store).stdout
    assert "/memory-agent/" in run("agents", "--all-agents", *store).stdout
    assert "/memory-agent/" not in run("status", *store).stdout
    assert "/memory-agent/" in run("status", "--all-agents", *store).stdout
    assert len(keys("--all-agents")) > len(keys())
    counts = [
        sum(run_json("status", *more, *store)["agent_counts"].values())
        for more in ((), ("--all-agents",))
    ]
    assert counts == [0, 1]
    assert len(run_json("agents", *store)) < len(run_json("agents", "--all-agents", *store))
    assert len(run_json("agents", "--all-agents", "--limit", "1", *store)) == 1


def test_status_does_not_say_that_nothing_came_of_what_has_facts(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    run("append", KEY, "My name is Ana and I live in Lisbon.", *store)
    run("work", "--all", *store)
    assert run_json("facts", *store)
    run("append", KEY, "Hm, ok.", *store)
    run("work", "--all", *store)
    (progress,) = run_json("status", *store)["sessions"]
    assert (progress["outcome"], bool(progress["facts"])) == ("succeeded_no_output", True)
    said = run("status", *store).stdout
    assert "succeeded_no_output" not in said
    assert "succeeded" in said

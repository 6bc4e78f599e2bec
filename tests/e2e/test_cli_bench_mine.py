"""A person's own sessions replayed: what they said twice, what would have told it, what is new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recollect
from tests.e2e.command_line import run, run_json

RULE = "Always use pnpm in this repository, never npm."
TESTS = "Run the tests with `uv run pytest -q tests/unit` before you commit."
# Of each session: its day, its project, and who said what.
SESSIONS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "2026-03-02",
        "/srv/ana/shop",
        (
            ("user", f"Let's begin with the checkout page. {RULE} {TESTS}"),
            ("assistant", "Understood, the checkout page is next."),
            ("user", "Remember that the staging server listens on port 8443 behind the proxy."),
            ("assistant", "Noted."),
        ),
    ),
    (
        "2026-03-05",
        "/srv/ana/shop",
        (
            ("user", "Add a date picker to the delivery form."),
            ("assistant", "I ran npm install react-datepicker and put it into the form."),
            ("user", "No. Always use pnpm in this repository, never npm, as I said."),
            ("assistant", "Sorry, I have switched to pnpm."),
        ),
    ),
    (
        "2026-03-09",
        "/srv/ana/shop",
        (
            ("user", "Run the tests with `uv run pytest -q tests/unit`, and fix what fails."),
            ("assistant", "All of them pass."),
            ("user", "Remember that the staging server listens on port 9443 behind the proxy."),
            ("assistant", "Noted."),
        ),
    ),
    (
        "2026-03-10",
        "/srv/ana/shop",
        (
            ("user", "Add the map of all the shops."),
            ("assistant", "I ran npm install leaflet."),
            ("user", "No, use pnpm."),
            ("assistant", "Sorry, I have switched to pnpm."),
        ),
    ),
    (
        "2026-03-11",
        "/srv/ana/shop",
        (
            ("user", "Show the basket as a list."),
            ("assistant", "I ran pnpm install list-view."),
            ("user", "No, use npm."),
        ),
    ),
    (
        "2026-03-12",
        "/srv/ana/blog",
        (("user", f"Write a post about cheese. {RULE}"), ("assistant", "Here it is.")),
    ),
)


def write_sessions(path: Path) -> Path:
    lines = (
        {
            "session": f"{day} in {project}",
            "role": role,
            "content": said,
            "time": f"{day}T09:{minute:02}:00Z",
            "cwd": project,
        }
        for day, project, turns in SESSIONS
        for minute, (role, said) in enumerate(turns)
    )
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def retold(mined: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in mined["retold"]}


def test_what_was_said_twice_is_found_with_what_would_have_told_it(tmp_path: Path) -> None:
    logs = write_sessions(tmp_path / "logs.jsonl")
    mined = run_json("bench", "mine", "--source", "jsonl", str(logs))
    assert (mined["sessions"], mined["prompts"]) == (6, 11)
    assert {name: kind["found"] for name, kind in mined["kinds"].items()} == {
        "corrected": 2,
        "explained again": 1,
        "all": 3,
    }
    corrected, brief = (each for each in mined["retold"] if each["kind"] == "corrected")
    if brief["said"]["at"] < corrected["said"]["at"]:
        corrected, brief = brief, corrected
    assert brief["said"]["text"] == "No, use pnpm."
    assert corrected["said"]["at"].startswith("2026-03-05")
    assert corrected["before"]["text"] == RULE
    assert corrected["held"]["400"] == "recap"
    command = retold(mined)["explained again"]
    assert "uv run pytest -q tests/unit" in command["said"]["text"]
    assert corrected["tokens"] > command["tokens"]  # what was done in vain is counted
    assert mined["kinds"]["all"]["saved"]["400"] >= corrected["tokens"]


def test_a_space_of_a_store_is_replayed_and_stays_as_it_was(
    durable_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = write_sessions(tmp_path / "logs.jsonl")
    monkeypatch.setenv("RECOLLECT_MEMORIES_ROOT", str(tmp_path / "published"))
    run("import", "jsonl", str(logs), "--store", durable_store_url)
    with recollect.open(durable_store_url) as memory:
        before = memory.space().sessions.list()
    told = run("bench", "mine", "--store", durable_store_url, "--examples", "1")
    assert (told.exit_code, told.stderr) == (0, "")
    assert "held by a block of … tokens  found" in told.stdout
    assert told.stdout.count("2026-03-05 in “Add a date picker") == 1
    with recollect.open(durable_store_url) as memory:
        assert memory.space().sessions.list() == before
        assert memory.space().facts.list() == []
        assert memory.spaces() == ["default"]
    assert not (tmp_path / "published").exists()


def test_nothing_said_twice_is_said_and_a_path_needs_its_source(tmp_path: Path) -> None:
    logs = write_sessions(tmp_path / "logs.jsonl")
    lines = logs.read_text().splitlines(keepends=True)
    logs.write_text("".join(lines[:4]))
    told = run("bench", "mine", "--source", "jsonl", str(logs))
    assert told.stdout.endswith("Nothing was found that you had to say twice.\n")
    assert run("bench", "mine", str(logs)).exit_code == 2
    assert "usual place" in run("bench", "mine", "--source", "jsonl").stderr

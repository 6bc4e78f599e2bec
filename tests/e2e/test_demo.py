"""The demonstration: short by default, whole with --full, and nothing is left of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import recollect
from recollect.demo import PASSWORD
from recollect.interfaces.cli.main import cli
from recollect_conformance.scripted import ScriptedServer
from tests.postgres_server import url_with

SHORT_LINES_MAX = 60
KILLED = "A worker is killed in the middle of its work"
LEARNED = "What was learned: facts with their sources, by rules, without a model"
CHANGED = "A change of mind: the new holds, the old is history"
FORGOTTEN = "A forgotten session, with its receipt"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["demo", *arguments], catch_exceptions=False)


@pytest.fixture(autouse=True)
def temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo makes its own temporary store."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


def scenes_of(result: Result) -> dict[str, list[str]]:
    scenes: list[dict[str, Any]] = json.loads(result.stdout)["scenes"]
    return {scene["title"]: scene["lines"] for scene in scenes}


@pytest.fixture(
    scope="module", params=["sqlite-file", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def played_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """One store of each kind for those who look at what the demo leaves: it runs there once."""
    if request.param == "sqlite-file":
        yield f"sqlite:///{tmp_path_factory.mktemp('played') / 'memory.db'}"
        return
    schemas = request.getfixturevalue("postgres_schemas")
    name = schemas.lend()
    yield url_with(request.getfixturevalue("postgres_url"), schema=name)
    schemas.take_back(name)


@cache
def played(url: str) -> dict[str, list[str]]:
    return scenes_of(run("--store", url, "--full", "--json"))


def test_the_short_form_fits_a_screen_and_leaves_nothing(
    temporary_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.db"
    monkeypatch.setenv("RECOLLECT_STORE", str(own))
    result = run()
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) <= SHORT_LINES_MAX
    for title in (KILLED, LEARNED, CHANGED, FORGOTTEN):
        assert title in result.stdout
    assert "files that hold these words, of " in result.stdout
    assert re.search(r"of \d+ on disk: 0\n", result.stdout)
    assert list(temporary_directory.iterdir()) == []
    assert not own.exists()


def test_every_way_to_mark_a_session_is_shown(played_url: str) -> None:
    scenes = played(played_url)
    lines = scenes["Two agents talk with people, and their sessions are marked"]
    causes = [re.split(r"  +", line)[0] for line in lines]
    assert causes == ["–", "threshold", "reset", "compaction", "sleep", "end", "idle sweep"]
    assert lines[0].endswith(", no mark")
    assert all("marked up to" in line for line in lines[1:])
    late = scenes["A message arrives while a session is being processed"]
    assert [line.rpartition("-> ")[2] for line in late] == ["False", "True"]
    assert scenes["Agents that work on memory are never learned from"][0].endswith("mark none")
    assert "AppendKeyReused" in scenes["A retry stores once"][0]


def test_a_killed_worker_is_replaced_and_every_record_is_processed_once(played_url: str) -> None:
    lines = played(played_url)[KILLED]
    pid = re.search(r"process (\d+)", lines[0])
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid[1]), 0)
    counts = re.match(r"(\d+) records to process, (\d+) processed", lines[2])
    assert counts is not None
    assert counts[1] == counts[2]
    with recollect.open(played_url) as memory:
        assert memory.status().marked_count == 0
        sessions = memory.space("demo").sessions
        for state in sessions.list():
            covered = [(each.first_seq, each.last_seq) for each in sessions.ranges(state.id)]
            seqs = [seq for first, last in covered for seq in range(first, last + 1)]
            assert seqs == (list(range(1, state.last_seq + 1)) if state.remembered else [])


def test_facts_have_their_sources_and_no_password(played_url: str) -> None:
    lines = played(played_url)[LEARNED]
    assert any(re.fullmatch(r"Ana is vegetarian\. +telegram:42:main #3", line) for line in lines)
    assert lines[-1].startswith("(the password that was typed is in 0 of ")
    with recollect.open(played_url) as memory:
        space = memory.space("demo")
        for fact in space.facts.list(every=True):
            (source,) = fact.sources
            first, last = source.seq, source.seq_to or source.seq
            records = space.sessions.records(source.session_id, first - 1, last - first + 1)
            said = " ".join(record.content for record in records)
            assert source.quote in said or "[redacted:" in source.quote
            assert PASSWORD not in fact.content + source.quote


def test_a_change_of_mind_is_answered_with_what_holds_now(played_url: str) -> None:
    scenes = played(played_url)
    answer = scenes[CHANGED]
    assert "Porto" in answer[2]
    assert all("outdated" in line for line in answer[2:] if "Lisbon in May" in line)
    history = scenes["What was believed before"]
    assert [line.split()[-1] for line in history[1:3]] == ["added", "superseded"]
    assert history[-1].endswith(history[0])


def test_a_forgotten_session_leaves_pages_files_and_generations(played_url: str) -> None:
    """G3, G9, G11: published whole, compared, and nothing of what was forgotten is left."""
    scenes = played(played_url)
    handbook = scenes["A generation of memory"]
    assert any("Ana lives in Porto now." in line for line in handbook)
    assert not any("Lisbon in May" in line for line in handbook)  # superseded
    assert "changed ~/memory/MEMORY" in scenes["The next generation"]
    forgotten = scenes[FORGOTTEN]
    assert forgotten[1] == "forget(session=…) -> 2 records, 1 fact; complete"
    assert re.fullmatch(
        r"pages that mention the surprise party: [1-9]\d* before, 0 now", forgotten[2]
    )
    assert forgotten[-1] == "can the generation that knew be restored: no"
    with recollect.open(played_url) as memory:
        space = memory.space("demo")
        bodies = [space.documents.read(node.path).body for node in space.documents.tree()]
        assert not [body for body in bodies if "surprise" in body]


def test_a_kept_store_has_its_handbook_as_files_and_a_second_run_its_own_space(
    tmp_path: Path,
) -> None:
    kept = tmp_path / "kept.db"
    assert f"--store {kept} --space demo" in run("--keep", str(kept)).stdout
    directory = tmp_path / "kept-memories" / "demo"
    assert "Ana lives in Porto now." in (directory / "MEMORY.md").read_text()
    assert not [file for file in directory.rglob("*.md") if "surprise" in file.read_text()]
    assert f"--store {kept} --space demo-2" in run("--keep", str(kept)).stdout
    with recollect.open(kept) as memory:
        assert memory.spaces() == ["demo", "demo-2"]


def test_no_model_is_asked_whatever_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MODEL", "MEMORY_AGENT_MODEL", "CONSOLIDATION_MODEL"):
        monkeypatch.setenv(f"RECOLLECT_{name}", "openai:some-model")
    monkeypatch.setenv("OPENAI_API_KEY", "not-to-be-used")
    with ScriptedServer() as server:
        monkeypatch.setenv("RECOLLECT_MODEL_BASE_URL", server.url)
        result = run("--keep", str(tmp_path / "kept.db"), "--json")
        assert (result.exit_code, server.requests) == (0, [])
    assert len(scenes_of(result)[LEARNED]) > 5


def test_a_store_in_memory_is_shown_without_a_killed_worker_and_says_so() -> None:
    scenes = scenes_of(run("--store", ":memory:", "--json"))
    assert "use a file" in scenes["A worker that is killed, left out"][0]
    assert list(scenes)[-1] == FORGOTTEN


def test_sessions_of_others_are_left_alone(durable_store_url: str) -> None:
    with recollect.open(durable_store_url) as memory:
        memory.space("mine").session("k").append("user", "not for the demo")
        memory.space("mine").session("k").sleep()
    scenes = scenes_of(run("--store", durable_store_url, "--json"))
    assert "other sessions" in scenes["A worker that is killed, left out"][0]
    with recollect.open(durable_store_url) as memory:
        assert memory.space("mine").session("k").state.invalidated_at == 1


def test_a_space_that_holds_sessions_is_not_played_into(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept.db")
    with recollect.open(kept) as memory:
        memory.space("mine").session("k").append("user", "keep me")
    result = run("--store", kept, "--space", "mine")
    assert result.exit_code == 1
    assert "needs an empty space" in result.stderr

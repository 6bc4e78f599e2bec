"""The demonstration: every mark, a takeover, what was learned, what it came to; nothing is left."""

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
from recollect.demo.stage import PASSWORD
from recollect.domain import MarkCause
from recollect.interfaces.cli.main import cli
from recollect_conformance.scripted import ScriptedServer
from tests.postgres_server import url_with

TITLES = (
    "Threshold",
    "Reset",
    "Compaction",
    "Sleep",
    "End",
    "Idle sweep",
    "A message arrives in between",
    "Read again, then clear",
    "The skip rule",
    "A retry stores once",
    "A worker is killed",
    "Another one takes over",
    "Work goes on where it stopped",
    "A new pass",
    "What was learned",
    "What a session came to",
    "A secret is not remembered",
    "A change of mind",
    "A page in the tree",
    "Recall",
    "A block for a prompt",
    "A generation of memory",
    "The next generation",
    "A forgotten session leaves it",
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["demo", *arguments], catch_exceptions=False)


@pytest.fixture(autouse=True)
def temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo makes its own temporary store."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


def steps_of(result: Result) -> dict[str, dict[str, Any]]:
    return {step["title"]: step for step in json.loads(result.stdout)["steps"]}


@cache
def told_in_memory() -> str:
    """What one run on a store in memory said: most of these tests look at some part of it."""
    return run("--store", ":memory:").stdout


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
def played(url: str) -> Result:
    return run("--store", url, "--json")


def test_the_demo_tells_every_step_in_order() -> None:
    result = run()
    assert result.exit_code == 0
    found = re.findall(r"^\d+\. (.+)$", result.stdout, re.MULTILINE)
    assert tuple(found) == TITLES
    assert "What to try next" in result.stdout


@pytest.mark.parametrize(
    ("title", "mark"),
    [
        ("Threshold", "6 (threshold)"),
        ("Reset", "3 (reset)"),
        ("Compaction", "5 (compaction)"),
        ("Sleep", "2 (sleep)"),
        ("End", "3 (end)"),
        ("Idle sweep", "2 (idle)"),
    ],
)
def test_each_mark_appears_between_before_and_after(title: str, mark: str) -> None:
    section = told_in_memory().partition(f". {title}\n")[2]
    before, after = re.findall(r"^    (?:before|after) .*$", section, re.MULTILINE)[:2]
    assert "mark – " in before
    assert f"mark {mark}" in after


def test_a_message_in_between_makes_the_compare_and_swap_refuse(played_url: str) -> None:
    steps = steps_of(played(played_url))
    refused = steps["A message arrives in between"]
    assert refused["results"][0].endswith("-> False")
    assert refused["changes"][0]["after"]["processed_until"] is None
    assert refused["changes"][0]["after"]["invalidated_at"] == 7
    cleared = steps["Read again, then clear"]
    assert cleared["results"][0].endswith("-> True")
    assert cleared["changes"][0]["after"]["invalidated_at"] is None
    assert cleared["changes"][0]["after"]["processed_until"] == 7


def test_all_causes_are_shown_and_the_memory_agent_stays_unmarked(played_url: str) -> None:
    steps = steps_of(played(played_url))
    causes = {change["after"]["marked_by"] for s in steps.values() for change in s["changes"]}
    assert causes == set(MarkCause) - {MarkCause.REQUEST, MarkCause.SCAN} | {None}
    skipped = steps["The skip rule"]["changes"][0]["after"]
    assert (skipped["last_seq"], skipped["invalidated_at"]) == (8, None)
    retry = steps["A retry stores once"]
    assert retry["changes"][0]["before"]["last_seq"] == retry["changes"][0]["after"]["last_seq"]
    assert "AppendKeyReused" in retry["results"][1]


def test_a_killed_worker_is_replaced_and_every_record_is_processed_once(
    played_url: str,
) -> None:
    result = played(played_url)
    steps = steps_of(result)
    killed = steps["A worker is killed"]
    assert "claimed by first, with token 1" in killed["results"][-1]
    assert killed["changes"][0]["after"] == killed["changes"][0]["before"]
    pid = re.search(r"process (\d+)", killed["results"][0])
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid[1]), 0)
    taken = steps["Another one takes over"]["results"]
    assert taken[-3].endswith("telegram:42:gifts, records 1 to 3 extracted, taken over from first")
    token = re.fullmatch(r"the job of telegram:42:gifts is idle, with token (\d+)", taken[-2])
    assert token is not None
    assert int(token[1]) > 1
    assert taken[-1] == "the ranges of telegram:42:gifts: 1–3 extracted"
    worked = steps["Work goes on where it stopped"]["results"]
    assert worked[-1] == "the ranges of telegram:42:main: 1–7 external, 8–8 extracted"
    status = json.loads(result.stdout)["status"]
    assert (status["marked_count"], status["waiting_count"], status["jobs"]) == (0, 0, [])
    with recollect.open(played_url) as memory:
        sessions = memory.space("demo").sessions
        for state in sessions.list():
            covered = [(each.first_seq, each.last_seq) for each in sessions.ranges(state.id)]
            seqs = [seq for first, last in covered for seq in range(first, last + 1)]
            assert seqs == (list(range(1, state.last_seq + 1)) if state.remembered else [])


def test_it_ends_with_facts_that_know_their_words(played_url: str) -> None:
    steps = steps_of(played(played_url))
    learned = {fact["content"]: fact for fact in steps["What was learned"]["facts"]}
    assert {"Ana lives in Porto now.", "Mira is allergic to penicillin."} <= set(learned)
    with recollect.open(played_url) as memory:
        sessions = memory.space("demo").sessions
        for fact in learned.values():
            (source,) = fact["sources"]
            first, last = source["seq"], source["seq_to"]
            records = sessions.records(source["session_id"], first - 1, last - first + 1)
            said = " ".join(record.content for record in records)
            assert source["quote"] in said or "[redacted:" in source["quote"]
    extraction = steps["What a session came to"]["extraction"]
    assert "Ana lives in Porto now." in extraction["rollout_summary"]
    assert extraction["extractor"].startswith("rules/")
    passed = steps["A new pass"]["results"]
    assert passed[-1] == "the ranges of telegram:42:main: 1–8 extracted"


def test_the_facts_are_told_with_their_quotes_and_places() -> None:
    told = told_in_memory()
    assert (
        "  Ana is vegetarian.\n    detail, user\n"
        "    telegram:42:main, record 3: “I'm vegetarian.”\n"
    ) in told
    assert "Key points" in told.partition(". What a session came to\n")[2]


def test_a_password_stays_in_its_record_and_out_of_memory(played_url: str) -> None:
    step = steps_of(played(played_url))["A secret is not remembered"]
    assert PASSWORD in step["said"][0]["content"]
    assert re.search(r"//ci:\[redacted:[a-z-]+:[0-9a-f]{8}\]@db/", step["facts"][0]["content"])
    assert step["results"] == ["facts, quotes, memories and summaries that hold the password: 0"]
    with recollect.open(played_url) as memory:
        space = memory.space("demo")
        facts = space.facts.list(every=True)
        texts = [text for fact in facts for text in (fact.content, fact.sources[0].quote)]
        texts += [each.raw_memory + each.rollout_summary for each in space.sessions.extractions()]
        assert not [text for text in texts if PASSWORD in text]


def test_a_change_of_mind_is_kept_with_its_history(played_url: str) -> None:
    step = steps_of(played(played_url))["A change of mind"]
    old, new = step["facts"]
    assert (old["superseded_by"], new["superseded_by"]) == (new["id"], None)
    assert "Lisbon" in old["content"]
    assert "Porto" in new["content"]
    events = [(change["event"], change["other_id"]) for change in step["history"]]
    assert events == [("added", None), ("superseded", new["id"])]
    assert step["results"][0].endswith(old["content"])


def test_it_ends_with_a_generation_the_next_and_one_without_a_forgotten_session(
    played_url: str,
) -> None:
    """G3, G9, G11: published whole, compared, and nothing of what was forgotten is left."""
    steps = steps_of(played(played_url))
    pages = {page["path"]: page["body"] for page in steps["A generation of memory"]["pages"]}
    assert list(pages) == ["~/memory/MEMORY", "~/memory/memory_summary"]
    assert "- Ana lives in Porto now. ([[~/memory/rollout_summaries/" in pages["~/memory/MEMORY"]
    assert "Lisbon in May" not in pages["~/memory/MEMORY"]  # superseded

    following = steps["The next generation"]["results"]
    assert following[0] == "preview(): 2 memories added, 6 retained, 0 removed"
    assert "+ - Ben prefers calls in the morning. (2026-05-04)" in following
    assert any("+ - Ana is planning a surprise party" in line for line in following)

    forgotten = steps["A forgotten session leaves it"]["results"]
    assert "0 memories added, 7 retained, 1 removed" in forgotten[1]
    assert re.fullmatch(
        r"pages that know of the surprise party: [1-9]\d* before, 0 now", forgotten[2]
    )
    assert forgotten[3] == "generation 2 can be restored: no"
    with recollect.open(played_url) as memory:
        space = memory.space("demo")
        bodies = [space.documents.read(node.path).body for node in space.documents.tree()]
        assert not [body for body in bodies if "surprise" in body]
        assert [each.number for each in space.generations.list()] == [3, 2, 1]


def test_a_kept_store_has_its_handbook_as_files_beside_it(tmp_path: Path) -> None:
    told = run("--keep", str(tmp_path / "kept.db")).stdout
    directory = tmp_path / "kept-memories" / "demo"
    assert f"  files: {directory}\n" in told
    assert "Ana lives in Porto now." in (directory / "MEMORY.md").read_text()
    assert not [file for file in directory.rglob("*.md") if "surprise" in file.read_text()]


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
    assert len(steps_of(result)["What was learned"]["facts"]) > 5


def test_a_store_in_memory_is_shown_without_a_killed_worker_and_says_so() -> None:
    result = run("--store", ":memory:", "--json")
    steps = steps_of(result)
    assert "use a file" in steps["Workers, left out"]["story"]
    assert list(steps)[-1] == "A forgotten session leaves it"
    assert json.loads(result.stdout)["status"]["marked_count"] == 0


def test_sessions_of_others_are_left_alone(durable_store_url: str) -> None:
    with recollect.open(durable_store_url) as memory:
        memory.space("mine").session("k").append("user", "not for the demo")
        memory.space("mine").session("k").sleep()
    steps = steps_of(run("--store", durable_store_url, "--json"))
    assert "left alone" in steps["Workers and learning, left out"]["story"]
    with recollect.open(durable_store_url) as memory:
        assert memory.space("mine").session("k").state.invalidated_at == 1


def test_the_temporary_store_is_gone_afterwards(temporary_directory: Path) -> None:
    assert str(temporary_directory) in run().stdout
    assert list(temporary_directory.iterdir()) == []


def test_the_demo_leaves_the_store_of_the_environment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.db"
    monkeypatch.setenv("RECOLLECT_STORE", str(own))
    monkeypatch.setenv("RECOLLECT_MARK_THRESHOLD", "100")
    result = run()
    assert "mark 6 (threshold)" in result.stdout
    assert not own.exists()


def test_a_kept_store_can_be_read_and_a_second_run_takes_a_new_space(tmp_path: Path) -> None:
    kept = tmp_path / "kept.db"
    assert f"--store {kept} --space demo" in run("--keep", str(kept)).stdout
    assert f"--store {kept} --space demo-2" in run("--keep", str(kept)).stdout
    with recollect.open(kept) as memory:
        assert memory.spaces() == ["demo", "demo-2"]
        session = memory.space("demo").session("cli:recollect:main", agent="coder")
        assert session.all(rotations=True)[3].tool_calls[0].name == "grep"


def test_a_space_that_holds_sessions_is_not_played_into(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept.db")
    with recollect.open(kept) as memory:
        memory.space("mine").session("k").append("user", "keep me")
    result = run("--store", kept, "--space", "mine")
    assert result.exit_code == 1
    assert "needs an empty space" in result.stderr

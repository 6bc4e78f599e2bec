"""The recall benchmark on the command line: tables, JSON, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import recollect
from tests.e2e.command_line import ENTRY_POINT, run, run_json
from tests.e2e.terminal import terminal
from tests.unit.benchmarks.conversations import write_locomo, write_longmemeval


def test_each_file_has_a_table_of_methods_and_one_of_categories(tmp_path: Path) -> None:
    write_locomo(tmp_path)
    write_longmemeval(tmp_path)
    result = run("bench", "recall", "--data", str(tmp_path))
    assert (result.exit_code, result.stderr) == (0, "")
    first, _, second = result.stdout.partition("\n\nlongmemeval-held-out.json")
    assert first.startswith("locomo-dev.json (LoCoMo): 1 space, 5 turns, 2 questions\n")
    assert second.startswith(" (LongMemEval): 1 space, 6 turns, 2 questions\n")
    lines = first.splitlines()
    assert lines[1].split()[:4] == ["R@5", "R@10", "nDCG@10", "MRR"]
    ours = next(line for line in lines if line.startswith("recall, words  "))
    assert ours.split()[2:6] == ["1.000"] * 4
    assert any(line.startswith("FTS5, sessions of user turns  –") for line in lines)
    assert any(line.split()[:2] == ["single-hop", "1"] for line in lines)
    told = next(line for line in lines if line.startswith("block  "))
    assert told.split()[1:] == ["1.000"] * 4
    used = next(line for line in lines if line.startswith("budget used, 2 questions from"))
    assert used.count("%") == 4
    assert any(line.startswith("block − FTS5 with neighbours  ") for line in lines)


def test_json_has_every_method_and_category(durable_store_url: str, tmp_path: Path) -> None:
    path = write_locomo(tmp_path)
    told = run_json("bench", "recall", "--data", str(path), "--store", durable_store_url)
    assert (told["version"], told["embedder"]) == (recollect.__version__, "none")
    (file,) = told["files"]
    assert (file["file"], file["task"]) == (path.name, "LoCoMo")
    ours = file["methods"][-1]
    assert ours["name"] == "recall, words"
    assert ours["mean"]["R@10"] == 1.0
    assert ours["by_category"]["temporal"]["questions"] == 1
    assert 0 < ours["cpu_ms_p50"] <= ours["cpu_ms_p95"]
    block = file["blocks"]["methods"][-1]
    assert (block["name"], block["mean"]["told@1000"]) == ("block", 1.0)
    assert file["blocks"]["differences"][0]["by_budget"]["500"].keys() == {"mean", "low", "high"}
    assert file["blocks"]["elsewhere"] is None
    with recollect.open(durable_store_url) as memory:
        assert memory.spaces() == ["bench:locomo-dev.json:conv-1"]


def test_a_store_that_holds_something_is_refused_and_kept(
    durable_store_url: str, tmp_path: Path
) -> None:
    with recollect.open(durable_store_url) as memory:
        memory.space().session("telegram:42").append("user", "hello")
    data = str(write_locomo(tmp_path))
    result = run("bench", "recall", "--data", data, "--store", durable_store_url)
    assert result.exit_code == 1
    assert "needs an empty one" in result.stderr
    with recollect.open(durable_store_url) as memory:
        assert memory.spaces() == ["default"]


def test_without_a_store_nothing_is_left_behind(tmp_path: Path) -> None:
    data = write_locomo(tmp_path)
    kept = tmp_path / "mine.db"
    environment = os.environ | {"RECOLLECT_STORE": str(kept), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-c", ENTRY_POINT, "bench", "recall", "--data", str(data)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert not kept.exists()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_fewer_questions_can_be_asked(tmp_path: Path) -> None:
    data = str(write_locomo(tmp_path))
    told = run_json("bench", "recall", "--data", data, "--limit-questions", "1", "--space", "mine")
    assert told["files"][0]["questions"] == 1


def test_wrong_usage_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    assert run("bench", "recall").exit_code == 2
    assert run("bench", "recall", "--data", str(tmp_path / "none.json")).exit_code == 2
    other = tmp_path / "other.json"
    other.write_text("[]")
    result = run("bench", "recall", "--data", str(other), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stderr)["error"]["type"] == "InvalidValue"


def test_a_terminal_sees_how_far_it_is_and_a_pipe_does_not(tmp_path: Path) -> None:
    data = str(write_locomo(tmp_path))
    with terminal("bench", "recall", "--data", data, TERM="xterm") as shown:
        assert shown.ended() == 0, shown.shown
    assert "conv-1: recall, words" in shown.shown
    assert "conv-1: block" in shown.shown
    assert run("bench", "recall", "--data", data).stderr == ""

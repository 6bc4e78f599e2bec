"""N18: `recollect bench load`: what it says of a load, what it starts, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import recollect
from recollect.benchmarks.load import LoadRun, LoadScenario, LoadStep, panels
from recollect.errors import StoreBusy
from tests.e2e.command_line import run, run_json

BRIEF = ("--seconds", "0.5", "--rate", "60", "--spaces", "3", "--steps", "2")


def test_a_store_is_loaded_through_servers_with_workers_beside(
    durable_store_url: str, tmp_path: Path
) -> None:
    picture = tmp_path / "load.svg"
    told = run_json(
        *("bench", "load", "--store", durable_store_url, "--servers", "2", *BRIEF),
        *("--plot", str(picture)),
    )
    steps = told["steps"]
    assert [step["rate"] for step in steps] == [60, 120][: len(steps)]
    assert all(step["failures"] == {} for step in steps)
    first = steps[0]
    assert sum(each["count"] for each in first["latency"].values()) + first["undone"] == 30
    assert first["latency"]["append"]["p50"] <= first["latency"]["append"]["p99"]
    assert set(first["cpu"]) == {"client", "servers", "workers"}
    assert ET.fromstring(picture.read_text(encoding="utf-8")).tag.endswith("svg")
    with recollect.open(durable_store_url) as memory:
        spaces = set(memory.spaces())
        assert "load-0" in spaces <= {"load-0", "load-1", "load-2"}
        [key] = memory.store.api_keys.list("", 9)
        assert key.revoked_at is not None


def test_a_table_says_what_was_asked_and_whether_it_kept_up() -> None:
    result = run("bench", "load", "--workers", "0", *BRIEF)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["asked/s", "operation", "done"]
    assert lines[-1].startswith(("Kept up with", "Saturated at"))


def test_somebody_elses_server_is_loaded_only_with_its_key() -> None:
    for arguments in (("--url", "http://x"), ("--url", "http://x", "--key", "k", "--servers", "1")):
        assert run("bench", "load", *arguments).exit_code == 2
    assert run("bench", "load", "--url", "ftp://x", "--key", "k").exit_code == 1


class Refusing:
    """A target that takes what is said, and is too busy for all the rest."""

    def append(self, space: str, key: str, text: str) -> str:
        del key, text
        return f"{space}:1"

    def recall(self, space: str, query: str) -> object:
        if query == self.first:
            return None
        raise StoreBusy(f"{space} is busy")

    context = forget = recall
    first = ""


def test_what_fails_is_counted_and_never_as_quick() -> None:
    plan = LoadScenario(spaces=3, seconds=0.2, rate=500, steps=1, connections=2, seed=3)
    target = Refusing()
    run = LoadRun(target, plan, {})
    target.first = run._questions[0]
    steps: list[LoadStep] = list(run.steps())
    assert set(steps[0].latency) == {"append"}
    assert set(steps[0].failures) == {"StoreBusy"}
    count = steps[0].latency["append"].count  # type: ignore[index]
    assert count + steps[0].failures["StoreBusy"] + steps[0].undone == 100
    assert [panel.title.split(":")[0] for panel in panels(steps)] == ["append"]

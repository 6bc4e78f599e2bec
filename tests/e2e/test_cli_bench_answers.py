"""The benchmark of answers on the command line, with models that answer from a script over HTTP."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from recollect_conformance.scripted import (
    KEY,
    Gate,
    Script,
    Scripted,
    ScriptedServer,
    answer,
    cut_at_length,
    fenced,
    held,
    status,
)
from recollect_conformance.scripted_frames import Received
from tests.e2e.command_line import run, started
from tests.unit.benchmarks.conversations import write_locomo, write_longmemeval

REQUESTS_OF_A_RUN = 12  # three questions, two arms, an answer and a verdict each
UNKNOWN = "I don't know. [m1]"


def is_judge(received: Received) -> bool:
    return "Answer to be judged" in received.prompt


def question_of(received: Received) -> str:
    found = re.search(r"^Question: (.*)$", received.prompt, re.MULTILINE)
    assert found is not None
    return found[1]


def verdict(ruling: str) -> dict[str, str]:
    return {"reason": "because", "verdict": ruling}


def sensible(received: Received) -> Scripted:
    """Knows what stands in the notes; judges by what the reference says."""
    if is_judge(received):
        said = received.prompt.partition("Answer to be judged")[2]
        if "cannot be answered" in received.prompt:
            return verdict("right" if "know" in said else "wrong")
        if "greyhound" in said:
            return verdict("right")
        return verdict("nearly" if "August" in said else "wrong")
    match question_of(received):
        case "What did Ana adopt?" if "greyhound" in received.prompt:
            return answer("A greyhound [m1, m2].")
        case "When did the pottery class begin?" if "<recollect-memory>" in received.prompt:
            return answer("In August.")
        case _:
            return answer(UNKNOWN)


@pytest.fixture
def use_models(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], ScriptedServer]]:
    servers: list[ScriptedServer] = []

    def use(script: Script) -> ScriptedServer:
        server = ScriptedServer(script)
        servers.append(server.__enter__())
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("RECOLLECT_MODEL_BASE_URL", server.url)
        monkeypatch.setenv("RECOLLECT_MODEL_RETRIES", "0")
        return server

    yield use
    for server in servers:
        server.__exit__(None, None, None)


def bench(directory: Path, *options: str, data: Sequence[Path] = ()) -> Result:
    return run(*arguments(directory, *options, data=data))


def arguments(directory: Path, *options: str, data: Sequence[Path] = ()) -> tuple[str, ...]:
    files = data or [write_locomo(directory)]
    return (
        *("bench", "answers", "--answerer", "openai:one", "--judge", "openai:two"),
        *("--output", str(directory / "answers.jsonl"), "--arms", "recollect,fts5"),
        *(word for file in files for word in ("--data", str(file))),
        *options,
    )


def shape(directory: Path, *options: str) -> dict[str, Any]:
    result = bench(directory, *options, "--json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def kept(directory: Path) -> list[dict[str, Any]]:
    lines = (directory / "answers.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_run_answers_judges_counts_and_keeps_everything(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    server = use_models(sensible)
    told = shape(tmp_path)
    (file,) = told["files"]
    ours, theirs = (
        {
            group: (found["mean"]["strict"], found["mean"]["generous"])
            for group, found in arm.items()
        }
        for arm in (file["arms"]["recollect"], file["arms"]["fts5"])
    )
    assert (ours["answerable"], theirs["answerable"]) == ((0.5, 1.0), (0.5, 0.5))
    assert ours["unanswerable"][0] == 1.0
    assert file["arms"]["recollect"]["unanswerable"]["questions"] == 1
    assert ours["temporal"][0] == 0.0
    generous = next(pair for pair in file["pairs"] if pair["verdict"] == "generous")
    assert (generous["only_first"], generous["only_second"], generous["p"]) == (1, 0, 1.0)
    assert told["is_complete"]
    answers = [line for line in kept(tmp_path) if line["kind"] == "answer"]
    assert {(line["arm"], line["category"]) for line in answers} == {
        (arm, category)
        for arm in ("recollect", "fts5")
        for category in ("single-hop", "temporal", "adversarial")
    }
    assert all(line["notes"] and line["model"] == "openai:one" for line in answers)
    assert told["spent"]["calls"] == len(server.requests)


def test_a_judge_sees_no_arm_no_notes_and_no_marks(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    server = use_models(sensible)
    bench(tmp_path)
    judged = [each for each in server.requests if is_judge(each)]
    assert judged
    for each in judged:
        seen = each.system + each.prompt
        assert not re.search(r"recollect|fts5|\[m\d|2023-05-08", seen, re.IGNORECASE)
    # What two arms answer alike is judged once.
    assert len(judged) == 4
    assert len({each.prompt for each in judged}) == 4


def test_the_table_says_arms_categories_and_chance(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    use_models(sensible)
    result = bench(tmp_path)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "locomo-dev.json"
    answerable = next(line for line in lines if line.startswith("answerable  "))
    assert answerable.split()[:5] == ["answerable", "recollect", "2", "0.500", "1.000"]
    assert any(line.split()[:3] == ["unanswerable", "recollect", "1"] for line in lines)
    assert any(line.startswith("recollect against fts5") for line in lines)
    assert lines[-1].startswith("6 of 6 answers judged; this run: 10 calls")
    assert "6 requests" in result.stderr


def test_a_second_run_asks_nothing_that_has_been_answered(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    server = use_models(sensible)
    first = shape(tmp_path)
    asked = len(server.requests)
    second = shape(tmp_path)
    assert len(server.requests) == asked
    assert second["files"] == first["files"]
    assert (second["plan"]["answers_kept"], second["spent"]["calls"]) == (6, 0)
    # Another budget makes other notes only where there is more to say.
    assert shape(tmp_path, "--budget", "2000")["spent"]["calls"] == 0
    assert shape(tmp_path, "--arms", "whole")["spent"]["calls"] > 0


def test_an_interrupted_run_goes_on_where_it_was(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    """A key that is refused half-way stops it; a line was cut off as well."""
    left = 5

    def refused_later(received: Received) -> Scripted:
        nonlocal left
        left -= 1
        return sensible(received) if left >= 0 else status(401, "no more")

    use_models(refused_later)
    result = bench(tmp_path, "--concurrency", "1")
    assert result.exit_code == 1
    assert "401" in result.stderr
    assert "3 of 6 answers judged" in result.stdout
    before = (tmp_path / "answers.jsonl").read_bytes()
    assert len(before.splitlines()) == 5
    (tmp_path / "answers.jsonl").write_bytes(before + b'{"kind": "answer", "key": "ab')
    server = use_models(sensible)
    told = shape(tmp_path)
    assert (tmp_path / "answers.jsonl").read_bytes().startswith(before + b'{"kind"')
    assert told["is_complete"]
    assert told["plan"]["answers_kept"] == 3
    assert len(kept(tmp_path)) == 5 + len(server.requests) == 10


def test_a_run_that_is_broken_off_by_hand_keeps_what_it_has(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    gate, asked = Gate(), []

    def held_later(received: Received) -> Scripted:
        asked.append(received)
        return sensible(received) if len(asked) < 4 else held(gate, answer(UNKNOWN))

    use_models(held_later)
    command = arguments(tmp_path, "--concurrency", "1")
    with started(*command) as running:
        assert gate.arrived.wait(60)
        running.send_signal(signal.SIGINT)
        assert running.wait(60) != 0
    before = kept(tmp_path)
    assert len(before) == 3
    use_models(sensible)
    assert shape(tmp_path)["is_complete"]
    assert kept(tmp_path)[:3] == before


def test_a_cap_is_never_exceeded_and_what_was_answered_is_kept(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_MODEL_OUTPUT_TOKENS_MAX", "64")
    server = use_models(sensible)
    result = bench(tmp_path, "--max-tokens", "1000", "--json")
    assert result.exit_code == 1
    assert "1,000 tokens" in json.loads(result.stderr)["error"]["message"]
    told = json.loads(result.stdout)
    assert not told["is_complete"]
    spent = told["spent"]
    assert 0 < spent["input_tokens"] + spent["output_tokens"] <= 1000
    assert len(kept(tmp_path)) == len(server.requests) < REQUESTS_OF_A_RUN
    assert shape(tmp_path)["is_complete"]


def test_a_cap_on_cost_goes_by_the_prices_of_each_model(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_MODEL_OUTPUT_TOKENS_MAX", "64")
    server = use_models(sensible)
    result = bench(tmp_path, "--max-cost", "1")
    assert result.exit_code == 1
    assert "--judge-price" in result.stderr
    prices = ("--answerer-price", "10", "50", "--judge-price", "1", "2")
    result = bench(tmp_path, *prices, "--max-cost", "0.011", "--json")
    assert (result.exit_code, "0.011" in result.stderr) == (1, True)
    assert 0 < json.loads(result.stdout)["spent"]["cost_micros"] <= 11_000
    assert server.requests
    # 100 tokens sent and 20 answered of each, as the server counts them.
    told = shape(tmp_path, *prices)
    answered = sum(line["kind"] == "answer" for line in kept(tmp_path))
    assert answered == 6
    costs = {(line["kind"], line["cost_micros"]) for line in kept(tmp_path)}
    assert costs == {("answer", 2000), ("verdict", 140)}
    assert told["is_complete"]


def test_a_dry_run_says_what_it_would_take_and_asks_nobody(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    server = use_models(sensible)
    result = bench(tmp_path, "--dry-run", "--answerer-price", "3", "15")
    assert result.exit_code == 0
    assert "6 answers to be had: 0 kept from before" in result.stdout
    assert "answerer: 6 requests" in result.stdout
    assert re.search(r"cost 0\.\d+ at most", result.stdout)
    assert "judge: 6 requests" in result.stdout
    assert "cost unknown" in result.stdout
    assert not server.requests
    assert not (tmp_path / "answers.jsonl").exists()
    bench(tmp_path)
    result = bench(tmp_path, "--dry-run", "--json")
    plan = json.loads(result.stdout)
    assert (plan["answers_kept"], plan["verdicts_kept"]) == (6, 6)
    assert plan["answerer_at_most"]["calls"] == plan["judge_at_most"]["calls"] == 0


def test_a_broken_answer_costs_one_trial_and_is_asked_again_by_the_next_run(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    def broken(received: Received) -> Scripted:
        if not is_judge(received) and question_of(received) == "What did Ana adopt?":
            return cut_at_length("A grey")
        return sensible(received)

    use_models(broken)
    told = shape(tmp_path)
    assert [each["question"] for each in told["failed"]] == ["conv-1-0", "conv-1-0"]
    assert (told["judged"], told["is_complete"]) == (4, False)
    assert told["files"][0]["arms"]["recollect"]["answerable"]["questions"] == 1
    use_models(sensible)
    told = shape(tmp_path)
    assert (told["failed"], told["judged"]) == ([], 6)


def test_a_verdict_that_cannot_be_read_is_asked_for_once_more(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    seen: dict[str, int] = {}

    def unsure(received: Received) -> Scripted:
        if not is_judge(received):
            return sensible(received)
        seen[received.prompt] = seen.get(received.prompt, 0) + 1
        if "greyhound" in received.prompt:
            return answer("It is right, I think.")
        if seen[received.prompt] == 1:
            return verdict("splendid")
        return fenced(verdict("right"))

    use_models(unsure)
    told = shape(tmp_path)
    assert {each["question"] for each in told["failed"]} == {"conv-1-0"}
    assert "not a verdict" in told["failed"][0]["reason"]
    assert told["judged"] == 4
    assert set(seen.values()) == {2, 4}  # both arms tried the one that is never readable


def test_the_whole_of_a_longmemeval_question_are_its_own_sessions(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    server = use_models(sensible)
    data = [write_longmemeval(tmp_path)]
    assert bench(tmp_path, "--arms", "whole", data=data).exit_code == 0
    asked = next(
        each
        for each in server.requests
        if not is_judge(each) and question_of(each) == "Which tea do I like best?"
    )
    assert "My favourite tea is oolong." in asked.prompt
    assert "How do I boil an egg?" in asked.prompt
    assert "bicycle" not in asked.prompt
    assert "Today is Tuesday, 2023-05-30." in asked.prompt


def test_what_is_wrong_is_said_before_anybody_is_asked(
    tmp_path: Path, use_models: Callable[[Script], ScriptedServer]
) -> None:
    server = use_models(sensible)
    result = bench(tmp_path, "--arms", "recollect,magic")
    assert result.exit_code == 2
    assert "use recollect, fts5, neighbours, whole" in result.stderr
    (tmp_path / "answers.jsonl").write_text("some notes of mine\n")
    result = bench(tmp_path)
    assert result.exit_code == 1
    assert "line 1 of" in result.stderr
    assert (tmp_path / "answers.jsonl").read_text() == "some notes of mine\n"
    assert not server.requests

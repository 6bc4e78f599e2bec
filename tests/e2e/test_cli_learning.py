"""From a session to what was learned, on the command line: by rules, by a model; and forgotten.

The model is scripted and answers over real HTTP.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recollect
from recollect_conformance.scripted import KEY, ScriptedServer, status
from tests.e2e.command_line import ENTRY_POINT, run, run_json
from tests.scripted_answers import OTHERS_BY_RULES, extracted, fact

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
KEYED = "telegram:42:main"
ANSWER = {
    "raw_memory": "## Home\noutcome: success\n- Ana lives in Lisbon.",
    "rollout_summary": "Ana told where she lives.",
    "rollout_slug": "ana-lives-in-lisbon",
    "facts": [
        {
            "content": "Ana's home is Lisbon.",
            "kind": "detail",
            "records": [1],
            "quote": "I live in Lisbon.",
            "topic": "ana:home-city",
            "supersedes": [],
            "until": None,
        }
    ],
}


def say(text: str, *arguments: str, key: str = KEYED) -> str:
    stored = run_json("append", key, text, "--name", "Ana", *arguments)
    return str(stored["session"]["id"])


@pytest.fixture
def use_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ScriptedServer]]:
    """Let the settings name a scripted model from now on."""
    servers: list[ScriptedServer] = []

    def use(script: Any, **settings: str) -> ScriptedServer:
        server = ScriptedServer(script)
        server.__enter__()
        servers.append(server)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        given = {"model": "openai:scripted", "model_base_url": server.url, "model_retries": "0"}
        for name, value in (given | OTHERS_BY_RULES | settings).items():
            monkeypatch.setenv(f"RECOLLECT_{name.upper()}", value)
        return server

    yield use
    for server in servers:
        server.__exit__(None, None, None)


# work, by rules


def test_work_says_what_was_learned(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    say("I live in Lisbon. I'm vegetarian.", *store)
    say("Hello!", *store, key="other")
    result = run("work", "--all", *store)
    learned = "Processed 2 sessions, 2 records: 2 new facts; 0 failed"
    assert result.stdout == f"{learned}; 1 new generation of memory.\n"
    say("I'm allergic to penicillin.", *store)
    report = run_json("work", "--all", *store)
    assert (report["processed"], report["new_facts"], report["postponed"]) == (1, 1, 0)
    for key in ("third", "fourth"):
        say("I live in Lisbon. I have a dog.", *store, key=key)
    report = run_json("work", "--all", *store)
    assert (report["processed"], report["new_facts"]) == (2, 1)  # one fact that two sessions say


def test_where_all_was_learned_from_nobody_is_sent_to_learn_from_it(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    say("Hello!", *store)
    assert "recollect work --all" in run("facts", *store).stderr
    run("work", "--all", *store)
    said = run("facts", *store).stderr
    assert "nothing new to learn from" in said
    assert "--all" not in said


def test_a_session_is_shown_with_what_it_came_to_beside_its_records(
    durable_store_url: str,
) -> None:
    store = ("--store", durable_store_url)
    session_id = say("I live in Lisbon. I'm vegetarian.", *store)
    say("Hello?", *store)
    run("work", "--all", *store)
    shown = run("sessions", "show", KEYED, *store).stdout
    assert re.search(rf"^1–2 +extracted +1 +1 +– +– +{TIME} +rules/3 +–$", shown, re.MULTILINE), (
        shown
    )
    assert re.search(rf"^Extraction  by rules/3, pass 1, records 1–2, {TIME}$", shown, re.MULTILINE)
    assert re.search(r"^  Summary\n +\S", shown, re.MULTILINE)
    assert re.search(r"^  Memory\n +\S", shown, re.MULTILINE)
    assert re.search(
        r"^Facts  2\n.*\n    Ana \w.*\n    from telegram\S+, record 1$", shown, re.MULTILINE
    ), shown
    assert "Model calls" not in shown

    shape = run_json("sessions", "show", session_id, *store)
    assert {fact["content"] for fact in shape["facts"]} == {
        "Ana lives in Lisbon.",
        "Ana is vegetarian.",
    }
    extraction = shape["extraction"]
    assert (extraction["extractor"], extraction["pass"], extraction["upto"]) == ("rules/3", 1, 2)
    assert extraction["raw_memory"]
    assert extraction["rollout_summary"]
    assert extraction["rollout_slug"]
    (dealt_with,) = shape["ranges"]
    assert (dealt_with["outcome"], dealt_with["extractor"]) == ("extracted", "rules/3")
    assert (dealt_with["attempt"], dealt_with["pass"]) == (1, 1)
    assert shape["calls"] == []
    assert run_json("sessions", "show", KEYED, *store) == shape


def test_a_session_nothing_was_learned_from_says_so() -> None:
    say("Hello!")
    shown = run("sessions", "show", KEYED).stdout
    assert "nothing of it yet; do it: recollect work --all" in shown
    run("work", "--all")
    shown = run("sessions", "show", KEYED).stdout
    assert re.search(r"^1–1 +no_output ", shown, re.MULTILINE)
    assert "Extraction  none: nothing was learned from it" in shown
    assert "Facts  none" in shown
    shape = run_json("sessions", "show", KEYED)
    assert (shape["extraction"], shape["facts"]) == (None, [])


def test_the_facts_of_a_long_session_are_shown_up_to_a_limit() -> None:
    for n, place in enumerate(("Lisbon", "Porto", "Braga", "Faro"), start=1):
        say(f"I visited {place} last week. My sister Rita{'a' * n} lives in {place}.")
    run("work", "--all")
    shape = run_json("sessions", "show", KEYED)
    count = len(shape["facts"])
    assert count > 2
    shown = run("sessions", "show", KEYED, "--limit", "2").stdout
    assert f"… and {count - 2} more (--limit)" in shown
    assert re.findall(r"^    from .*, record (\d)$", shown, re.MULTILINE) == ["1", "1"]


@pytest.mark.usefixtures("empty_store")
def test_an_unknown_session_exits_1_and_an_ambiguous_key_asks_for_the_agent() -> None:
    missing = run("sessions", "show", "nobody")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "no session 'nobody' in space 'default'; recollect sessions lists them" in missing.stderr
    for agent in ("assistant", "coder"):
        say("I live in Lisbon.", "--agent", agent, key="k")
    assert run("sessions", "show", "k").exit_code == 1
    assert run_json("sessions", "show", "k", "--agent", "coder")["agent"] == "coder"


# work, by a model


def test_a_new_pass_by_a_model_replaces_what_the_rules_learned(
    durable_store_url: str, use_model: Callable[..., ScriptedServer]
) -> None:
    store = ("--store", durable_store_url)
    say("I live in Lisbon.", *store)
    run("work", "--all", *store)
    assert [fact["content"] for fact in run_json("facts", *store)] == ["Ana lives in Lisbon."]
    server = use_model(lambda _: ANSWER, model_input_price="10000", model_output_price="20000")
    assert run("work", *store).stdout.startswith("Processed 0 sessions")
    again = run("work", "--again", *store)
    assert again.exit_code == 0, again.output
    assert "Processed 1 session, 1 record:" in again.stdout
    assert len(server.requests) == 1
    assert [fact["content"] for fact in run_json("facts", *store)] == ["Ana's home is Lisbon."]

    shown = run("sessions", "show", KEYED, *store).stdout
    by = "openai:scripted/prompt-3"
    assert re.search(
        rf"^1–1 +extracted +2 +1 +120 +1\.4000 +{TIME} +{by} +–$", shown, re.MULTILINE
    ), shown
    assert f"Extraction  by {by}, pass 2" in shown
    assert "ana-lives-in-lisbon" in shown
    assert re.search(rf"{TIME} +extract +answered +1 +100 +20 +1\.4000 +openai:scripted", shown)
    (call,) = run_json("sessions", "show", KEYED, *store)["calls"]
    assert (call["input_tokens"], call["output_tokens"]) == (100, 20)
    assert (call["cost_micros"], call["outcome"]) == (1_400_000, "answered")

    words = run("status", *store).stdout
    assert re.search(rf"{KEYED} .*\n +succeeded {TIME}, attempt 1\n", words), words
    assert f"    1 fact by {by}; 1 call, 120 tokens, cost 1.4000\n" in words
    assert re.search(
        r"^Spent    today \(UTC\): 1 call, 120 tokens, cost 1\.4000\n"
        r"  each space may use 5,000 calls and 5,000,000 tokens a day$",
        words,
        re.MULTILINE,
    ), words
    took = "1 call, 120 tokens, cost 1.4000"
    assert re.search(rf"^  extraction +openai:scripted +{took} +{took}$", words, re.MULTILINE)
    assert f"\n  extraction: {took}\n" in run("sessions", "show", KEYED, *store).stdout
    for job in ("memory-agent", "consolidation"):
        assert re.search(rf"^  {job} +rules +no model calls +no model calls$", words, re.MULTILINE)
    assert "Memory   changed since it was consolidated: 0 spaces\n  default: generation 2," in words
    shape = run_json("status", *store)
    assert {use["job"]: use["in_all"]["calls"] for use in shape["models"]}["extraction"] == 1
    assert shape["spent_today"]["cost_micros"] == 1_400_000
    assert (shape["sessions"][0]["outcome"], shape["sessions"][0]["facts"]) == ("succeeded", 1)
    assert shape["caps"] == {"tokens_per_day": 5_000_000, "calls_per_day": 5000}


def test_one_session_can_be_gone_through_again_and_the_others_stay(
    use_model: Callable[..., ScriptedServer],
) -> None:
    say("I live in Lisbon.")
    say("I live in Porto.", key="other")
    run("work", "--all")
    server = use_model(lambda _: ANSWER)
    report = run_json("work", "--again", "--session", KEYED)
    assert (report["processed"], len(server.requests)) == (1, 1)
    found = {
        s["key"]: run_json("sessions", "show", s["id"])
        for s in run_json("sessions")
        if s["remembered"]
    }
    extractors = {key: shape["extraction"]["extractor"] for key, shape in found.items()}
    assert extractors == {KEYED: "openai:scripted/prompt-3", "other": "rules/3"}
    assert "cost unknown" in run("status").stdout


def test_a_session_that_was_never_processed_cannot_be_gone_through_again() -> None:
    say("I live in Lisbon.")
    result = run("work", "--again", "--session", KEYED)
    assert (result.exit_code, "nothing to go through again" in result.stderr) == (0, True)
    missing = run("work", "--again", "--session", "nobody")
    assert (missing.exit_code, "no session 'nobody'" in missing.stderr) == (1, True)


def test_work_for_one_space_leaves_the_others_as_they_are() -> None:
    for space in ("a", "b"):
        say("I live in Lisbon.", "--space", space)
    report = run_json("work", "--all", "--space", "a")
    assert (report["processed"], report["new_facts"], report["still_marked"]) == (1, 1, 0)
    assert run_json("facts", "--space", "b") == []
    assert run_json("status", "--space", "b")["waiting_count"] == 1
    assert run_json("work", "--all")["processed"] == 1


def test_again_takes_one_space_when_it_is_named(use_model: Callable[..., ScriptedServer]) -> None:
    for space in ("a", "b"):
        say("I live in Lisbon.", "--space", space)
    run("work", "--all")
    server = use_model(lambda _: ANSWER)
    assert run_json("work", "--again", "--space", "a")["processed"] == 1
    assert len(server.requests) == 1
    assert run_json("facts", "--space", "b")[0]["content"] == "Ana lives in Lisbon."


def test_a_failed_session_says_when_it_is_tried_again_and_why(
    use_model: Callable[..., ScriptedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_BACKOFF_SECONDS", "86400")
    monkeypatch.setenv("RECOLLECT_BACKOFF_SECONDS_MAX", "86400")
    say("I live in Lisbon.")
    use_model(lambda _: "no JSON at all")
    failed = run("work", "--all")
    assert failed.exit_code == 1
    assert "1 failed" in failed.stdout
    assert "why: recollect status" in failed.stderr
    words = run("status").stdout
    assert re.search(
        rf"{KEYED} .*\n +failed, attempt 1; 1 new record\n.*\n"
        rf" +next try {TIME}; last error: InvalidOutput: ",
        words,
    ), words
    (progress,) = run_json("status")["sessions"]
    assert (progress["outcome"], progress["attempt"], progress["state"]) == ("failed", 1, "due")
    assert "InvalidOutput" in progress["last_error"]
    assert run_json("facts") == []


def test_facts_that_were_dropped_or_mended_are_told(
    use_model: Callable[..., ScriptedServer],
) -> None:
    lives = "Ana's home is Lisbon."
    use_model([extracted(fact(lives, [1], kind="Detail"), fact(lives, [7]), {"fact": lives})])
    session_id = say("I live in Lisbon.")
    run("work", "--all")
    words = "2 facts dropped, 1 fact mended"
    assert re.search(rf"\n +1 fact by openai:\S+; {words}; 1 call, ", run("status").stdout)
    assert re.search(rf"\n1–1 +extracted .+ {words}\n", run("sessions", "show", KEYED).stdout)
    counts = {"dropped": 2, "mended": 1}
    (progress,) = run_json("status")["sessions"]
    assert (progress["session_id"], progress["faults"]) == (session_id, counts)
    assert [each["faults"] for each in run_json("sessions", "show", KEYED)["ranges"]] == [counts]


def test_a_provider_that_is_down_pauses_and_fails_nothing(
    use_model: Callable[..., ScriptedServer],
) -> None:
    say("I live in Lisbon.")
    use_model(lambda _: status(503, "overloaded"))
    waiting = run("work", "--all")
    assert waiting.exit_code == 0
    assert "0 failed" in waiting.stdout
    (paused,) = run_json("status")["paused"]
    assert "ModelUnavailable" in str(paused)


# what is paused


def test_a_spending_cap_is_a_visible_pause_with_the_way_out(
    durable_store_url: str,
    use_model: Callable[..., ScriptedServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """N4: caps per day, a visible pause when one is hit."""
    store = ("--store", durable_store_url)
    say("I live in Lisbon.", *store)
    server = use_model(lambda _: ANSWER, spend_calls_per_day="0")
    result = run("work", "--all", *store)
    assert (result.exit_code, server.requests) == (0, [])
    assert "0 failed; 1 postponed." in result.stdout
    assert "SpendCapReached" in result.stderr
    assert "What is postponed has not failed: it waits for what is said above" in result.stderr
    assert "1 session is still marked; why: recollect status" in result.stderr

    words = run("status", *store).stdout
    paused = rf"Paused +1 session, until {TIME}\n  SpendCapReached: .*raise spend_\*_per_day.*\n"
    assert re.search(rf"{paused}  Fix that, then .*: recollect retry --store .* --all\n", words)
    assert re.search(rf"due: paused; next try: {TIME}\n", words)
    assert words.count("SpendCapReached") == 1
    shape = run_json("status", *store)
    (job,) = shape["paused"]
    assert (job["why"], job["failures"]) == ("paused", 0)
    assert job["next_attempt_at"] > shape["at"]

    monkeypatch.setenv("RECOLLECT_SPEND_CALLS_PER_DAY", "10")
    assert run_json("work", *store)["processed"] == 0
    assert run("retry", "--all", *store).stdout == "1 job is due again.\n"
    assert run_json("work", *store)["processed"] == 1
    assert "Paused" not in run("status", *store).stdout


def test_a_refused_key_pauses_everything_and_says_so(
    use_model: Callable[..., ScriptedServer],
) -> None:
    say("I live in Lisbon.")
    say("I live in Porto.", key="other")
    use_model(lambda _: status(401, "no such key"))
    assert run_json("work", "--all")["postponed"] == 2
    words = run("status").stdout
    assert re.search(rf"Paused +2 sessions, until {TIME}\n  ModelDenied: .*check the key", words)
    use_model(lambda _: ANSWER)
    assert run_json("retry", "--space", "default")["revived"] == 2
    assert run_json("work")["processed"] == 2


def test_a_pass_that_is_asked_for_is_shown_until_it_is_done(
    use_model: Callable[..., ScriptedServer],
) -> None:
    session_id = say("I live in Lisbon.")
    run("work", "--all")
    use_model(lambda _: status(401, "no such key"))
    assert run_json("work", "--again")["postponed"] == 1
    words = run("status").stdout
    again = rf"Again +1 session to be gone through again\n  {session_id}\n    due: paused; "
    assert re.search(again, words), words
    (job,) = run_json("status")["passes"]
    assert (job["kind"], job["key"]) == ("extract-again", session_id)


def test_many_sessions_are_counted_where_they_are_not_listed() -> None:
    for n in range(4):
        say(f"I live in Lisbon, number {n}.", key=f"k{n}")
    run("work", "--all")
    say("Hello!", key="fresh")
    words = run("status", "--limit", "1").stdout
    assert re.search(r"^Sessions 1 of 5; the others: 4 succeeded \(--limit\)$", words, re.MULTILINE)
    shape = run_json("status", "--limit", "1")
    assert (len(shape["sessions"]), shape["sessions_not_listed"]) == (1, {"succeeded": 4})


def test_status_fits_a_terminal(use_model: Callable[..., ScriptedServer]) -> None:
    use_model(lambda _: ANSWER, model_input_price="2.5")
    say("I live in Lisbon.")
    run("work", "--all")
    say("I live in Porto.", key="other")
    run("sweep")
    for line in run("status").stdout.splitlines():
        assert len(line) <= 100 or line.startswith("Store"), line


# the dry run


def test_a_dry_run_by_rules_sends_and_changes_nothing() -> None:
    say("I live in Lisbon.")
    before = run_json("sessions")
    result = run("work", "--dry-run", "--all")
    assert result.exit_code == 0
    assert "Extractor  rules/3\n" in result.stdout
    assert re.search(rf"{KEYED} \(space default\)\n    records 1–1\n", result.stdout)
    assert "Would read 1 session, 1 record. Nothing would be sent to a model." in result.stdout
    assert run_json("sessions") == before
    assert run("work", "--dry-run").stdout.endswith(
        "Would read 0 sessions, 0 records. Nothing would be sent to a model.\n"
    )


def test_a_dry_run_says_what_would_be_sent_and_what_it_may_cost(
    durable_store_url: str, use_model: Callable[..., ScriptedServer]
) -> None:
    """N4: a dry run."""
    store = ("--store", durable_store_url)
    say("I live in Lisbon.", *store)
    say("I live in Porto.", *store, key="other")
    server = use_model(lambda _: ANSWER)
    result = run("work", "--dry-run", "--all", *store)
    assert re.search(r"records 1–1; at most 1 call, [\d,]+ tokens, cost unknown\n", result.stdout)
    total = r"Would read 2 sessions, 2 records, and take at most 2 calls, ([\d,]+) tokens, cost unk"
    found = re.search(total, result.stdout)
    assert found is not None, result.stdout
    assert "set model_input_price and model_output_price" in result.stdout
    assert "I live in Lisbon." not in result.stdout

    use_model(lambda _: ANSWER, model_input_price="2", model_output_price="2")
    priced = run("work", "--dry-run", "--all", *store).stdout
    tokens = int(found[1].replace(",", ""))
    assert f"take at most 2 calls, {tokens:,} tokens, cost {tokens * 2 / 1e6:.4f}." in priced
    assert "model_input_price" not in priced
    shape = run_json("work", "--dry-run", "--all", *store)
    assert (shape["extractor"], shape["records"]) == ("openai:scripted/prompt-3", 2)
    assert (shape["at_most"]["tokens"], shape["at_most"]["cost_micros"]) == (tokens, tokens * 2)
    assert {each["key"] for each in shape["sessions"]} == {KEYED, "other"}
    assert "prompt" not in shape["sessions"][0]
    assert (server.requests, run_json("facts", *store)) == ([], [])
    assert run_json("status", *store)["spent_today"]["calls"] == 0

    assert "Not included" not in priced
    use_model(lambda _: ANSWER, memory_agent_model="openai:filing")
    beside = run("work", "--dry-run", "--all", *store).stdout
    assert "Not included: the memory-agent (openai:filing)." in beside


def test_a_dry_run_shows_the_prompts_when_asked_and_no_secret_in_them(
    use_model: Callable[..., ScriptedServer],
) -> None:
    secret = "".join(("ghp", "_", "A1b2C3d4E5f6" * 3))
    say(f"Always log in with {secret}.")
    use_model(lambda _: ANSWER)
    result = run("work", "--dry-run", "--all", "--show-prompts")
    assert "| Always log in with [redacted:" in result.stdout
    assert secret not in result.stdout
    shape = run_json("work", "--dry-run", "--all", "--show-prompts")
    assert "[redacted:" in shape["sessions"][0]["prompt"]


def test_a_dry_run_of_a_new_pass_can_be_about_one_session_or_one_space(
    use_model: Callable[..., ScriptedServer],
) -> None:
    say("I live in Lisbon.")
    say("I live in Porto.", key="other")
    say("I live in Faro.", "--space", "b")
    run("work", "--all")
    assert run_json("work", "--dry-run")["sessions"] == []
    use_model(lambda _: ANSWER)
    assert run_json("work", "--dry-run", "--again")["at_most"]["calls"] == 3
    assert run_json("work", "--dry-run", "--again", "--space", "b")["at_most"]["calls"] == 1
    one = run_json("work", "--dry-run", "--again", "--session", KEYED)
    assert [each["key"] for each in one["sessions"]] == [KEYED]


@pytest.mark.parametrize(
    "arguments",
    [
        ("work", "--show-prompts"),
        ("work", "--session", "k"),
        ("work", "--dry-run", "--session", "k"),
        ("forget",),
        ("forget", "--yes"),
        ("forget", "--session", "k"),
        ("forget", "--session", "k", "--everything", "--yes"),
        ("forget", "--document", "a/../b", "--yes"),
        ("sessions", "show"),
        ("sessions", "show", "k", "--limit", "-1"),
    ],
)
def test_wrong_usage_exits_2_and_touches_no_store(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert "Error: " in result.stderr
    assert not (tmp_path / "data").exists()


# forget


def test_a_forgotten_session_leaves_a_receipt_and_nothing_else(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    session_id = say("I live in Lisbon. I'm vegetarian.", *store)
    say("I'm vegetarian.", *store, key="other")
    run("work", "--all", *store)
    result = run("forget", "--session", KEYED, "--yes", *store)
    assert result.exit_code == 0, result.output
    assert f"Forgot session {session_id} ({KEYED}, assistant, 1 record).\n" in result.stdout
    erased = (
        "Erased: 1 record, 1 fact that rested on it alone, 2 sources, 1 extraction, 0 summaries"
    )
    assert erased in result.stdout
    assert [fact["content"] for fact in run_json("facts", *store)] == ["Ana is vegetarian."]
    assert run_json("history", KEYED, *store) == []
    shown = run("sessions", "show", session_id, *store).stdout
    assert "forgotten on 2" in shown
    assert not {"Records", "Cursor", "Extraction", "skipped"} & set(shown.split())
    assert [row["forgotten_at"] is None for row in run_json("sessions", *store)] == [True, False]
    status = run("status", *store).stdout.partition(session_id)[2].splitlines()
    assert status[1].strip().startswith("forgotten on 2")
    receipt = run_json("forget", "--session", session_id, "--yes", *store)
    assert (receipt["session_id"], receipt["records"], receipt["facts"]) == (session_id, 0, 0)


def test_records_facts_documents_sources_agents_and_everything_can_be_forgotten() -> None:
    session_id = say("I live in Lisbon. I'm vegetarian.")
    say("I'm vegetarian.", key="other")
    run("docs", "write", "notes/ana", "Ana")
    run("work", "--all")
    [fact] = [each for each in run_json("facts") if "Lisbon" in each["content"]]
    result = run("forget", "--fact", fact["id"], "--yes")
    assert f"Forgot fact {fact['id']} (Ana lives in Lisbon.).\nErased: 0 records" in result.stdout
    result = run("forget", "--record", f"{session_id}:1", "--yes")
    assert f"Forgot record {session_id}:1 (user: I live in Lisbon." in result.stdout
    [record] = run_json("history", KEYED)
    assert (record["content"], record["metadata"]) == ("", {"forgotten": True})
    receipt = run_json("forget", "--document", "notes", "--yes")
    assert (receipt["path"], receipt["documents"]) == ("notes", 2)
    receipt = run_json("forget", "--source", "cli", "--yes")
    assert (receipt["source"], receipt["sessions"], receipt["facts"]) == ("cli", 2, 1)
    receipt = run_json("forget", "--agent-sessions", "assistant", "--yes")
    assert (receipt["agent_id"], receipt["sessions"]) == ("/user/assistant", 0)
    result = run("forget", "--everything", "--yes")
    assert "Forgot everything in space default: sessions, facts and documents." in result.stdout
    assert run_json("sessions") == []


def test_what_is_forgotten_is_not_printed_as_it_was_and_not_stored_again_under_its_key() -> None:
    """P11, P8: a secret is redacted as a whole, also where the line is cut in the middle of it."""
    secret = "".join(("ghp", "_", "A1b2C3d4E5f6" * 3))
    said = f"This is the token that I have to use from now on: {secret}."
    session_id = say(said, "--key", "u1")
    result = run("forget", "--record", f"{session_id}:1", "--yes")
    assert "(user: This is the token" in result.stdout
    assert secret[:8] not in result.output
    again = run("append", KEYED, said, "--key", "u1")
    assert (again.exit_code, again.stdout) == (0, "")
    assert "Forgotten, and not stored again under this key: 1 message." in again.stderr
    [record] = run_json("history", KEYED)
    assert record["content"] == ""


def test_files_that_could_not_be_removed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P11: nobody takes for erased what is not."""
    monkeypatch.setenv("RECOLLECT_MEMORIES_ROOT", str(tmp_path / "published"))
    session_id = say("I live in Lisbon.")
    kept = tmp_path / "published" / ".default.recollect-1-edited"
    (tmp_path / "elsewhere").mkdir()
    kept.parent.mkdir()
    kept.symlink_to(tmp_path / "elsewhere")
    receipt = run_json("forget", "--record", f"{session_id}:1", "--yes")
    assert (receipt["is_complete"], receipt["left"]) == (False, [str(kept)])
    result = run("forget", "--everything", "--yes")
    assert f"may still say it: {kept}." in result.stderr


@pytest.mark.parametrize("pages", ["keep", "erase"])
def test_pages_that_rest_on_a_forgotten_fact_are_named_or_erased(pages: str) -> None:
    with recollect.open() as memory:
        space = memory.space()
        fact = space.facts.add("Ana keeps three falcons.").id
        space.documents.write("notes/ana", "She keeps falcons.", facts=[fact])
        space.documents.write("notes/birds", "Ana keeps three falcons, I hear.")
    result = run("forget", "--fact", fact, "--pages", pages, "--yes")
    assert ("may still say it: ~/memory/notes/ana." in result.stderr) is (pages == "keep")
    assert "Uses the same words, so check it: ~/memory/notes/birds." in result.stderr
    left = {node["path"] for node in run_json("docs", "tree", "notes")}
    assert ("~/memory/notes/ana" in left) is (pages == "keep")


@pytest.mark.parametrize(
    "what", [("--record", "nobody:1"), ("--fact", "x"), ("--document", "x"), ("--source", "x")]
)
def test_what_is_not_there_cannot_be_forgotten(what: tuple[str, str]) -> None:
    say("I live in Lisbon.")
    result = run("forget", *what, "--yes")
    assert (result.exit_code, result.stdout) == (1, "")


def test_an_unknown_session_cannot_be_forgotten() -> None:
    say("I live in Lisbon.", "--space", "alice")
    for arguments in (("nobody",), (KEYED, "--space", "bob")):
        result = run("forget", "--session", *arguments, "--yes")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "recollect sessions lists them" in result.stderr
    assert len(run_json("history", KEYED, "--space", "alice")) == 1


def test_a_key_is_its_current_session_and_the_others_are_named() -> None:
    with recollect.open() as memory:
        session = memory.space().session("k")
        session.append("user", "I live in Lisbon.")
        session.reset("over")
        session.append("user", "I live in Porto.")
    result = run("forget", "--session", "k", "--yes")
    assert "Earlier sessions of 'k' stay" in result.stderr
    assert [r["content"] for r in run_json("history", "k", "--rotations")] == ["I live in Lisbon."]


@pytest.mark.parametrize(("answer", "is_gone"), [(b"y\n", True), (b"n\n", False), (b"\n", False)])
def test_forgetting_asks_on_a_terminal(answer: bytes, is_gone: bool, tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    say("I live in Lisbon.", "--store", store)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY_POINT, "forget", "--session", KEYED, "--store", store],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        os.close(theirs)
        os.write(ours, answer)
        printed, asked = running.communicate(timeout=30)
    os.close(ours)
    assert b"This cannot be undone" in asked
    assert running.returncode == (0 if is_gone else 1)
    assert (b"Forgot session" in printed) is is_gone
    assert (run_json("history", KEYED, "--store", store) == []) is is_gone

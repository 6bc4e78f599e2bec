"""Consolidation on the command line: made, looked at, compared, restored, paused; both databases.

Holds G3, G7, G9, G11 as a person sees them, and the part of G10 that is said by `status`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import recollect
from recollect.clock import SystemClock
from recollect.leases import Leaseholder
from recollect.types.records import Mode
from recollect_conformance.scripted import KEY, Script, Scripted, ScriptedServer
from recollect_conformance.scripted_frames import Received
from tests.consolidated_spaces import handbook as handbook_of
from tests.consolidated_spaces import keeper, wants_summary
from tests.e2e.command_line import run, run_json

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
LISBON, PENICILLIN = "I live in Lisbon.", "I am allergic to penicillin."


def said(*arguments: str, exit_code: int = 0) -> str:
    """What a command says on standard output."""
    result = run(*arguments)
    assert result.exit_code == exit_code, result.output
    return result.stdout


def learn(key: str, text: str, *arguments: str) -> str:
    """A session that was distilled, and not consolidated; its id."""
    stored = run_json("append", key, text, "--name", "Ana", *arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECOLLECT_CONSOLIDATION", "off")
        store = arguments[:2] if arguments[:1] == ("--store",) else ()
        report = run_json("work", "--all", *store)
    assert (report["processed"], report["generations"]) == (1, 0)
    return str(stored["session"]["id"])


def handbook(*arguments: str) -> str:
    return said("docs", "read", "MEMORY", "--body", *arguments)


@pytest.fixture
def by_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], ScriptedServer]]:
    """Let a scripted model write the handbook from now on."""
    servers: list[ScriptedServer] = []

    def use(script: Script) -> ScriptedServer:
        server = ScriptedServer(script)
        server.__enter__()
        servers.append(server)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("RECOLLECT_CONSOLIDATION_MODEL", "openai:scripted")
        monkeypatch.setenv("RECOLLECT_MODEL_BASE_URL", server.url)
        monkeypatch.setenv("RECOLLECT_MODEL_RETRIES", "0")
        return server

    yield use
    for server in servers:
        server.__exit__(None, None, None)


def careless(received: Received) -> Scripted:
    """A model that claims what it has no source for, and has nothing to sum up."""
    return "" if wants_summary(received) else "- Ana likes rain."


# the next generation


def test_what_was_edited_in_the_files_is_a_change(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    learn("telegram:42:main", LISBON, *store)
    said("consolidate", *store)
    assert said("consolidate", *store).startswith("Nothing has changed in space 'default'")
    page = tmp_path / "memories" / "default" / "MEMORY.md"
    page.write_text(f"{page.read_text().rstrip()}\n- Ana is tall.\n")
    assert said("consolidate", *store).startswith("Published generation 2 of space 'default'")
    assert "Ana is tall." in handbook(*store)
    assert said("consolidate", *store).startswith("Nothing has changed in space 'default'")


def test_a_generation_goes_through_its_life_on_the_command_line(durable_store_url: str) -> None:
    """G3, G9: looked at first, made, added to; the one before is kept, and can be restored."""
    store = ("--store", durable_store_url)
    learn("telegram:42:main", LISBON, *store)
    made = said("consolidate", *store)
    assert made.startswith(
        "Published generation 1 of space 'default', by rules: 1 memory added, 0 retained,"
        " 0 removed; 4 documents changed, 4 in all.\n"
    )
    assert "Ana lives in Lisbon." in handbook(*store)

    learn("telegram:43:main", PENICILLIN, *store)
    assert "1 memory added, 1 retained, 0 removed" in said("consolidate", *store)
    listed = said("generations", *store)
    assert re.search(
        rf"^2 \(current\)  {TIME}  rules  1 +1 +0 +5, 4 changed  –$", listed, re.MULTILINE
    )
    assert re.search(rf"^1 +{TIME}  rules  1 +0 +0 +4, 4 changed  –$", listed, re.MULTILINE)
    changed = said("generations", "diff", "1", *store)
    assert "changed  ~/memory/MEMORY\n" in changed
    assert re.search(r"^\+- Ana is allergic to penicillin\.", changed, re.MULTILINE)
    assert re.search(r"^added    ~/memory/rollout_summaries/", changed, re.MULTILINE)

    restored = run("generations", "rollback", "1", *store)
    assert restored.stdout == "Restored generation 1 as generation 3: 4 documents changed.\n"
    assert "Keep it: recollect generations pause" in restored.stderr
    assert "penicillin" not in handbook(*store)
    assert run_json("generations", "show", *store)["restored_from"] == 1
    assert "say the same" in run("generations", "diff", "1", "3", *store).stderr


def test_what_a_dry_run_tells_is_what_comes_of_it(durable_store_url: str) -> None:
    """G3: with the keys of sessions and the reasons, and nothing is done."""
    store = ("--store", durable_store_url)
    kept = learn("kept", LISBON, *store)
    gone = learn("gone", PENICILLIN, *store)
    said("consolidate", *store)
    with recollect.open(durable_store_url) as memory:
        # Its process ends before it comes to the pages.
        ref = memory.space().session("gone").ref
        memory.store.sessions.set_mode(ref, Mode.DISABLED, memory.runtime.now())
    new = learn("new", "I prefer tea to coffee.", *store)

    told = said("consolidate", "--dry-run", *store)
    assert told.startswith(
        "Space 'default': generation 1.\nThe next one would be made of 2 memories, by rules.\n"
    )
    assert re.search(
        rf"^Added +1\n  {new}  new  \(new; last heard from {TIME}\)$", told, re.MULTILINE
    ), told
    assert f"Retained  1\n  {kept}  kept\n" in told
    assert f"Removed   1\n  {gone}  gone  (disabled: its session is disabled)\n" in told
    shape = run_json("consolidate", "--dry-run", *store)
    assert [each["key"] for each in shape["added"]] == ["new"]
    assert [(each["key"], each["because"]) for each in shape["removed"]] == [("gone", "disabled")]
    assert len(run_json("generations", *store)) == 1

    result = run_json("consolidate", *store)
    made = result["generation"]
    assert (made["added"], made["retained"], made["removed"]) == (1, 1, 1)
    assert made["changed"] == len(shape["documents"])
    assert "Nothing has changed in the 2 memories it is made of." in said(
        "consolidate", "--dry-run", *store
    )


def test_the_published_files_are_where_it_says(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    learn("k", LISBON, *store)
    told = said("consolidate", *store)
    directory = Path(re.search(r"^Files: (.+)$", told, re.MULTILINE)[1])  # type: ignore[index]
    assert directory == tmp_path / "memories" / "default"
    assert "Ana lives in Lisbon." in (directory / "MEMORY.md").read_text()
    assert run_json("consolidate", *store)["directory"] == str(directory)


def test_nothing_is_published_as_files_where_no_directory_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_MEMORIES_ROOT", "none")
    learn("k", LISBON)
    result = run_json("consolidate")
    assert (result["outcome"], result["directory"]) == ("published", None)
    assert not list(tmp_path.rglob("MEMORY.md"))


def test_what_has_not_changed_is_not_made_again(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    empty = run("consolidate", *store)
    assert empty.stdout == "Nothing was learned in space 'default' yet.\n"
    assert "recollect work --all" in empty.stderr
    learn("k", LISBON, *store)
    said("consolidate", *store)
    nothing = said("consolidate", *store)
    assert re.fullmatch(
        rf"Nothing has changed in space 'default' since generation 1, made {TIME}\.\n", nothing
    )
    looked = said("consolidate", "--now", *store)
    assert looked.endswith("is made of: generation 1 stays.\n")
    assert run_json("consolidate", *store)["outcome"] == "nothing to do"
    assert len(run_json("generations", "list", *store)) == 1


def test_a_worker_waits_for_the_cooldown_and_a_person_does_not(durable_store_url: str) -> None:
    """G10: status says until when."""
    store = ("--store", durable_store_url)
    learn("first", LISBON, *store)
    said("consolidate", *store)
    with recollect.open(durable_store_url) as memory:
        session = memory.space().session("second")
        session.append("user", PENICILLIN, name="Ana")
        session.sleep()
        memory.worker().drain()
    (space,) = run_json("status", *store)["consolidations"]
    assert space["waits_for"] == "cooldown"
    assert space["next_attempt_at"] == space["due_at"] is not None
    assert space["next"] == {"added": 1, "retained": 1, "removed": 0}
    words = said("status", *store)
    assert "Memory   changed since it was consolidated: 1 space\n  default: generation 1," in words
    assert "    the next one: 1 memory added, 1 retained, 0 removed\n" in words
    assert re.search(
        rf"not before {TIME}, .*at once: recollect consolidate .*--space default", words
    )
    assert "Published generation 2" in said("consolidate", *store)


def test_a_forgotten_session_leaves_the_next_generation_and_those_before(
    durable_store_url: str,
) -> None:
    """G11, G7: at once, whatever anything waits for, and also while the space is paused."""
    store = ("--store", durable_store_url)
    learn("gone", LISBON, *store)
    learn("kept", PENICILLIN, *store)
    said("consolidate", *store)
    said("forget", "--session", "gone", "--yes", *store)
    (made, before) = run_json("generations", *store)
    assert (made["added"], made["retained"], made["removed"]) == (0, 1, 1)
    assert (made["is_whole"], before["is_whole"]) == (True, False)
    assert "Lisbon" not in handbook(*store)
    assert "cannot be restored" in said("generations", *store)
    difference = run("generations", "diff", "1", *store)
    assert "Lisbon" not in difference.stdout
    assert "Parts of generation 1 are gone for good and not shown." in difference.stderr
    refused = run("generations", "rollback", "1", *store)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "forgotten since" in refused.stderr

    said("generations", "pause", *store)
    said("forget", "--session", "kept", "--yes", *store)
    assert "penicillin" not in handbook(*store)
    assert run_json("status", *store)["consolidations"][0]["waits_for"] == "paused"


def test_a_space_is_consolidated_alone(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    learn("k", LISBON, *store, "--space", "alice")
    learn("k", PENICILLIN, *store, "--space", "bob")
    assert "of space 'alice'" in said("consolidate", *store, "--space", "alice")
    assert "penicillin" not in handbook(*store, "--space", "alice")
    none = run("generations", *store, "--space", "bob")
    assert (none.exit_code, none.stdout) == (0, "")
    assert "No generation in space 'bob' yet. Make one: recollect consolidate" in none.stderr
    spaces = run_json("status", *store)["consolidations"]
    assert [(each["space"], each["generation"]) for each in spaces] == [("alice", 1), ("bob", 0)]
    (shown,) = run_json("status", *store, "--limit", "1")["consolidations"]
    assert shown["space"] == "alice"
    assert "  … and more (--limit)\n" in said("status", *store, "--limit", "1")


# who else has a say


def test_it_says_when_somebody_else_is_at_it(durable_store_url: str) -> None:
    """G1."""
    store = ("--store", durable_store_url)
    learn("k", LISBON, *store)
    with recollect.open(durable_store_url) as memory:
        other = Leaseholder(
            memory.store, memory.settings.lease_policy, SystemClock(), owner="other"
        )
        assert other.claim_consolidation("default") is not None
        told = said("consolidate", *store)
        assert told.startswith("Somebody else is consolidating space 'default' right now;")
        assert "the next one is being made" in said("status", *store)
    assert run_json("generations", *store) == []


def test_a_paused_space_stays_as_it_is_until_it_is_resumed(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    learn("k", LISBON, *store)
    assert re.fullmatch(
        rf"Consolidation of space 'default' is paused since {TIME}\.\n",
        said("generations", "pause", *store),
    )
    for arguments in ((), ("--now",)):
        refused = run("consolidate", *arguments, *store)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "is paused; resume it: recollect generations resume" in refused.stderr
    assert re.search(rf"paused since {TIME}; resume it: recollect gener", said("status", *store))
    assert run_json("work", *store)["generations"] == 0
    resumed = run("generations", "resume", *store)
    assert resumed.stdout == "Consolidation of space 'default' is resumed.\n"
    assert "Something changed meanwhile. Now: recollect consolidate" in resumed.stderr
    assert said("generations", "resume", *store).endswith("was not paused.\n")
    assert run_json("consolidate", *store)["outcome"] == "published"
    assert run_json("generations", "pause", *store)["waits_for"] == "paused"
    assert run_json("generations", "resume", *store)["waits_for"] == "nothing changed"


def test_it_is_made_by_hand_where_workers_leave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    learn("k", LISBON)
    monkeypatch.setenv("RECOLLECT_CONSOLIDATION", "off")
    assert "workers do not consolidate here (consolidation = off)" in said("status")
    assert run_json("work")["generations"] == 0
    assert run_json("consolidate")["outcome"] == "published"


# by a model


def test_a_model_is_named_and_its_note_and_cost_are_kept(
    by_model: Callable[[Script], ScriptedServer],
) -> None:
    server = by_model(keeper)
    learn("k", LISBON)
    told = said("consolidate", "--dry-run")
    assert "made of 1 memory, by openai:scripted" in told
    assert "which was not asked.\n" in told
    assert server.requests == []
    assert "generation 1 of space 'default', by openai:scripted" in said("consolidate")
    shown = said("generations", "show")
    assert re.search(r"^Spent +\d calls, \d+ tokens", shown, re.MULTILINE), shown
    assert re.search(r"^Note +\d sections written; 0 left as they were\.$", shown, re.MULTILINE), (
        shown
    )


def test_a_failure_is_told_and_waits_unless_it_is_wanted_now(
    by_model: Callable[[Script], ScriptedServer],
) -> None:
    """G9, G10: the generation before stays, and status says when it is tried again."""
    learn("first", LISBON)
    said("consolidate")
    before = handbook()
    learn("second", PENICILLIN)
    server = by_model(careless)
    failed = run("consolidate")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "It failed; generation 1 stays.\n" in failed.stderr
    assert "Error: InvalidOutput: " in failed.stderr
    assert "recollect consolidate --now" in failed.stderr
    assert handbook() == before
    words = said("status")
    assert re.search(rf"backing off; next try: {TIME}; at once: .* --now\n", words)
    assert "failed 1 x; last error: InvalidOutput" in words

    asked = len(server.requests)
    waiting = run("consolidate")
    assert (waiting.exit_code, len(server.requests)) == (1, asked)
    assert "It failed before, and waits" in waiting.stderr
    assert run("consolidate", "--now", "--json").exit_code == 1
    assert len(server.requests) > asked
    by_model(keeper)
    assert run_json("consolidate", "--now")["outcome"] == "published"
    assert "last error" not in said("status")


def test_a_first_generation_that_the_model_could_not_make_says_so(
    by_model: Callable[[Script], ScriptedServer],
) -> None:
    """G9, G10: made by rules; the command, the list and the status tell why."""
    learn("first", LISBON)
    by_model(careless)
    why = "openai:scripted/consolidation-3 did not make this: InvalidOutput"
    made = said("consolidate")
    assert "Published generation 1" in made
    assert "by rules" in made
    for words in (made, said("status"), said("generations", "list")):
        assert why in words
    assert "Lisbon" in handbook()


# looking


def test_a_generation_is_shown_with_its_documents(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    learn("first", LISBON, *store)
    said("consolidate", *store)
    learn("second", PENICILLIN, *store)
    said("consolidate", *store)
    shown = said("generations", "show", "1", *store)
    assert re.search(r"^Memories +1 memory added, 0 retained, 0 removed$", shown, re.MULTILINE)
    assert re.search(rf"^1        {TIME}  ~/memory/MEMORY$", shown, re.MULTILINE)
    shape = run_json("generations", "show", *store)
    versions = {each["path"]: each["version"] for each in shape["has"]}
    assert versions["~/memory/MEMORY"] == 2
    assert (shape["number"], len(versions)) == (2, shape["documents"])
    then = said("docs", "read", "MEMORY", "--version", "1", "--body", *store)
    assert "penicillin" not in then
    few = run("generations", "show", "--limit", "2", *store)
    assert "… and 3 documents more (--limit)" in few.stderr


def test_generations_are_listed_in_pages() -> None:
    for number, text in enumerate((LISBON, PENICILLIN, "I prefer tea to coffee.")):
        learn(f"k{number}", text)
        said("consolidate")
    page = run("generations", "list", "--limit", "2")
    assert re.findall(r"^(\d)", page.stdout, re.MULTILINE) == ["3", "2"]
    assert "There may be more: recollect generations list --limit 2 --before 2" in page.stderr
    assert [each["number"] for each in run_json("generations", "list", "--before", "2")] == [1]
    only = said("generations", "diff", "1", "2", "--paths").splitlines()
    assert only[:2] == ["changed  ~/memory/MEMORY", "changed  ~/memory/memory_summary"]
    shape = run_json("generations", "diff", "1", "2")
    assert (shape["from"], shape["to"]) == (1, 2)
    assert {each["change"] for each in shape["changes"]} == {"added", "changed"}


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (("generations", "show"), 1, "No generation in space 'default' yet"),
        (("generations", "show", "7"), 1, "has no generation 7; recollect generations lists"),
        (("generations", "diff", "1"), 1, "has no generation 1"),
        (("generations", "diff"), 2, "Missing argument 'A'"),
        (("generations", "rollback", "0"), 2, "0 is not in the range"),
        (("generations", "rollback", "3"), 1, "has no generation 3"),
        (("consolidate", "--space", ""), 2, "--space is empty"),
    ],
)
@pytest.mark.usefixtures("empty_store")
def test_what_cannot_be_done_is_refused_with_a_reason(
    arguments: tuple[str, ...], exit_code: int, words: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert words in " ".join(result.stderr.split())


def test_what_a_model_writes_cannot_reach_the_terminal(
    by_model: Callable[[Script], ScriptedServer],
) -> None:
    """P12."""

    def loud(received: Received) -> Scripted:
        painted = "Painted \x1b[31mred\u202e."
        return re.sub(r"(?m)^- .*( \[f1\])$", rf"- {painted}\1", handbook_of(received)) or painted

    by_model(loud)
    learn("k", LISBON)
    printed = [run("consolidate"), run("generations"), run("generations", "show"), run("status")]
    printed += [run("docs", "read", "MEMORY"), run("docs", "read", "memory_summary")]
    assert "Painted" in printed[-1].stdout
    assert "Painted" in printed[-2].stdout
    for result in printed:
        assert not re.search("[\x1b\u202e]", result.output)

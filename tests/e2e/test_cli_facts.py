"""Facts on the command line: added, edited, listed, searched and deleted; on both databases."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import recollect
from recollect.interfaces.cli.main import cli
from tests.e2e.command_line import process, run, run_json

DATE = r"\d{4}-\d\d-\d\d"
TIME = rf"{DATE} \d\d:\d\d:\d\dZ"
ESCAPES = "red \x1b[31mhot\u202e"


def add(text: str, *arguments: str) -> dict[str, Any]:
    stored: dict[str, Any] = run_json("facts", "add", text, *arguments)
    return stored


def contents(*arguments: str) -> list[str]:
    return [fact["content"] for fact in run_json("facts", *arguments)]


def test_a_fact_goes_through_its_life_on_the_command_line(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    given = ("--tag", "detail", "--tag", "home", "--metadata", "city=Lisbon")
    stored = run("facts", "add", "Ana lives in Lisbon.", *given, *store)
    assert stored.exit_code == 0, stored.output
    found = re.fullmatch(r"Stored fact (\S+): Ana lives in Lisbon\.\n", stored.stdout)
    assert found is not None
    fact_id = found[1]
    listed = run("facts", *store).stdout
    heading = rf"{fact_id}  {DATE}  user  detail, home"
    assert re.fullmatch(rf"{heading}\n +Ana lives in Lisbon\.\n +by hand\n", listed)

    edited = run("facts", "edit", fact_id, "Ana lives in Porto.", *store)
    assert edited.stdout == f"Changed fact {fact_id}: Ana lives in Porto.\n"
    shown = run("facts", "show", fact_id, *store).stdout
    for line in (
        r"^Says +Ana lives in Porto\.$",
        r"^Tags +detail, home$",
        r'^Metadata +\{"city": "Lisbon"\}$',
        rf"^Valid +from {TIME}$",
        r"^Holds +yes$",
        r"^No source: it was added by hand\.$",
    ):
        assert re.search(line, shown, re.MULTILINE), (line, shown)

    deleted = run("facts", "delete", fact_id, *store)
    assert deleted.stdout == f"Deleted fact {fact_id}: Ana lives in Porto.\n"
    assert run_json("facts", *store) == []
    history = run("facts", "history", fact_id, *store).stdout
    assert re.findall(rf"^{TIME}  (\w+) ", history, re.MULTILINE) == ["added", "edited", "deleted"]
    changes = run_json("facts", "history", fact_id, *store)
    assert [change["content"] for change in changes] == [
        "Ana lives in Lisbon.",
        "Ana lives in Porto.",
        "Ana lives in Porto.",
    ]
    assert {change["by"] for change in changes} == {"user"}


def test_the_json_of_a_fact_has_every_field() -> None:
    stored = add("The office is in Lisbon.", "--id", "office", "--metadata", "floor=3")
    assert (stored["id"], stored["metadata"]) == ("office", {"floor": 3})
    assert run_json("facts", "show", "office") == stored
    assert run_json("facts") == run_json("facts", "list") == [stored]
    names = {"content", "source", "sources", "tags", "trust", "topic", "created_at", "updated_at"}
    names |= {
        "valid_from",
        "valid_to",
        "superseded_by",
        "extractor",
        "space",
        "usage_count",
        "shown_count",
    }
    assert names <= set(stored)
    deleted = run_json("facts", "delete", "office")
    assert deleted == {"space": "default", "deleted": stored, "told": []}


def test_the_same_statement_is_stored_once_and_an_id_replaces() -> None:
    assert add("Ana likes tea.")["id"] == add("ana likes tea")["id"]
    add("It opens at nine.", "--id", "shop")
    add("It opens at ten.", "--id", "shop")
    assert contents() == ["It opens at ten.", "Ana likes tea."]


def test_text_comes_by_a_pipe_too(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    for extra in ((), ("-",)):
        added = process("facts", "add", *extra, *store, stdin="Olá, Ana.\n".encode())
        assert added.returncode == 0, added.stderr
    (fact,) = run_json("facts", *store)
    assert fact["content"] == "Olá, Ana."
    edited = process("facts", "edit", fact["id"], "-", *store, stdin=b"Ol\xc3\xa1.")
    assert edited.returncode == 0
    assert contents(*store) == ["Olá."]
    assert process("facts", "add", *store, stdin=b"\xff").returncode == 2
    assert process("facts", "add", *store, stdin=b"").returncode == 2


def test_an_edit_replaces_what_is_given_and_nothing_else() -> None:
    fact = add("Ana likes tea.", "--tag", "preference", "--metadata", "a=1")
    only_tags = run_json("facts", "edit", fact["id"], "--tag", "taste", "--tag", "drink")
    assert (only_tags["content"], only_tags["tags"]) == ("Ana likes tea.", ["taste", "drink"])
    assert only_tags["metadata"] == {"a": 1}
    only_metadata = run_json("facts", "edit", fact["id"], "--metadata", "b=two=2")
    assert (only_metadata["tags"], only_metadata["metadata"]) == (
        ["taste", "drink"],
        {"b": "two=2"},
    )


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("k=glad", "glad"),
        ("k=3", 3),
        ("k=true", True),
        ('k="3"', "3"),
        ("k=", ""),
        ("k=null", None),
    ],
)
def test_a_metadata_value_is_json_where_it_reads_as_such_else_text(given: str, value: Any) -> None:
    assert add("Something.", "--metadata", given)["metadata"] == {"k": value}
    assert contents("search", "--metadata", given) == ["Something."]
    assert contents("search", "--metadata", "k=other") == []


def test_facts_are_listed_by_tag_and_page_by_page() -> None:
    ids = [add(f"Fact number {n}.", "--tag", "odd" if n % 2 else "even")["id"] for n in range(5)]
    assert contents("list", "--tag", "odd") == ["Fact number 3.", "Fact number 1."]
    first = run("facts", "list", "--limit", "2")
    assert f"recollect facts list --limit 2 --after {ids[3]}" in first.stderr
    assert [f["id"] for f in run_json("facts", "list", "--after", ids[3])] == ids[2::-1]
    last = run("facts", "list", "--after", ids[0])
    assert (last.exit_code, last.output) == (0, "")


def test_words_find_facts_the_best_first() -> None:
    add("Ana is vegetarian.")
    add("Ana books a vegetarian dinner.")
    add("Ben is tall.")
    assert contents("search", "vegetarian", "dinner")[0] == "Ana books a vegetarian dinner."
    assert len(contents("search", "vegetarian", "dinner", "--limit", "1")) == 1
    nothing = run("facts", "search", "unheard-of")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "Nothing found" in nothing.stderr


def test_a_superseded_fact_says_so_and_can_be_read_as_of_then() -> None:
    said = {"Ana lives in Porto.": "2026-03-01", "Ana lives in Lisbon.": "2026-05-01"}
    for text, day in said.items():
        text = text.replace("Ana lives", "I live")
        run("append", "k", text, "--name", "Ana", "--at", f"{day}T12:00:00Z")
    run("work", "--all")
    assert contents() == ["Ana lives in Lisbon."]
    assert sorted(contents("list", "--every")) == sorted(said)
    for arguments in (("list",), ("search", "lives")):
        assert contents(*arguments, "--as-of", "2026-04-01T00:00:00Z") == ["Ana lives in Porto."]
    newer, older = sorted(
        run_json("facts", "list", "--every"), key=lambda fact: fact["superseded_by"] is not None
    )
    assert older["superseded_by"] == newer["id"]
    every = run("facts", "list", "--every").stdout
    assert f"superseded by {newer['id']}, 2026-05-01 12:00:00Z" in every
    shown = run("facts", "show", older["id"]).stdout
    assert f"by {newer['id']}: Ana lives in Lisbon." in shown
    assert re.search(r"^Holds +no$", shown, re.MULTILINE)
    assert f"superseded by fact {newer['id']}" in run("facts", "history", older["id"]).stdout


def test_a_fact_shows_the_words_it_comes_from(durable_store_url: str) -> None:
    store = ("--store", durable_store_url)
    run("append", "telegram:42:main", "Hello!", *store)
    run("append", "telegram:42:main", "I'm allergic to penicillin.", "--name", "Ana", *store)
    assert run("work", "--all", *store).exit_code == 0
    (fact,) = run_json("facts", *store)
    (source,) = fact["sources"]
    assert (source["seq"], source["seq_to"]) == (2, 2)
    assert source["quote"] == "I'm allergic to penicillin."
    assert "from telegram:42:main, record 2" in run("facts", *store).stdout
    shown = run("facts", "show", fact["id"], *store).stdout
    where = re.escape(f"telegram:42:main ({source['session_id']}), record 2")
    assert re.search(rf"Source +{where}\n +“I'm allergic to penicillin\.”\n", shown)
    for session in ("telegram:42:main", source["session_id"]):
        assert contents("list", "--session", session, *store) == [fact["content"]]


def test_spaces_do_not_see_each_other_s_facts() -> None:
    fact = add("Mine.", "--space", "alice")
    assert contents("--space", "bob") == []
    for verb in ("show", "history", "delete"):
        assert run("facts", verb, fact["id"], "--space", "bob").exit_code == 1
    assert contents("--space", "alice") == ["Mine."]


def test_a_secret_is_stored_as_a_placeholder() -> None:
    secret = "".join(("ghp", "_", "A1b2C3d4E5f6" * 3))
    stored = run("facts", "add", f"The token is {secret}.")
    assert "[redacted:" in stored.stdout
    assert secret not in stored.stdout + run("facts", "--json").stdout


def test_stored_facts_never_reach_the_terminal_raw() -> None:
    fact = add(ESCAPES, "--tag", "a\x1b[2Jb")
    for arguments in ((), ("show", fact["id"]), ("history", fact["id"]), ("search", "red")):
        shown = CliRunner().invoke(cli, ["facts", *arguments], color=True).stdout
        styled = re.sub(r"\x1b\[\d+m", "", shown)
        assert "red \\x1b[31mhot\\u202e" in styled
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", styled)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("facts",), "No facts in space 'default' yet. Learn from what was said: recollect work"),
        (("facts", "list", "--tag", "x"), "No such facts in space 'default'. See all:"),
    ],
)
@pytest.mark.usefixtures("empty_store")
def test_no_facts_say_how_to_have_some(arguments: tuple[str, ...], advice: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (0, "")
    assert advice in result.stderr
    assert run_json(*arguments) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "nobody"),
        ("history", "nobody"),
        ("delete", "nobody"),
        ("edit", "nobody", "text"),
        ("list", "--after", "nobody"),
        ("list", "--session", "nobody"),
    ],
)
@pytest.mark.usefixtures("empty_store")
def test_what_is_not_there_is_named_and_exits_1(arguments: tuple[str, ...]) -> None:
    result = run("facts", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "'nobody'" in result.stderr
    assert "lists them" in result.stderr
    as_json = run("facts", *arguments, "--json")
    assert json.loads(as_json.stderr)["error"]["type"] == "NotFound"


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("add", ""),
        ("add", "text", "--id", ""),
        ("add", "text", "--metadata", "no-sign"),
        ("add", "text", "--metadata", "=x"),
        ("edit", "some-id"),
        ("edit", "some-id", ""),
        ("show",),
        ("search",),
        ("search", "word", "--metadata", "a=1"),
        ("list", "--limit", "0"),
        ("list", "--as-of", "yesterday"),
        ("list", "--as-of", "2026-05-01T12:00:00"),
        ("list", "--every", "--as-of", "2026-05-01T12:00:00Z"),
    ],
)
def test_wrong_usage_exits_2_and_touches_no_store(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    result = run("facts", *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert "Error: " in result.stderr
    assert not (tmp_path / "data").exists()


def test_a_fact_that_is_too_long_is_refused_with_the_way_out() -> None:
    result = run("facts", "add", "x" * 2001)
    assert (result.exit_code, "fact_chars_max" in result.stderr) == (1, True)
    assert contents() == []


def test_facts_with_many_sources_are_listed_briefly() -> None:
    with recollect.open() as memory:
        sources = [recollect.Source(session_id="s", seq=n, seq_to=n) for n in range(1, 6)]
        fact = memory.space().facts.add(recollect.Fact("Well known.", sources=tuple(sources)))
    assert "s, record 1; s, record 2; s, record 3; 2 more; by hand" in run("facts").stdout
    assert run("facts", "show", fact.id).stdout.count("Source  s, record") == 5


def test_what_is_told_and_never_used_can_be_seen() -> None:
    """N3."""
    with recollect.open() as memory:
        space = memory.space()
        fact = space.facts.add("The office is in Lisbon.")
        for number in range(3):
            block = space.context("office")
            space.cite(block, turn=f"turn {number}")
    for arguments in (("facts",), ("facts", "show", fact.id)):
        assert "shown 3 times, never used" in run(*arguments).stdout
    with recollect.open() as memory:
        memory.space().cite(block, "In Lisbon [m1].")
    stored = run_json("facts", "show", fact.id)
    assert (stored["usage_count"], stored["shown_count"]) == (1, 4)
    assert "shown 4 times, used 1 time" in run("facts").stdout

"""Documents on the command line: written, read, moved, deleted and brought back; both databases."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import recollect
from recollect.interfaces.cli.main import cli
from tests.e2e.command_line import ENTRY_POINT, process, run, run_json, started

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
ESCAPES = "red \x1b[31mhot\u202e"


def docs(*arguments: str, stdin: str | None = None) -> str:
    """What a command says; it has to work."""
    result = run("docs", *arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def docs_json(*arguments: str) -> Any:
    return run_json("docs", *arguments)


def refused(*arguments: str, exit_code: int = 1) -> str:
    result = run("docs", *arguments)
    assert (result.exit_code, result.stdout) == (exit_code, ""), result.output
    return result.stderr


def paths(*arguments: str) -> list[str]:
    return [node["path"] for node in docs_json(*arguments)]


@pytest.fixture
def people() -> None:
    docs("write", "people/ana", "Ana knows [[people/ben|Benjamin]].", "--title", "Ana Souza")
    docs("write", "people/ben", "Ben lives in [[places/lisbon]].")


def test_a_document_goes_through_its_life_on_the_command_line(durable_store_url: str) -> None:
    """D1, D2, D5, D6, D7."""
    store = ("--store", durable_store_url)
    given = ("--title", "Ana Souza", "--description", "a friend", "--tag", "person", "--tag", "x")
    created = docs("write", "people/ana", "Ana lives in Lisbon.", *given, *store)
    assert created == "Created ~/memory/people/ana, version 1.\n"
    again = docs("write", "people/ana", "Ana lives in Lisbon.", *store)
    assert again == "Unchanged: ~/memory/people/ana, version 1.\n"
    assert docs("append", "people/ana", "She walks.", "--reason", "told", *store) == (
        "Wrote ~/memory/people/ana, version 2.\n"
    )
    docs("patch", "people/ana", "--old", "in Lisbon", "--new", "in Porto", *store)
    document = docs_json("read", "people/ana", *store)
    assert document["body"] == "Ana lives in Porto.\n\nShe walks."
    assert (document["title"], document["tags"], document["version"]) == (
        "Ana Souza",
        ["person", "x"],
        3,
    )
    docs("write", "team", "See [[people/ana|her]].", *store)
    moved = docs("move", "people/ana", "friends/Ana", *store)
    assert moved == "Moved ~/memory/people/ana to ~/memory/friends/Ana.\n"
    assert docs_json("read", "people/ana", *store)["path"] == "~/memory/friends/Ana"
    links = docs("links", "friends/ana", *store)
    assert links == "→ ~/memory/friends  (parent)\n← ~/memory/team  (body, “her”)\n"

    assert "refer to" in refused("delete", "friends/ana", *store)
    deleted = docs("delete", "friends/ana", "--references", "unlink", *store)
    assert deleted.startswith("Deleted ~/memory/friends/Ana. Bring it back: recollect docs restore")
    assert docs_json("read", "team", *store)["body"] == "See her."
    assert "no document at 'friends/ana'" in refused("read", "friends/ana", *store)
    assert "Restored ~/memory/friends/Ana" in docs("restore", "friends/ana", *store)
    docs("restore", "friends/ana", "--version", "1", *store)
    assert docs_json("read", "friends/ana", *store)["body"] == "Ana lives in Lisbon."

    history = docs("history", "friends/ana", *store)
    events = re.findall(rf"^(\d+) +{TIME}  (\w+) +user \(person\)", history, re.MULTILINE)
    assert [event for _, event in events] == [
        *("restored", "restored", "deleted", "moved", "written", "written", "created")
    ]
    assert [number for number, _ in events] == list("7654321")
    assert "told" in history
    assert docs("search", "Lisbon", *store).startswith("~/memory/friends/Ana  Ana Souza: a friend")
    purged = docs("purge", "friends", "--yes", *store)
    assert purged == "Purged ~/memory/friends: 2 documents, 8 versions.\n"
    assert paths("tree", *store) == ["~/memory", "~/memory/people", "~/memory/team"]


def test_the_json_of_a_document_has_every_field() -> None:
    written = docs_json("write", "a/b", "Text.", "--link", "c", "--reason", "why")
    names = {"id", "space", "path", "title", "description", "body", "tags", "links", "version"}
    names |= {"created_at", "updated_at", "deleted_at", "author", "reason", "sources", "facts"}
    assert set(written) == names
    assert written["links"] == ["~/memory/c"]
    assert (written["author"], written["reason"]) == ({"kind": "person", "name": "user"}, "why")
    for path in ("a/b", "A/B.md", "~/memory/a/b", "/a/b/", written["id"]):
        assert docs_json("read", path) == written
    assert docs_json("append", "a/b", "More.")["version"] == 2
    assert docs_json("patch", "a/b", "--old", "More", "--new", "Less")["body"] == "Text.\n\nLess."
    assert docs_json("move", "a/b", "a/d")["path"] == "~/memory/a/d"
    assert docs_json("move", "a/d", "a/d")["version"] == 4
    assert docs_json("delete", "a/d")["deleted_at"] is not None
    assert docs_json("restore", "a/d")["deleted_at"] is None
    assert docs_json("purge", "a/d", "--yes") == {
        "is_clean": True,
        "space": "default",
        "path": "~/memory/a/d",
        "documents": 1,
        "versions": 6,
    }


# paths


def test_a_path_that_the_shell_has_expanded_is_read_as_it_was_meant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    docs("write", f"{tmp_path}/memory/people/ana", "Ana.", "--link", f"{tmp_path}/memory/team")
    assert docs_json("read", "people/ana")["links"] == ["~/memory/team"]
    assert paths("tree") == ["~/memory", "~/memory/people", "~/memory/people/ana"]
    monkeypatch.setenv("HOME", "/")
    assert docs_json("read", "/people/ana")["body"] == "Ana."


@pytest.mark.parametrize("path", ["", "../x", "a//b", "a/%2e%2e/b", ".hidden", "con", "a\u202eb"])
def test_a_path_that_cannot_be_is_wrong_usage(path: str, tmp_path: Path) -> None:
    for arguments in (
        ("read", path),
        ("tree", path),
        ("write", path, "text"),
        ("write", "fine", "text", "--link", path),
        ("move", "fine", path),
        ("search", "word", "--below", path),
    ):
        refused(*arguments, exit_code=2)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("read",),
        ("read", "--version", "1"),
        ("tree",),
        ("append", "text"),
        ("patch", "--old", "a", "--new", "b"),
        ("move", "elsewhere"),
        ("delete",),
        ("restore",),
        ("history",),
        ("diff", "1"),
        ("links",),
        ("purge", "--yes"),
    ],
)
@pytest.mark.usefixtures("empty_store")
def test_what_is_not_there_is_named_and_exits_1(arguments: tuple[str, ...]) -> None:
    verb, *rest = arguments
    said = refused(verb, "people/nobody", *rest)
    assert "people/nobody" in said
    assert verb == "purge" or "recollect docs tree lists" in said
    as_json = run("docs", verb, "people/nobody", *rest, "--json")
    assert json.loads(as_json.stderr)["error"]["type"] == "NotFound"


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("read",),
        ("read", "x", "--version", "0"),
        ("read", "x", "--body", "--json"),
        ("write", "x", ""),
        ("write", "x", "text", "--file", __file__),
        ("write", "x", "--file", "no-such-file"),
        ("write", "x", "text", "--expect", "-1"),
        ("append", "x", ""),
        ("patch", "x"),
        ("patch", "x", "--old", "a"),
        ("patch", "x", "--old", "", "--new", "b"),
        ("patch", "x", "--old", "a", "--old-file", __file__, "--new", "b"),
        ("move", "x"),
        ("delete", "x", "--references", "forget"),
        ("diff", "x"),
        ("diff", "x", "one"),
        ("search",),
        ("links",),
        ("links", "x", "--broken"),
        ("links", "--broken", "--orphans"),
        ("purge", "x"),
        ("tree", "--depth", "0"),
        ("tree", "--limit", "0"),
        ("history", "x", "--before", "0"),
    ],
)
def test_wrong_usage_exits_2_and_touches_no_store(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    told = "UsageError" if "--json" in arguments else "Error: "
    assert told in refused(*arguments, exit_code=2)
    assert not (tmp_path / "data").exists()


# tree


def test_the_tree_is_indented_and_says_what_documents_are_about(people: None) -> None:
    docs("write", "people/ana/likes", "Tea.", "--description", "what she likes")
    expected = "~/memory\n  people\n    ana  Ana Souza\n      likes  what she likes\n    ben\n"
    assert docs() == docs("tree") == expected
    assert docs("tree", "people", "--depth", "1") == "~/memory/people\n  ana  Ana Souza\n  ben\n"
    node = docs_json("tree", "people/ana")[0]
    assert (node["path"], node["title"], node["version"]) == ("~/memory/people/ana", "Ana Souza", 1)
    assert (node["has_children"], node["body_chars"]) == (True, 34)


def test_a_tree_is_shown_page_by_page(people: None) -> None:
    first = run("docs", "tree", "people", "--depth", "2", "--limit", "2")
    advice = "recollect docs tree people --depth 2 --limit 2 --after '~/memory/people/ana'"
    assert advice in first.stderr
    assert docs("tree", "people", "--after", "~/memory/people/ana") == "  ~/memory/people/ben\n"
    last = run("docs", "tree", "--after", "people/ben")
    assert (last.exit_code, last.output) == (0, "")


@pytest.mark.usefixtures("empty_store")
def test_an_empty_tree_says_how_to_begin() -> None:
    result = run("docs")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Write one: recollect docs write people/ana" in result.stderr
    assert docs_json("tree") == []


# read


def test_a_document_is_shown_with_its_head_and_what_stands_below() -> None:
    with recollect.open() as memory:
        session = memory.space().session("telegram:42:main")
        session.append("user", "I live in Lisbon.")
        source = recollect.Source(session_id=session.id, seq=1, seq_to=1)
        memory.space().documents.write(
            "people/ana",
            "Ana.",
            tags=["person"],
            links=["team"],
            description="a friend",
            reason="told",
            sources=[source],
            facts=["f1"],
        )
    docs("write", "people/ana/likes", "Tea.")
    shown = docs("read", "people/ana")
    for line in (
        r"^Document +~/memory/people/ana$",
        rf"^Version +1, {TIME}$",
        r"^By +user \(person\): told$",
        r"^About +a friend$",
        r"^Tags +person$",
        r"^Links +~/memory/team$",
        r"^Sources +telegram:42:main, record 1$",
        r"^Facts +f1$",
        r"^Below +likes$",
    ):
        assert re.search(line, shown, re.MULTILINE), (line, shown)
    assert shown.endswith("\n\nAna.\n")
    assert docs("read", "people/ana", "--body") == "Ana.\n"
    (shape,) = docs_json("read", "people/ana")["sources"]
    assert shape["seq"] == 1


def test_an_earlier_version_is_read_and_compared() -> None:
    docs("write", "x", "one\ntwo", "--reason", "first")
    docs("write", "x", "one\nthree", "--title", "X")
    assert docs_json("read", "x", "--version", "1")["body"] == "one\ntwo"
    assert docs("read", "x", "--version", "1", "--body") == "one\ntwo\n"
    shown = docs("read", "x", "--version", "1")
    assert re.search(rf"^Version +1, created {TIME}$", shown, re.MULTILINE)
    assert re.search(r"^By +user \(person\): first$", shown, re.MULTILINE)
    diff = docs("diff", "x", "1")
    assert "-two\n+three\n" in diff
    assert "-title: x\n+title: X\n" in diff
    assert docs_json("diff", "x", "1", "2") == {
        "path": "x",
        "from": 1,
        "to": 2,
        "diff": diff.removesuffix("\n"),
    }
    assert docs_json("diff", "x", "2")["diff"] == ""
    same = run("docs", "diff", "x", "2")
    assert (same.stdout, same.stderr) == ("", "Versions 2 and 2 say the same.\n")
    for arguments in (("read", "x", "--version", "3"), ("diff", "x", "1", "3")):
        assert "has no version 3" in refused(*arguments)


def test_the_history_is_shown_page_by_page() -> None:
    for number in range(1, 6):
        docs("write", "x", f"number {number}")
    first = run("docs", "history", "x", "--limit", "2")
    assert re.findall(r"^(\d)", first.stdout, re.MULTILINE) == ["5", "4"]
    assert "recollect docs history x --limit 2 --before 4" in first.stderr
    second = docs_json("history", "x", "--before", "4")
    assert [version["version"] for version in second] == [3, 2, 1]
    assert {"event", "body", "author", "at", "reason"} <= set(second[0])
    assert run("docs", "history", "x", "--before", "2").stderr == ""


# write


def test_text_comes_by_a_pipe_or_from_a_file(tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "memory.db"))
    for number, extra in enumerate(((), ("-",))):
        written = process("docs", "write", f"n{number}", *extra, *store, stdin="Olá.\n".encode())
        assert written.returncode == 0, written.stderr
        assert docs("read", f"n{number}", "--body", *store) == "Olá.\n"
    assert process("docs", "append", "n0", "-", *store, stdin=b"More.").returncode == 0
    file = tmp_path / "text.md"
    file.write_text("Olá.\n\nMore.\n", encoding="utf-8")
    unchanged = docs("write", "n0", "--file", str(file), *store)
    assert unchanged == "Unchanged: ~/memory/n0, version 2.\n"
    for content in (b"", b"\xff"):
        file.write_bytes(content)
        refused("write", "n0", "--file", str(file), *store, exit_code=2)
        assert process("docs", "append", "n0", *store, stdin=content).returncode == 2


def test_what_is_not_given_stays_as_it_was() -> None:
    given = ("--title", "T", "--description", "D", "--tag", "a", "--tag", "b", "--link", "y")
    docs("write", "x", "one", *given)
    again = docs_json("write", "x", "two")
    assert (again["title"], again["description"]) == ("T", "D")
    assert (again["tags"], again["links"]) == (["a", "b"], ["~/memory/y"])
    changed = docs_json("write", "x", "two", "--tag", "c", "--link", "z", "--description", "")
    assert (changed["tags"], changed["links"]) == (["c"], ["~/memory/z"])
    assert (changed["title"], changed["description"]) == ("T", "")


def test_a_stale_version_is_refused_and_the_current_one_is_named() -> None:
    """D5."""
    docs("write", "x", "one", "--expect", "0")
    assert "there is a document" in refused("write", "x", "other", "--expect", "0")
    docs("write", "x", "two", "--expect", "1")
    for arguments in (
        ("write", "x", "three"),
        ("append", "x", "three"),
        ("patch", "x", "--old", "two", "--new", "three"),
        ("move", "x", "y"),
        ("delete", "x"),
        ("restore", "x", "--version", "1"),
    ):
        assert "is at version 2 by now" in refused(*arguments, "--expect", "1"), arguments
    error = json.loads(refused("append", "x", "three", "--expect", "1", "--json"))["error"]
    assert (error["type"], error["retry_helps"]) == ("StaleVersion", False)
    assert docs_json("read", "x")["body"] == "two"


def test_a_passage_is_replaced_only_where_it_stands_once(tmp_path: Path) -> None:
    docs("write", "x", "tea and tea and milk")
    assert "occurs 2 times" in refused("patch", "x", "--old", "tea", "--new", "coffee")
    assert "occurs 0 times" in refused("patch", "x", "--old", "rum", "--new", "coffee")
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("milk\n")
    new.write_text("honey\nand sugar\n")
    docs("patch", "x", "--old-file", str(old), "--new-file", str(new))
    docs("patch", "x", "--old", "tea and tea", "--new", "")
    assert docs_json("read", "x")["body"] == " and honey\nand sugar"


def test_a_secret_is_stored_as_a_placeholder() -> None:
    secret = "".join(("ghp", "_", "A1b2C3d4E5f6" * 3))
    docs("write", "x", f"The token is {secret}.", "--reason", f"{secret} was found")
    shown = docs("read", "x") + docs("history", "x") + docs("history", "x", "--json")
    assert secret not in shown
    assert "[redacted:" in shown


def test_what_belongs_to_consolidation_is_refused() -> None:
    """G8."""
    for path in ("memory", "memory_summary", "skills/x"):
        assert "belongs to consolidation" in refused("write", path, "mine")


# move, delete, restore, purge


def test_a_document_with_others_below_moves_and_goes_with_them() -> None:
    docs("write", "a/b/c", "C.")
    docs("move", "a", "z/a", "--reason", "tidied")
    assert paths("tree", "z")[1:] == ["~/memory/z/a", "~/memory/z/a/b", "~/memory/z/a/b/c"]
    assert "below itself" in refused("move", "z", "z/a/b/z")
    assert docs("move", "z/a", "z/a") == "Unchanged: ~/memory/z/a, version 2.\n"
    docs("write", "there", "T.")
    assert "there is a document at ~/memory/there" in refused("move", "z/a", "there")
    assert "--below" in refused("delete", "z")
    docs("delete", "z", "--below", "--reason", "old")
    assert paths("tree") == ["~/memory", "~/memory/there"]
    docs("restore", "z")
    assert docs("read", "z/a/b/c", "--body") == "C.\n"
    assert "is not deleted" in refused("restore", "z")


def test_what_others_refer_to_is_deleted_only_if_they_are_seen_to(people: None) -> None:
    """D6."""
    said = refused("delete", "people/ben")
    assert "~/memory/people/ana → ~/memory/people/ben" in said
    assert "--references leave" in said
    docs("delete", "people/ben", "--references", "leave")
    assert docs("links", "--broken") == (
        "~/memory/people/ana → ~/memory/people/ben  (body, “Benjamin”)  broken\n"
    )
    docs("restore", "people/ben")
    docs("delete", "people/ben", "--references", "unlink")
    assert docs("read", "people/ana", "--body") == "Ana knows Benjamin.\n"


@pytest.mark.parametrize(("answer", "is_gone"), [(b"y\n", True), (b"\n", False)])
def test_purging_asks_on_a_terminal_and_needs_yes_elsewhere(
    answer: bytes, is_gone: bool, tmp_path: Path
) -> None:
    """P11."""
    store = ("--store", str(tmp_path / "memory.db"))
    docs("write", "people/ben", "Ben.", *store)
    assert "Give --yes" in refused("purge", "people/ben", *store, exit_code=2)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY_POINT, "docs", "purge", "people/ben", *store],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        os.close(theirs)
        os.write(ours, answer)
        printed, asked = running.communicate(timeout=30)
    os.close(ours)
    assert b"Purge ~/memory/people/ben, everything below it and every version? This cannot" in asked
    assert running.returncode == (0 if is_gone else 1)
    assert printed == (b"Purged ~/memory/people/ben: 1 document, 1 version.\n" if is_gone else b"")
    assert (run("docs", "history", "people/ben", *store).exit_code == 1) is is_gone


def test_what_was_deleted_is_listed_with_the_id_that_brings_it_back(people: None) -> None:
    """D6."""
    assert docs("deleted") == ""
    docs("delete", "people/ana")
    docs("write", "people/ana", "Another Ana.")
    [gone] = docs_json("deleted", "people")
    assert (gone["path"], gone["title"], gone["version"]) == ("~/memory/people/ana", "Ana Souza", 2)
    assert gone["id"] in docs("deleted")
    docs("move", "people/ana", "people/other")
    docs("restore", gone["id"])
    assert "Benjamin" in docs("read", "people/ana")
    assert docs_json("deleted") == []


def test_a_purge_takes_a_path_as_it_is_and_follows_nothing(people: None) -> None:
    docs("move", "people/ben", "friends/ben")
    document_id = docs_json("read", "friends/ben")["id"]
    said = refused("purge", "people/ben", "--yes")
    assert "purge it at its path: ~/memory/friends/ben" in said
    assert "a path is needed" in refused("purge", document_id, "--yes")
    assert docs("read", "friends/ben", "--body").startswith("Ben lives")
    assert "is a root" in refused("purge", "~/memory", "--yes")


# search and links


def test_words_find_documents_the_best_first() -> None:
    docs("write", "food/soup", "A soup for dinner.")
    docs("write", "food/dinner", "Soup, then bread.", "--title", "Dinner with soup")
    docs("write", "other", "A walk.")
    assert paths("search", "dinner", "soup")[0] == "~/memory/food/dinner"
    assert len(paths("search", "soup", "--limit", "1")) == 1
    assert paths("search", "walk", "soup", "--below", "other") == ["~/memory/other"]
    found = docs("search", "walk")
    assert found == "~/memory/other\n    A walk.\n"
    for words in ("unheard-of", '"', "AND (", "*"):
        nothing = run("docs", "search", words)
        assert (nothing.exit_code, nothing.stdout) == (0, ""), words
        assert "Nothing found" in nothing.stderr
    assert docs_json("search", "unheard-of") == []


def test_links_are_shown_in_both_directions_and_broken_ones_by_themselves(people: None) -> None:
    """D2."""
    docs("write", "people/eva", "Eva.", "--link", "people/ben")
    found = docs_json("links", "people/ben")
    assert [(each["kind"], each["target"], each["is_broken"]) for each in found["outgoing"]] == [
        ("parent", "~/memory/people", False),
        ("body", "~/memory/places/lisbon", True),
    ]
    assert [(each["source"], each["kind"], each["alias"]) for each in found["incoming"]] == [
        ("~/memory/people/ana", "body", "Benjamin"),
        ("~/memory/people/eva", "link", ""),
    ]
    (broken,) = docs_json("links", "--broken")
    assert (broken["source"], broken["target"]) == ("~/memory/people/ben", "~/memory/places/lisbon")
    assert docs("links", "--orphans") == "~/memory/people/ana\n~/memory/people/eva\n"
    assert docs_json("links", "--orphans", "--limit", "1") == ["~/memory/people/ana"]
    docs("write", "places/lisbon", "Sunny. [[people/ana]], [[people/eva]]")
    fine = run("docs", "links", "--broken")
    assert (fine.stdout, fine.stderr) == ("", "Every link leads to a document.\n")
    assert docs_json("links", "--broken") == []
    none = run("docs", "links", "--orphans")
    assert (none.stdout, none.stderr) == ("", "Every document is mentioned by another one.\n")


# as files


def test_the_tree_is_published_edited_and_loaded_back(durable_store_url: str) -> None:
    """D8."""
    store = ("--store", durable_store_url)
    docs("write", "people/ana", "Ana lives in Lisbon.", "--tag", "person", *store)
    docs("write", "team", "Everybody.", *store)
    first = docs("publish", "notes", *store)
    where = re.escape(str(Path("notes").resolve()))
    assert re.fullmatch(
        rf"Published 4 documents to {where}, generation 1: 2 written, 0 as before\.\n", first
    )
    docs("append", "team", "And Ben.", *store)
    assert "generation 2: 1 written, 1 as before." in docs("publish", "notes", *store)

    ana, new = Path("notes/people/ana.md"), Path("notes/people/ben.md")
    ana.write_text(ana.read_text().replace("Lisbon", "Porto"))
    new.write_text("Ben.\n")
    Path("notes/team.md").unlink()
    said = refused("publish", "notes", *store)
    assert "people/ana.md, people/ben.md, team.md" in said
    assert "recollect docs load notes --store " in said
    dry = docs("load", "notes", "--dry-run", *store)
    assert dry == (
        "Would create ~/memory/people/ben\nWould change ~/memory/people/ana\n"
        "Would delete ~/memory/team\n"
    )
    assert docs_json("read", "people/ana", *store)["version"] == 1
    assert docs("load", "notes", *store) == (
        "Created ~/memory/people/ben\nChanged ~/memory/people/ana\nDeleted ~/memory/team\n"
    )
    ana_now = docs_json("read", "people/ana", *store)
    assert (ana_now["body"], ana_now["tags"]) == ("Ana lives in Porto.", ["person"])
    again = run("docs", "load", "notes", *store)
    assert (again.exit_code, again.stdout) == (0, "")
    assert "Nothing to load" in again.stderr
    published = docs_json("publish", "notes", *store)
    assert (published["documents"], published["generation"]) == (4, 3)
    assert {"directory", "written", "kept", "removed", "kept_aside"} < set(published)


def test_a_conflict_is_shown_and_overwrites_nothing(people: None) -> None:
    """D8."""
    docs("publish", "notes")
    file = Path("notes/people/ben.md")
    file.write_text(file.read_text().replace("lives in", "has left"))
    edited = file.read_text()
    docs("patch", "people/ben", "--old", "lives in", "--new", "is in")
    dry = run("docs", "load", "notes", "--dry-run", "--json")
    assert (dry.exit_code, json.loads(dry.stdout)["conflicts"][0]["copy"]) == (1, "")
    result = run("docs", "load", "notes")
    assert result.exit_code == 1
    assert result.stdout.startswith("Conflict: people/ben.md: the document has changed too")
    assert "    the document says:\n      Ben is in" in result.stdout
    assert "    the file says:\n      Ben has left" in result.stdout
    (copy,) = re.findall(r"the file is kept as (.*)", result.stdout)
    assert Path(copy).read_text() == file.read_text() == edited
    assert docs("read", "people/ben", "--body").startswith("Ben is in")

    (advice,) = re.findall(r"recollect docs (publish notes[^,]*),", result.stderr)
    published = run("docs", *advice.split())
    assert "Ben is in" in file.read_text()
    assert f"kept in {Path(copy).parents[1]} until you remove it" in published.stderr
    file.write_text(file.read_text().replace("is in", "was in"))
    assert docs("load", "notes") == "Changed ~/memory/people/ben\n"
    file.write_text(file.read_text() + "Nonsense.\n")
    over = run("docs", "publish", "notes", "--discard-edits")
    assert "Nonsense" not in file.read_text()
    kept = set(Path().glob(".notes.recollect-*-edited")) - {Path(copy).parents[1].name}
    (last,) = [each for each in kept if "Nonsense" in (each / "people/ben.md").read_text()]
    assert f"kept in {last.resolve()} until you remove it" in over.stderr


def test_a_new_file_at_the_place_of_another_document_is_a_conflict(people: None) -> None:
    docs("publish", "part", "--path", "people")
    docs("write", "people/eva", "Eva of the tree.")
    for name in ("part/eva.md", "wiki/people/eva.md"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("Eva of the file.\n")
    result = run("docs", "load", "part")
    assert "    the document says:\n      Eva of the tree.\n" in result.stdout
    assert "    the file says:\n      Eva of the file.\n" in result.stdout
    docs("publish", "part")
    assert "Eva of the tree." in Path("part/eva.md").read_text()
    foreign = run("docs", "load", "wiki")
    assert "is kept as" not in foreign.stdout
    id_line, version_line = re.findall(r"`((?:id|version): [^`]*)`", foreign.stdout)
    text = f"---\n{id_line}\n{version_line}\n---\nEva of the file.\n"
    Path("wiki/people/eva.md").write_text(text)
    assert docs("load", "wiki") == "Changed ~/memory/people/eva\n"


def test_a_directory_that_lost_its_files_deletes_nothing_unasked(people: None) -> None:
    docs("publish", "notes")
    shutil.rmtree("notes/people")
    said = refused("load", "notes")
    assert "3 of 3 documents would be deleted" in said
    assert "--allow-deletions" in said
    assert len(paths("tree")) == 4
    assert docs("load", "notes", "--dry-run").count("Would delete") == 3
    assert docs("load", "notes", "--allow-deletions").count("Deleted") == 3


def test_who_stands_in_a_directory_that_is_not_there_is_told_so(people: None) -> None:
    Path("gone").mkdir()
    before = "import os; os.chdir('gone'); os.rmdir('../gone')"
    with started("docs", "tree", before=before) as running:
        _, said = running.communicate()
    assert running.returncode == 1
    assert b"enter it again" in said
    assert b"Traceback" not in said


def test_whoever_waits_at_a_terminal_sees_how_far_it_is(people: None) -> None:
    ours, theirs = pty.openpty()
    with started("docs", "publish", "notes", stderr=theirs) as child:
        os.close(theirs)
        printed, _ = child.communicate(timeout=60)
    told = os.read(ours, 65536).decode()
    os.close(ours)
    assert child.returncode == 0
    assert "of 4 documents" in told
    assert b"Published 4 documents" in printed
    quiet = process("docs", "publish", "other", environment=dict(os.environ))
    assert quiet.stderr == b""


def test_a_directory_of_other_origin_is_loaded_below_a_path_and_a_part_is_published() -> None:
    Path("wiki").mkdir()
    Path("wiki/Tea.md").write_text("# Tea\n\nGreen.\n")
    Path("wiki/tea.png").write_bytes(b"no text")
    result = run("docs", "load", "wiki", "--path", "archive/wiki")
    assert result.exit_code == 1
    assert "Created ~/memory/archive/wiki/Tea\n" in result.stdout
    assert "Not loaded: tea.png: it is not a Markdown file" in result.stdout
    docs("publish", "part", "--path", "archive/wiki")
    assert [file.name for file in Path("part").glob("*.md")] == ["Tea.md"]
    assert "is not empty" in refused("publish", "wiki")
    assert "there is no directory" in refused("load", "nowhere")
    refused("publish", exit_code=2)
    refused("load", "wiki", "--path", "../x", exit_code=2)


# what files say, to the letter


def test_a_body_comes_out_as_it_went_in() -> None:
    docs("write", "x", "a\r\nb")
    assert process("docs", "read", "x", "--body").stdout == b"a\r\nb\n"
    Path("marked.md").write_bytes(b"\xef\xbb\xbfhello\n")
    docs("write", "y", "--file", "marked.md")
    assert docs("read", "y", "--body") == "hello\n"


def test_a_patch_can_remove_with_an_empty_file_and_says_if_nothing_changed() -> None:
    docs("write", "x", "one two")
    Path("empty").write_text("")
    assert docs("patch", "x", "--old", " two", "--new-file", "empty").startswith("Wrote")
    assert docs("read", "x", "--body") == "one\n"
    said = docs("patch", "x", "--old", "one", "--new", "one")
    assert said == "Unchanged: ~/memory/x, version 2.\n"
    refused("patch", "x", "--old-file", "empty", "--new", "y", exit_code=2)


def test_advice_leads_to_the_same_place(people: None) -> None:
    docs("append", "people/ben", "more")
    assert "--limit 1 --after" in run("docs", "tree", "people", "--limit", "1").stderr
    assert "--limit 1 --before 2" in run("docs", "history", "people/ben", "--limit", "1").stderr
    nothing = run("docs", "search", "unheard-of", "--space", "other")
    assert nothing.stderr.endswith("recollect docs tree --space other\n")


# whose they are, and how they look


def test_spaces_do_not_see_each_other_s_documents() -> None:
    """P9."""
    document_id = docs_json("write", "x", "Mine.", "--space", "alice")["id"]
    assert paths("tree", "--space", "bob") == []
    for path in ("x", document_id):
        for arguments in (("read",), ("delete",), ("history",), ("purge", "--yes")):
            refused(arguments[0], path, *arguments[1:], "--space", "bob")
    assert docs("read", "x", "--body", "--space", "alice") == "Mine.\n"


def test_stored_text_never_reaches_the_terminal_raw() -> None:
    """P12."""
    link = f"[[y|{ESCAPES.replace('[', '')}]]"
    docs("write", "x", f"{ESCAPES} {link}", "--title", ESCAPES, "--description", ESCAPES)
    docs("append", "x", "more", "--reason", ESCAPES)
    for arguments in (
        ("tree",),
        ("read", "x"),
        ("read", "x", "--body"),
        ("read", "x", "--version", "1"),
        ("history", "x"),
        ("diff", "x", "1"),
        ("search", "red"),
        ("links", "x"),
        ("links", "--broken"),
    ):
        shown = CliRunner().invoke(cli, ["docs", *arguments], color=True).stdout
        styled = re.sub(r"\x1b\[\d+m", "", shown)
        assert re.search(r"red \\x1b\[?31mhot\\u202e", styled), arguments
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", styled)


def test_help_shows_every_verb_with_an_example() -> None:
    listed = docs("--help")
    verbs = re.findall(r"^  (\w+)  ", listed.partition("Commands:")[2], re.MULTILINE)
    assert {"tree", "read", "write", "append", "patch", "move", "delete", "restore"} < set(verbs)
    for verb in verbs:
        examples = docs(verb, "--help").partition("Example")[2]
        assert f"recollect docs {verb}" in examples, verb

"""D1 to D7 as a caller meets them: the tree of a space, one method per verb."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

import recollect
from recollect.adapters.anthropic_memory import MemoryTool
from recollect.clock import ManualClock
from recollect.documents.paths import read_path
from recollect.documents.scope import Holder
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents, OnReferences
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    InvalidValue,
    NotAllowed,
    NotFound,
    StaleVersion,
    TooLarge,
)
from recollect.types.facts import Source
from recollect.types.pages import Author, AuthorKind, Document, DocumentEvent, ReferenceKind

# Put together here, so that no file of ours looks as if it held a live key.
SECRET = "sk-" + "proj-" + "Zq8vT3mK" * 6
AGENT = Holder(author=Author(AuthorKind.AGENT, "helper"))


@pytest.fixture
def tree(memory: recollect.Memory) -> Documents:
    return memory.space("alice").documents


def paths(tree: Documents) -> list[str]:
    return [node.path.removeprefix("~/memory/") for node in tree.tree()[1:]]


# Writing


@pytest.mark.parametrize("path", ["", "/"])
def test_a_path_that_names_nothing_does_not_write_over_the_root(tree: Documents, path: str) -> None:
    tree.write("~/memory", "The top.")
    tree.write("people/ana", "Ana.")
    changes: tuple[Callable[[], object], ...] = (
        lambda: tree.write(path, "Elsewhere."),
        lambda: tree.append(path, "More."),
        lambda: tree.patch(path, "top", "bottom"),
        lambda: tree.move("people/ana", path),
        lambda: tree.move(path, "people/ben"),
        lambda: tree.delete(path, below=True),
    )
    for change in changes:
        with pytest.raises(InvalidPath, match="the root is ~/memory"):
            change()
    told = MemoryTool(tree)({"command": "create", "path": path, "file_text": "Elsewhere."})
    assert told.startswith("Error: ")
    assert tree.read("~/memory").body == "The top."
    assert [node.path for node in tree.tree(path)] == [
        "~/memory",
        "~/memory/people",
        "~/memory/people/ana",
    ]


def test_a_link_means_its_document_whatever_is_written_at_its_old_path(tree: Documents) -> None:
    tree.write("plans", "The first.")
    tree.write("a", "See [[plans]].")
    tree.move("plans", "archive/plans")
    tree.write("plans", "The second.")
    tree.append("a", "More.")
    inside = tree.held_by(replace(AGENT, root=read_path("~/memory")))
    for each in (tree, inside, tree.changeset()):
        [_, link] = each.links("a").outgoing
        assert (link.target, link.named) == ("~/memory/archive/plans", "~/memory/plans")
        assert [link.source for link in each.links("archive/plans").incoming] == ["~/memory/a"]
        assert each.links("plans").incoming == ()
    tree.delete("archive/plans", references="unlink")
    assert tree.read("a").body == "See plans.\n\nMore."
    tree.write("a", "See [[plans]] again.")
    assert [link.source for link in tree.links("plans").incoming] == ["~/memory/a"]


def test_a_page_is_written_and_read(tree: Documents, clock: ManualClock) -> None:
    grounds = Source(session_id="s", seq=1, seq_to=2, quote="I like tea")
    made = tree.held_by(AGENT).write(
        "people/Ana",
        "She likes tea.",
        title="Ana",
        description="a friend",
        tags=["people", "tea", "tea"],
        links=["people", "drinks/Tea.md"],
        reason="she said so",
        sources=[grounds],
        facts=["f1"],
    )
    assert tree.read("people/ANA.md") == tree.read(made.id) == made
    assert (made.path, made.version, made.tags) == ("~/memory/people/Ana", 1, ("people", "tea"))
    assert made.links == ("~/memory/people", "~/memory/drinks/Tea")
    assert (made.author, made.reason) == (AGENT.author, "she said so")
    assert (made.sources, made.facts, made.created_at) == ((grounds,), ("f1",), clock.now())
    assert tree.find("people/Bob") is None
    with pytest.raises(NotFound, match="people/Bob"):
        tree.read("people/Bob")


def test_what_is_not_given_stays_as_it_is(tree: Documents) -> None:
    tree.write("a", "one", title="A", description="the first", tags=["t"], links=["b"])
    second = tree.write("a", "two")
    assert (second.title, second.description, second.tags) == ("A", "the first", ("t",))
    assert (second.links, second.body, second.version) == (("~/memory/b",), "two", 2)
    third = tree.write("a", "two", title="", description="", tags=[], links=[])
    assert (third.title, third.description, third.tags, third.links) == ("untitled", "", (), ())


def test_a_new_page_is_called_as_it_was_written(tree: Documents) -> None:
    assert tree.write("People/Ana Souza", "x").title == "Ana Souza"
    assert tree.read("people").title == "People"


def test_text_is_appended_as_a_paragraph_and_replaced_where_it_stands_once(tree: Documents) -> None:
    tree.write("a", "")
    assert tree.append("a", "one").body == "one"
    assert tree.append("a", "two").body == "one\n\ntwo"
    assert tree.patch("a", "one", "three").body == "three\n\ntwo"
    for passage, count in (("e", 2), ("nothing", 0), ("", 0)):
        with pytest.raises(InvalidValue, match=f"occurs {count} times"):
            tree.patch("a", passage, "x")
    for change in (tree.append, lambda path, text: tree.patch(path, text, "x")):
        with pytest.raises(NotFound):
            change("nowhere", "text")
    assert tree.read("a").version == 4


def test_secrets_are_stored_nowhere(tree: Documents) -> None:
    made = tree.write(
        "a",
        f"the key is {SECRET}",
        title=f"t {SECRET}",
        description=f"d {SECRET}",
        tags=[f"tag {SECRET}"],
        reason=f"r {SECRET}",
        sources=[Source(session_id="s", seq=1, seq_to=1, quote=f"q {SECRET}")],
    )
    assert SECRET not in repr(made)
    assert SECRET not in repr(tree.append("a", f"again {SECRET}"))
    assert SECRET not in repr(tree.history("a"))
    assert tree.write("a", tree.read("a").body).version == 2


def test_each_part_of_a_page_has_its_limit(clock: ManualClock) -> None:
    settings = {"document_bytes_max": 1024, "documents_max": 3}
    with recollect.open(":memory:", clock=clock, settings=settings) as memory:
        tree = memory.space().documents
        assert tree.write("a", "é" * 512).version == 1
        writes: tuple[Callable[[], object], ...] = (
            lambda: tree.write("a", "é" * 512 + "x"),
            lambda: tree.write("a", "x" * 1025),
            lambda: tree.append("a", "x"),
            lambda: tree.patch("a", "é" * 512, "é" * 512 + "x"),
            lambda: tree.write("a", "x", title="x" * 301),
            lambda: tree.write("a", "x", description="x" * 2001),
            lambda: tree.write("a", "x", tags=["x"] * 65),
            lambda: tree.write("a", "x", tags=["x" * 101]),
            lambda: tree.write("a", "x", links=["x"] * 1001),
            lambda: tree.write("a", "x", reason="x" * 2001),
            lambda: tree.write("b/c", "one too many"),
        )
        for write in writes:
            with pytest.raises(TooLarge):
                write()
        assert tree.write("b", "x").version == tree.read("a").version == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.write("a", None),
        lambda tree: tree.write("a", b"x"),
        lambda tree: tree.write("a", "x", title=7),
        lambda tree: tree.write("a", "x", tags=[None]),
        lambda tree: tree.write("a", "x", sources=["s"]),
        lambda tree: tree.write("a", "x", facts=[7]),
        lambda tree: tree.append("a", None),
        lambda tree: tree.search(None),
        lambda tree: tree.tree(depth=-1),
        lambda tree: tree.history("a", before="x"),
        lambda tree: tree.history("a", before=2**70),
        lambda tree: tree.version("a", -1),
        lambda tree: tree.delete("a", references="perhaps"),
        lambda tree: tree.write("..", "x"),
        lambda tree: tree.write("a", "x", links=["../b"]),
        lambda tree: tree.move("a", "~"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_changes(
    tree: Documents, change: Callable[[Documents], object]
) -> None:
    before = tree.write("a", "text")
    with pytest.raises(InvalidValue):
        change(tree)
    assert tree.read("a") == before


def test_no_database_is_asked_for_what_it_cannot_hold(tree: Documents) -> None:
    assert tree.write("a", "a\0b\ud800").body == "a\ufffdb\ufffd"


# Versions


def test_every_change_names_a_version_or_is_made_on_the_newest(tree: Documents) -> None:
    tree.write("a", "one", expected_version=0)
    tree.write("a", "two", expected_version=1)
    stale: tuple[Callable[[], object], ...] = (
        lambda: tree.write("a", "x", expected_version=1),
        lambda: tree.append("a", "x", expected_version=1),
        lambda: tree.patch("a", "two", "x", expected_version=1),
        lambda: tree.move("a", "b", expected_version=1),
        lambda: tree.delete("a", expected_version=1),
        lambda: tree.restore("a", 1, expected_version=1),
    )
    for change in stale:
        with pytest.raises(StaleVersion, match="at version 2 by now") as caught:
            change()
        assert caught.value.current == 2
    with pytest.raises(DocumentExists):
        tree.write("a", "x", expected_version=0)
    with pytest.raises(NotFound):
        tree.write("new", "x", expected_version=1)
    assert tree.read("a").version == 2
    assert tree.append("a", "three", expected_version=2).version == 3


def test_history_tells_of_every_version_and_diff_what_changed(tree: Documents) -> None:
    tree.write("a", "tea\nmilk\n", title="A")
    tree.write("a", "tea\nsugar\n", title="A", reason="no milk left")
    tree.move("a", "b")
    newest, second, first = tree.history("b")
    assert (newest.event, second.event, first.event) == (
        DocumentEvent.MOVED,
        DocumentEvent.WRITTEN,
        DocumentEvent.CREATED,
    )
    assert (second.reason, second.body) == ("no milk left", "tea\nsugar\n")
    assert tree.history("a", limit=1, before=3) == [second]
    assert tree.version("b", 1) == first
    with pytest.raises(NotFound, match="no version 4"):
        tree.version("b", 4)
    changed = tree.diff("b", 1, 2).splitlines()
    assert changed[:2] == ["--- version 1", "+++ version 2"]
    assert {"-milk", "+sugar", " tea"} <= set(changed)
    assert "+path: ~/memory/b" in tree.diff("b", 2).splitlines()
    assert tree.diff("b", 2, 2) == ""


def test_the_newest_versions_of_a_page_are_kept(store_url: str) -> None:
    """D1, D7: a page that is written again and again does not grow a store without end."""
    with recollect.open(store_url, settings={"document_versions_kept": 3}) as memory:
        tree = memory.space("alice").documents
        for number in range(1, 7):
            tree.write("a", f"text {number}")
        tree.write("b", "text 1")
        tree.move("a", "c")
        assert [each.number for each in tree.history("c")] == [7, 6, 5, 4]
        tree.append("c", "more")
        assert [(e.number, e.body[:6]) for e in tree.history("c")][1:] == [
            (7, "text 6"),
            (6, "text 6"),
        ]
        with pytest.raises(NotFound):
            tree.version("c", 5)
        assert tree.restore("c", 6).version == 9
        agent = tree.held_by(Holder(author=Author(kind=AuthorKind.AGENT, name="a")))
        for number in range(6):
            agent.append("b", f"text {number}")
        assert [each.number for each in tree.history("b")] == [7, 6, 5, 1]  # hers, and the newest


def test_an_earlier_version_is_restored_as_a_new_one(tree: Documents) -> None:
    tree.write("a", "one", title="A", links=["b"])
    tree.write("a", "two", title="B", links=[])
    again = tree.restore("a", 1)
    assert (again.version, again.body, again.title) == (3, "one", "A")
    assert (again.links, again.reason) == (("~/memory/b",), "version 1 restored")
    assert [each.kind for each in tree.links("a").outgoing] == [
        ReferenceKind.PARENT,
        ReferenceKind.LINK,
    ]
    with pytest.raises(DocumentExists, match="say which version"):
        tree.restore("a")
    with pytest.raises(NotFound):
        tree.restore("a", 9)


# Links


def test_links_are_found_in_bodies_and_come_alive(tree: Documents) -> None:
    tree.write("a", "see [[b|her]], `[[code]]` and [[c]]", links=["d"])
    assert [(each.target, each.is_broken) for each in tree.broken_links()] == [
        ("~/memory/b", True),
        ("~/memory/c", True),
        ("~/memory/d", True),
    ]
    tree.write("b", "here")
    tree.write("x", "there")
    tree.move("x", "c")
    found = tree.links("a")
    alive = [each for each in found.outgoing if not each.is_broken]
    assert [(each.kind, each.target, each.alias) for each in alive] == [
        (ReferenceKind.PARENT, "~/memory", ""),
        (ReferenceKind.BODY, "~/memory/b", "her"),
        (ReferenceKind.BODY, "~/memory/c", ""),
    ]
    assert [each.source for each in tree.links("c").incoming] == ["~/memory/a"]
    assert [each.target for each in tree.broken_links()] == ["~/memory/d"]


def test_orphans_are_pages_that_nobody_mentions(tree: Documents) -> None:
    tree.write("index", "[[people/Ana]]")
    tree.write("people/Ana", "x")
    tree.write("people/Bob", "x")
    assert tree.orphans() == ["~/memory/people/Bob"]


def test_reports_show_a_holder_its_part_and_as_much_of_it_as_it_asks_for(tree: Documents) -> None:
    for name in ("a", "b"):
        for number in range(3):
            tree.write(f"{name}/{number}", f"[[{name}/nowhere/{number}]]")
    held = tree.held_by(Holder(root=tree.holder.top.child("b")))
    assert [each.source for each in held.broken_links(2)] == ["~/memory/b/0", "~/memory/b/1"]
    assert held.orphans(2) == ["~/memory/b/0", "~/memory/b/1"]
    assert len(tree.broken_links()) == len(tree.orphans()) == 6


# Moving, deleting, restoring


def test_a_page_moves_with_what_is_below_and_old_paths_lead_to_it(tree: Documents) -> None:
    tree.write("a/b/c", "text")
    moved = tree.move("a/b", "x/y", reason="tidier")
    assert (moved.path, moved.reason) == ("~/memory/x/y", "tidier")
    assert tree.read("a/b/c").path == "~/memory/x/y/c"
    assert tree.append("a/b/c", "more").path == "~/memory/x/y/c"
    assert tree.move("a/b", "z").path == "~/memory/z"
    new = tree.write("a/b", "new")
    assert (new.id != moved.id, new.version) == (True, tree.read("z").version + 1)
    assert paths(tree) == ["a", "a/b", "x", "z", "z/c"]
    with pytest.raises(InvalidPath, match="below itself"):
        tree.move("z", "z/c/d")
    with pytest.raises(DocumentExists):
        tree.move("z", "A/B")


def test_no_page_takes_the_place_of_the_root(memory: recollect.Memory) -> None:
    tree = memory.space("new").documents
    tree.write("~/elsewhere/skills", "mine")
    with pytest.raises(NotAllowed, match="root"):
        tree.move("~/elsewhere", "~/memory")
    tree.write("a", "text")
    for to in ("~/elsewhere/memory", "~/Memory"):
        with pytest.raises(NotAllowed, match="root"):
            tree.move("~/memory", to)


def test_every_path_a_move_can_lead_to_can_be_read(tree: Documents) -> None:
    """A page below is called by what stands above it, which can make its path longer than any."""
    slug = "x" * 100
    tree.write("/".join([slug] * 8), "deep")
    tree.write("y", "text")
    tree.move(slug, "/".join(["y", *["z" * 100] * 6, slug]))
    deepest = tree.tree(limit=1000)[-1]
    assert deepest.path.count("/") == 16
    assert len(deepest.path) > 1300
    assert tree.read(deepest.path).body == tree.read(deepest.id).body == "deep"
    assert tree.append(deepest.path, "more").version == 2


def test_what_others_refer_to_is_deleted_only_if_told_how_to_treat_them(tree: Documents) -> None:
    tree.write("a/b", "text")
    tree.write("a", "my own [[a/b]]")
    tree.write("c", "see [[a/b|the page]] and [[a/b]], not `[[a/b]]`", links=["a", "d"])
    with pytest.raises(DocumentReferenced, match="documents below it"):
        tree.delete("a")
    with pytest.raises(DocumentReferenced, match=r"~/memory/c → ~/memory/a"):
        tree.delete("a", below=True)
    gone = tree.delete("a", below=True, references=OnReferences.UNLINK, reason="not true")
    assert gone.deleted_at is not None
    left = tree.read("c")
    assert left.body == "see the page and b, not `[[a/b]]`"
    assert (left.links, left.version, left.reason) == (("~/memory/d",), 2, "not true")
    assert paths(tree) == ["c"]


def test_links_to_what_is_deleted_can_be_left_broken(tree: Documents) -> None:
    tree.write("a", "text")
    before = tree.write("c", "see [[a]]")
    tree.delete("a", references="leave")
    assert tree.read("c") == before
    assert [each.target for each in tree.broken_links()] == ["~/memory/a"]


def test_unlinking_reaches_what_refers_to_any_of_many_pages(tree: Documents) -> None:
    changes = StagedPages(tree, "many at once")
    for number in range(1200):
        changes.write(f"big/{number:04}", "x")
    changes.write("last", "see [[big/1199]]")
    changes.commit()
    tree.delete("big", below=True, references="unlink")
    assert tree.read("last").body == "see 1199"
    assert tree.broken_links() == []


def test_a_link_that_is_made_while_another_is_taken_away_keeps_the_page(
    tree: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write("a", "text")
    tree.write("b", "[[a]]")
    unlinking = Documents._unlinking

    def slow(self: Documents, *given: object) -> object:
        edits = unlinking(self, *given)  # type: ignore[arg-type]
        tree.write("c", "[[a]]")
        return edits

    monkeypatch.setattr(Documents, "_unlinking", slow)
    with pytest.raises(DocumentReferenced, match="~/memory/c"):
        tree.delete("a", references="unlink")
    assert tree.read("b").body == "[[a]]"


def test_what_was_deleted_comes_back_with_what_was_below(tree: Documents) -> None:
    tree.write("a/b", "text")
    deleted = tree.delete("a", below=True)
    assert tree.find("a/b") is None
    assert tree.history("a")[0].event is DocumentEvent.DELETED
    assert tree.search("text") == []
    assert tree.restore(deleted.id).version == 3
    assert (tree.read("a/b").body, tree.read("a/b").version) == ("text", 3)
    with pytest.raises(NotFound, match="is and was no document"):
        tree.restore("never")


def test_a_deleted_page_is_restored_by_its_id_and_in_an_earlier_version(tree: Documents) -> None:
    first = tree.write("a", "one")
    tree.write("a", "two")
    tree.delete("a")
    tree.write("a", "another")
    tree.delete("a")
    back = tree.restore(first.id, 1)
    assert (back.id, back.body) == (first.id, "one")


def test_a_purge_leaves_nothing_of_a_page(tree: Documents) -> None:
    made = tree.write("a/b", "text")
    tree.write("c", "[[a/b]]")
    tree.delete("a/b", references="leave")
    assert (tree.purge("a").documents, tree.purge("a").documents) == (2, 0)
    for path in ("a", "a/b", made.id):
        with pytest.raises(NotFound):
            tree.history(path)
    with pytest.raises(NotAllowed):
        tree.purge("~/memory")


# Trees and searches


def test_a_tree_comes_in_pages(tree: Documents) -> None:
    for name in ("b", "a/x/y", "a/w", "C"):
        tree.write(name, "text")
    whole = ["a", "a/w", "a/x", "a/x/y", "b", "C"]
    assert paths(tree) == whole
    first = tree.tree(limit=4)
    rest = tree.tree(after=first[-1].path)
    assert [node.path.removeprefix("~/memory/") for node in (*first, *rest)][1:] == whole
    assert [node.path for node in tree.tree("a", depth=1)] == [
        *("~/memory/a", "~/memory/a/w", "~/memory/a/x"),
    ]
    assert tree.tree("nowhere") == []


@pytest.mark.parametrize(
    "query", ["", "  ", '"', "tea AND", "NEAR(", "*", "\0", "\ud800", "a" * 100_000, "-tea", "日本"]
)
def test_any_text_is_a_legal_query(tree: Documents, query: str) -> None:
    tree.write("a", "tea")
    assert tree.search(query) in ([], [tree.read("a")])
    assert tree.search(f"{query} tea") == [tree.read("a")]


def test_a_search_stays_below(tree: Documents) -> None:
    for path in ("a/b", "c", "~/other/d"):
        tree.write(path, "tea")
    assert {each.path for each in tree.search("tea")} == {"~/memory/a/b", "~/memory/c"}
    assert [each.path for each in tree.search("tea", below="a")] == ["~/memory/a/b"]
    assert [each.path for each in tree.search("tea", below="~/other")] == ["~/other/d"]
    assert len(tree.search("tea", 1)) == 1


# Several at once


def at_once(*jobs: Callable[[], object]) -> None:
    barrier = threading.Barrier(len(jobs))

    def released(job: Callable[[], object]) -> object:
        barrier.wait(timeout=60)
        return job()

    with ThreadPoolExecutor(len(jobs)) as threads:
        for done in [threads.submit(released, job) for job in jobs]:
            done.result()


def test_words_that_many_append_at_once_are_all_there(durable_store_url: str) -> None:
    with recollect.open(durable_store_url) as memory:
        tree = memory.space().documents
        tree.write("a", "begin")

        def append(name: str) -> None:
            left = [f"{name}{number}" for number in range(5)]
            while left:
                try:
                    tree.append("a", left[0])
                except StaleVersion:
                    continue  # the others were faster eight times in a row
                left.pop(0)

        at_once(*(lambda name=name: append(name) for name in "wxyz"))
        words = tree.read("a").body.split()
        assert sorted(words[1:]) == sorted(f"{name}{n}" for name in "wxyz" for n in range(5))
        assert tree.read("a").version == 21


def test_a_page_is_found_by_who_appends_while_it_is_moved(durable_store_url: str) -> None:
    with recollect.open(durable_store_url) as memory:
        tree = memory.space().documents
        made = tree.write("a", "begin")

        def wander() -> None:
            for number in range(10):
                tree.move(made.id, f"place {number}")

        def append() -> None:
            done = 0
            while done < 10:
                try:
                    tree.append(made.id, f"word{done}")
                except StaleVersion:
                    continue  # moved on eight times in a row
                done += 1

        at_once(wander, append)
        assert tree.read("a").path == "~/memory/place 9"
        assert tree.read(made.id).body.split()[1:] == [f"word{number}" for number in range(10)]
        assert tree.read(made.id).version == 21


# What was seen is what is changed


def test_a_version_of_what_is_gone_is_stale_for_what_stands_there(tree: Documents) -> None:
    """D5: read it, and somebody else deletes or moves it and writes another page there."""
    for leave in (tree.delete, lambda path: tree.move(path, f"{path}-old")):
        seen = tree.write("page", "seen")
        leave("page")
        tree.write("page", "never seen")
        with pytest.raises(StaleVersion):
            tree.write("page", "made from the first", expected_version=seen.version)
        assert tree.read("page").body == "never seen"
        tree.purge("page")


def test_a_version_is_a_whole_number(tree: Documents) -> None:
    tree.write("a", "text")
    changes: list[Callable[[object], object]] = [
        lambda version: tree.write("a", "x", expected_version=version),  # type: ignore[arg-type]
        lambda version: tree.append("a", "x", expected_version=version),  # type: ignore[arg-type]
        lambda version: tree.move("a", "b", expected_version=version),  # type: ignore[arg-type]
        lambda version: tree.delete("a", expected_version=version),  # type: ignore[arg-type]
        lambda version: tree.restore("a", 1, expected_version=version),  # type: ignore[arg-type]
    ]
    for change in changes:
        for version in (True, "1", 1.0, -1, 2**70):
            with pytest.raises(InvalidValue, match="whole number"):
                change(version)
    assert tree.read("a").version == 1


@pytest.mark.parametrize("threads", [10])
def test_all_that_is_appended_at_once_is_there(store_url: str, threads: int) -> None:
    """D5: ten appends at once are ten paragraphs; nobody has to try again."""
    with recollect.open(store_url) as memory, ThreadPoolExecutor(threads) as pool:
        tree = memory.space().documents
        for number in range(5):
            tree.write(f"page {number}", "start")
            barrier = threading.Barrier(threads)

            def add(text: str, path: str = f"page {number}", start: object = barrier.wait) -> None:
                start()  # type: ignore[operator]
                tree.append(path, text)

            list(pool.map(add, map(str, range(threads))))
            said = tree.read(f"page {number}")
            assert sorted(said.body.split()) == sorted(["start", *map(str, range(threads))])
            assert said.version == 1 + threads


def test_a_page_that_is_deleted_just_before_it_is_written_is_made_anew(
    tree: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write("a", "one")
    known = tree.read("a")
    store = tree._store.documents
    apply = store.apply

    def beaten(*given: object) -> list[Document]:
        monkeypatch.setattr(store, "apply", apply)
        tree.delete("a")
        return apply(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "apply", beaten)
    made = tree.write("a", "two")
    assert (made.body, made.id != known.id) == ("two", True)
    monkeypatch.setattr(store, "apply", beaten)
    with pytest.raises(NotFound):
        tree.append("a", "three")


def test_a_function_of_what_a_page_says_is_applied_to_it(tree: Documents) -> None:
    tree.write("a", "one two", title="A", tags=["t"])
    made = tree.rewrite("a", str.upper, reason="louder")
    assert (made.body, made.title, made.tags, made.reason) == ("ONE TWO", "A", ("t",), "louder")
    with pytest.raises(StaleVersion):
        tree.rewrite("a", str.lower, expected_version=1)
    with pytest.raises(NotFound):
        tree.rewrite("b", str.lower)


def test_what_is_appended_stands_below_what_is_there_to_the_letter(tree: Documents) -> None:
    tree.write("a", "a line break  ")
    assert tree.append("a", "two").body == "a line break  \n\ntwo"
    tree.write("a", "one\n")
    assert tree.append("a", "two\n").body == "one\n\ntwo\n"
    tree.write("a", "one\n\n\n")
    before = tree.append("a", "two")
    assert before.body == "one\n\n\ntwo"
    for nothing in ("", " \n"):
        assert tree.append("a", nothing) == before


# What was deleted


def test_a_deleted_page_is_restored_although_another_one_was_moved_away(tree: Documents) -> None:
    tree.write("k", "first")
    tree.delete("k")
    tree.write("k", "second")
    tree.move("k", "moved")
    assert [version.body for version in tree.history("k")] == ["first", "first"]
    back = tree.restore("k")
    assert (back.path, back.body) == ("~/memory/k", "first")
    assert tree.read("moved").body == "second"


def test_what_was_deleted_is_listed_and_found_again(tree: Documents, clock: ManualClock) -> None:
    """D6: also a page in whose place another stands by now."""
    first = tree.write("u", "precious", title="U")
    tree.delete("u", reason="by mistake")
    tree.write("u", "new")
    clock.advance(1)
    tree.write("v/w", "x")
    tree.delete("v/w")
    found = tree.deleted()
    assert [each.path for each in found] == ["~/memory/v/w", "~/memory/u"]
    assert (found[1].id, found[1].title, found[1].reason) == (first.id, "U", "by mistake")
    assert (found[1].body_chars, found[1].version) == (8, 2)
    assert [each.id for each in tree.deleted(limit=1, after=found[0].id)] == [first.id]
    assert [each.path for each in tree.deleted("v")] == ["~/memory/v/w"]
    with pytest.raises(DocumentExists, match="move it away"):
        tree.restore("u")
    tree.move("u", "u2")
    assert tree.restore(first.id).body == "precious"
    held = tree.held_by(Holder(root=tree.holder.top.child("v")))
    assert [each.path for each in held.deleted()] == ["~/memory/v/w"]
    with pytest.raises(NotAllowed):
        held.deleted("u")


def test_a_page_comes_back_below_its_parent_as_that_was(tree: Documents) -> None:
    tree.write("par", "what the parent says")
    tree.write("par/kid", "k")
    tree.delete("par", below=True)
    tree.restore("par/kid")
    assert tree.read("par").body == "what the parent says"


# What may not be seen or stored


def test_reports_to_a_holder_say_nothing_of_what_stands_outside(tree: Documents) -> None:
    part = tree.held_by(Holder(root=tree.holder.top.child("scout")))
    tree.write("secret/exists", "x")
    part.write("scout/probe", "[[secret/exists]] [[secret/missing]] [[scout/missing]]")
    tree.write("secret/linker", "[[scout/probe]]")
    assert [each.target for each in part.broken_links()] == ["~/memory/scout/missing"]
    assert part.orphans() == ["~/memory/scout/probe"]
    assert "~/memory/scout/probe" not in tree.orphans()


@pytest.mark.parametrize("path", ["keys/{}", "{}/a", "a {} b", "~/{}"])
def test_no_secret_becomes_part_of_a_path(tree: Documents, path: str) -> None:
    """P10: paths are shown, listed and indexed as they are."""
    named = path.format(SECRET)
    tree.write("a", "text")
    changes: list[Callable[[], Document]] = [
        lambda: tree.write(named, "text"),
        lambda: tree.write("b", "text", links=[named]),
        lambda: tree.move("a", named),
        lambda: tree.changeset().move("a", named),
    ]
    for change in changes:
        with pytest.raises(InvalidPath, match="secret") as caught:
            change()
        assert SECRET not in str(caught.value)
    assert paths(tree) == ["a"]


def test_who_writes_and_what_it_rests_on_is_checked(tree: Documents) -> None:
    """P8: whatever a caller gives has a limit, and every store holds it."""
    named = tree.held_by(Holder(author=Author(AuthorKind.AGENT, "x\x00\ud800y")))
    assert named.write("a", "text").author.name == "x\ufffd\ufffdy"
    with pytest.raises(TooLarge, match="name"):
        tree.held_by(Holder(author=Author(AuthorKind.AGENT, "x" * 300))).write("b", "text")
    good = Source(session_id="s", seq=1, seq_to=1)
    for bad in (
        [good] * 1001,
        [replace(good, quote="q" * 2001)],
        [replace(good, session_id="s" * 300)],
        [replace(good, session_id="s\ud800")],
        [replace(good, session_id="s\x00")],
        [replace(good, seq=-1)],
        [replace(good, seq_to="1")],  # type: ignore[arg-type]
        ["s"],
    ):
        with pytest.raises(InvalidValue):
            tree.write("b", "text", sources=bad)  # type: ignore[arg-type]
    for facts in (["f"] * 1001, ["f" * 300], "fact", ["\x00"]):
        with pytest.raises(InvalidValue):
            tree.write("b", "text", facts=facts)
    assert paths(tree) == ["a"]


@pytest.mark.parametrize("field", ["tags", "links"])
def test_one_text_is_no_list_of_texts(tree: Documents, field: str) -> None:
    for given in ("person", b"ab", 7):
        with pytest.raises(InvalidValue, match=f"{field} are a list"):
            tree.write("a", "text", **{field: given})  # type: ignore[arg-type]
    assert tree.write("a", "text", tags=["t", "", " ", "t"]).tags == ("t",)


def test_forgotten_words_do_not_come_back_with_a_changeset(memory: recollect.Memory) -> None:
    """P11: what was prepared before a session was forgotten is committed without its words."""
    space = memory.space("alice")
    session = space.session("k")
    session.append("user", "I like okapi cake")
    edits = space.documents.changeset()
    quote = Source(session_id=session.id, seq=1, seq_to=1, quote="okapi cake")
    edits.write("cakes", "Many.", sources=[quote], facts=["f1"])
    space.forget(session=session)
    [made] = edits.commit()
    assert (made.sources, made.facts) == ((), ("f1",))


# Ids, and paths that pages had before


def test_a_part_of_the_tree_is_found_by_an_old_path_or_an_id(tree: Documents) -> None:
    tree.write("dir/x", "tea")
    tree.move("dir", "dir2")
    top = tree.read("dir2").id
    for path in ("dir", "dir2", top):
        assert [node.path for node in tree.tree(path)] == ["~/memory/dir2", "~/memory/dir2/x"]
        assert [found.slug for found in tree.search("tea", below=path)] == ["x"]
    assert tree.tree("never") == []
    for ask in (tree.tree, lambda path: tree.search("tea", below=path)):
        with pytest.raises(NotFound):
            ask("00000000-0000-7000-8000-000000000000")


def test_an_id_names_no_place(tree: Documents) -> None:
    made = tree.write("t", "real")
    for change in (
        lambda: tree.write(made.id, "meant for t"),
        lambda: tree.move("t", made.id),
        lambda: tree.write("u", "text", links=[made.id]),
        lambda: tree.purge(made.id),
    ):
        with pytest.raises(InvalidPath, match="id of a document"):
            change()
    assert paths(tree) == ["t"]
    assert tree.read("t") == made


# Bounded work


def test_what_refers_to_a_page_comes_in_pages(tree: Documents) -> None:
    tree.write("hub", "text")
    for name in "abc":
        tree.write(name, "[[hub]]", links=["hub"])
    found = tree.links("hub", limit=1).incoming
    assert [each.source for each in found] == ["~/memory/a"] * 2
    rest = tree.links("hub", limit=3, after=found[-1].source).incoming
    assert [each.source for each in rest] == ["~/memory/b"] * 2 + ["~/memory/c"] * 2
    assert tree.links("hub", limit=0).incoming == ()
    assert len(tree.links("hub").incoming) == 6


def test_a_purge_says_whether_it_is_clean(tmp_path: Path) -> None:
    """P11: what somebody still reads is taken out of the log by a later write."""
    file = tmp_path / "memory.db"
    with recollect.open(f"sqlite:///{file}", settings={"sqlite_busy_timeout_ms": 0}) as memory:
        tree = memory.space().documents
        tree.write("a", "wombat")
        reader = apsw.Connection(str(file))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM documents").fetchall()
        assert not tree.purge("a").is_clean
        assert b"wombat" in everything_in(tmp_path)
        reader.execute("COMMIT")
        reader.close()
        tree.write("b", "later")
        assert b"wombat" not in everything_in(tmp_path)
        assert tree.purge("b").is_clean


def everything_in(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(directory.iterdir()))

"""D1, D5: edits prepared aside, readable at once in there, and committed whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect
from recollect.clock import ManualClock
from recollect.documents import changeset as changesets
from recollect.documents.changeset import Changeset
from recollect.documents.editing import Editor
from recollect.documents.paths import read_path
from recollect.documents.scope import Holder
from recollect.documents.tree import Documents
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    NotAllowed,
    NotFound,
    RecollectError,
    StaleVersion,
    TooLarge,
)
from recollect.types.facts import Source
from recollect.types.pages import Author, AuthorKind, Document

# Put together here, so that no file of ours looks as if it held a live key.
SECRET = "sk-" + "proj-" + "Zq8vT3mK" * 6


@pytest.fixture
def mine(memory: recollect.Memory) -> Documents:
    return memory.space("alice").documents


def paths(documents: Editor) -> list[str]:
    return [node.path for node in documents.tree()]


def everything(documents: Documents) -> list[tuple[object, ...]]:
    """All that the store has, versions included."""
    return [
        (document, *documents.history(document.id))
        for document in (documents.read(node.path) for node in documents.tree())
    ]


# prepared aside


def test_what_is_prepared_is_read_in_the_changeset_and_nowhere_else(mine: Documents) -> None:
    mine.write("tea", "Green.")
    edits = mine.changeset()
    edits.append("tea", "Black too.")
    edits.write("coffee/beans", "Arabica.")
    assert edits.read("tea").body == "Green.\n\nBlack too."
    assert edits.read("coffee/beans").body == "Arabica."
    assert paths(edits) == ["~/memory", "~/memory/coffee", "~/memory/coffee/beans", "~/memory/tea"]
    assert paths(mine) == ["~/memory", "~/memory/tea"]
    assert mine.read("tea").body == "Green."


def test_a_commit_makes_every_edit(mine: Documents) -> None:
    mine.write("tea", "Green.")
    mine.write("old", "To go.")
    edits = mine.changeset("a tidy cupboard")
    edits.patch("tea", "Green", "White")
    edits.write("coffee", "Arabica.", tags=["drink"])
    edits.delete("old")
    made = edits.commit()
    assert [(each.path, each.version) for each in made] == [
        ("~/memory/tea", 2),
        ("~/memory/coffee", 1),
        ("~/memory/old", 2),
    ]
    assert {each.reason for each in made} == {"a tidy cupboard"}
    assert paths(mine) == ["~/memory", "~/memory/coffee", "~/memory/tea"]
    assert edits.edits == ()


def test_what_is_dropped_leaves_no_trace(mine: Documents) -> None:
    mine.write("tea", "Green.")
    before = everything(mine)
    edits = mine.changeset()
    edits.write("tea", "Black.")
    edits.write("coffee/beans", "Arabica.")
    edits.move("coffee", "tea/coffee")
    edits.delete("tea", below=True)
    edits.drop()
    assert everything(mine) == before
    assert edits.commit() == []
    assert edits.read("tea").body == "Green."
    with pytest.raises(NotFound):
        mine.history("coffee")


def test_what_a_commit_would_do_can_be_read(mine: Documents) -> None:
    mine.write("tea", "Green.")
    edits = mine.changeset()
    edits.append("tea", "More.")
    edits.write("coffee", "Arabica.")
    edits.move("tea", "drinks/tea")
    edits.delete("coffee")
    assert [str(each) for each in edits.edits] == [
        "write ~/memory/tea (version 1)",
        "create ~/memory/coffee",
        "move ~/memory/tea to ~/memory/drinks/tea (version 2)",
        "delete ~/memory/coffee (version 1)",
    ]


def test_no_transaction_is_open_while_a_changeset_is_prepared(durable_store_url: str) -> None:
    """P5: whoever prepares something for an hour is in nobody's way."""
    with recollect.open(durable_store_url) as one, recollect.open(durable_store_url) as other:
        edits = one.space().documents.changeset()
        edits.write("tea", "Green.")
        edits.write("cups", "Two.")
        other.space().documents.write("coffee", "Arabica.")
        edits.append("tea", "Black too.")
        edits.commit()
        assert paths(other.space().documents)[1:] == [
            "~/memory/coffee",
            "~/memory/cups",
            "~/memory/tea",
        ]


# what it is based on


def test_a_document_that_somebody_else_changed_refuses_the_whole_commit(mine: Documents) -> None:
    mine.write("tea", "Green.")
    edits = mine.changeset()
    edits.write("cups", "Two.")
    edits.append("tea", "Black too.")
    mine.write("tea", "White.")
    with pytest.raises(StaleVersion) as refused:
        edits.commit()
    assert refused.value.current == 2
    assert paths(mine) == ["~/memory", "~/memory/tea"]
    assert [each.path for each in edits.edits] == ["~/memory/cups", "~/memory/tea"]
    with pytest.raises(StaleVersion):  # there is no tree that it would make
        edits.read("cups")


def test_a_change_is_based_on_what_was_read_for_it(mine: Documents) -> None:
    """D5. Somebody who is faster each time it is reckoned is not written over."""
    mine.write("a", "one")

    def ours(body: str) -> str:
        mine.append("a", "theirs")
        return body + " ours"

    changeset = mine.changeset()
    with pytest.raises(StaleVersion):
        changeset.rewrite("a", ours)
    assert changeset.edits == ()
    assert mine.read("a").body == "one\n\ntheirs"


def test_a_page_that_somebody_else_made_refuses_the_whole_commit(mine: Documents) -> None:
    edits = mine.changeset()
    edits.write("tea", "Green.")
    edits.write("cups", "Two.")
    mine.write("tea", "White.")
    with pytest.raises(DocumentExists):
        edits.commit()
    assert mine.find("cups") is None
    assert mine.read("tea").body == "White."


def test_another_document_of_the_same_version_in_its_place_refuses_the_commit(
    mine: Documents,
) -> None:
    mine.write("tea", "Green.")
    edits = mine.changeset()
    edits.append("tea", "Black too.")
    mine.move("tea", "elsewhere")
    mine.write("tea", "White.")
    with pytest.raises(StaleVersion):
        edits.commit()


def test_pages_made_in_passing_do_not_get_in_each_others_way(mine: Documents) -> None:
    one, other = mine.changeset(), mine.changeset()
    one.write("people/ana", "Ana.")
    other.write("people/bob", "Bob.")
    one.commit()
    other.commit()
    assert paths(mine)[1:] == ["~/memory/people", "~/memory/people/ana", "~/memory/people/bob"]


def test_a_page_made_in_passing_and_then_written_must_be_new(mine: Documents) -> None:
    edits = mine.changeset()
    edits.write("people/ana", "Ana.")
    edits.write("people", "Everybody.")
    mine.write("people", "Mine.")
    with pytest.raises(StaleVersion):
        edits.commit()
    assert mine.read("people").body == "Mine."


def test_a_deletion_below_refuses_when_something_below_has_changed(mine: Documents) -> None:
    mine.write("old/notes", "One.")
    edits = mine.changeset()
    edits.delete("old", below=True)
    mine.append("old/notes", "Important.")
    with pytest.raises(StaleVersion):
        edits.commit()
    assert mine.read("old/notes").body == "One.\n\nImportant."


def test_an_expected_version_is_that_of_the_changeset(mine: Documents) -> None:
    mine.write("tea", "Green.")
    edits = mine.changeset()
    written = edits.write("tea", "Black.", expected_version=1)
    assert written.version == 2
    with pytest.raises(StaleVersion):
        edits.append("tea", "More.", expected_version=1)
    edits.append("tea", "More.", expected_version=2)
    assert mine.read("tea").version == 1


# versions


def test_each_edit_is_a_version(mine: Documents) -> None:
    """D1: also where one takes back what another wrote; what changes nothing is none."""
    mine.write("tea", "Green.")
    edits = mine.changeset()
    for text in ("Green.", "Black.", "Black.", "Green."):
        edits.write("tea", text)
    edits.move("tea", "drinks/tea")
    assert [each.based_on for each in edits.edits] == [1, 2, 3]
    assert [each.number for each in edits.history("drinks/tea")] == [4, 3, 2, 1]
    edits.commit()
    said = [(each.number, each.body) for each in mine.history("drinks/tea")]
    assert said == [(4, "Green."), (3, "Green."), (2, "Black."), (1, "Green.")]


def test_each_edit_keeps_its_own_reason_sources_and_facts(mine: Documents) -> None:
    """D1: what one page rests on is no ground of another that is committed with it."""
    said = Source(session_id="s1", seq=1, seq_to=2, quote=f"the key is {SECRET}")
    counted = Source(session_id="s2", seq=1, seq_to=1, quote="two of them")
    edits = mine.changeset()
    edits.write("tea/green", "Green.", reason="he said so", sources=[said], facts=["f1"])
    edits.write("cups", "Two.", reason="counted", sources=[counted], facts=["f2"])
    edits.move("cups", "mugs")
    edits.commit()
    for path in ("tea", "tea/green"):
        tea = mine.read(path)
        assert (tea.reason, tea.facts) == ("he said so", ("f1",))
        assert [each.session_id for each in tea.sources] == ["s1"]
        assert SECRET not in repr(tea)
    moved, made = mine.history("mugs")
    assert (made.reason, made.sources, made.facts) == ("counted", (counted,), ("f2",))
    assert (moved.reason, moved.sources, moved.facts) == ("", (), ())


def test_the_reason_of_the_commit_comes_first(mine: Documents) -> None:
    edits = mine.changeset("prepared")
    edits.write("tea", "Green.", reason="he said so")
    assert edits.commit("committed")[0].reason == "committed"


# moves, deletions, restoring


def test_a_moved_subtree_is_read_where_it_would_stand(mine: Documents) -> None:
    mine.write("a/b/c", "Deep.")
    ids = {path: mine.read(path).id for path in ("a/b", "a/b/c")}
    edits = mine.changeset()
    edits.move("a/b", "z/y")
    assert edits.read("z/y/c").body == "Deep."
    assert edits.read("a/b/c").path == "~/memory/z/y/c"
    assert edits.read(ids["a/b/c"]).path == "~/memory/z/y/c"
    assert paths(edits) == [
        "~/memory",
        "~/memory/a",
        "~/memory/z",
        "~/memory/z/y",
        "~/memory/z/y/c",
    ]
    assert [node.has_children for node in edits.tree()] == [True, False, True, True, False]
    edits.append("z/y/c", "Deeper.")
    edits.write("a/b", "Something else.")
    edits.commit()
    assert mine.read("z/y/c").body == "Deep.\n\nDeeper."
    assert mine.read(ids["a/b"]).path == "~/memory/z/y"
    assert mine.read("a/b").body == "Something else."


def test_the_tree_of_a_changeset_comes_in_pages(mine: Documents) -> None:
    for number in range(6):
        mine.write(f"a/{number}", "x")
    edits = mine.changeset()
    edits.move("a/3", "b/3")
    edits.delete("a/1")
    edits.write("a/2b", "x")
    whole = paths(edits)
    after, pages = None, []
    while page := edits.tree(limit=2, after=after):
        pages += [node.path for node in page]
        after = page[-1].path
    assert pages == whole
    assert [node.path for node in edits.tree(depth=1)] == ["~/memory", "~/memory/a", "~/memory/b"]


def test_what_is_deleted_in_a_changeset_can_be_restored_in_it(mine: Documents) -> None:
    mine.write("a/b", "Deep.")
    edits = mine.changeset()
    edits.delete("a", below=True)
    assert edits.find("a/b") is None
    edits.restore("a")
    assert edits.read("a/b").body == "Deep."
    version = edits.read("a/b").version
    edits.commit()
    assert mine.read("a/b").version == version


def test_what_was_deleted_before_comes_back_with_the_commit(mine: Documents) -> None:
    mine.write("a/b", "Deep.")
    mine.delete("a", below=True)
    edits = mine.changeset()
    edits.restore("a")
    edits.write("c", "See [[a]].")
    assert edits.read("a").version == 3
    edits.commit()
    assert mine.read("a/b").body == "Deep."


def test_an_earlier_version_is_restored_in_a_changeset(mine: Documents) -> None:
    mine.write("tea", "Green.")
    mine.write("tea", "Black.")
    edits = mine.changeset()
    edits.restore("tea", 1)
    assert mine.read("tea").body == "Black."
    edits.commit()
    assert mine.read("tea").body == "Green."


def test_a_deletion_is_refused_while_something_prepared_refers_to_it(mine: Documents) -> None:
    mine.write("tea", "Green.")
    edits = mine.changeset()
    edits.write("cups", "For [[tea]].")
    with pytest.raises(DocumentReferenced, match="cups"):
        edits.delete("tea")
    edits.write("cups", "For nothing.")
    edits.delete("tea")
    edits.commit()
    assert mine.find("tea") is None


def test_a_reference_made_meanwhile_refuses_the_commit(mine: Documents) -> None:
    mine.write("tea", "Green.")
    edits = mine.changeset()
    edits.delete("tea")
    mine.write("cups", "For [[tea]].")
    with pytest.raises(DocumentReferenced):
        edits.commit()
    assert mine.read("tea").body == "Green."


def test_an_edit_that_fails_half_way_leaves_the_changeset_as_it_was(mine: Documents) -> None:
    mine.write("tea/green", "Sencha.")
    mine.write("cups", "For [[tea]].")
    edits = mine.changeset()
    edits.write("new", "Page.")
    before = (edits.edits, edits.read("cups"), paths(edits))
    with pytest.raises(DocumentReferenced):
        edits.delete("tea", references="unlink")  # unlinks, and then finds something below
    assert (edits.edits, edits.read("cups"), paths(edits)) == before


# checked like any change


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda edits: edits.write("MEMORY", "Mine now."), NotAllowed),
        (lambda edits: edits.write("skills/x", "Mine now."), NotAllowed),
        (lambda edits: edits.move("tea", "MEMORY"), NotAllowed),
        (lambda edits: edits.write("~/elsewhere/x", "x"), NotAllowed),
        (lambda edits: edits.move("tea", "~/elsewhere/x"), NotAllowed),
        (lambda edits: edits.read("~/elsewhere/there"), NotAllowed),
        (lambda edits: edits.write("a/../b", "x"), InvalidPath),
        (lambda edits: edits.write("tea", "x" * 2_000_000), TooLarge),
        (lambda edits: edits.move("tea", "tea/below"), InvalidPath),
        (lambda edits: edits.move("tea", "cups"), DocumentExists),
        (lambda edits: edits.delete("~/memory", below=True), NotAllowed),
        (lambda edits: edits.append("nothing", "x"), NotFound),
        (lambda edits: edits.delete("nothing"), NotFound),
        (lambda edits: edits.move("nothing", "something"), NotFound),
        (lambda edits: edits.restore("nothing"), NotFound),
        (lambda edits: edits.restore("tea"), DocumentExists),
        (lambda edits: edits.move("tea", "/".join("abcdefghijklmnop")), InvalidPath),
    ],
)
def test_what_is_not_allowed_is_refused_when_it_is_prepared(
    mine: Documents, change: Callable[[Changeset], object], refusal: type[RecollectError]
) -> None:
    mine.write("~/elsewhere/there", "x")
    mine.write("tea", "Green.")
    mine.write("cups/one", "Blue.")
    agent = Holder(author=Author(kind=AuthorKind.AGENT, name="a"), root=read_path("~/memory"))
    edits = mine.held_by(agent).changeset()
    with pytest.raises(refusal):
        change(edits)
    assert edits.edits == ()


def test_what_a_commit_would_refuse_is_refused_when_it_is_prepared(mine: Documents) -> None:
    """Also what only the store knows: here, how long the paths below would become."""
    mine.write("a/" + "/".join(["é" * 100] * 7), "x")
    edits = mine.changeset()
    with pytest.raises(InvalidPath, match="bytes"):
        edits.move("a", "é" * 100)
    assert edits.edits == ()


def test_nothing_prepared_holds_a_secret(mine: Documents) -> None:
    edits = mine.changeset(f"the key is {SECRET}")
    edits.write("tea", f"The key is {SECRET}.", title=SECRET, tags=[SECRET])
    assert SECRET not in repr((edits.read("tea"), edits.commit()))


def test_a_changeset_has_an_end(mine: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changesets, "EDITS_MAX", 2)
    edits = mine.changeset()
    edits.write("a", "x")
    edits.write("b", "x")
    with pytest.raises(TooLarge):
        edits.write("c", "x")
    assert len(edits.commit()) == 2
    assert mine.find("c") is None


def test_a_search_finds_what_is_prepared(mine: Documents) -> None:
    mine.write("a/tea", "Green leaves.")
    mine.write("cups", "Two blue ones.")
    mine.write("plates", "Two green ones.")
    edits = mine.changeset()
    edits.move("a", "b")
    edits.write("cups", "Three red ones.")
    edits.delete("plates")
    assert [each.path for each in edits.search("green")] == ["~/memory/b/tea"]
    assert [each.path for each in edits.search("leaves", below="b")] == ["~/memory/b/tea"]
    assert edits.search("leaves", below="cups") == []
    assert edits.search("blue") == []
    assert [each.path for each in edits.search("red")] == ["~/memory/cups"]


# a changeset against the tree itself

NAMES = st.sampled_from(["a", "b", "c", "A"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
BODIES = st.one_of(st.sampled_from(["x", "y"]), PATHS.map(lambda path: f"see [[{path}]]"))
EDITS = st.one_of(
    st.tuples(st.just("write"), PATHS, BODIES),
    st.tuples(st.just("append"), PATHS, st.just("more")),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("delete"), PATHS, st.sampled_from(["leave", "unlink", "refuse"])),
    st.tuples(st.just("restore"), PATHS, st.none()),
    st.tuples(st.just("read"), PATHS, st.none()),
)
Move = tuple[str, str, object]


def outcome(documents: Editor, edit: Move) -> object:
    try:
        made: Document = make(documents, edit)
    except RecollectError as error:
        return type(error)
    return (made.path, made.title, made.body)


def make(documents: Editor, edit: Move) -> Document:
    match edit:
        case ("write", path, str(body)):
            return documents.write(path, body)
        case ("append", path, str(text)):
            return documents.append(path, text)
        case ("move", path, str(to)):
            return documents.move(path, to)
        case ("delete", path, str(references)):
            return documents.delete(path, below=True, references=references)
        case ("restore", path, _):
            return documents.restore(path)
        case _:
            return documents.read(edit[1])


def view(documents: Editor) -> list[tuple[object, ...]]:
    return [
        (
            node.path,
            node.title,
            node.has_children,
            documents.read(node.path).body,
            [
                (each.kind, each.target, each.is_broken)
                for each in documents.links(node.id).outgoing
            ],
            [(each.kind, each.source) for each in documents.links(node.id).incoming],
        )
        for node in documents.tree()
    ]


@settings(max_examples=50)
@given(before=st.lists(EDITS, max_size=8), edits=st.lists(EDITS, min_size=1, max_size=14))
def test_a_changeset_is_the_tree_as_it_would_be(before: list[Move], edits: list[Move]) -> None:
    """Every edit has the same outcome in a changeset, and the same tree comes of the commit."""
    with recollect.open(":memory:", clock=ManualClock()) as memory:
        direct, aside = memory.space("direct").documents, memory.space("aside").documents
        for edit in before:
            outcome(direct, edit)
            outcome(aside, edit)
        changeset = aside.changeset()
        for edit in edits:
            assert outcome(changeset, edit) == outcome(direct, edit)
        assert view(changeset) == view(direct)
        would_be = [changeset.read(node.path) for node in changeset.tree()]
        changeset.commit()
        assert view(aside) == view(direct)
        assert [aside.read(node.path) for node in aside.tree()] == would_be


def test_a_changeset_commits_on_both_databases(store_url: str, tmp_path: Path) -> None:
    """D5: guards, moves and writes of one commit, on a real database."""
    with recollect.open(store_url) as memory:
        mine = memory.space().documents
        mine.write("a/b/c", "Deep.")
        mine.write("old/one", "x")
        edits = mine.changeset()
        edits.move("a", "z")
        edits.patch("z/b/c", "Deep", "Deeper")
        edits.delete("old", below=True)
        edits.commit()
        assert paths(mine) == ["~/memory", "~/memory/z", "~/memory/z/b", "~/memory/z/b/c"]
        assert mine.read("a/b/c").body == "Deeper."


# what others do meanwhile


def test_what_came_below_since_is_not_deleted(mine: Documents) -> None:
    """D5: a changeset deletes what it has seen, and nothing else."""
    mine.write("dir/a", "x")
    edits = mine.changeset()
    edits.delete("dir", below=True)
    mine.write("dir/new", "after the changeset looked")
    with pytest.raises(StaleVersion, match="look again"):
        edits.commit()
    assert mine.read("dir/new").body == "after the changeset looked"
    assert mine.read("dir/a").body == "x"


def test_what_was_moved_along_is_checked_where_it_stood(mine: Documents) -> None:
    mine.write("z/b", "stood there before")
    mine.move("z", "y")
    mine.write("a/b", "text")
    edits = mine.changeset()
    edits.move("a", "z")
    edits.append("z/b", "more")
    edits.delete("z/b")
    edits.commit()
    assert [each.event for each in mine.history("z/b")][:2] == ["deleted", "written"]
    edits = mine.changeset()
    mine.write("c/d", "text")
    edits.move("c", "e")
    edits.append("e/d", "more")
    mine.append("c/d", "somebody else")
    with pytest.raises(StaleVersion):
        edits.commit()
    assert mine.read("c/d").body == "text\n\nsomebody else"


def test_links_that_waited_for_a_page_are_seen_in_a_changeset(mine: Documents) -> None:
    """D2: a page that is made here has the links that the tree had for it all along."""
    mine.write("r", "see [[new]]", links=["new"])
    edits = mine.changeset()
    edits.write("new", "text")
    assert [each.source for each in edits.links("new").incoming] == ["~/memory/r"] * 2
    edits.move("new", "newer")
    with pytest.raises(DocumentReferenced):
        edits.delete("newer")
    edits.delete("newer", references="unlink")
    assert (edits.read("r").body, edits.read("r").links) == ("see new", ())
    edits.commit()
    assert mine.read("r").body == "see new"


def test_what_a_changeset_deletes_is_listed_in_it(mine: Documents) -> None:
    for name in "abc":
        mine.write(name, name)
    mine.delete("a")
    edits = mine.changeset()
    edits.delete("b")
    edits.delete("c")
    whole = ["~/memory/c", "~/memory/b", "~/memory/a"]
    assert [each.path for each in edits.deleted()] == whole
    first = edits.deleted(limit=1)
    assert [each.path for each in edits.deleted(after=first[0].id)] == whole[1:]
    assert [each.path for each in mine.deleted()] == whole[2:]
    edits.restore("a")
    edits.restore("c")
    assert [each.path for each in edits.deleted()] == ["~/memory/b"]


def test_a_parent_comes_back_as_it_was_in_a_changeset(mine: Documents) -> None:
    mine.write("par", "what the parent says")
    mine.write("par/kid", "k")
    mine.write("par/other", "o")
    mine.delete("par", below=True)
    edits = mine.changeset()
    edits.restore("par/kid")
    assert edits.read("par").body == "what the parent says"
    edits.append("par", "more")
    edits.commit()
    assert mine.read("par").body == "what the parent says\n\nmore"
    assert mine.find("par/other") is None

"""References between documents: kept before their page is there, through moves, and reported."""

from __future__ import annotations

from typing import Any

from recollect.types.pages import Reference, ReferenceKind
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.pages import (
    apply,
    assert_sound,
    delete,
    deleting,
    grow,
    into,
    leads_to,
    move,
    moving,
    out_of,
    page,
    place,
    restore,
    restoring,
    sources_of,
    write,
    writing,
)


@case("D2", "a page's links and mentions are kept with their kind and alias, each once")
def links_and_mentions_are_kept(store: Harness) -> None:
    grow(store, "b", "c/d")
    document = write(store, "a", links=["c/d", "b"], mentions=["B", "new"])
    found = store.handle.documents.references_from(SPACE, document.id)
    mention, link = ReferenceKind.BODY, ReferenceKind.LINK
    assert found == [
        Reference(kind=mention, source="~/a", target="~/b", alias="see B", is_broken=False),
        Reference(kind=mention, source="~/a", target="~/new", alias="see new", is_broken=True),
        Reference(kind=link, source="~/a", target="~/b", alias="", is_broken=False),
        Reference(kind=link, source="~/a", target="~/c/d", alias="", is_broken=False),
    ]
    assert store.handle.documents.references_to(SPACE, page(store, "b").id) == [found[0], found[2]]
    assert into(store, "c/d") == ["a"]
    assert store.handle.documents.references_from(SPACE, "no such id") == []
    assert store.handle.documents.references_to(SPACE, "no such id") == []


@case("D2", "a link to a page that is not there is kept, and comes alive when the page is made")
def a_link_comes_alive_when_its_page_is_made(store: Harness) -> None:
    write(store, "a", mentions=["b/New"], links=["b"])
    assert out_of(store, "a") == [("b/New", False), ("b", False)]
    write(store, "b/nEW")
    assert out_of(store, "a") == [("b/nEW", True), ("b", True)]
    assert into(store, "b/new") == into(store, "b") == ["a"]


@case("D2", "a link comes alive when a page, or what it stands below, is moved there")
def a_link_comes_alive_when_a_page_is_moved_there(store: Harness) -> None:
    write(store, "a", links=["b", "b/d", "c/e"])
    grow(store, "x/d", "y")
    apply(store, moving("x", "b"), moving("y", "c/e"))
    assert out_of(store, "a") == [("b", True), ("b/d", True), ("c/e", True)]
    assert (into(store, "b/d"), into(store, "c/e")) == (["a"], ["a"])


@case("D2 D6", "a link comes alive when its page is restored, with those to what came back with it")
def a_link_comes_alive_when_its_page_is_restored(store: Harness) -> None:
    grow(store, "b/c")
    delete(store, "b")
    write(store, "a", links=["b", "b/c"])
    assert out_of(store, "a") == [("b", False), ("b/c", False)]
    restore(store, "b")
    assert out_of(store, "a") == [("b", True), ("b/c", True)]
    assert into(store, "b/c") == ["a"]


@case("D2", "a move keeps what points at a page and at all that is below it")
def a_move_keeps_backlinks(store: Harness) -> None:
    grow(store, "b/c/d")
    write(store, "a", links=["b"], mentions=["b/c", "b/c/d"])
    for number, (source, to) in enumerate((("b", "x"), ("x/c", "y"), ("y/d", "z/z/z")), start=1):
        move(store, source, to)
        assert all(is_there for _, is_there in out_of(store, "a")), number
    assert out_of(store, "a") == [("y", True), ("z/z/z", True), ("x", True)]
    assert into(store, "x") == into(store, "y") == into(store, "z/z/z") == ["a"]
    assert assert_sound(store, "a", "b", "x", "y", "z") == 6


@case("D2", "a move keeps what a page, and all that is below it, points at")
def a_move_keeps_links(store: Harness) -> None:
    grow(store, "c")
    write(store, "a/b", links=["c", "a"])
    move(store, "a", "x")
    assert into(store, "c") == into(store, "x") == ["x/b"]
    assert out_of(store, "x/b") == [("x", True), ("c", True)]


@case("D2", "backlinks survive that the page that refers is written anew with its old words")
def backlinks_survive_a_rewrite(store: Harness) -> None:
    grow(store, "b/c")
    write(store, "a", "one", links=["b"], mentions=["b/c"])
    move(store, "b", "x")
    move(store, "x/c", "y")
    write(store, "a", "two", links=["b"], mentions=["b/c"])
    assert (into(store, "x"), into(store, "y")) == (["a"], ["a"])
    move(store, "y", "z")
    write(store, "a", "three", links=["b", "x"], mentions=["b/c", "x/c", "y"])
    assert (into(store, "x"), into(store, "z")) == (["a", "a"], ["a", "a", "a"])


@case("D2", "a link means the page it was made for, also when another takes that one's old place")
def a_link_means_a_page(store: Harness) -> None:
    grow(store, "b/c")
    write(store, "a", links=["b"], mentions=["b/c"])
    move(store, "b", "x")
    write(store, "b", "new")
    assert (into(store, "b"), into(store, "x"), into(store, "x/c")) == ([], ["a"], ["a"])
    assert out_of(store, "a") == [("x/c", True), ("x", True)]
    assert (leads_to(store, "b"), leads_to(store, "b/c")) == ("b", "x/c")
    move(store, "b", "y")
    move(store, "x", "b")
    assert (into(store, "y"), into(store, "b"), into(store, "b/c")) == ([], ["a"], ["a"])
    assert assert_sound(store, "a", "b", "x", "y") == 4


@case(
    "D2", "a link that stays in a page means what it meant; one that is written anew what is there"
)
def a_link_that_stays_means_what_it_meant(store: Harness) -> None:
    grow(store, "b")
    write(store, "a", "one", links=["b"], mentions=["b"])
    move(store, "b", "x")
    write(store, "b", "new")
    write(store, "a", "two", links=["b"], mentions=["b"])
    assert (into(store, "x"), into(store, "b")) == (["a", "a"], [])
    write(store, "a", "three", links=["b"])
    write(store, "a", "four", links=["b"], mentions=["b"])
    assert (into(store, "x"), into(store, "b")) == (["a"], ["a"])
    assert out_of(store, "a") == [("b", True), ("x", True)]
    assert assert_sound(store, "a", "b", "x") == 3


@case(
    "D2 D6", "a link to what is deleted or purged means what its path leads to, once that is there"
)
def a_link_is_released(store: Harness) -> None:
    grow(store, "b", "c")
    write(store, "a", links=["b", "c"])
    for path in ("b", "c"):
        move(store, path, f"x{path}")
        write(store, path, "new")
    apply(store, deleting("xb", leaves_broken=True))
    store.handle.documents.purge(SPACE, place("xc"))
    assert out_of(store, "a") == [("b", True), ("c", True)]
    restore(store, "xb")
    assert (into(store, "b"), into(store, "xb")) == (["a"], [])
    assert assert_sound(store, "a", "b", "c", "xb") == 4


@case("D2 D6", "a link by an old path comes alive when the page that stood there is restored")
def a_link_by_an_old_path_comes_alive(store: Harness) -> None:
    grow(store, "b")
    move(store, "b", "c")
    delete(store, "c")
    write(store, "a", links=["b"])
    assert out_of(store, "a") == [("b", False)]
    restore(store, "c")
    assert out_of(store, "a") == [("c", True)]
    assert into(store, "c") == ["a"]
    assert assert_sound(store, "a", "c") == 2


@case("D2 D6", "a link means the page that stands there, not one that stood there and came back")
def a_link_means_what_stands_there(store: Harness) -> None:
    grow(store, "b")
    move(store, "b", "c")
    delete(store, "c")
    write(store, "b", "new")
    write(store, "a", links=["b"])
    restore(store, "c")
    assert (into(store, "b"), into(store, "c")) == (["a"], [])
    apply(store, deleting("b", leaves_broken=True))
    assert out_of(store, "a") == [("b", False)]
    assert assert_sound(store, "a", "b", "c") == 2


@case("D2", "a page that does not refer to another any more is no backlink of it")
def a_dropped_link_is_no_backlink(store: Harness) -> None:
    grow(store, "b", "c")
    write(store, "a", links=["b", "c"], mentions=["b"])
    write(store, "a", links=["c"])
    assert (into(store, "b"), into(store, "c")) == ([], ["a"])
    write(store, "a", "nothing")
    assert (out_of(store, "a"), into(store, "c")) == ([], [])


@case("D2", "a page may refer to itself, before and after it is moved")
def a_page_refers_to_itself(store: Harness) -> None:
    write(store, "a", links=["a"])
    assert into(store, "a") == ["a"]
    move(store, "a", "b")
    assert (out_of(store, "b"), into(store, "b")) == ([("b", True)], ["b"])
    assert store.handle.documents.orphans(SPACE, 10) == []


@case("D2 D6", "the links of a deleted page are nobody's backlinks, and are when it is restored")
def links_of_a_deleted_page_do_not_count(store: Harness) -> None:
    grow(store, "c")
    write(store, "a/b", links=["c", "new"])
    delete(store, "a")
    assert into(store, "c") == []
    assert store.handle.documents.broken(SPACE, 10) == []
    move(store, "c", "d")
    write(store, "new")
    restore(store, "a")
    assert out_of(store, "a/b") == [("d", True), ("new", True)]
    assert into(store, "d") == into(store, "new") == ["a/b"]


@case("D2 D6", "a link to what was purged is broken, and comes alive with a new page")
def a_link_to_what_was_purged_is_broken(store: Harness) -> None:
    grow(store, "b/c")
    move(store, "b/c", "d")
    write(store, "a", links=["b", "b/c", "d"])
    for root in ("b", "d"):
        store.handle.documents.purge(SPACE, place(root))
    assert out_of(store, "a") == [("b", False), ("b/c", False), ("d", False)]
    grow(store, "b/c", "d")
    assert all(is_there for _, is_there in out_of(store, "a"))
    assert assert_sound(store, "a", "b", "d") == 4


@case("D2", "a page refers to hundreds of others")
def a_page_refers_to_hundreds(store: Harness) -> None:
    names = [f"b/page {number:03}" for number in range(400)]
    grow(store, *names[::2])
    write(store, "a", links=names, mentions=names[::-1])
    grow(store, *names[1::4])
    found = out_of(store, "a")
    expected = [(name, number % 4 != 3) for number, name in enumerate(names)]
    assert found == [*expected, *expected]
    assert into(store, names[0]) == into(store, names[1]) == ["a", "a"]


# Reports


@case("D2", "broken links are reported in order, below a root and as many as asked for")
def broken_links_are_reported(store: Harness) -> None:
    grow(store, "c")
    write(store, "b", mentions=["z", "c"], links=["y"])
    write(store, "a/d", links=["x", "b"])
    write(store, "bb", links=["gone"])
    broken = store.handle.documents.broken
    everything = [("a/d", "x"), ("b", "y"), ("b", "z"), ("bb", "gone")]
    assert sources_of(broken(SPACE, 10)) == everything
    assert sources_of(broken(SPACE, 2)) == everything[:2]
    assert all(each.is_broken for each in broken(SPACE, 10))
    apply(store, deleting("c", leaves_broken=True), writing("x"))
    assert sources_of(broken(SPACE, 10))[0] == ("b", "c")
    apply(store, restoring("c"), writing("y"), writing("z"), writing("gone"))
    assert broken(SPACE, 10) == []


@case("D2 N5", "what is broken below a root does not depend on what stands outside")
def broken_links_show_nothing_of_the_outside(store: Harness) -> None:
    grow(store, "b/there")
    write(store, "a", links=["a/x", "b/there", "b/missing"])
    write(store, "b", links=["a/y"])
    write(store, "a/z")
    move(store, "a/z", "b/z")
    write(store, "a/d", mentions=["a/z", "a", "b/z"])
    broken = store.handle.documents.broken
    assert sources_of(broken(SPACE, 10, place("a"))) == [("a", "a/x"), ("a/d", "a/z")]
    assert sources_of(broken(SPACE, 1, place("a"))) == [("a", "a/x")]
    assert broken(SPACE, 10, place("a/d")) == []


@case("D2 N5", "what is an orphan below a root does not depend on what stands outside")
def orphans_show_nothing_of_the_outside(store: Harness) -> None:
    grow(store, "a/b/c", "a/b/d", "x/y/z")
    write(store, "x", links=["a/b/c"])
    write(store, "a/b", links=["a/b/d"])
    orphans = store.handle.documents.orphans
    assert orphans(SPACE, 10) == ["~/x/y/z"]
    assert orphans(SPACE, 10, place("a")) == ["~/a/b/c"]


@case("D2", "what refers to a page comes in pages, by source, and below a root")
def what_refers_comes_in_pages(store: Harness) -> None:
    grow(store, "a")
    for name in ("b", "b/c", "bb", "d"):
        write(store, name, links=["a"], mentions=["a"])
    known = page(store, "a").id
    references_to = store.handle.documents.references_to

    def sources(**asked: Any) -> list[str]:
        return [source for source, _ in sources_of(references_to(SPACE, known, **asked))]

    whole = ["b", "b", "b/c", "b/c", "bb", "bb", "d", "d"]
    assert sources() == whole
    assert sources(limit=3) == whole[:3]
    assert sources(after=place("b/c").key, limit=3) == whole[4:7]
    assert sources(root=place("b")) == whole[:4]
    assert sources(root=place("b"), after=place("b").key) == whole[2:4]
    assert sources(root=place("x")) == sources(after=place("d").key) == []


@case("D2", "pages that no other page mentions are reported, but for the top of a tree")
def orphans_are_reported(store: Harness) -> None:
    grow(store, "a/b/c", "a/b/d", "a/b/e", "x/y/z")
    write(store, "a/b/c", links=["a/b/c"])
    write(store, "a/b/d", mentions=["a/b/e"])
    orphans = store.handle.documents.orphans
    assert orphans(SPACE, 10) == ["~/a/b/c", "~/a/b/d", "~/x/y/z"]
    assert orphans(SPACE, 1) == ["~/a/b/c"]
    assert orphans(SPACE, 10, place("x")) == ["~/x/y/z"]
    move(store, "a/b/e", "x/y/e")
    delete(store, "a/b/d")
    assert orphans(SPACE, 10) == ["~/a/b/c", "~/x/y/e", "~/x/y/z"]

"""The tree in pages: each page before what stands below it, whatever the tree looks like."""

from __future__ import annotations

import itertools

from recollect.ids import Randomness
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.pages import (
    DEEP,
    MANY,
    delete,
    grow,
    move,
    nodes,
    page,
    paths,
    place,
    write,
)

SEED = 20261115
NAMES = ("a", "aa", "a b", "a-b", "a.b", "a1", "A2", "b", "Ü", "z", "日本", "🙂", "_", "0", "(x)")


def _in_pages(store: Harness, root: str, size: int, depth: int = DEEP) -> list[str]:
    """The tree below a root, read in pages."""
    found: list[str] = []
    after = ""
    while True:
        some = store.handle.documents.tree(SPACE, place(root), after, depth, size)
        assert len(some) <= size
        found += [node.path.removeprefix("~/") for node in some]
        if len(some) < size:
            return found
        after = place(found[-1]).key


def _sorted(found: list[str]) -> list[str]:
    return sorted(found, key=lambda path: place(path).key)


def _random_tree(store: Harness, count: int) -> list[str]:
    """A tree of random shape below one root, some of it moved and deleted again."""
    choice = Randomness(SEED)
    made = ["root"]
    while len(made) < count:
        parent = choice.choice(made)
        path = f"{parent}/{choice.choice(NAMES)}"
        if path.count("/") < DEEP and path not in made:
            made.append(path)
    grow(store, *made)
    return made


@case("D3 D4", "the tree shows each page before what stands below it, siblings in order")
def the_tree_is_in_order(store: Harness) -> None:
    grow(store, "a/c/x", "a/b", "a/B2/y/z", "a/b a", "a/b-", "a/ba", "a/b/x")
    assert paths(store, "a") == [
        *("a", "a/b", "a/b/x", "a/b a", "a/b-", "a/B2", "a/B2/y", "a/B2/y/z", "a/ba"),
        *("a/c", "a/c/x"),
    ]


@case("D4", "in pages of any size a tree of any shape is what sorting all its paths gives")
def pages_are_a_plain_sort(store: Harness) -> None:
    made = _sorted(_random_tree(store, 150))
    for size in (1, 2, 7, 50, 149, 150, 151, 1000):
        assert _in_pages(store, "root", size) == made, size


@case("D4", "a wide tree and a deep one come in pages in order")
def wide_and_deep_trees_come_in_pages(store: Harness) -> None:
    wide = [f"a/page {number:03}" for number in range(300)]
    deep = ["/".join(["b", *(f"level{level}" for level in range(depth))]) for depth in range(DEEP)]
    grow(store, *wide, deep[-1])
    assert _in_pages(store, "a", 70) == ["a", *wide]
    assert _in_pages(store, "b", 3) == deep


@case("D4", "a tree shows as many levels as are asked for")
def a_tree_shows_some_levels(store: Harness) -> None:
    made = _sorted(_random_tree(store, 120))
    for depth, size in itertools.product((0, 1, 2, 3, DEEP), (5, 1000)):
        expected = [path for path in made if path.count("/") <= depth]
        assert _in_pages(store, "root", size, depth) == expected


@case("D4 P9", "a tree shows what stands at its root and below, and no sibling of that")
def a_tree_shows_its_root_and_below(store: Harness) -> None:
    made = _sorted(_random_tree(store, 120))
    for root in made[:40]:
        expected = [path for path in made if path == root or path.startswith(root + "/")]
        assert _in_pages(store, root, 4) == expected, root
    assert paths(store, "root/nowhere", "roo", "root2") == []


@case("D4", "pages go on where they were although the tree changes in between")
def pages_go_on_while_the_tree_changes(store: Harness) -> None:
    grow(store, *(f"a/{letter}/x" for letter in "bcdefg"))
    read = store.handle.documents.tree
    first = read(SPACE, place("a"), "", DEEP, 6)
    assert [node.path for node in first][-1] == "~/a/d"
    delete(store, "a/d")
    move(store, "a/f", "a/b2")
    grow(store, "a/e2")
    rest = read(SPACE, place("a"), place("a/d").key, DEEP, MANY)
    assert [node.path.removeprefix("~/a/") for node in rest] == ["e", "e/x", "e2", "g", "g/x"]


@case("D4", "a line of the tree tells of a page all but what it says")
def a_line_of_the_tree_tells_of_a_page(store: Harness) -> None:
    write(store, "a", "one")
    write(store, "a/b", "日本語🙂", title="Bee")
    store.clock.advance(7)
    current = write(store, "a", "three")
    top, below = nodes(store, "a")
    assert (top.id, top.title, top.version, top.body_chars) == (current.id, "Title", 2, 5)
    assert (top.updated_at, top.has_children, top.depth) == (store.now(), True, 1)
    assert (below.id, below.title, below.body_chars) == (page(store, "a/b").id, "Bee", 4)
    assert (below.version, below.has_children, below.description) == (1, False, "")
    delete(store, "a/b")
    assert [node.has_children for node in nodes(store, "a")] == [False]

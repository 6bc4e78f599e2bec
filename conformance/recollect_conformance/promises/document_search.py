"""Searching documents: any text is a legal question, and only what stands there is found."""

from __future__ import annotations

import re

from recollect.ids import Randomness
from recollect.types.pages import Content, Write
from recollect_conformance.case import case
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.pages import (
    above,
    apply,
    delete,
    deleting,
    moving,
    nodes,
    page,
    place,
    restore,
    restoring,
    write,
    writing,
)
from recollect_conformance.promises.fact_search import ANY_TEXT

SEED = 20261115
WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")


def _search(store: Harness, *terms: str, root: str = "a", limit: int = 100) -> list[str]:
    found = store.handle.documents.search(SPACE, terms, place(root), limit)
    return [document.path.removeprefix("~/") for document in found]


def _scan(store: Harness, word: str, root: str = "a") -> list[str]:
    """What a search has to find: every page that has the word."""
    get = store.handle.documents.get
    whole = [document for node in nodes(store, root) if (document := get(SPACE, node.id))]
    return sorted(
        document.path.removeprefix("~/")
        for document in whole
        if word in re.findall(r"\w+", f"{document.title} {document.description} {document.body}")
    )


@case("D4 N4", "a search finds the pages that have any of its words, whatever the case")
def a_search_finds_pages_with_any_word(store: Harness) -> None:
    write(store, "a", "green tea")
    write(store, "a/b", "black coffee")
    write(store, "a/c", "a cat")
    assert _search(store, "tea") == ["a"]
    assert sorted(_search(store, "COFFEE", "Cat")) == ["a/b", "a/c"]
    assert _search(store, "dog") == _search(store) == []
    [found] = store.handle.documents.search(SPACE, ["coffee"], place("a"), 10)
    assert found == page(store, "a/b")


@case("D4", "title, description, tags and body are searched, and the best comes first")
def the_best_page_comes_first(store: Harness) -> None:
    for path, content in {
        "a/body": Content(title="x", body="tea"),
        "a/description": Content(title="x", description="tea"),
        "a/title": Content(title="tea"),
        "a/tags": Content(title="x", tags=("tea",)),
        "a/nothing": Content(title="x", links=("tea",)),
    }.items():
        apply(store, Write(place=place(path), content=content, parents=above(path)))
    assert _search(store, "tea") == ["a/title", "a/description", "a/body", "a/tags"]
    assert _search(store, "tea", limit=2) == ["a/title", "a/description"]


@case("D4", "what a page is called counts for more than how often another has the word")
def a_title_counts_for_more_than_repetition(store: Harness) -> None:
    other = "and then there were many more words about all that happened on that long day"
    for path, content in {
        "a/city": Content(title="Lisbon", body="Sunny."),
        "a/about": Content(title="x", description="about Lisbon", body="Sunny."),
        "a/diary": Content(title="diary", body=f"Lisbon again {other}. " * 40),
        **{f"b/{n}": Content(title="x", body=other) for n in range(20)},
    }.items():
        apply(store, Write(place=place(path), content=content, parents=above(path)))
    assert _search(store, "lisbon") == ["a/city", "a/about", "a/diary"]


@case("D4", "any text is a legal question")
def any_text_is_a_legal_question(store: Harness) -> None:
    write(store, "a", "tea with milk")
    for text in ANY_TEXT:
        assert _search(store, text) in ([], ["a"]), text
        assert _search(store, text, "milk") == ["a"], text
    assert _search(store, *ANY_TEXT, "milk") in ([], ["a"])


@case("D4 D6", "what is deleted is not found, and what is restored is found again")
def only_what_is_there_is_found(store: Harness) -> None:
    write(store, "a/b", "tea")
    write(store, "a/b/c", "tea")
    delete(store, "a/b/c")
    assert _search(store, "tea") == ["a/b"]
    delete(store, "a/b")
    assert _search(store, "tea") == []
    restore(store, "a/b/c")
    assert _search(store, "tea") == ["a/b", "a/b/c"]
    store.handle.documents.purge(SPACE, place("a"))
    assert _search(store, "tea") == []


@case("D4 D7", "a page is found by what it says, not by what it said")
def only_the_current_version_is_found(store: Harness) -> None:
    write(store, "a", "likes tea", title="Ana")
    write(store, "a", "likes coffee", title="Anna")
    assert _search(store, "coffee") == _search(store, "anna") == ["a"]
    assert _search(store, "tea") == _search(store, "ana") == []


@case("D4 P9", "a search stays below its root, wherever pages are moved")
def a_search_stays_below_its_root(store: Harness) -> None:
    for path in ("a", "a/b", "a/bb", "a/b/c", "b"):
        write(store, path, f"tea {path}")
    assert sorted(_search(store, "tea", root="a/b")) == ["a/b", "a/b/c"]
    assert sorted(_search(store, "tea")) == ["a", "a/b", "a/b/c", "a/bb"]
    apply(store, moving("a/b", "b/d"), moving("b", "a/e"))
    assert sorted(_search(store, "tea", root="a/e")) == ["a/e", "a/e/d", "a/e/d/c"]
    assert _search(store, "tea", root="b") == _search(store, "tea", root="a/b") == []


@case("D4", "after any edits a search finds what a look at every page finds")
def a_search_is_as_good_as_a_scan(store: Harness) -> None:
    choice = Randomness(SEED)
    names = [f"a/{one}/{two}" for one in "abc" for two in "abcd"]
    write(store, "a", "root")
    for _ in range(120):
        path, said = choice.choice(names), " ".join(choice.choices(WORDS, k=3))
        is_there = store.handle.documents.find(SPACE, place(path)) is not None
        was_there = store.handle.documents.find_deleted(SPACE, place(path)) is not None
        match choice.choice(("write", "write", "delete", "restore", "move")):
            case "delete" if is_there and page(store, path).path == place(path).text:
                apply(store, deleting(path))
            case "restore" if was_there and not is_there:
                apply(store, restoring(path))
            case "move" if is_there and page(store, path).path == place(path).text:
                apply(store, moving(path, f"a/moved {len(nodes(store, 'a'))} {said}"))
            case _:
                apply(store, writing(path, said, title=choice.choice(WORDS)))
    for word in WORDS:
        assert sorted(_search(store, word, limit=1000)) == _scan(store, word)
        assert _search(store, word) != [], f"{word} was never searched in earnest"

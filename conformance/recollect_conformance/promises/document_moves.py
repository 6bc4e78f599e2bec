"""Moving documents: with everything below, nothing lost, old paths lead on, never a circle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import shake_256

from recollect.errors import DocumentExists, InvalidPath, NotFound
from recollect.types.pages import Author, AuthorKind, Because, DocumentEvent, TreeLimits
from recollect_conformance.case import case, refused
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.pages import (
    LIMITS,
    apply,
    assert_sound,
    delete,
    deleting,
    events,
    find,
    grow,
    history,
    leads_to,
    move,
    moving,
    page,
    paths,
    place,
    restore,
    restoring,
    write,
    writing,
)


@case("D1 D3", "a move keeps a page's id and words, and is a version with author, reason and path")
def a_move_keeps_a_page(store: Harness) -> None:
    before = write(store, "a/b", "text", links=["c"])
    at = store.clock.advance(3)
    agent = Because(author=Author(AuthorKind.AGENT, "bot"), reason="tidier")
    [after] = apply(store, moving("a/b", "c/d"), because=agent)
    assert (after.id, after.content, after.created_at) == (
        before.id,
        before.content,
        before.created_at,
    )
    assert (after.path, after.version, after.updated_at) == ("~/c/d", 2, at)
    assert (after.author.name, after.reason) == ("bot", "tidier")
    newest, oldest = history(store, after)
    assert (newest.event, newest.path, newest.body) == (DocumentEvent.MOVED, "~/c/d", "text")
    assert (oldest.event, oldest.path) == (DocumentEvent.CREATED, "~/a/b")


@case("D3", "what stands below moves along, unchanged")
def what_is_below_moves_along(store: Harness) -> None:
    grow(store, "a/b/c/d", "a/b/e", "a/bb", "a/b f")
    before = {path: page(store, path) for path in ("a/b/c", "a/b/c/d", "a/b/e")}
    move(store, "a/b", "z/y/x")
    assert paths(store, "a", "z") == [
        *("a", "a/b f", "a/bb"),
        *("z", "z/y", "z/y/x", "z/y/x/c", "z/y/x/c/d", "z/y/x/e"),
    ]
    for path, document in before.items():
        moved = page(store, path.replace("a/b", "z/y/x", 1))
        assert moved == replace(document, path=moved.path)
    assert assert_sound(store, "a", "z") == 9


@case("D3", "the parents of where a page is moved to are made, and never below nothing")
def a_move_makes_parents(store: Harness) -> None:
    write(store, "a")
    with refused(NotFound):
        apply(store, replace(moving("a", "b/c/d"), parents=()))
    move(store, "a", "b/c/d")
    assert paths(store, "a", "b") == ["b", "b/c", "b/c/d"]
    assert page(store, "b/c").title == "c"


@case("D3", "a page is not moved below itself")
def a_page_is_not_moved_below_itself(store: Harness) -> None:
    grow(store, "a/b/c")
    for to in ("a/b", "a/b/c", "a/new", "A/x", "a/b/c/d/e"):
        with refused(InvalidPath):
            move(store, "a", to)
    with refused(InvalidPath):
        apply(store, moving("a/b", "d"), moving("a", "d/a"), moving("d", "d/a/d"))
    assert paths(store, "a", "d") == ["a", "a/b", "a/b/c"]
    assert assert_sound(store, "a", "d") == 3


@case("D3", "a page is not moved onto another")
def a_page_is_not_moved_onto_another(store: Harness) -> None:
    grow(store, "a/b", "c/B")
    for source, to in (("a", "c"), ("a/b", "c/b"), ("a/b", "C/B"), ("a/b", "A")):
        with refused(DocumentExists):
            move(store, source, to)
    assert assert_sound(store, "a", "c") == 4


@case("D1 D3", "a move to where a page stands changes nothing")
def a_move_to_the_same_place_changes_nothing(store: Harness) -> None:
    before = write(store, "A/b")
    store.clock.advance(1)
    assert move(store, "a/b", "A/b") == before
    assert move(store, "A/b", "a/b") == before
    assert history(store, before)[0].number == 1


@case("D3", "what is not there is not moved, also if something stood there")
def what_is_not_there_is_not_moved(store: Harness) -> None:
    grow(store, "a", "b")
    move(store, "a", "c")
    delete(store, "b")
    for path in ("a", "b", "d"):
        with refused(NotFound):
            move(store, path, "e")
    assert paths(store, "c", "e") == ["c"]


@case("D3", "a new case is a new name for the page and in the paths of what is below it")
def a_page_gets_a_new_case(store: Harness) -> None:
    grow(store, "a/straße/x/y", "a/straßen")
    renamed = move(store, "a/straße", "a/STRASSE")
    assert (renamed.path, renamed.version) == ("~/a/STRASSE", 2)
    assert paths(store, "a") == [
        *("a", "a/STRASSE", "a/STRASSE/x", "a/STRASSE/x/y", "a/straßen"),
    ]
    assert leads_to(store, "a/straße/X") == "a/STRASSE/x"
    move(store, "a/strasse", "b/Weg")
    assert paths(store, "b") == ["b", "b/Weg", "b/Weg/x", "b/Weg/x/y"]
    assert assert_sound(store, "a", "b") == 6


@case("D1 P12", "nothing is moved so that it, or what is below it, stands too deep")
def nothing_is_moved_too_deep(store: Harness) -> None:
    grow(store, "a/b/c", "d/e/f")
    limits = TreeLimits(documents_max=100, depth_max=4)
    with refused(InvalidPath):
        apply(store, moving("a", "d/e/a"), limits=limits)
    with refused(InvalidPath):
        apply(store, moving("a/b/c", "d/e/f/g/c"), limits=limits)
    apply(store, moving("a/b", "d/e/b"), limits=limits)
    assert paths(store, "a", "d") == ["a", "d", "d/e", "d/e/b", "d/e/b/c", "d/e/f"]


# Old paths


@case("D2 D3", "the path a page had leads to it, and so do those of what is below it")
def an_old_path_leads_to_a_page(store: Harness) -> None:
    grow(store, "a/b/c")
    move(store, "a", "z")
    assert [leads_to(store, path) for path in ("a", "A/b", "a/B/c")] == ["z", "z/b", "z/b/c"]
    assert find(store, "a/new") is None
    assert paths(store, "a") == []


@case("D2 D3", "all paths a page ever had lead to it, also when it was moved out of what was moved")
def old_paths_lead_on(store: Harness) -> None:
    grow(store, "a/b/c")
    move(store, "a", "x")
    move(store, "x/b", "y/b2")
    move(store, "y", "z")
    move(store, "z/b2/c", "c")
    assert {leads_to(store, path) for path in ("a/b", "x/b", "y/b2", "z/b2")} == {"z/b2"}
    assert {leads_to(store, path) for path in ("a/b/c", "x/b/c", "y/b2/c", "z/b2/c")} == {"c"}
    assert (leads_to(store, "a"), leads_to(store, "y")) == ("x", "z")


@case("D2 D3", "an old path means what is new there, and those below it still what was moved")
def an_old_path_means_what_is_new_there(store: Harness) -> None:
    grow(store, "a/b", "a/c")
    moved = page(store, "a/b")
    move(store, "a", "z")
    new = write(store, "a", "new")
    assert new.id != moved.id
    assert [leads_to(store, path) for path in ("a", "a/b", "a/c")] == ["a", "z/b", "z/c"]
    write(store, "a/b", "new as well")
    assert [leads_to(store, path) for path in ("a/b", "a/c")] == ["a/b", "z/c"]
    delete(store, "a")
    assert [leads_to(store, path) for path in ("a", "a/b", "a/c")] == [None, None, "z/c"]


@case("D2 D3", "a page that is moved back stands there, and the path in between leads to it")
def a_page_is_moved_back(store: Harness) -> None:
    grow(store, "a/b")
    move(store, "a", "z")
    back = move(store, "z", "a")
    assert (back.path, back.version) == ("~/a", 3)
    assert [leads_to(store, path) for path in ("a/b", "z", "z/b")] == ["a/b", "a", "a/b"]
    assert assert_sound(store, "a", "z") == 2


@case("D3", "a page can be moved below what stands where it stood")
def a_page_moves_below_its_old_place(store: Harness) -> None:
    grow(store, "a/b")
    apply(store, moving("a", "t"), writing("a", "new"), moving("t", "a/old"))
    assert paths(store, "a", "t") == ["a", "a/old", "a/old/b"]
    assert [leads_to(store, path) for path in ("a/b", "t/b", "t")] == [
        *("a/old/b", "a/old/b", "a/old"),
    ]
    assert assert_sound(store, "a", "t") == 3


@case("D3 D5", "two pages change places in one set of edits")
def two_pages_change_places(store: Harness) -> None:
    grow(store, "a/x", "b/y")
    one, other = page(store, "a"), page(store, "b")
    apply(store, moving("a", "t"), moving("b", "a"), moving("t", "b"))
    assert (page(store, "a").id, page(store, "b").id) == (other.id, one.id)
    assert paths(store, "a", "b", "t") == ["a", "a/y", "b", "b/x"]
    assert [leads_to(store, path) for path in ("a/x", "b/y", "t")] == ["b/x", "a/y", "b"]
    assert assert_sound(store, "a", "b", "t") == 4


@case("D2 D6", "an old path leads to nothing while the page is deleted")
def an_old_path_leads_to_nothing_deleted(store: Harness) -> None:
    grow(store, "a/b")
    move(store, "a/b", "c/d")
    delete(store, "c/d")
    assert find(store, "a/b") is None
    restore(store, "c/d")
    assert leads_to(store, "a/b") == "c/d"
    store.handle.documents.purge(SPACE, place("c/d"))
    assert find(store, "a/b") is None


@case("D6", "what is deleted stays where it was when its parent is moved, and comes back there")
def what_is_deleted_is_not_moved(store: Harness) -> None:
    grow(store, "a/b", "a/c")
    delete(store, "a/b")
    move(store, "a", "z")
    assert paths(store, "a", "z") == ["z", "z/c"]
    back = restore(store, "a/b")
    assert back.path == "~/a/b"
    assert paths(store, "a", "z") == ["a", "a/b", "z", "z/c"]
    assert assert_sound(store, "a", "z") == 4


@case("D3 D6", "what comes back below a parent that has a new case is named by that")
def what_comes_back_is_named_by_its_parent(store: Harness) -> None:
    grow(store, "a/straße/x/y")
    delete(store, "a/straße/x")
    move(store, "a/straße", "a/STRASSE")
    assert restore(store, "a/straße/x").path == "~/a/STRASSE/x"
    assert paths(store, "a") == ["a", "a/STRASSE", "a/STRASSE/x", "a/STRASSE/x/y"]
    move(store, "a/STRASSE", "b")
    assert paths(store, "b") == ["b", "b/x", "b/x/y"]
    assert events(store, page(store, "b/x/y"))[0] is DocumentEvent.RESTORED


LETTERS = (range(0x61, 0x7B), range(0x430, 0x44F), range(0x4E00, 0x9000), range(0x12000, 0x12300))


def _jumbled(letters: Sequence[int], count: int, name: str) -> str:
    """So many letters that no database keeps in less."""
    digest = shake_256(name.encode()).digest(2 * count)
    pairs = zip(digest[::2], digest[1::2], strict=True)
    return "".join(chr(letters[(high * 256 + low) % len(letters)]) for high, low in pairs)


@case("D3 P8", "paths of any letters are as long as they may be, and no move makes one longer")
def paths_are_as_long_as_they_may_be(store: Harness) -> None:
    space = _jumbled(LETTERS[0], 1000, "space")
    for letters in LETTERS:
        each = 98 // len(chr(letters[0]).encode())
        slugs = [_jumbled(letters, each, str(number)) for number in range(15)]
        path = "/".join(["a", *slugs])
        limits = replace(LIMITS, path_bytes_max=len(f"~/{path}".encode()))
        apply(store, writing(path, links=[path], mentions=[path]), limits=limits, space=space)
        apply(store, writing("b", links=[f"c{path[1:]}"]), space=space)
        apply(store, moving("a", "c"), limits=limits, space=space)
        apply(store, deleting("c", leaves_broken=True), space=space)
        apply(store, restoring("c"), space=space)
        assert page(store, path, space).path == f"~/c{path[1:]}"
        with refused(InvalidPath):
            apply(store, moving("c", "cc"), limits=limits, space=space)
        with refused(InvalidPath):
            apply(store, writing(f"{path}d"), limits=limits, space=space)
        store.handle.documents.purge(space, place("c"))

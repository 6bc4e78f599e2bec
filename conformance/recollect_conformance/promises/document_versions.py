"""Versions as a fence: none comes again at a path, and an edit is made to what was seen there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from recollect.errors import DocumentExists, NotFound, StaleVersion
from recollect.types.facts import Source
from recollect.types.pages import Author, AuthorKind, Because, Document, Edit, Rewrite, Write
from recollect_conformance.case import case, refused
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.pages import (
    apply,
    assert_sound,
    delete,
    deleting,
    find,
    grow,
    history,
    move,
    moving,
    page,
    paths,
    place,
    restoring,
    write,
    writing,
)


def _grown(store: Harness, path: str, version: int) -> Document:
    """A page that has been written so often."""
    found = find(store, path)
    while found is None or found.version < version:
        found = write(store, path, f"{path}, {0 if found is None else found.version}")
    return found


def _assert_stale(store: Harness, path: str, upto: int) -> None:
    """Whatever was seen at a path before, no change that rests on it is made to what is there."""
    before = page(store, path)
    for version in range(1, upto + 1):
        with refused(StaleVersion):
            write(store, path, "made from what is gone", expected=version)
    assert page(store, path) == before


@case("D5", "a version that was seen at a path never comes again there with another page")
def no_version_comes_again_at_a_path(store: Harness) -> None:
    _grown(store, "a", 3)
    delete(store, "a")
    assert write(store, "a", "another").version > 4
    _assert_stale(store, "a", 4)
    moved = move(store, "a", "b")
    assert write(store, "A", "a third").version > moved.version
    _assert_stale(store, "a", moved.version)
    assert_sound(store, "a", "b")


@case("D5", "what is moved to where others stood is above all their versions, with all below it")
def what_is_moved_in_is_above_what_stood_there(store: Harness) -> None:
    _grown(store, "a/b/c", 4)
    _grown(store, "a", 3)
    move(store, "a", "z")
    grow(store, "y/b/c", "y/d")
    move(store, "y", "a")
    assert paths(store, "a") == ["a", "a/b", "a/b/c", "a/d"]
    _assert_stale(store, "a", 4)
    _assert_stale(store, "a/b/c", 4)
    assert page(store, "a/d").version == 1
    assert [each.number for each in history(store, page(store, "a/b/c"))] == [5, 1]
    assert assert_sound(store, "a", "z") == 7


@case("D5 D6", "what is restored is above all that stood there since, with all that comes along")
def what_is_restored_is_above_what_stood_there(store: Harness) -> None:
    first = write(store, "a/b", "first")
    delete(store, "a")
    _grown(store, "a/b", 6)
    delete(store, "a")
    top = store.handle.documents.get(SPACE, first.id)
    assert top is not None
    apply(store, restoring("a/b", first.id))
    assert page(store, "a/b").body == "first"
    _assert_stale(store, "a/b", 7)
    assert_sound(store, "a")


@case("D5 D6", "nor does a version come again that was seen before a purge")
def no_version_comes_again_after_a_purge(store: Harness) -> None:
    _grown(store, "a/b", 3)
    store.handle.documents.purge(SPACE, place("a"))
    write(store, "a/b", "new")
    _assert_stale(store, "a/b", 3)
    write(store, "c", "elsewhere", space="another space")
    assert page(store, "c", "another space").version == 1


@case("D5", "a page that goes away and comes back has one more version each time, and no more")
def coming_back_costs_no_versions(store: Harness) -> None:
    grow(store, "a/b")
    move(store, "a", "c")
    move(store, "c", "a")
    assert (page(store, "a").version, page(store, "a/b").version) == (3, 1)
    delete(store, "a")
    apply(store, restoring("a"))
    assert (page(store, "a").version, page(store, "a/b").version) == (5, 3)


@case("D5 D6", "a deletion of more or fewer pages than were seen is refused")
def a_deletion_of_what_was_not_seen_is_refused(store: Harness) -> None:
    grow(store, "a/b", "a/c", "ab")
    for count in (1, 2, 4):
        with refused(StaleVersion):
            apply(store, replace(deleting("a"), count_expected=count))
    assert paths(store, "a") == ["a", "a/b", "a/c"]
    apply(store, replace(deleting("a"), count_expected=3))
    assert paths(store, "a", "ab") == ["ab"]


@case("D1", "each edit of a set has grounds of its own, or those of all")
def each_edit_has_its_own_grounds(store: Harness) -> None:
    source = Source(session_id="s", seq=1, seq_to=2, quote="he said so")
    own = Because(
        author=Author(AuthorKind.AGENT, "scout"), reason="own", sources=(source,), facts=("f",)
    )
    edits: tuple[Edit, ...] = (
        replace(writing("a/b"), because=own),
        writing("c"),
        replace(moving("c", "d"), because=own),
    )
    apply(store, *edits, because=Because(reason="of all"))
    for path in ("a", "a/b", "d"):
        made = page(store, path)
        found = Because(
            author=made.author, reason=made.reason, sources=made.sources, facts=made.facts
        )
        assert found == own, path
    assert [each.reason for each in history(store, page(store, "d"))] == ["own", "of all"]


# Changes to whatever stands there


def _adding(path: str, text: str) -> Callable[[Document | None], Write]:
    def change(known: Document | None) -> Write:
        if known is None:
            return writing(path, text)
        return writing(known.path.removeprefix("~/"), f"{known.body}, {text}")

    return change


@case("D5", "a rewrite is made of what stands there when it is made, or of nothing")
def a_rewrite_is_made_of_what_stands_there(store: Harness) -> None:
    edit = Rewrite(place=place("a/b"), change=_adding("a/b", "one"))
    with refused(NotFound):
        apply(store, replace(edit, expected=1))
    apply(store, writing("a"), edit, replace(edit, change=_adding("a/b", "two")))
    assert (page(store, "a/b").body, page(store, "a/b").version) == ("one, two", 2)
    move(store, "a/b", "c")
    apply(store, edit)
    assert (page(store, "a/b").body, page(store, "c").body) == ("one", "one, two")
    with refused(DocumentExists):
        apply(store, replace(edit, expected=0))
    with refused(StaleVersion):
        apply(store, replace(edit, expected=1))
    assert_sound(store, "a", "c")


@case("D5", "a rewrite of a document follows it, and is not made to another")
def a_rewrite_follows_its_document(store: Harness) -> None:
    known = write(store, "a", "one")
    move(store, "a", "b/c")
    write(store, "a", "another")
    edit = Rewrite(place=place("a"), change=_adding("a", "two"), document_id=known.id)
    [made] = apply(store, edit)
    assert (made.path, made.body) == ("~/b/c", "one, two")
    delete(store, "b")
    with refused(NotFound):
        apply(store, edit)
    assert page(store, "a").body == "another"


@case("D5 P6", "a rewrite that comes to nothing changes nothing")
def a_rewrite_that_fails_changes_nothing(store: Harness) -> None:
    def fails(known: Document | None) -> Write:
        raise StaleVersion("no", current=0 if known is None else known.version)

    write(store, "a", "one")
    with refused(StaleVersion):
        apply(store, writing("b"), Rewrite(place=place("a"), change=fails))
    assert paths(store, "a", "b") == ["a"]
    write(store, "b", "free")

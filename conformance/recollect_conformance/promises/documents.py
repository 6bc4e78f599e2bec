"""Documents: every change a version, limits, expected versions, and all of the edits or none."""

from __future__ import annotations

from dataclasses import replace

from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    NotFound,
    StaleVersion,
    TooLarge,
    UsageError,
)
from recollect.types.facts import Source
from recollect.types.pages import (
    Author,
    AuthorKind,
    Because,
    Content,
    DocumentEvent,
    Edit,
    TreeLimits,
    Write,
)
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
    move,
    moving,
    page,
    paths,
    place,
    refused_at,
    restore,
    restoring,
    write,
    writing,
)

WHOLE = Content(
    title="Ana",
    description="who she is",
    body="She likes tea.\n\n[[b|the other]]",
    tags=("people", "tea"),
    links=("~/b",),
)
GROUNDS = Because(
    author=Author(AuthorKind.CONSOLIDATION, "nightly"),
    reason="learned something",
    sources=(
        Source(session_id="session-1", seq=3, seq_to=5, quote="« I like tea »"),
        Source(session_id="session-2", seq=1, seq_to=1, quote=""),
    ),
    facts=("fact-1", "fact-2"),
)
WRITTEN, CREATED = DocumentEvent.WRITTEN, DocumentEvent.CREATED


def _say(store: Harness, content: Content, because: Because | None = None) -> None:
    apply(store, Write(place=place("a"), content=content), because=because)


# Versions


@case("D1", "a new document is version one, with all that was said and by whom, why and on what")
def a_new_document_is_version_one(store: Harness) -> None:
    _say(store, WHOLE, GROUNDS)
    made = page(store, "a")
    assert made.content == WHOLE
    assert (made.space, made.path, made.slug, made.version) == (SPACE, "~/a", "a", 1)
    assert (made.author, made.reason) == (GROUNDS.author, GROUNDS.reason)
    assert (made.sources, made.facts) == (GROUNDS.sources, GROUNDS.facts)
    assert (made.created_at, made.updated_at, made.deleted_at) == (store.now(), store.now(), None)
    [version] = history(store, made)
    assert (version.number, version.event, version.path) == (1, CREATED, "~/a")
    assert (version.title, version.body, version.tags) == (WHOLE.title, WHOLE.body, WHOLE.tags)
    assert (version.description, version.links) == (WHOLE.description, WHOLE.links)
    assert (version.author, version.reason, version.at) == (made.author, made.reason, store.now())
    assert (version.sources, version.facts) == (GROUNDS.sources, GROUNDS.facts)


@case("D1 D7", "a write makes a version and keeps what the earlier ones said, and on what grounds")
def a_write_makes_a_version(store: Harness) -> None:
    _say(store, WHOLE, GROUNDS)
    first = page(store, "a")
    at = store.clock.advance(5)
    person = Because(author=Author(AuthorKind.PERSON, "ana"), reason="not true")
    _say(store, replace(WHOLE, body="She likes coffee."), person)
    second = page(store, "a")
    assert (second.id, second.created_at) == (first.id, first.created_at)
    assert (second.version, second.updated_at) == (2, at)
    assert (second.author.name, second.reason) == ("ana", "not true")
    assert (second.sources, second.facts) == ((), ())
    newest, oldest = history(store, second)
    assert (newest.number, newest.event, newest.at) == (2, WRITTEN, at)
    assert (newest.body, newest.author.name, newest.sources) == ("She likes coffee.", "ana", ())
    assert (oldest.body, oldest.author.name) == (WHOLE.body, "nightly")
    assert (oldest.sources, oldest.facts) == (GROUNDS.sources, GROUNDS.facts)


@case("D1", "of the versions of a page the newest are kept, and the last one of a person")
def old_versions_of_a_page_go(store: Harness) -> None:
    limits = TreeLimits(documents_max=4, depth_max=16, versions_kept=3)
    person = Because(author=Author(AuthorKind.PERSON, "ana"))
    apply(store, writing("b", body="by nobody in particular"), limits=limits)
    for number in range(1, 8):
        because = person if number == 2 else GROUNDS
        apply(store, writing("a", body=f"version {number}"), because=because, limits=limits)
    kept = history(store, page(store, "a"))
    assert [version.number for version in kept] == [7, 6, 5, 2]
    assert [version.body for version in kept][-1] == "version 2"
    assert page(store, "a").body == "version 7"
    assert len(history(store, page(store, "b"))) == 1


@case("D1", "an identical write makes no version, whoever makes it and why")
def an_identical_write_makes_no_version(store: Harness) -> None:
    _say(store, WHOLE)
    first = page(store, "a")
    store.clock.advance(5)
    _say(store, WHOLE, GROUNDS)
    assert page(store, "a") == first
    assert events(store, first) == [CREATED]
    _say(store, replace(WHOLE, body="other"))
    _say(store, WHOLE)
    assert page(store, "a").version == 3


@case("D1", "a change of title, description, body, tags or links alone makes a version")
def each_field_makes_a_version(store: Harness) -> None:
    _say(store, WHOLE)
    changes: tuple[Content, ...] = (
        replace(WHOLE, title="Anna"),
        replace(WHOLE, description=""),
        replace(WHOLE, body=WHOLE.body + "\n"),
        replace(WHOLE, tags=("tea", "people")),
        replace(WHOLE, links=()),
    )
    for number, content in enumerate(changes, start=2):
        _say(store, content)
        changed = page(store, "a")
        assert (changed.version, changed.content) == (number, content)


@case("D7", "what an earlier version said can be said again, as a new version that tells so")
def an_earlier_version_is_restored(store: Harness) -> None:
    first = write(store, "a", "one")
    write(store, "a", "two")
    [again] = apply(store, replace(writing("a", "one"), is_restore=True))
    assert (again.version, again.body) == (3, "one")
    assert events(store, again) == [DocumentEvent.RESTORED, WRITTEN, CREATED]
    assert again.content == first.content


@case("D7", "history comes in pages, the newest first, also that of a deleted document")
def history_comes_in_pages(store: Harness) -> None:
    for number in range(1, 8):
        document = write(store, "a", f"body {number}")
    read = store.handle.documents.history
    assert [each.number for each in read(SPACE, document.id, None, 3)] == [7, 6, 5]
    assert [each.body for each in read(SPACE, document.id, 5, 2)] == ["body 4", "body 3"]
    assert [each.number for each in read(SPACE, document.id, 3, 10)] == [2, 1]
    assert read(SPACE, document.id, 1, 10) == read(SPACE, "no such id", None, 10) == []
    delete(store, "a")
    assert [each.number for each in read(SPACE, document.id, None, 2)] == [8, 7]


@case("D1", "any text comes back as it was given")
def any_text_comes_back(store: Harness) -> None:
    odd = "\t\n\r\x01\x1f\x7f \u200b\u202e é e\u0301 日本語 🙂 '\"\\ %s :name $1 -- ;"
    said = Content(
        title=odd, description=odd, body=odd * 2000, tags=(odd, "", "ü"), links=(odd, "")
    )
    because = Because(
        author=Author(AuthorKind.AGENT, odd),
        reason=odd,
        sources=(Source(session_id=odd, seq=1, seq_to=2, quote=odd),),
        facts=(odd,),
    )
    _say(store, said, because)
    found = page(store, "a")
    assert found.content == said
    assert (found.author.name, found.reason, found.sources, found.facts) == (
        odd,
        odd,
        because.sources,
        because.facts,
    )
    assert history(store, found)[0].body == said.body


@case("D1", "a body may be as long as it may be, whatever its words are")
def a_long_body_of_any_words_is_stored(store: Harness) -> None:
    letters = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
    words = [a + b + c + d for a in letters for b in letters for c in letters for d in letters[:8]]
    bodies = (
        " ".join(f"{word}-{word[::-1]}" for word in words)[:524_288],
        " ".join(f"a{number:x}-b{number:x}" for number in range(22_000)),
        " ".join(f"{word}.example.org/{word}" for word in words)[:300_000],
        "-".join(words)[:131_072],
        "x" * 300_000,
        "𠀀" * 70_000,
    )
    for number, body in enumerate(bodies):
        assert write(store, "a", body).body == body
        assert page(store, "a").version == number + 1


# Where a document stands


@case("D3", "parents that are missing are made, as empty pages; others are left alone")
def missing_parents_are_made(store: Harness) -> None:
    write(store, "a", "top")
    write(store, "a/b/c/d", "deep")
    assert paths(store, "a") == ["a", "a/b", "a/b/c", "a/b/c/d"]
    made = page(store, "a/b/c")
    assert (made.title, made.body, made.version, made.tags) == ("c", "", 1, ())
    assert (page(store, "a").body, page(store, "a").version) == ("top", 1)
    assert assert_sound(store, "a") == 4


@case("D3", "nothing is put below what is not there")
def nothing_stands_below_nothing(store: Harness) -> None:
    for edit in (
        replace(writing("a/b"), parents=()),
        replace(writing("a/b/c"), parents=(place("a"),)),
    ):
        with refused(NotFound):
            apply(store, edit)
    assert paths(store, "a") == []


@case("D3", "siblings are unique without case: what is written in another case is the same page")
def siblings_are_unique_without_case(store: Harness) -> None:
    first = write(store, "a/Ana", "one")
    for name in ("a/ANA", "A/ana", "a/aNA"):
        again = write(store, name, f"as {name}")
        assert (again.id, again.path) == (first.id, "~/a/Ana")
    assert page(store, "A/ANA").version == 4
    assert paths(store, "a") == ["a", "a/Ana"]


@case("D3", "a page is the same in every form of its letters")
def a_page_is_the_same_in_every_form(store: Harness) -> None:
    for one, other in (
        ("a/Ünï", "a/U\u0308ni\u0308"),
        ("a/Straße", "a/STRASSE"),
        ("a/ΣΊΣΥΦΟΣ", "a/σίσυφος"),
        ("a/Å", "a/\u212b"),
        ("a/ﬁn", "a/FIN"),
    ):
        first = write(store, one)
        assert write(store, other, "again").id == first.id
        assert page(store, one).path == first.path
    assert len(paths(store, "a")) == 6


@case("D3", "a path begins with that of its parent, to the letter")
def a_path_begins_with_its_parents(store: Harness) -> None:
    write(store, "A/Bee")
    assert write(store, "a/bEE/Cee").path == "~/A/Bee/Cee"
    assert write(store, "a/bee/cEE/dee").path == "~/A/Bee/Cee/dee"
    assert assert_sound(store, "a") == 4


@case("D3 P12", "a page is found by its id wherever it stands, also when it is deleted")
def a_page_is_found_by_its_id(store: Harness) -> None:
    document = write(store, "a/b")
    get = store.handle.documents.get
    assert get(SPACE, document.id) == document
    assert get(SPACE, "no such id") is None
    moved = move(store, "a/b", "c")
    assert get(SPACE, document.id) == moved
    gone = delete(store, "c")
    assert get(SPACE, document.id) == gone
    assert gone.deleted_at == store.now()


# Limits


@case("D1 P12", "no page stands deeper than it may")
def no_page_stands_too_deep(store: Harness) -> None:
    limits = TreeLimits(documents_max=100, depth_max=4)
    apply(store, writing("a/b/c/d"), limits=limits)
    with refused(InvalidPath):
        apply(store, writing("a/b/c/d/e"), limits=limits)
    with refused(InvalidPath):
        apply(store, writing("b/c/d/e/f"), limits=limits)
    assert paths(store) == ["a", "a/b", "a/b/c", "a/b/c/d"]


@case("D1 P12", "no tree has more pages than it may, parents counted; nothing of more is stored")
def no_tree_grows_too_large(store: Harness) -> None:
    limits = TreeLimits(documents_max=4, depth_max=16)
    apply(store, writing("a/b"), limits=limits)
    with refused(TooLarge):
        apply(store, writing("a/c/d/e"), limits=limits)
    with refused(TooLarge):
        apply(store, *(writing(f"b/{number}") for number in range(3)), limits=limits)
    assert paths(store) == ["a", "a/b"]
    apply(store, writing("a/c/d"), limits=limits)
    with refused(TooLarge):
        apply(store, writing("e"), limits=limits)
    with refused(TooLarge):
        apply(store, moving("a/b", "c/b"), limits=limits)
    assert assert_sound(store, "a", "b", "c") == 4


@case("D1 D6", "what is deleted makes room, and needs it again to be restored")
def what_is_deleted_makes_room(store: Harness) -> None:
    limits = TreeLimits(documents_max=4, depth_max=16)
    grow(store, "a/b/c", "a/d")
    delete(store, "a/b")
    apply(store, writing("e"), limits=limits)
    with refused(TooLarge):
        apply(store, restoring("a/b"), limits=limits)
    delete(store, "e")
    apply(store, restoring("a/b"), limits=limits)
    assert assert_sound(store, "a", "e") == 4


@case("D1", "a tree that is too large by now can still be changed and can shrink")
def a_tree_that_is_too_large_can_change(store: Harness) -> None:
    grow(store, "a/b", "a/c", "a/d")
    small = TreeLimits(documents_max=2, depth_max=1)
    for edit in (writing("a/b", "new"), moving("a/c", "e"), deleting("a/d")):
        apply(store, edit, limits=small)
    assert assert_sound(store, "a", "e") == 3


# Expected versions


@case("D5", "a write that expects the right version is made")
def the_right_version_is_changed(store: Harness) -> None:
    assert write(store, "a", "one", expected=0).version == 1
    assert write(store, "a", "two", expected=1).version == 2
    assert write(store, "a", "two", expected=2).version == 2
    assert move(store, "a", "b", 2).version == 3


@case("D5", "a stale version is refused with the current one, and nothing changes")
def a_stale_version_is_refused(store: Harness) -> None:
    for number in range(3):
        current = write(store, "a", f"body {number}")
    stale = Write(place=place("a"), content=current.content, expected=2)
    edits: tuple[Edit, ...] = (
        writing("a", "mine", expected=2),
        writing("a", "mine", expected=4),
        stale,
        replace(moving("a", "b"), expected=1),
        replace(deleting("a"), expected=2),
    )
    for edit in edits:
        assert refused_at(store, edit) == 3
        assert page(store, "a") == current
    delete(store, "a")
    with refused(StaleVersion):
        apply(store, replace(restoring("a"), expected=3))
    assert apply(store, replace(restoring("a"), expected=4))[0].version == 5


@case("D5", "who expects nothing is refused where something is, and the other way round")
def something_is_not_nothing(store: Harness) -> None:
    write(store, "a", "one")
    with refused(DocumentExists):
        write(store, "a", "two", expected=0)
    with refused(DocumentExists):
        write(store, "A", "two", expected=0)
    for version in (1, 2):
        with refused(NotFound):
            write(store, "b", expected=version)
    for edit in (moving("b", "c"), deleting("b"), restoring("b")):
        with refused(NotFound):
            apply(store, edit)
    assert paths(store) == ["a"]
    assert page(store, "a").version == 1


@case("D5", "an edit that is meant for one document is not made to another at the same place")
def an_edit_is_made_to_what_it_is_meant_for(store: Harness) -> None:
    first = write(store, "a", "one")
    move(store, "a", "b")
    second = write(store, "a", "two")
    edits: tuple[Edit, ...] = (
        writing("a", "for the first", expected=second.version, document_id=first.id),
        writing("a", "for the first", document_id=first.id),
        replace(moving("a", "c"), document_id=first.id),
        replace(deleting("a"), document_id=first.id),
    )
    for edit in edits:
        with refused(StaleVersion):
            apply(store, edit)
        with refused(NotFound):
            apply(store, replace(edit, place=place("nowhere")))
    assert page(store, "a") == second
    edit = writing("a", "x", expected=second.version, document_id=second.id)
    assert apply(store, edit)[0].version == second.version + 1


# Sets of edits


@case("D5 P6", "edits are made in order, each on what the ones before it left")
def edits_are_made_in_order(store: Harness) -> None:
    made = apply(
        store,
        writing("a", "one", expected=0),
        writing("a", "two", expected=1),
        moving("a", "b", 2),
        writing("b/c", "below", expected=0),
        deleting("b"),
        restoring("b"),
        writing("a", "new", expected=0),
    )
    assert [document.version for document in made] == [1, 2, 3, 1, 4, 5, 6]
    assert [document.path for document in made][-2:] == ["~/b", "~/a"]
    assert (page(store, "a").body, page(store, "b/c").version) == ("new", 3)
    assert assert_sound(store, "a", "b") == 3
    assert apply(store) == []


@case("D5 P5 P6", "of a set of edits all are made, or none and nothing is left of them")
def all_edits_are_made_or_none(store: Harness) -> None:
    grow(store, "a/b", "c")
    write(store, "c", "text", links=["a/b", "d"])
    before = [page(store, path) for path in ("a", "a/b", "c")]
    good: tuple[Edit, ...] = (
        writing("a/b", "changed"),
        writing("d/e/f", "new", mentions=["a/b"]),
        moving("a/b", "d/b"),
        deleting("c"),
        restoring("c"),
    )
    bad: tuple[tuple[Edit, type[UsageError]], ...] = (
        (writing("a", expected=9), StaleVersion),
        (writing("a", expected=0), DocumentExists),
        (moving("nowhere", "b"), NotFound),
        (moving("d", "d/e/f/g"), InvalidPath),
        (deleting("d", below=False), DocumentReferenced),
        (deleting("d"), DocumentReferenced),
    )
    for edit, error in bad:
        with refused(error):
            apply(store, *good, edit)
        assert [page(store, path) for path in ("a", "a/b", "c")] == before
        assert find(store, "d") is None
        assert store.handle.documents.find_deleted(SPACE, place("c")) is None
        assert assert_sound(store, "a", "c", "d") == 3


@case("D1 P12", "documents are there after reopening, with their versions and references")
def documents_are_there_after_reopening(store: Harness) -> None:
    if store.is_volatile:
        return
    write(store, "a/b", "one", links=["c"])
    write(store, "a/b", "two", links=["c"])
    write(store, "c", "text")
    move(store, "a", "d")
    delete(store, "c", leaves_broken=True)
    before = [page(store, "d/b"), *history(store, page(store, "d/b"))]
    store.reopen()
    assert [page(store, "a/b"), *history(store, page(store, "d/b"))] == before
    assert restore(store, "c").version == 3
    assert assert_sound(store, "c", "d") == 3
    assert apply(store, writing("e"), limits=LIMITS)[0].path == "~/e"

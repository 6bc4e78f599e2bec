"""Deleting, restoring and purging documents, and what forgetting a session does to them."""

from __future__ import annotations

from dataclasses import replace

from recollect.errors import DocumentExists, DocumentReferenced, NotFound
from recollect.types.facts import Receipt, Source
from recollect.types.pages import Because, DocumentEvent, Purged
from recollect_conformance.case import case, refused
from recollect_conformance.harness import SPACE, Harness
from recollect_conformance.pages import (
    apply,
    assert_sound,
    delete,
    deleting,
    events,
    find,
    grow,
    history,
    into,
    move,
    moving,
    nodes,
    out_of,
    page,
    paths,
    place,
    restore,
    restoring,
    write,
    writing,
)

DELETED, RESTORED = DocumentEvent.DELETED, DocumentEvent.RESTORED


def _purge(store: Harness, path: str) -> Purged:
    return store.handle.documents.purge(SPACE, place(path))


def _refusal(store: Harness, path: str) -> str:
    """What is said when a page cannot be deleted; nothing if it can."""
    try:
        delete(store, path)
    except DocumentReferenced as error:
        return str(error)
    return ""


# Deleting


@case("D6", "what is deleted is not there, is known to have been, and has a version that says so")
def a_deleted_page_is_not_there(store: Harness) -> None:
    before = write(store, "a", "text")
    at = store.clock.advance(5)
    because = Because(reason="not needed")
    [gone] = apply(store, deleting("a"), because=because)
    assert gone == replace(
        before, version=2, deleted_at=at, updated_at=at, reason="not needed", path="~/a"
    )
    assert find(store, "a") is None
    assert paths(store, "a") == []
    assert store.handle.documents.find_deleted(SPACE, place("A")) == gone
    assert store.handle.documents.find_deleted(SPACE, place("b")) is None
    newest = history(store, gone)[0]
    assert (newest.event, newest.body, newest.reason) == (DELETED, "text", "not needed")


@case("D6", "a page with others below it is deleted with them, or not at all")
def a_page_is_deleted_with_what_is_below(store: Harness) -> None:
    grow(store, "a/b/c", "a/d", "ab")
    with refused(DocumentReferenced):
        delete(store, "a", below=False)
    below = [page(store, path) for path in ("a/b", "a/b/c", "a/d")]
    delete(store, "a")
    assert paths(store, "a", "ab") == ["ab"]
    for document in below:
        assert events(store, document)[0] is DELETED
        gone = store.handle.documents.get(SPACE, document.id)
        assert gone is not None
        assert gone.deleted_at == store.now()
    assert assert_sound(store, "a", "ab") == 1
    delete(store, "ab", below=False)
    assert assert_sound(store, "a", "ab") == 0


@case("D6", "a page that others refer to, or one below it, is not deleted, and they are named")
def a_page_that_is_referred_to_is_not_deleted(store: Harness) -> None:
    grow(store, "a/b")
    for referrer in ("linking", "mentioning"):
        links = ["a/b"] if referrer == "linking" else []
        mentions = [] if links else ["a/b"]
        write(store, referrer, links=links, mentions=mentions)
        for path in ("a", "a/b"):
            assert f"~/{referrer} → ~/a/b" in _refusal(store, path)
        write(store, referrer, "no more")
    delete(store, "a")


@case("D6", "references from inside what is deleted, or from deleted pages, do not count")
def references_from_inside_do_not_count(store: Harness) -> None:
    write(store, "a", links=["a/b", "a"])
    write(store, "a/b", links=["a"], mentions=["a/b/c"])
    write(store, "a/b/c", links=["a", "d"])
    write(store, "gone", links=["a/b"])
    delete(store, "gone")
    with refused(DocumentReferenced):
        delete(store, "a/b")
    with refused(DocumentReferenced):
        delete(store, "a/b/c")
    delete(store, "a")
    assert assert_sound(store, "a", "gone") == 0


@case("D2 D6", "a link that leads to a page by its old path holds it as any other")
def an_old_link_holds_a_page(store: Harness) -> None:
    grow(store, "a")
    write(store, "b", links=["a"])
    move(store, "a", "c")
    with refused(DocumentReferenced):
        delete(store, "c")
    write(store, "a", "new")
    with refused(DocumentReferenced):
        delete(store, "c")
    delete(store, "a")


@case("D2 D6", "references can be left broken, and are until something stands there again")
def references_can_be_left_broken(store: Harness) -> None:
    grow(store, "a/b")
    write(store, "c", links=["a"], mentions=["a/b"])
    delete(store, "a", leaves_broken=True)
    assert out_of(store, "c") == [("a/b", False), ("a", False)]
    assert len(store.handle.documents.broken(SPACE, 10)) == 2
    write(store, "a", "other")
    assert out_of(store, "c") == [("a/b", False), ("a", True)]
    assert into(store, "a") == ["c"]


# Restoring


@case("D6 D7", "a restored page is as it was, in a new version, with what was deleted with it")
def a_restored_page_is_as_it_was(store: Harness) -> None:
    grow(store, "a/b/c", "a/d")
    before = [page(store, path) for path in ("a", "a/b", "a/b/c", "a/d")]
    delete(store, "a")
    at = store.clock.advance(5)
    apply(store, restoring("a"), because=Because(reason="needed"))
    for document in before:
        back = page(store, document.path.removeprefix("~/"))
        assert back == replace(document, version=3, updated_at=at, reason="needed")
        assert events(store, back) == [RESTORED, DELETED, DocumentEvent.CREATED]
    assert store.handle.documents.find_deleted(SPACE, place("a")) is None
    assert assert_sound(store, "a") == 4


@case("D6 D7", "what was deleted before or on its own stays deleted, even at the same moment")
def what_was_deleted_apart_stays_deleted(store: Harness) -> None:
    grow(store, "a/b/c", "a/d/e")
    delete(store, "a/b/c")
    apply(store, deleting("a/d"), deleting("a"))
    restore(store, "a")
    assert paths(store, "a") == ["a", "a/b"]
    restore(store, "a/d")
    restore(store, "a/b/c")
    assert paths(store, "a") == ["a", "a/b", "a/b/c", "a/d", "a/d/e"]
    assert assert_sound(store, "a") == 5


@case("D6 D7", "a part of what was deleted together comes back below its parents as they were")
def a_part_comes_back_below_its_parents(store: Harness) -> None:
    grow(store, "a/b/c/d", "a/b/e")
    write(store, "a/b", "said something")
    known = {path: page(store, path) for path in ("a", "a/b", "a/b/c/d", "a/b/e")}
    delete(store, "a")
    with refused(NotFound):
        apply(store, replace(restoring("a/b/c"), parents=()))
    restore(store, "a/b/c")
    assert paths(store, "a") == ["a", "a/b", "a/b/c", "a/b/c/d"]
    for path in ("a", "a/b", "a/b/c/d"):
        assert page(store, path).id == known[path].id
        assert page(store, path).body == known[path].body
        assert events(store, known[path])[:2] == [RESTORED, DELETED]
    restore(store, "a/b/e")
    assert page(store, "a/b/e").id == known["a/b/e"].id
    assert assert_sound(store, "a") == 5


@case("D6 D7", "a parent that was deleted later comes back too, and alone; one that moved does not")
def a_parent_deleted_later_comes_back(store: Harness) -> None:
    grow(store, "a/b", "a/c", "d/e")
    delete(store, "a/b")
    store.clock.advance(1)
    delete(store, "a")
    store.clock.advance(1)
    restore(store, "a/b")
    assert paths(store, "a") == ["a", "a/b"]
    delete(store, "d")
    store.clock.advance(1)
    grow(store, "d/f")
    delete(store, "d/f")
    moved = move(store, "d", "g")
    restore(store, "d/f")
    assert paths(store, "d", "g") == ["d", "d/f", "g"]
    assert page(store, "d").id != moved.id
    assert page(store, "d").body == ""
    assert_sound(store, "a", "d", "g")


@case("D6", "what was deleted is listed below a root, the last first, in pages")
def what_was_deleted_is_listed(store: Harness) -> None:
    grow(store, "a/b", "a/c", "ab", "d")
    for path in ("a/b", "ab", "a/c"):
        store.clock.advance(1)
        apply(store, deleting(path), because=Because(reason=f"no {path}"))
    grow(store, "a/b")
    store.clock.advance(1)
    delete(store, "a/b")

    def listed(root: str, after: str | None = None, limit: int = 10) -> list[tuple[str, str]]:
        found = store.handle.documents.deleted(SPACE, place(root), after, limit)
        return [(each.path.removeprefix("~/"), each.reason) for each in found]

    whole = [("a/b", ""), ("a/c", "no a/c"), ("a/b", "no a/b")]
    assert listed("a") == whole
    assert listed("a", limit=2) == whole[:2]
    [first, second, _] = store.handle.documents.deleted(SPACE, place("a"), None, 10)
    assert listed("a", after=first.id, limit=1) == whole[1:2]
    assert listed("a", after=second.id) == whole[2:]
    assert listed("ab") == [("ab", "no ab")]
    assert (first.title, first.body_chars) == ("Title", len("made as a/b"))
    apply(store, restoring("a/b", first.id))
    assert listed("a") == whole[1:]
    assert listed("d") == []


@case("D6", "nothing is restored onto another page, and nothing that was not deleted")
def nothing_is_restored_onto_another(store: Harness) -> None:
    grow(store, "a")
    with refused(DocumentExists):
        restore(store, "a")
    with refused(NotFound):
        restore(store, "b")
    delete(store, "a")
    grow(store, "A/b")
    with refused(DocumentExists):
        restore(store, "a")
    move(store, "a", "c")
    with refused(NotFound):
        restore(store, "c/b/c")
    restore(store, "a")
    assert paths(store, "a", "c") == ["a", "c", "c/b"]


@case("D6 D7", "of several deleted at a place the last comes back, or the one that is meant")
def the_last_or_the_meant_one_comes_back(store: Harness) -> None:
    made = []
    for number in range(3):
        made.append(write(store, "a", f"number {number}"))
        store.clock.advance(1)
        delete(store, "a")
    assert restore(store, "a").id == made[2].id
    delete(store, "a")
    [back] = apply(store, restoring("a", made[0].id))
    assert (back.id, back.body) == (made[0].id, "number 0")
    with refused(DocumentExists):
        apply(store, restoring("a", made[1].id))
    move(store, "a", "b")
    for path, document_id in (("a", made[0].id), ("b/c", made[1].id), ("a", "no such id")):
        with refused(NotFound):
            apply(store, restoring(path, document_id))
    assert apply(store, restoring("a", made[1].id))[0].body == "number 1"
    assert assert_sound(store, "a", "b") == 2


@case("D6 D7", "what comes back is deleted and comes back as often as one likes")
def pages_come_and_go(store: Harness) -> None:
    grow(store, "a/b/c", "a/d")
    for number in range(5):
        path = ("a", "a/b", "a/b/c", "a/d", "a")[number]
        count = len(nodes(store, path))
        delete(store, path)
        assert len(nodes(store, "a")) == 4 - count
        restore(store, path)
        assert assert_sound(store, "a") == 4
    assert page(store, "a/b/c").version == 1 + 2 * 4


# Purging


@case("D6 P11", "a purge removes what stands or stood at a path and below it, with every version")
def a_purge_removes_everything(store: Harness) -> None:
    grow(store, "a/b/c", "ab", "d")
    write(store, "a/b", "two")
    delete(store, "a/b/c")
    known = [page(store, path) for path in ("a", "a/b", "ab", "d")]
    assert _purge(store, "A") == Purged(documents=3, versions=5)
    for document in known[:2]:
        assert store.handle.documents.get(SPACE, document.id) is None
        assert history(store, document) == []
    assert store.handle.documents.find_deleted(SPACE, place("a/b/c")) is None
    assert [page(store, path) for path in ("ab", "d")] == known[2:]
    assert assert_sound(store, "a", "ab", "d") == 2


@case("D6 P11", "a deleted page is erased for good, and what stood below it is not")
def a_deleted_page_can_be_erased_alone(store: Harness) -> None:
    grow(store, "a/b")
    documents = store.handle.documents
    live = page(store, "a")
    assert not documents.erase_deleted(SPACE, live.id)
    delete(store, "a/b")
    delete(store, "a")
    assert not documents.erase_deleted("other", live.id)
    assert documents.erase_deleted(SPACE, live.id)
    assert documents.get(SPACE, live.id) is None
    assert history(store, live) == []
    assert documents.find_deleted(SPACE, place("a/b")) is not None
    assert write(store, "a", "anew").version > live.version


@case("D7 P11", "earlier versions are erased for good, and never the current one")
def earlier_versions_can_be_erased(store: Harness) -> None:
    first = write(store, "a", "one")
    write(store, "a", "two")
    last = write(store, "a", "three")
    numbers = [first.version, last.version, 99]
    assert store.handle.documents.erase_versions(SPACE, first.id, numbers) == 1
    assert [each.body for each in history(store, last)] == ["three", "two"]
    assert store.handle.documents.erase_versions("other", first.id, [first.version + 1]) == 0
    assert page(store, "a") == last


@case("D6 P11", "what was moved away is not purged where it stood, but where it stands")
def what_was_moved_away_is_not_purged(store: Harness) -> None:
    grow(store, "a/b")
    moved = move(store, "a/b", "c")
    assert _purge(store, "a").documents == 1
    assert page(store, "a/b") == moved
    assert _purge(store, "c") == Purged(documents=1, versions=2)
    assert find(store, "a/b") is None
    assert assert_sound(store, "a", "c") == 0


@case("D6", "purging what is not there, or was purged, changes nothing")
def purging_nothing_changes_nothing(store: Harness) -> None:
    write(store, "a", links=["b"])
    nothing = Purged(documents=0, versions=0)
    assert _purge(store, "b") == nothing
    assert _purge(store, "a") == Purged(documents=1, versions=1)
    assert _purge(store, "a") == nothing
    assert assert_sound(store, "a", "b") == 0


@case("D6", "a purged path is free for a new page, of which nothing is known")
def a_purged_path_is_free(store: Harness) -> None:
    old = write(store, "a", "old")
    _purge(store, "a")
    new = write(store, "a", "new", expected=0)
    assert new.id != old.id
    with refused(DocumentExists):
        restore(store, "a")
    assert [version.body for version in history(store, new)] == ["new"]


# Forgetting a session


def _resting_on(*session_ids: str) -> Because:
    sources = [
        Source(session_id=each, seq=number, seq_to=number + 1, quote=f"« quoted from {each} »")
        for number, each in enumerate(session_ids, start=1)
    ]
    return Because(sources=tuple(sources), facts=("fact-1",), reason="so")


@case("P11 D1", "a forgotten session is no ground of any version any more, and others still are")
def a_forgotten_session_is_no_ground(store: Harness) -> None:
    one, other = (store.current(store.key(key)).id for key in ("one", "other"))
    apply(store, writing("a", "1"), because=_resting_on(one, other))
    apply(store, writing("a", "2"), because=_resting_on(one))
    apply(store, writing("b", "1"), because=_resting_on(one))
    apply(store, deleting("b"), because=_resting_on(other, one))
    apply(store, writing("c", "1"), because=_resting_on(other))
    before = page(store, "a")
    receipt = store.handle.erasure.forget_session(SPACE, one, store.now())
    assert receipt == Receipt(
        space=SPACE,
        session_id=one,
        records=0,
        facts=0,
        sources=0,
        extractions=0,
        summaries=0,
        at=store.now(),
        sessions=1,
        left=("~/a", "~/b"),  # a person wrote them, also the one that was deleted
        is_complete=False,
    )
    assert page(store, "a") == replace(before, sources=())
    gone = store.handle.documents.find_deleted(SPACE, place("b"))
    assert gone is not None
    grounds = [
        [source.session_id for source in version.sources]
        for document in (before, gone, page(store, "c"))
        for version in history(store, document)
    ]
    assert grounds == [[], [other], [other], [], [other]]
    assert all(version.facts == ("fact-1",) for version in history(store, before))


@case("P11 P9", "forgetting a session touches no ground of another name or space")
def forgetting_touches_no_other_ground(store: Harness) -> None:
    ref = store.key("one")
    session = store.current(ref).id
    similar = (session[:-1] + "_", session + "0", "%", session.upper(), f'"{session}"', "s")
    apply(store, writing("a"), because=_resting_on(session, *similar))
    apply(store, writing("a"), because=_resting_on(session), space="another space")
    apply(store, moving("a", "b"), because=replace(_resting_on(), reason=f'about "{session}"'))
    assert store.handle.erasure.forget_session(SPACE, session, store.now())
    newest, oldest = history(store, page(store, "b"))
    assert tuple(source.session_id for source in oldest.sources) == similar
    assert newest.reason == f'about "{session}"'
    assert page(store, "a", "another space").sources == _resting_on(session).sources


@case("P11 D1", "a session that was forgotten is no ground of anything that is written later")
def a_forgotten_session_is_never_a_ground_again(store: Harness) -> None:
    one, other = (store.current(store.key(key)).id for key in ("one", "other"))
    store.handle.erasure.forget_session(SPACE, one, store.now())
    own = replace(writing("a"), because=_resting_on(one, other))
    apply(store, own, writing("b"), because=_resting_on(one))
    apply(store, writing("c"), because=_resting_on(one), space="another space")
    assert [each.session_id for each in page(store, "a").sources] == [other]
    assert (page(store, "b").sources, page(store, "b").facts) == ((), ("fact-1",))
    assert page(store, "c", "another space").sources

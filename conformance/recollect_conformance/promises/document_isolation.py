"""Spaces and documents: no page of one shows in another, or is changed from there."""

from __future__ import annotations

from collections.abc import Callable

from recollect.errors import NotFound, TooLarge
from recollect.types.facts import Source
from recollect.types.pages import Because, Node, Purged, TreeLimits
from recollect_conformance.case import case, refused
from recollect_conformance.harness import Harness
from recollect_conformance.pages import (
    DEEP,
    MANY,
    apply,
    deleting,
    find,
    moving,
    page,
    paths,
    place,
    restoring,
    write,
    writing,
)

OURS, THEIRS = "ours", "theirs"
CANARY = "the canary sings"


class _Theirs:
    """Another space with something of everything, and the names by which one could reach it."""

    def __init__(self, store: Harness) -> None:
        because = Because(
            reason=CANARY,
            sources=(Source(session_id="s", seq=1, seq_to=1, quote=CANARY),),
            facts=(CANARY,),
        )
        apply(
            store,
            writing("a/b", CANARY, title=CANARY, links=["a/gone", "new"], mentions=["c/d"]),
            writing("a/b/c", CANARY, mentions=["a/b"]),
            writing("a/gone", CANARY),
            writing("c/d", CANARY),
            deleting("a/gone", leaves_broken=True),
            moving("c/d", "c/e"),
            because=because,
            space=THEIRS,
        )
        documents = store.handle.documents
        self.ids = [node.id for root in ("a", "c") for node in self._nodes(store, root)]
        gone = documents.find_deleted(THEIRS, place("a/gone"))
        assert gone is not None
        self.ids.append(gone.id)

    @staticmethod
    def _nodes(store: Harness, root: str) -> list[Node]:
        return store.handle.documents.tree(THEIRS, place(root), "", DEEP, MANY)

    def sights(self, store: Harness) -> list[object]:
        documents = store.handle.documents
        return [
            [self._nodes(store, root) for root in ("a", "c")],
            [documents.get(THEIRS, each) for each in self.ids],
            [documents.history(THEIRS, each, None, MANY) for each in self.ids],
            [documents.references_from(THEIRS, each) for each in self.ids],
            [documents.references_to(THEIRS, each) for each in self.ids],
            documents.search(THEIRS, ["canary"], place("a"), MANY),
            documents.broken(THEIRS, MANY),
            documents.orphans(THEIRS, MANY),
            [find(store, path, THEIRS) for path in ("a/b", "c/d", "c/e", "new")],
            documents.find_deleted(THEIRS, place("a/gone")),
        ]


@case("P9", "no page of another space is found, by any of its paths or its id")
def no_page_of_another_space_is_found(store: Harness) -> None:
    theirs = _Theirs(store)
    documents = store.handle.documents
    for path in ("a", "a/b", "a/b/c", "a/gone", "c", "c/d", "c/e"):
        assert find(store, path, OURS) is None
        assert documents.find_deleted(OURS, place(path)) is None
        assert documents.tree(OURS, place(path), "", DEEP, MANY) == []
        assert documents.search(OURS, ["canary", "sings"], place(path), MANY) == []
    for each in theirs.ids:
        assert documents.get(OURS, each) is None
        assert documents.history(OURS, each, None, MANY) == []
        assert documents.references_from(OURS, each) == []
        assert documents.references_to(OURS, each) == []
    assert documents.broken(OURS, MANY) == []
    assert documents.orphans(OURS, MANY) == []


@case("P9", "no page of another space is changed, moved, deleted, restored or purged")
def no_page_of_another_space_is_changed(store: Harness) -> None:
    theirs = _Theirs(store)
    before = theirs.sights(store)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: apply(store, writing("a/b", "ours", expected=1), space=OURS),
        lambda: apply(store, writing("x", document_id=theirs.ids[1]), space=OURS),
        lambda: apply(store, moving("a/b", "x"), space=OURS),
        lambda: apply(store, moving("c/d", "x"), space=OURS),
        lambda: apply(store, deleting("a"), space=OURS),
        lambda: apply(store, restoring("a/gone"), space=OURS),
        lambda: apply(store, restoring("a/gone", theirs.ids[-1]), space=OURS),
    )
    for attempt in attempts:
        with refused(NotFound):
            attempt()
        assert theirs.sights(store) == before
    for path in ("a", "c", "new"):
        purged = store.handle.documents.purge(OURS, place(path))
        assert purged == Purged(documents=0, versions=0)
    assert theirs.sights(store) == before


@case("P9 D2", "the same paths here are other pages, and refer to each other alone")
def the_same_paths_here_are_others(store: Harness) -> None:
    theirs = _Theirs(store)
    before = theirs.sights(store)
    for path in ("a/b", "c/d", "c/e", "a/gone", "new"):
        assert write(store, path, "ours", links=["a/b", "new", "c/d"], space=OURS).version == 1
    assert theirs.sights(store) == before
    documents = store.handle.documents
    mine = page(store, "a/b", OURS)
    assert mine.id not in theirs.ids
    for each in (
        *documents.references_from(OURS, mine.id),
        *documents.references_to(OURS, mine.id),
    ):
        assert not each.is_broken
        assert each.source.removeprefix("~/") in ("a/b", "c/d", "c/e", "a/gone", "new")
    apply(store, moving("a", "z"), deleting("z/b", leaves_broken=True), space=OURS)
    documents.purge(OURS, place("z"))
    assert theirs.sights(store) == before
    assert paths(store, "a", "c", space=THEIRS) == ["a", "a/b", "a/b/c", "c", "c/e"]


@case("P9 P12", "what other spaces hold does not count here")
def other_spaces_do_not_count(store: Harness) -> None:
    _Theirs(store)
    limits = TreeLimits(documents_max=2, depth_max=DEEP)
    apply(store, writing("a/b"), limits=limits, space=OURS)
    with refused(TooLarge):
        apply(store, writing("c"), limits=limits, space=OURS)
    store.handle.documents.purge(OURS, place("a"))
    assert len(paths(store, "a", "c", space=THEIRS)) == 5

"""Short words for cases about documents: places, edits, and what must be true of every tree."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace

from recollect.errors import StaleVersion, TooLarge
from recollect.store.protocol import Store
from recollect.types.pages import (
    Because,
    Content,
    Delete,
    Document,
    DocumentEvent,
    Edit,
    Move,
    NewReference,
    Node,
    Place,
    Reference,
    ReferenceKind,
    Restore,
    TreeLimits,
    Version,
    Write,
)
from recollect_conformance.case import refused
from recollect_conformance.harness import SPACE, Harness

LIMITS = TreeLimits(documents_max=1000, depth_max=16)
SEPARATOR = "\x01"
DEEP = 16
MANY = 10_000


def place(path: str) -> Place:
    """A place as the caller of a store gives it; here a path is written without `~/`."""
    parts = [unicodedata.normalize("NFC", part) for part in path.split("/")]
    folded = [unicodedata.normalize("NFC", part.casefold()) for part in parts]
    return Place(text="/".join(("~", *parts)), key=SEPARATOR.join(folded), depth=len(parts))


def above(path: str) -> tuple[Place, ...]:
    """The places above a path, from the top."""
    parts = path.split("/")
    return tuple(place("/".join(parts[:end])) for end in range(1, len(parts)))


def writing(
    path: str,
    body: str = "text",
    *,
    title: str = "Title",
    links: Sequence[str] = (),
    mentions: Sequence[str] = (),
    expected: int | None = None,
    document_id: str | None = None,
) -> Write:
    """A page that says something, links to some pages and mentions others in its body."""
    given = [NewReference(kind=ReferenceKind.LINK, place=place(each)) for each in links]
    said = [
        NewReference(kind=ReferenceKind.BODY, place=place(each), alias=f"see {each}")
        for each in mentions
    ]
    whole = " ".join([body, *(f"[[{each}|see {each}]]" for each in mentions)])
    return Write(
        place=place(path),
        content=Content(title=title, body=whole, links=tuple(place(each).text for each in links)),
        references=(*given, *said),
        parents=above(path),
        expected=expected,
        document_id=document_id,
    )


def moving(path: str, to: str, expected: int | None = None) -> Move:
    return Move(place=place(path), to=place(to), parents=above(to), expected=expected)


def deleting(path: str, *, below: bool = True, leaves_broken: bool = False) -> Delete:
    return Delete(place=place(path), below=below, leaves_broken=leaves_broken)


def restoring(path: str, document_id: str | None = None) -> Restore:
    return Restore(place=place(path), parents=above(path), document_id=document_id)


def apply(
    store: Harness,
    *edits: Edit,
    because: Because | None = None,
    limits: TreeLimits = LIMITS,
    space: str = SPACE,
) -> list[Document]:
    return apply_on(store.handle, store, edits, because=because, limits=limits, space=space)


def apply_on(
    handle: Store,
    store: Harness,
    edits: Sequence[Edit],
    *,
    because: Because | None = None,
    limits: TreeLimits = LIMITS,
    space: str = SPACE,
) -> list[Document]:
    """The same on a handle of its own."""
    return handle.documents.apply(
        space, edits, because or Because(), limits, store.now(), store.new_id
    )


def refused_at(store: Harness, *edits: Edit) -> int | None:
    """The current version with which edits are refused as stale; none: they are made."""
    try:
        apply(store, *edits)
    except StaleVersion as error:
        return error.current
    return None


def write(
    store: Harness,
    path: str,
    body: str = "text",
    *,
    title: str = "Title",
    links: Sequence[str] = (),
    mentions: Sequence[str] = (),
    expected: int | None = None,
    space: str = SPACE,
) -> Document:
    edit = writing(path, body, title=title, links=links, mentions=mentions, expected=expected)
    return apply(store, edit, space=space)[0]


def grow(store: Harness, *paths: str, space: str = SPACE) -> None:
    """Pages that say where they were made."""
    apply(store, *(writing(path, f"made as {path}") for path in paths), space=space)


def move(store: Harness, path: str, to: str, expected: int | None = None) -> Document:
    return apply(store, moving(path, to, expected))[0]


def delete(
    store: Harness, path: str, *, below: bool = True, leaves_broken: bool = False
) -> Document:
    return apply(store, deleting(path, below=below, leaves_broken=leaves_broken))[0]


def restore(store: Harness, path: str) -> Document:
    return apply(store, restoring(path))[0]


def find(store: Harness, path: str, space: str = SPACE) -> Document | None:
    return store.handle.documents.find(space, place(path))


def page(store: Harness, path: str, space: str = SPACE) -> Document:
    """A page that has to be there."""
    found = find(store, path, space)
    assert found is not None, f"there is nothing at {path}"
    return found


def leads_to(store: Harness, path: str) -> str | None:
    """The path of what a path leads to."""
    found = find(store, path)
    return None if found is None else found.path.removeprefix("~/")


def nodes(store: Harness, root: str, space: str = SPACE) -> list[Node]:
    return store.handle.documents.tree(space, place(root), "", DEEP, MANY)


def paths(store: Harness, *roots: str, space: str = SPACE) -> list[str]:
    """The paths of all that stands below the roots, in the order of the tree."""
    return [
        node.path.removeprefix("~/")
        for root in (roots or ("a", "b", "c"))
        for node in nodes(store, root, space)
    ]


def history(store: Harness, document: Document) -> list[Version]:
    """Every version, the newest first."""
    return store.handle.documents.history(document.space, document.id, None, MANY)


def events(store: Harness, document: Document) -> list[DocumentEvent]:
    return [version.event for version in history(store, document)]


def out_of(store: Harness, path: str) -> list[tuple[str, bool]]:
    """What a page refers to, and whether it is there."""
    found = store.handle.documents.references_from(SPACE, page(store, path).id)
    return [(each.target.removeprefix("~/"), not each.is_broken) for each in found]


def into(store: Harness, path: str) -> list[str]:
    """What refers to a page, in order, each kind of reference on its own."""
    found = store.handle.documents.references_to(SPACE, page(store, path).id)
    assert not any(each.is_broken for each in found)
    return [each.source.removeprefix("~/") for each in found]


def sources_of(found: Iterable[Reference]) -> list[tuple[str, str]]:
    return [(each.source.removeprefix("~/"), each.target.removeprefix("~/")) for each in found]


def assert_sound(store: Harness, *roots: str, space: str = SPACE) -> int:
    """What must be true of every tree, whatever was done to it; how many documents it has.

    Every page has a parent, spelt as it is in the page's path, and all its versions; every
    reference leads to a page, where it is known, or its path leads to none.
    """
    documents = store.handle.documents
    found = {node.path: node for root in roots for node in nodes(store, root, space)}
    assert len({node.id for node in found.values()}) == len(found), "one page at two places"
    assert len({path.casefold() for path in found}) == len(found), "two pages at one place"
    for path, node in found.items():
        parent = path.rpartition("/")[0]
        assert parent == "~" or parent in found, f"{path} stands below nothing"
        numbers = [each.number for each in documents.history(space, node.id, None, MANY)]
        # Each above the last, not always by one: never a version that another page had there.
        assert numbers[0] == node.version, (path, numbers)
        assert numbers == sorted(set(numbers), reverse=True), (path, numbers)
        assert node.has_children == any(other.startswith(path + "/") for other in found)
        for each in documents.references_from(space, node.id):
            target = documents.find(space, place(each.target.removeprefix("~/")))
            assert (target is None) == each.is_broken, each
            if target is not None:
                assert target.path == each.target
                assert each in documents.references_to(space, target.id)
    _assert_counted(store, len(found), space)
    return len(found)


def _assert_counted(store: Harness, count: int, space: str) -> None:
    """The tree knows how many documents it has: one more than it may have is refused."""
    full = TreeLimits(documents_max=count + 1, depth_max=DEEP)
    probe = place("probe of the count")
    edits = [Write(place=probe, content=Content(title="probe"))]
    apply(store, *edits, limits=full, space=space)
    store.handle.documents.purge(space, probe)
    with refused(TooLarge):
        apply(store, *edits, limits=replace(full, documents_max=count), space=space)

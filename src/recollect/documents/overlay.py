"""Collections that remember what was done to them, so that it can be undone.

Taking a copy before each edit would cost as much as there is; this costs what the edit changes.
"""

from __future__ import annotations

import builtins
import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import Any, SupportsIndex, TypeVar, cast

from recollect.documents.links import references_in
from recollect.documents.paths import DEPTH_MAX, stored_path
from recollect.documents.reading import Tree
from recollect.session import LIST_MAX
from recollect.types.pages import (
    Content,
    DeletedDocument,
    Document,
    NewReference,
    Node,
    Place,
    Reference,
    ReferenceKind,
    Version,
)

K = TypeVar("K")
V = TypeVar("V")
Journal = list[Callable[[], object]]


def undo(journal: Journal) -> None:
    """Undo all that was noted, the last first."""
    undoing = journal[::-1]
    for step in undoing:
        step()
    journal.clear()  # also of what the undoing noted


class UndoDict(dict[K, V]):
    """A mapping; what is put back after it was taken out comes last."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def __setitem__(self, key: K, value: V) -> None:
        self._note(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        self._note(key)
        super().__delitem__(key)

    def pop(self, key: K, *default: Any) -> Any:
        self._note(key)
        return super().pop(key, *default)

    def update(self, *others: Any, **named: Any) -> None:
        for key, value in dict(*others, **named).items():
            self[key] = value

    def _note(self, key: K) -> None:
        if key in self:
            value = self[key]
            self._journal.append(lambda: super(UndoDict, self).__setitem__(key, value))
        else:
            self._journal.append(lambda: super(UndoDict, self).pop(key, None))


class UndoSet(set[K]):
    """A set, of which one is added or taken out at a time."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def add(self, value: K) -> None:
        if value not in self:
            self._journal.append(lambda: super(UndoSet, self).discard(value))
            super().add(value)

    def discard(self, value: object) -> None:
        if value in self:
            self._journal.append(lambda: super(UndoSet, self).add(cast(K, value)))
            super().discard(value)


class UndoList(list[V]):
    """A list, of which one is put in, replaced or taken out at a time."""

    def __init__(self, journal: Journal, values: Iterable[V] = ()) -> None:
        super().__init__(values)
        self._journal = journal

    def append(self, value: V) -> None:
        self._journal.append(super().pop)
        super().append(value)

    def insert(self, at: SupportsIndex, value: V) -> None:
        self._journal.append(lambda: super(UndoList, self).__delitem__(at))
        super().insert(at, value)

    def __setitem__(self, at: Any, value: Any) -> None:
        before = self[at]
        self._journal.append(lambda: super(UndoList, self).__setitem__(at, before))
        super().__setitem__(at, value)

    def __delitem__(self, at: Any) -> None:
        before = self[at]
        self._journal.append(lambda: super(UndoList, self).insert(at, before))
        super().__delitem__(at)


_SEPARATOR = "\x01"  # of the slugs in a key, as paths.py makes them


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayEntry:
    """A document that the changeset touched, or moved or deleted along with one."""

    place: Place
    node: Node
    document: Document | None = None  # none: the store has what it says
    more: int = 0  # versions it would have on top of the store's
    is_in_place: bool = False  # the store's document stands there, perhaps with others below

    @property
    def id(self) -> str:
        return self.node.id

    @property
    def version(self) -> int:
        return self.node.version


def entry_of(document: Document) -> OverlayEntry:
    """A document whose every word is known."""
    node = Node(
        id=document.id,
        path=document.path,
        title=document.title,
        description=document.description,
        version=document.version,
        body_chars=len(document.body),
        updated_at=document.updated_at,
        has_children=False,
    )
    return OverlayEntry(place=stored_path(document.path).place, node=node, document=document)


class Overlay:
    """What can be read of a tree, as the edits so far would leave it."""

    def __init__(self, under: Tree) -> None:
        self.under = under
        self.journal: Journal = []  # what the edit that is being made has changed
        # Entries by the key of where they stand, and those keys by id.
        self.entries: dict[str, OverlayEntry] = UndoDict(self.journal)
        self.keys: dict[str, str] = UndoDict(self.journal)
        self.gone: dict[str, OverlayEntry] = {}  # deleted here, by id, in that order
        # The store's documents at and below these keys have left.
        self.hidden: set[str] = UndoSet(self.journal)
        # From the key where something stood to its id; and keys where something came to stand.
        self.led: dict[str, str] = UndoDict(self.journal)
        self.reached: set[str] = UndoSet(self.journal)
        self.written: set[str] = UndoSet(self.journal)  # ids whose references only we know
        # What references mean that the store does not know, or not any more; none: their path.
        self.bound: dict[tuple[str, ReferenceKind, str], str | None] = UndoDict(self.journal)
        # Keys where something came to stand from where something else had been moved away.
        self.taken: set[str] = UndoSet(self.journal)

    def put(self, entry: OverlayEntry) -> None:
        key = entry.place.key
        self.entries[key] = entry
        self.keys[entry.id] = key
        self.led.pop(key, None)
        self.reached.add(key)

    def lift(self, key: str) -> None:
        """Take what stands at a key and below it from there."""
        for taken in [each for each in self.entries if is_at_or_below(each, key)]:
            del self.keys[self.entries.pop(taken).id]
        self.hidden.add(key)

    # reading, as from a store

    def find(self, space: str, place: Place) -> Document | None:
        return self.standing(space, place) or self.moved(space, place)

    def standing(self, space: str, place: Place) -> Document | None:
        """The document at a place, not one that has left it."""
        entry = self.entries.get(place.key)
        if entry is not None:
            return self._document(space, entry)
        if self._is_hidden(place.key):
            return None
        found = self.under.find(space, place)
        if found is None or stored_path(found.path).key != place.key or self._is_known(found.id):
            return None
        return found

    def moved(self, space: str, place: Place) -> Document | None:
        """The document that stood at a place and was moved away."""
        document_id = self.led.get(place.key)
        if document_id is not None:
            key = self.keys.get(document_id)
            return None if key is None else self._document(space, self.entries[key])
        if place.key in self.reached:
            return None
        found = self.under.find(space, place)
        if found is None or stored_path(found.path).key == place.key:
            return None
        return self._as_is(space, found)

    def get(self, space: str, document_id: str) -> Document | None:
        if document_id in self.gone:
            return self._document(space, self.gone[document_id])
        if document_id in self.keys:
            return self._document(space, self.entries[self.keys[document_id]])
        found = self.under.get(space, document_id)
        if found is None or found.deleted_at is not None:
            return found
        return self._as_is(space, found)

    def find_deleted(self, space: str, place: Place) -> Document | None:
        for entry in reversed(self.gone.values()):
            if entry.place.key == place.key:
                return self._document(space, entry)
        found = self.under.find_deleted(space, place)
        return None if found is None or self._is_known(found.id) else found

    def tree(
        self, space: str, root: Place, after: str, depth_max: int, limit: int
    ) -> builtins.list[Node]:
        mine = sorted(self.entries)
        start = max(bisect_right(mine, after), bisect_left(mine, root.key))
        below = takewhile(lambda key: is_at_or_below(key, root.key), islice(mine, start, None))
        own = (
            (key, self.entries[key].node)
            for key in below
            if self.entries[key].place.depth <= root.depth + depth_max
        )
        theirs = self._untouched(space, root, after, depth_max, limit)
        page = islice(heapq.merge(own, theirs, key=lambda each: each[0]), limit)
        return [
            replace(node, has_children=self._has_children(space, key, node, mine))
            for key, node in page
        ]

    def _untouched(
        self, space: str, root: Place, after: str, depth_max: int, limit: int
    ) -> Iterator[tuple[str, Node]]:
        """The store's part of the tree, without what has left or is overlaid."""
        while page := self.under.tree(space, root, after, depth_max, limit):
            for node in page:
                after = stored_path(node.path).key
                if not self._is_hidden(after) and not self._is_known(node.id):
                    yield after, node

    def _has_children(self, space: str, key: str, node: Node, mine: Sequence[str]) -> bool:
        at = bisect_left(mine, key + _SEPARATOR)
        if at < len(mine) and is_at_or_below(mine[at], key):
            return True
        entry = self.entries.get(key)
        if entry is not None and not entry.is_in_place:
            return False
        if entry is None and not any(is_at_or_below(each, key) for each in self.hidden):
            return node.has_children
        return next(self._untouched(space, _place(key), key, 1, LIST_MAX), None) is not None

    def inside(self, space: str, place: Place) -> Iterator[OverlayEntry]:
        """What stands at a place and below it, each before its children."""
        after = ""
        while page := self.tree(space, place, after, DEPTH_MAX, LIST_MAX):
            for node in page:
                at = stored_path(node.path).place
                after = at.key
                yield self.entries.get(at.key) or OverlayEntry(place=at, node=node)

    def history(
        self, space: str, document_id: str, before: int | None, limit: int
    ) -> builtins.list[Version]:
        """Versions that are there: an edit becomes one when it is committed."""
        return self.under.history(space, document_id, before, limit)

    def search(
        self, space: str, terms: Sequence[str], root: Place, limit: int
    ) -> builtins.list[Document]:
        """What the changeset says first, then what the store finds wherever that stands now."""
        said = [e.document for e in self.entries.values() if e.document and _has(e.document, terms)]
        outside = [_place(key) for key in self.hidden if not is_at_or_below(key, root.key)]
        enough = min(limit + len(self.keys) + len(self.gone), LIST_MAX)
        found = {each.id: each for each in said}
        for where in (root, *outside):
            for each in self.under.search(space, terms, where, enough):
                now = self._as_is(space, each)
                if now is not None and self._says_the_same(each.id):
                    found.setdefault(now.id, now)
        shown = [e for e in found.values() if is_at_or_below(stored_path(e.path).key, root.key)]
        return shown[:limit]

    def _says_the_same(self, document_id: str) -> bool:
        key = self.keys.get(document_id)
        return key is None or self.entries[key].document is None

    # references

    def references_from(self, space: str, document_id: str) -> builtins.list[Reference]:
        """To what each of them means, or else to what its path leads to."""
        document = self.get(space, document_id)
        if document is None:
            return []
        known = self._known_targets(space, document_id)
        made = []
        for each in references_in(document.content):
            target = self._meant(space, document_id, each, known)
            made.append(
                Reference(
                    kind=each.kind,
                    source=document.path,
                    target=each.place.text if target is None else target.path,
                    alias=each.alias,
                    is_broken=target is None,
                    named=each.place.text,
                )
            )
        return sorted(made, key=lambda each: (each.kind, stored_path(each.named).key))

    def _known_targets(self, space: str, document_id: str) -> dict[tuple[ReferenceKind, str], str]:
        """The ids of what the store takes the references of a document to mean."""
        found = {}
        for each in self.under.references_from(space, document_id):
            if not each.is_broken:
                target = self.under.find(space, stored_path(each.target).place)
                if target is not None:
                    found[each.kind, stored_path(each.named).key] = target.id
        return found

    def _meant(
        self,
        space: str,
        source_id: str,
        reference: NewReference,
        known: Mapping[tuple[ReferenceKind, str], str],
    ) -> Document | None:
        target_id = self.bound.get((source_id, *reference.name), known.get(reference.name))
        target = None if target_id is None else self.get(space, target_id)
        if target is not None and target.deleted_at is None:
            return target
        return self.find(space, reference.place)

    def refer(self, space: str, before: Content | None, now: Content, source_id: str) -> None:
        """Note what the references of a document mean by what it says now.

        Those that stay mean what they meant; those that are new, what their path leads to.
        """
        stayed = set() if before is None else {each.name for each in references_in(before)}
        known = self._known_targets(space, source_id) if stayed else {}
        for each in references_in(now):
            if each.name in stayed:
                target = self._meant(space, source_id, each, known)
            else:
                target = self.find(space, each.place)
            self.bound[source_id, *each.name] = None if target is None else target.id

    def arriving(self, space: str, place: Place) -> None:
        """Before something comes to stand at a place: what was moved away keeps its references."""
        if self.moved(space, place) is None:
            return
        self.taken.add(place.key)
        known = [each.source for each in self.under.references_naming(space, place)]
        for source_id in {*self._sources(space, known), *self.gone}:
            for each in self.references_from(space, source_id):
                target = self.find(space, stored_path(each.target).place)
                if stored_path(each.named).key == place.key and target is not None:
                    self.bound[source_id, each.kind, place.key] = target.id
                    self.written.add(source_id)

    def referring(
        self, space: str, entries: Collection[OverlayEntry]
    ) -> builtins.list[tuple[str, ReferenceKind, Place]]:
        """What refers to some documents by a path that is not theirs, as id, kind and path."""
        ids = {each.id: each.place.key for each in entries}
        found = [
            (source_id, kind, _place(key))
            for (source_id, kind, key), target_id in self.bound.items()
            if target_id in ids and ids[target_id] != key
        ]
        for document_id in ids:
            for each in self.under.references_to(space, document_id):
                named = stored_path(each.named).place
                source = self.under.find(space, stored_path(each.source).place)
                if source is not None and (source.id, each.kind, named.key) not in self.bound:
                    found.append((source.id, each.kind, named))
        return found

    def release(self, space: str, referring: Collection[tuple[str, ReferenceKind, Place]]) -> None:
        """What referred to what is deleted now means what else its path leads to."""
        for source_id, kind, place in referring:
            target = self.find(space, place)
            if target is not None:
                self.bound[source_id, kind, place.key] = target.id
                self.written.add(source_id)

    def references_to(
        self,
        space: str,
        document_id: str,
        *,
        root: Place | None = None,
        after: str = "",
        limit: int | None = None,
    ) -> builtins.list[Reference]:
        """From what is written here, and from what the store knows to refer to it."""
        target = self.get(space, document_id)
        if target is None:
            return []
        known = self.under.references_to(space, document_id)
        for key in self._names_of(target):
            known += self.under.references_naming(space, _place(key))
        return self._found(
            space,
            {each.source for each in known},
            lambda each: each.target == target.path and not each.is_broken,
            root=root,
            after=after,
        )[:limit]

    def references_naming(self, space: str, place: Place) -> builtins.list[Reference]:
        """From what is written here, and from what the store knows to name a path."""
        known = self.under.references_naming(space, place)
        return self._found(
            space,
            {each.source for each in known},
            lambda each: stored_path(each.named).key == place.key,
        )

    def _names_of(self, target: Document) -> Iterator[str]:
        """Keys that mean a document by now, and may mean something else to the store."""
        own = stored_path(target.path).key
        if own in self.reached:
            yield own
        yield from (key for key, document_id in self.led.items() if document_id == target.id)

    def _found(
        self,
        space: str,
        paths: Collection[str],
        is_meant: Callable[[Reference], bool],
        *,
        root: Place | None = None,
        after: str = "",
    ) -> builtins.list[Reference]:
        """References out of the store's documents at some paths, and out of those written here."""
        found = []
        for source_id in self._sources(space, paths) - self.gone.keys():
            for each in self.references_from(space, source_id):
                key = stored_path(each.source).key
                is_inside = root is None or is_at_or_below(key, root.key)
                if key > after and is_inside and is_meant(each):
                    found.append((key, each))
        return [each for _, each in sorted(found, key=lambda pair: (pair[0], pair[1].kind))]

    def _sources(self, space: str, paths: Collection[str]) -> set[str]:
        """The ids of the store's documents at some paths, and of those written here."""
        there = (self.under.find(space, stored_path(path).place) for path in paths)
        return {*self.written, *(each.id for each in there if each is not None)}

    def deleted(
        self, space: str, root: Place, after: str | None, limit: int
    ) -> builtins.list[DeletedDocument]:
        """What was deleted here, the last first, and then what the store has."""
        mine = [self._document(space, entry) for entry in reversed(self.gone.values())]
        found = [
            _deleted(each)
            for each in mine
            if each is not None and is_at_or_below(stored_path(each.path).key, root.key)
        ]
        at = next((at for at, each in enumerate(found, 1) if each.id == after), None)
        found = found[at or 0 :] if after is None or at is not None else []
        last = None if at is not None else after
        while len(found) < limit:
            page = self.under.deleted(space, root, last, limit)
            found += [each for each in page if not self._is_known(each.id)]
            if len(page) < limit:
                break
            last = page[-1].id
        return found[:limit]

    # what stands between the store and the view

    def _as_is(self, space: str, found: Document) -> Document | None:
        """A live document of the store as it would be by now."""
        if found.id in self.gone:
            return None
        if found.id in self.keys:
            return self._document(space, self.entries[self.keys[found.id]])
        return None if self._is_hidden(stored_path(found.path).key) else found

    def _document(self, space: str, entry: OverlayEntry) -> Document | None:
        if entry.document is not None:
            return entry.document
        found = self.under.get(space, entry.id)
        if found is None or found.deleted_at is not None:
            return None  # somebody else was faster
        gone_at = entry.node.updated_at if entry.id in self.gone else None
        return replace(
            found,
            path=entry.place.text,
            version=found.version + entry.more,
            deleted_at=gone_at,
        )

    def _is_known(self, document_id: str) -> bool:
        return document_id in self.keys or document_id in self.gone

    def _is_hidden(self, key: str) -> bool:
        return bool(self.hidden) and any(prefix in self.hidden for prefix in _prefixes(key))


def is_at_or_below(key: str, root: str) -> bool:
    return key == root or key.startswith(root + _SEPARATOR)


def _deleted(document: Document) -> DeletedDocument:
    assert document.deleted_at is not None
    return DeletedDocument(
        id=document.id,
        path=document.path,
        title=document.title,
        version=document.version,
        body_chars=len(document.body),
        deleted_at=document.deleted_at,
        author=document.author,
        reason=document.reason,
    )


def _prefixes(key: str) -> Iterator[str]:
    """The keys above a key, the nearest first, itself to begin with."""
    while key:
        yield key
        key = key.rpartition(_SEPARATOR)[0]


def _place(key: str) -> Place:
    """A place to look at; what is shown of it comes from the document there."""
    return Place(text=key, key=key, depth=key.count(_SEPARATOR) + 1)


def _has(document: Document, terms: Sequence[str]) -> bool:
    text = f"{document.title}\n{document.description}\n{document.body}".casefold()
    return any(term.casefold() in text for term in terms)

"""Reads the document tree for a holder: pages, lists, search, links, history and diffs.

The cost of a diff grows with the pairs of equal lines. Texts that mostly repeat the same lines are
not compared: all between their common beginning and end is shown as replaced.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from recollect import collection
from recollect.documents.paths import DEPTH_MAX, DocumentPath, read_path
from recollect.documents.scope import Holder
from recollect.errors import InvalidPath, InvalidValue, NotFound
from recollect.runtime import Runtime
from recollect.session import LIST_MAX, page_size
from recollect.stemming import search_terms
from recollect.store.protocol import Tree
from recollect.types.pages import (
    DeletedDocument,
    Document,
    Node,
    Reference,
    ReferenceKind,
    Version,
)

PAIRS_MAX = 400_000  # about a second
_CONTEXT = 3
_FEW = 200  # from here on difflib passes over lines that are more than one in a hundred


def unified(old: Sequence[str], new: Sequence[str], old_name: str, new_name: str) -> str:
    """The diff of two texts, given as lines; empty if they are the same."""
    start, old_end, new_end = _differing(old, new)
    if _pairs(old[start:old_end], new[start:new_end]) <= PAIRS_MAX:
        lines = difflib.unified_diff(old, new, old_name, new_name, lineterm="")
        return "\n".join(lines)
    first, after = max(0, start - _CONTEXT), min(len(old) - old_end, _CONTEXT)
    sizes = old_end + after - first, new_end + after - first
    return "\n".join(
        [
            f"--- {old_name}",
            f"+++ {new_name}",
            f"@@ -{first + 1},{sizes[0]} +{first + 1},{sizes[1]} @@",
            *(f" {line}" for line in old[first:start]),
            *(f"-{line}" for line in old[start:old_end]),
            *(f"+{line}" for line in new[start:new_end]),
            *(f" {line}" for line in old[old_end : old_end + after]),
        ]
    )


def _differing(old: Sequence[str], new: Sequence[str]) -> tuple[int, int, int]:
    """Where the common beginning stops, and where the common end begins in each."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    same = next(
        (at for at in range(shorter - start) if old[-1 - at] != new[-1 - at]), shorter - start
    )
    return start, len(old) - same, len(new) - same


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    theirs, ours = Counter(old), Counter(new)
    popular = len(new) // 100 + 1 if len(new) >= _FEW else len(new)
    return sum(count * theirs[line] for line, count in ours.items() if count <= popular)


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def is_id(text: object) -> bool:
    """Whether a text is the id of a document rather than a path."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def read_place(text: str) -> DocumentPath:
    """A path that names a place, whatever stands there: an id does not."""
    if is_id(text):
        raise InvalidPath(f"{text} is the id of a document, and here a path is needed")
    return read_path(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """What a document refers to, and a page of what refers to it."""

    outgoing: tuple[Reference, ...]
    incoming: tuple[Reference, ...]


class TreeReader:
    """A tree of documents, as one holder may see it."""

    def __init__(self, runtime: Runtime, tree: Tree, space: str, holder: Holder) -> None:
        self._runtime = runtime
        self._tree = tree
        self._space = space
        self.holder = holder

    def read(self, path: str) -> Document:
        """A document by path, by a path it had before, or by id. NotFound: there is none."""
        found = self.find(path)
        if found is None:
            raise NotFound(f"there is no document at {path}")
        return found

    def find(self, path: str) -> Document | None:
        """The same, none where there is none."""
        if is_id(path):
            found = self._tree.get(self._space, path)
            found = None if found is None or found.deleted_at is not None else found
        else:
            target = read_path(path)
            self.holder.check_read(target)
            found = self._tree.find(self._space, target.place)
        # Not an error: that would say that it exists, and where.
        return found if found is not None and self._is_shown(found.path) else None

    def tree(
        self,
        path: str | None = None,
        *,
        depth: int = DEPTH_MAX,
        limit: int = 1000,
        after: str | None = None,
    ) -> list[Node]:
        """A page of the tree, each document before what stands below it.

        `after` is the path of the last node of the page before.
        """
        root = self._root(path)
        depth = min(collection.check_seq(depth, "a depth"), DEPTH_MAX)
        last = "" if after is None else read_path(after).key
        return self._tree.tree(self._space, root.place, last, depth, page_size(limit))

    def _root(self, path: str | None) -> DocumentPath:
        """Where a part of the tree begins: an id and an old path are followed to it."""
        if path in (None, "", "/"):
            return self.holder.top
        found = self.find(path)
        if found is not None:
            return read_path(found.path)
        if is_id(path):
            raise NotFound(f"there is no document at {path}")
        return read_path(path)

    def deleted(
        self, path: str | None = None, *, limit: int = 100, after: str | None = None
    ) -> list[DeletedDocument]:
        """A page of what was deleted at a path and below it, and can be restored; the last first.

        `after` is the id of the last one of the page before.
        """
        root = self.holder.top if path is None else read_place(path)
        self.holder.check_read(root)
        last = None if after is None else collection.check_id(after)
        return self._tree.deleted(self._space, root.place, last, page_size(limit))

    def _walk(self, path: str) -> Iterator[Node]:
        """A document and all that stands below it, page by page."""
        after = None
        while page := self.tree(path, limit=LIST_MAX, after=after):
            yield from page
            after = page[-1].path

    def search(self, query: str, limit: int = 10, *, below: str | None = None) -> list[Document]:
        """Documents with any of a text's words, the best first. Any text is a legal query."""
        if not isinstance(query, str):
            raise InvalidValue(f"a query is text, not {type(query).__name__}")
        root = self._root(below)
        return self._tree.search(self._space, search_terms(query), root.place, page_size(limit))

    def links(self, path: str, *, limit: int = LIST_MAX, after: str | None = None) -> Links:
        """What a document refers to, parents included, and a page of what refers to it.

        `after` is the source of the last incoming one of the page before; those of one source stay
        together.
        """
        document = self.read(path)
        where = read_path(document.path)
        outgoing = [
            each if all(map(self._is_shown, (each.named, each.target))) else self._by_name(each)
            for each in self._tree.references_from(self._space, document.id)
        ]
        if where.parent is not None:
            above = Reference(
                kind=ReferenceKind.PARENT,
                source=where.text,
                target=where.parent.text,
                alias="",
                is_broken=False,
            )
            outgoing = [above, *outgoing]
        return Links(
            outgoing=tuple(each for each in outgoing if self._is_shown(each.target)),
            incoming=self._incoming(document, page_size(limit), after),
        )

    def _incoming(self, document: Document, limit: int, after: str | None) -> tuple[Reference, ...]:
        root = None if self.holder.root is None else self.holder.root.place
        found = self._tree.references_to(
            self._space,
            document.id,
            root=root,
            after="" if after is None else read_path(after).key,
            limit=limit + 1,
        )
        is_split = 0 < limit < len(found) and found[limit].source == found[limit - 1].source
        return tuple(found if is_split else found[:limit])

    def _by_name(self, reference: Reference) -> Reference:
        """Resolve a reference by the path it names, so that no document outside has an effect."""
        found = self.find(reference.named) if self._is_shown(reference.named) else None
        target = reference.named if found is None else found.path
        return replace(reference, target=target, is_broken=found is None)

    def _is_shown(self, path: str) -> bool:
        root = self.holder.root
        return root is None or read_path(path).is_within(root)

    def history(self, path: str, limit: int = 50, before: int | None = None) -> list[Version]:
        """A page of a document's versions, the newest first; also of a deleted one."""
        document = self._also_deleted(path)
        before = None if before is None else collection.check_seq(before, "a version")
        found = self._tree.history(self._space, document.id, before, page_size(limit))
        return [each for each in found if self._is_shown(each.path)]

    def version(self, path: str, number: int) -> Version:
        """One version of a document."""
        number = collection.check_seq(number, "a version")
        found = self.history(path, limit=1, before=number + 1)
        if not found or found[0].number != number:
            raise NotFound(f"{path} has no version {number}")
        return found[0]

    def diff(self, path: str, a: int, b: int | None = None) -> str:
        """What changed between two versions, as a unified diff; `b` none: up to the newest."""
        newest = self._also_deleted(path).version
        old, new = self.version(path, a), self.version(path, newest if b is None else b)
        return unified(_shown(old), _shown(new), f"version {old.number}", f"version {new.number}")

    def _also_deleted(self, path: str) -> Document:
        """What stands at a path, else what was deleted there last, else what has moved away."""
        found = self.find(path)
        if is_id(path):
            found = found or self._tree.get(self._space, path)
        elif found is None or read_path(found.path).key != read_path(path).key:
            found = self._tree.find_deleted(self._space, read_path(path).place) or found
        if found is None or not self._is_shown(found.path):
            raise NotFound(f"there is and was no document at {path}")
        return found


def _shown(version: Version) -> list[str]:
    """A version as lines, for a diff."""
    head = [f"title: {version.title}", f"description: {version.description}"]
    head += [f"tags: {', '.join(version.tags)}", f"path: {version.path}", ""]
    return [*head, *version.body.splitlines()]

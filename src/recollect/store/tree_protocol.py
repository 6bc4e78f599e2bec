"""What a store can do with a tree of documents; one of the aggregates of `store/protocol.py`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from recollect.types.agents import DocumentChanges
    from recollect.types.pages import (
        Because,
        DeletedDocument,
        Document,
        Edit,
        Filing,
        Node,
        Place,
        Purged,
        Reference,
        TreeLimits,
        Version,
    )


T = TypeVar("T")


class Tree(Protocol):
    """What can be read of a tree of documents, as it is or as edits would leave it."""

    def find(self, space: str, place: Place) -> Document | None:
        """The document at a path, or the one that stood there and has moved."""
        ...

    def get(self, space: str, document_id: str) -> Document | None:
        """A document by its id, also a deleted one."""
        ...

    def find_deleted(self, space: str, place: Place) -> Document | None:
        """The document that was deleted last at a path."""
        ...

    def tree(
        self, space: str, root: Place, after: str, depth_max: int, limit: int
    ) -> builtins.list[Node]:
        """A page of the tree from a root on, each before its children; `after` is a path's key."""
        ...

    def history(
        self, space: str, document_id: str, before: int | None, limit: int
    ) -> builtins.list[Version]:
        """A page of versions, the newest first."""
        ...

    def search(
        self, space: str, terms: Sequence[str], root: Place, limit: int
    ) -> builtins.list[Document]:
        """Documents below a root that have any of the words, the best first."""
        ...

    def deleted(
        self, space: str, root: Place, after: str | None, limit: int
    ) -> builtins.list[DeletedDocument]:
        """A page of what was deleted at a root and below it, the last first; `after` is an id."""
        ...

    def references_from(self, space: str, document_id: str) -> builtins.list[Reference]: ...

    def references_to(
        self,
        space: str,
        document_id: str,
        *,
        root: Place | None = None,
        after: str = "",
        limit: int | None = None,
    ) -> builtins.list[Reference]:
        """What leads to a document, from below a root, by source; `after` is a path's key."""
        ...


class DocumentStore(Tree, Protocol):
    """A tree of versioned documents. A path is where one stands; old paths lead to what moved."""

    def broken(self, space: str, limit: int, root: Place | None = None) -> builtins.list[Reference]:
        """References to what is not there. With a root, nothing outside counts as being there."""
        ...

    def orphans(self, space: str, limit: int, root: Place | None = None) -> builtins.list[str]:
        """Paths of documents that no other one mentions; with a root, nothing outside counts."""
        ...

    def apply(
        self,
        space: str,
        edits: Sequence[Edit],
        because: Because,
        limits: TreeLimits,
        now: datetime,
        new_id: Callable[[], str],
    ) -> builtins.list[Document]:
        """Make all edits or none, in order; each document as it is afterwards.

        A version that one document had at a path never comes again there with another one. What
        was said in a session that has been forgotten is no ground for anything. An edit without
        grounds of its own is made on those of all.

        StaleVersion, DocumentExists, DocumentReferenced, NotFound, InvalidPath or TooLarge if one
        of them cannot be made.
        """
        ...

    def preview(
        self,
        space: str,
        changes: DocumentChanges,
        now: datetime,
        new_id: Callable[[], str],
        look: Callable[[Tree, Sequence[Document]], T],
    ) -> T:
        """What `look` finds in the tree as edits would leave it, and in the documents they make.

        They are made as `apply` makes them, and taken back: nothing of it stays. `look` may be
        called several times, while others wait.
        """
        ...

    def render(self, space: str, filing: Filing, now: datetime, new_id: Callable[[], str]) -> int:
        """Render the facts that are to come on a page; how many pages were written.

        Those are the facts of pages that lost something, and those of the stretch that `filing`
        names. What has not changed makes no version; a page of which nothing is left goes.
        """
        ...

    def unrendered(self, space: str | None, now: datetime | None, limit: int) -> builtins.list[str]:
        """Spaces, or that one, with facts to come on a page, and with a time, ended on one."""
        ...

    def erase_versions(self, space: str, document_id: str, numbers: Sequence[int]) -> int:
        """Remove earlier versions of a document for good; how many there were of them."""
        ...

    def erase_deleted(self, space: str, document_id: str) -> bool:
        """Remove a deleted document for good, with every version. False: there is none."""
        ...

    def purge(self, space: str, place: Place) -> Purged:
        """Remove for good what stands or stood at a path and below it, with every version."""
        ...

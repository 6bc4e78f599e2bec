"""The document tree of a space for callers: one method per verb, with the rights of its holder.

Reading is in reading.py, changing in editing.py; this module has what only the tree itself offers:
listing broken links, purging, handing the tree to another holder, and beginning a changeset.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from recollect import collection
from recollect.documents.editing import Editor, OnReferences
from recollect.documents.paths import memory_root, read_path, stored_path
from recollect.documents.reading import Links, is_id, read_place
from recollect.documents.scope import Holder
from recollect.ids import NewId
from recollect.runtime import Runtime
from recollect.session import page_size
from recollect.store.protocol import Store
from recollect.types.pages import Because, Document, Edit, Place, Purged, Reference

if TYPE_CHECKING:
    from recollect.documents.changeset import Changeset
    from recollect.documents.load import Loading
    from recollect.documents.publish import Publication
    from recollect.documents.survey import HeldTree

__all__ = ["Documents", "Links", "OnReferences"]

STORE_ID = "store_id"  # kept in the store: which one a published directory came from


class Documents(Editor):
    """A space's tree of documents, as one holder may see and change it."""

    is_aside = False

    def __init__(
        self, runtime: Runtime, store: Store, space: str, holder: Holder | None = None
    ) -> None:
        super().__init__(runtime, store.documents, space, holder or Holder())
        self._store = store

    def held_by(self, holder: Holder) -> Documents:
        """The same tree for somebody else."""
        return Documents(self._runtime, self._store, self._space, holder)

    def changeset(self, reason: str = "") -> Changeset:
        """Edits prepared aside, to be committed in one transaction or dropped without a trace."""
        from recollect.documents.changeset import Changeset

        return Changeset(self, self._store.documents, self._make, reason)

    def _based(self, edit: Edit, known: Document | None) -> Edit:  # noqa: ARG002
        """Return the edit; without a version it applies to the newest at the time it is made."""
        return edit

    def _make(
        self, edits: Sequence[Edit], because: Because, new_id: NewId | None = None
    ) -> list[Document]:
        """Make edits; facts whose page somebody takes over, or gives back, are rendered anew."""
        limits, now = self._limits(), self._runtime.now()
        new_id = new_id or self._runtime.ids.new
        made = self._store.documents.apply(self._space, edits, because, limits, now, new_id)
        if any(stored_path(each.place.text).is_within(memory_root()) for each in edits):
            from recollect.pages.filing import render_pages

            render_pages(self._runtime, self._store, self._space)
        return made

    def broken_links(self, limit: int = 100) -> list[Reference]:
        """References to documents that are not there."""
        return self._store.documents.broken(self._space, page_size(limit), self._part)

    def orphans(self, limit: int = 100) -> list[str]:
        """Documents that no other one mentions."""
        return self._store.documents.orphans(self._space, page_size(limit), self._part)

    @property
    def _part(self) -> Place | None:
        return None if self.holder.root is None else self.holder.root.place

    def purge(self, path: str) -> Purged:
        """Remove for good what is or was at a path and below it, with every version."""
        target = read_place(path)
        self.holder.check_uproot(target)
        return self._store.documents.purge(self._space, target.place)

    def erase_deleted(self, path: str) -> bool:
        """Remove a deleted document for good, and nothing below it: by its id, or by its path.

        Of those that were deleted at a path, the last one. False: there is none.
        """
        found = self._store.documents.get(self._space, path) if is_id(path) else None
        if found is None and is_id(path):
            return False
        target = read_place(path) if found is None else read_path(found.path)
        self.holder.check_uproot(target)
        found = found or self._store.documents.find_deleted(self._space, target.place)
        return found is not None and self._store.documents.erase_deleted(self._space, found.id)

    def erase_versions(self, path: str, numbers: Sequence[int]) -> int:
        """Remove earlier versions of a document for good; how many there were of them.

        What it says now stays, and so do the numbers of the others.
        """
        document = self._also_deleted(path)
        self.holder.check_write(read_path(document.path))
        checked = [collection.check_seq(number, "a version") for number in numbers]
        return self._store.documents.erase_versions(self._space, document.id, checked)

    # as files

    def publish(
        self,
        directory: str | os.PathLike[str],
        *,
        path: str | None = None,
        discard_edits: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Publication:
        """Publish what stands below a path as Markdown files, one whole generation at a time.

        Without a path, what was published there before, or all. `progress` is told how many
        documents of how many are done.
        """
        from recollect.documents.publish import publish

        root = None if path is None else read_path(path)
        return publish(
            self._held(),
            directory,
            root=root,
            discard_edits=collection.check_flag(discard_edits, "discard_edits"),
            progress=progress,
        )

    def load(
        self,
        directory: str | os.PathLike[str],
        *,
        path: str | None = None,
        dry_run: bool = False,
        allow_deletions: bool = False,
    ) -> Loading:
        """Load what was changed in a directory of Markdown files, published before or not."""
        from recollect.documents.load import load

        root = None if path is None else read_path(path)
        return load(
            self._held(),
            directory,
            root=root,
            dry_run=dry_run,
            allow_deletions=collection.check_flag(allow_deletions, "allow_deletions"),
        )

    def _held(self) -> HeldTree:
        from recollect.documents.survey import EDITED_AS_A_FILE, HeldTree

        return HeldTree(
            tree=self._store.documents,
            store=self._store.keep(STORE_ID, self._runtime.ids.new()),
            space=self._space,
            holder=self.holder,
            body_bytes_max=self._runtime.settings.document_bytes_max,
            files_max=self._runtime.settings.documents_max,
            now=self._runtime.now,
            write=lambda target, content: self._write_edit(target, content, None),
            apply=lambda edits: self._apply(edits, self._because(EDITED_AS_A_FILE)),
        )

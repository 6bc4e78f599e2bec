"""The document tree: read in pages and by path, changed by edits in one transaction.

Owns D1 (an identical write makes no version), D2 (links to what is not there yet come alive, a move
keeps what points at it), D3 (unique siblings without case, no circles: a path is the only parent a
document has) and D5. Whoever changes the tree of a space holds its row in `trees`.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from recollect.agency import DocumentChanges
from recollect.clock import to_micros
from recollect.document import (
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
from recollect.stems import stems
from recollect.store.protocol import NewId
from recollect.store.relational.database import Connection, Database, Row
from recollect.store.relational.document_edits import (
    SEPARATOR,
    SEPARATOR_END,
    apply_edits,
    inside,
)
from recollect.store.relational.document_rows import (
    deleted_document,
    document,
    node,
    note_purge,
    purge_deleted,
    purge_documents,
    reference,
    version,
)
from recollect.store.relational.topic_pages import render_pages
from recollect.terms import TERMS_MAX, WORD_CHARS_MAX

_EVERY = 2**62
_LAST_KEY = "\U0010ffff"  # no path has it


class RelationalDocuments:
    """Implements `recollect.store.protocol.Documents`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, space: str, place: Place) -> Document | None:
        names = {"space": space, "path_key": place.key}
        asked = [("find_document", names), ("find_moved_document", names)]
        found, moved = self._database.ask(space, asked)
        rows = found or moved
        return document(rows[0]) if rows else None

    def get(self, space: str, document_id: str) -> Document | None:
        names = {"space": space, "id": document_id}
        row = self._database.read(space, lambda c: c.row("get_document", names))
        return None if row is None else document(row)

    def find_deleted(self, space: str, place: Place) -> Document | None:
        names = {"space": space, "path_key": place.key}
        row = self._database.read(space, lambda c: c.row("find_deleted_document", names))
        return None if row is None else document(row)

    def tree(
        self, space: str, root: Place, after: str, depth_max: int, limit: int
    ) -> builtins.list[Node]:
        """A page in the order of the tree: each level is in order, and they are merged."""
        page = {
            **inside(space, root.key),
            "limit": limit,
            "separator": SEPARATOR,
            "separator_end": SEPARATOR_END,
        }
        if after >= root.key:
            page["path_key"] = after + SEPARATOR  # the first key there can be after that one

        def job(c: Connection) -> builtins.list[Row]:
            return [
                row
                for depth in range(root.depth, root.depth + depth_max + 1)
                for row in c.rows("tree_level", {**page, "depth": depth})
            ]

        found = sorted(self._database.read(space, job), key=lambda row: row[2])
        return [node(row) for row in found[:limit]]

    def history(
        self, space: str, document_id: str, before: int | None, limit: int
    ) -> builtins.list[Version]:
        page = {
            "space": space,
            "id": document_id,
            "before": _EVERY if before is None else before,
            "limit": limit,
        }
        found = self._database.read(space, lambda c: c.rows("document_versions", page))
        return [version(row) for row in found]

    def search(
        self, space: str, terms: Sequence[str], root: Place, limit: int
    ) -> builtins.list[Document]:
        sought = stems(" ".join(term[:WORD_CHARS_MAX] for term in terms[:TERMS_MAX]))
        if not sought:
            return []
        wanted = {
            **inside(space, root.key),
            "words": json.dumps(sought, ensure_ascii=False),
            "limit": limit,
        }
        found = self._database.read(space, lambda c: c.rows("search_documents", wanted))
        return [document(row) for row in found]

    def references_from(self, space: str, document_id: str) -> builtins.list[Reference]:
        names = {"space": space, "id": document_id}
        found = self._database.read(space, lambda c: c.rows("references_from", names))
        return [reference(row) for row in found]

    def references_to(
        self,
        space: str,
        document_id: str,
        *,
        root: Place | None = None,
        after: str = "",
        limit: int | None = None,
    ) -> builtins.list[Reference]:
        page = {
            **_within(space, root),
            "id": document_id,
            "after": after,
            "limit": _EVERY if limit is None else limit,
        }
        found = self._database.read(space, lambda c: c.rows("references_to", page))
        return [reference(row) for row in found]

    def references_naming(self, space: str, place: Place) -> builtins.list[Reference]:
        names = {"space": space, "path_key": place.key}
        found = self._database.read(space, lambda c: c.rows("references_naming", names))
        return [reference(row) for row in found]

    def deleted(
        self, space: str, root: Place, after: str | None, limit: int
    ) -> builtins.list[DeletedDocument]:
        page = {**inside(space, root.key), "after": after, "limit": limit}
        found = self._database.read(space, lambda c: c.rows("deleted_documents", page))
        return [deleted_document(row) for row in found]

    def broken(self, space: str, limit: int, root: Place | None = None) -> builtins.list[Reference]:
        page = {**_within(space, root), "limit": limit}
        found = self._database.read(space, lambda c: c.rows("broken_references", page))
        return [reference(row) for row in found]

    def orphans(self, space: str, limit: int, root: Place | None = None) -> builtins.list[str]:
        page = {**_within(space, root), "limit": limit}
        found = self._database.read(space, lambda c: c.rows("orphaned_documents", page))
        return [row[0] for row in found]

    def apply(
        self,
        space: str,
        edits: Sequence[Edit],
        because: Because,
        limits: TreeLimits,
        now: datetime,
        new_id: NewId,
    ) -> builtins.list[Document]:
        changes = DocumentChanges(edits=tuple(edits), because=because, limits=limits)
        return self._database.write(space, lambda c: apply_edits(c, space, changes, now, new_id))

    def erase_versions(self, space: str, document_id: str, numbers: Sequence[int]) -> int:
        def job(c: Connection) -> int:
            c.row("lock_tree", {"space": space})
            names = {"space": space, "id": document_id}
            return sum(
                c.row("erase_version", {**names, "version": number}) is not None
                for number in numbers
            )

        erased = self._database.erase(space, job) if numbers else 0
        if erased:
            self._database.scrub()
        return erased

    def erase_deleted(self, space: str, document_id: str) -> bool:
        def job(c: Connection) -> bool:
            c.row("lock_tree", {"space": space})
            version = purge_deleted(c, space, document_id)
            if version is not None:
                note_purge(c, space, version)
            return version is not None

        is_erased = self._database.erase(space, job)
        if is_erased:
            self._database.scrub()
        return is_erased

    def render(self, space: str, filing: Filing, now: datetime, new_id: NewId) -> int:
        return len(
            self._database.write(space, lambda c: render_pages(c, space, filing, now, new_id))
        )

    def unrendered(self, space: str | None, now: datetime | None, limit: int) -> builtins.list[str]:
        page = {"any_space": space is None, "space": space or "", "limit": limit}

        def job(c: Connection) -> builtins.list[Row]:
            unfiled = c.rows("spaces_unfiled", page)
            if now is None:
                return unfiled
            return unfiled + c.rows("spaces_with_ended_facts", {**page, "now": to_micros(now)})

        return sorted({row[0] for row in self._database.read(space, job)})

    def purge(self, space: str, place: Place) -> Purged:
        def job(c: Connection) -> Purged:
            c.row("lock_tree", {"space": space})
            found = c.rows("list_purgeable", inside(space, place.key))
            keys = [row[0] for row in found]
            c.run_many("purge_usages", [{"space": space, "key": key} for key in keys])
            purge_documents(c, space, keys)
            c.run("bind_unbound_references", {"space": space})
            if found:
                note_purge(c, space, max(row[2] for row in found))
            live = sum(row[1] is None for row in found)
            if live:
                c.run("count_documents", {"space": space, "more": -live})
            return Purged(documents=len(found), versions=sum(row[3] for row in found))

        purged = self._database.erase(space, job)
        # Also when nothing was there: a purge before this one may have left something in the log.
        return replace(purged, is_clean=self._database.scrub())


def _within(space: str, root: Place | None) -> dict[str, Any]:
    if root is None:
        return {"space": space, "path_key": "", "path_key_end": _LAST_KEY}
    return inside(space, root.key)

"""Edits to a document tree, one after the other in one transaction.

What keeps the tree sound, for everybody who holds its row in `trees`: each document's parent is
there, and its path begins with the parent's to the letter. Where something stands nothing is led
elsewhere, and a reference leads to what stands at its path, or else to what was moved away from it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from recollect.document import (
    Because,
    Content,
    Delete,
    Document,
    DocumentEvent,
    Edit,
    Move,
    NewReference,
    Place,
    Restore,
    TreeLimits,
    Write,
)
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    NotFound,
    StaleVersion,
)
from recollect.store.protocol import NewId
from recollect.store.relational.database import Connection, Params, Row
from recollect.store.relational.document_rows import document, provenance
from recollect.terms import indexed_words

SEPARATOR, SEPARATOR_END = "\x01", "\x02"
REFERRERS_SHOWN = 5


@dataclass(slots=True, kw_only=True)
class Editing:
    """The edits of one transaction; `count` is how many documents the tree has."""

    c: Connection
    space: str
    because: Because
    limits: TreeLimits
    now: int
    new_id: NewId
    count: int

    def apply(self, edit: Edit) -> Document:
        match edit:
            case Write():
                key = self._write(edit)
            case Move():
                key = self._move(edit)
            case Delete():
                key = self._delete(edit)
            case Restore():
                key = self._restore(edit)
            case _:
                assert_never(edit)
        row = self.c.row("get_document_by_key", {"space": self.space, "key": key})
        assert row is not None
        return document(row)

    # write

    def _write(self, edit: Write) -> int:
        row = self._find(edit.place.key)
        _check(edit, row)
        if row is None:
            self._make_parents(edit.parents)
            return self._create(edit.place, edit.content, edit.references)
        if document(row).content == edit.content:
            return int(row[0])
        self.c.run("update_document", {"key": row[0], **self._said(edit.content), **self._who()})
        self._refer(row[0], edit.references)
        self._note(row[0], DocumentEvent.RESTORED if edit.is_restore else DocumentEvent.WRITTEN)
        return int(row[0])

    def _make_parents(self, parents: Sequence[Place]) -> None:
        for place in parents:
            if self._find(place.key) is None:
                self._create(place, Content(title=place.text.rpartition("/")[2]), ())

    def _create(self, place: Place, content: Content, references: Sequence[NewReference]) -> int:
        self._check_depth(place, place.depth)
        row = self.c.row(
            "insert_document",
            {
                "id": self.new_id(),
                "path": self._named_by_parent(place),
                "path_key": place.key,
                "depth": place.depth,
                **self._said(content),
                **self._who(),
            },
        )
        assert row is not None
        self.count += 1
        self._arrived(only(self.space, place.key))
        self._refer(row[0], references)
        self._note(row[0], DocumentEvent.CREATED)
        return int(row[0])

    def _named_by_parent(self, place: Place) -> str:
        """Its path as it is shown: a parent's case is as it was given when that was made."""
        above = place.key.rpartition(SEPARATOR)[0]
        if not above:
            return place.text
        parent = self._find(above)
        text, _, slug = place.text.rpartition("/")
        if parent is None:
            raise NotFound(f"there is nothing at {text} to put it below")
        return f"{parent[3]}/{slug}"

    def _arrived(self, where: Params) -> None:
        """Something stands there now: links to it come alive, nothing is led elsewhere."""
        self.c.run("drop_redirects", where)
        self.c.run("bind_references", where)

    def _refer(self, key: int, references: Sequence[NewReference]) -> None:
        self.c.run("delete_document_references", {"space": self.space, "key": key})
        self.c.run_many(
            "insert_document_reference",
            [
                {
                    "space": self.space,
                    "key": key,
                    "kind": each.kind.value,
                    "target_path_key": each.place.key,
                    "target_path": each.place.text,
                    "alias": each.alias,
                }
                for each in references
            ],
        )

    # move

    def _move(self, edit: Move) -> int:
        row = self._present(edit)
        where = inside(self.space, edit.place.key)
        if edit.to.key.startswith(edit.place.key + SEPARATOR):
            raise InvalidPath(f"{edit.place.text} cannot be moved below itself")
        if edit.to.key != edit.place.key and self._find(edit.to.key) is not None:
            raise DocumentExists(f"there is a document at {edit.to.text}")
        self._make_parents(edit.parents)
        path = self._named_by_parent(edit.to)
        if path == row[3]:
            return int(row[0])
        self._check_depth_below(edit, where)
        if edit.to.key != edit.place.key:
            self.c.run("put_redirects", where)
        moved = {
            "to_path": path,
            "from_chars": len(row[3]) + 1,
            "to_key": edit.to.key,
            "from_key_chars": len(edit.place.key) + 1,
            "deeper": edit.to.depth - edit.place.depth,
        }
        self.c.run("move_documents", {**where, **moved})
        self.c.run("note_document", {"key": row[0], **self._who()})
        self._note(row[0], DocumentEvent.MOVED)
        self._arrived(inside(self.space, edit.to.key))
        return int(row[0])

    def _check_depth_below(self, edit: Move, where: Params) -> None:
        deepest = self.c.row("deepest_inside", where)
        assert deepest is not None
        self._check_depth(edit.to, deepest[0] + edit.to.depth - edit.place.depth)

    def _check_depth(self, place: Place, depth: int) -> None:
        if depth > self.limits.depth_max:
            raise InvalidPath(
                f"{place.text}, or what is below it, would stand more than "
                f"{self.limits.depth_max} deep"
            )

    # delete and restore

    def _delete(self, edit: Delete) -> int:
        row = self._present(edit)
        where = inside(self.space, edit.place.key)
        counted = self.c.row("count_inside", where)
        assert counted is not None
        if counted[0] > 1 and not edit.below:
            raise DocumentReferenced(
                f"{edit.place.text} has {counted[0] - 1:,} documents below it: "
                "delete them too (below=True), or move them away"
            )
        if not edit.leaves_broken:
            self._check_referrers(edit, where)
        together = {**where, "deleted_with": row[0], "event": DocumentEvent.DELETED.value}
        self.c.run("delete_documents", {**together, **self._who()})
        self.c.run("insert_deleted_versions", {**together, "now": self.now})
        self.count -= counted[0]
        return int(row[0])

    def _check_referrers(self, edit: Delete, where: Params) -> None:
        found = self.c.rows("find_referrers", {**where, "limit": REFERRERS_SHOWN + 1})
        if found:
            shown = ", ".join(f"{each[1]} → {each[2]}" for each in found[:REFERRERS_SHOWN])
            more = " and others" if len(found) > REFERRERS_SHOWN else ""
            raise DocumentReferenced(
                f"other documents refer to {edit.place.text}: {shown}{more}; change them first, or "
                "say how to treat the references"
            )

    def _restore(self, edit: Restore) -> int:
        if self._find(edit.place.key) is not None:
            raise DocumentExists(f"there is a document at {edit.place.text}, which is not deleted")
        row = self._deleted(edit)
        if edit.expected not in (None, row[10]):
            raise _stale(edit.place, row)
        self._make_parents(edit.parents)
        where = inside(self.space, edit.place.key)
        together = {
            **where,
            "deleted_with": row[18],
            "to_path": self._named_by_parent(edit.place),
            "from_chars": len(row[3]) + 1,
        }
        self.c.run("restore_documents", {**together, **self._who()})
        event = DocumentEvent.RESTORED.value
        self.c.run("insert_restored_versions", {**where, "event": event, "now": self.now})
        counted = self.c.row("count_inside", where)
        assert counted is not None
        self.count += counted[0]
        self._arrived(where)
        return int(row[0])

    def _deleted(self, edit: Restore) -> Row:
        names = {"space": self.space, "path_key": edit.place.key}
        if edit.document_id is None:
            row = self.c.row("find_deleted_document", names)
        else:
            row = self.c.row("get_document", {"space": self.space, "id": edit.document_id})
        if row is None or row[13] is None or row[4] != edit.place.key:
            raise NotFound(f"no such document was deleted at {edit.place.text}")
        return row

    # finding

    def _find(self, path_key: str) -> Row | None:
        return self.c.row("find_document", {"space": self.space, "path_key": path_key})

    def _present(self, edit: Move | Delete) -> Row:
        row = self._find(edit.place.key)
        _check(edit, row)
        if row is None:
            raise NotFound(f"there is no document at {edit.place.text}")
        return row

    # what every change writes

    def _said(self, content: Content) -> dict[str, Any]:
        return {
            "space": self.space,
            "title": content.title,
            "description": content.description,
            "body": content.body,
            "tags": json.dumps(list(content.tags), ensure_ascii=False),
            "links": json.dumps(list(content.links), ensure_ascii=False),
            "words": _words(content),
        }

    def _who(self) -> dict[str, Any]:
        because = self.because
        return {
            "space": self.space,
            "author_kind": because.author.kind.value,
            "author": because.author.name,
            "reason": because.reason,
            "provenance": provenance(because.sources, because.facts),
            "now": self.now,
        }

    def _note(self, key: int, event: DocumentEvent) -> None:
        names = {"space": self.space, "key": key, "event": event.value, "now": self.now}
        self.c.run("insert_document_version", names)


def _words(content: Content) -> str:
    """What it is found by. What a document is called counts for more than what stands in it."""
    called = [content.title] * 3 + [content.description] * 2 + [*content.tags, content.body]
    return indexed_words(" ".join(called))


def inside(space: str, path_key: str) -> dict[str, Any]:
    """A path and everything below it, by key: no part of a key has a character before these two."""
    return {"space": space, "path_key": path_key, "path_key_end": path_key + SEPARATOR_END}


def only(space: str, path_key: str) -> dict[str, Any]:
    """A path without what is below it."""
    return {"space": space, "path_key": path_key, "path_key_end": path_key + SEPARATOR}


def _check(edit: Write | Move | Delete, row: Row | None) -> None:
    """Whether an edit is made to what it was meant for."""
    path, expected = edit.place.text, edit.expected
    if row is None:
        if expected or edit.document_id is not None:
            raise NotFound(f"there is no document at {path}, so no version {expected} of it")
        return
    if expected == 0:
        raise DocumentExists(f"there is a document at {path} (version {row[10]})")
    if edit.document_id not in (None, row[1]):
        raise StaleVersion(f"another document stands at {path} by now", current=int(row[10]))
    if expected not in (None, row[10]):
        raise _stale(edit.place, row)


def _stale(place: Place, row: Row) -> StaleVersion:
    return StaleVersion(
        f"{place.text} is at version {row[10]} by now: read it again, then change that",
        current=int(row[10]),
    )

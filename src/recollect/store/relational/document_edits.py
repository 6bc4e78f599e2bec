"""Applies edits to a document tree, one after the other in one transaction.

Invariants of the tree, for every holder of its row in `trees`: each document's parent exists, and
its path begins with the parent's to the letter. A path that has a document is never redirected. A
reference means a document: the one that was at its path, or had been moved away from it, when the
reference was written; once that is deleted, the document that its path leads to then or next.
No version number that was used at a path is used there again by another document.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never

from recollect.clock import to_micros
from recollect.crashpoints import reach
from recollect.errors import (
    DocumentExists,
    DocumentReferenced,
    InvalidPath,
    NotFound,
    StaleVersion,
    TooLarge,
)
from recollect.ids import NewId
from recollect.stemming import indexed
from recollect.store.relational.database import Connection, Params, Row
from recollect.store.relational.document_rows import (
    document,
    provenance,
    purge_documents,
    raise_versions,
)
from recollect.store.relational.indexing import drop_vectors, put_entry
from recollect.types.agents import DocumentChanges
from recollect.types.facts import Source
from recollect.types.pages import (
    BY_RENDERING,
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
    Rewrite,
    TreeLimits,
    Write,
    is_rendered,
)
from recollect.types.recall import EntryKind

SEPARATOR, SEPARATOR_END = "\x01", "\x02"
REFERRERS_SHOWN = 5
PATH_CHARS_SHOWN = 200


@dataclass(slots=True, kw_only=True)
class Editing:
    """The edits of one transaction; `count` is how many documents the tree has.

    `versions_from` is the highest version that was purged.
    """

    c: Connection
    space: str
    because: Because
    limits: TreeLimits
    now: int
    new_id: NewId
    count: int
    versions_from: int
    _grounds: dict[Because, dict[str, Any]] = field(default_factory=dict)

    def apply(self, edit: Edit) -> Document:
        """Make one edit, on its own grounds or on those of all."""
        common = self.because
        self.because = edit.because or common
        try:
            key = self._apply(edit)
        finally:
            self.because = common
        row = self.c.row("get_document_by_key", {"space": self.space, "key": key})
        assert row is not None
        return document(row)

    def _apply(self, edit: Edit) -> int:
        match edit:
            case Write():
                return self._write(edit)
            case Rewrite():
                return self._rewrite(edit)
            case Move():
                return self._move(edit)
            case Delete():
                return self._delete(edit)
            case Restore():
                return self._restore(edit)
            case _:
                assert_never(edit)

    # write

    def _write(self, edit: Write) -> int:
        row = self._find(edit.place.key)
        _check(edit, row)
        if row is None:
            self._make_parents(edit.parents)
            return self._create(edit.place, edit.content, edit.references)
        if document(row).content == edit.content:
            return int(row[0])
        is_taken_over = document(row).is_rendered and not is_rendered(
            self.because.author, self.because.reason
        )
        if is_taken_over:  # its facts come on another page
            unfile_page(self.c, self.space, row[0])
        said = {"key": row[0], **self._said(edit.content), **self._who()}
        put_entry(self.c, EntryKind.DOCUMENT, "update_document", said)
        self._refer(row[0], edit.references)
        self._note(row[0], DocumentEvent.RESTORED if edit.is_restore else DocumentEvent.WRITTEN)
        if is_taken_over:
            self.c.run("erase_earlier_versions", {"space": self.space, "key": row[0]})
        oldest = row[10] + 2 - (self.limits.versions_kept or row[10] + 1)
        if oldest > 1:
            names = {"space": self.space, "key": row[0], "version": oldest}
            self.c.run("trim_versions", names)
        return int(row[0])

    def _rewrite(self, edit: Rewrite) -> int:
        row = self._find(edit.place.key) if edit.document_id is None else self._meant(edit)
        _check(edit, row)
        write = edit.change(None if row is None else document(row))
        if row is None:
            return self._write(replace(write, expected=0, document_id=None))
        return self._write(replace(write, expected=row[10], document_id=row[1]))

    def _meant(self, edit: Rewrite) -> Row:
        row = self.c.row("get_document", {"space": self.space, "id": edit.document_id})
        if row is None or row[13] is not None:
            raise NotFound(f"there is no document at {edit.place.text}")
        return row

    def _make_parents(self, parents: Sequence[Place], since: int | None = None) -> None:
        """Those that are missing; `since`: as they were, if they were deleted from then on."""
        because = self.because
        for place in parents:
            if self._find(place.key) is not None:
                continue
            if is_rendered(because.author, because.reason):  # facts are on one page
                self.because = replace(because, sources=(), facts=())
            names = {"space": self.space, "path_key": place.key}
            gone = None if since is None else self.c.row("find_deleted_document", names)
            if gone is not None and since is not None and gone[13] >= since:
                self._bring_back(gone, place, alone=True)
            else:
                self._create(place, Content(title=place.text.rpartition("/")[2]), ())
        self.because = because

    def _create(self, place: Place, content: Content, references: Sequence[NewReference]) -> int:
        self._check_depth(place, place.depth)
        path = self._named_by_parent(place)
        self._check_bytes(place, len(path.encode()))
        seen = self.c.row(
            "seen_before",
            {"space": self.space, "path_key": place.key, "versions_from": self.versions_from},
        )
        assert seen is not None
        row = put_entry(
            self.c,
            EntryKind.DOCUMENT,
            "insert_document",
            {
                "id": self.new_id(),
                "path": path,
                "path_key": place.key,
                "depth": place.depth,
                "version": seen[0] + 1,
                **self._said(content),
                **self._who(),
            },
            is_new=True,
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
            raise NotFound(f"there is no document at {text} to put it below")
        return f"{parent[3]}/{slug}"

    def _arrived(self, where: Params) -> None:
        """Something stands there now: links to it come alive, nothing is led elsewhere."""
        self.c.run("drop_redirects", where)
        self.c.run("bind_references", where)

    def _overtaken(self, where: Params) -> list[int]:
        """Raise what stands where something else had its version; before redirects are dropped."""
        found = self.c.rows("overtaken_documents", {**where, "versions_from": self.versions_from})
        self.c.run_many(
            "raise_document",
            [{"key": key, "version": seen + 1, **self._who()} for key, seen in found],
        )
        return [key for key, _ in found]

    def _refer(self, key: int, references: Sequence[NewReference]) -> None:
        names = {"space": self.space, "key": key}
        kept = {(row[0], row[1]): row[2] for row in self.c.rows("kept_references", names)}
        self.c.run("delete_document_references", names)
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
                    "kept": kept.get((each.kind.value, each.place.key)),
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
        self._check_extent(edit, where, len(path.encode()) - len(row[3].encode()))
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
        arrived = inside(self.space, edit.to.key)
        for key in dict.fromkeys([row[0], *self._overtaken(arrived)]):
            self._note(key, DocumentEvent.MOVED)
        self._arrived(arrived)
        return int(row[0])

    def _check_extent(self, edit: Move, where: Params, longer: int) -> None:
        """Whether all that moves has room where it would stand."""
        extent = self.c.row("extent_inside", where)
        assert extent is not None
        depth, key_bytes, path_bytes = extent
        self._check_depth(edit.to, depth + edit.to.depth - edit.place.depth)
        key_longer = len(edit.to.key.encode()) - len(edit.place.key.encode())
        self._check_bytes(edit.to, max(key_bytes + key_longer, path_bytes + longer))

    def _check_depth(self, place: Place, depth: int) -> None:
        if depth > self.limits.depth_max:
            raise InvalidPath(
                f"{place.text}, or what is below it, would be more than "
                f"{self.limits.depth_max} deep"
            )

    def _check_bytes(self, place: Place, count: int) -> None:
        if max(count, len(place.key.encode())) > self.limits.path_bytes_max:
            raise InvalidPath(
                f"the path of {place.text[:PATH_CHARS_SHOWN]}, or of what is below it, would have "
                f"more than {self.limits.path_bytes_max:,} bytes"
            )

    # delete and restore

    def _delete(self, edit: Delete) -> int:
        row = self._present(edit)
        where = inside(self.space, edit.place.key)
        counted = self.c.row("count_inside", where)
        assert counted is not None
        rendered = [each for each in self.c.rows("rendered_inside", where) if each[0] != row[0]]
        others = counted[0] - 1 - len(rendered)
        if others and not edit.below:
            raise DocumentReferenced(
                f"{edit.place.text} has {others:,} documents below it: "
                "delete them too (below=True), or move them away"
            )
        if edit.count_expected not in (None, counted[0]):
            raise StaleVersion(
                f"there are {counted[0] - 1:,} documents below {edit.place.text} by now, and not "
                f"those that were seen: look again",
                current=int(row[10]),
            )
        if not edit.leaves_broken:
            self._check_referrers(edit, where)
        for key, version in ((each[0], each[2]) for each in rendered):  # they are never restored
            remove_rendered(self.c, self.space, key, version)
        if document(row).is_rendered:  # its deleter has written nothing
            self.because = BY_RENDERING
        together = {**where, "deleted_with": row[0], "event": DocumentEvent.DELETED.value}
        gone = self.c.rows("delete_documents", {**together, **self._who()})
        drop_vectors(self.c, self.space, EntryKind.DOCUMENT, [each[0] for each in gone])
        self.c.run("insert_deleted_versions", {**together, "now": self.now})
        self.c.run("release_references", where)
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
        self._make_parents(edit.parents, since=row[13])
        return self._bring_back(row, edit.place, alone=False)

    def _bring_back(self, row: Row, place: Place, *, alone: bool) -> int:
        where = inside(self.space, place.key)
        together = {
            **where,
            "deleted_with": row[18],
            "together": not alone,
            "key": row[0],
            "to_path": self._named_by_parent(place),
            "from_chars": len(row[3]) + 1,
        }
        self.c.run("restore_documents", {**together, **self._who()})
        self._overtaken(where)
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
            **_words(content),
        }

    def _who(self) -> dict[str, Any]:
        because = self.because
        if because not in self._grounds:
            self._grounds[because] = {
                "space": self.space,
                "author_kind": because.author.kind.value,
                "author": because.author.name,
                "reason": because.reason,
                "provenance": provenance(self._remembered(because.sources), because.facts),
                "now": self.now,
            }
        return self._grounds[because]

    def _remembered(self, sources: Sequence[Source]) -> list[Source]:
        """Without the sessions that were forgotten, perhaps since somebody prepared this."""
        ids = json.dumps(sorted({each.session_id for each in sources}), ensure_ascii=False)
        names = {"space": self.space, "ids": ids}
        gone = {row[0] for row in self.c.rows("forgotten_sessions", names)} if sources else set()
        return [each for each in sources if each.session_id not in gone]

    def _note(self, key: int, event: DocumentEvent) -> None:
        names = {"space": self.space, "key": key, "event": event.value, "now": self.now}
        self.c.run("insert_document_version", names)
        made_from = inputs_of(self._remembered(self.because.sources), self.because.facts)
        put_inputs(self.c, {"space": self.space, "key": key}, made_from)


def apply_edits(
    c: Connection, space: str, changes: DocumentChanges, now: datetime, new_id: NewId
) -> list[Document]:
    """Make all edits inside a transaction; each document as it is afterwards."""
    c.run("insert_space", {"space": space, "now": to_micros(now)})
    row = c.row("lock_tree", {"space": space})
    assert row is not None
    limits = changes.limits
    editing = Editing(
        c=c,
        space=space,
        because=changes.because,
        limits=limits,
        now=to_micros(now),
        new_id=new_id,
        count=row[0],
        versions_from=row[1],
    )
    made = [editing.apply(edit) for edit in changes.edits]
    reach("documents.applied")
    more = editing.count - row[0]
    if more > 0 and editing.count > limits.documents_max:
        raise TooLarge(
            f"a tree holds at most {limits.documents_max:,} documents: raise documents_max"
        )
    if more:
        c.run("count_documents", {"space": space, "more": more})
    return made


Input = tuple[str, str, int, int]  # a fact by its id, or the records of a session


def inputs_of(sources: Sequence[Source], facts: Sequence[str]) -> set[Input]:
    """What a version was made from."""
    records = {("record", each.session_id, each.seq, each.seq_to) for each in sources}
    return {("fact", each, 0, 0) for each in facts} | records


def put_inputs(
    c: Connection, document: Params, inputs: AbstractSet[Input], query: str = "insert_input"
) -> None:
    """Note what the current version of a document was made from."""
    c.run_many(
        query,
        [
            {**document, "input_kind": kind, "input_id": name, "seq": seq, "seq_to": seq_to}
            for kind, name, seq, seq_to in sorted(inputs)
        ],
    )


def _words(content: Content) -> dict[str, str]:
    """What it is found by: what it is called, what it is about, and all of it."""
    said = [content.title, content.description, *content.tags, content.body]
    return {
        "called": indexed(content.title),
        "about": indexed(content.description),
        "words": indexed(" ".join(said)),
    }


def unfile_page(c: Connection, space: str, key: int) -> None:
    """Have the facts of a page come on one again; what it says is the caller's to see to."""
    names = {"space": space, "key": key}
    c.run("unfile_page", names)
    c.run("drop_inputs", names)


def remove_rendered(c: Connection, space: str, key: int, version: int) -> None:
    """Remove a rendered page, below which nothing stands; its facts come on another one."""
    unfile_page(c, space, key)
    purge_documents(c, space, [key])
    raise_versions(c, space, version)


def inside(space: str, path_key: str) -> dict[str, Any]:
    """A path and everything below it, by key: no part of a key has a character before these two."""
    return {"space": space, "path_key": path_key, "path_key_end": path_key + SEPARATOR_END}


def only(space: str, path_key: str) -> dict[str, Any]:
    """A path without what is below it."""
    return {"space": space, "path_key": path_key, "path_key_end": path_key + SEPARATOR}


def _check(edit: Write | Rewrite | Move | Delete, row: Row | None) -> None:
    """Whether an edit is made to what it was meant for."""
    path, expected = edit.place.text, edit.expected
    if row is None:
        if expected or edit.document_id is not None:
            raise NotFound(f"there is no document at {path}, so no version {expected} of it")
        return
    if expected == 0:
        raise DocumentExists(f"there is a document at {path} (version {row[10]})")
    if edit.document_id not in (None, row[1]):
        raise StaleVersion(f"another document is at {path} by now", current=int(row[10]))
    if expected not in (None, row[10]):
        raise _stale(edit.place, row)


def _stale(place: Place, row: Row) -> StaleVersion:
    return StaleVersion(
        f"{place.text} is at version {row[10]} by now: read it again, then change that",
        current=int(row[10]),
    )

"""The document tree: read in pages and by path, changed by edits in one transaction.

Owns D1 (an identical write makes no version), D2 (links to a missing document work once it is
made, a move keeps references), D3 (siblings are unique ignoring case, and there are no cycles,
since a document's path names its only parent) and D5. A change of a space's tree holds the tree's
row in `trees`.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from recollect.clock import to_micros
from recollect.ids import NewId
from recollect.stemming import TERMS_MAX, WORD_CHARS_MAX, stems
from recollect.store.relational import rows
from recollect.store.relational.database import (
    Aggregate,
    Connection,
    OpenTransaction,
    Params,
    ReadAggregate,
    Row,
    scope,
)
from recollect.store.relational.document_edits import (
    SEPARATOR,
    SEPARATOR_END,
    Editing,
    apply_edits,
    inputs_of,
    inside,
    put_inputs,
    remove_rendered,
    unfile_page,
)
from recollect.store.relational.document_rows import (
    deleted_document,
    document,
    node,
    provenance,
    purge_deleted,
    purge_documents,
    raise_versions,
    reference,
    version,
)
from recollect.types.agents import DocumentChanges
from recollect.types.pages import (
    BY_RENDERING,
    Because,
    Content,
    DeletedDocument,
    Document,
    Edit,
    FiledFact,
    Filing,
    Node,
    PageState,
    Place,
    Purged,
    Reference,
    TreeLimits,
    Version,
    Write,
)

SOURCES_MAX = 20  # of a fact, that a page names
PAGES_MAX = 2000  # below a folder, that are known by name


def unfile_fact(c: Connection, space: str, fact_id: str, now: datetime) -> None:
    """Empty the pages that a fact is on: it may not be so any more as they say it."""
    names = {"space": space, "id": fact_id}
    if not c.rows("pages_of_fact", names):
        return
    c.row("lock_tree", {"space": space})
    for key, path, path_key, depth in c.rows("pages_of_fact", names):
        unfile_page(c, space, key)
        place = Place(text=path, key=path_key, depth=depth)
        empty_page(c, space, place, now)
        c.run("erase_earlier_versions", {"space": space, "key": key})


def unfile_session(c: Connection, space: str, session_ids: Iterable[str]) -> None:
    """Have all facts of sessions come on a page."""
    for session_id in sorted(session_ids):
        stretch = {"space": space, "session_id": session_id, "first": 0, "last": 2**62}
        c.run("unfile_stretch", stretch)


def render_pages(
    c: Connection,
    space: str,
    filing: Filing,
    now: datetime,
    new_id: NewId,
    *,
    is_said: bool = False,
) -> list[Document]:
    """Render every page that an unfiled fact belongs on, and drop those of which nothing is left.

    With stretches of sessions their facts are unfiled first, with the pages they are on; `is_said`:
    they come on none, for somebody else has written what they say.
    """
    c.row("lock_tree", {"space": space})
    stretches = [
        {"space": space, "session_id": each.session_id, "first": each.seq, "last": each.seq_to}
        for each in filing.stretches
    ]
    for stretch in stretches:
        for (key,) in c.rows("pages_of_stretch", stretch):
            unfile_page(c, space, key)
        if not is_said:
            c.run("unfile_stretch", stretch)
    if not stretches:
        for (key,) in c.rows("pages_with_ended_facts", {"space": space, "now": to_micros(now)}):
            unfile_page(c, space, key)
            c.run("touch_document", {"space": space, "key": key, "now": to_micros(now)})
    left = {row[0] for row in c.rows("unfiled_pages", {"space": space})}
    for stretch in stretches if is_said else ():
        c.run("settle_stretch", stretch)
    pages = _Pages(c=c, names={"space": space, "at": to_micros(now)})
    if not pages.facts and not left:
        _settle_unfiled(c, space)
        return []
    writes = tuple(filing.render(pages))
    changes = DocumentChanges(edits=writes, because=BY_RENDERING, limits=filing.limits)
    made = apply_edits(c, space, changes, now, new_id)
    for write, page in zip(writes, made, strict=True):
        _settle(c, space, write, page)
    _drop_empty(c, space, left - {write.place.key for write in writes})
    _settle_unfiled(c, space)
    return made


def _settle_unfiled(c: Connection, space: str) -> None:
    c.run("hold_back", {"space": space})
    c.run("settle_unfiled", {"space": space})


def _settle(c: Connection, space: str, write: Write, page: Document) -> None:
    """Note what a page was made from, also where it says the same as before. It has one version."""
    assert write.because is not None, "who renders says of what"
    row = c.row("find_document", {"space": space, "path_key": write.place.key})
    assert row is not None
    own = {"space": space, "key": row[0]}
    grounds = provenance(write.because.sources, write.because.facts)
    if grounds != row[17]:
        stated = {**own, "version": page.version, "provenance": grounds}
        c.run("set_provenance", stated)
        c.run("set_document_provenance", stated)
    known = {(each[0], each[1], each[2], each[3]) for each in c.rows("inputs_of_page", own)}
    wanted = inputs_of(write.because.sources, write.because.facts)
    put_inputs(c, own, wanted - known)
    put_inputs(c, own, known - wanted, "drop_input")
    c.run("erase_earlier_versions", own)


def _drop_empty(c: Connection, space: str, path_keys: Iterable[str]) -> None:
    """Remove pages on which nothing is left, and the folders that have no page any more."""
    for path_key in sorted(path_keys, reverse=True):  # what stands below a page goes before it
        above = path_key
        while above:
            above = _drop_one(c, space, above)


def _drop_one(c: Connection, space: str, path_key: str) -> str:
    """Remove a rendered page without facts and pages below it; the key of what stands above."""
    row = c.row("find_document", {"space": space, "path_key": path_key})
    counted = c.row("count_inside", inside(space, path_key))
    assert counted is not None
    if row is None or not document(row).is_rendered or counted[0] > 1:
        return ""
    if c.row("has_inputs", {"space": space, "key": row[0]}) is not None:
        return ""
    remove_rendered(c, space, row[0], row[10])
    c.run("bind_unbound_references", {"space": space})
    c.run("count_documents", {"space": space, "more": -1})
    return path_key.rpartition(SEPARATOR)[0]


@dataclass(slots=True, kw_only=True)
class _Pages:
    """Implements `PagesOfFacts` inside a transaction."""

    c: Connection
    names: Params
    facts: Sequence[FiledFact] = ()
    _seen: dict[str, PageState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found: dict[str, FiledFact] = {}
        for row in self.c.rows("unfiled_facts", self._asked):  # those that stood nowhere first
            filed = _filed(row)
            found[filed.fact.id] = filed
        self.facts = tuple(found.values())

    def page(self, place: Place) -> PageState:
        if place.key not in self._seen:
            self._seen[place.key] = self._state(place)
        return self._seen[place.key]

    def facts_on(self, place: Place) -> Sequence[FiledFact]:
        where = {**self._asked, "path_key": place.key}
        return [_filed(row) for row in self.c.rows("facts_of_page", where)]

    def below(self, place: Place) -> Sequence[tuple[str, str, str]]:
        where = {**inside(self.names["space"], place.key), "depth": place.depth + 1}
        return [
            (row[0], row[1], row[2])
            for row in self.c.rows("pages_below", {**where, "limit": PAGES_MAX})
        ]

    def _state(self, place: Place) -> PageState:
        space = self.names["space"]
        row = self.c.row("find_document", {"space": space, "path_key": place.key})
        if row is None:
            return PageState()
        page = document(row)
        if not page.is_rendered:
            is_blank = not (page.body.strip() or page.description)  # it has others below it
            return PageState(is_there=True, is_authored=not is_blank)
        counted = self.c.row("count_facts_of_page", {"space": space, "key": row[0]})
        assert counted is not None
        return PageState(is_there=True, facts=int(counted[0]), size=len(page.body))

    @property
    def _asked(self) -> Params:
        return {**self.names, "is_now": True, "sources_max": SOURCES_MAX}


def _filed(row: Row) -> FiledFact:
    return FiledFact(fact=rows.fact(row), project=row[24], path_key=row[25])


def empty_page(
    c: Connection, space: str, place: Place, now: datetime, because: Because = BY_RENDERING
) -> Document:
    """Leave of a page only its place, in a version of its own; those before it are erased next."""
    editing = Editing(
        c=c,
        space=space,
        because=because,
        limits=TreeLimits(documents_max=0, depth_max=0),  # nothing is made
        now=to_micros(now),
        new_id=str,
        count=0,
        versions_from=0,
    )
    return editing.apply(Write(place=place, content=Content(title=place.text.rpartition("/")[2])))


T = TypeVar("T")


class _RolledBackError(Exception):
    """Ends a transaction of which nothing is to stay."""


_EVERY = 2**62
_LAST_KEY = "\U0010ffff"  # no path has it


class StoredTree(ReadAggregate):
    """Implements `Tree`, on snapshots or within a transaction."""

    def find(self, space: str, place: Place) -> Document | None:
        names = {"space": space, "path_key": place.key}
        asked = [("find_document", names), ("find_moved_document", names)]
        found, moved = self._snapshots.ask(space, asked)
        rows = found or moved
        return document(rows[0]) if rows else None

    def get(self, space: str, document_id: str) -> Document | None:
        names = {"space": space, "id": document_id}
        return self._one(document, space, "get_document", names)

    def find_deleted(self, space: str, place: Place) -> Document | None:
        names = {"space": space, "path_key": place.key}
        return self._one(document, space, "find_deleted_document", names)

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

        found = sorted(self._snapshots.read(space, job), key=lambda row: row[-1])
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
        return self._page(version, space, "document_versions", page)

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
        return self._page(document, space, "search_documents", wanted)

    def references_from(self, space: str, document_id: str) -> builtins.list[Reference]:
        names = {"space": space, "id": document_id}
        return self._page(reference, space, "references_from", names)

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
        return self._page(reference, space, "references_to", page)

    def deleted(
        self, space: str, root: Place, after: str | None, limit: int
    ) -> builtins.list[DeletedDocument]:
        page = {**inside(space, root.key), "after": after, "limit": limit}
        return self._page(deleted_document, space, "deleted_documents", page)


class DocumentStore(StoredTree, Aggregate):
    """A tree of versioned documents, each at a path; old paths lead to documents that moved."""

    def broken(self, space: str, limit: int, root: Place | None = None) -> builtins.list[Reference]:
        """References to missing documents. With a root, all documents outside count as missing."""
        page = {**_within(space, root), "limit": limit}
        return self._page(reference, space, "broken_references", page)

    def orphans(self, space: str, limit: int, root: Place | None = None) -> builtins.list[str]:
        """Paths of documents that no other one mentions; with a root, nothing outside counts."""
        page = {**_within(space, root), "limit": limit}
        found = self._rows(space, "orphaned_documents", page)
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
        """Make all edits or none, in order; each document as it is afterwards.

        A version that one document had at a path never comes again there with another one. What
        was said in a session that has been forgotten is no ground for anything. An edit without
        grounds of its own is made on those of all.

        StaleVersion, DocumentExists, DocumentReferenced, NotFound, InvalidPath or TooLarge if one
        of them cannot be made.
        """
        changes = DocumentChanges(edits=tuple(edits), because=because, limits=limits)
        return self._database.write(space, lambda c: apply_edits(c, space, changes, now, new_id))

    def preview(
        self,
        space: str,
        changes: DocumentChanges,
        now: datetime,
        new_id: NewId,
        look: Callable[[StoredTree, Sequence[Document]], T],
    ) -> T:
        """What `look` finds in the tree as edits would leave it, and in the documents they make.

        They are made as `apply` makes them, and taken back: nothing of it stays. `look` may be
        called several times, while others wait.
        """
        found: builtins.list[T] = []

        def job(c: Connection) -> None:
            made = apply_edits(c, space, changes, now, new_id)
            found[:] = [look(StoredTree(OpenTransaction(c)), made)]
            raise _RolledBackError

        with suppress(_RolledBackError):
            self._database.write(space, job)
        return found[0]

    def erase_versions(self, space: str, document_id: str, numbers: Sequence[int]) -> int:
        """Remove earlier versions of a document for good; return their number."""

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
        """Remove a deleted document for good, with every version. False: there is none."""

        def job(c: Connection) -> bool:
            c.row("lock_tree", {"space": space})
            version = purge_deleted(c, space, document_id)
            if version is not None:
                raise_versions(c, space, version)
            return version is not None

        is_erased = self._database.erase(space, job)
        if is_erased:
            self._database.scrub()
        return is_erased

    def render(self, space: str, filing: Filing, now: datetime, new_id: NewId) -> int:
        """Render the facts that are still to be put on a page; return the number of pages written.

        Those are the facts of pages that lost something, and those of the stretch that `filing`
        names. What has not changed makes no version; a page of which nothing is left goes.
        """
        return len(
            self._database.write(space, lambda c: render_pages(c, space, filing, now, new_id))
        )

    def unrendered(self, space: str | None, now: datetime | None, limit: int) -> builtins.list[str]:
        """Spaces, or that one, with facts to come on a page, and with a time, ended on one."""
        page = {**scope(space), "limit": limit}

        def job(c: Connection) -> builtins.list[Row]:
            unfiled = c.rows("spaces_unfiled", page)
            if now is None:
                return unfiled
            return unfiled + c.rows("spaces_with_ended_facts", {**page, "now": to_micros(now)})

        return sorted({row[0] for row in self._database.read(space, job)})

    def purge(self, space: str, place: Place) -> Purged:
        """Remove for good what is or was at a path and below it, with every version."""

        def job(c: Connection) -> Purged:
            c.row("lock_tree", {"space": space})
            found = c.rows("list_purgeable", inside(space, place.key))
            purge_documents(c, space, [row[0] for row in found])
            c.run("bind_unbound_references", {"space": space})
            if found:
                raise_versions(c, space, max(row[2] for row in found))
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

"""Staged pages: the writes and deletions of a run, held in memory over the tree of a store.

The dict holds each changed page in its new form, with the version it was based on when it was first
touched; all others are read from the store. At the end there is one edit for each page that
differs, with the sources of its last writer. Nothing is moved, so that no page has two places.
"""

from __future__ import annotations

import builtins
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import islice, takewhile
from typing import Any, assert_never, cast

from recollect.documents.editing import Editor
from recollect.documents.paths import KEY_SEPARATOR, read_path, stored_path
from recollect.errors import NotAllowed, NotFound
from recollect.session import LIST_MAX
from recollect.store.protocol import Tree
from recollect.types.agents import DocumentChanges
from recollect.types.facts import Source
from recollect.types.pages import (
    Because,
    Content,
    Delete,
    Document,
    Edit,
    Move,
    Node,
    Place,
    Restore,
    Rewrite,
    Write,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Staged:
    """A page as it would be, none if it is deleted; what it is based on, and what makes it so.

    `back` brings the page back first. Without an edit it is as it was, or made in passing.
    """

    place: Place
    document: Document | None
    base: Document | None
    edit: Write | Delete | None = None
    back: Restore | None = None


@dataclass(slots=True, kw_only=True)
class _StagedTree:
    """Implements `Tree`: a store's, with pages put in or over."""

    under: Tree
    pages: dict[str, _Staged] = field(default_factory=dict)  # by the key of where they stand

    def find(self, space: str, place: Place) -> Document | None:
        if place.key in self.pages:
            return self.pages[place.key].document
        return self._now(self.under.find(space, place))

    def get(self, space: str, document_id: str) -> Document | None:
        for each in self.pages.values():
            if each.document is not None and each.document.id == document_id:
                return each.document
        return self._now(self.under.get(space, document_id))

    def _now(self, found: Document | None) -> Document | None:
        if found is None or found.deleted_at is not None:
            return found
        staged = self.pages.get(stored_path(found.path).key)
        return found if staged is None else staged.document

    def tree(
        self, space: str, root: Place, after: str, depth_max: int, limit: int
    ) -> builtins.list[Node]:
        parents = {place.key for each in self._live() for place in read_path(each.path).parents}
        here = [_node(each) for each in self._live()]
        own = [
            (place.key, node)
            for node in here
            if (place := stored_path(node.path).place).key > after
            and _is_at_or_below(place.key, root.key)
            and place.depth <= root.depth + depth_max
        ]
        theirs = self._untouched(space, root, after, depth_max, limit)
        page = heapq.merge(sorted(own, key=lambda each: each[0]), theirs, key=lambda each: each[0])
        return [
            replace(node, has_children=node.has_children or key in parents)
            for key, node in islice(page, limit)
        ]

    def _untouched(
        self, space: str, root: Place, after: str, depth_max: int, limit: int
    ) -> Iterator[tuple[str, Node]]:
        while page := self.under.tree(space, root, after, depth_max, limit):
            for node in page:
                after = stored_path(node.path).key
                if after not in self.pages:
                    yield after, node

    def search(
        self, space: str, terms: Sequence[str], root: Place, limit: int
    ) -> builtins.list[Document]:
        """What the pages here say first, then what the store finds."""
        own = [
            each
            for each in self._live()
            if _is_at_or_below(stored_path(each.path).key, root.key) and _has(each, terms)
        ]
        enough = min(limit + len(self.pages), LIST_MAX)
        theirs = self.under.search(space, terms, root, enough)
        return [*own, *(e for e in theirs if stored_path(e.path).key not in self.pages)][:limit]

    def _live(self) -> Iterator[Document]:
        return (each.document for each in self.pages.values() if each.document is not None)

    def __getattr__(self, name: str) -> Any:
        """Everything else is as the store has it: history, what was deleted, references."""
        return getattr(self.under, name)


class StagedPages(Editor):
    """Pages that are written and deleted aside, checked like any change. For one thread."""

    def __init__(self, documents: Editor, reason: str) -> None:
        self._staged, self._commit = _StagedTree(under=documents._tree), documents._apply
        space, holder = documents._space, documents.holder
        super().__init__(documents._runtime, cast(Tree, self._staged), space, holder)
        self._reason = reason

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What makes the tree so: what is written from the top, then what is deleted."""
        pages = [each for _, each in sorted(self._staged.pages.items())]
        written = [e for p in pages for e in (p.back, p.edit) if isinstance(e, Restore | Write)]
        gone = [p.edit for p in reversed(pages) if isinstance(p.edit, Delete)]
        return (*written, *gone)

    @property
    def touched(self) -> set[str]:
        """The paths of what was written or deleted, also of what was undone again."""
        pages = self._staged.pages.values()
        return {each.place.text for each in pages if each.edit or each.back or not each.document}

    def changes(self, sources: Sequence[Source] = (), facts: Sequence[str] = ()) -> DocumentChanges:
        """The edits, for who commits them together with something else.

        `sources` and `facts` are what an edit rests on that names none itself.
        """
        # Not bounded as what a caller gives is: nothing that was read may be left out.
        author = self.holder.author
        common = Because(
            author=author, reason=self._reason, sources=tuple(sources), facts=tuple(facts)
        )
        return DocumentChanges(
            edits=tuple(_grounded(each, common) for each in self.edits),
            because=common,
            limits=self._limits(),
        )

    def commit(self) -> list[Document]:
        """Make the edits; StaleVersion or another refusal if somebody else was faster."""
        changes = self.changes()
        made = self._commit(changes.edits, changes.because) if changes.edits else []
        self._staged.pages.clear()
        return made

    def _make(self, edits: Sequence[Edit], because: Because) -> list[Document]:
        return [self._stage(replace(each, because=because)) for each in edits]

    def _stage(self, edit: Edit) -> Document:
        match edit:
            case Write():
                return self._write(edit)
            case Delete():
                return self._delete(edit)
            case Restore():
                return self._restore(edit)
            case Move() | Rewrite():
                raise NotAllowed(f"{edit.place.text} cannot be moved here: write and delete pages")
            case _:
                assert_never(edit)

    def _write(self, edit: Write) -> Document:
        staged, known = self._at(edit.place)
        if known is not None and known.content == edit.content:
            return known
        above = reversed(edit.parents) if known is None else ()
        for place in takewhile(lambda place: self._at(place)[1] is None, above):
            title = Content(title=place.text.rpartition("/")[2])
            self._put(_Staged(place=place, document=self._new(place, title), base=None))
        base, back = (known, None) if staged is None else (staged.base, staged.back)
        if base is None:
            page = self._new(edit.place, edit.content) if known is None else known
            fenced = replace(edit, expected=0, document_id=None)
        else:
            page = replace(base, version=base.version + 1, deleted_at=None)
            version = None if back else base.version
            fenced = replace(edit, expected=version, document_id=base.id)
        page = replace(page, **_said(edit.content))
        if base is not None and base.content == edit.content:  # it is as it was
            page = page if back else base
            self._put(_Staged(place=edit.place, document=page, base=base, back=back))
        else:
            self._put(_Staged(place=edit.place, document=page, base=base, edit=fenced, back=back))
        return page

    def _delete(self, edit: Delete) -> Document:
        staged, known = self._at(edit.place)
        if known is None:
            raise NotFound(f"there is no document at {edit.place.text}")
        base = known if staged is None else staged.base
        if base is None or (staged is not None and staged.back):
            self._put(_Staged(place=edit.place, document=None, base=None))
        else:
            fenced = replace(edit, expected=base.version, document_id=base.id)
            self._put(_Staged(place=edit.place, document=None, base=base, edit=fenced))
        return known

    def _restore(self, edit: Restore) -> Document:
        found = self._tree.get(self._space, edit.document_id or "")
        if found is None:
            raise NotFound(f"no such document was deleted at {edit.place.text}")
        page = replace(found, deleted_at=None, version=found.version + 1)
        self._put(_Staged(place=edit.place, document=page, base=found, back=edit))
        return page

    def _at(self, place: Place) -> tuple[_Staged | None, Document | None]:
        """What is staged at a place, and what stands there; not what has moved away."""
        staged = self._staged.pages.get(place.key)
        found = self._tree.find(self._space, place)
        is_here = found is not None and stored_path(found.path).key == place.key
        return staged, found if is_here else None

    def _put(self, staged: _Staged) -> None:
        self._staged.pages[staged.place.key] = staged

    def _new(self, place: Place, content: Content) -> Document:
        now = self._runtime.now()
        return Document(
            id=self._runtime.ids.new(),
            space=self._space,
            path=place.text,
            version=1,
            created_at=now,
            updated_at=now,
            deleted_at=None,
            author=self.holder.author,
            reason=self._reason,
            sources=(),
            facts=(),
            **_said(content),
        )


def _said(content: Content) -> dict[str, Any]:
    return {each.name: getattr(content, each.name) for each in fields(content)}


def _grounded(edit: Edit, common: Because) -> Edit:
    """An edit for the common reason, on its own grounds if it has any; to delete takes none."""
    own = edit.because
    if isinstance(edit, Delete):
        return replace(edit, because=replace(common, sources=(), facts=()))
    if own is None or not (own.sources or own.facts):
        return replace(edit, because=common)
    return replace(edit, because=replace(own, reason=common.reason))


def _node(page: Document) -> Node:
    return Node(
        id=page.id,
        path=page.path,
        title=page.title,
        description=page.description,
        version=page.version,
        body_chars=len(page.body),
        updated_at=page.updated_at,
        has_children=False,
    )


def _is_at_or_below(key: str, root: str) -> bool:
    return key == root or key.startswith(root + KEY_SEPARATOR)


def _has(document: Document, terms: Sequence[str]) -> bool:
    text = f"{document.title}\n{document.description}\n{document.body}".casefold()
    return any(term.casefold() in text for term in terms)

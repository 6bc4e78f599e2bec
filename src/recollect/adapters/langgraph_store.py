"""A LangGraph store (`langgraph.store.base.BaseStore`) on the documents of a space.

Every item is a versioned document below `~/langgraph`: what a graph puts there survives the process
and is recalled like everything else, and no pipeline rewrites it. All puts of a batch are made in
one transaction, or none; reads of a batch see what was there before it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from recollect.adapters.langgraph_items import (
    ItemPage,
    Namespace,
    decode,
    encode,
    fits,
    folder_slug,
    is_indexed_for,
    key_slug,
    listed,
    read_namespace,
    read_page,
    tag_of,
    tags_of,
)
from recollect.documents.editing import OnReferences
from recollect.documents.paths import read_path
from recollect.documents.scope import Holder
from recollect.documents.staged import StagedPages
from recollect.documents.tree import Documents
from recollect.errors import DocumentExists, InvalidValue, NotFound, StaleVersion
from recollect.session import LIST_MAX
from recollect.types.pages import Author, AuthorKind, Document, Node
from recollect.types.recall import Hit

ROOT = "~/langgraph"
TRIES_MAX = 50  # of a batch, while others change the same items
RANKED_MIN = 50  # that recall is asked for, as items may be left out of what it finds
TITLE_CHARS_MAX = 300
_AUTHOR = Author(kind=AuthorKind.AGENT, name="langgraph")


class Recalling(Protocol):
    """What is needed of a `recollect.Space`."""

    @property
    def documents(self) -> Documents: ...

    def recall(
        self, query: str, limit: int = ..., *, kinds: Sequence[str], filters: Mapping[str, Any]
    ) -> list[Hit]: ...


class RecallingInThreads(Protocol):
    """What is needed of a `recollect.aio.Space`: the one inside."""

    @property
    def sync(self) -> Recalling: ...


class RecollectStore(BaseStore):
    """`graph.compile(store=RecollectStore(space))`. Safe to use from any number of threads.

    `supports_ttl` is false: nothing in a memory goes away by itself.
    """

    supports_ttl = False

    def __init__(self, space: Recalling | RecallingInThreads, *, root: str = ROOT) -> None:
        self._space = cast("Recalling", getattr(space, "sync", space))
        self._root = read_path(root)
        self._documents = self._space.documents.held_by(Holder(author=_AUTHOR, root=self._root))
        self._namespaces: dict[str, Namespace] = {}  # by slug: what it stands for never changes
        self._committing = threading.Lock()  # so that our own threads need not try again

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: reads first, then all puts at once, the last of each key."""
        given = list(ops)
        puts = {(tuple(op.namespace), op.key): op for op in given if isinstance(op, PutOp)}
        pages = {name: read_page(op) for name, op in puts.items() if op.value is not None}
        bodies = {name: encode(page) for name, page in pages.items()}
        gone = [
            self._path(read_namespace(op.namespace), op.key)
            for op in puts.values()
            if op.value is None
        ]
        results = [self._read(op) for op in given]
        if puts:
            self._put([(pages[name], body) for name, body in bodies.items()], gone)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same in a thread; what has begun is finished even if nobody waits for it."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return list(self._search(op))
            case ListNamespacesOp():
                _check_page(op.limit, op.offset)
                namespaces = [each for each, _ in self._folders(()) if each is not None]
                return listed(namespaces, op)
            case PutOp():
                return None
            case _:
                raise InvalidValue(f"{type(op).__name__} is no operation of a store")

    # put

    def _put(self, pages: Sequence[tuple[ItemPage, str]], gone: Sequence[str]) -> None:
        """Make all changes in one transaction; who changes the same items meanwhile goes first."""
        with self._committing:
            for attempt in range(1, TRIES_MAX + 1):
                edits = StagedPages(self._documents, "put by a graph")
                try:
                    for page, body in pages:
                        self._write(edits, page, body)
                    for path in gone:
                        found = edits.find(path)
                        if found is not None and found.path == path:
                            edits.delete(path, references=OnReferences.LEAVE)
                    edits.commit()
                except (StaleVersion, DocumentExists, NotFound):
                    if attempt == TRIES_MAX:
                        raise
                else:
                    return

    def _write(self, edits: StagedPages, page: ItemPage, body: str) -> None:
        path = self._path(page.namespace, page.key)
        title = page.key[:TITLE_CHARS_MAX]
        stored = edits.write(path, body, title=title, tags=tags_of(page.namespace))
        kept = decode(stored.body)
        if kept is None or (kept.namespace, kept.key) != (page.namespace, page.key):
            # Redacted, it would be another item, or none.
            raise InvalidValue("what looks like a secret can only be part of a value, as a text")

    # get

    def _get(self, op: GetOp) -> Item | None:
        found = self._item(self._path(read_namespace(op.namespace), op.key))
        return None if found is None else _as_item(*found)

    def _item(self, path: str) -> tuple[Document, ItemPage] | None:
        """What stands at a path, if it is an item whose place that is."""
        document = self._documents.find(path)
        if document is None or document.path != path:  # it has moved away from there
            return None
        page = decode(document.body)
        if page is None or self._path(page.namespace, page.key) != path:
            return None
        return document, page

    def _path(self, namespace: Namespace, key: str) -> str:
        if not isinstance(key, str):
            raise InvalidValue(f"a key is text, not {type(key).__name__}")
        return f"{self._root.text}/{folder_slug(namespace)}/{key_slug(key)}"

    # search

    def _search(self, op: SearchOp) -> Iterator[SearchItem]:
        """What fits: the ranked first, if there is a question, then the others, newest first."""
        _check_page(op.limit, op.offset)
        prefix, end = read_namespace(op.namespace_prefix), op.offset + op.limit
        fits(dict.fromkeys(op.filter or {}), op.filter)  # what cannot be asked is said at once
        seen: set[str] = set()
        count = 0
        for path, score in self._candidates(prefix, op):
            if count >= end:
                return
            found = None if path in seen else self._item(path)
            if found is None or not fits(found[1].value, op.filter):
                continue
            if score is not None and op.query and not is_indexed_for(found[1], op.query):
                continue  # it comes again, without a score
            seen.add(path)
            count += 1
            if count > op.offset:
                yield _as_search_item(*found, score)

    def _candidates(self, prefix: Namespace, op: SearchOp) -> Iterator[tuple[str, float | None]]:
        if op.query:
            wanted = LIST_MAX if op.filter else max(RANKED_MIN, 4 * (op.offset + op.limit))
            for hit in self._space.recall(
                op.query,
                min(wanted, LIST_MAX),
                kinds=["document"],
                filters={"tags": [tag_of(prefix)]},
            ):
                yield hit.id, hit.score
        nodes = [
            node
            for namespace, folder in self._folders(prefix)
            if namespace is not None
            for node in self._children(folder)
        ]
        for node in sorted(nodes, key=_newest_first):
            yield node.path, None

    # namespaces

    def _folders(self, prefix: Namespace) -> Iterator[tuple[Namespace | None, str]]:
        """The namespaces that begin with a prefix and hold anything, and where they stand."""
        for node in self._children(self._root.text):
            namespace = self._namespace(node) if node.has_children else None
            if namespace is not None and namespace[: len(prefix)] == prefix:
                yield namespace, node.path

    def _namespace(self, folder: Node) -> Namespace | None:
        """What a folder stands for: its items say so."""
        slug = folder.path.rpartition("/")[2]
        if slug not in self._namespaces:
            for node in self._children(folder.path):
                found = self._item(node.path)
                if found is not None:
                    self._namespaces[slug] = found[1].namespace
                    break
        return self._namespaces.get(slug)

    def _children(self, path: str) -> Iterator[Node]:
        after: str | None = path
        while nodes := self._documents.tree(path, depth=1, limit=LIST_MAX, after=after):
            yield from nodes
            after = nodes[-1].path


def _check_page(limit: object, offset: object) -> None:
    for number in (limit, offset):
        if type(number) is not int or number < 0:
            raise InvalidValue(f"limit and offset are whole numbers from 0 on: {number!r}")


def _newest_first(node: Node) -> tuple[float, str]:
    return -node.updated_at.timestamp(), node.path


def _as_item(document: Document, page: ItemPage) -> Item:
    return Item(
        value=page.value,
        key=page.key,
        namespace=page.namespace,
        created_at=document.created_at,
        updated_at=document.updated_at,
    )


def _as_search_item(document: Document, page: ItemPage, score: float | None) -> SearchItem:
    return SearchItem(
        namespace=page.namespace,
        key=page.key,
        value=page.value,
        created_at=document.created_at,
        updated_at=document.updated_at,
        score=score,
    )
